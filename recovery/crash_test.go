package recovery_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"paidonce/db"
	"paidonce/internal/world"
	"paidonce/provider"
)

// places is every step boundary of a charge. In each, the process dies on the spot.
var places = map[string]struct {
	pool     func(w *world.World, crashed chan struct{}) db.Pool
	provider func(w *world.World, crashed chan struct{}) provider.Provider
	claimed  bool // the claim is committed when it dies
}{
	"inside commit 1": {pool: func(w *world.World, c chan struct{}) db.Pool {
		return crashingPool{w.Pool, "ChargeClaim", true, c, &sync.Once{}}
	}},
	"after commit 1": {claimed: true, pool: func(w *world.World, c chan struct{}) db.Pool {
		return crashingPool{w.Pool, "ChargeClaim", false, c, &sync.Once{}}
	}},
	"before the call": {claimed: true, provider: func(
		w *world.World, c chan struct{},
	) provider.Provider {
		return world.CrashingProvider{Provider: w.Provider, Before: true, Crashed: c}
	}},
	"after the call": {claimed: true, provider: func(
		w *world.World, c chan struct{},
	) provider.Provider {
		return world.CrashingProvider{Provider: w.Provider, After: true, Crashed: c}
	}},
	"inside commit 2": {claimed: true, pool: func(w *world.World, c chan struct{}) db.Pool {
		return crashingPool{w.Pool, "ChargeSettle", true, c, &sync.Once{}}
	}},
	"after commit 2, before the answer": {claimed: true, pool: func(
		w *world.World, c chan struct{},
	) db.Pool {
		return crashingPool{w.Pool, "ChargeSettle", false, c, &sync.Once{}}
	}},
}

// Every recovery point × every place to crash × both drivers: one charge, one event, one answer.
func TestCrashMatrix(t *testing.T) {
	t.Parallel()
	for place, p := range places {
		for _, driver := range []string{"client", "reconciler"} {
			t.Run(place+", then "+driver, func(t *testing.T) {
				t.Parallel()
				w := world.New(t)
				crashed := make(chan struct{})
				var pool db.Pool
				var psp provider.Provider
				if p.pool != nil {
					pool = p.pool(w, crashed)
				}
				if p.provider != nil {
					psp = p.provider(w, crashed)
				}
				doomed := w.StartWith(pool, psp)
				world.UntilCrash(t, crashed, func() { _, _ = doomed.Charge("k") })

				second := w.Start()
				w.Age(w.Keys.StaleAfter) // the owner is presumed gone
				if driver == "reconciler" {
					counts, err := second.Reconciler().Pass(t.Context(), 100)
					if err != nil || counts.Parked+counts.Waiting > 0 {
						t.Fatalf("pass: %+v, %v", counts, err)
					}
				}
				first, err := second.Charge("k")
				if err != nil {
					t.Fatal(err)
				}
				if driver == "reconciler" && p.claimed && !first.Replayed {
					t.Error("the reconciler's pass left the operation to the client")
				}
				again, err := second.Charge("k")
				if err != nil || !again.Replayed {
					t.Fatalf("replayed %v, %v", again.Replayed, err)
				}
				if err := world.Same(first.Answer, again.Answer); err != nil {
					t.Error(err)
				}
				if first.Answer.Code != http.StatusCreated {
					t.Errorf("answer %d %s", first.Answer.Code, first.Answer.Body)
				}
				w.CheckRecords(1)
				if keys := w.Sim.Stats().DistinctKeys; keys > 1 {
					t.Errorf("%d derived keys were sent for one operation", keys)
				}
			})
		}
	}
}

// Before the lease is stale nobody takes over: the owner may only be slow.
func TestFreshLeaseIsNotTakenOver(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	crashed := make(chan struct{})
	doomed := w.StartWith(
		nil, world.CrashingProvider{Provider: w.Provider, After: true, Crashed: crashed},
	)
	world.UntilCrash(t, crashed, func() { _, _ = doomed.Charge("k") })
	second := w.Start()
	w.Age(w.Keys.StaleAfter - 5*time.Second)
	if res, err := second.Charge("k"); err == nil || err.Error() != "the key is in use" {
		t.Errorf("%v, %v", res, err)
	}
	counts, err := second.Reconciler().Pass(t.Context(), 100)
	if err != nil || counts.Driven != 0 {
		t.Errorf("the reconciler drove a fresh lease: %+v, %v", counts, err)
	}
}

// crashingPool crashes around the statement of that name: rolled back, as when the connection dies
// before the commit, or committed, as when the answer is lost.
type crashingPool struct {
	*pgxpool.Pool
	name     string
	rollback bool
	crashed  chan struct{}
	once     *sync.Once
}

func (p crashingPool) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if !strings.Contains(sql, "-- name: "+p.name+" ") {
		return p.Pool.Query(ctx, sql, args...)
	}
	tx, err := p.Begin(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	for rows.Next() { // the statement is executed whole
	}
	if rows.Err() != nil {
		return nil, rows.Err()
	}
	if p.rollback {
		err = tx.Rollback(ctx)
	} else {
		err = tx.Commit(ctx)
	}
	if err != nil {
		return nil, err
	}
	p.once.Do(func() { close(p.crashed) })
	world.Crash()
	return nil, nil
}
