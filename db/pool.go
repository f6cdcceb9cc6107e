package db

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// A database that does not take a connection within this time is treated as down: callers get their 503 while they still wait.
	connectTimeout = 5 * time.Second
	// Dead peers (a vanished host, a cut network) are noticed within about 20 s: commits run without a deadline, so the
	// connection itself has to notice.
	keepAliveEvery = 5 * time.Second
	keepAliveTries = 3
	// Connections are renewed now and then, so that a failed-over or rebalanced database is found again; the jitter keeps
	// them from all doing so at once.
	connLifetime       = 30 * time.Minute
	connLifetimeJitter = 5 * time.Minute
)

// Open returns a pool on the database at url with at most maxConns connections. It connects lazily: an unreachable database is
// an error of the first query, not of Open. Errors: an url that cannot be parsed.
//
// PgBouncer in transaction mode needs default_query_exec_mode=cache_describe in the url.
func Open(url string, maxConns int32) (*pgxpool.Pool, error) {
	return open(url, maxConns, nil, noJIT)
}

// Connected is told of each new connection before it is used; its error gives the connection up.
type Connected func(ctx context.Context, c *pgx.Conn) error

// noJIT: PostgreSQL compiles statements that it believes to be costly, which takes longer than any of ours does. It believes so
// of a page whose length it is not told: a tenth of all rows, for all it knows.
const noJIT = `SET jit = off`

// committers is how many connections the hot path has to itself: one for the claims, one for the settlements.
const committers = 2

// OpenBoth divides maxConns, at least 2, into a pool for everything and a small one for the committers of the hot path, so that no commit waits behind a
// read. Its connections plan the set-based statements once: PostgreSQL would plan them anew each time, since a plan for an array of one looks cheaper than
// one for any array, and that planning costs as much as the statement. connected may be nil. Errors: an url that cannot be parsed.
func OpenBoth(url string, maxConns int32, connected Connected) (all, hot *pgxpool.Pool, err error) {
	own := int32(committers)
	if maxConns < 2*committers {
		own = 1 // they take turns
	}
	all, err = open(url, maxConns-own, connected, noJIT)
	if err != nil {
		return nil, nil, err
	}
	hot, err = open(url, own, connected, noJIT+`; SET plan_cache_mode = force_generic_plan`)
	if err != nil {
		all.Close()
	}
	return all, hot, err
}

// open returns a pool whose connections are looked at by connected, and begin with statements for their session.
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
		// Behind a pooler in transaction mode the settings would stay with a connection that others use as well.
		if c.Config().DefaultQueryExecMode != pgx.QueryExecModeCacheStatement {
			return nil
		}
		_, err := c.Exec(ctx, session)
		return err
	}
	cfg.ConnConfig.ConnectTimeout = connectTimeout
	cfg.ConnConfig.BuildContextWatcherHandler = giveUp
	dialer := net.Dialer{KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: keepAliveEvery, Interval: keepAliveEvery, Count: keepAliveTries,
	}}
	cfg.ConnConfig.DialFunc = dialer.DialContext
	return pgxpool.NewWithConfig(context.Background(), cfg)
}

// ErrNotDurable: the database would lose committed rows in a crash.
var ErrNotDurable = errors.New("the database is not durable")

// CheckDurability reports whether the database would lose committed rows in a crash: an acknowledged charge must not be forgotten. Errors: [ErrNotDurable], or
// the database's.
func CheckDurability(ctx context.Context, pool *pgxpool.Pool) error {
	var fsync, sync string
	err := pool.QueryRow(ctx, `SELECT current_setting('fsync'), current_setting('synchronous_commit')`).Scan(&fsync, &sync)
	if err != nil {
		return fmt.Errorf("the database does not answer: %w", err)
	}
	if fsync == "off" || sync == "off" {
		return fmt.Errorf("%w: it runs with fsync=%s and synchronous_commit=%s, so a crash would lose charges that were acknowledged", ErrNotDurable, fsync, sync)
	}
	return nil
}
