package recovery_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"paidonce/db"
	"paidonce/idemkeys"
	"paidonce/provider"
)

// pausedProvider holds its caller between the provider's answer and the commit, as SIGSTOP does.
type pausedProvider struct {
	provider.Provider
	answered, resume chan struct{}
}

func (p pausedProvider) Charge(ctx context.Context, r provider.ChargeRequest) (provider.ChargeOutcome, error) {
	o, err := p.Provider.Charge(ctx, r)
	close(p.answered)
	<-p.resume
	return o, err
}

// The guards of commit 2. Each is enough by itself against an owner that comes back after it was taken over and overtaken.
const (
	guardToken  = "AND k.lease_token = x.lease_token"
	guardPoint  = "AND k.recovery_point = x.recovery_point"
	guardStatus = "AND k.finished_at IS NULL"
	guardCharge = "AND c.status = 'pending' AND coalesce(c.provider_id, '') = ''"
)

var settleGuards = []string{guardToken, guardPoint, guardStatus, guardCharge}

// zombie lets an owner stop after the provider's answer, another one take over and finish, and the first go on, with the guards
// taken out of the first one's commit 2. It returns how the two ended.
func zombie(t *testing.T, w *world, out ...string) (stopped, taker outcome) {
	t.Helper()
	slow := pausedProvider{Provider: w.psp, answered: make(chan struct{}), resume: make(chan struct{})}
	first := w.start(without(t, w.pool, "ChargeSettle", out...), slow)
	done := make(chan outcome, 1)
	go func() {
		res, err := first.charge(w, "k")
		done <- outcome{res, err}
	}()
	<-slow.answered
	w.age(w.cfg.StaleAfter)
	res, err := w.start(nil, nil).charge(w, "k")
	if err != nil {
		t.Fatal(err)
	}
	close(slow.resume)
	return <-done, outcome{res, err}
}

type outcome struct {
	res idemkeys.Result
	err error
}

// Trap 3, and "guards hide one another": with all but one guard out, the one still holds; with all of them out, the test notices.
func TestEachGuardOfCommitTwoHoldsAlone(t *testing.T) {
	t.Parallel()
	for _, kept := range settleGuards {
		t.Run(kept, func(t *testing.T) {
			t.Parallel()
			var out []string
			for _, g := range settleGuards {
				if g != kept {
					out = append(out, g)
				}
			}
			w := newWorld(t)
			stopped, taker := zombie(t, w, out...)
			if stopped.err != nil || !stopped.res.Replayed {
				t.Errorf("the overtaken owner: replayed %v, %v; it should have read what is stored", stopped.res.Replayed, stopped.err)
			}
			if err := same(stopped.res.Answer, taker.res.Answer); err != nil {
				t.Error(err)
			}
			w.books(1)
		})
	}
	t.Run("none", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.exec(`ALTER TABLE outbox DROP CONSTRAINT outbox_once`) // else the second event is refused, and its owner looks at what is stored
		stopped, _ := zombie(t, w, settleGuards...)
		if stopped.err == nil && stopped.res.Replayed {
			t.Error("without any guard the overtaken owner still lost: this test cannot fail")
		}
	})
}

