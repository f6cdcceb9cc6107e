package db_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"paidonce/db"
	"paidonce/internal/dbtest"
)

const (
	// listedFew charges are made unless PAIDONCE_LIST_CHARGES says how many: enough that a walk
	// over them reads thousands of blocks.
	listedFew = 30_000
	// listedMany are too many to compare each list with a walk over all; what a page takes is of
	// interest then.
	listedMany = 300_000
	// pageRows is how many rows the lists are asked for: as many as by default, and one more, which
	// shows whether there are more.
	pageRows = 11
	// pageBlocks is what one page may read, of PostgreSQL's blocks: its rows from each of two
	// walks, each in a block of its own, and the way down the indexes.
	pageBlocks = 80
)

// listed is a database of two accounts. big has hardly a failed charge, and those are its oldest;
// bad has hardly anything else. cus_all is a customer of every other charge of big and of three of
// bad.
type listed struct {
	*testing.T
	conn    *pgx.Conn
	charges int
	most    int // how many blocks a page may read
	// the first reading of each page, and the second, which finds its blocks in memory
	times [2][]page
}

// page is what a page took.
type page struct {
	what string
	took time.Duration
}

func (l *listed) exec(sql string, args ...any) {
	l.Helper()
	if _, err := l.conn.Exec(context.Background(), sql, args...); err != nil {
		l.Fatalf("%s: %v", sql[:min(len(sql), 200)], err)
	}
}

// fill makes n charges of an account, three in each moment. odd is how many of them, the oldest,
// have the status that is rare there.
func (l *listed) fill(account string, n, odd int, rare, common, customer string) {
	l.exec(`INSERT INTO charges (id, account_id, operation_id, amount, currency, capture, livemode, status, provider_id, customer, intent_id, created_at)
		SELECT 'ch_`+account+`' || lpad(n::text, 9, '0'), 'acct_`+account+`', 'op_`+account+`' || n, 1, 'usd', true, false,
			CASE WHEN n > $1 - 5 THEN 'pending' WHEN n <= $2 THEN $3 ELSE $4 END, 'py_`+account+`' || n, `+customer+`,
			CASE WHEN n % 10 < 4 THEN 'pi_`+account+`' || n / 10 END,
			'2026-01-01'::timestamptz + n / 3 * interval '1 second'
		FROM generate_series(1, $1::integer) n`, n, odd, rare, common)
}

func newListed(t *testing.T) *listed {
	pool, err := db.Open(dbtest.New(t), 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Release)
	l := &listed{T: t, conn: conn.Conn(), charges: listedFew, most: pageBlocks}
	if n, err := strconv.Atoi(os.Getenv("PAIDONCE_LIST_CHARGES")); err == nil {
		l.charges = n
	}
	l.exec(`SET synchronous_commit = off`)
	l.fill("bad", l.charges/10, 20, "succeeded", "failed", `CASE WHEN n IN (7, 700, 707) THEN 'cus_all' END`)
	l.exec(`ANALYZE`) // from now on the statistics know of bad only
	l.fill("big", l.charges, 20, "failed", "succeeded", `CASE WHEN n % 2 = 0 THEN 'cus_all' WHEN n % 3 = 0 THEN 'cus_' || n / 60 END`)
	l.exec(`INSERT INTO refunds (id, account_id, charge_id, operation_id, amount, currency, status, created_at)
		SELECT 're_' || lpad(n::text, 9, '0'), 'acct_big', CASE WHEN n % 2 = 0 THEN 'ch_big000000030' ELSE 'ch_big' || lpad(n::text, 9, '0') END, 'op_re' || n, 1, 'usd', 'pending',
			'2026-01-01'::timestamptz + n / 3 * interval '1 second' FROM generate_series(1, $1::integer) n`, l.charges/10)
	l.exec(`INSERT INTO outbox (event_id, account_id, type, operation_id, object_id, payload, position, created_at)
		SELECT 'evt_' || n, 'acct_big', CASE WHEN n <= 20 THEN 'charge.failed' ELSE 'charge.succeeded' END, 'op_ev' || n, 'ch',
			convert_to('{"id":"evt_' || n || '","created":' || extract(epoch FROM '2026-01-01'::timestamptz)::bigint + n || ',"type":"x"}', 'UTF8'), n,
			'2026-01-01'::timestamptz + n * interval '1 second' FROM generate_series(1, $1::integer) n`, l.charges/10)
	return l
}

