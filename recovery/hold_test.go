package recovery_test

import (
	"errors"
	"io"
	"log/slog"
	"testing"
	"time"

	"paidonce/idemkeys"
	"paidonce/provider/stripesim"
	"paidonce/recovery"
)

// While work is held nothing begins and nothing is resumed; what is stored is answered.
func TestHold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	i := w.start(nil, nil)
	if _, err := i.charge(w, "done"); err != nil {
		t.Fatal(err)
	}
	w.fault(1, stripesim.Fault{Type: stripesim.DropAfter})
	_, err := i.charge(w, "open")
	wantUnknown(t, err)
	w.age(time.Hour)
	sent := w.sim.Stats().ChargeRequests

	why := errors.New("held for a test")
	held := why
	i.engine.Hold(func() error { return held })
	for _, key := range []string{"new", "open"} {
		if _, err := i.charge(w, key); !errors.Is(err, idemkeys.ErrUnavailable) || !errors.Is(err, why) {
			t.Errorf("%s: %v", key, err)
		}
	}
	if res, err := i.charge(w, "done"); err != nil || !res.Replayed {
		t.Errorf("a replay: %v, %v", res.Replayed, err)
	}
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	if counts, err := recovery.Pass(t.Context(), i.engine, 100, quiet); !errors.Is(err, why) || counts.Driven != 0 {
		t.Errorf("a pass: %+v, %v", counts, err)
	}
	if n := w.count(`SELECT sum(attempts) FROM idempotency_keys`); n != 2 {
		t.Errorf("%d attempts at two operations", n)
	}
	if n := w.sim.Stats().ChargeRequests; n != sent {
		t.Errorf("%d charges were sent while held", n-sent)
	}
	held = nil
	for _, key := range []string{"new", "open"} {
		if _, err := i.charge(w, key); err != nil {
			t.Errorf("%s, let go: %v", key, err)
		}
	}
	w.books(3)
}
