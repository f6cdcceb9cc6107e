package idemkeys

import (
	"context"
	"fmt"
	"strings"

	"paidonce/db"
)

// Retry returns a parked operation to the drivers. by is the operator. Errors: [ErrNoOperation],
// [ErrNotParked], or the database's.
func (d *Desk) Retry(ctx context.Context, operationID, by, reason string) error {
	n, err := db.Write(ctx, d.pool, d.queries.KeyUnpark, db.KeyUnparkParams{
		OperationID: operationID, Actor: operator(by), Reason: bounded(reason),
	})
	if err != nil || n > 0 {
		return err
	}
	if _, err := d.byOperation(ctx, operationID); err != nil {
		return err
	}
	return ErrNotParked
}

func operator(by string) string { return "operator " + bounded(by) }

// Resolve ends an operation by an operator's decision, after its kind has checked it. Errors: those
// of Settle.
func (d *Desk) Resolve(ctx context.Context, operationID string, r Resolution) (Answer, error) {
	return d.resolve(ctx, operationID, "resolved", r)
}

// Adopt is Resolve for an outcome that an audit found outside; the operation's log says so.
func (d *Desk) Adopt(ctx context.Context, operationID string, r Resolution) (Answer, error) {
	return d.resolve(ctx, operationID, "adopted", r)
}

func (d *Desk) resolve(
	ctx context.Context, operationID, event string, r Resolution,
) (Answer, error) {
	by := LogEntry{Event: event, Actor: operator(r.By), Detail: r.Reason}
	return d.Settle(ctx, operationID, by, func(ctx context.Context, op *Operation) (*Commit, error) {
		kind, known := d.kinds[op.Kind]
		if !known || kind.Resolve == nil {
			return nil, fmt.Errorf(
				"operations of kind %q cannot be resolved by this binary", op.Kind,
			)
		}
		return kind.Resolve(ctx, op, r)
	})
}

// Settle ends an unfinished operation, parked or not, by an outcome that is known without driving
// it. It takes the lease, and executes what outcome returns under the fence that every driver has;
// by is the line for the operation's log. Errors: [ErrNoOperation], [ErrFinished], [ErrBusy],
// [ErrUnavailable], those of outcome, or the database's. After an error the operation is as it was.
func (d *Desk) Settle(
	ctx context.Context, operationID string, by LogEntry, outcome Phase,
) (Answer, error) {
	if !d.running.enter(unlimited) {
		return Answer{}, ErrUnavailable
	}
	defer d.running.leave()
	k, err := d.byOperation(ctx, operationID)
	if err != nil {
		return Answer{}, err
	}
	switch k.state() {
	case "":
		return Answer{}, ErrFinished
	case StateRunning:
		return Answer{}, ErrBusy
	}
	op, won, err := d.leases.takeOver(ctx, k, by.Actor, true)
	if err != nil {
		return Answer{}, err
	}
	if !won {
		return Answer{}, ErrBusy
	}
	c, err := outcome(ctx, op)
	if err != nil {
		d.undoTakeOver(ctx, op, k, err)
		return Answer{}, err
	}
	by.Detail = bounded(by.Detail)
	c.Log = &by
	won, err = execute(ctx, op, c)
	switch {
	case err != nil:
		d.undoTakeOver(ctx, op, k, err)
		return Answer{}, err
	case !won:
		return Answer{}, ErrBusy
	}
	d.waiters.wake(scopedKey{op.AccountID, op.Key})
	return *c.Answer, nil
}

const parkedBecause = "; parked because: "

// undoTakeOver leaves an operation as it was before somebody tried to settle it.
func (d *Desk) undoTakeOver(ctx context.Context, op *Operation, was record, why error) {
	u := &Unresolved{Reason: "not resolved: " + why.Error()}
	if was.state() == StateParked {
		if last := was.IdempotencyKey.LastError; last != nil {
			// Keep the original reason in sight, once.
			parts := strings.Split(*last, parkedBecause)
			u.Reason += parkedBecause + parts[len(parts)-1]
		}
		_, _ = d.runner.park(ctx, op, u) // it logs when it cannot
		return
	}
	d.leases.release(ctx, op, u)
}

// RetryNow is Retry, and drives the operation at once, in this process. Errors: those of Retry and
// of [Runner.Drive], and [ErrBusy].
func (d *Desk) RetryNow(ctx context.Context, operationID, by, reason string) (Result, error) {
	if err := d.Retry(ctx, operationID, by, reason); err != nil {
		return Result{}, err
	}
	k, err := d.byOperation(ctx, operationID)
	if err != nil {
		return Result{}, err
	}
	op, won, err := d.leases.takeOver(ctx, k, operator(by), false)
	switch {
	case err != nil:
		return Result{}, err
	case !won:
		return Result{}, ErrBusy
	}
	return d.runner.Drive(ctx, op)
}
