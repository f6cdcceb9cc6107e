package db

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// ErrUnavailable wraps what the database could not be asked about: it is down, starting, full, or the connection was lost.
var ErrUnavailable = errors.New("the database is not available")

// Failure says what may be done about an error of a statement.
type Failure int

// The kinds of failure.
const (
	// Permanent: the statement or its data is wrong (classes 22, 23, 42, …). Running it again cannot help.
	Permanent Failure = iota
	// Rerun: the transaction was rolled back to resolve a conflict (40001, 40P01). Nothing was written; run all of it again.
	Rerun
	// Unreachable: no answer. Whether a commit took place is not known, unless the statement was never sent.
	Unreachable
)

// Classify sorts an error of a statement.
func Classify(err error) Failure {
	var over finalError
	if errors.As(err, &over) {
		return Permanent
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		switch {
		case pg.Code == "40001" || pg.Code == "40P01":
			return Rerun
		// 08 connection, 53 resources, 57P0x shutdown, 58 system; 25006 is a demoted primary; 57014 a cancelled statement; 25P03 a session that was ended
		// because its transaction had nothing to do for too long; 55P03 a lock that was not to be had in time.
		case strings.HasPrefix(pg.Code, "08"), strings.HasPrefix(pg.Code, "53"), strings.HasPrefix(pg.Code, "57"),
			strings.HasPrefix(pg.Code, "58"), pg.Code == "25006", pg.Code == "25P03", pg.Code == "55P03":
			return Unreachable
		}
		return Permanent
	}
	if errors.Is(err, pgx.ErrNoRows) || errors.Is(err, pgx.ErrTooManyRows) {
		return Permanent
	}
	return Unreachable
}

// ByData reports whether an error that is [Permanent] comes from what was to be written, so that the
// same row fails for ever and another one may not: classes 22, 23 and 44, a row that isn't there, or a
// [Final] word of ours. What a statement and the schema disagree about is none of a row's: a column or
// a grant that is missing during a deployment (42), a value that an older binary doesn't know to write
// (23502). It fails for every row and passes by itself.
func ByData(err error) bool {
	var pg *pgconn.PgError
	switch {
	case errors.Is(err, ErrUnavailable) || Classify(err) != Permanent:
		return false
	case errors.As(err, &pg):
		return pg.Code != "23502" &&
			(strings.HasPrefix(pg.Code, "22") || strings.HasPrefix(pg.Code, "23") || strings.HasPrefix(pg.Code, "44"))
	}
	return true
}

// Violates reports whether an error is that a row would not have been unique by the constraint.
func Violates(err error, constraint string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "23505" && pg.ConstraintName == constraint
}

// Passes reports whether an error of a statement passes by itself, as a database that is away, full, or read-only during a failover does, so that the same
// statement is worth another try later. A missing table or right, a wrong password and wrong data do not.
func Passes(err error) bool {
	var pg *pgconn.PgError
	var scan pgx.ScanArgError
	switch {
	case errors.As(err, &pg):
		return Classify(pg) != Permanent
	case errors.Is(err, ErrUnavailable):
		return true
	case errors.As(err, &scan): // what was read is not what we know how to read
		return false
	}
	return Classify(err) != Permanent
}

// NotConnected reports whether a statement was not sent because no connection could be made: another pool may still have some. A server that is out of
// connections would otherwise starve a pool that has none yet for as long as others are idle.
func NotConnected(err error) bool {
	var refused *pgconn.ConnectError
	return errors.As(err, &refused)
}

// Advice is what a person can do about it, where the database refuses what a command asks for; "" otherwise.
func Advice(err error) string {
	var pg *pgconn.PgError
	switch {
	case !errors.As(err, &pg):
	case pg.Code == "42501":
		return "the role of DATABASE_URL may not do that: GRANT it the right, or use the role that owns the tables"
	case pg.Code == "25006":
		return "the database takes no writes: it is a standby, or its default_transaction_read_only is on"
	}
	return ""
}

// IsUndefinedTable reports whether a statement failed because a table does not exist.
func IsUndefinedTable(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "42P01"
}

const (
	// A caller waits this long for a database that does not answer, before it learns so: long enough for a reconnect, short
	// enough for a person.
	retryBudget = 3 * time.Second
	// Pauses between tries start here, double, and stop growing at the maximum; half of each is random, so that many waiting
	// callers do not come back at the same moment.
	retryPauseFirst = 20 * time.Millisecond
	retryPauseMax   = 500 * time.Millisecond
	// Nothing is broken at a conflict, so its loser comes back sooner. One that persists this often, and for as long as a caller waits, is not a
	// coincidence.
	conflictPauseMax = 80 * time.Millisecond
	rerunsMax        = 8
)

// Retry runs fn, and runs it again after a conflict or a lost connection, within a few seconds or until ctx ends. Only for reads and for
// writes that are compare-and-swap on a token: of such a write a second execution finds the first one's traces and changes nothing,
// so a commit whose answer was lost needs no other care. Errors: those of fn; unreachable ones wrap [ErrUnavailable].
func Retry(ctx context.Context, fn func(context.Context) error) error {
	return again(ctx, fn, true)
}

// RetryConflict runs fn, and runs it again after a conflict, of which nothing is left. For single statements that are no compare-and-swap: after a lost
// connection it is not known what they did, so that is returned, wrapped in [ErrUnavailable]. Conflicts between plain statements are rare, unless
// the database makes its transactions serializable.
func RetryConflict(ctx context.Context, fn func(context.Context) error) error {
	return again(ctx, fn, false)
}

func again(ctx context.Context, fn func(context.Context) error, reconnect bool) error {
	deadline := time.Now().Add(retryBudget) //tidy:clock a local pause, nothing is decided by it
	pause := retryPauseFirst
	for reruns := 0; ; {
		err := fn(ctx)
		if err == nil {
			return nil
		}
		switch Classify(err) {
		case Permanent:
			return err
		case Rerun:
			if reruns++; reruns > rerunsMax && time.Now().After(deadline) { //tidy:clock a local pause
				return err
			}
			pause = min(pause, conflictPauseMax)
		case Unreachable:
			if !reconnect || time.Now().Add(pause).After(deadline) { //tidy:clock a local pause
				return errors.Join(ErrUnavailable, err)
			}
		}
		select {
		case <-ctx.Done():
			return errors.Join(ErrUnavailable, err)
		case <-time.After(pause/2 + rand.N(pause)):
		}
		pause = min(2*pause, retryPauseMax)
	}
}
