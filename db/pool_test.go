package db_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"paidonce/db"
	"paidonce/internal/dbtest"
)

// A statement that nobody waits for any more ends at the server as well, and its connection is of
// use again.
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

// No connection compiles statements; those of the committers plan each statement but once, all
// others each time.
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

// The hot path's statements are planned once, and others kept as PostgreSQL sees fit, but not while
// nothing is known of the tables: a connection that began then plans each time, and is soon
// replaced.
func TestPlansAreMadeAnewWhileNothingIsKnown(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, 1)
	const each, once = "force_custom_plan", "force_generic_plan"
	for _, step := range []struct{ state, sql, hot string }{
		{"never analysed", `SELECT 1`, once},
		{"analysed when empty", `ANALYZE`, each},
		{"a charge", `INSERT INTO charges (id, account_id, operation_id, amount, currency, capture, livemode)
			VALUES ('c', 'a', 'c', 5, 'usd', true, false)`, each},
		{"its event and key", `WITH told AS (
				INSERT INTO outbox (event_id, account_id, type, operation_id, object_id, payload)
				VALUES ('e', 'a', 't', 'c', 'c', '{}'))
			INSERT INTO idempotency_keys (account_id, key, operation_id, kind, hash_version, request_hash, request_id,
				params, resource_id, recovery_point)
			VALUES ('a', 'k', 'c', 'charge.create', 1, sha256('k'), 'r', '{}', 'c', 'started')`, each},
		{"analysed", `ANALYZE`, once},
	} {
		d.Exec(step.sql)
		all, hot, err := db.OpenBoth(d.URL, 3, nil)
		if err != nil {
			t.Fatal(err)
		}
		mode := func(pool *pgxpool.Pool, age time.Duration) (mode string, server int) {
			t.Helper()
			c, err := pool.Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Release()
			own := c.Conn().PgConn().CustomData()
			if since, yes := own["paidonce.untold"].(time.Time); yes {
				own["paidonce.untold"] = since.Add(-age)
			}
			if err := c.QueryRow(t.Context(), `SELECT current_setting('plan_cache_mode'), pg_backend_pid()`).Scan(&mode, &server); err != nil {
				t.Fatal(err)
			}
			return mode, server
		}
		want := "auto"
		if step.hot == each {
			want = each
		}
		if got, _ := mode(all, 0); got != want {
			t.Errorf("%s: got %s, want %s", step.state, got, want)
		}
		_, first := mode(hot, 0)
		got, second := mode(hot, time.Hour)
		_, third := mode(hot, 0)
		if got != step.hot || second != first || (third == second) != (got == once) {
			t.Errorf("%s: %s, want %s; connections %d, %d, %d", step.state, got, step.hot, first, second, third)
		}
		all.Close()
		hot.Close()
	}
}
