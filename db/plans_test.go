package db_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"paidonce/db"
	"paidonce/internal/dbtest"
)

// overhearing notes a statement instead of executing it.
type overhearing struct {
	sql    string
	args   int
	values []any
}

var errOverheard = errors.New("noted, not executed")

func (o *overhearing) note(sql string, args []any) error {
	o.sql, o.args, o.values = sql, len(args), args
	return errOverheard
}

func (o *overhearing) Exec(_ context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	return pgconn.CommandTag{}, o.note(sql, args)
}

func (o *overhearing) Query(_ context.Context, sql string, args ...any) (pgx.Rows, error) {
	return nil, o.note(sql, args)
}

func (o *overhearing) QueryRow(_ context.Context, sql string, args ...any) pgx.Row {
	return overheardRow{o.note(sql, args)}
}

type overheardRow struct{ err error }

func (r overheardRow) Scan(...any) error { return r.err }

// hot are the statements that run for every charge or whose cost must not grow with what is kept, and the indexes that are meant for them.
func hot(q *db.Queries) map[string]struct {
	call    func(context.Context, db.DBTX) error
	indexes []string
} {
	type statement = struct {
		call    func(context.Context, db.DBTX) error
		indexes []string
	}
	many := func(_ any, err error) error { return err }
	const key, operation, unfinished, expiry = "idempotency_keys_(pkey|operation)", "idempotency_keys_operation", "idempotency_keys_unfinished", "idempotency_keys_expiry"
	return map[string]statement{
		"ChargeClaim": {func(ctx context.Context, t db.DBTX) error { return many(q.ChargeClaim(ctx, t, db.ChargeClaimParams{})) }, []string{"recovered_keys_pkey"}},
		"KeyRecovered": {func(ctx context.Context, t db.DBTX) error {
			return many(q.KeyRecovered(ctx, t, db.KeyRecoveredParams{}))
		}, []string{"recovered_keys_pkey"}},
		"ChargeSettle": {func(ctx context.Context, t db.DBTX) error {
			return many(q.ChargeSettle(ctx, t, db.ChargeSettleParams{}))
		}, []string{key, "charges_pkey"}},
		"KeyRead":     {func(ctx context.Context, t db.DBTX) error { return many(q.KeyRead(ctx, t, db.KeyReadParams{})) }, []string{key}},
		"KeyTakeOver": {func(ctx context.Context, t db.DBTX) error { return many(q.KeyTakeOver(ctx, t, db.KeyTakeOverParams{})) }, []string{key}},
		"KeyRelease":  {func(ctx context.Context, t db.DBTX) error { return many(q.KeyRelease(ctx, t, db.KeyReleaseParams{})) }, []string{key}},
		"KeyPark":     {func(ctx context.Context, t db.DBTX) error { return many(q.KeyPark(ctx, t, db.KeyParkParams{})) }, []string{key}},
		"KeyFinish":   {func(ctx context.Context, t db.DBTX) error { return many(q.KeyFinish(ctx, t, db.KeyFinishParams{})) }, []string{key}},
		"KeyAdvance":  {func(ctx context.Context, t db.DBTX) error { return many(q.KeyAdvance(ctx, t, db.KeyAdvanceParams{})) }, []string{key}},
		"KeyAdvanced": {func(ctx context.Context, t db.DBTX) error { return many(q.KeyAdvanced(ctx, t, db.KeyAdvancedParams{})) }, []string{key}},
		"KeyForget":   {func(ctx context.Context, t db.DBTX) error { return many(q.KeyForget(ctx, t, db.KeyForgetParams{})) }, []string{key}},
		"KeyLeaseDue": {func(ctx context.Context, t db.DBTX) error { return many(q.KeyLeaseDue(ctx, t, db.KeyLeaseDueParams{})) }, []string{key, unfinished}},
		"KeyLeasedDue": {func(ctx context.Context, t db.DBTX) error {
			return many(q.KeyLeasedDue(ctx, t, db.KeyLeasedDueParams{}))
		}, []string{unfinished}},
		"KeySweep":     {func(ctx context.Context, t db.DBTX) error { return many(q.KeySweep(ctx, t, 1000)) }, []string{expiry}},
		"OperationKey": {func(ctx context.Context, t db.DBTX) error { return many(q.OperationKey(ctx, t, "")) }, []string{operation}},
		"ChargeGet":    {func(ctx context.Context, t db.DBTX) error { return many(q.ChargeGet(ctx, t, db.ChargeGetParams{})) }, []string{"charges_pkey"}},
		"ChargeList":   {func(ctx context.Context, t db.DBTX) error { return many(q.ChargeList(ctx, t, db.ChargeListParams{})) }, []string{"charges_listed"}},
		"ChargeListPending": {func(ctx context.Context, t db.DBTX) error {
			return many(q.ChargeListPending(ctx, t, db.ChargeListPendingParams{}))
		}, []string{"charges_pending"}},
		"ChargeListOfCustomer": {func(ctx context.Context, t db.DBTX) error {
			return many(q.ChargeListOfCustomer(ctx, t, db.ChargeListOfCustomerParams{}))
		}, []string{"charges_of_customer"}},
		"RefundListOfCharge": {func(ctx context.Context, t db.DBTX) error {
			return many(q.RefundListOfCharge(ctx, t, db.RefundListOfChargeParams{}))
		}, []string{"refunds_of_charge"}},
		"EventListOfType": {func(ctx context.Context, t db.DBTX) error {
			return many(q.EventListOfType(ctx, t, db.EventListOfTypeParams{}))
		}, []string{"outbox_listed_by_type"}},
		"ChargeLock": {func(ctx context.Context, t db.DBTX) error { return many(q.ChargeLock(ctx, t, db.ChargeLockParams{})) }, []string{"charges_pkey"}},
		"ChargeCapture": {func(ctx context.Context, t db.DBTX) error {
			return many(q.ChargeCapture(ctx, t, db.ChargeCaptureParams{}))
		}, []string{"charges_pkey"}},
		"RefundSettle": {func(ctx context.Context, t db.DBTX) error {
			return many(q.RefundSettle(ctx, t, db.RefundSettleParams{}))
		}, []string{"refunds_(pkey|operation)"}},
		"ChargeTakeAwaiting": {func(ctx context.Context, t db.DBTX) error { return many(q.ChargeTakeAwaiting(ctx, t, 10)) }, []string{"charges_awaiting"}},
		"ReceiptsHaveNew":    {func(ctx context.Context, t db.DBTX) error { return many(q.ReceiptsHaveNew(ctx, t)) }, []string{"outbox_position"}},
		"ReceiptsRead": {func(ctx context.Context, t db.DBTX) error {
			return many(q.ReceiptsRead(ctx, t, db.ReceiptsReadParams{}))
		}, []string{"outbox_position", "charges_pkey"}},
		"ReceiptsClaim": {func(ctx context.Context, t db.DBTX) error {
			return many(q.ReceiptsClaim(ctx, t, db.ReceiptsClaimParams{}))
		}, []string{"receipts_due", "receipts_pkey", "charges_pkey"}},
		"ReceiptsAbandoned": {func(ctx context.Context, t db.DBTX) error { return many(q.ReceiptsAbandoned(ctx, t, 0)) }, []string{"receipts_sending"}},
		"ReceiptsClean": {func(ctx context.Context, t db.DBTX) error {
			return many(q.ReceiptsClean(ctx, t, db.ReceiptsCleanParams{}))
		}, []string{"receipts_created", "receipts_pkey"}},
		"InboxStore": {func(ctx context.Context, t db.DBTX) error {
			return many(q.InboxStore(ctx, t, db.InboxStoreParams{}))
		}, []string{"charges_provider_id"}},
		"InboxSweep": {func(ctx context.Context, t db.DBTX) error {
			return many(q.InboxSweep(ctx, t, db.InboxSweepParams{}))
		}, []string{"provider_events_processed"}},
		"OperationLogSweep": {func(ctx context.Context, t db.DBTX) error {
			return many(q.OperationLogSweep(ctx, t, db.OperationLogSweepParams{}))
		}, []string{"operation_log_at", "operation_log_pkey", operation}},
		"InboxTake": {func(ctx context.Context, t db.DBTX) error { return many(q.InboxTake(ctx, t, db.InboxTakeParams{})) }, []string{"provider_events_due"}},
		"EventGauges": {func(ctx context.Context, t db.DBTX) error {
			return many(q.EventGauges(ctx, t, db.EventGaugesParams{}))
		}, []string{"outbox_unnumbered", "outbox_position", "deliveries_due"}},
		"ReceiptGauge": {func(ctx context.Context, t db.DBTX) error {
			return many(q.ReceiptGauge(ctx, t, 0))
		}, []string{"outbox_position", "receipts_due"}},
		"StreamGauges": {func(ctx context.Context, t db.DBTX) error { return many(q.StreamGauges(ctx, t)) }, []string{"outbox_position"}},
	}
}

