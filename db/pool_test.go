package db_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

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
	defer tx.Rollback(context.Background())
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

// No connection compiles statements; those of the committers plan each but once.
func TestSessions(t *testing.T) {
	t.Parallel()
	url := dbtest.New(t)
	one, err := db.Open(url, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	all, hot, err := db.OpenBoth(url, 4, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer all.Close()
	defer hot.Close()
	for pool, want := range map[*pgxpool.Pool]string{one: "off auto", all: "off auto", hot: "off force_generic_plan"} {
		var got string
		if err := pool.QueryRow(t.Context(), `SELECT current_setting('jit') || ' ' || current_setting('plan_cache_mode')`).Scan(&got); err != nil || got != want {
			t.Errorf("%s, want %s (%v)", got, want, err)
		}
	}
}
