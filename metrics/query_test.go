package metrics_test

import (
	"context"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"paidonce/db"
	"paidonce/internal/dbtest"
	"paidonce/outbox"
)

// overheard notes the statement that goes through it.
type overheard struct {
	db.DBTX
	sql  string
	args []any
}

func (o *overheard) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	o.sql, o.args = sql, args
	return o.DBTX.QueryRow(ctx, sql, args...)
}

// A scrape costs what is under way, not what has ever been: the finished rows are not read.
func TestGaugesReadTheSmallIndexesOnly(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	pool, err := db.Open(dbtest.New(t), 2)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	exec := func(sql string) {
		if _, err := pool.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	const columns = `account_id, key, operation_id, kind, hash_version, request_hash, request_id, params, resource_id, recovery_point`
	exec(`INSERT INTO idempotency_keys (` + columns + `, status, response_code, response_headers, response_body, finished_at, expires_at)
		SELECT 'a', 'f' || n, 'f' || n, 'charge.create', 1, decode(repeat('00', 32), 'hex'), 'r', '{}', 'c', 'finished', 'completed', 201, '{}', '{}',
			clock_timestamp(), clock_timestamp() + interval '1 hour' FROM generate_series(1, 20000) n`)
	exec(`INSERT INTO idempotency_keys (` + columns + `, next_run_at) SELECT 'a', 'u' || n, 'u' || n, 'charge.create', 1, decode(repeat('00', 32), 'hex'), 'r', '{}', 'c',
		'started', clock_timestamp() FROM generate_series(1, 100) n`)
	exec(`ANALYZE idempotency_keys`)
	o := &overheard{DBTX: pool}
	row, err := db.New().KeyGauges(ctx, o, time.Minute)
	if err != nil || row.InProgress != 100 {
		t.Fatalf("%d unfinished, %v", row.InProgress, err)
	}
	rows, err := pool.Query(ctx, "EXPLAIN "+o.sql, o.args...)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(plan, "\n"); strings.Contains(text, "Seq Scan") || !strings.Contains(text, "idempotency_keys_unfinished") || !strings.Contains(text, "idempotency_keys_expiry") {
		t.Errorf("it does not keep to the partial indexes:\n%s", text)
	}
}

// While somebody's transaction stays open, what is numbered leaves dead entries in the index of
// events without a place. A scrape does not walk over them all.
func TestEventGaugesPassOverWhatWasNumbered(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	pool, err := db.Open(dbtest.New(t), 4)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	tx, err := pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	if _, err := tx.Exec(ctx, `SELECT count(*) FROM outbox`); err != nil {
		t.Fatal(err)
	}
	const events, inTenMinutes = 6000, 600 // one a second
	if _, err := pool.Exec(ctx, `INSERT INTO outbox (event_id, account_id, type, operation_id, object_id, payload, created_at)
		SELECT 'e' || n, 'a', 'charge.succeeded', 'o' || n, 'c', '{}', clock_timestamp() - n * interval '1 second' FROM generate_series(1, $1::int) n`, events); err != nil {
		t.Fatal(err)
	}
	if n, err := outbox.New(outbox.Config{Pool: pool}).Number(ctx); err != nil || n != events {
		t.Fatal(n, err)
	}
	late := db.EventGaugesParams{LateCommit: 10 * time.Minute, PendingMax: 100}
	o := &overheard{DBTX: pool}
	if row, err := db.New().EventGauges(ctx, o, late); err != nil || row.UnnumberedSeconds != 0 {
		t.Fatalf("%+v, %v", row, err)
	}
	rows, err := pool.Query(ctx, "EXPLAIN (ANALYZE, BUFFERS) "+o.sql, o.args...)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(plan, "\n")
	walked := regexp.MustCompile(`outbox_unnumbered(?s:.*?)Heap Fetches: (\d+)`).FindStringSubmatch(text)
	if walked == nil {
		t.Fatalf("it does not use the index of events without a place:\n%s", text)
	}
	if n, _ := strconv.Atoi(walked[1]); n > 2*inTenMinutes {
		t.Errorf("it walks over %d rows:\n%s", n, text)
	}
	// What is without a place is seen all the same, and one that was committed late.
	if _, err := pool.Exec(ctx, `INSERT INTO outbox (event_id, account_id, type, operation_id, object_id, payload, created_at)
		VALUES ('late', 'a', 'charge.succeeded', 'late', 'c', '{}', clock_timestamp() - interval '5 minutes')`); err != nil {
		t.Fatal(err)
	}
	if row, err := db.New().EventGauges(ctx, pool, late); err != nil || row.UnnumberedSeconds < 300 {
		t.Errorf("%+v, %v", row, err)
	}
}
