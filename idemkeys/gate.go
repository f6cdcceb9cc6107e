package idemkeys

import (
	"context"
	"errors"
	"fmt"

	"paidonce/db"
)

var (
	// ErrHeld: nothing may be claimed or driven at this moment, for a reason that is none of the request's.
	ErrHeld = errors.New("work is held back")
	// ErrProviderAway is the [ErrHeld] of a provider that has not answered yet what has to be known of it.
	ErrProviderAway = fmt.Errorf("the provider has not answered what has to be known of it: %w", ErrHeld)
)

// errHeld: what is in the database holds claims, and this process did not know it yet.
var errHeld = fmt.Errorf("the database's history is not vouched for: %w, %w", ErrHeld, ErrUnavailable)

// passGate returns at once while the gate is open. Otherwise a key that is taken is returned, for what
// is stored may be replayed; a claim of any other waits for the gate. Errors: the gate's, the database's.
func (e *Engine) passGate(ctx context.Context, r Request) (*record, error) {
	held := e.Held()
	if held == nil {
		return nil, nil
	}
	k, err := e.readFor(ctx, r.AccountID, r.Key, r.APIKeyID)
	if errors.Is(err, ErrNotFound) {
		if found, err := e.recovered(ctx, r); err != nil || found {
			return nil, err // claim: the key is taken, and is read again
		}
		if e.gate == nil || e.hold != nil && e.hold() != nil {
			return nil, held
		}
		return nil, e.gate.Wait(ctx)
	}
	if err != nil {
		return nil, err
	}
	return &k, nil
}

// whyNot deals with a key that could not be claimed although it is not there. One that the database had
// forgotten and that was rebuilt since gets its name back: then it is there. Errors: that claims are held,
// or the database's.
func (e *Engine) whyNot(ctx context.Context, r Request) error {
	found, err := e.recovered(ctx, r)
	if err != nil || found {
		return err
	}
	return e.heldBack(ctx)
}

// recovered moves the row of a rebuilt key to where every other one is, and reports whether there was one.
func (e *Engine) recovered(ctx context.Context, r Request) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	var n int64
	err := db.Retry(ctx, func(ctx context.Context) (err error) {
		n, err = e.queries.KeyRecovered(ctx, e.pool, db.KeyRecoveredParams{AccountID: r.AccountID, Key: r.Key})
		return err
	})
	return n > 0, err
}

// heldBack returns an error when the database holds claims.
func (e *Engine) heldBack(ctx context.Context) error {
	var held bool
	err := db.Retry(ctx, func(ctx context.Context) (err error) {
		held, err = e.queries.RecoveryOpened(ctx, e.pool)
		return err
	})
	if err != nil || !held {
		return err
	}
	if e.gate != nil {
		e.gate.Kick()
	}
	return errHeld
}
