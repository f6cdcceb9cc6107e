package metrics

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"paidonce/charges"
	"paidonce/db"
	"paidonce/idemkeys"
)

// Sources is what is looked at when a scrape comes.
type Sources struct {
	Pool       *pgxpool.Pool
	Engine     *idemkeys.Engine
	Charges    *charges.Store
	StaleAfter time.Duration
}

// Watch adds the database and the engine to what is measured. Call it once.
func (m *Metrics) Watch(s Sources) {
	counter := func(name, help string, labels prometheus.Labels, read func() float64) {
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labels}, read))
	}
	gauge := func(name, help string, labels prometheus.Labels, read func() float64) {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels}, read))
	}
	watchCommits(counter, s.Charges)
	watchLeases(counter, s.Engine)
	watchPool(counter, gauge, s.Pool)
	gauge("paidonce_stale_after_seconds", "PAIDONCE_STALE_AFTER: the age at which an unfinished operation counts as stale.", nil, s.StaleAfter.Seconds)
	m.registry.MustRegister(newKeyGauges(s.Pool, s.StaleAfter))
}

type register func(name, help string, labels prometheus.Labels, read func() float64)

func watchCommits(counter register, s *charges.Store) {
	claims := func() db.CommitterStats { c, _ := s.CommitStats(); return c }
	settles := func() db.CommitterStats { _, c := s.CommitStats(); return c }
	for commit, stats := range map[string]func() db.CommitterStats{"claim": claims, "settle": settles} {
		labels := prometheus.Labels{"commit": commit}
		counter("paidonce_commit_statements_total", "Set-based statements of charges that were executed; each is a transaction.", labels,
			func() float64 { return float64(stats().Statements) })
		counter("paidonce_commit_rows_total", "Rows in these statements; over the statements: how many share a transaction.", labels,
			func() float64 { return float64(stats().Rows) })
		counter("paidonce_commit_won_rows_total", "Rows whose fence held; of claims, the others found their key taken.", labels,
			func() float64 { return float64(stats().Won) })
	}
}

func watchLeases(counter register, e *idemkeys.Engine) {
	count := func(name, help string, labels prometheus.Labels, of func(idemkeys.Stats) int64) {
		counter(name, help, labels, func() float64 { return float64(of(e.Stats())) })
	}
	const takeOvers, help = "paidonce_lease_takeovers_total", "Leases taken of operations that others had begun, by who drives them now."
	count(takeOvers, help, prometheus.Labels{"driver": "caller"}, func(s idemkeys.Stats) int64 { return s.TakenOver })
	count(takeOvers, help, prometheus.Labels{"driver": "reconciler"}, func(s idemkeys.Stats) int64 { return s.LeasedDue })
	count("paidonce_leases_lost_total", "Results that were discarded since somebody else held the lease by then.", nil, func(s idemkeys.Stats) int64 { return s.Lost })
	count("paidonce_runs_without_outcome_total", "Runs that ended without an outcome and gave their lease back.", nil, func(s idemkeys.Stats) int64 { return s.Released })
	count("paidonce_parkings_total", "Operations that this process left to a person.", nil, func(s idemkeys.Stats) int64 { return s.Parked })
	count("paidonce_late_results_total", "Results written after their caller had been told that the outcome is unknown.", nil, func(s idemkeys.Stats) int64 { return s.WroteLate })
}

func watchPool(counter, gauge register, pool *pgxpool.Pool) {
	const connections, states = "paidonce_db_pool_connections", "Database connections by state: acquired, idle, constructing."
	for state, read := range map[string]func(*pgxpool.Stat) int32{
		"acquired": (*pgxpool.Stat).AcquiredConns, "idle": (*pgxpool.Stat).IdleConns, "constructing": (*pgxpool.Stat).ConstructingConns,
	} {
		gauge(connections, states, prometheus.Labels{"state": state}, func() float64 { return float64(read(pool.Stat())) })
	}
	gauge("paidonce_db_pool_max_connections", "PAIDONCE_DB_MAX_CONNS less the two that the commits of charges have to themselves.", nil, func() float64 { return float64(pool.Stat().MaxConns()) })
	count := func(name, help string, read func(*pgxpool.Stat) int64) {
		counter(name, help, nil, func() float64 { return float64(read(pool.Stat())) })
	}
	count("paidonce_db_pool_acquires_total", "Connections that were asked for and got.", (*pgxpool.Stat).AcquireCount)
	count("paidonce_db_pool_acquire_waits_total", "Of these, how many had to wait: none was idle.", (*pgxpool.Stat).EmptyAcquireCount)
	count("paidonce_db_pool_acquires_canceled_total", "Connections that were asked for and given up on.", (*pgxpool.Stat).CanceledAcquireCount)
	count("paidonce_db_pool_connections_opened_total", "Connections that were opened.", (*pgxpool.Stat).NewConnsCount)
	counter("paidonce_db_pool_acquire_wait_seconds_total", "Time spent waiting for a connection when none was idle.", nil,
		func() float64 { return pool.Stat().EmptyAcquireWaitTime().Seconds() })
}