// literals writes arguments as EXECUTE takes them.
func literals(args []any) string {
	var all []string
	for _, a := range args {
		switch v := a.(type) {
		case time.Time:
			all = append(all, "'"+v.UTC().Format(time.RFC3339Nano)+"'")
		case []string:
			all = append(all, "'{"+strings.Join(v, ",")+"}'")
		case []bool:
			all = append(all, "'{"+strings.ReplaceAll(strings.Trim(fmt.Sprint(v), "[]"), " ", ",")+"}'")
		case string:
			all = append(all, "'"+v+"'")
		default:
			all = append(all, fmt.Sprint(v))
		}
	}
	return strings.Join(all, ", ")
}

// hold runs a list under both kinds of plans, and fails if it reads more than a page needs, or
// answers other than want.
func (l *listed) hold(what, stage string, call func(context.Context, db.DBTX) error, want []string) {
	l.Helper()
	var o overhearing
	if err := call(l.Context(), &o); !errors.Is(err, errOverheard) {
		l.Fatalf("%s: %v", what, err)
	}
	for _, mode := range []string{"generic", "custom"} {
		l.exec(`SET plan_cache_mode = force_` + mode + `_plan`)
		l.exec(`PREPARE page AS `+o.sql, pgx.QueryExecModeSimpleProtocol)
		execute := `EXECUTE page (` + literals(o.values) + `)`
		for i := range l.times[:min(len(l.times), 1+l.charges/listedMany)] {
			blocks, took, plan := l.explain(execute)
			l.times[i] = append(l.times[i], page{fmt.Sprintf("%s, %s plan, %d blocks", what, mode, blocks), took})
			if blocks > l.most {
				l.Errorf("%s, %s, %s plan: reads %d blocks:\n%s", what, stage, mode, blocks, plan)
			}
		}
		if want == nil {
			l.exec(`DEALLOCATE page`)
			continue
		}
		rows, err := l.conn.Query(l.Context(), execute, pgx.QueryExecModeSimpleProtocol)
		if err != nil {
			l.Fatal(err)
		}
		got, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (string, error) {
			values, err := row.Values()
			return fmt.Sprint(values[0]), err
		})
		if err != nil || !slices.Equal(got, want) {
			l.Errorf("%s, %s, %s plan: %v, want %v (%v)", what, stage, mode, got, want, err)
		}
		l.exec(`DEALLOCATE page`)
	}
}

// explain executes a statement and says how many of PostgreSQL's blocks it read, and how long that
// took.
func (l *listed) explain(execute string) (blocks int, took time.Duration, plan []byte) {
	if err := l.conn.QueryRow(l.Context(), `EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) `+execute, pgx.QueryExecModeSimpleProtocol).Scan(&plan); err != nil {
		l.Fatalf("%s: %v", execute, err)
	}
	var told []struct {
		Plan struct {
			Hit  int `json:"Shared Hit Blocks"`
			Read int `json:"Shared Read Blocks"`
		}
		Time float64 `json:"Execution Time"`
	}
	if err := json.Unmarshal(plan, &told); err != nil || len(told) != 1 {
		l.Fatalf("%v: %s", err, plan)
	}
	return told[0].Plan.Hit + told[0].Plan.Read, time.Duration(told[0].Time * float64(time.Millisecond)), plan
}

// report logs how long pages took: the slowest, and what 99 of 100 keep to.
func (l *listed) report(stage string) {
	for i, reading := range []string{"first", "second"} {
		all := l.times[i]
		if len(all) == 0 {
			continue
		}
		slices.SortFunc(all, func(a, b page) int { return cmp.Compare(a.took, b.took) })
		l.Logf("%d charges, %s: %d pages, %s reading: 99 of 100 took up to %v, the slowest %v (%s)",
			l.charges, stage, len(all), reading, all[len(all)*99/100].took, all[len(all)-1].took, all[len(all)-1].what)
		l.times[i] = nil
	}
}

