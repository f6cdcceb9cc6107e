package charges

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"paidonce/db"
	"paidonce/idemkeys"
	"paidonce/provider"
)

// What phases of all kinds conclude when they know no outcome. Every operation ends: with an
// outcome, with proof that nothing moved, or by an operator.

// unresolved returns what a phase knows after a provider's error.
func unresolved(err error) *idemkeys.Unresolved {
	u := &idemkeys.Unresolved{Reason: err.Error()}
	var p *provider.Error
	if !errors.As(err, &p) {
		return u
	}
	u.NotExecuted, u.RetryAfter, u.Reference = p.Kind.NotExecuted(), p.RetryAfter, p.RequestID
	switch p.Kind {
	case provider.StoredFailure:
		u.ServerError = true
	case provider.Conflict:
		u.Park = true
	case provider.Credentials:
		u.Obstacle = idemkeys.ObstacleCredentials
	case provider.RateLimited:
		u.Obstacle = idemkeys.ObstacleRateLimit
	}
	return u
}

// notLookedUp returns what a phase knows after a look-up failed. The error says nothing about the
// charge: neither that nothing was executed, nor what the key replays.
func notLookedUp(err error) *idemkeys.Unresolved {
	u := unresolved(err)
	u.NotExecuted, u.ServerError = false, false
	u.Reason = "look-up: " + u.Reason
	return u
}

// lookedUp decides what an error of a look-up means. A provider without this read, such as a
// gateway that knows only charges, still guarantees the derived key: within its window, sending the
// same again under the same key creates nothing twice, so the look-up counts as one that found
// nothing. After the window nobody can find out what became of the operation. Stripe has all the
// reads.
func lookedUp(op *idemkeys.Operation, err error) error {
	switch {
	case err == nil:
		return nil
	case provider.KindOf(err) != provider.Unsupported:
		return notLookedUp(err)
	case op.Plan() == idemkeys.LookUpThenSend:
		return nil
	}
	return parked(
		"the provider cannot be asked what became of it, and its word on the derived key counts no more: %v",
		err,
	)
}

// parked returns the error that leaves the operation to an operator, before or instead of sending
// anything.
func parked(format string, args ...any) error {
	return &idemkeys.Unresolved{Park: true, Reason: fmt.Sprintf(format, args...)}
}

// readFrozen reads the frozen parameters of an operation. An operation whose parameters cannot be
// read is parked.
func readFrozen[T any](params []byte) (*T, error) {
	frozen := new(T)
	if err := json.Unmarshal(params, frozen); err != nil {
		return frozen, parked("frozen parameters cannot be read: %v", err)
	}
	return frozen, nil
}

// single returns the one object that a look-up found for an operation, or nil, nil if it found
// none. Several objects, or one that is not what was requested, park the operation.
func single[T any](hits []T, noun string, matches func(*T) error) (*T, error) {
	switch len(hits) {
	case 0:
		return nil, nil
	case 1:
	default:
		return nil, parked("the provider has %d %ss of this operation", len(hits), noun)
	}
	if err := matches(&hits[0]); err != nil {
		return nil, parked("%v", err)
	}
	return &hits[0], nil
}

// rowError is the error of a phase that could not read one of our rows. No outcome can be written
// to a row that is gone, so nothing is sent for it.
func rowError(what string, err error) error {
	if errors.Is(err, ErrNotFound) {
		return parked(
			"%s is gone from our database: nothing can be settled there, so nothing was sent", what,
		)
	}
	return &idemkeys.Unresolved{Reason: what + " cannot be read: " + err.Error(), NotExecuted: true}
}

// checkPending checks that a resumed operation has a pending charge that its outcome can be written
// to. The first attempt has just inserted it.
func (s *Store) checkPending(ctx context.Context, op *idemkeys.Operation) error {
	if op.Attempts <= 1 {
		return nil
	}
	row, err := s.row(ctx, op.AccountID, op.ResourceID)
	if err != nil {
		return rowError("the charge "+op.ResourceID, err)
	}
	return stillPending(op, row)
}

// stillPending checks that the outcome of an operation can be written to its charge.
func stillPending(op *idemkeys.Operation, row db.Charge) error {
	switch {
	case row.OperationID != op.ID:
		return parked("the charge %s is that of the operation %s", row.ID, row.OperationID)
	case row.Status != string(provider.Pending) || row.ProviderID != nil:
		return parked(
			"the charge %s is %s already, without an answer under its key", row.ID, row.Status,
		)
	}
	return nil
}

// checkReserved does for refunds what checkPending does for charges.
func (s *Store) checkReserved(ctx context.Context, op *idemkeys.Operation, f *refundFrozen) error {
	if op.Attempts <= 1 {
		return nil
	}
	row, err := s.refund(ctx, op.AccountID, op.ResourceID)
	switch {
	case err != nil:
		return rowError("the refund "+op.ResourceID, err)
	case row.OperationID != op.ID:
		return parked("the refund %s is that of the operation %s", row.ID, row.OperationID)
	case row.Status != string(provider.Pending) || row.ProviderID != nil:
		return parked(
			"the refund %s is %s already, without an answer under its key", row.ID, row.Status,
		)
	}
	if _, err := s.row(ctx, op.AccountID, f.Charge); err != nil {
		return rowError("the charge "+f.Charge, err)
	}
	return nil
}
