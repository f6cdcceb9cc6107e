package idemkeys

import (
	"context"
	"errors"
	"fmt"

	"paidonce/db"
)

// ErrHeld says that nothing may be claimed or driven at this moment, for a reason that has nothing
// to do with the request.
var ErrHeld = errors.New("work is held back")

// errHeld says that a row in the database holds claims, which this process did not know yet.
var errHeld = fmt.Errorf(
	"the database's history is not vouched for: %w, %w", ErrHeld, ErrUnavailable,
)

// Gate decides whether keys may be claimed, and operations driven, at all: not while the database
// may have lost rows. Stored answers are replayed in any case.
type Gate interface {
	// Held returns why not, or nil.
	Held() error
	// Wait waits a while for what passes by itself, then returns what Held returns.
	Wait(ctx context.Context) error
	// Recheck asks the gate to look at the database again, after that has refused a claim.
	Recheck()
}

// held returns why nothing may be claimed or driven at this moment, joined with [ErrUnavailable],
// or nil.
func (c *core) held() error {
	var err error
	if c.hold != nil {
		err = c.hold()
	}
	if err == nil && c.gate != nil {
		err = c.gate.Held()
	}
	if err != nil {
		return errors.Join(ErrUnavailable, ErrHeld, err)
	}
	return nil
}

// heldBack returns an error when the database holds claims.
func (c *core) heldBack(ctx context.Context) error {
	held, err := db.Read0(ctx, c.pool, c.queries.RecoveryOpened)
	if err != nil || !held {
		return err
	}
	return c.recheck()
}

// recheck lets the gate look again, and returns errHeld.
func (c *core) recheck() error {
	if c.gate != nil {
		c.gate.Recheck()
	}
	return errHeld
}

// moveRecovered moves the row of a key that the database had forgotten, and that was rebuilt since,
// to the table of all other keys. It reports whether there was one.
func (c *core) moveRecovered(ctx context.Context, account, key string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	n, err := db.Repeat(
		ctx, c.pool, c.queries.KeyRecovered, db.KeyRecoveredParams{AccountID: account, Key: key},
	)
	return n > 0, err
}
