package recovery_test

import (
	"fmt"
	"testing"
	"time"

	"paidonce/charges"
	"paidonce/idemkeys"
	"paidonce/provider"
	"paidonce/provider/stripesim"
)

// audit runs an audit of the last two days and returns the kinds of difference, by operation's charge or provider id.
func (w *world) audit(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	_, err := charges.Audit(t.Context(), charges.NewStore(w.pool, time.Hour), w.psp, charges.AuditConfig{Installation: "test", StaleAfter: w.cfg.StaleAfter},
		time.Now().Add(-48*time.Hour), time.Now().Add(5*time.Minute),
		func(d charges.Difference) error { found[d.ProviderID] = d.Kind; return nil }, func(time.Time, charges.AuditCounts) {})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestAuditFindsEveryKindOfDifference(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	i := w.start(nil, nil)
	ids := make([]string, 8)
	for n := range ids {
		if _, err := i.charge(w, fmt.Sprint(n)); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := w.pool.Query(t.Context(), `SELECT provider_id FROM charges ORDER BY created_at, id`)
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; rows.Next(); n++ {
		if err := rows.Scan(&ids[n]); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.audit(t); len(got) != 0 {
		t.Fatalf("books that agree: %v", got)
	}
	// A stranger's charge on the same provider account is none of ours; ours of another installation neither.
	for n, tags := range []provider.Tags{{Operation: "op_x", Installation: "elsewhere"}} {
		if _, err := w.psp.Charge(t.Context(), provider.ChargeRequest{IdempotencyKey: fmt.Sprint("s", n), Tags: tags, Amount: 500, Currency: "usd", Source: "tok_visa", Capture: true}); err != nil {
			t.Fatal(err)
		}
	}
	w.exec(`DELETE FROM charges WHERE provider_id = $1`, ids[0])                                                         // a restore lost it
	w.exec(`UPDATE charges SET amount = 2001, amount_captured = 2000 WHERE provider_id = $1`, ids[1])                    // other amount
	w.exec(`UPDATE charges SET status = 'failed', amount_captured = 0, captured = false WHERE provider_id = $1`, ids[2]) // other status
	w.exec(`UPDATE charges SET provider_id = 'ch_gone' WHERE provider_id = $1`, ids[3])                                  // theirs is another than ours says
	w.fault(1, stripesim.Fault{Type: stripesim.DropAfter})
	_, err = i.charge(w, "lost")
	wantUnknown(t, err)
	found := w.audit(t)
	want := map[string]string{
		ids[0]: charges.UnknownHere, ids[1]: charges.OtherAmount, ids[2]: charges.OtherStatus, ids[3]: charges.MadeTwice, "ch_gone": charges.MissingThere,
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
	if err := w.pool.QueryRow(t.Context(), `SELECT operation_id FROM idempotency_keys WHERE key = 'lost'`).Scan(&op); err != nil {
		t.Fatal(err)
	}
	if _, err := i.engine.Resolve(t.Context(), op, idemkeys.Resolution{Succeeded: true, ProviderID: unsettled, Reason: "audit", By: "me", Adopt: true}); err != nil {
		t.Fatal(err)
	}
	if res, err := i.charge(w, "lost"); err != nil || !res.Replayed {
		t.Errorf("replayed %v, %v", res.Replayed, err)
	}
	if n := w.count(`SELECT count(*) FROM operation_log WHERE event = 'adopted'`); n != 1 {
		t.Errorf("%d adoptions in the log", n)
	}
}

// An operation that somebody works on at this moment is no difference.
func TestAuditLeavesRunningOperationsAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	slow := pausedProvider{Provider: w.psp, answered: make(chan struct{}), resume: make(chan struct{})}
	done := make(chan error, 1)
	go func() { _, err := w.start(nil, slow).charge(w, "k"); done <- err }()
	<-slow.answered
	if got := w.audit(t); len(got) != 0 {
		t.Errorf("%v", got)
	}
	close(slow.resume)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
