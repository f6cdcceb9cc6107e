package idemkeys

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"paidonce/db"
)

// Claim is the domain's half of commit 1: it writes the key's row and the domain's rows in one transaction, unless the key is taken.
// It is called again, with another id and token, when the key was removed meanwhile. won is false when the key is taken or the caller may not claim.
type Claim func(ctx context.Context, r Request, operationID, leaseToken string) (op Operation, won bool, err error)

// claimTries bounds the race with sweeps: a key that is taken at the insert and gone at the read, this often in a row, is not one.
const claimTries = 5

// Do answers a request: it runs the work when the key is free, replays the stored answer when it is finished, resumes it when its owner is gone.
// It is the one way in for callers. The work does not hang on ctx being cancelled: pass a context without cancel.
//
// Errors: [ErrReused], [ErrNotClaimable], [ErrUnavailable], [*Refused]: nothing was begun. [*InUse]: somebody else is at it. [*Unknown]: begun, outcome
// not known yet, the same key is the right retry. [*Parked]: a person has to decide.
func (e *Engine) Do(ctx context.Context, r Request, claim Claim) (Result, error) {
	if !e.enter() {
		return Result{}, ErrUnavailable
	}
	defer e.leave()
	until := time.Now().Add(r.Wait) //tidy:clock how long this caller waits
	// A key that was seen a moment ago is taken in all likelihood: look first, a claim would lose. A wrong guess costs a question, nothing else.
	guess := e.seen.has(r.AccountID, r.Key)
	for range claimTries {
		var k *record
		if !guess {
			op, read, won, err := e.claim(ctx, r, claim)
			e.seen.add(r.AccountID, r.Key)
			switch {
			case errors.Is(err, ErrNotClaimable), isRefused(err):
				return Result{}, err
			case err != nil:
				return Result{}, errors.Join(ErrUnavailable, err)
			case won:
				return e.Drive(ctx, op)
			}
			k = read
		}
		guess = false
		res, err := e.follow(ctx, r, k, until)
		if !errors.Is(err, errVanished) {
			return res, err
		}
	}
	return Result{}, ErrNotClaimable
}

func isRefused(err error) bool {
	var refused *Refused
	return errors.As(err, &refused)
}

// follow stays with a key that is taken until there is an answer, or the caller's time to wait is over. known is what was just read of the key, or nil.
func (e *Engine) follow(ctx context.Context, r Request, known *record, until time.Time) (Result, error) {
	look := lookFirst
	for ; ; known = nil {
		res, again, err := e.join(ctx, r, known)
		var busy *InUse
		switch {
		case again:
		case errors.As(err, &busy) && e.waiters.pause(ctx, scopedKey{r.AccountID, r.Key}, look, until):
			look = min(look*3/2, lookMax)
		default:
			return res, err
		}
	}
}

// commitWait is how long a caller waits for a commit: a database that takes longer is as good as down, and the caller should hear so
// while it still listens.
const commitWait = 5 * time.Second

// errVanished: the key that was taken is gone; claim again.
var errVanished = errors.New("the key is gone")

// claim runs commit 1. Of a claim that lost it returns what was read of the key, nil when the key is gone again. A claim of ours whose answer
// was lost is found by its token.
func (e *Engine) claim(ctx context.Context, r Request, claim Claim) (Operation, *record, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, commitWait)
	defer cancel()
	if k, err := e.passGate(ctx, r); err != nil || k != nil {
		return Operation{}, k, false, err
	}
	asked := beforeLease()
	op, won, err := claim(ctx, r, newOperationID(), newLeaseToken())
	if err != nil && errors.Is(err, db.ErrUnavailable) && !errors.Is(err, db.ErrNotWritten) {
		e.Abandon(op, "its caller did not hear that it had claimed it")
	}
	if err != nil || won {
		return op, nil, won, err
	}
	k, err := e.readFor(ctx, r.AccountID, r.Key, r.APIKeyID)
	switch {
	case errors.Is(err, ErrNotFound):
		return op, nil, false, e.whyNot(ctx, r)
	case err != nil:
		return op, nil, false, err
	}
	row := k.IdempotencyKey
	if row.OperationID == op.ID && row.LeaseToken != nil && *row.LeaseToken == op.LeaseToken {
		op.Params = row.Params
		op.CreatedAt, op.FirstAttemptAt, op.LastAttemptAt, op.SentAt = row.CreatedAt, row.CreatedAt, row.CreatedAt, row.CreatedAt
		return op.Leased(k.Now, asked), nil, true, nil
	}
	return op, &k, false, nil
}

