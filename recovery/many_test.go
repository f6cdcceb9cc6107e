package recovery_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"paidonce/db"
	"paidonce/internal/world"
	"paidonce/provider"
	"paidonce/recovery"
)

// instantProvider has every charge that is looked for, at once: what is measured is ours.
type instantProvider struct {
	provider.Provider
	asked atomic.Int64
}

func (p *instantProvider) FindCharge(
	_ context.Context, l provider.Lookup,
) ([]provider.Charge, error) {
	p.asked.Add(1)
	return []provider.Charge{{
		ID: "ch_" + l.Tags.Operation, Tags: l.Tags, Amount: world.Twenty.Amount,
		AmountCaptured: world.Twenty.Amount, Currency: world.Twenty.Currency,
		Status: provider.Succeeded, Captured: true,
	}}, nil
}

// stick makes so many operations whose owners are gone, after the charge may have been made: copies
// of one that got that far.
func stick(w *world.World, n int) {
	w.T.Helper()
	crashed := make(chan struct{})
	dies := w.StartWith(
		nil, world.CrashingProvider{Provider: w.Provider, Before: true, Crashed: crashed},
	)
	world.UntilCrash(w.T, crashed, func() { _, _ = dies.Charge("stuck-0") })
	w.Exec(`INSERT INTO idempotency_keys (account_id, key, operation_id, kind, hash_version, request_hash, request_id, params, resource_id, recovery_point,
			lease_token, locked_at, first_attempt_at, last_attempt_at, created_at)
		SELECT account_id, 'stuck-' || n, operation_id || n, kind, hash_version, request_hash, request_id,
			convert_to(replace(convert_from(params, 'UTF8'), operation_id, operation_id || n), 'UTF8'), resource_id || n, recovery_point,
			lease_token || n, locked_at, first_attempt_at, last_attempt_at, created_at
		FROM idempotency_keys, generate_series(1, $1) n`, n-1)
	w.Exec(`INSERT INTO charges (id, account_id, operation_id, amount, currency, capture, livemode)
		SELECT id || n, account_id, operation_id || n, amount, currency, capture, livemode FROM charges, generate_series(1, $1) n`, n-1)
	w.Age(time.Hour)
}

// Ten reconcilers come at the same instant upon thousands of stuck operations: each is driven once,
// none twice, all end.
func TestManyReconcilersAtOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a second or more")
	}
	const passes = 10
	stuck := int64(5000)
	conflicts := os.Getenv("TEST_ISOLATION") != ""
	if conflicts {
		stuck = 500 // the server that tests share has room for so many predicate locks
	}
	w := world.New(t)
	stick(w, int(stuck))
	psp := &instantProvider{Provider: w.Provider}
	instances := make([]world.Instance, passes)
	for i := range instances {
		pool, err := db.Open(w.Pool.Config().ConnString(), 4) // as ten processes of cron have
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		instances[i] = w.StartWith(pool, psp)
	}
	var together, running sync.WaitGroup
	var driven, finished atomic.Int64
	together.Add(1)
	for n, i := range instances {
		running.Go(func() {
			together.Wait()
			c, err := i.Reconciler().Pass(t.Context(), recovery.LimitDefault)
			if (err != nil || c.Driven != c.Finished) && !conflicts {
				t.Errorf("pass %d: %+v, %v", n, c, err)
			}
			driven.Add(int64(c.Driven))
			finished.Add(int64(c.Finished))
		})
	}
	began := time.Now()
	together.Done()
	running.Wait()
	took := time.Since(began)
	t.Logf(
		"%d operations in %v by %d passes: %.0f/s", driven.Load(), took.Round(time.Millisecond),
		passes, float64(driven.Load())/took.Seconds(),
	)
	if left := stuck - finished.Load(); conflicts && left > 0 {
		// The conflicts of ten processes with each other can outlast a commit's patience. Then it
		// is tried on in the background, or the operation is given back, and the next pass ends it.
		t.Logf("%d operations did not end at once", left)
		for _, i := range instances {
			i.Engine.Drain()
		}
		w.Age(time.Hour)
		if _, err := instances[0].Reconciler().Pass(
			t.Context(), recovery.LimitDefault,
		); err != nil {
			t.Error(err)
		}
	} else if driven.Load() != stuck || finished.Load() != stuck || psp.asked.Load() != stuck {
		t.Errorf(
			"driven %d, finished %d, asked for %d; want %d each", driven.Load(), finished.Load(),
			psp.asked.Load(), stuck,
		)
	}
	for what, sql := range map[string]string{
		"operations that were taken over while they were leased": `SELECT count(*) FROM idempotency_keys k WHERE (SELECT count(*) FROM operation_log l
			WHERE l.operation_id = k.operation_id AND l.event = 'resumed') <> 1 + (SELECT count(*) FROM operation_log l WHERE l.operation_id = k.operation_id AND l.event = 'no_outcome')`,
		"operations that did not settle exactly once": `SELECT count(*) FROM idempotency_keys k WHERE (SELECT count(*) FROM operation_log l
			WHERE l.operation_id = k.operation_id AND l.event = 'settled') <> 1`,
		"operations without their one event": fmt.Sprintf(
			`SELECT %d - count(DISTINCT operation_id) FROM outbox`, stuck,
		),
		"unfinished operations": `SELECT count(*) FROM idempotency_keys WHERE status = 'in_progress'`,
	} {
		if n := w.Count(sql); n != 0 {
			t.Errorf("%d %s", n, what)
		}
	}
}

// A pass leases for all workers that are free in one statement, and never more than there are
// workers: what is leased is worked on at once.
func TestNoLeaseWaitsInAQueue(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	stick(w, 100)
	held := &holdingProvider{
		instantProvider: instantProvider{Provider: w.Provider}, release: make(chan struct{}),
	}
	i := w.StartWith(nil, held)
	done := make(chan recovery.Counts, 1)
	go func() {
		c, _ := i.Reconciler().Pass(context.Background(), 1000)
		done <- c
	}()
	const leased = `SELECT count(*) FROM idempotency_keys WHERE lease_token IS NOT NULL AND locked_at > clock_timestamp() - interval '1 minute'`
	for deadline := time.Now().Add(20 * time.Second); held.working.Load() < 32 && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	if working, n := int(held.working.Load()), w.Count(leased); working != 32 || n != working {
		t.Errorf("%d leases, %d of them worked on; want 32 of both", n, working)
	}
	close(held.release)
	if c := <-done; c.Finished != 100 {
		t.Errorf("%+v, want 100 finished", c)
	}
}

type holdingProvider struct {
	instantProvider
	working atomic.Int64
	release chan struct{}
}

func (p *holdingProvider) FindCharge(
	ctx context.Context, l provider.Lookup,
) ([]provider.Charge, error) {
	p.working.Add(1)
	<-p.release
	return p.instantProvider.FindCharge(ctx, l)
}