// naive is what a list must answer, by the plainest statement; nil where there is too much to walk
// over.
func (l *listed) naive(account, customer, status string, p db.ChargeListParams, before bool) []string {
	if l.charges > listedMany {
		return nil
	}
	order := "DESC"
	if before {
		order = "ASC"
	}
	rows, err := l.conn.Query(l.Context(), fmt.Sprintf(`SELECT id FROM charges WHERE account_id || '' = $1 AND ($2 = '' OR coalesce(customer, '') = $2) AND ($3 = '' OR status || '' = $3)
		AND (created_at, id) > ($4, $5) AND (created_at, id) < ($6, $7) ORDER BY created_at %[1]s, id %[1]s LIMIT $8`, order),
		account, customer, status, p.AboveAt, p.AboveID, p.BelowAt, p.BelowID, pageRows)
	if err != nil {
		l.Fatal(err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		l.Fatal(err)
	}
	return append([]string{}, ids...)
}

// holdCharges tries all filters of charges, and what pages begin at.
func (l *listed) holdCharges(stage string) {
	q := db.New()
	at := func(n int) time.Time {
		return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(n/3) * time.Second)
	}
	whole := db.ChargeListParams{MaxRows: pageRows, AboveAt: time.Unix(0, 0), BelowAt: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)}
	deep, between := whole, whole
	deep.BelowAt, deep.BelowID = at(l.charges/20), fmt.Sprintf("ch_big%09d", l.charges/20)
	deep.AboveAt, deep.AboveID = at(15), "ch_big000000015"
	between.AboveAt, between.BelowAt = at(l.charges/30), at(l.charges/15)
	for i := range 3 * 4 * 4 * 3 * 2 {
		account, customer := []string{"acct_big", "acct_bad", "acct_none"}[i%3], []string{"", "cus_all", "cus_7", "cus_nobody"}[i/3%4]
		status, p, before := []string{"", "pending", "succeeded", "failed"}[i/12%4], []db.ChargeListParams{whole, deep, between}[i/48%3], i/144 == 1
		p.AccountID, p.Pending, p.Sorts = account, status == "", map[string][]bool{"": {false, true}, "succeeded": {false}, "failed": {true}}[status]
		of := db.ChargeListOfCustomerParams{AccountID: account, Customer: customer, Pending: p.Pending, Sorts: p.Sorts, MaxRows: p.MaxRows, AboveAt: p.AboveAt, AboveID: p.AboveID, BelowAt: p.BelowAt, BelowID: p.BelowID}
		waiting := db.ChargeListPendingParams{AccountID: account, Customer: customer, MaxRows: p.MaxRows, AboveAt: p.AboveAt, AboveID: p.AboveID, BelowAt: p.BelowAt, BelowID: p.BelowID}
		l.hold(fmt.Sprintf("charges of %s, customer %q, status %q, from %v to %v, before %v", account, customer, status, p.AboveAt, p.BelowAt, before), stage,
			func(ctx context.Context, t db.DBTX) (err error) {
				switch {
				case status == "pending" && before:
					_, err = q.ChargeListPendingBefore(ctx, t, db.ChargeListPendingBeforeParams(waiting))
				case status == "pending":
					_, err = q.ChargeListPending(ctx, t, waiting)
				case customer != "" && before:
					_, err = q.ChargeListOfCustomerBefore(ctx, t, db.ChargeListOfCustomerBeforeParams(of))
				case customer != "":
					_, err = q.ChargeListOfCustomer(ctx, t, of)
				case before:
					_, err = q.ChargeListBefore(ctx, t, db.ChargeListBeforeParams(p))
				default:
					_, err = q.ChargeList(ctx, t, p)
				}
				return err
			}, l.naive(account, customer, status, p, before))
	}
}

