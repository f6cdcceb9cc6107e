package idemkeys_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"paidonce/db"
	"paidonce/idemkeys"
	"paidonce/internal/world"
	"paidonce/provider"
)

// The guards of commit 2. Each is enough by itself against an owner that comes back after it was
// taken over and overtaken.
const (
	guardToken  = "AND k.lease_token = x.lease_token"
	guardPoint  = "AND k.recovery_point = x.recovery_point"
	guardStatus = "AND k.finished_at IS NULL"
	guardCharge = "AND coalesce(c.status = 'pending', false) AND c.provider_id IS NULL"
)

var settleGuards = []string{guardToken, guardPoint, guardStatus, guardCharge}

// zombie lets an owner stop after the provider's answer, another one take over and finish, and the
// first go on, with the guards taken out of the first one's commit 2. It returns how the two ended.
func zombie(t *testing.T, w *world.World, out ...string) (stopped, taker outcome) {
	t.Helper()
	slow := w.Paused()
	first := w.StartWith(world.Without(t, w.Pool, "ChargeSettle", out...), slow)
	done := make(chan outcome, 1)
	go func() {
		res, err := first.Charge("k")
		done <- outcome{res, err}
	}()
	<-slow.Answered
	w.Age(w.Keys.StaleAfter)
	res, err := w.Start().Charge("k")
	if err != nil {
		t.Fatal(err)
	}
	close(slow.Resume)
	return <-done, outcome{res, err}
}

type outcome struct {
	res idemkeys.Result
	err error
}

// Guards hide one another. With all but one guard out, the one still holds; with all of them out,
// the test notices.
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
			w := world.New(t)
			stopped, taker := zombie(t, w, out...)
			if stopped.err != nil || !stopped.res.Replayed {
				t.Errorf(
					"the overtaken owner: replayed %v, %v; it should have read what is stored",
					stopped.res.Replayed, stopped.err,
				)
			}
			if err := world.Same(stopped.res.Answer, taker.res.Answer); err != nil {
				t.Error(err)
			}
			w.CheckRecords(1)
		})
	}
	t.Run("none", func(t *testing.T) {
		t.Parallel()
		w := world.New(t)
		stopped, _ := zombie(t, w, settleGuards...)
		if stopped.err == nil && stopped.res.Replayed {
			t.Error("without any guard the overtaken owner still lost: this test cannot fail")
		}
	})
}