const (
	// keyGaugesLimit bounds the questions at a scrape: they take a millisecond, and Prometheus gives up after ten seconds by default.
	keyGaugesLimit = 2 * time.Second
	// keyGaugesAge is how long an answer is good for: shorter than any sensible interval of scrapes, long enough that two Prometheus
	// servers cost one question. A failure is kept as long: a database in trouble is not asked by each scrape.
	keyGaugesAge = 3 * time.Second
)

// keyGauges asks the database where the unfinished operations stand. When it does not answer the gauges are absent rather than old.
type keyGauges struct {
	queries    *db.Queries
	pool       *pgxpool.Pool
	staleAfter time.Duration
	gauges     []keyGauge
	failed     prometheus.Counter

	mu    sync.Mutex // of the scrapes that come at once, one asks
	asked time.Time
	now   databaseSays
	err   error
}

type databaseSays struct {
	db.KeyGaugesRow
	inbox db.InboxGaugesRow
}

type keyGauge struct {
	desc *prometheus.Desc
	of   func(databaseSays) float64
}

func newKeyGauges(pool *pgxpool.Pool, staleAfter time.Duration) *keyGauges {
	k := &keyGauges{queries: db.New(), pool: pool, staleAfter: staleAfter, failed: prometheus.NewCounter(prometheus.CounterOpts{
		Name: "paidonce_scrape_errors_total", Help: "Times that the database did not say where operations stand; those gauges were absent then.",
	})}
	add := func(name, help string, of func(databaseSays) float64) {
		k.gauges = append(k.gauges, keyGauge{prometheus.NewDesc(name, help+" Of the database: the same at every instance.", nil, nil), of})
	}
	add("paidonce_operations_in_progress", "Unfinished operations, parked ones included.", func(r databaseSays) float64 { return float64(r.InProgress) })
	add("paidonce_operations_running", "Unfinished operations that somebody works on.", func(r databaseSays) float64 { return float64(r.Running) })
	add("paidonce_operations_stale", "Unfinished operations that are older than PAIDONCE_STALE_AFTER and not parked: stuck at this moment.",
		func(r databaseSays) float64 { return float64(r.Stale) })
	add("paidonce_operations_parked", "Operations that wait for a person.", func(r databaseSays) float64 { return float64(r.Parked) })
	add("paidonce_operations_oldest_seconds", "Age of the oldest unfinished operation that is not parked; 0 without one.",
		func(r databaseSays) float64 { return r.OldestSeconds })
	add("paidonce_operations_oldest_parked_seconds", "How long the operation that was parked first has waited for a person; 0 without one.",
		func(r databaseSays) float64 { return r.OldestParkedSeconds })
	add("paidonce_operations_overdue_seconds", "How long a driver could have taken the operation that waits longest for one; grows when no reconciler runs.",
		func(r databaseSays) float64 { return r.OverdueSeconds })
	add("paidonce_keys_oldest_expired_seconds", "How long the oldest finished key is past its retention; grows when no sweep runs.",
		func(r databaseSays) float64 { return r.OldestExpiredSeconds })
	add("paidonce_inbox_unprocessed", "Events of the provider that are stored and not processed yet, parked ones left out.",
		func(r databaseSays) float64 { return float64(r.inbox.Unprocessed) })
	add("paidonce_inbox_parked", "Events of the provider that failed too often and wait for a person.",
		func(r databaseSays) float64 { return float64(r.inbox.Parked) })
	add("paidonce_inbox_overdue_seconds", "How long the event that waits longest could have been processed; grows when no inbox worker runs.",
		func(r databaseSays) float64 { return r.inbox.OverdueSeconds })
	return k
}

// Describe implements [prometheus.Collector].
func (k *keyGauges) Describe(ch chan<- *prometheus.Desc) {
	k.failed.Describe(ch)
	for _, g := range k.gauges {
		ch <- g.desc
	}
}

// Collect implements [prometheus.Collector].
func (k *keyGauges) Collect(ch chan<- prometheus.Metric) {
	row, err := k.ask()
	k.failed.Collect(ch)
	if err != nil {
		return
	}
	for _, g := range k.gauges {
		ch <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, g.of(row))
	}
}

func (k *keyGauges) ask() (databaseSays, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.asked.IsZero() && time.Since(k.asked) < keyGaugesAge {
		return k.now, k.err
	}
	ctx, cancel := context.WithTimeout(context.Background(), keyGaugesLimit)
	defer cancel()
	k.err = db.RetryConflict(ctx, func(ctx context.Context) (err error) { // not Retry: a scrape does not wait for a database that is away
		if k.now.KeyGaugesRow, err = k.queries.KeyGauges(ctx, k.pool, k.staleAfter); err != nil {
			return err
		}
		k.now.inbox, err = k.queries.InboxGauges(ctx, k.pool)
		return err
	})
	k.asked = time.Now()
	if k.err != nil {
		k.failed.Inc()
	}
	return k.now, k.err
}