// holdRest tries the lists of refunds and events.
func (l *listed) holdRest(stage string) {
	q := db.New()
	middle := time.Date(2026, 1, 1, 0, 0, l.charges/60, 0, time.UTC)
	longAgo, farOff := time.Unix(0, 0), time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)
	for _, charge := range []string{"ch_big000000030", "ch_big000000021", "ch_nobody"} {
		for _, at := range []time.Time{middle, middle.AddDate(1, 0, 0)} {
			l.hold("refunds of "+charge, stage, func(ctx context.Context, t db.DBTX) error {
				_, err := q.RefundListOfCharge(ctx, t, db.RefundListOfChargeParams{AccountID: "acct_big", ChargeID: charge, BelowAt: at, AboveAt: longAgo, MaxRows: pageRows})
				return err
			}, nil)
			l.hold("refunds before, of "+charge, stage, func(ctx context.Context, t db.DBTX) error {
				_, err := q.RefundListOfChargeBefore(ctx, t, db.RefundListOfChargeBeforeParams{AccountID: "acct_big", ChargeID: charge, AboveAt: at, BelowAt: farOff, MaxRows: pageRows})
				return err
			}, nil)
		}
	}
	for _, account := range []string{"acct_big", "acct_bad"} {
		l.hold("refunds of "+account, stage, func(ctx context.Context, t db.DBTX) error {
			_, err := q.RefundList(ctx, t, db.RefundListParams{AccountID: account, BelowAt: middle, AboveAt: longAgo, MaxRows: pageRows})
			return err
		}, nil)
		l.hold("refunds before, of "+account, stage, func(ctx context.Context, t db.DBTX) error {
			_, err := q.RefundListBefore(ctx, t, db.RefundListBeforeParams{AccountID: account, AboveAt: middle, BelowAt: farOff, MaxRows: pageRows})
			return err
		}, nil)
		for _, place := range []int64{0, int64(l.charges / 20), int64(l.charges)} {
			l.hold("events", stage, func(ctx context.Context, t db.DBTX) error {
				_, err := q.EventList(ctx, t, db.EventListParams{AccountID: account, Above: place, Below: math.MaxInt64, MaxRows: pageRows})
				return err
			}, nil)
			l.hold("events backwards", stage, func(ctx context.Context, t db.DBTX) error {
				_, err := q.EventListBefore(ctx, t, db.EventListBeforeParams{AccountID: account, Below: place, MaxRows: pageRows})
				return err
			}, nil)
			for _, kinds := range [][]string{{"charge.failed"}, {"charge.succeeded"}, {"refund.created"}, {"charge.failed", "charge.succeeded", "refund.created"}} {
				l.hold(fmt.Sprint("events of ", kinds), stage, func(ctx context.Context, t db.DBTX) error {
					_, err := q.EventListOfTypes(ctx, t, db.EventListOfTypesParams{AccountID: account, Types: kinds, Above: place, Below: math.MaxInt64, MaxRows: pageRows})
					return err
				}, nil)
				l.hold(fmt.Sprint("events backwards of ", kinds), stage, func(ctx context.Context, t db.DBTX) error {
					_, err := q.EventListOfTypesBefore(ctx, t, db.EventListOfTypesBeforeParams{AccountID: account, Types: kinds, Below: place, MaxRows: pageRows})
					return err
				}, nil)
			}
		}
	}
}

// holdIntents tries the lists of a payment intent.
func (l *listed) holdIntents(stage string) {
	q := db.New()
	for i := range 3 * 2 * 3 * 2 {
		account, customer := []string{"acct_big", "acct_bad", "acct_none"}[i%3], []string{"", "cus_all"}[i/3%2]
		status, before := []string{"", "succeeded", "failed"}[i/6%3], i/18 == 1
		p := db.ChargeListOfIntentParams{
			AccountID: account, IntentID: "pi_big70", Customer: customer, Status: status, MaxRows: pageRows,
			AboveAt: time.Unix(0, 0), BelowAt: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC),
		}
		var want []string
		for _, n := range []string{"700", "701", "702", "703"} {
			if account == "acct_big" && status != "failed" && (customer == "" || n == "700" || n == "702") {
				want = append(want, "ch_big000000"+n)
			}
		}
		if !before {
			slices.Reverse(want)
		}
		l.hold(fmt.Sprintf("charges of an intent, of %s, customer %q, status %q, before %v", account, customer, status, before), stage,
			func(ctx context.Context, t db.DBTX) (err error) {
				if before {
					_, err = q.ChargeListOfIntentBefore(ctx, t, db.ChargeListOfIntentBeforeParams(p))
					return err
				}
				_, err = q.ChargeListOfIntent(ctx, t, p)
				return err
			}, append([]string{}, want...))
	}
	// charge 30 of big has half of all refunds, charge 31 one, 32 and 33 none or one
	of := db.RefundListOfIntentParams{AccountID: "acct_big", IntentID: "pi_big3", MaxRows: pageRows, AboveAt: time.Unix(0, 0), BelowAt: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)}
	for _, charge := range []string{"", "ch_big000000031", "ch_big000000021"} {
		of.ChargeID = charge
		var want []string
		if charge == "ch_big000000031" {
			want = []string{"re_000000031"}
		} else if charge != "" {
			want = []string{}
		}
		l.hold("refunds of an intent, charge "+charge, stage, func(ctx context.Context, t db.DBTX) error {
			_, err := q.RefundListOfIntent(ctx, t, of)
			return err
		}, want)
		l.hold("refunds before, of an intent, charge "+charge, stage, func(ctx context.Context, t db.DBTX) error {
			_, err := q.RefundListOfIntentBefore(ctx, t, db.RefundListOfIntentBeforeParams(of))
			return err
		}, want)
	}
}

