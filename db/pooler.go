package db

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// checkSessions checks that a statement that was prepared on one connection is there at its next
// use, and on no other connection. Behind a pooler in transaction mode neither is certain. A pooler
// in session mode passes, and so does one that keeps track of prepared statements. Errors: the
// database's.
func checkSessions(ctx context.Context, one *pgxpool.Conn) error {
	if one.Conn().Config().DefaultQueryExecMode != pgx.QueryExecModeCacheStatement {
		return nil // nothing is kept in the session
	}
	// Not of the pool, which may have but one.
	other, err := pgx.ConnectConfig(ctx, one.Conn().Config())
	if err != nil {
		return err
	}
	defer func() { _ = other.Close(context.WithoutCancel(ctx)) }()
	// The pooler may have several connections, and chance decides which of them ours meet.
	const rounds = 4
	for range rounds {
		for _, conn := range []*pgx.Conn{one.Conn(), other} {
			if _, err := conn.Exec(ctx, `SELECT 1 WHERE $1::boolean`, true); err != nil {
				return err
			}
		}
	}
	return nil
}

// sessionLost reports whether a prepared statement existed where it should not, or did not where it
// should.
func sessionLost(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "42P05" || pg.Code == "26000")
}
