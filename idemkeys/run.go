package idemkeys

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"paidonce/db"
)

// Runner answers callers: it claims keys, and drives operations. Safe for concurrent use.
type Runner struct {
	*core
	leases *Leases
	recent *recentKeys
}

// Held returns why nothing may be claimed or driven at this moment, joined with [ErrUnavailable],
// or nil.
func (r *Runner) Held() error { return r.held() }

// EndWaits answers callers that wait for somebody else's work, which would keep a process from
// ending: they are told that the key is in use, and find its answer at another process. Work of
// this process goes on.
func (r *Runner) EndWaits() { r.waiters.end() }

// Drain stops new work from beginning, whoever drives it, and returns when what runs has ended.
func (r *Runner) Drain() { r.running.drain() }

// Abandon releases the lease of a claim that was, or may have been, written after its caller had
// given up, so that the next caller need not wait for it to go stale. Nothing was sent under it.
func (r *Runner) Abandon(op *Operation, why string) { r.leases.abandon(op, why) }

// Do answers a request: it runs the work when the key is free, replays the stored answer when it is
// finished, resumes it when its owner is gone. It is the only entry point for callers. The work
// must not end with the caller's connection: pass a context that is not cancelled.
//
// Errors: [ErrReused], [ErrForbidden], [ErrUnavailable], [*Refused]: nothing was begun. [*InUse]:
// somebody else works on it. [*Unknown]: the work was begun, its outcome is not known yet, and the
// same key is the right retry. [*Parked]: an operator has to decide.
func (r *Runner) Do(ctx context.Context, q Request, claim Claim) (Result, error) {
	if !r.running.enter(inFlightMax) {
		return Result{}, ErrUnavailable
	}
	defer r.running.leave()
	op, res, err := r.begin(ctx, q, claim)
	if op == nil {
		return res, err
	}
	return r.drive(ctx, op)
}

// begin claims the request's key, and returns the operation that is to be driven. When there is
// none, because the key is taken or cannot be claimed, it returns what Do returns.
func (r *Runner) begin(ctx context.Context, q Request, claim Claim) (*Operation, Result, error) {
	until := time.Now().Add(q.Wait) //tidy:clock how long this caller waits
	// A key that was seen a moment ago is very likely taken, and a claim would lose: read first. A
	// wrong guess costs one read, nothing else.
	guess := r.recent.has(q.AccountID, q.Key)
	for range claimTries {
		var k *record
		if !guess {
			op, taken, won, err := r.claim(ctx, q, claim)
			r.recent.add(q.AccountID, q.Key)
			switch {
			case errors.Is(err, ErrForbidden), isRefused(err):
				return nil, Result{}, err
			case err != nil:
				return nil, Result{}, errors.Join(ErrUnavailable, err)
			case won:
				return op, Result{}, nil
			}
			k = taken
		}
		guess = false
		res, err := r.follow(ctx, q, k, until)
		if !errors.Is(err, errVanished) {
			return nil, res, err
		}
	}
	return nil, Result{}, ErrContended
}

func isRefused(err error) bool {
	var refused *Refused
	return errors.As(err, &refused)
}

// follow stays with a key that is taken until there is an answer, or the caller's time to wait is
// over. known is what was just read of the key, or nil.
func (r *Runner) follow(
	ctx context.Context, q Request, known *record, until time.Time,
) (Result, error) {
	poll := pollFirst
	for ; ; known = nil {
		res, again, err := r.join(ctx, q, known)
		var busy *InUse
		switch {
		case again:
		case errors.As(err, &busy) &&
			r.waiters.pause(ctx, scopedKey{q.AccountID, q.Key}, poll, until):
			poll = min(poll*3/2, pollMax)
		default:
			return res, err
		}
	}
}

// commitWait is how long a caller waits for a commit: a database that takes longer is as good as
// down, and the caller should learn that while it still listens.
const commitWait = 5 * time.Second

// errVanished says that the key that was taken is gone and should be claimed again.
var errVanished = errors.New("the key is gone")

