package recovery_test

import (
	"io"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"time"

	"paidonce/db"
	"paidonce/provider"
	"paidonce/recovery"
)

// places is every step boundary of a charge. In each, the process dies on the spot.
var places = map[string]struct {
	pool     func(w *world, crashed chan struct{}) db.Pool
	provider func(w *world, crashed chan struct{}) provider.Provider
	claimed  bool // the claim is committed when it dies
}{
	"inside commit 1": {pool: func(w *world, c chan struct{}) db.Pool {
		return crashingPool{w.pool, "ChargeClaim", true, c, &sync.Once{}}
	}},
	"after commit 1": {claimed: true, pool: func(w *world, c chan struct{}) db.Pool {
		return crashingPool{w.pool, "ChargeClaim", false, c, &sync.Once{}}
	}},
	"before the call": {claimed: true, provider: func(w *world, c chan struct{}) provider.Provider {
		return crashingProvider{Provider: w.psp, before: true, crashed: c}
	}},
	"after the call": {claimed: true, provider: func(w *world, c chan struct{}) provider.Provider {
		return crashingProvider{Provider: w.psp, after: true, crashed: c}
	}},
	"inside commit 2": {claimed: true, pool: func(w *world, c chan struct{}) db.Pool {
		return crashingPool{w.pool, "ChargeSettle", true, c, &sync.Once{}}
	}},
	"after commit 2, before the answer": {claimed: true, pool: func(w *world, c chan struct{}) db.Pool {
		return crashingPool{w.pool, "ChargeSettle", false, c, &sync.Once{}}
	}},
}

// Every recovery point × every place to crash × both drivers: one charge, one event, one answer.
func TestCrashMatrix(t *testing.T) {
	t.Parallel()
	for place, p := range places {
		for _, driver := range []string{"client", "reconciler"} {
			t.Run(place+", then "+driver, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				crashed := make(chan struct{})
				var pool db.Pool
				var psp provider.Provider
				if p.pool != nil {
					pool = p.pool(w, crashed)
				}
				if p.provider != nil {
					psp = p.provider(w, crashed)
				}
				doomed := w.start(pool, psp)
				untilCrash(t, crashed, func() { _, _ = doomed.charge(w, "k") })

				second := w.start(nil, nil)
				w.age(w.cfg.StaleAfter) // the owner is presumed gone
				if driver == "reconciler" {
					counts, err := recovery.Pass(t.Context(), second.engine, 100, slog.New(slog.NewTextHandler(io.Discard, nil)))
					if err != nil || counts.Parked+counts.Waiting > 0 {
						t.Fatalf("pass: %+v, %v", counts, err)
					}
				}
				first, err := second.charge(w, "k")
				if err != nil {
					t.Fatal(err)
				}
				if driver == "reconciler" && p.claimed && !first.Replayed {
					t.Error("the reconciler's pass left the operation to the client")
				}
				again, err := second.charge(w, "k")
				if err != nil || !again.Replayed {
					t.Fatalf("replayed %v, %v", again.Replayed, err)
				}
				if err := same(first.Answer, again.Answer); err != nil {
					t.Error(err)
				}
				if first.Answer.Code != http.StatusCreated {
					t.Errorf("answer %d %s", first.Answer.Code, first.Answer.Body)
				}
				w.books(1)
				if keys := w.sim.Stats().DistinctKeys; keys > 1 {
					t.Errorf("%d derived keys were sent for one operation", keys)
				}
			})
		}
	}
}

// Before the lease is stale nobody takes over: the owner may only be slow.
func TestFreshLeaseIsNotTakenOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	crashed := make(chan struct{})
	doomed := w.start(nil, crashingProvider{Provider: w.psp, after: true, crashed: crashed})
	untilCrash(t, crashed, func() { _, _ = doomed.charge(w, "k") })
	second := w.start(nil, nil)
	w.age(w.cfg.StaleAfter - 5*time.Second)
	if res, err := second.charge(w, "k"); err == nil || err.Error() != "the key is in use" {
		t.Errorf("%v, %v", res, err)
	}
	counts, err := recovery.Pass(t.Context(), second.engine, 100, slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil || counts.Driven != 0 {
		t.Errorf("the reconciler drove a fresh lease: %+v, %v", counts, err)
	}
}
