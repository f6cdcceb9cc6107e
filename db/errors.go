package db

import (
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// ErrUnavailable is wrapped by errors of a database that did not answer: it is down, starting or
// full, or the connection was lost.
var ErrUnavailable = errors.New("the database is not available")

// Failure says what may be done about an error of a statement.
type Failure int

// The kinds of failure.
const (
	// Permanent: the statement or its data is wrong (classes 22, 23, 42, …). Running it again
	// cannot help.
	Permanent Failure = iota
	// Rerun: the transaction was rolled back to resolve a conflict (40001, 40P01). Nothing was
	// written; run all of it again.
	Rerun
	// Unreachable: no answer. Whether a commit took place is not known, unless the statement was
	// never sent.
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
		// 08 connection, 53 resources, 57P0x shutdown, 58 system; 25006 is a demoted primary; 57014
		// a cancelled statement; 25P03 a session that was ended because its transaction had nothing
		// to do for too long; 55P03 a lock that was not to be had in time.
		case strings.HasPrefix(pg.Code, "08"), strings.HasPrefix(pg.Code, "53"), strings.HasPrefix(
			pg.Code, "57"),
			strings.HasPrefix(pg.Code,
				"58"), pg.Code == "25006", pg.Code == "25P03", pg.Code == "55P03":
			return Unreachable
		}
		return Permanent
	}
	if errors.Is(err, pgx.ErrNoRows) || errors.Is(err, pgx.ErrTooManyRows) {
		return Permanent
	}
	return Unreachable
}

// ByData reports whether an error that is [Permanent] comes from what was to be written, so that
// the same row always fails and another one may not: classes 22, 23 and 44, a row that is not
// there, or an error marked [Final]. A disagreement of statement and schema is not the row's fault:
// a column or a grant that is missing during a deployment (42), or a value that an older binary
// does not write (23502). It fails for every row, and passes by itself.
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

// Violates reports whether an error is a violation of this uniqueness constraint.
func Violates(err error, constraint string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "23505" && pg.ConstraintName == constraint
}

// Passes reports whether an error of a statement passes by itself, as a database that is away,
// full, or read-only during a failover does, so that the same statement is worth another try later.
// A missing table or right, a wrong password and wrong data do not.
func Passes(err error) bool {
	var pg *pgconn.PgError
	var scan pgx.ScanArgError
	switch {
	case errors.As(err, &pg):
		return Classify(pg) != Permanent
	case errors.Is(err, ErrUnavailable):
		return true
	case errors.As(err, &scan): // a value cannot be read into its Go type
		return false
	}
	return Classify(err) != Permanent
}

// NotConnected reports whether a statement was not sent because no connection could be made:
// another pool may still have some. A server that is out of connections would otherwise starve a
// pool that has none yet for as long as others are idle.
func NotConnected(err error) bool {
	var refused *pgconn.ConnectError
	return errors.As(err, &refused)
}

// Advice returns what an operator can do about an error, when the database refuses what a command
// asks for; otherwise "".
func Advice(err error) string {
	var pg *pgconn.PgError
	switch {
	case !errors.As(err, &pg):
	case pg.Code == "42501":
		return "the role of DATABASE_URL may not do that: GRANT it the right, or use the role " +
			"that owns the tables"
	case pg.Code == "25006":
		return "the database takes no writes: it is a standby, or its " +
			"default_transaction_read_only is on"
	}
	return ""
}

// IsUndefinedTable reports whether a statement failed because a table does not exist.
func IsUndefinedTable(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "42P01"
}
