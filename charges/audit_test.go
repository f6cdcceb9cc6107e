package charges_test

import (
	"fmt"
	"testing"
	"time"

	"paidonce/charges"
	"paidonce/idemkeys"
	"paidonce/internal/world"
	"paidonce/provider"
	"paidonce/provider/stripesim"
)

// audit runs an audit of the last two days and returns the kinds of difference, by operation's
// charge or provider id.
func audit(w *world.World, t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	_, err := charges.Audit(t.Context(), charges.NewStore(
		charges.StoreConfig{Pool: w.Pool, KeyTTL: time.Hour},
	), w.Provider, charges.AuditConfig{
		Installation: "test", StaleAfter: w.Keys.StaleAfter, Since: time.Now().Add(-48 * time.Hour),
		Until:    time.Now().Add(5 * time.Minute),
		Report:   func(d charges.Difference) error { found[d.ProviderID] = d.Kind; return nil },
		Progress: func(time.Time, charges.AuditCounts) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestAuditFindsEveryKindOfDifference(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	i := w.Start()
	ids := make([]string, 8)
	for n := range ids {
		if _, err := i.Charge(fmt.Sprint(n)); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := w.Pool.Query(
		t.Context(), `SELECT provider_id FROM charges ORDER BY created_at, id`,
	)
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; rows.Next(); n++ {
		if err := rows.Scan(&ids[n]); err != nil {
			t.Fatal(err)
		}
	}
	if got := audit(w, t); len(got) != 0 {
		t.Fatalf("books that agree: %v", got)
	}
	// A stranger's charge on the same provider account is not our own; our own of another
	// installation neither.
	for n, tags := range []provider.Tags{{Operation: "op_x", Installation: "elsewhere"}} {
		if _, err := w.Provider.Charge(
			t.Context(),
			&provider.ChargeRequest{
				IdempotencyKey: fmt.Sprint("s", n), Tags: tags, Amount: 500, Currency: "usd",
				Source: "tok_visa", Capture: true,
			},
		); err != nil {
			t.Fatal(err)
		}
	}
	// a restore lost it
	w.Exec(`DELETE FROM charges WHERE provider_id = $1`, ids[0])
	// other amount
	w.Exec(
		`UPDATE charges SET amount = 2001, amount_captured = 2000 WHERE provider_id = $1`, ids[1],
	)
	// other status
	w.Exec(
		`UPDATE charges SET status = 'failed', amount_captured = 0, captured = false WHERE provider_id = $1`,
		ids[2],
	)
	// theirs is another than ours says
	w.Exec(`UPDATE charges SET provider_id = 'ch_gone' WHERE provider_id = $1`, ids[3])
	w.ChargeFault(1, stripesim.Fault{Type: stripesim.DropAfter})
	_, err = i.Charge("lost")
	world.WantUnknown(t, err)
	found := audit(w, t)
	want := map[string]string{
		ids[0]: charges.UnknownHere, ids[1]: charges.OtherAmount, ids[2]: charges.OtherStatus,
		ids[3]: charges.MadeTwice, "ch_gone": charges.MissingThere,
	}
	for id, kind := range want {
		if found[id] != kind {
			t.Errorf("%s: %q, want %q", id, found[id], kind)
		}
	}
	unsettled := ""
	for id, kind := range found {
		if kind == charges.UnsettledHere {
			unsettled = id
		}
	}
	if unsettled == "" || len(found) != len(want)+1 {
		t.Fatalf("%v", found)
	}
	// Adopting goes through the fenced path: the client's key then replays.
	var op string
	if err := w.Pool.QueryRow(
		t.Context(), `SELECT operation_id FROM idempotency_keys WHERE key = 'lost'`,
	).Scan(&op); err != nil {
		t.Fatal(err)
	}
	if _, err := i.Engine.Adopt(
		t.Context(), op,
		idemkeys.Resolution{Succeeded: true, ProviderID: unsettled, Reason: "audit", By: "me"},
	); err != nil {
		t.Fatal(err)
	}
	if res, err := i.Charge("lost"); err != nil || !res.Replayed {
		t.Errorf("replayed %v, %v", res.Replayed, err)
	}
	if n := w.Count(`SELECT count(*) FROM operation_log WHERE event = 'adopted'`); n != 1 {
		t.Errorf("%d adoptions in the log", n)
	}
}

// An operation that somebody works on at this moment is no difference.
func TestAuditLeavesRunningOperationsAlone(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	slow := w.Paused()
	done := make(chan error, 1)
	go func() { _, err := w.StartWith(nil, slow).Charge("k"); done <- err }()
	<-slow.Answered
	if got := audit(w, t); len(got) != 0 {
		t.Errorf("%v", got)
	}
	close(slow.Resume)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