// The token is the only guard against an owner that comes back while the one that took over is
// still at work.
func TestOvertakenOwnerCannotSettleUnderAForeignLease(t *testing.T) {
	t.Parallel()
	run := func(t *testing.T, out ...string) (won bool) {
		w := world.New(t)
		slow := w.Paused()
		first := w.StartWith(world.Without(t, w.Pool, "ChargeSettle", out...), slow)
		done := make(chan error, 1)
		go func() {
			_, err := first.Charge("k")
			done <- err
		}()
		<-slow.Answered
		w.Age(w.Keys.StaleAfter)
		// The second owner holds the lease and has not settled.
		second := w.Start()
		start, err := second.Engine.Now(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ops, err := second.Engine.LeaseDue(t.Context(), start, 1)
		if err != nil || len(ops) != 1 {
			t.Fatalf("%d operations, %v", len(ops), err)
		}
		close(slow.Resume)
		won = <-done == nil
		if !won {
			if _, err := second.Engine.Drive(t.Context(), ops[0]); err != nil {
				t.Fatal(err)
			}
		}
		w.CheckRecords(1)
		return won
	}
	if run(t) {
		t.Error("an owner that lost its lease settled")
	}
	if !run(t, guardToken) {
		t.Error("without the token nothing changed: this test cannot fail")
	}
}

// A commit of several statements stores its answer under the fence that it was made for, and once.
func TestFinishInHoldsToItsFence(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	crashed := make(chan struct{})
	doomed := w.StartWith(
		nil, world.CrashingProvider{Provider: w.Provider, Before: true, Crashed: crashed},
	)
	world.UntilCrash(t, crashed, func() { _, _ = doomed.Charge("k") })
	var held idemkeys.Fence
	if err := w.Pool.QueryRow(t.Context(), `SELECT account_id, key, operation_id, lease_token,
		recovery_point FROM idempotency_keys WHERE lease_token IS NOT NULL`).Scan(
		&held.AccountID, &held.Key, &held.OperationID, &held.LeaseToken, &held.Point,
	); err != nil {
		t.Fatal(err)
	}
	commit := &idemkeys.Commit{
		Status: idemkeys.Completed, Answer: &idemkeys.Answer{Code: 201, Body: []byte("{}")},
	}
	finish := func(change func(*idemkeys.Fence)) bool {
		f := held
		change(&f)
		won, err := idemkeys.FinishIn(t.Context(), w.Pool, f, commit, time.Hour, "")
		if err != nil {
			t.Fatal(err)
		}
		return won
	}
	for name, change := range map[string]func(*idemkeys.Fence){
		"account":   func(f *idemkeys.Fence) { f.AccountID = "acct_other" },
		"key":       func(f *idemkeys.Fence) { f.Key = "other" },
		"operation": func(f *idemkeys.Fence) { f.OperationID = "op_other" },
		"token":     func(f *idemkeys.Fence) { f.LeaseToken = "other" },
		"point":     func(f *idemkeys.Fence) { f.Point = "intent_created" },
	} {
		if finish(change) {
			t.Fatalf("an answer was stored under another %s", name)
		}
	}
	if own := func(*idemkeys.Fence) {}; !finish(own) || finish(own) {
		t.Error("under its own fence an answer is stored, and once")
	}
}

// Of many that see the same stale lease one wins (the compare-and-swap of rule 3). Each part of the
// guard holds alone.
func TestOneOfManyTakesOver(t *testing.T) {
	t.Parallel()
	const (
		swap  = "AND k.lease_token IS NOT DISTINCT FROM $?::text AND k.attempts = $?::integer"
		stale = "AND (k.lease_token IS NULL OR k.locked_at <= clock_timestamp() - $?::interval)"
	)
	run := func(t *testing.T, company int64, out ...string) (calls int64) {
		w := world.New(t)
		crashed := make(chan struct{})
		doomed := w.StartWith(
			nil, world.CrashingProvider{Provider: w.Provider, Before: true, Crashed: crashed},
		)
		world.UntilCrash(t, crashed, func() { _, _ = doomed.Charge("k") })
		w.Age(w.Keys.StaleAfter)
		counting := &countingProvider{Provider: w.Provider, company: company}
		pool := db.Pool(w.Pool)
		if len(out) > 0 {
			pool = world.Without(t, w.Pool, "KeyTakeOver", out...)
		}
		// All of them have read the stale lease before the first tries to take it.
		const drivers = 6
		var arrived atomic.Int64
		var gate sync.WaitGroup
		gate.Add(drivers)
		pool = world.Tampered{Pool: pool, Change: func(sql string) string {
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
			i := w.StartWith(pool, counting)
			go func() {
				_, err := i.Charge("k")
				results <- err
			}()
		}
		for range cap(results) {
			<-results
		}
		return counting.lookups.Load()
	}
	if n := run(t, 1); n != 1 {
		t.Errorf("%d drivers worked on one operation", n)
	}
	if n := run(t, 1, swap); n != 1 {
		t.Errorf("the staleness alone let %d drivers in", n)
	}
	if n := run(t, 1, stale); n != 1 {
		t.Errorf("the swap alone let %d drivers in", n)
	}
	if n := run(t, 2, swap, stale); n < 2 {
		t.Error("without both guards nothing changed: this test cannot fail")
	}
}

// countingProvider counts the look-ups: each driver of a resumed operation begins with one.
type countingProvider struct {
	provider.Provider
	company int64 // how many look-ups each waits for: 1 waits for none
	lookups atomic.Int64
}

func (p *countingProvider) FindCharge(
	ctx context.Context, l provider.Lookup,
) ([]provider.Charge, error) {
	p.lookups.Add(1)
	time.Sleep(50 * time.Millisecond) // long enough for the others to come
	for late := time.Now().Add(time.Minute); p.lookups.Load() < p.company && time.Now().Before(late); {
		time.Sleep(time.Millisecond)
	}
	return p.Provider.FindCharge(ctx, l)
}

// deadlineProvider notes whether the calls it gets may still be made.
type deadlineProvider struct {
	provider.Provider
	inTime, late atomic.Int64
}

func (p *deadlineProvider) FindCharge(
	ctx context.Context, l provider.Lookup,
) ([]provider.Charge, error) {
	if ctx.Err() != nil {
		p.late.Add(1)
	} else {
		p.inTime.Add(1)
	}
	return p.Provider.FindCharge(ctx, l)
}

// A run counts from before its lease was asked for: when the answer came so late that somebody else
// may be at work by now, nothing is sent any more.
func TestARunCountsFromBeforeItsLease(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	crashed := make(chan struct{})
	doomed := w.StartWith(
		nil, world.CrashingProvider{Provider: w.Provider, Before: true, Crashed: crashed},
	)
	world.UntilCrash(t, crashed, func() { _, _ = doomed.Charge("k") })
	w.Age(w.Keys.StaleAfter)
	watched := &deadlineProvider{Provider: w.Provider}
	i := w.StartWith(nil, watched)
	start, err := i.Engine.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ops, err := i.Engine.LeaseDue(t.Context(), start, 1)
	if err != nil || len(ops) != 1 {
		t.Fatalf("got %d, %v, want 1", len(ops), err)
	}
	ops[0].SetLeased(ops[0].Now(), time.Now().Add(-w.Keys.RunLimit()))
	_, err = i.Engine.Drive(t.Context(), ops[0])
	world.WantUnknown(t, err)
	if watched.inTime.Load() != 0 || w.Sim.Stats().ChargeRequests != 0 {
		t.Errorf("the provider was called %d times after the run's time", watched.inTime.Load())
	}
	// and the lease was given back
	if res, err := i.Charge("k"); err != nil || res.Answer.Code != 201 {
		t.Errorf("got %d, %v, want 201", res.Answer.Code, err)
	}
	w.CheckRecords(1)
}
