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
	"paidonce/outbox"
)

// Sources is what a scrape reads.
type Sources struct {
	Pool       *pgxpool.Pool
	Leases     *idemkeys.Leases
	Held       func() error // why claims are held, or nil
	Charges    *charges.Service
	Events     *outbox.Store
	Relay      *outbox.Relay
	StaleAfter time.Duration
	Clocks     *charges.Clocks // nil: the clocks are not measured
}

// Watch adds the database, the leases and the relay to the metrics. Call it once.
func (m *Metrics) Watch(s Sources) {
	counter := func(name, help string, labels prometheus.Labels, read func() float64) {
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labels}, read))
	}
	gauge := func(name, help string, labels prometheus.Labels, read func() float64) {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels}, read))
	}
	watchCommits(counter, s.Charges)
	watchLeases(counter, s.Leases)
	watchEvents(counter, s.Events, s.Relay)
	watchPool(counter, gauge, s.Pool)
	gauge("paidonce_claims_held", "1 while nothing is claimed because the database may have forgotten something, else 0.", nil, func() float64 {
		if s.Held() != nil {
			return 1
		}
		return 0
	})
	gauge("paidonce_stale_after_seconds",
		"PAIDONCE_STALE_AFTER: the age at which an unfinished operation counts as stale.", nil,
		s.StaleAfter.Seconds)
	m.registry.MustRegister(newDatabaseGauges(s.Pool, s.StaleAfter), clockSkew{s.Clocks})
}

// clockSkew collects how far the clocks are apart, if they have been compared.
type clockSkew struct{ clocks *charges.Clocks }

var skewDesc = prometheus.NewDesc("paidonce_clock_skew_seconds",
	"How far the provider's clock is ahead of the database's, as this process saw both last.", nil,
	nil)

// Describe implements [prometheus.Collector].
func (c clockSkew) Describe(ch chan<- *prometheus.Desc) { ch <- skewDesc }

// Collect implements [prometheus.Collector].
func (c clockSkew) Collect(ch chan<- prometheus.Metric) {
	if ahead, known := c.clocks.Skew(); known {
		ch <- prometheus.MustNewConstMetric(skewDesc, prometheus.GaugeValue, ahead.Seconds())
	}
}

type register func(name, help string, labels prometheus.Labels, read func() float64)

