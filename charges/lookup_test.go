package charges_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"paidonce/idemkeys"
	"paidonce/internal/world"
	"paidonce/provider"
	"paidonce/provider/stripesim"
)

// Past the window the derived key is never sent again, and a charge that exists is found.
func TestPastTheWindowAChargeIsFoundNotSent(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	i := w.Start()
	w.ChargeFault(1, stripesim.Fault{Type: stripesim.DropAfter})
	_, err := i.Charge("k")
	world.WantUnknown(t, err)
	w.Age(25 * time.Hour)
	w.Sim.SetClock(0)
	if err := w.Sim.ForgetKeys(""); err != nil {
		t.Fatal(err)
	}
	if c := w.Pass(i); c.Finished != 1 {
		t.Fatalf("got %+v, want 1 finished", c)
	}
	res, err := i.Charge("k")
	if err != nil || res.Answer.Code != http.StatusCreated {
		t.Fatalf("got %d, %v, want 201", res.Answer.Code, err)
	}
	w.CheckRecords(1)
	if n := w.Sim.Stats().ChargeRequests; n != 1 {
		t.Errorf("%d requests for the charge", n)
	}
}

// Past the window nothing is sent; misses over the span, and only those, prove absence; then the
// same key makes one charge, anew.
func TestAbsenceIsProvenByMissesOverASpan(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	i := w.Start()
	w.ChargeFault(1, stripesim.Fault{Type: stripesim.DropBefore})
	_, err := i.Charge("k")
	world.WantUnknown(t, err)
	w.Age(25 * time.Hour)
	for miss := range 5 { // more misses than needed, in less time than needed: nothing is concluded
		if c := w.Pass(i); c.Waiting != 1 {
			t.Fatalf("miss %d: %+v", miss, c)
		}
	}
	w.Exec(`UPDATE idempotency_keys SET first_miss_at = first_miss_at - interval '3 minutes'`)
	// An erring look-up proves nothing, whatever the time.
	w.LookUpFault(1, stripesim.Fault{Type: stripesim.StatusBefore, Status: 500})
	if c := w.Pass(i); c.Waiting != 1 {
		t.Fatalf("a look-up that failed concluded something: %+v", c)
	}
	if c := w.Pass(i); c.Finished != 1 {
		t.Fatalf("got %+v, want 1 finished", c)
	}
	if n := w.Count(
		`SELECT count(*) FROM charges WHERE status = 'failed' AND failure_code = 'charge_never_made'`,
	); n != 1 {
		t.Errorf("%d charges say why", n)
	}
	if n := w.Sim.Stats().ChargeRequests; n != 1 {
		t.Errorf("%d requests for the charge: something was sent past the window", n)
	}
	res, err := i.Charge("k")
	if err != nil || res.Replayed || res.Answer.Code != http.StatusCreated {
		t.Fatalf("replayed %v, %d, %v", res.Replayed, res.Answer.Code, err)
	}
	w.CheckRecords(1)
	// the dropped one may not have been seen
	if keys := w.Sim.Stats().DistinctKeys; keys != 1 && keys != 2 {
		t.Errorf("%d derived keys", keys)
	}
}

// Few misses prove nothing, however long ago the first was.
func TestOneMissAfterALongTimeProvesNothing(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	i := w.Start()
	w.ChargeFault(1, stripesim.Fault{Type: stripesim.DropBefore})
	_, err := i.Charge("k")
	world.WantUnknown(t, err)
	w.Age(25 * time.Hour)
	if c := w.Pass(i); c.Waiting != 1 {
		t.Fatalf("got %+v, want 1 waiting", c)
	}
	w.Exec(`UPDATE idempotency_keys SET first_miss_at = first_miss_at - interval '10 days'`)
	if c := w.Pass(i); c.Waiting != 1 {
		t.Errorf("two misses were enough: %+v", c)
	}
	if c := w.Pass(i); c.Finished != 1 {
		t.Errorf("three misses were not: %+v", c)
	}
}

// A stored 500 is settled by a look-up, with no second charge; one without effect ends as never
// made.
func TestStoredServerErrors(t *testing.T) {
	t.Parallel()
	t.Run("with effect", func(t *testing.T) {
		t.Parallel()
		w := world.New(t)
		i := w.Start()
		w.ChargeFault(1, stripesim.Fault{Type: stripesim.StatusAfter, Status: 500})
		_, err := i.Charge("k")
		world.WantUnknown(t, err)
		if res, err := i.Charge("k"); err != nil || res.Answer.Code != http.StatusCreated {
			t.Fatalf("got %d, %v, want 201", res.Answer.Code, err)
		}
		w.CheckRecords(1)
	})
	t.Run("without effect", func(t *testing.T) {
		t.Parallel()
		w := world.New(t)
		i := w.Start()
		w.ChargeFault(1, stripesim.Fault{Type: stripesim.StatusBefore, Status: 500, Store: true})
		for range 2 {
			_, err := i.Charge("k")
			world.WantUnknown(t, err)
		}
		sent := w.Sim.Stats().ChargeRequests
		for range 3 {
			w.Pass(i)
		}
		if now := w.Sim.Stats().ChargeRequests; now != sent {
			t.Errorf("a key that answers 500 for ever was sent %d times more", now-sent)
		}
		w.Exec(`UPDATE idempotency_keys SET first_miss_at = first_miss_at - interval '3 minutes'`)
		if c := w.Pass(i); c.Finished != 1 {
			t.Fatalf("got %+v, want 1 finished", c)
		}
		if res, err := i.Charge("k"); err != nil || res.Answer.Code != http.StatusCreated {
			t.Fatalf("got %d, %v, want 201", res.Answer.Code, err)
		}
		w.CheckRecords(1)
	})
}

