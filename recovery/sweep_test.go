package recovery_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"paidonce/idemkeys"
	"paidonce/inbox"
	"paidonce/internal/world"
	"paidonce/recovery"
)

// sweepKeys sweeps nothing but keys.
func sweepKeys(ctx context.Context, e *idemkeys.Engine) (int, error) {
	swept, err := recovery.Sweep(ctx, world.Quiet, recovery.Kind{Name: "keys", Batch: e.Sweep})
	return swept["keys"], err
}

const (
	inboxTTL = 90 * 24 * time.Hour
	logTTL   = 365 * 24 * time.Hour
)

// old are the kinds of rows that grow with time rather than with charges.
func old(w *world.World, e *idemkeys.Engine) []recovery.Kind {
	news := inbox.New(inbox.Config{Pool: w.Pool, Log: world.Quiet})
	return []recovery.Kind{
		{Name: "provider_events", Batch: func(ctx context.Context, most int) (int, bool, error) {
			n, err := news.Sweep(ctx, inboxTTL, most)
			return n, n == most, err
		}},
		{Name: "operation_log", Batch: e.SweepLogs(logTTL)},
	}
}

// left lists what a query finds, in order.
func left(w *world.World, query string) (list []string) {
	w.T.Helper()
	rows, err := w.Pool.Query(w.T.Context(), query)
	if err != nil {
		w.T.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			w.T.Fatal(err)
		}
		list = append(list, s)
	}
	if err := rows.Err(); err != nil {
		w.T.Fatal(err)
	}
	slices.Sort(list)
	return list
}

// Events of the provider and logs of operations go after their time; what is not dealt with
// stays, however old it is, and a log goes as a whole.
func TestSweepOfWhatGrowsWithTime(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	i := w.Start()
	w.Exec(`INSERT INTO provider_events (id, type, object_id, livemode, payload, received_at, processed_at, result, next_run_at, parked_at)
		SELECT id, 'charge.succeeded', 'ch', false, '{}', now() - interval '400 days', now() - processed * interval '1 day', CASE WHEN processed > 0 THEN 'nothing new' END,
			CASE WHEN id = 'waits' THEN now() - interval '400 days' END, CASE WHEN id = 'parked' THEN now() - interval '399 days' END
		FROM (VALUES ('old', 400), ('older', 500), ('young', 89), ('late', 91), ('waits', NULL), ('parked', NULL)) x (id, processed)`)
	if _, err := i.Charge("finished"); err != nil {
		t.Fatal(err)
	}
	crashed := make(chan struct{})
	doomed := w.StartWith(
		nil, world.CrashingProvider{Provider: w.Provider, After: true, Crashed: crashed},
	)
	world.UntilCrash(t, crashed, func() { _, _ = doomed.Charge("unfinished") })
	log := func(operation, days string) {
		w.Exec(
			`INSERT INTO operation_log (operation_id, at, event, attempt, actor) SELECT ` + operation + `, now() - d * interval '1 day', 'resumed', 2, 'request' FROM unnest(ARRAY[` + days + `]) d`,
		)
	}
	log(`'swept'`, "400, 370")
	log(`'goes on'`, "400, 100")
	log(`(SELECT operation_id FROM idempotency_keys WHERE key = 'finished')`, "500, 366")
	log(`(SELECT operation_id FROM idempotency_keys WHERE key = 'unfinished')`, "700, 600, 500")
	swept, err := recovery.Sweep(t.Context(), world.Quiet, old(w, i.Engine)...)
	if err != nil || swept["provider_events"] != 3 || swept["operation_log"] != 4 {
		t.Errorf("swept %v, %v", swept, err)
	}
	if got := left(w, `SELECT id FROM provider_events`); !slices.Equal(
		got, []string{"parked", "waits", "young"},
	) {
		t.Errorf("events that are left: %v", got)
	}
	got := left(
		w,
		`SELECT coalesce(k.key, l.operation_id) FROM operation_log l LEFT JOIN idempotency_keys k USING (operation_id)`,
	)
	if want := []string{
		"goes on", "goes on", "unfinished", "unfinished", "unfinished",
	}; !slices.Equal(got, want) {
		t.Errorf("lines of logs that are left: %v, want %v", got, want)
	}
	w.Age(time.Hour) // past the lease
	w.Pass(w.Start())
	w.CheckRecords(2)
	if swept, err := recovery.Sweep(t.Context(), world.Quiet, old(w, i.Engine)...); err != nil ||
		swept["operation_log"] != 0 {
		t.Errorf("swept %v although its last line is young, %v", swept, err)
	}
	w.Exec(`UPDATE operation_log SET at = at - interval '366 days'`)
	swept, err = recovery.Sweep(t.Context(), world.Quiet, old(w, i.Engine)...)
	if n := w.Count(`SELECT count(*) FROM operation_log`); err != nil || n != 0 {
		t.Errorf("swept %v once it is finished, %d left, %v", swept, n, err)
	}
}

