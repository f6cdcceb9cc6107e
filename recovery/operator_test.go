package recovery_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"paidonce/idemkeys"
	"paidonce/provider"
	"paidonce/provider/stripesim"
)

// parkedCharge makes a charge whose answer was lost and which is then parked, and returns its operation and the provider's id.
func parkedCharge(t *testing.T, w *world, i instance, fault string) (operation, providerID string) {
	t.Helper()
	w.fault(1, stripesim.Fault{Type: fault})
	_, err := i.charge(w, "k")
	wantUnknown(t, err)
	w.exec(`UPDATE idempotency_keys SET parked_at = clock_timestamp(), next_run_at = NULL, last_error = 'for the test'`)
	if err := w.pool.QueryRow(t.Context(), `SELECT operation_id FROM idempotency_keys`).Scan(&operation); err != nil {
		t.Fatal(err)
	}
	if fault == stripesim.DropAfter {
		got, err := w.psp.FindCharge(t.Context(), w.lookup(t))
		if err != nil || len(got) != 1 {
			t.Fatalf("%d charges, %v", len(got), err)
		}
		providerID = got[0].ID
	}
	return operation, providerID
}

func (w *world) lookup(t *testing.T) provider.Lookup {
	t.Helper()
	var l provider.Lookup
	l.Tags.Installation = "test"
	if err := w.pool.QueryRow(t.Context(), `SELECT operation_id, created_at, clock_timestamp() FROM idempotency_keys`).Scan(&l.Tags.Operation, &l.From, &l.To); err != nil {
		t.Fatal(err)
	}
	return l
}

// A person's word that it succeeded is taken when the provider agrees, and only then.
func TestResolveSucceededIsChecked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	i := w.start(nil, nil)
	op, id := parkedCharge(t, w, i, stripesim.DropAfter)
	other, err := w.psp.Charge(t.Context(), provider.ChargeRequest{
		IdempotencyKey: "other", Tags: provider.Tags{Operation: "op_other", Installation: "test"}, Amount: 2000, Currency: "usd", Source: "tok_visa", Capture: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, wrong := range map[string]string{"none": "", "unknown": "ch_nothing", "of another operation": other.Charge.ID} {
		if _, err := i.engine.Resolve(t.Context(), op, idemkeys.Resolution{Succeeded: true, ProviderID: wrong, Reason: "r", By: "me"}); err == nil {
			t.Errorf("%s: taken", name)
		}
		if h, _ := i.engine.Show(t.Context(), op); h.State != idemkeys.StateParked {
			t.Fatalf("%s: %s after a word that was not taken", name, h.State)
		}
	}
	answer, err := i.engine.Resolve(t.Context(), op, idemkeys.Resolution{Succeeded: true, ProviderID: id, Reason: "seen in the dashboard", By: "me"})
	if err != nil || answer.Code != http.StatusCreated {
		t.Fatalf("%d, %v", answer.Code, err)
	}
	res, err := i.charge(w, "k")
	if err != nil || !res.Replayed {
		t.Fatalf("replayed %v, %v", res.Replayed, err)
	}
	if err := same(res.Answer, answer); err != nil {
		t.Error(err)
	}
	h, err := i.engine.Show(t.Context(), op)
	last := h.Log[len(h.Log)-1]
	if err != nil || last.Event != "resolved" || last.Actor != "operator me" || last.Detail != "seen in the dashboard" || last.Reference != id {
		t.Errorf("%+v, %v", last, err)
	}
	if _, err := i.engine.Resolve(t.Context(), op, idemkeys.Resolution{Reason: "again", By: "me"}); !errors.Is(err, idemkeys.ErrFinished) {
		t.Errorf("resolved twice: %v", err)
	}
	if n := w.count(`SELECT count(*) FROM outbox`); n != 1 {
		t.Errorf("%d events", n)
	}
}

// A person's word that nothing moved is refused while the provider has the charge, or cannot say.
func TestResolveFailedIsChecked(t *testing.T) {
	t.Parallel()
	failed := idemkeys.Resolution{Reason: "nothing moved", By: "me"}
	t.Run("it was made", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		i := w.start(nil, nil)
		op, id := parkedCharge(t, w, i, stripesim.DropAfter)
		if _, err := i.engine.Resolve(t.Context(), op, failed); err == nil || !strings.Contains(err.Error(), id) {
			t.Errorf("%v", err)
		}
	})
	t.Run("nobody knows", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		i := w.start(nil, nil)
		op, _ := parkedCharge(t, w, i, stripesim.DropBefore)
		w.lookupFault(1, stripesim.Fault{Type: stripesim.StatusBefore, Status: 500})
		if _, err := i.engine.Resolve(t.Context(), op, failed); err == nil {
			t.Error("taken although the provider could not be asked")
		}
	})
	t.Run("it was not made", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		i := w.start(nil, nil)
		op, _ := parkedCharge(t, w, i, stripesim.DropBefore)
		if _, err := i.engine.Resolve(t.Context(), op, failed); err != nil {
			t.Fatal(err)
		}
		res, err := i.charge(w, "k") // and the key runs anew
		if err != nil || res.Answer.Code != http.StatusCreated || res.OperationID == op {
			t.Fatalf("%d, %v", res.Answer.Code, err)
		}
		w.books(1)
	})
}

