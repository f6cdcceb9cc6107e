package db

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Pool is what transactions begin on: *pgxpool.Pool, or a test's wrapper around one.
type Pool interface {
	DBTX
	BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error)
}

var _ Pool = (*pgxpool.Pool)(nil)

// TxIdleMax is how long a transaction may wait for its client between two statements. It is seconds
// more than a round trip ever takes. A process that was stopped in the middle of a transaction
// holds its locks no longer than that.
const TxIdleMax = 8 * time.Second

// begin sets the limit in the same round trip, for this transaction alone: behind a pooler, a
// session's settings are everybody's.
var begin = pgx.TxOptions{
	BeginQuery: fmt.Sprintf("BEGIN; SET LOCAL idle_in_transaction_session_timeout = %d",
		TxIdleMax.Milliseconds()),
}

// ErrCommitUnknown means that the connection was lost at the COMMIT, so the transaction may or may
// not have taken place. The caller has to read back what it would have written, by a token of its
// own.
var ErrCommitUnknown = fmt.Errorf("the answer to a COMMIT was lost: %w", ErrUnavailable)

// Tx runs fn in a transaction and commits it. The whole transaction is run again after a conflict
// (40001, 40P01) and after a connection that was lost before the COMMIT was sent: nothing was
// written then. Errors that fn marked with [Final], and of the data (classes 22, 23, 42, …) are
// returned as they are, with nothing written. A COMMIT whose answer was lost is not repeated:
// [ErrCommitUnknown]. fn may be called several times and must not keep what it wrote elsewhere.
func Tx(ctx context.Context, pool Pool, fn func(ctx context.Context, tx DBTX) error) error {
	// Neither ROLLBACK nor COMMIT is cancelled: a cancelled COMMIT is not undone, and with a
	// synchronous standby it lies.
	detached := context.WithoutCancel(ctx)
	return Retry(ctx, func(ctx context.Context) error {
		tx, err := pool.BeginTx(ctx, begin)
		if err != nil {
			return err
		}
		if err := fn(ctx, tx); err != nil {
			// The connection may be gone; then the server rolls back by itself.
			_ = tx.Rollback(detached)
			return err
		}
		err = tx.Commit(detached)
		if err != nil && Classify(err) == Unreachable {
			return Final(errors.Join(ErrCommitUnknown, err))
		}
		return err
	})
}

// finalError is not tried again by Retry, whatever it wraps.
type finalError struct{ error }

func (e finalError) Unwrap() error { return e.error }

// Final marks an error that running the transaction again cannot help: what fn itself decided, as
// opposed to what the database answered.
func Final(err error) error { return finalError{err} }