// However short the setting, an event is known for as long as the provider may send it again.
func TestEventsAreKnownAsLongAsTheyMayCome(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	w.Exec(`INSERT INTO provider_events (id, type, object_id, livemode, payload, processed_at, result, next_run_at)
		SELECT 'e' || d, 'charge.succeeded', 'ch', false, '{}', now() - d * interval '1 day', 'done', NULL FROM unnest(ARRAY[1, 29, 31]) d`)
	news := inbox.New(inbox.Config{Pool: w.Pool, Log: world.Quiet})
	if n, err := news.Sweep(t.Context(), time.Second, 100); n != 1 || err != nil {
		t.Errorf("swept %d, %v", n, err)
	}
	if got := left(w, `SELECT id FROM provider_events`); !slices.Equal(got, []string{"e1", "e29"}) {
		t.Errorf("events that are left: %v", got)
	}
}

// A year of both goes in batches of which each is small, and reads no more than it forgets. Logs
// that stay, because their operations are parked, are looked at once a sweep.
func TestSweepOfAYear(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	i := w.Start()
	const rows = 25_000
	w.Exec(fmt.Sprintf(`INSERT INTO provider_events (id, type, object_id, livemode, payload, received_at, processed_at, result, next_run_at)
		SELECT 'e' || n, 'charge.succeeded', 'ch', false, '{}', at, at, 'done', NULL FROM (SELECT n, now() - n * interval '2 minutes' - interval '91 days' AS at FROM generate_series(1, %d) n) x`, rows))
	w.Exec(fmt.Sprintf(`INSERT INTO operation_log (operation_id, at, event, attempt, actor)
		SELECT 'op' || n / 3, now() - n * interval '2 minutes' - interval '366 days', 'resumed', 2, 'request' FROM generate_series(1, %d) n`, rows))
	w.Exec(`INSERT INTO idempotency_keys (account_id, key, operation_id, kind, hash_version, request_hash, request_id, params, resource_id, recovery_point, parked_at)
		SELECT 'a', 'k' || n, 'op' || n * 5, 'charge.Charges', 1, decode(repeat('00', 32), 'hex'), 'r', '{}', 'c' || n, 'started', now() FROM generate_series(1, 100) n`)
	biggest, batches := 0, map[string]int{}
	kinds := old(w, i.Engine)
	for k, kind := range kinds {
		kinds[k].Batch = func(ctx context.Context, most int) (int, bool, error) {
			n, more, err := kind.Batch(ctx, most)
			biggest = max(biggest, n)
			batches[kind.Name]++
			return n, more, err
		}
	}
	swept, err := recovery.Sweep(t.Context(), world.Quiet, kinds...)
	if err != nil || swept["provider_events"] != rows || swept["operation_log"] != rows-300 {
		t.Errorf("swept %v, %v", swept, err)
	}
	const most, longest = 1000, 3 // rows, and lines of a log, which is not taken apart
	if biggest > most+longest || batches["operation_log"] > rows/most+1 ||
		batches["provider_events"] > rows/most+1 {
		t.Errorf("the largest batch had %d rows; %v batches", biggest, batches)
	}
	if n := w.Count(`SELECT count(*) FROM operation_log`); n != 300 {
		t.Errorf("%d lines of parked operations are left, want 300", n)
	}
}

// A kind that fails keeps none of the others from being swept, and is named.
func TestSweepGoesOnAfterAFailure(t *testing.T) {
	t.Parallel()
	fails := recovery.Kind{
		Name:  "rust",
		Batch: func(context.Context, int) (int, bool, error) { return 0, false, errors.New("no") },
	}
	works := recovery.Kind{
		Name: "dust", Batch: func(context.Context, int) (int, bool, error) { return 7, false, nil },
	}
	swept, err := recovery.Sweep(t.Context(), world.Quiet, fails, works)
	if err == nil || !strings.Contains(err.Error(), "rust: no") || swept["dust"] != 7 {
		t.Errorf("%v, %v", swept, err)
	}
}
