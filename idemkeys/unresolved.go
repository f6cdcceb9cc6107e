package idemkeys

import (
	"context"
	"errors"
	"time"

	"paidonce/db"
)

// unresolved ends a run without an outcome: the point stays, the lease goes back, and the next
// driver resumes there.
func (r *Runner) unresolved(ctx context.Context, op *Operation, cause error) (Result, error) {
	var u *Unresolved
	if !errors.As(cause, &u) {
		u = &Unresolved{Reason: cause.Error()}
	}
	if u.Park {
		return r.park(ctx, op, u)
	}
	r.leases.release(ctx, op, u)
	return Result{}, &Unknown{
		OperationID: op.ID, ResourceID: op.ResourceID, RetryAfter: max(u.RetryAfter, time.Second),
		NotExecuted: u.NotExecuted && !op.Reached, Obstacle: u.Obstacle, Cause: u,
	}
}

// park leaves the operation to an operator. The log line at level error is the alert, of which
// there is one.
func (r *Runner) park(ctx context.Context, op *Operation, u *Unresolved) (Result, error) {
	parked, err := r.leases.park(ctx, op, u)
	if err != nil {
		return Result{}, &Unknown{
			OperationID: op.ID, ResourceID: op.ResourceID, RetryAfter: time.Second, Cause: err,
		}
	}
	// it went stale and another driver has it, or the answer was lost: what is stored tells
	if !parked {
		var parked *Parked
		if res, err := r.lost(ctx, op); !errors.As(err, &parked) {
			return res, err
		}
	}
	r.stats.parked.Add(1)
	r.logOp(op).ErrorContext(ctx, "parked: an operator has to decide", "reason", u.Reason)
	return Result{}, &Parked{OperationID: op.ID, ResourceID: op.ResourceID}
}

// uncommitted deals with outside work that is done and whose result could not be written. The
// caller learns that the outcome is unknown. While the database is away, the same commit is tried
// again in the background until the lease ends: it is fenced, so it can only be right or lost. What
// the database refuses is not tried again: see refused.
func (r *Runner) uncommitted(
	ctx context.Context, op *Operation, c *Commit, cause error,
) (Result, error) {
	if !errors.Is(cause, db.ErrUnavailable) {
		return r.refused(ctx, op, cause)
	}
	deadline, _ := ctx.Deadline()
	r.running.background(func() {
		defer r.waiters.wake(scopedKey{op.AccountID, op.Key})
		ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), deadline)
		defer cancel()
		for ctx.Err() == nil {
			if won, err := execute(ctx, op, c); err == nil {
				if won {
					r.stats.wroteLate.Add(1)
				}
				if won && c.Next != Finished {
					r.leases.release(
						ctx, op.at(c),
						&Unresolved{
							Reason: "moved on late, when its caller had gone", NotExecuted: true,
						},
					)
				}
				r.logOp(op).InfoContext(ctx, "wrote a result late", "won", won)
				return
			} else if !errors.Is(err, db.ErrUnavailable) {
				_, _ = r.refused(ctx, op, err)
				return
			}
		}
		r.logOp(op).ErrorContext(
			ctx, "could not write a result; the operation will be resumed", "cause", cause,
		)
	})
	return Result{}, &Unknown{
		OperationID: op.ID, ResourceID: op.ResourceID, RetryAfter: time.Second, Cause: cause,
	}
}

// refused deals with a result that the database would not write. Data that it refuses it will
// always refuse, and the work may have had its effect, so an operator has to look. Other reasons
// pass by themselves, such as a deployment that is half done: the next driver comes to the same
// result, after a pause that grows.
func (r *Runner) refused(ctx context.Context, op *Operation, cause error) (Result, error) {
	u := &Unresolved{Reason: "the result could not be written: " + cause.Error()}
	if db.ByData(cause) {
		return r.park(ctx, op, u)
	}
	r.logOp(op).ErrorContext(ctx, "the database would not write a result", "cause", cause)
	r.leases.release(ctx, op, u)
	return Result{}, &Unknown{
		OperationID: op.ID, ResourceID: op.ResourceID, RetryAfter: time.Second, Cause: cause,
	}
}
