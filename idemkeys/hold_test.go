package idemkeys_test

import (
	"errors"
	"testing"
	"time"

	"paidonce/idemkeys"
	"paidonce/internal/world"
	"paidonce/provider/stripesim"
)

// While work is held nothing begins and nothing is resumed; what is stored is answered.
func TestHold(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	i := w.Start()
	if _, err := i.Charge("done"); err != nil {
		t.Fatal(err)
	}
	w.ChargeFault(1, stripesim.Fault{Type: stripesim.DropAfter})
	_, err := i.Charge("open")
	world.WantUnknown(t, err)
	w.Age(time.Hour)
	sent := w.Sim.Stats().ChargeRequests

	why := errors.New("held for a test")
	held := why
	i.Engine.Hold(func() error { return held })
	for _, key := range []string{"new", "open"} {
		if _, err := i.Charge(key); !errors.Is(err, idemkeys.ErrUnavailable) ||
			!errors.Is(err, why) {
			t.Errorf("%s: %v", key, err)
		}
	}
	if res, err := i.Charge("done"); err != nil || !res.Replayed {
		t.Errorf("a replay: %v, %v", res.Replayed, err)
	}
	if counts, err := i.Reconciler().Pass(t.Context(), 100); !errors.Is(err, why) ||
		counts.Driven != 0 {
		t.Errorf("a pass: %+v, %v", counts, err)
	}
	if n := w.Count(`SELECT sum(attempts) FROM idempotency_keys`); n != 2 {
		t.Errorf("%d attempts at two operations", n)
	}
	if n := w.Sim.Stats().ChargeRequests; n != sent {
		t.Errorf("%d charges were sent while held", n-sent)
	}
	held = nil
	for _, key := range []string{"new", "open"} {
		if _, err := i.Charge(key); err != nil {
			t.Errorf("%s, let go: %v", key, err)
		}
	}
	w.CheckRecords(3)
}