// join deals with a key that is taken. known is what was just read of it, or nil. again means that
// the key has just changed and join should be called again.
func (r *Runner) join(
	ctx context.Context, q Request, known *record,
) (res Result, again bool, err error) {
	var k record
	if known != nil {
		k = *known
	} else {
		k, err = r.readFor(ctx, q.AccountID, q.Key, q.APIKeyID)
	}
	switch {
	case errors.Is(err, ErrNotFound):
		return Result{}, false, errVanished
	case errors.Is(err, ErrForbidden):
		return Result{}, false, err
	case err != nil:
		return Result{}, false, errors.Join(ErrUnavailable, err)
	}
	row := k.IdempotencyKey
	switch judge(k, q.Fingerprint) {
	case verdictReused:
		return Result{}, false, ErrReused
	case verdictReplay:
		res, err = stored(k)
		return res, false, err
	case verdictForget:
		if err := r.forget(ctx, row); err != nil {
			return Result{}, false, errors.Join(ErrUnavailable, err)
		}
		return Result{}, false, errVanished
	case verdictParked:
		return Result{}, false, &Parked{OperationID: row.OperationID, ResourceID: row.ResourceID}
	case verdictInUse:
		left := r.cfg.StaleAfter - seconds(k.LeaseAgeSeconds)
		return Result{}, false, &InUse{
			OperationID: row.OperationID, RetryAfter: min(max(left, 0), inUseRetryMax),
		}
	case verdictNotYet:
		return Result{}, false, &Unknown{
			OperationID: row.OperationID, ResourceID: row.ResourceID,
			RetryAfter: attemptPause - k.attemptAge(),
			Cause:      errors.New("tried often, and just now"),
		}
	case verdictTakeOver:
		op, won, err := r.leases.takeOver(ctx, k, caller(q), false)
		switch {
		// nothing is done about it now, but something may have been before
		case errors.Is(err, ErrHeld) && row.FirstAttemptAt != nil:
			return Result{}, false, &Unknown{
				OperationID: row.OperationID, ResourceID: row.ResourceID, RetryAfter: heldRetry,
				Cause: err,
			}
		case err != nil:
			return Result{}, false, errors.Join(ErrUnavailable, err)
		case !won:
			if err := r.heldBack(ctx); err != nil {
				return Result{}, false, errors.Join(ErrUnavailable, err)
			}
			return Result{}, true, nil
		}
		r.log.InfoContext(
			ctx, "took over an operation", "operation_id", op.ID, "request_id", q.RequestID,
			"attempt", op.Attempts, "point", op.Point,
		)
		res, err = r.drive(ctx, op)
		// Failed means proven that nothing moved: the same request runs anew at once.
		return res, err == nil && res.Status == Failed, err
	}
	return Result{}, false, fmt.Errorf(
		"the key's rule %d of fingerprints is newer than this binary: %w", row.HashVersion,
		ErrUnavailable,
	)
}

// heldRetry is when to come back while work is held back: a provider that was away is asked again
// every second at first.
const heldRetry = 2 * time.Second

// inUseRetryMax bounds when a caller is told to come back: most operations end within a second or
// two, so it should not wait for the whole lease.
const inUseRetryMax = 2 * time.Second

// Drive works on an operation whose lease the caller holds, phase by phase, until it is finished or
// its outcome is unknown. In a process that is ending it gives the lease back. Errors: [*Unknown],
// [*Parked], [*InUse] when the lease was lost.
func (r *Runner) Drive(ctx context.Context, op *Operation) (Result, error) {
	if !r.running.enter(unlimited) {
		r.leases.release(ctx, op, &Unresolved{Reason: "its process is ending", NotExecuted: true})
		return Result{}, &Unknown{
			OperationID: op.ID, ResourceID: op.ResourceID, RetryAfter: time.Second,
			NotExecuted: !op.Reached, Cause: ErrUnavailable,
		}
	}
	defer r.running.leave()
	return r.drive(ctx, op)
}

// drive runs op's phases until it is finished or has no outcome. Do, the reconciler and operators
// all end up here. The caller is counted in running. It takes at most one commit for each point of
// the table. One more turn parks an operation that a commit moved to a point that is not in the
// table.
func (r *Runner) drive(ctx context.Context, op *Operation) (Result, error) {
	// From here on the work is bounded by its lease, not by whoever asked for it.
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), op.leased.Add(r.cfg.RunLimit()))
	defer cancel()
	defer r.waiters.wake(scopedKey{op.AccountID, op.Key})
	phases := r.kinds[op.Kind].Phases
	for range len(phases) + 1 {
		c, err := r.work(ctx, phases, op)
		next, res, err := r.commit(ctx, op, c, err)
		if next == nil {
			return res, err
		}
		op = next
	}
	return r.park(ctx, op, &Unresolved{Reason: "its phases go in a circle"})
}