// asked are arguments with which a statement is planned once there are statistics: a plan that knows neither limit nor filters expects a tenth of all rows
// then, and PostgreSQL keeps to plans for what is asked for, which cost less.
var asked = map[string]string{
	"ReceiptsRead": "1000, '24 hours'", "ReceiptsClaim": "'24 hours', 8", "ReceiptsAbandoned": "'5 minutes'", "ReceiptsClean": "'720 hours', 100",
	"KeySweep": "1000", "InboxTake": "'2 minutes', 8", "ChargeTakeAwaiting": "100",
	"InboxStore": "'{e}', '{t}', '{o}', '{f}', '{x}', '{f}', '{r}'", "InboxSweep": "'90 days', 1000", "OperationLogSweep": "'-infinity', 0, '365 days', 1000",
	"ChargeList":        "'{f,t}', 'a', true, '2000-01-01', '', '3000-01-01', '', 10",
	"ChargeListPending": "'a', '', '2000-01-01', '', '3000-01-01', '', 10", "ChargeListOfCustomer": "'{f,t}', 'a', 'cus', true, '2000-01-01', '', '3000-01-01', '', 10",
	"RefundListOfCharge": "'c', 'a', '3000-01-01', '', 10", "EventListOfType": "'a', 'charge.failed', 0, 10",
	"EventGauges": "'10 minutes', 10000", "ReceiptGauge": "'24 hours'",
}