func watchCommits(counter register, s *charges.Service) {
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

func watchLeases(counter register, l *idemkeys.Leases) {
	count := func(name, help string, labels prometheus.Labels, of func(idemkeys.Stats) int64) {
		counter(name, help, labels, func() float64 { return float64(of(l.Stats())) })
	}
	const takeOvers, help = "paidonce_lease_takeovers_total", "Leases taken of operations that others had begun, by who drives them now."
	count(takeOvers, help, prometheus.Labels{"driver": "caller"},
		func(s idemkeys.Stats) int64 { return s.TakenOver })
	count(takeOvers, help, prometheus.Labels{"driver": "reconciler"},
		func(s idemkeys.Stats) int64 { return s.LeasedDue })
	count("paidonce_leases_lost_total",
		"Results that were discarded since somebody else held the lease by then.", nil,
		func(s idemkeys.Stats) int64 { return s.Lost })
	count("paidonce_runs_without_outcome_total",
		"Runs that ended without an outcome and gave their lease back.", nil,
		func(s idemkeys.Stats) int64 { return s.Released })
	count("paidonce_parkings_total", "Operations that this process left to an operator.", nil,
		func(s idemkeys.Stats) int64 { return s.Parked })
	count("paidonce_late_results_total",
		"Results written after their caller had been told that the outcome is unknown.", nil,
		func(s idemkeys.Stats) int64 { return s.WroteLate })
}

func watchPool(counter, gauge register, pool *pgxpool.Pool) {
	const connections, states = "paidonce_db_pool_connections", "Database connections by state: acquired, idle, constructing."
	for state, read := range map[string]func(*pgxpool.Stat) int32{
		"acquired": (*pgxpool.Stat).AcquiredConns, "idle": (*pgxpool.Stat).IdleConns,
		"constructing": (*pgxpool.Stat).ConstructingConns,
	} {
		gauge(connections, states, prometheus.Labels{"state": state},
			func() float64 { return float64(read(pool.Stat())) })
	}
	gauge("paidonce_db_pool_max_connections",
		"PAIDONCE_DB_MAX_CONNS less the two that the commits of charges have to themselves.", nil,
		func() float64 { return float64(pool.Stat().MaxConns()) })
	count := func(name, help string, read func(*pgxpool.Stat) int64) {
		counter(name, help, nil, func() float64 { return float64(read(pool.Stat())) })
	}
	count("paidonce_db_pool_acquires_total", "Connections that were asked for and got.",
		(*pgxpool.Stat).AcquireCount)
	count("paidonce_db_pool_acquire_waits_total", "Of these, how many had to wait: none was idle.",
		(*pgxpool.Stat).EmptyAcquireCount)
	count("paidonce_db_pool_acquires_canceled_total",
		"Connections that were asked for and given up on.", (*pgxpool.Stat).CanceledAcquireCount)
	count("paidonce_db_pool_connections_opened_total", "Connections that were opened.",
		(*pgxpool.Stat).NewConnsCount)
	counter("paidonce_db_pool_acquire_wait_seconds_total", "Time spent waiting for a connection when none was idle.", nil,
		func() float64 { return pool.Stat().EmptyAcquireWaitTime().Seconds() })
}

const (
	// gaugesLimit bounds the queries of a scrape. They take a few milliseconds, and Prometheus
	// gives up after ten seconds by default.
	gaugesLimit = 2 * time.Second
	// gaugesAge is how long an answer is reused: shorter than any sensible interval of scrapes,
	// long enough that two Prometheus servers cost one query. A failure is reused as well, so that
	// a database in trouble is not queried by each scrape.
	gaugesAge = 3 * time.Second
	// everywhere ends the help of each gauge of the database.
	everywhere = " Of the database: the same at every instance."
)

// databaseGauges reads the state of unfinished operations and events from the database. What the
// database does not answer is absent rather than old. Operations are read first, so that they are
// there even when the query about events takes too long: its cost depends on how many endpoints
// have something pending.
type databaseGauges struct {
	queries    *db.Queries
	pool       *pgxpool.Pool
	staleAfter time.Duration
	keys       []gauge[keyStats]
	events     []gauge[eventStats]
	failed     prometheus.Counter

	mu     sync.Mutex // of concurrent scrapes one runs the queries
	readAt time.Time
	now    databaseStats
}

type databaseStats struct {
	keys              keyStats
	events            eventStats
	keysErr, eventErr error
}

type keyStats struct {
	db.KeyGaugesRow
	inbox db.InboxGaugesRow
}

// gauge is one number of an answer.
type gauge[S any] struct {
	desc *prometheus.Desc
	of   func(S) float64
}

func newGauge[S any](name, help string, of func(S) float64) gauge[S] {
	return gauge[S]{prometheus.NewDesc(name, help+everywhere, nil, nil), of}
}

func newDatabaseGauges(pool *pgxpool.Pool, staleAfter time.Duration) *databaseGauges {
	return &databaseGauges{
		queries: db.New(), pool: pool, staleAfter: staleAfter, keys: keyGauges(),
		events: eventGauges(),
		failed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "paidonce_scrape_errors_total",
			Help: "Times that the database did not say where operations or events stand; those gauges were absent then.",
		}),
	}
}