// join deals with a key that is taken. known is what was just read of it, or nil. again asks to be called again: the key has just changed.
func (e *Engine) join(ctx context.Context, r Request, known *record) (res Result, again bool, err error) {
	var k record
	if known != nil {
		k = *known
	} else {
		k, err = e.readFor(ctx, r.AccountID, r.Key, r.APIKeyID)
	}
	switch {
	case errors.Is(err, ErrNotFound):
		return Result{}, false, errVanished
	case errors.Is(err, ErrNotClaimable):
		return Result{}, false, err
	case err != nil:
		return Result{}, false, errors.Join(ErrUnavailable, err)
	}
	row := k.IdempotencyKey
	switch judge(k, r.Fingerprint) {
	case sayReused:
		return Result{}, false, ErrReused
	case replay:
		res, err = stored(k)
		return res, false, err
	case forget:
		if err := e.forget(ctx, row); err != nil {
			return Result{}, false, errors.Join(ErrUnavailable, err)
		}
		return Result{}, false, errVanished
	case sayParked:
		return Result{}, false, &Parked{OperationID: row.OperationID, ResourceID: row.ResourceID}
	case sayInUse:
		left := e.cfg.StaleAfter - seconds(k.LeaseAgeSeconds)
		return Result{}, false, &InUse{OperationID: row.OperationID, RetryAfter: min(max(left, 0), inUseRetryMax)}
	case sayNotYet:
		return Result{}, false, &Unknown{OperationID: row.OperationID, ResourceID: row.ResourceID, RetryAfter: eagerPause - k.sinceAttempt(), Cause: errors.New("tried often, and just now")}
	case takeOverNow:
		op, won, err := e.takeOver(ctx, k, "request "+r.RequestID, false)
		switch {
		case errors.Is(err, ErrHeld) && row.FirstAttemptAt != nil: // nothing is done about it now, but something may have been before
			return Result{}, false, &Unknown{OperationID: row.OperationID, ResourceID: row.ResourceID, RetryAfter: heldRetry, Cause: err}
		case err != nil:
			return Result{}, false, errors.Join(ErrUnavailable, err)
		case !won:
			if err := e.heldBack(ctx); err != nil {
				return Result{}, false, errors.Join(ErrUnavailable, err)
			}
			return Result{}, true, nil
		}
		e.log.InfoContext(ctx, "took over an operation", "operation_id", op.ID, "request_id", r.RequestID, "attempt", op.Attempts, "point", op.Point)
		res, err = e.Drive(ctx, op)
		// Failed means proven that nothing moved: the same request runs anew at once.
		return res, err == nil && res.Status == Failed, err
	}
	return Result{}, false, fmt.Errorf("the key's rule %d of fingerprints is newer than this binary: %w", row.HashVersion, ErrUnavailable)
}

// heldRetry: a provider that was away is asked again every second at first.
const heldRetry = 2 * time.Second

// inUseRetryMax: most operations end within a second or two, so a caller that is told to come back should not wait for the whole lease.
const inUseRetryMax = 2 * time.Second

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// Drive works on an operation whose lease the caller holds, phase by phase, until it is finished or its outcome is unknown.
// It is the one runner: the HTTP handler and the reconciler both end up here. Errors: [*Unknown], [*Parked], [*InUse] when the lease was lost.
func (e *Engine) Drive(ctx context.Context, op Operation) (Result, error) {
	// From here on the work hangs on its lease, not on whoever asked for it.
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), op.leased.Add(e.cfg.RunLimit()))
	defer cancel()
	defer e.waiters.wake(scopedKey{op.AccountID, op.Key})
	phases := e.kinds[op.Kind].Phases
	for range len(phases) + 1 {
		phase, known := phases[op.Point]
		if plan, why := planFor(op, known, true); plan == Park {
			return e.park(ctx, op, Unresolved{Reason: why})
		}
		c, err := e.work(ctx, phase, op)
		if err != nil {
			return e.unresolved(ctx, op, err)
		}
		if err := c.check(); err != nil {
			return e.park(ctx, op, Unresolved{Reason: err.Error()})
		}
		if op.Attempts > 1 {
			c.Log = &LogEntry{Event: "settled", Actor: op.Actor, Detail: c.Note}
		}
		won, err := execute(ctx, op, c)
		if err != nil {
			return e.uncommitted(ctx, op, c, err)
		}
		if !won {
			return e.lost(ctx, op)
		}
		if c.Next == Finished {
			return Result{Answer: *c.Answer, OperationID: op.ID, OriginalRequest: op.RequestID, Status: c.Status}, nil
		}
		op = op.at(c)
	}
	return e.park(ctx, op, Unresolved{Reason: "its phases go in a circle"})
}