// Retry gives a parked operation back, and nothing else.
func TestRetryUnparks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	i := w.start(nil, nil)
	op, _ := parkedCharge(t, w, i, stripesim.DropAfter)
	if err := i.engine.Retry(t.Context(), op, "me", "again"); err != nil {
		t.Fatal(err)
	}
	if err := i.engine.Retry(t.Context(), op, "me", "again"); !errors.Is(err, idemkeys.ErrNotParked) {
		t.Errorf("%v", err)
	}
	if err := i.engine.Retry(t.Context(), "op_none", "me", "again"); !errors.Is(err, idemkeys.ErrNoOperation) {
		t.Errorf("%v", err)
	}
	if c := w.pass(i); c.Finished != 1 {
		t.Errorf("%+v", c)
	}
	w.books(1)
}

// A kind that this binary does not know, a point that it does not know, a phase that panics: each parks its operation and hurts nobody else.
func TestWhatCannotBeDrivenIsParked(t *testing.T) {
	t.Parallel()
	for name, sql := range map[string]string{
		"kind": `UPDATE idempotency_keys SET kind = 'charge.cancel'`, "point": `UPDATE idempotency_keys SET recovery_point = 'elsewhere'`,
		"parameters": `UPDATE idempotency_keys SET params = '{'`, "often and long": `UPDATE idempotency_keys SET attempts = 100000, created_at = created_at - interval '7 hours'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			i := w.start(nil, nil)
			w.fault(1, stripesim.Fault{Type: stripesim.DropAfter})
			_, err := i.charge(w, "k")
			wantUnknown(t, err)
			w.exec(sql)
			if c := w.pass(i); c.Parked != 1 {
				t.Errorf("%+v", c)
			}
			var parked *idemkeys.Parked
			if _, err := i.charge(w, "k"); !errors.As(err, &parked) {
				t.Errorf("%v", err)
			}
			if res, err := i.charge(w, "other"); err != nil || res.Answer.Code != http.StatusCreated {
				t.Errorf("another key: %d, %v", res.Answer.Code, err)
			}
		})
	}
	t.Run("often, but not long", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		i := w.start(nil, nil)
		w.fault(1, stripesim.Fault{Type: stripesim.DropAfter})
		_, err := i.charge(w, "k")
		wantUnknown(t, err)
		w.exec(`UPDATE idempotency_keys SET attempts = 100000`)
		if c := w.pass(i); c.Finished != 1 {
			t.Errorf("an impatient client parked its operation: %+v", c)
		}
	})
	t.Run("panic", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		i := w.start(nil, panickingProvider{w.psp})
		var parked *idemkeys.Parked
		if _, err := i.charge(w, "k"); !errors.As(err, &parked) {
			t.Errorf("%v", err)
		}
	})
}

type panickingProvider struct{ provider.Provider }

func (panickingProvider) Charge(context.Context, provider.ChargeRequest) (provider.ChargeOutcome, error) {
	panic("for the test")
}
