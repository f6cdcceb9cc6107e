package db_test

import (
	"context"
	"testing"
	"time"

	"paidonce/db"
	"paidonce/internal/dbtest"
)

// A statement that nobody waits for any more ends at the server as well, and its connection is of use again.
func TestGivenUpStatementsEnd(t *testing.T) {
	t.Parallel()
	pool, err := db.Open(dbtest.New(t), 4)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background()) //nolint:errcheck // it only reads
	if _, err := tx.Exec(t.Context(), `LOCK TABLE refunds`); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second statement finds nothing of the first's cancellation
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		if _, err := pool.Exec(db.OnlyReads(ctx), `SELECT FROM refunds`); err == nil || ctx.Err() == nil {
			t.Fatal("the lock did not hold it")
		}
		cancel()
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		var waiting int
		if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'refunds'::regclass`).Scan(&waiting); err != nil {
			t.Fatal(err)
		}
		if waiting == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d statements still run that nobody waits for", waiting)
		}
	}
}
