package db

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"paidonce/internal/backoff"
)

const (
	// A caller waits this long for a database that does not answer: long enough for a reconnect,
	// short enough for a customer.
	retryBudget = 3 * time.Second
	// A conflict that occurs this often, and for as long as a caller waits, is not a coincidence.
	rerunsMax = 8
)

var (
	// unreachablePauses: a restart takes seconds, so half a second late is soon enough.
	unreachablePauses = backoff.Policy{First: 20 * time.Millisecond, Max: 500 * time.Millisecond}
	// conflictPauses: nothing is broken at a conflict, so its loser comes back sooner.
	conflictPauses = backoff.Policy{First: 20 * time.Millisecond, Max: 80 * time.Millisecond}
)

// Query is a method of [Queries] that takes P, or a function of its form.
type Query[P, T any] = func(ctx context.Context, conn DBTX, params P) (T, error)

// Read runs a query that writes nothing. A conflict or a lost connection costs the caller nothing
// but time: the query is run again, within a few seconds or until ctx ends. Errors: those of the
// query; unreachable ones wrap [ErrUnavailable].
func Read[P, T any](ctx context.Context, conn DBTX, q Query[P, T], params P) (T, error) {
	return run(ctx, conn, q, params, true)
}

// Read0 is [Read] for a query without parameters.
func Read0[T any](
	ctx context.Context, conn DBTX, q func(context.Context, DBTX) (T, error),
) (T, error) {
	without := func(ctx context.Context, conn DBTX, _ struct{}) (T, error) { return q(ctx, conn) }
	return run(ctx, conn, without, struct{}{}, true)
}

// One is [Read] for a query of one row that may not be there: found reports whether it is.
func One[P, T any](
	ctx context.Context, conn DBTX, q Query[P, T], params P,
) (row T, found bool, err error) {
	return Found(run(ctx, conn, q, params, true))
}

// Repeat runs a write of which a second execution finds the traces of the first and changes
// nothing, such as a compare-and-swap on a token. So it is run again whenever [Read] would be, and
// a commit whose answer was lost needs no other care. Errors: as for Read.
func Repeat[P, T any](ctx context.Context, conn DBTX, q Query[P, T], params P) (T, error) {
	return run(ctx, conn, q, params, true)
}

// Write runs a write that may not be executed twice. It is run again only after a conflict, of
// which nothing is left. After a lost connection it is not known whether it took place: that error
// is returned, wrapped in [ErrUnavailable].
func Write[P, T any](ctx context.Context, conn DBTX, q Query[P, T], params P) (T, error) {
	return run(ctx, conn, q, params, false)
}

// Found takes what a query of one row returned: that there is no such row is an answer, no error.
func Found[T any](row T, err error) (_ T, found bool, _ error) {
	if errors.Is(err, pgx.ErrNoRows) {
		return row, false, nil
	}
	return row, err == nil, err
}

// run takes a method and its parameters, so that, unlike for a closure, nothing is allocated.
func run[P, T any](
	ctx context.Context, conn DBTX, q Query[P, T], params P, reconnect bool,
) (T, error) {
	for next := firstTry(reconnect); ; {
		v, err := q(ctx, conn, params)
		if err == nil {
			return v, nil
		}
		if err = next.wait(ctx, err); err != nil {
			return v, err
		}
	}
}

// Retry runs fn, several statements perhaps, and runs it again after a conflict or a lost
// connection, as [Read] and [Repeat] do. fn may only read, and write what a second execution leaves
// as it is. Errors: those of fn; unreachable ones wrap [ErrUnavailable].
func Retry(ctx context.Context, fn func(context.Context) error) error {
	return again(ctx, fn, true)
}

// RetryConflict runs fn, and runs it again after a conflict, as [Write] does. Conflicts between
// plain statements are rare, unless the database makes its transactions serializable.
func RetryConflict(ctx context.Context, fn func(context.Context) error) error {
	return again(ctx, fn, false)
}

func again(ctx context.Context, fn func(context.Context) error, reconnect bool) error {
	for next := firstTry(reconnect); ; {
		err := fn(ctx)
		if err == nil {
			return nil
		}
		if err = next.wait(ctx, err); err != nil {
			return err
		}
	}
}

// tries is what decides whether there is another try, and when.
type tries struct {
	deadline  time.Time
	n         int  // how many failed
	reruns    int  // how many of them by a conflict
	reconnect bool // try again also after a lost connection
}

func firstTry(reconnect bool) tries {
	deadline := time.Now().Add(retryBudget) //tidy:clock a local pause, nothing is decided by it
	return tries{deadline: deadline, reconnect: reconnect}
}

// wait returns nil when it is time for another try after this error; otherwise the error for the
// caller.
func (t *tries) wait(ctx context.Context, err error) error {
	t.n++
	pause := unreachablePauses.After(t.n)
	switch Classify(err) {
	case Permanent:
		return err
	case Rerun:
		if t.reruns++; t.reruns > rerunsMax && time.Now().After(t.deadline) { //tidy:clock a local pause
			return err
		}
		pause = conflictPauses.After(t.n)
	case Unreachable:
		if !t.reconnect || time.Now().Add(pause).After(t.deadline) { //tidy:clock a local pause
			return errors.Join(ErrUnavailable, err)
		}
	}
	if !backoff.Sleep(ctx, pause) {
		return errors.Join(ErrUnavailable, err)
	}
	return nil
}