// holdDated tries the lists of events by created: the place is found by halving, and from there on
// the events of a few minutes are passed over.
func (l *listed) holdDated(stage string) {
	q := db.New()
	zero := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	events := l.charges / 10
	defer func() { l.most = pageBlocks }()
	for _, n := range []int{0, 1, 7, events / 2, events - 1, events, events + 1000} {
		l.most = 300 // forty looks, of which each goes down an index and to a row
		l.hold(fmt.Sprint("the place of event ", n), stage, func(ctx context.Context, t db.DBTX) error {
			_, err := q.EventPositionAt(ctx, t, db.EventPositionAtParams{AccountID: "acct_big", At: zero.Add(time.Duration(n) * time.Second)})
			return err
		}, []string{fmt.Sprint(max(min(n-1, events), 0))})
	}
	l.most = 10 * pageBlocks
	from := events / 2
	p := db.EventListParams{
		AccountID: "acct_big", Above: int64(from - 300), Below: int64(from + 310), Dated: true,
		CreatedFrom: zero.Unix() + int64(from), CreatedLast: zero.Unix() + int64(from) + 1, MaxRows: pageRows,
	}
	l.hold("events of two seconds", stage, func(ctx context.Context, t db.DBTX) error {
		_, err := q.EventList(ctx, t, p)
		return err
	}, []string{fmt.Sprint("evt_", from), fmt.Sprint("evt_", from+1)})
	l.hold("events of two seconds, backwards", stage, func(ctx context.Context, t db.DBTX) error {
		_, err := q.EventListBefore(ctx, t, db.EventListBeforeParams(p))
		return err
	}, []string{fmt.Sprint("evt_", from+1), fmt.Sprint("evt_", from)})
}

// A page costs what it shows: whatever the filter, however rare or common what it asks for,
// wherever the page begins, and whatever the planner believes.
func TestListsReadNoMoreThanTheyShow(t *testing.T) {
	t.Parallel()
	l := newListed(t)
	for _, stage := range []string{"old statistics", "analysed"} {
		if stage == "analysed" {
			l.exec(`ANALYZE`)
		}
		l.holdCharges(stage)
		l.holdRest(stage)
		l.holdIntents(stage)
		l.holdDated(stage)
		l.report(stage)
	}
}

// The migration of the indexes begins anew where one was cut off, and writers go on meanwhile.
func TestListIndexesAreBuiltAnew(t *testing.T) {
	t.Parallel()
	url := dbtest.New(t)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for _, sql := range []string{
		`DELETE FROM paidonce_db_version WHERE version_id = 18`,
		`DROP INDEX charges_pending, refunds_of_charge`,
		// as it is when its building was cut off
		`UPDATE pg_index SET indisvalid = false, indisready = false WHERE indexrelid = 'charges_listed'::regclass`,
	} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	writing, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const insert = `INSERT INTO charges (id, account_id, operation_id, amount, currency, capture, livemode) VALUES ($1, 'a', $1, 1, 'usd', true, false)`
	if _, err := writing.Exec(t.Context(), insert, "one"); err != nil {
		t.Fatal(err)
	}
	migrated := make(chan error, 1)
	go func() { migrated <- db.Migrate(t.Context(), url, db.MigrateOptions{}) }()
	other, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close(context.Background())
	// it waits for the transaction that writes
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		var building bool
		if err := other.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%INDEX CONCURRENTLY%' AND wait_event_type = 'Lock')`).Scan(&building); err != nil {
			t.Fatal(err)
		}
		if building {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("no index is being built")
		}
	}
	if _, err := other.Exec(t.Context(), insert, "two"); err != nil {
		t.Errorf("a writer is held up: %v", err)
	}
	if err := writing.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-migrated; err != nil {
		t.Fatal(err)
	}
	rows, err := other.Query(t.Context(), `SELECT c.relname || ' ' || i.indisvalid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
		WHERE c.relname IN ('charges_listed', 'charges_pending', 'charges_of_customer', 'refunds_of_charge') ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if want := []string{"charges_listed true", "charges_of_customer true", "charges_pending true", "refunds_of_charge true"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, want %v (%v)", got, want, err)
	}
}
