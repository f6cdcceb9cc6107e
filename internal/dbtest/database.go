package dbtest

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"paidonce/db"
)

// Database is a test's own database, with a pool of connections. Its methods fail the test on any
// error.
type Database struct {
	T    testing.TB // fails on errors; a subtest that shares its parent's database sets its own
	URL  string
	Pool *pgxpool.Pool
}

// Open creates a database and a pool of at most that many connections.
func Open(t testing.TB, connections int32) *Database {
	t.Helper()
	d := &Database{T: t, URL: New(t)}
	d.Pool = d.Connect(connections)
	return d
}

// Connect opens another pool of connections, as another process has.
func (d *Database) Connect(connections int32) *pgxpool.Pool {
	d.T.Helper()
	pool, err := db.Open(d.URL, connections)
	if err != nil {
		d.T.Fatal(err)
	}
	d.T.Cleanup(pool.Close)
	return pool
}

// Exec runs SQL for changes that the product never makes, such as setting its times back.
func (d *Database) Exec(sql string, args ...any) {
	d.T.Helper()
	err := db.Retry(context.Background(), func(ctx context.Context) error {
		_, err := d.Pool.Exec(ctx, sql, args...)
		return err
	})
	if err != nil {
		d.T.Fatalf("%s: %v", sql, err)
	}
}

// Count returns the number that a query finds.
func (d *Database) Count(sql string, args ...any) int {
	d.T.Helper()
	var n int
	d.Read(sql, args, &n)
	return n
}

// Read reads the only row of a query.
func (d *Database) Read(sql string, args []any, into ...any) {
	d.T.Helper()
	err := db.Retry(context.Background(), func(ctx context.Context) error {
		return d.Pool.QueryRow(ctx, sql, args...).Scan(into...)
	})
	if err != nil {
		d.T.Fatalf("%s: %v", sql, err)
	}
}