// No look-up that failed leads to a second send, within the window either.
func TestInconclusiveLookUpsSendNothing(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]stripesim.Fault{
		"500": {Type: stripesim.StatusBefore, Status: 500},
		"429": {Type: stripesim.StatusBefore, Status: 429}, "cut": {Type: stripesim.Truncate},
		"garbage": {Type: stripesim.Garbage},
		"empty page that has more": {
			Type: stripesim.Garbage,
			Body: `{"object":"list","data":[],"has_more":true,"url":"/v1/charges"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := world.New(t)
			i := w.Start()
			w.ChargeFault(1, stripesim.Fault{Type: stripesim.DropAfter})
			_, err := i.Charge("k")
			world.WantUnknown(t, err)
			if err := w.Sim.ForgetKeys(""); err != nil { // a second send would be a second charge
				t.Fatal(err)
			}
			w.LookUpFault(0, f)
			for range 3 {
				_, err := i.Charge("k")
				world.WantUnknown(t, err)
			}
			w.Sim.ClearFaults()
			if res, err := i.Charge("k"); err != nil || res.Answer.Code != http.StatusCreated {
				t.Fatalf("got %d, %v, want 201", res.Answer.Code, err)
			}
			w.CheckRecords(1)
		})
	}
}

// A provider without a list (404, 405, 501) keeps the key's promise by itself within the window,
// and only there.
func TestAProviderWithoutAList(t *testing.T) {
	t.Parallel()
	for _, status := range []int{404, 405, 501} {
		w := world.New(t)
		i := w.Start()
		w.ChargeFault(1, stripesim.Fault{Type: stripesim.DropAfter})
		w.LookUpFault(0, stripesim.Fault{Type: stripesim.StatusBefore, Status: status})
		_, err := i.Charge("k")
		world.WantUnknown(t, err)
		if res, err := i.Charge("k"); err != nil || res.Answer.Code != http.StatusCreated {
			t.Fatalf("%d: got %d, %v, want 201", status, res.Answer.Code, err)
		}
		w.CheckRecords(1)
		w.ChargeFault(1, stripesim.Fault{Type: stripesim.DropAfter})
		_, err = i.Charge("late")
		world.WantUnknown(t, err)
		w.Age(25 * time.Hour)
		sent := w.Sim.Stats().ChargeRequests
		for range 3 { // nothing can tell any more what became of it
			_, err = i.Charge("late")
			var parked *idemkeys.Parked
			if !errors.As(err, &parked) ||
				!strings.Contains(w.LastError("late"), "cannot be asked") {
				t.Fatalf("%d: %v, %s; want it parked", status, err, w.LastError("late"))
			}
		}
		if now := w.Sim.Stats().ChargeRequests; now != sent {
			t.Errorf("%d: sent %d times past the window", status, now-sent)
		}
	}
}

// A refusal before anything was executed leaves nothing to look for: the next attempt simply sends.
func TestNotExecutedStartsNoWindow(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	i := w.Start()
	w.ChargeFault(1, stripesim.Fault{Type: stripesim.StatusBefore, Status: 429})
	_, err := i.Charge("k")
	var u *idemkeys.Unknown
	if !errors.As(err, &u) || !u.NotExecuted {
		t.Fatalf("%v", err)
	}
	if n := w.Count(
		`SELECT count(*) FROM idempotency_keys WHERE first_attempt_at IS NULL`,
	); n != 1 {
		t.Error("the window runs although nothing was executed")
	}
	// a look-up would fail
	w.LookUpFault(0, stripesim.Fault{Type: stripesim.StatusBefore, Status: 500})
	if res, err := i.Charge("k"); err != nil || res.Answer.Code != http.StatusCreated {
		t.Fatalf("got %d, %v, want 201", res.Answer.Code, err)
	}
	w.CheckRecords(1)
}

// Several hits, or a hit of another amount, park the operation.
func TestDoubtfulHitsArePark(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]string{
		"amount": `amount`, "two": ``,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := world.New(t)
			i := w.Start()
			w.ChargeFault(1, stripesim.Fault{Type: stripesim.DropAfter})
			_, err := i.Charge("k")
			world.WantUnknown(t, err)
			if change == "amount" {
				w.Exec(
					`UPDATE idempotency_keys SET params = convert_to(replace(convert_from(params, 'UTF8'), '"amount":2000', '"amount":2001'), 'UTF8')`,
				)
			} else {
				// The same operation charged twice, as when somebody resent it by hand under
				// another key.
				if err := w.Sim.ForgetKeys(""); err != nil {
					t.Fatal(err)
				}
				resend(w, t)
			}
			_, err = i.Charge("k")
			var parked *idemkeys.Parked
			if !errors.As(err, &parked) {
				t.Fatalf("%v, want parked", err)
			}
			if c := w.Pass(i); c.Driven != 0 || c.ParkedAll != 1 {
				t.Errorf("a pass drove a parked operation: %+v", c)
			}
			h, err := i.Engine.Show(t.Context(), parked.OperationID)
			if err != nil || h.State != idemkeys.StateParked || len(h.Log) < 3 ||
				!strings.Contains(h.LastError, "provider") {
				t.Errorf("%+v, %v", h, err)
			}
		})
	}
}

// resend sends the frozen parameters of the only operation once more, past all of our rules.
func resend(w *world.World, t *testing.T) {
	t.Helper()
	var frozen []byte
	if err := w.Pool.QueryRow(
		t.Context(), `SELECT params FROM idempotency_keys`,
	).Scan(&frozen); err != nil {
		t.Fatal(err)
	}
	var r provider.ChargeRequest
	if err := json.Unmarshal(frozen, &r); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Provider.Charge(t.Context(), &r); err != nil {
		t.Fatal(err)
	}
}
