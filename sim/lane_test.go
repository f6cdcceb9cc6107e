package sim_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"paidonce/accounts"
	"paidonce/db"
	"paidonce/internal/dbtest"
	"paidonce/provider"
	"paidonce/provider/stripe"
	"paidonce/provider/stripesim"
)

// lane is what runs need of the outside world: a database with an injected clock, and a
// simulated provider on the same clock. Runs use it one after the other; several lanes run side by
// side.
//
// A run lives in a bubble of testing/synctest, where time stands still unless everybody sleeps.
// Sockets do not fit in there: a goroutine that waits for one never counts as asleep. So whatever
// talks to the network is carried out of the bubble by a courier.
type lane struct {
	t        *testing.T
	pool     *pgxpool.Pool // its statements find sim.clock_timestamp() first
	server   *stripesim.Server
	psp      provider.Provider
	key      accounts.NewKey
	parcels  chan func()
	returned chan struct{}
	carrying sync.Mutex
	database atomic.Int64 // the database's time, in microseconds since 1970
	// how far the provider's clock is ahead of the database's, in microseconds
	providerAhead atomic.Int64
}

// clockSQL shadows the built-in clock: an unqualified clock_timestamp() is looked up along
// search_path. Each reading is a microsecond later than the one before, so that a run's times
// depend on its steps alone, and no two are equal that a real database would have told apart.
const clockSQL = `
	CREATE SCHEMA sim;
	CREATE UNLOGGED TABLE sim.clock (now timestamptz NOT NULL);
	INSERT INTO sim.clock VALUES ('epoch');
	CREATE UNLOGGED SEQUENCE sim.tick;
	CREATE FUNCTION sim.clock_timestamp() RETURNS timestamptz VOLATILE LANGUAGE sql AS
		$$ SELECT now + nextval('sim.tick') * interval '1 microsecond' FROM sim.clock $$;
	-- A default is bound to its function when it is made.
	ALTER TABLE idempotency_keys ALTER created_at SET DEFAULT sim.clock_timestamp();
	ALTER TABLE charges ALTER created_at SET DEFAULT sim.clock_timestamp();
	ALTER TABLE refunds ALTER created_at SET DEFAULT sim.clock_timestamp();
	ALTER TABLE outbox ALTER created_at SET DEFAULT sim.clock_timestamp();
	ALTER TABLE operation_log ALTER at SET DEFAULT sim.clock_timestamp();`

func newLane(t *testing.T) *lane {
	t.Helper()
	l := &lane{t: t, parcels: make(chan func()), returned: make(chan struct{})}
	url := dbtest.New(t)
	plain, err := db.Open(url, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	if _, err := plain.Exec(t.Context(), clockSQL); err != nil {
		t.Fatal(err)
	}
	if l.key, err = accounts.NewStore(plain).CreateKey(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	cfg.MaxConns = 8
	cfg.ConnConfig.RuntimeParams["search_path"] = "sim, pg_catalog, public"
	if l.pool, err = pgxpool.NewWithConfig(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.pool.Close)
	l.server, err = stripesim.New(
		stripesim.Config{
			Seed: 1,
			Now: func() time.Time {
				return time.UnixMicro(l.database.Load() + l.providerAhead.Load())
			},
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(l.server)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close(); _ = l.server.Close() })
	if l.psp, err = stripe.New(
		stripe.Config{APIKey: "sk_test_x", BaseURL: server.URL, Timeout: 30 * time.Second},
	); err != nil {
		t.Fatal(err)
	}
	go func() {
		for f := range l.parcels {
			f()
			l.returned <- struct{}{}
		}
	}()
	t.Cleanup(func() { close(l.parcels) })
	l.checkClock()
	return l
}

// carry runs f outside the bubble. The bubble's time stands still meanwhile: who waits here does
// not sleep.
func (l *lane) carry(f func()) {
	l.carrying.Lock()
	defer l.carrying.Unlock()
	l.parcels <- f
	<-l.returned
}

// query runs SQL of the test's own, outside the bubble, and hands each row to scan.
func (l *lane) query(
	sql string, scan func(row interface{ Scan(...any) error }) error, args ...any,
) error {
	var err error
	l.carry(func() {
		rows, e := l.pool.Query(context.Background(), sql, args...)
		if err = e; err != nil {
			return
		}
		defer rows.Close()
		for rows.Next() {
			if err = scan(rows); err != nil {
				return
			}
		}
		err = rows.Err()
	})
	return err
}

func (l *lane) exec(sql string, args ...any) error {
	return l.query(sql, func(interface{ Scan(...any) error }) error { return nil }, args...)
}

// setClock puts the database's clock, and with it the provider's.
func (l *lane) setClock(now time.Time) error {
	l.database.Store(now.UnixMicro())
	return l.exec(`UPDATE sim.clock SET now = $1`, now)
}

// laneTables are the tables that a run writes. The later ones refer to the earlier ones.
var laneTables = []string{
	"idempotency_keys", "charges", "outbox", "operation_log", "recovered_keys", "refunds",
}

// clear makes the lane as good as new for the next run.
func (l *lane) clear() error {
	var err error
	l.carry(func() {
		for _, table := range slices.Backward(laneTables) {
			if _, err = l.pool.Exec(context.Background(), "DELETE FROM "+table); err != nil {
				return
			}
		}
		if _, err = l.pool.Exec(
			context.Background(), "ALTER SEQUENCE sim.tick RESTART",
		); err == nil {
			err = l.server.Reset()
		}
	})
	return err
}

// checkClock: if the injected clock did not shadow the built-in one, every run would pass and prove
// nothing of time.
func (l *lane) checkClock() {
	l.t.Helper()
	want := time.Date(2031, 5, 6, 7, 8, 9, 0, time.UTC)
	if err := l.setClock(want); err != nil {
		l.t.Fatal(err)
	}
	now, err := db.New().Now(l.t.Context(), l.pool)
	if err != nil || now.Sub(want) < 0 || now.Sub(want) > time.Second {
		l.t.Fatalf("the database says %v, %v: its clock is not the injected one", now, err)
	}
	var left []string
	err = l.query(`SELECT format('%I.%I', c.relname, a.attname) FROM pg_attrdef d JOIN pg_class c ON c.oid = d.adrelid
		JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = d.adnum
		WHERE c.relname IN ('idempotency_keys', 'charges', 'outbox', 'operation_log')
			AND pg_get_expr(d.adbin, d.adrelid) ~ 'pg_catalog.clock_timestamp|now\(\)'`,
		func(row interface{ Scan(...any) error }) error {
			left = append(left, "")
			return row.Scan(&left[len(left)-1])
		})
	if err != nil || len(left) > 0 {
		l.t.Fatalf("columns whose default is the built-in clock: %v, %v", left, err)
	}
}

// tally is what happened in all runs, by name.
type tally struct {
	mu     sync.Mutex
	byName map[string]int
}

func (c *tally) add(format string, args ...any) { c.addN(1, fmt.Sprintf(format, args...)) }

func (c *tally) addN(n int, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byName == nil {
		c.byName = map[string]int{}
	}
	c.byName[name] += n
}