func execute(ctx context.Context, op Operation, c Commit) (won bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, commitWait)
	defer cancel()
	won, err = c.Write.Execute(ctx, op.Fence(), c)
	if errors.Is(err, db.ErrCommitUnknown) {
		// The fence tells: if the first commit took place, the second finds nothing to write.
		won, err = c.Write.Execute(ctx, op.Fence(), c)
	}
	return won, err
}

// check holds a phase to what a commit may be.
func (c Commit) check() error {
	final := c.Next == Finished
	switch {
	case c.Write == nil || c.Next == "":
		return errors.New("a phase returned an empty commit")
	case final != (c.Answer != nil), final && c.Status != Completed && c.Status != Failed:
		return errors.New("a phase returned a commit that neither answers nor moves on")
	}
	return nil
}

// work runs a phase. A panic in it is a fault of ours whose effects are unknown: it parks the operation, never the process.
func (e *Engine) work(ctx context.Context, phase Phase, op Operation) (c Commit, err error) {
	defer func() {
		if p := recover(); p != nil {
			e.log.ErrorContext(ctx, "a phase panicked", "operation_id", op.ID, "point", op.Point, "panic", p, "stack", string(debug.Stack()))
			err = &Unresolved{Reason: fmt.Sprintf("panic at %q", op.Point), Park: true}
		}
	}()
	return phase(ctx, op)
}

// lost: somebody else took the operation over. The own result is discarded; what is stored counts.
func (e *Engine) lost(ctx context.Context, op Operation) (Result, error) {
	e.stats.lost.Add(1)
	k, err := e.read(ctx, op.AccountID, op.Key)
	if err != nil {
		return Result{}, &Unknown{OperationID: op.ID, ResourceID: op.ResourceID, RetryAfter: time.Second, Cause: err}
	}
	row := k.IdempotencyKey
	switch {
	case row.OperationID == op.ID && Status(row.Status) != InProgress: // failed: the caller sees that the same key may run anew
		return stored(k)
	case row.ParkedAt != nil:
		return Result{}, &Parked{OperationID: row.OperationID, ResourceID: row.ResourceID}
	}
	e.log.WarnContext(ctx, "lost the lease", "operation_id", op.ID, "attempt", op.Attempts, "point", op.Point)
	return Result{}, &InUse{OperationID: op.ID, RetryAfter: time.Second}
}

// stored reads the answer of a finished key.
func stored(k record) (Result, error) {
	row := k.IdempotencyKey
	a := Answer{Code: int(*row.ResponseCode), Body: row.ResponseBody}
	if err := json.Unmarshal(row.ResponseHeaders, &a.Header); err != nil {
		return Result{}, fmt.Errorf("stored headers of %s: %w", row.OperationID, err)
	}
	return Result{Answer: a, OperationID: row.OperationID, Status: Status(row.Status), Replayed: true, OriginalRequest: row.RequestID}, nil
}

func (e *Engine) forget(ctx context.Context, row db.IdempotencyKey) error {
	return db.Retry(ctx, func(ctx context.Context) error {
		_, err := e.queries.KeyForget(ctx, e.pool, db.KeyForgetParams{AccountID: row.AccountID, Key: row.Key, OperationID: row.OperationID})
		return err
	})
}

func (e *Engine) logOp(op Operation) *slog.Logger {
	return e.log.With("operation_id", op.ID, "request_id", op.RequestID, "attempt", op.Attempts, "point", op.Point)
}
