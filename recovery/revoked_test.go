package recovery_test

import (
	"errors"
	"testing"

	"paidonce/idemkeys"
	"paidonce/provider/stripesim"
)

// A revoked API key begins nothing and learns nothing, whatever its key stands for: the statements that answer check it themselves, however long the
// edge has remembered it. Each check is taken out once, to see that this test notices.
func TestARevokedAPIKeyLearnsNothing(t *testing.T) {
	t.Parallel()
	const (
		inClaim = "AND a.revoked_at IS NULL"
		inRead  = "AND a.revoked_at IS NULL"
	)
	w := newWorld(t)
	i := w.start(nil, nil)
	charge := i.made(w, "finished", twenty)
	w.fault(1, stripesim.Fault{Type: stripesim.DropAfter})
	_, err := i.charge(w, "free")
	wantUnknown(t, err)
	w.fault(1, stripesim.Fault{Type: stripesim.DropAfter})
	_, err = i.charge(w, "parked")
	wantUnknown(t, err)
	w.exec(`UPDATE idempotency_keys SET parked_at = clock_timestamp(), next_run_at = NULL WHERE key = 'parked'`)
	w.exec(`UPDATE api_keys SET revoked_at = clock_timestamp()`)

	asks := map[string]func(instance) error{
		"new":      func(i instance) error { _, err := i.charge(w, "new"); return err },
		"finished": func(i instance) error { _, err := i.charge(w, "finished"); return err },
		"free":     func(i instance) error { _, err := i.charge(w, "free"); return err },
		"parked":   func(i instance) error { _, err := i.charge(w, "parked"); return err },
		"other request": func(i instance) error {
			r := w.request("finished")
			r.Fingerprint = idemkeys.NewFingerprint("POST", "/other", "", nil)
			_, err := i.create.Create(t.Context(), r, twenty)
			return err
		},
		"refund":         func(i instance) error { _, err := i.refund(w, "refund", charge, 100); return err },
		"refused refund": func(i instance) error { _, err := i.refund(w, "too much", charge, 3000); return err },
		"no such charge": func(i instance) error { _, err := i.refund(w, "none", "ch_none", 0); return err },
	}
	for name, ask := range asks {
		if err := ask(i); !errors.Is(err, idemkeys.ErrNotClaimable) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := w.count(`SELECT count(*) FROM idempotency_keys`); n != 3 {
		t.Errorf("%d keys: something was begun", n)
	}
	for _, c := range []struct{ statement, guard, ask string }{
		{"ChargeClaim", inClaim, "new"}, {"KeyRead", inRead, "finished"}, {"KeyRead", inRead, "parked"},
	} {
		pool := without(t, w.pool, c.statement, c.guard)
		if err := asks[c.ask](w.start(pool, nil)); errors.Is(err, idemkeys.ErrNotClaimable) {
			t.Errorf("without the check in %s, %s is refused all the same: this test cannot fail", c.statement, c.ask)
		}
	}
}
