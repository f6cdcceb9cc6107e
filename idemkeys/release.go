package idemkeys

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	"paidonce/db"
)

const (
	// Pauses between the reconciler's attempts start at a second, double, and stop growing at five minutes: an outage of a day then costs a few hundred
	// calls an operation.
	pauseFirst = time.Second
	pauseMax   = 5 * time.Minute
	// missPauses is how many looks are spread over the span in which absence is proven: enough for the default of three, with one to spare.
	missPauses = 4
)

// pauseAfter is how long an operation rests before the reconciler drives it, the next time; half of it is spread by the key, so that what failed together does not
// come back together. passes counts the reconciler's attempts alone: what clients tried in vain is due at once, and an impatient one makes nobody wait.
func pauseAfter(passes int, key string) time.Duration {
	if passes == 0 {
		return 0
	}
	p := pauseMax
	if passes < 10 {
		p = min(pauseFirst<<(passes-1), pauseMax)
	}
	spread := fnv.New64a()
	_, _ = fmt.Fprint(spread, passes, key)
	return p/2 + time.Duration(spread.Sum64()%uint64(p/2+1)) //nolint:gosec // below p, which is five minutes at most
}

// pause is how long an operation rests after a run without an outcome.
func (e *Engine) pause(op Operation, u Unresolved) time.Duration {
	if u.Missed { // looking more often proves nothing sooner
		return max(e.cfg.LookupSpan/missPauses, u.RetryAfter)
	}
	return max(pauseAfter(op.Passes, op.Key), u.RetryAfter)
}

// unresolved ends a run without an outcome: the point stays, the lease goes back, and the next driver resumes there.
func (e *Engine) unresolved(ctx context.Context, op Operation, cause error) (Result, error) {
	var u *Unresolved
	if !errors.As(cause, &u) {
		u = &Unresolved{Reason: cause.Error()}
	}
	if u.Park {
		return e.park(ctx, op, *u)
	}
	e.release(ctx, op, *u)
	return Result{}, &Unknown{
		OperationID: op.ID, ResourceID: op.ResourceID, RetryAfter: max(u.RetryAfter, time.Second),
		NotExecuted: u.NotExecuted && !op.Reached, Obstacle: u.Obstacle, Cause: u,
	}
}

// writeGrace is how long the last word about an operation may take after its run is over: releasing and parking are fenced, so
// being late does no harm, and not getting it written costs the next caller the rest of the lease.
const writeGrace = 3 * time.Second

// release gives the lease back. When even that cannot be written, the lease goes stale by itself.
func (e *Engine) release(ctx context.Context, op Operation, u Unresolved) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeGrace)
	defer cancel()
	pause := e.pause(op, u)
	f := op.Fence()
	p := db.KeyReleaseParams{
		LastError: bounded(u.Reason), Actor: op.Actor, Reference: bounded(u.Reference), Pause: pause, Missed: u.Missed, Anew: u.Anew, Skew: u.Skew.Seconds(),
		NotReached: u.NotExecuted && !op.Reached,
		AccountID:  f.AccountID, Key: f.Key, OperationID: f.OperationID, LeaseToken: f.LeaseToken, RecoveryPoint: string(f.Point),
	}
	if u.ServerError {
		p.ServerErrors = 1
	}
	err := db.Retry(ctx, func(ctx context.Context) error {
		_, err := e.queries.KeyRelease(ctx, e.pool, p)
		return err
	})
	log := e.logOp(op)
	if err != nil {
		log.ErrorContext(ctx, "could not release the lease; it will go stale", "cause", err)
		return
	}
	e.stats.released.Add(1)
	log.WarnContext(ctx, "no outcome yet", "reason", u.Reason, "not_executed", u.NotExecuted, "next_run_in", pause.Round(time.Millisecond).String())
}

// Abandon gives back a lease that was or may have been written after its owner had given up on it, so that the next caller need not wait for
// it to go stale. Nothing was sent under it.
func (e *Engine) Abandon(op Operation, why string) {
	if !e.enter() {
		return
	}
	go func() {
		defer e.leave()
		e.release(context.Background(), op, Unresolved{Reason: why, NotExecuted: true})
	}()
}