// fullRead finds what must not be in a plan: a walk over a whole table that grows, or over a whole partial index.
func fullRead(plan []string) string {
	index := regexp.MustCompile(`Scan using (idempotency_keys_unfinished|idempotency_keys_expiry|provider_events_due|provider_events_processed|operation_log_at|charges_awaiting|charges_provider_id)|Bitmap Index Scan on (idempotency_keys_unfinished|idempotency_keys_expiry|provider_events_due|provider_events_processed|operation_log_at|charges_awaiting|charges_provider_id)`)
	table := regexp.MustCompile(`Seq Scan on (idempotency_keys|charges|provider_events|outbox|deliveries|operation_log|receipts|recovered_keys)\b`)
	for i, line := range plan {
		switch {
		case table.MatchString(line):
			return line
		case index.MatchString(line) && (i+1 == len(plan) || !strings.Contains(plan[i+1], "Index Cond")):
			return line
		}
	}
	return ""
}

// Plans live as long as connections: what was prepared on the day of the installation, when every table was empty, still runs when there are years of
// rows and nobody has analysed them. So each hot statement has its index then, as later.
func TestHotStatementsKeepToTheirIndexes(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	conn, err := pgx.Connect(ctx, dbtest.New(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	exec := func(sql string) {
		t.Helper()
		if _, err := conn.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatalf("%s: %v", sql[:min(len(sql), 200)], err)
		}
	}
	statements := hot(db.New())
	prepare := func(as string) {
		for name, s := range statements {
			var o overhearing
			if err := s.call(ctx, &o); !errors.Is(err, errOverheard) {
				t.Fatalf("%s: %v", name, err)
			}
			exec(fmt.Sprintf("PREPARE %s_%s AS %s", name, as, o.sql))
			args, mode := strings.TrimPrefix(strings.Repeat(", NULL", o.args), ", "), "generic"
			if as == "analysed" && asked[name] != "" {
				args, mode = asked[name], "custom"
			}
			exec("SET plan_cache_mode = force_" + mode + "_plan")
			rows, err := conn.Query(ctx, strings.TrimSuffix(fmt.Sprintf("EXPLAIN EXECUTE %s_%s(%s)", name, as, args), "()"), pgx.QueryExecModeSimpleProtocol)
			if err != nil {
				t.Fatal(err)
			}
			plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			text := strings.Join(plan, "\n")
			if bad := fullRead(plan); bad != "" {
				t.Errorf("%s, %s: it reads all of something:%s\n%s", name, as, bad, text)
			}
			for _, index := range s.indexes {
				if !regexp.MustCompile(index).MatchString(text) {
					t.Errorf("%s, %s: it does not use %s:\n%s", name, as, index, text)
				}
			}
		}
	}
	prepare("empty") // the plan that is made now is the one that stays
	if testing.Short() {
		return
	}
	const columns = `account_id, key, operation_id, kind, hash_version, request_hash, request_id, params, resource_id, recovery_point`
	const same = `'charge.create', 1, decode(repeat('00', 32), 'hex'), 'r', '{}'`
	exec(`INSERT INTO idempotency_keys (` + columns + `, status, response_code, response_headers, response_body, finished_at, expires_at)
		SELECT 'a', 'f' || n, 'f' || n, ` + same + `, 'c' || n, 'finished', 'completed', 201, '{}', '{}', now(), now() + n * interval '1 second'
		FROM generate_series(1, 200000) n`)
	exec(`INSERT INTO idempotency_keys (` + columns + `, next_run_at) SELECT 'a', 'u' || n, 'u' || n, ` + same + `, 'd' || n, 'started', CASE WHEN n % 2 = 0 THEN now() END
		FROM generate_series(1, 5000) n`)
	exec(`INSERT INTO charges (id, account_id, operation_id, amount, currency, capture, livemode) SELECT resource_id, 'a', operation_id, 1, 'usd', true, false FROM idempotency_keys`)
	exec(`INSERT INTO refunds (id, account_id, charge_id, operation_id, amount, currency) SELECT 'r' || id, 'a', id, 'r' || operation_id, 1, 'usd' FROM charges LIMIT 5000`)
	exec(`INSERT INTO provider_events (id, type, object_id, livemode, payload, processed_at, result, next_run_at)
		SELECT 'e' || n, 'charge.succeeded', 'c', false, '{}', now(), 'done', NULL FROM generate_series(1, 50000) n`)
	exec(`INSERT INTO operation_log (operation_id, event, attempt, actor) SELECT operation_id, 'resumed', 2, 'request' FROM idempotency_keys LIMIT 100000`)
	exec(`INSERT INTO outbox (event_id, account_id, type, operation_id, object_id, payload, position) SELECT 'e' || id, 'a', 'charge.succeeded', operation_id, id, '{}', row_number() OVER () FROM charges`)
	exec(`INSERT INTO recovered_keys (account_id, key_hash, operation_id, kind, hash_version, request_hash, request_id, resource_id, response_code, response_headers, response_body,
			created_at, expires_at)
		SELECT 'a', sha256(convert_to('a ' || n, 'UTF8')), 'r' || n, 'charge.create', 1, decode(repeat('00', 32), 'hex'), 'q', 'c' || n, 201, '{}', '{}', now(), now() + interval '1 day'
		FROM generate_series(1, 100000) n`)
	exec(`INSERT INTO receipts_cursor (position) VALUES (100000)`)
	exec(`INSERT INTO receipts (charge_id, account_id, event_id, taken_at, state, attempts, last_attempt_at, finished_at)
		SELECT id, 'a', 'e' || id, now(), 'sent', 1, now(), now() FROM charges LIMIT 100000`)
	exec(`INSERT INTO deliveries (endpoint, event_id, position, object_id, state, next_run_at, finished_at)
		SELECT n % 10, 'e' || n, n, 'c', s.state, CASE WHEN s.state = 'pending' THEN now() END, CASE WHEN s.state <> 'pending' THEN now() END
		FROM generate_series(1, 100000) n CROSS JOIN LATERAL (SELECT CASE WHEN n % 10 = 0 THEN 'pending' ELSE 'delivered' END AS state) s`)
	exec(`INSERT INTO outbox_cursors (publisher, position) VALUES ('nats', 0), ('kafka', 199000)`)
	prepare("grown")
	exec(`ANALYZE`)
	prepare("analysed")
}