// commit executes what a phase returned: a commit, or unknown. next is the operation at its next
// point; nil when there is none, and then the rest is what drive returns.
func (r *Runner) commit(
	ctx context.Context, op *Operation, c *Commit, unknown error,
) (next *Operation, res Result, err error) {
	if unknown != nil {
		res, err = r.unresolved(ctx, op, unknown)
		return nil, res, err
	}
	if err := c.check(); err != nil {
		res, err := r.park(ctx, op, &Unresolved{Reason: err.Error()})
		return nil, res, err
	}
	if op.Attempts > 1 {
		c.Log = &LogEntry{Event: "settled", Actor: op.Actor, Detail: c.Note}
	}
	won, err := execute(ctx, op, c)
	switch {
	case err != nil:
		res, err = r.uncommitted(ctx, op, c, err)
		return nil, res, err
	case !won:
		res, err = r.lost(ctx, op)
		return nil, res, err
	case c.Next == Finished:
		return nil, Result{
			Answer: *c.Answer, OperationID: op.ID, OriginalRequest: op.RequestID, Status: c.Status,
		}, nil
	}
	return op.at(c), Result{}, nil
}

func execute(ctx context.Context, op *Operation, c *Commit) (won bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, commitWait)
	defer cancel()
	won, err = c.Write.Execute(ctx, op.Fence(), c)
	if errors.Is(err, db.ErrCommitUnknown) {
		// The fence makes this safe: if the first commit took place, the second finds nothing to
		// write.
		won, err = c.Write.Execute(ctx, op.Fence(), c)
	}
	return won, err
}

// check returns an error for a commit that no phase may return.
func (c *Commit) check() error {
	if c == nil || c.Write == nil || c.Next == "" {
		return errors.New("a phase returned an empty commit")
	}
	final := c.Next == Finished
	if final != (c.Answer != nil) || final && c.Status != Completed && c.Status != Failed {
		return errors.New("a phase returned a commit that neither answers nor moves on")
	}
	return nil
}

// work runs the phase of the operation's point. A panic in it is a bug whose effects are unknown:
// it parks the operation, and the process goes on.
func (r *Runner) work(
	ctx context.Context, phases Phases, op *Operation,
) (_ *Commit, err error) {
	phase, err := phaseOf(phases, op)
	if err != nil {
		return nil, err
	}
	defer r.recovered(ctx, op, &err)
	return phase(ctx, op)
}

// phaseOf returns the phase of the operation's point. The error is that of an operation that has to
// be parked instead.
func phaseOf(phases Phases, op *Operation) (Phase, error) {
	phase, known := phases[op.Point]
	if plan, why := planFor(op, known, true); plan == Park {
		return nil, &Unresolved{Reason: why, Park: true}
	}
	return phase, nil
}

// recovered is deferred by work, and sets its error after a panic.
func (r *Runner) recovered(ctx context.Context, op *Operation, err *error) {
	if p := recover(); p != nil {
		r.log.ErrorContext(
			ctx, "a phase panicked", "operation_id", op.ID, "point", op.Point, "panic", p, "stack",
			string(debug.Stack()),
		)
		*err = &Unresolved{Reason: fmt.Sprintf("panic at %q", op.Point), Park: true}
	}
}

// lost deals with an operation that somebody else took over. Our result is discarded; what is
// stored counts.
func (r *Runner) lost(ctx context.Context, op *Operation) (Result, error) {
	r.stats.lost.Add(1)
	k, err := r.read(ctx, op.AccountID, op.Key)
	if err != nil {
		return Result{}, &Unknown{
			OperationID: op.ID, ResourceID: op.ResourceID, RetryAfter: time.Second, Cause: err,
		}
	}
	row := k.IdempotencyKey
	switch {
	// failed: the caller sees that the same key may run anew
	case row.OperationID == op.ID && Status(row.Status) != InProgress:
		return stored(k)
	case row.ParkedAt != nil:
		return Result{}, &Parked{OperationID: row.OperationID, ResourceID: row.ResourceID}
	}
	r.log.WarnContext(
		ctx, "lost the lease", "operation_id", op.ID, "attempt", op.Attempts, "point", op.Point,
	)
	return Result{}, &InUse{OperationID: op.ID, RetryAfter: time.Second}
}

// stored reads the answer of a finished key.
func stored(k record) (Result, error) {
	row := k.IdempotencyKey
	a := Answer{Code: int(*row.ResponseCode), Body: row.ResponseBody}
	if err := json.Unmarshal(row.ResponseHeaders, &a.Header); err != nil {
		return Result{}, fmt.Errorf("stored headers of %s: %w", row.OperationID, err)
	}
	return Result{
		Answer: a, OperationID: row.OperationID, Status: Status(row.Status), Replayed: true,
		OriginalRequest: row.RequestID,
	}, nil
}
