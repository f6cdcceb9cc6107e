package idemkeys_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"paidonce/idemkeys"
	"paidonce/internal/world"
	"paidonce/provider"
	"paidonce/provider/stripesim"
)

// parkedCharge makes a charge whose answer was lost and which is then parked, and returns its
// operation and the provider's id.
func parkedCharge(
	t *testing.T, w *world.World, i world.Instance, fault string,
) (operation, providerID string) {
	t.Helper()
	w.ChargeFault(1, stripesim.Fault{Type: fault})
	_, err := i.Charge("k")
	world.WantUnknown(t, err)
	w.Exec(
		`UPDATE idempotency_keys SET parked_at = clock_timestamp(), next_run_at = NULL, last_error = 'for the test'`,
	)
	if err := w.Pool.QueryRow(
		t.Context(), `SELECT operation_id FROM idempotency_keys`,
	).Scan(&operation); err != nil {
		t.Fatal(err)
	}
	if fault == stripesim.DropAfter {
		got, err := w.Provider.FindCharge(t.Context(), w.LookUp())
		if err != nil || len(got) != 1 {
			t.Fatalf("%d charges, %v", len(got), err)
		}
		providerID = got[0].ID
	}
	return operation, providerID
}

// An operator's word that it succeeded is taken when the provider agrees, and only then.
func TestResolveSucceededIsChecked(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	i := w.Start()
	op, id := parkedCharge(t, w, i, stripesim.DropAfter)
	other, err := w.Provider.Charge(t.Context(), &provider.ChargeRequest{
		IdempotencyKey: "other", Tags: provider.Tags{Operation: "op_other", Installation: "test"},
		Amount: 2000, Currency: "usd", Source: "tok_visa", Capture: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, wrong := range map[string]string{
		"none": "", "unknown": "ch_nothing", "of another operation": other.Charge.ID,
	} {
		if _, err := i.Engine.Resolve(
			t.Context(), op,
			idemkeys.Resolution{Succeeded: true, ProviderID: wrong, Reason: "r", By: "me"},
		); err == nil {
			t.Errorf("%s: taken", name)
		}
		if h, _ := i.Engine.Show(t.Context(), op); h.State != idemkeys.StateParked {
			t.Fatalf("%s: %s after a word that was not taken", name, h.State)
		}
	}
	answer, err := i.Engine.Resolve(
		t.Context(), op,
		idemkeys.Resolution{
			Succeeded: true, ProviderID: id, Reason: "seen in the dashboard", By: "me",
		},
	)
	if err != nil || answer.Code != http.StatusCreated {
		t.Fatalf("got %d, %v, want 201", answer.Code, err)
	}
	res, err := i.Charge("k")
	if err != nil || !res.Replayed {
		t.Fatalf("replayed %v, %v", res.Replayed, err)
	}
	if err := world.Same(res.Answer, answer); err != nil {
		t.Error(err)
	}
	h, err := i.Engine.Show(t.Context(), op)
	last := h.Log[len(h.Log)-1]
	if err != nil || last.Event != "resolved" || last.Actor != "operator me" ||
		last.Detail != "seen in the dashboard" || last.Reference != id {
		t.Errorf("%+v, %v", last, err)
	}
	if _, err := i.Engine.Resolve(
		t.Context(), op, idemkeys.Resolution{Reason: "again", By: "me"},
	); !errors.Is(err, idemkeys.ErrFinished) {
		t.Errorf("resolved twice: %v", err)
	}
	if n := w.Count(`SELECT count(*) FROM outbox`); n != 1 {
		t.Errorf("%d events", n)
	}
}

// An operator's word that nothing moved is refused while the provider has the charge, or cannot
// say.
func TestResolveFailedIsChecked(t *testing.T) {
	t.Parallel()
	failed := idemkeys.Resolution{Reason: "nothing moved", By: "me"}
	t.Run("it was made", func(t *testing.T) {
		t.Parallel()
		w := world.New(t)
		i := w.Start()
		op, id := parkedCharge(t, w, i, stripesim.DropAfter)
		if _, err := i.Engine.Resolve(t.Context(), op, failed); err == nil ||
			!strings.Contains(err.Error(), id) {
			t.Errorf("%v", err)
		}
	})
	t.Run("nobody knows", func(t *testing.T) {
		t.Parallel()
		w := world.New(t)
		i := w.Start()
		op, _ := parkedCharge(t, w, i, stripesim.DropBefore)
		w.LookUpFault(1, stripesim.Fault{Type: stripesim.StatusBefore, Status: 500})
		if _, err := i.Engine.Resolve(t.Context(), op, failed); err == nil {
			t.Error("taken although the provider could not be asked")
		}
	})
	t.Run("it was not made", func(t *testing.T) {
		t.Parallel()
		w := world.New(t)
		i := w.Start()
		op, _ := parkedCharge(t, w, i, stripesim.DropBefore)
		if _, err := i.Engine.Resolve(t.Context(), op, failed); err != nil {
			t.Fatal(err)
		}
		res, err := i.Charge("k") // and the key runs anew
		if err != nil || res.Answer.Code != http.StatusCreated || res.OperationID == op {
			t.Fatalf("got %d, %v, want 201", res.Answer.Code, err)
		}
		w.CheckRecords(1)
	})
}

// Retry gives a parked operation back, and nothing else.
func TestRetryUnparks(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	i := w.Start()
	op, _ := parkedCharge(t, w, i, stripesim.DropAfter)
	if err := i.Engine.Retry(t.Context(), op, "me", "again"); err != nil {
		t.Fatal(err)
	}
	if err := i.Engine.Retry(
		t.Context(), op, "me", "again",
	); !errors.Is(err, idemkeys.ErrNotParked) {
		t.Errorf("got %v, want idemkeys.ErrNotParked", err)
	}
	if err := i.Engine.Retry(
		t.Context(), "op_none", "me", "again",
	); !errors.Is(err, idemkeys.ErrNoOperation) {
		t.Errorf("got %v, want idemkeys.ErrNoOperation", err)
	}
	if c := w.Pass(i); c.Finished != 1 {
		t.Errorf("got %+v, want 1 finished", c)
	}
	w.CheckRecords(1)
}

// A kind that this binary does not know, a point that it does not know, a phase that panics: each
// parks its operation and hurts nobody else.
func TestWhatCannotBeDrivenIsParked(t *testing.T) {
	t.Parallel()
	for name, sql := range map[string]string{
		"kind":           `UPDATE idempotency_keys SET kind = 'charge.cancel'`,
		"point":          `UPDATE idempotency_keys SET recovery_point = 'elsewhere'`,
		"parameters":     `UPDATE idempotency_keys SET params = '{'`,
		"often and long": `UPDATE idempotency_keys SET attempts = 100000, created_at = created_at - interval '7 hours'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := world.New(t)
			i := w.Start()
			w.ChargeFault(1, stripesim.Fault{Type: stripesim.DropAfter})
			_, err := i.Charge("k")
			world.WantUnknown(t, err)
			w.Exec(sql)
			if c := w.Pass(i); c.Parked != 1 {
				t.Errorf("got %+v, want 1 parked", c)
			}
			var parked *idemkeys.Parked
			if _, err := i.Charge("k"); !errors.As(err, &parked) {
				t.Errorf("%v", err)
			}
			if res, err := i.Charge("other"); err != nil || res.Answer.Code != http.StatusCreated {
				t.Errorf("another key: %d, %v", res.Answer.Code, err)
			}
		})
	}
	t.Run("often, but not long", func(t *testing.T) {
		t.Parallel()
		w := world.New(t)
		i := w.Start()
		w.ChargeFault(1, stripesim.Fault{Type: stripesim.DropAfter})
		_, err := i.Charge("k")
		world.WantUnknown(t, err)
		w.Exec(`UPDATE idempotency_keys SET attempts = 100000`)
		if c := w.Pass(i); c.Finished != 1 {
			t.Errorf("an impatient client parked its operation: %+v", c)
		}
	})
	t.Run("panic", func(t *testing.T) {
		t.Parallel()
		w := world.New(t)
		i := w.StartWith(nil, panickingProvider{w.Provider})
		var parked *idemkeys.Parked
		if _, err := i.Charge("k"); !errors.As(err, &parked) {
			t.Errorf("%v", err)
		}
	})
}

type panickingProvider struct{ provider.Provider }

func (panickingProvider) Charge(
	context.Context, *provider.ChargeRequest,
) (provider.ChargeOutcome, error) {
	panic("for the test")
}
