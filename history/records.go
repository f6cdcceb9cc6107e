package history

import (
	"context"
	"log/slog"
	"time"
)

// Records are the provider's records, the second copy of what was done.
type Records interface {
	// FindForgotten reads the newest records, and says which of them are not in the database, or
	// "".
	FindForgotten(ctx context.Context) (what string, err error)
	// RebuildFrom returns from when on the records have to be read, in the provider's time.
	RebuildFrom(ctx context.Context) (time.Time, error)
	// Rebuild writes what the records have since then and the database has not. It may be
	// interrupted anywhere and run again. told is called now and then with what was rebuilt since
	// its last call.
	Rebuild(ctx context.Context, since time.Time, told func(context.Context, Counts) error) error
	// Now returns the provider's time; ok is false while it is not known.
	Now() (at time.Time, ok bool)
	// Claimed returns the operations that this process has claimed last.
	Claimed() []string
	// ClearClaimed makes Claimed start empty: by now it is known which of them are missing.
	ClearClaimed()
}

// Counts are what was rebuilt.
type Counts struct{ Charges, Refunds, Captures int }

// Config is what a guard needs to know.
type Config struct {
	Records Records
	Log     *slog.Logger
	// Off means that a fork is logged and otherwise left to an operator (PAIDONCE_RECOVER=off).
	Off bool
	// CallLimit is how long one call of the provider may take: what a server that is gone has sent
	// may be carried out until then.
	CallLimit time.Duration
}
