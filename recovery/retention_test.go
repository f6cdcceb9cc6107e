package recovery_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"paidonce/internal/world"
)

// expire makes every finished key's time be over since the given time.
func expire(w *world.World, ago string) {
	w.T.Helper()
	w.Exec(
		`UPDATE idempotency_keys SET finished_at = finished_at - interval '24 hours' - $1::interval, expires_at = clock_timestamp() - $1::interval WHERE status <> 'in_progress'`,
		ago,
	)
}

// Retention counts from completion, and a key lives until its time is over.
func TestRetentionCountsFromCompletion(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	i := w.Start()
	if _, err := i.Charge("k"); err != nil {
		t.Fatal(err)
	}
	if n := w.Count(
		`SELECT count(*) FROM idempotency_keys WHERE expires_at = finished_at + interval '24 hours'`,
	); n == 0 {
		if n := w.Count(
			`SELECT count(*) FROM idempotency_keys WHERE abs(extract(epoch FROM expires_at - finished_at) - 86400) < 0.1`,
		); n != 1 {
			t.Error("the key's time does not count from its completion")
		}
	}
	w.Exec(
		`UPDATE idempotency_keys SET created_at = created_at - interval '30 days', expires_at = clock_timestamp() + interval '1 minute'`,
	)
	if n, err := sweepKeys(t.Context(), i.Engine); err != nil || n != 0 {
		t.Errorf("swept %d before its time, %v", n, err)
	}
	expire(w, "1 second")
	if n, err := sweepKeys(t.Context(), i.Engine); err != nil || n != 1 {
		t.Errorf("swept %d after its time, %v", n, err)
	}
	// The charge stays, and so does its event.
	w.CheckRecords(1)
}

// Unfinished keys never expire, however old they are: free, leased or parked.
func TestSweepSparesUnfinishedKeys(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	crashed := make(chan struct{})
	doomed := w.StartWith(
		nil, world.CrashingProvider{Provider: w.Provider, After: true, Crashed: crashed},
	)
	world.UntilCrash(t, crashed, func() { _, _ = doomed.Charge("k") })
	w.Age(40 * 24 * time.Hour)
	i := w.Start()
	for _, state := range []string{
		"locked_at = locked_at", "lease_token = NULL, locked_at = NULL",
		"lease_token = NULL, locked_at = NULL, parked_at = clock_timestamp()",
	} {
		w.Exec(`UPDATE idempotency_keys SET ` + state)
		if n, err := sweepKeys(t.Context(), i.Engine); err != nil || n != 0 {
			t.Errorf("%s: swept %d, %v", state, n, err)
		}
	}
	// An expiry that should not be there changes nothing: the status decides.
	w.Exec(`UPDATE idempotency_keys SET expires_at = clock_timestamp() - interval '1 day'`)
	if n, err := sweepKeys(t.Context(), i.Engine); err != nil || n != 0 {
		t.Errorf("swept %d unfinished keys that had an expiry, %v", n, err)
	}
	w.Exec(`UPDATE idempotency_keys SET parked_at = NULL`)
	w.Pass(i)
	w.CheckRecords(1)
}

// An expired, unswept key is taken anew: a new operation with a new derived key, for another
// request as well.
func TestExpiredKeyIsANewOperation(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	i := w.Start()
	first, err := i.Charge("k")
	if err != nil {
		t.Fatal(err)
	}
	expire(w, "1 hour")
	second, err := i.Charge("k")
	if err != nil || second.Replayed || second.OperationID == first.OperationID {
		t.Fatalf(
			"replayed %v, %s after %s, %v", second.Replayed, second.OperationID, first.OperationID,
			err,
		)
	}
	w.CheckRecords(2)
	if n := w.Sim.Stats().DistinctKeys; n != 2 {
		t.Errorf("%d derived keys for two operations", n)
	}
}

// Many callers find the same expired key, while sweeps run: one new operation.
func TestExpiredKeyIsTakenByOne(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	i := w.Start()
	for k := range 10 {
		if _, err := i.Charge(fmt.Sprint(k)); err != nil {
			t.Fatal(err)
		}
	}
	expire(w, "1 hour")
	var group sync.WaitGroup
	for k := range 10 {
		for range 5 {
			group.Go(func() {
				if res, err := w.Start().Charge(fmt.Sprint(k)); err == nil &&
					res.Answer.Code != http.StatusCreated {
					t.Errorf("key %d: %d", k, res.Answer.Code)
				}
			})
		}
	}
	for range 3 {
		group.Go(func() {
			if _, err := sweepKeys(t.Context(), i.Engine); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	w.CheckRecords(20)
}

// The sweep's outer guard: a row that was taken anew between the choice and the delete stays.
func TestSweepRepeatsItsGuard(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	i := w.Start()
	if _, err := i.Charge("k"); err != nil {
		t.Fatal(err)
	}
	run := func(out ...string) int {
		expire(w, "1 hour")
		// The inner choice is made as if the row were expired; meanwhile it is not any more.
		pool := world.Tampered{Pool: w.Pool, Change: func(sql string) string {
			return strings.Replace(
				sql,
				"WHERE d.expires_at <= (SELECT clock_timestamp()) AND d.status <> 'in_progress'",
				"WHERE true", 1,
			)
		}}
		w.Exec(`UPDATE idempotency_keys SET expires_at = clock_timestamp() + interval '1 day'`)
		n, _, err := w.StartWith(
			world.Without(t, pool, "KeySweep", out...), nil,
		).Engine.Sweep(t.Context(), 10)
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