func keyGauges() (all []gauge[keyStats]) {
	add := func(name, help string, of func(keyStats) float64) { all = append(all, newGauge(name, help, of)) }
	add("paidonce_operations_in_progress", "Unfinished operations, parked ones included.",
		func(r keyStats) float64 { return float64(r.InProgress) })
	add("paidonce_operations_running", "Unfinished operations that somebody works on.",
		func(r keyStats) float64 { return float64(r.Running) })
	add("paidonce_operations_stale", "Unfinished operations that are older than PAIDONCE_STALE_AFTER and not parked: stuck at this moment.",
		func(r keyStats) float64 { return float64(r.Stale) })
	add("paidonce_operations_parked", "Operations that wait for an operator.",
		func(r keyStats) float64 { return float64(r.Parked) })
	add("paidonce_operations_oldest_seconds", "Age of the oldest unfinished operation that is not parked; 0 without one.",
		func(r keyStats) float64 { return r.OldestSeconds })
	add("paidonce_operations_oldest_parked_seconds", "How long the operation that was parked first has waited for an operator; 0 without one.",
		func(r keyStats) float64 { return r.OldestParkedSeconds })
	add("paidonce_operations_overdue_seconds", "How long a driver could have taken the operation that waits longest for one; grows when no reconciler runs.",
		func(r keyStats) float64 { return r.OverdueSeconds })
	add("paidonce_keys_oldest_expired_seconds", "How long the oldest finished key is past its retention; grows when no sweep runs.",
		func(r keyStats) float64 { return r.OldestExpiredSeconds })
	add("paidonce_inbox_unprocessed", "Events of the provider that are stored and not processed yet, parked ones left out.",
		func(r keyStats) float64 { return float64(r.inbox.Unprocessed) })
	add("paidonce_inbox_parked", "Events of the provider that failed too often and wait for an operator.",
		func(r keyStats) float64 { return float64(r.inbox.Parked) })
	add("paidonce_inbox_overdue_seconds", "How long the event that waits longest could have been processed; grows when no inbox worker runs.",
		func(r keyStats) float64 { return r.inbox.OverdueSeconds })
	return all
}

// Describe implements [prometheus.Collector].
func (g *databaseGauges) Describe(ch chan<- *prometheus.Desc) {
	g.failed.Describe(ch)
	for _, one := range g.keys {
		ch <- one.desc
	}
	for _, one := range g.events {
		ch <- one.desc
	}
	ch <- streamLag
}

// Collect implements [prometheus.Collector].
func (g *databaseGauges) Collect(ch chan<- prometheus.Metric) {
	now := g.read()
	g.failed.Collect(ch)
	if now.keysErr == nil {
		for _, one := range g.keys {
			ch <- prometheus.MustNewConstMetric(one.desc, prometheus.GaugeValue, one.of(now.keys))
		}
	}
	if now.eventErr == nil {
		for _, one := range g.events {
			ch <- prometheus.MustNewConstMetric(one.desc, prometheus.GaugeValue, one.of(now.events))
		}
		for _, s := range now.events.streams {
			ch <- prometheus.MustNewConstMetric(streamLag, prometheus.GaugeValue, s.LagSeconds,
				s.Publisher)
		}
	}
}

func (g *databaseGauges) read() databaseStats {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.readAt.IsZero() && time.Since(g.readAt) < gaugesAge {
		return g.now
	}
	ctx, cancel := context.WithTimeout(context.Background(), gaugesLimit)
	defer cancel()
	g.now = databaseStats{}
	// Not Retry: a scrape does not wait for a database that cannot be reached.
	g.now.keysErr = db.RetryConflict(ctx, func(ctx context.Context) (err error) {
		if g.now.keys.KeyGaugesRow, err = g.queries.KeyGauges(ctx, g.pool,
			g.staleAfter); err != nil {
			return err
		}
		g.now.keys.inbox, err = g.queries.InboxGauges(ctx, g.pool)
		return err
	})
	g.now.eventErr = g.now.keysErr
	if g.now.keysErr == nil {
		g.now.eventErr = db.RetryConflict(ctx, func(ctx context.Context) (err error) {
			g.now.events, err = readEvents(ctx, g.queries, g.pool)
			return err
		})
	}
	g.readAt = time.Now()
	if g.now.eventErr != nil {
		g.failed.Inc()
	}
	return g.now
}
