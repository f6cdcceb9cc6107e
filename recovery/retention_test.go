package recovery_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// expire makes every finished key's time be over since the given time.
func (w *world) expire(ago string) {
	w.t.Helper()
	w.exec(`UPDATE idempotency_keys SET finished_at = finished_at - interval '24 hours' - $1::interval, expires_at = clock_timestamp() - $1::interval WHERE status <> 'in_progress'`, ago)
}

// Trap 57, PB-082: retention counts from completion, and a key lives until its time is over.
func TestRetentionCountsFromCompletion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	i := w.start(nil, nil)
	if _, err := i.charge(w, "k"); err != nil {
		t.Fatal(err)
	}
	if n := w.count(`SELECT count(*) FROM idempotency_keys WHERE expires_at = finished_at + interval '24 hours'`); n == 0 {
		if n := w.count(`SELECT count(*) FROM idempotency_keys WHERE abs(extract(epoch FROM expires_at - finished_at) - 86400) < 0.1`); n != 1 {
			t.Error("the key's time does not count from its completion")
		}
	}
	w.exec(`UPDATE idempotency_keys SET created_at = created_at - interval '30 days', expires_at = clock_timestamp() + interval '1 minute'`)
	if n, err := sweepKeys(t.Context(), i.engine); err != nil || n != 0 {
		t.Errorf("swept %d before its time, %v", n, err)
	}
	w.expire("1 second")
	if n, err := sweepKeys(t.Context(), i.engine); err != nil || n != 1 {
		t.Errorf("swept %d after its time, %v", n, err)
	}
	// Trap 59: the charge stays, and so does its event.
	w.books(1)
}

// Trap 54, PB-087: unfinished keys never expire, however old they are: free, leased or parked.
func TestSweepSparesUnfinishedKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	crashed := make(chan struct{})
	doomed := w.start(nil, crashingProvider{Provider: w.psp, after: true, crashed: crashed})
	untilCrash(t, crashed, func() { _, _ = doomed.charge(w, "k") })
	w.age(40 * 24 * time.Hour)
	i := w.start(nil, nil)
	for _, state := range []string{"locked_at = locked_at", "lease_token = NULL, locked_at = NULL", "lease_token = NULL, locked_at = NULL, parked_at = clock_timestamp()"} {
		w.exec(`UPDATE idempotency_keys SET ` + state)
		if n, err := sweepKeys(t.Context(), i.engine); err != nil || n != 0 {
			t.Errorf("%s: swept %d, %v", state, n, err)
		}
	}
	// An expiry that should not be there changes nothing: the status decides.
	w.exec(`UPDATE idempotency_keys SET expires_at = clock_timestamp() - interval '1 day'`)
	if n, err := sweepKeys(t.Context(), i.engine); err != nil || n != 0 {
		t.Errorf("swept %d unfinished keys that had an expiry, %v", n, err)
	}
	w.exec(`UPDATE idempotency_keys SET parked_at = NULL`)
	w.pass(i)
	w.books(1)
}

// Traps 55, 56, PB-085: an expired, unswept key is taken anew: a new operation with a new derived key, for another request as well.
func TestExpiredKeyIsANewOperation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	i := w.start(nil, nil)
	first, err := i.charge(w, "k")
	if err != nil {
		t.Fatal(err)
	}
	w.expire("1 hour")
	second, err := i.charge(w, "k")
	if err != nil || second.Replayed || second.OperationID == first.OperationID {
		t.Fatalf("replayed %v, %s after %s, %v", second.Replayed, second.OperationID, first.OperationID, err)
	}
	w.books(2)
	if n := w.sim.Stats().DistinctKeys; n != 2 {
		t.Errorf("%d derived keys for two operations", n)
	}
}

// Many callers find the same expired key, while sweeps run: one new operation.
func TestExpiredKeyIsTakenByOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	i := w.start(nil, nil)
	for k := range 10 {
		if _, err := i.charge(w, fmt.Sprint(k)); err != nil {
			t.Fatal(err)
		}
	}
	w.expire("1 hour")
	var group sync.WaitGroup
	for k := range 10 {
		for range 5 {
			group.Go(func() {
				if res, err := w.start(nil, nil).charge(w, fmt.Sprint(k)); err == nil && res.Answer.Code != http.StatusCreated {
					t.Errorf("key %d: %d", k, res.Answer.Code)
				}
			})
		}
	}
	for range 3 {
		group.Go(func() {
			if _, err := sweepKeys(t.Context(), i.engine); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	w.books(20)
}

// The sweep's outer guard: a row that was taken anew between the choice and the delete stays.
func TestSweepRepeatsItsGuard(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	i := w.start(nil, nil)
	if _, err := i.charge(w, "k"); err != nil {
		t.Fatal(err)
	}
	run := func(out ...string) int {
		w.expire("1 hour")
		// The inner choice is made as if the row were expired; meanwhile it is not any more.
		pool := tampered{w.pool, func(sql string) string {
			return strings.Replace(sql, "WHERE d.expires_at <= (SELECT clock_timestamp()) AND d.status <> 'in_progress'", "WHERE true", 1)
		}}
		w.exec(`UPDATE idempotency_keys SET expires_at = clock_timestamp() + interval '1 day'`)
		n, err := w.start(without(t, pool, "KeySweep", out...), nil).engine.Sweep(t.Context(), 10)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := run(); n != 0 {
		t.Errorf("swept %d keys that were not expired any more", n)
	}
	if n := run("AND k.expires_at <= clock_timestamp() AND k.status <> 'in_progress'"); n != 1 {
		t.Error("without the guard nothing changed: this test cannot fail")
	}
}
