package charges

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"paidonce/idemkeys"
	"paidonce/provider"
)

// What phases of all kinds conclude when they know no outcome. Each of them ends: in an outcome, in proof that nothing moved, or with a person.

// doubt is what a provider's error leaves us with.
type doubt struct{ *idemkeys.Unresolved }

func (d doubt) Unwrap() error { return d.Unresolved }

// lookUp: an error of a look-up says nothing of the charge. It neither counts as a server error of a send nor shows that nothing was executed.
func (d doubt) lookUp() error {
	d.NotExecuted, d.ServerError = false, false
	d.Reason = "look-up: " + d.Reason
	return d
}

func unresolved(err error) doubt {
	u := &idemkeys.Unresolved{Reason: err.Error()}
	var p *provider.Error
	if errors.As(err, &p) {
		u.NotExecuted = p.Kind == provider.NotExecuted
		u.ServerError = p.ServerError
		u.Park = p.Kind == provider.Conflict
		u.RetryAfter = p.RetryAfter
		u.Reference = p.RequestID
		switch {
		case p.Alert:
			u.Obstacle = idemkeys.ObstacleCredentials
		case p.HTTPStatus == http.StatusTooManyRequests:
			u.Obstacle = idemkeys.ObstacleRateLimit
		}
	}
	return doubt{u}
}

// lookedUp is what an error of a look-up comes to. A provider that has no such read at all (a gateway or a double that knows only charges) has given its word
// on the derived key: within its window, sending the same again under the same key makes nothing twice, so that the look-up counts as one that found nothing.
// Once the key is not to be trusted, nothing can tell any more what became of the operation. Stripe has all the reads.
func lookedUp(op idemkeys.Operation, err error) error {
	switch {
	case err == nil:
		return nil
	case !noSuchRead(err):
		return unresolved(err).lookUp()
	case op.Plan() == idemkeys.LookUpThenSend:
		return nil
	}
	return parked("the provider cannot be asked what became of it, and its word on the derived key counts no more: %v", err)
}

// noSuchRead reports whether the provider has no such thing to read at all: a gateway, or a double.
func noSuchRead(err error) bool {
	var p *provider.Error
	return errors.As(err, &p) &&
		(p.HTTPStatus == http.StatusNotFound || p.HTTPStatus == http.StatusMethodNotAllowed || p.HTTPStatus == http.StatusNotImplemented)
}

// parked leaves the operation to a person, before or instead of anything that would be sent.
func parked(format string, args ...any) error {
	return &idemkeys.Unresolved{Park: true, Reason: fmt.Sprintf(format, args...)}
}

// thaw reads what is frozen of an operation. What cannot be read leaves it to a person.
func thaw[T any](params []byte) (frozen T, err error) {
	if err := json.Unmarshal(params, &frozen); err != nil {
		return frozen, parked("frozen parameters cannot be read: %v", err)
	}
	return frozen, nil
}

// only is the one object that a look-up found of an operation; nil, nil: it found none. Several, or one that is
// not what was asked for, are for a person.
func only[T any](hits []T, noun string, matches func(T) error) (*T, error) {
	switch len(hits) {
	case 0:
		return nil, nil
	case 1:
	default:
		return nil, parked("the provider has %d %ss of this operation", len(hits), noun)
	}
	if err := matches(hits[0]); err != nil {
		return nil, parked("%v", err)
	}
	return &hits[0], nil
}

// unread is the error of a phase that could not read a row of ours. Of a row that is gone no outcome can be written, so nothing is sent for it.
func unread(what string, err error) error {
	if errors.Is(err, ErrNotFound) {
		return parked("%s is gone from our database: nothing can be settled there, so nothing was sent", what)
	}
	return &idemkeys.Unresolved{Reason: what + " cannot be read: " + err.Error(), NotExecuted: true}
}

// stillPending checks that a resumed operation has a pending charge that its outcome can be written to. The first attempt has just inserted it.
func (s *Store) stillPending(ctx context.Context, op idemkeys.Operation) error {
	if op.Attempts <= 1 {
		return nil
	}
	row, err := s.row(ctx, op.AccountID, op.ResourceID)
	switch {
	case err != nil:
		return unread("the charge "+op.ResourceID, err)
	case row.OperationID != op.ID:
		return parked("the charge %s is that of the operation %s", row.ID, row.OperationID)
	case row.Status != string(provider.Pending) || row.ProviderID != nil:
		return parked("the charge %s is %s already, without an answer under its key", row.ID, row.Status)
	}
	return nil
}

// stillReserved does for refunds what stillPending does for charges.
func (s *Store) stillReserved(ctx context.Context, op idemkeys.Operation, f refundFrozen) error {
	if op.Attempts <= 1 {
		return nil
	}
	row, err := s.refund(ctx, op.AccountID, op.ResourceID)
	switch {
	case err != nil:
		return unread("the refund "+op.ResourceID, err)
	case row.OperationID != op.ID:
		return parked("the refund %s is that of the operation %s", row.ID, row.OperationID)
	case row.Status != string(provider.Pending) || row.ProviderID != nil:
		return parked("the refund %s is %s already, without an answer under its key", row.ID, row.Status)
	}
	if _, err := s.row(ctx, op.AccountID, f.Charge); err != nil {
		return unread("the charge "+f.Charge, err)
	}
	return nil
}
