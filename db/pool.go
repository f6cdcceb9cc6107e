package db

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// A database that does not take a connection within this time is treated as down: callers get
	// their 503 while they still wait.
	connectTimeout = 5 * time.Second
	// Dead peers (a vanished host, a cut network) are noticed within about 20 s: commits run
	// without a deadline, so the connection itself has to notice.
	keepAliveEvery = 5 * time.Second
	keepAliveTries = 3
	// Connections are renewed now and then, so that a failed-over or rebalanced database is found
	// again; the jitter keeps them from all doing so at once.
	connLifetime       = 30 * time.Minute
	connLifetimeJitter = 5 * time.Minute
)

// Open returns a pool on the database at url with at most maxConns connections. It connects lazily:
// an unreachable database is an error of the first query, not of Open. Errors: an url that cannot
// be parsed.
//
// PgBouncer in transaction mode needs default_query_exec_mode=cache_describe in the url.
func Open(url string, maxConns int32) (*pgxpool.Pool, error) {
	return open(url, maxConns, nil, session)
}

// Connected is called with each new connection before it is used. If it returns an error the
// connection is closed.
type Connected func(ctx context.Context, conn DBTX) error

// session is what every connection begins with. PostgreSQL compiles statements that it believes to
// be costly, which takes longer than running any of them: of a page whose length it is not told it
// believes that it is a tenth of all rows. Tables are read whole where they seem to be empty or
// their statistics are old, and bitmaps or all rows, to be sorted, where a page in the order of an
// index is wanted: none of these is meant where there is another way.
const session = `SET jit = off; SET enable_seqscan = off; SET enable_bitmapscan = off;
	SET enable_sort = off`

// How long plans are kept. A plan that was made when a table was empty would be kept until the
// table is analysed again.
const (
	planEachTime = `SET plan_cache_mode = force_custom_plan`
	planOnce     = `; SET plan_cache_mode = force_generic_plan`
)

// committers is how many connections the hot path has to itself: one for the claims, one for the
// settlements.
const committers = 2

// OpenBoth divides maxConns, at least 2, into a pool for everything and a small one for the
// committers of the hot path, so that no commit waits behind a read. Its connections plan the
// set-based statements once: PostgreSQL would plan them anew each time, since a plan for an array
// of one looks cheaper than one for any array, and that planning costs as much as the statement.
// Only while a table is known to be empty, which says nothing about its indexes, they are planned
// each time; see [untold]. connected may be nil. Errors: an url that cannot be parsed.
func OpenBoth(url string, maxConns int32, connected Connected) (all, hot *pgxpool.Pool, err error) {
	own := int32(committers)
	if maxConns < 2*committers {
		own = 1 // they take turns
	}
	all, err = open(url, maxConns-own, connected, session)
	if err != nil {
		return nil, nil, err
	}
	hot, err = open(url, own, connected, session+planOnce)
	if err != nil {
		all.Close()
	}
	return all, hot, err
}

// open returns a pool whose connections are looked at by connected, and begin with statements for
// their session.
func open(url string, maxConns int32, connected Connected, session string) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		// pgx's text may quote the url with its password.
		return nil, fmt.Errorf("the database url cannot be parsed")
	}
	cfg.MaxConns = maxConns
	cfg.MaxConnLifetime = connLifetime
	cfg.MaxConnLifetimeJitter = connLifetimeJitter
	cfg.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
		if connected != nil {
			if err := connected(ctx, c); err != nil {
				return err
			}
		}
		// Behind a pooler in transaction mode the settings would stay with a connection that others
		// use as well.
		if c.Config().DefaultQueryExecMode != pgx.QueryExecModeCacheStatement {
			return nil
		}
		if _, err := c.Exec(ctx, session); err != nil {
			return err
		}
		return planLater(ctx, c)
	}
	// Not AfterRelease: a pool that has one releases in a goroutine, and the next query finds the
	// connection still taken and opens another.
	cfg.PrepareConn = func(_ context.Context, c *pgx.Conn) (bool, error) {
		return mayKeepPlans(c), nil
	}
	cfg.ConnConfig.ConnectTimeout = connectTimeout
	cfg.ConnConfig.BuildContextWatcherHandler = newContextWatcher
	dialer := net.Dialer{KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: keepAliveEvery, Interval: keepAliveEvery, Count: keepAliveTries,
	}}
	cfg.ConnConfig.DialFunc = dialer.DialContext
	return pgxpool.NewWithConfig(context.Background(), cfg)
}

// untold reports whether a table of a charge was analysed when it was empty. Then all its indexes
// look alike, and a plan that is made once may read the wrong one from end to end. While a table
// was never analysed PostgreSQL takes it for ten pages, which is enough to tell them apart.
// Deliveries count only where there are endpoints: elsewhere they are always empty.
const untold = `SELECT EXISTS (SELECT FROM pg_class WHERE reltuples = 0 AND relpages = 0 AND (oid IN (
		to_regclass('charges'), to_regclass('idempotency_keys'), to_regclass('outbox'))
	OR oid = to_regclass('deliveries') AND EXISTS (
		SELECT FROM pg_class WHERE oid = to_regclass('webhook_endpoints') AND relpages > 0)))`

const (
	untoldAt = "paidonce.untold" // in a connection's own data: since when
	// untoldFor is how long such a connection lives: planning costs as much as the statement, and
	// PostgreSQL's own ANALYZE comes within a minute of the first rows.
	untoldFor = 30 * time.Second
)

// planLater has a connection plan each time if nothing is known of a table.
func planLater(ctx context.Context, c *pgx.Conn) error {
	var yes bool
	if err := c.QueryRow(ctx, untold).Scan(&yes); err != nil || !yes {
		return err
	}
	c.PgConn().CustomData()[untoldAt] = time.Now()
	_, err := c.Exec(ctx, planEachTime)
	return err
}

// mayKeepPlans reports whether a connection may be used again.
func mayKeepPlans(c *pgx.Conn) bool {
	since, yes := c.PgConn().CustomData()[untoldAt].(time.Time)
	return !yes || time.Since(since) < untoldFor
}