// park leaves the operation to a person. One alert: the log line at level error.
func (e *Engine) park(ctx context.Context, op Operation, u Unresolved) (Result, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeGrace)
	defer cancel()
	f := op.Fence()
	var n int64
	err := db.Retry(ctx, func(ctx context.Context) (err error) {
		n, err = e.queries.KeyPark(ctx, e.pool, db.KeyParkParams{
			LastError: bounded(u.Reason), Actor: op.Actor, Reference: bounded(u.Reference), AccountID: f.AccountID, Key: f.Key, OperationID: f.OperationID,
			LeaseToken: f.LeaseToken, RecoveryPoint: string(f.Point),
		})
		return err
	})
	if err != nil {
		e.logOp(op).ErrorContext(ctx, "could not park the operation; its lease will go stale", "reason", u.Reason, "cause", err)
		return Result{}, &Unknown{OperationID: op.ID, ResourceID: op.ResourceID, RetryAfter: time.Second, Cause: err}
	}
	if n == 0 { // it went stale and another driver has it, or the answer was lost: what is stored tells
		var parked *Parked
		if res, err := e.lost(ctx, op); !errors.As(err, &parked) {
			return res, err
		}
	}
	e.stats.parked.Add(1)
	e.logOp(op).ErrorContext(ctx, "parked: a person has to decide", "reason", u.Reason)
	return Result{}, &Parked{OperationID: op.ID, ResourceID: op.ResourceID}
}

// uncommitted: the outside work is done and its result could not be written. The caller learns that the outcome is unknown. When the
// database is away, the very same commit is tried on in the background while the lease lasts: it is fenced, so it can only be right or lost.
// What the database refuses is not tried on: see refused.
func (e *Engine) uncommitted(ctx context.Context, op Operation, c Commit, cause error) (Result, error) {
	if !errors.Is(cause, db.ErrUnavailable) {
		return e.refused(ctx, op, cause)
	}
	deadline, _ := ctx.Deadline()
	e.running.Add(1) // the caller is counted already, so Drain is not past its Wait
	go func() {
		defer e.running.Done()
		defer e.waiters.wake(scopedKey{op.AccountID, op.Key})
		ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), deadline)
		defer cancel()
		for ctx.Err() == nil {
			if won, err := execute(ctx, op, c); err == nil {
				if won {
					e.stats.wroteLate.Add(1)
				}
				if won && c.Next != Finished {
					e.release(ctx, op.at(c), Unresolved{Reason: "moved on late, when its caller had gone", NotExecuted: true})
				}
				e.logOp(op).InfoContext(ctx, "wrote a result late", "won", won)
				return
			} else if !errors.Is(err, db.ErrUnavailable) {
				_, _ = e.refused(ctx, op, err)
				return
			}
		}
		e.logOp(op).ErrorContext(ctx, "could not write a result; the operation will be resumed", "cause", cause)
	}()
	return Result{}, &Unknown{OperationID: op.ID, ResourceID: op.ResourceID, RetryAfter: time.Second, Cause: cause}
}

// refused: the database would not write the result. Data that it refuses it refuses for ever, and money may have moved: a person has to look. Anything else
// passes, a deployment that is half done first of all: the next driver comes to the same result, after a pause that grows.
func (e *Engine) refused(ctx context.Context, op Operation, cause error) (Result, error) {
	u := Unresolved{Reason: "the result could not be written: " + cause.Error()}
	if db.ByData(cause) {
		return e.park(ctx, op, u)
	}
	e.logOp(op).ErrorContext(ctx, "the database would not write a result", "cause", cause)
	e.release(ctx, op, u)
	return Result{}, &Unknown{OperationID: op.ID, ResourceID: op.ResourceID, RetryAfter: time.Second, Cause: cause}
}

// errorMax bounds what is stored of a reason, in bytes.
const errorMax = 1000

func bounded(s string) string { return db.Clean(s, errorMax) }
