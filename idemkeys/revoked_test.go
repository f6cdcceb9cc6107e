package idemkeys_test

import (
	"errors"
	"testing"

	"paidonce/db"
	"paidonce/idemkeys"
	"paidonce/internal/world"
	"paidonce/provider/stripesim"
)

// A revoked API key begins nothing and learns nothing, whatever its key stands for: the statements
// that answer check it themselves, however long the edge has remembered it.
func TestARevokedAPIKeyLearnsNothing(t *testing.T) {
	t.Parallel()
	learnsNothing(t, `revoked_at = clock_timestamp()`, "AND a.revoked_at IS NULL")
}

// Nor does an API key that may only read, although the edge has let it through.
func TestAReadOnlyAPIKeyLearnsNothing(t *testing.T) {
	t.Parallel()
	learnsNothing(t, `read_only = true`, "AND NOT a.read_only")
}

// learnsNothing checks that an API key that was changed like this can have nothing done. Each guard
// against it is taken out once, to see that this check notices.
func learnsNothing(t *testing.T, change, guard string) {
	t.Helper()
	w := world.New(t)
	i := w.Start()
	charge := i.MustCharge("finished", world.Twenty)
	w.ChargeFault(1, stripesim.Fault{Type: stripesim.DropAfter})
	_, err := i.Charge("free")
	world.WantUnknown(t, err)
	w.ChargeFault(1, stripesim.Fault{Type: stripesim.DropAfter})
	_, err = i.Charge("parked")
	world.WantUnknown(t, err)
	w.Exec(
		`UPDATE idempotency_keys SET parked_at = clock_timestamp(), next_run_at = NULL WHERE key = 'parked'`,
	)
	w.Exec(`UPDATE api_keys SET ` + change)

	asks := map[string]func(world.Instance) error{
		"new":      func(i world.Instance) error { _, err := i.Charge("new"); return err },
		"finished": func(i world.Instance) error { _, err := i.Charge("finished"); return err },
		"free":     func(i world.Instance) error { _, err := i.Charge("free"); return err },
		"parked":   func(i world.Instance) error { _, err := i.Charge("parked"); return err },
		"other request": func(i world.Instance) error {
			r := w.Request("finished")
			r.Fingerprint = idemkeys.NewFingerprint("POST", "/other", "", nil)
			_, err := i.Charges.Create(t.Context(), r, world.Twenty)
			return err
		},
		"refund": func(i world.Instance) error { _, err := i.Refund("refund", charge, 100); return err },
		"refused refund": func(i world.Instance) error {
			_, err := i.Refund(
				"too much", charge, 3000,
			)
			return err
		},
		"no such charge": func(i world.Instance) error { _, err := i.Refund("none", "ch_none", 0); return err },
	}
	for name, ask := range asks {
		if err := ask(i); !errors.Is(err, idemkeys.ErrForbidden) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := w.Count(`SELECT count(*) FROM idempotency_keys`); n != 3 {
		t.Errorf("%d keys: something was begun", n)
	}
	for _, c := range []struct{ statement, ask string }{
		{"KeyClaimable", "new"}, {"ChargeClaim", "new"},
		{"KeyRead", "finished"}, {"KeyRead", "parked"},
	} {
		pool := world.Without(t, w.Pool, c.statement, guard)
		if err := asks[c.ask](w.StartWith(pool, nil)); errors.Is(err, idemkeys.ErrForbidden) {
			t.Errorf(
				"without the check in %s, %s is refused all the same: this test cannot fail",
				c.statement, c.ask,
			)
		}
	}
	for _, c := range []struct {
		pool db.Pool
		want idemkeys.Claimed
	}{
		{w.Pool, idemkeys.Forbidden}, {world.Without(t, w.Pool, "KeyClaim", guard), idemkeys.Won},
	} {
		op := &idemkeys.Operation{
			ID: "op_1", Kind: "refund.create", Params: []byte("{}"), ResourceID: "re_1",
			Point: "started", LeaseToken: "lease",
		}
		if _, got, err := idemkeys.ClaimIn(
			t.Context(), c.pool, w.Request("claimed"), op,
		); err != nil || got != c.want {
			t.Errorf("ClaimIn returns %v %v, want %v", got, err, c.want)
		}
	}
}