// The token is the only guard against an owner that comes back while the one that took over is still at work.
func TestOvertakenOwnerCannotSettleUnderAForeignLease(t *testing.T) {
	t.Parallel()
	run := func(t *testing.T, out ...string) (won bool) {
		w := newWorld(t)
		slow := pausedProvider{Provider: w.psp, answered: make(chan struct{}), resume: make(chan struct{})}
		first := w.start(without(t, w.pool, "ChargeSettle", out...), slow)
		done := make(chan error, 1)
		go func() {
			_, err := first.charge(w, "k")
			done <- err
		}()
		<-slow.answered
		w.age(w.cfg.StaleAfter)
		// The second owner holds the lease and has not settled.
		second := w.start(nil, nil)
		start, err := second.engine.Now(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ops, err := second.engine.LeaseDue(t.Context(), start, 1)
		if err != nil || len(ops) != 1 {
			t.Fatalf("%d operations, %v", len(ops), err)
		}
		close(slow.resume)
		won = <-done == nil
		if !won {
			if _, err := second.engine.Drive(t.Context(), ops[0]); err != nil {
				t.Fatal(err)
			}
		}
		w.books(1)
		return won
	}
	if run(t) {
		t.Error("an owner that lost its lease settled")
	}
	if !run(t, guardToken) {
		t.Error("without the token nothing changed: this test cannot fail")
	}
}

// Of many that see the same stale lease one wins (the compare-and-swap of rule 3). Each part of the guard holds alone.
func TestOneOfManyTakesOver(t *testing.T) {
	t.Parallel()
	const (
		swap  = "AND k.lease_token IS NOT DISTINCT FROM $?::text AND k.attempts = $?::integer"
		stale = "AND (k.lease_token IS NULL OR k.locked_at <= clock_timestamp() - $?::interval)"
	)
	run := func(t *testing.T, out ...string) (calls int64) {
		w := newWorld(t)
		crashed := make(chan struct{})
		doomed := w.start(nil, crashingProvider{Provider: w.psp, before: true, crashed: crashed})
		untilCrash(t, crashed, func() { _, _ = doomed.charge(w, "k") })
		w.age(w.cfg.StaleAfter)
		counting := &countingProvider{Provider: w.psp}
		pool := db.Pool(w.pool)
		if len(out) > 0 {
			pool = without(t, w.pool, "KeyTakeOver", out...)
		}
		// All of them have read the stale lease before the first tries to take it.
		const drivers = 6
		var arrived atomic.Int64
		var gate sync.WaitGroup
		gate.Add(drivers)
		pool = tampered{pool, func(sql string) string {
			if strings.Contains(sql, "-- name: KeyTakeOver ") {
				if arrived.Add(1) <= drivers { // later ones are run again after a conflict
					gate.Done()
				}
				gate.Wait()
			}
			return sql
		}}
		results := make(chan error, drivers)
		for range drivers {
			i := w.start(pool, counting)
			go func() {
				_, err := i.charge(w, "k")
				results <- err
			}()
		}
		for range cap(results) {
			<-results
		}
		return counting.lookups.Load()
	}
	if n := run(t); n != 1 {
		t.Errorf("%d drivers worked on one operation", n)
	}
	if n := run(t, swap); n != 1 {
		t.Errorf("the staleness alone let %d drivers in", n)
	}
	if n := run(t, stale); n != 1 {
		t.Errorf("the swap alone let %d drivers in", n)
	}
	if n := run(t, swap, stale); n < 2 {
		t.Error("without both guards nothing changed: this test cannot fail")
	}
}

// countingProvider counts the look-ups: each driver of a resumed operation begins with one.
type countingProvider struct {
	provider.Provider
	lookups atomic.Int64
}

func (p *countingProvider) FindCharge(ctx context.Context, l provider.Lookup) ([]provider.Charge, error) {
	p.lookups.Add(1)
	time.Sleep(50 * time.Millisecond) // long enough for the others to come
	return p.Provider.FindCharge(ctx, l)
}

// deadlineProvider notes whether the calls it gets may still be made.
type deadlineProvider struct {
	provider.Provider
	inTime, late atomic.Int64
}

func (p *deadlineProvider) FindCharge(ctx context.Context, l provider.Lookup) ([]provider.Charge, error) {
	if ctx.Err() != nil {
		p.late.Add(1)
	} else {
		p.inTime.Add(1)
	}
	return p.Provider.FindCharge(ctx, l)
}

// A run counts from before its lease was asked for: when the answer came so late that somebody else may be at work by now, nothing is sent any more.
func TestARunCountsFromBeforeItsLease(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	crashed := make(chan struct{})
	doomed := w.start(nil, crashingProvider{Provider: w.psp, before: true, crashed: crashed})
	untilCrash(t, crashed, func() { _, _ = doomed.charge(w, "k") })
	w.age(w.cfg.StaleAfter)
	watched := &deadlineProvider{Provider: w.psp}
	i := w.start(nil, watched)
	start, err := i.engine.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ops, err := i.engine.LeaseDue(t.Context(), start, 1)
	if err != nil || len(ops) != 1 {
		t.Fatalf("%d, %v", len(ops), err)
	}
	late := ops[0].Leased(ops[0].Now(), time.Now().Add(-w.cfg.RunLimit()))
	_, err = i.engine.Drive(t.Context(), late)
	wantUnknown(t, err)
	if watched.inTime.Load() != 0 || w.sim.Stats().ChargeRequests != 0 {
		t.Errorf("the provider was called %d times after the run's time", watched.inTime.Load())
	}
	if res, err := i.charge(w, "k"); err != nil || res.Answer.Code != 201 { // and the lease was given back
		t.Errorf("%d, %v", res.Answer.Code, err)
	}
	w.books(1)
}
