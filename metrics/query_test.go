package metrics_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"paidonce/db"
	"paidonce/internal/dbtest"
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
