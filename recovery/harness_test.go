package recovery_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"paidonce/accounts"
	"paidonce/charges"
	"paidonce/db"
	"paidonce/idemkeys"
	"paidonce/internal/dbtest"
	"paidonce/provider"
	"paidonce/provider/stripe"
	"paidonce/provider/stripesim"
)

// world is one database, one simulated provider, and as many instances of the product as a test starts.
type world struct {
	t    *testing.T
	pool *pgxpool.Pool
	sim  *stripesim.Server
	psp  provider.Provider
	key  accounts.NewKey
	cfg  idemkeys.Config

	intents bool // charges go through payment intents
	clock   charges.ProviderClock
}

func newWorld(t *testing.T) *world {
	t.Helper()
	pool, err := db.Open(dbtest.New(t), 12)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	sim, err := stripesim.New(stripesim.Config{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(sim)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close(); _ = sim.Close() })
	psp, err := stripe.New(stripe.Config{APIKey: "sk_test_x", BaseURL: server.URL, Timeout: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	key, err := accounts.NewStore(pool).CreateKey(t.Context(), "shop")
	if err != nil {
		t.Fatal(err)
	}
	return &world{t: t, pool: pool, sim: sim, psp: psp, clock: psp, key: key, cfg: idemkeys.Config{
		StaleAfter: 90 * time.Second, ProviderTimeout: 2 * time.Second, KeyWindow: 23 * time.Hour, LookupSpan: 2 * time.Minute,
	}}
}

// instance is one process of the product, without its network.
type instance struct {
	engine *idemkeys.Engine
	store  *charges.Store
	create *charges.Service
}

// start starts an instance whose statements go through pool and whose provider calls go through psp; nil: the world's own.
func (w *world) start(pool db.Pool, psp provider.Provider) instance {
	if pool == nil {
		pool = w.pool
	}
	if psp == nil {
		psp = w.psp
	}
	cfg := charges.Config{
		Installation: "test", LookupMisses: 3, Intents: w.intents, Clocks: charges.NewClocks(w.clock, quiet), KeyWindow: w.cfg.KeyWindow, RunLimit: w.cfg.RunLimit(),
	}
	store := charges.NewStore(pool, 24*time.Hour)
	e := idemkeys.NewEngine(pool, w.cfg, slog.New(slog.NewTextHandler(io.Discard, nil)), charges.Kinds(psp, store, cfg))
	return instance{engine: e, store: store, create: charges.NewService(store, e, cfg)}
}

func (w *world) request(key string) idemkeys.Request {
	return idemkeys.Request{
		AccountID: w.key.AccountID, APIKeyID: w.key.ID, Key: key, RequestID: db.NewID("req"),
		Fingerprint: idemkeys.NewFingerprint("POST", "/v1/charges", "", []byte("{}")),
	}
}

var twenty = charges.Params{Amount: 2000, Currency: "usd", Source: "tok_visa", Capture: true}

func (i instance) charge(w *world, key string) (idemkeys.Result, error) {
	return i.create.Create(context.Background(), w.request(key), twenty)
}

// exec runs SQL on the database, for what no instance does: shifting times, looking.
func (w *world) exec(sql string, args ...any) {
	w.t.Helper()
	if err := db.Retry(context.Background(), func(ctx context.Context) error { _, err := w.pool.Exec(ctx, sql, args...); return err }); err != nil {
		w.t.Fatal(err)
	}
}

// age makes every unfinished key older, as if nothing had happened to it for so long.
func (w *world) age(d time.Duration) {
	w.t.Helper()
	w.exec(`UPDATE idempotency_keys SET locked_at = locked_at - $1::interval, next_run_at = next_run_at - $1::interval, created_at = created_at - $1::interval,
		first_attempt_at = first_attempt_at - $1::interval, last_attempt_at = last_attempt_at - $1::interval,
		first_miss_at = first_miss_at - $1::interval WHERE status = 'in_progress'`, d)
}

func (w *world) count(sql string, args ...any) int {
	w.t.Helper()
	var n int
	if err := db.Retry(context.Background(), func(ctx context.Context) error { return w.pool.QueryRow(ctx, sql, args...).Scan(&n) }); err != nil {
		w.t.Fatal(err)
	}
	return n
}

// crash ends the goroutine on the spot, as SIGKILL ends a process: nothing that would follow is executed.
func crash() { runtime.Goexit() }

// untilCrash runs fn in a goroutine that is expected to crash, and waits until it has.
func untilCrash(t *testing.T, crashed <-chan struct{}, fn func()) {
	t.Helper()
	go fn()
	select {
	case <-crashed:
	case <-time.After(20 * time.Second):
		t.Fatal("it did not crash")
	}
}

// crashingProvider crashes around the call.
type crashingProvider struct {
	provider.Provider
	before, after bool
	crashed       chan struct{}
}

func (p crashingProvider) Charge(ctx context.Context, r provider.ChargeRequest) (provider.ChargeOutcome, error) {
	if p.before {
		close(p.crashed)
		crash()
	}
	o, err := p.Provider.Charge(ctx, r)
	if p.after {
		close(p.crashed)
		crash()
	}
	return o, err
}

// crashingPool crashes around the statement of that name: rolled back, as when the connection dies before the commit, or committed,
// as when the answer is lost.
type crashingPool struct {
	*pgxpool.Pool
	name     string
	rollback bool
	crashed  chan struct{}
	once     *sync.Once
}

func (p crashingPool) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if !strings.Contains(sql, "-- name: "+p.name+" ") {
		return p.Pool.Query(ctx, sql, args...)
	}
	tx, err := p.Begin(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	for rows.Next() { // the statement is executed whole
	}
	if rows.Err() != nil {
		return nil, rows.Err()
	}
	if p.rollback {
		err = tx.Rollback(ctx)
	} else {
		err = tx.Commit(ctx)
	}
	if err != nil {
		return nil, err
	}
	p.once.Do(func() { close(p.crashed) })
	crash()
	return nil, nil
}

// tampered changes statements on their way: a guard is taken out to see whether a test notices.
type tampered struct {
	db.Pool
	change func(sql string) string
}

func (p tampered) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	return p.Pool.Exec(ctx, p.change(sql), args...)
}

func (p tampered) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	return p.Pool.Query(ctx, p.change(sql), args...)
}

func (p tampered) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	return p.Pool.QueryRow(ctx, p.change(sql), args...)
}

var parameter = regexp.MustCompile(`\$\d+::\w+`)

// without takes guards out of the statement of that name; $? stands for any parameter. A guard that is not found is a fault of the test.
func without(t *testing.T, pool db.Pool, name string, guards ...string) db.Pool {
	return tampered{pool, func(sql string) string {
		if !strings.Contains(sql, "-- name: "+name+" ") {
			return sql
		}
		for _, g := range guards {
			guard := regexp.MustCompile(strings.ReplaceAll(regexp.QuoteMeta(g), `\$\?`, `\$\d+`)).FindString(sql)
			if guard == "" {
				t.Errorf("%s has no guard %q any more", name, g)
				continue
			}
			// The statement keeps its parameters, or it would be refused for another reason.
			var kept string
			for _, param := range parameter.FindAllString(guard, -1) {
				kept += " AND (" + param + " IS NULL OR true)"
			}
			sql = strings.Replace(sql, guard, kept, 1)
		}
		return sql
	}}
}

// books compares what the provider did with what we say, and fails the test on any difference.
func (w *world) books(wantCharges int) {
	w.t.Helper()
	stats := w.sim.Stats()
	if got := int(stats.Succeeded); got != wantCharges {
		w.t.Errorf("the provider made %d charges, want %d", got, wantCharges)
	}
	if got := w.count(`SELECT count(*) FROM charges WHERE status = 'succeeded'`); got != wantCharges {
		w.t.Errorf("we say %d charges succeeded, want %d", got, wantCharges)
	}
	if got := w.count(`SELECT count(*) FROM outbox WHERE type = 'charge.succeeded'`); got != wantCharges {
		w.t.Errorf("%d events, want %d", got, wantCharges)
	}
	if got := w.count(`SELECT count(*) FROM idempotency_keys WHERE status = 'in_progress'`); got != 0 {
		w.t.Errorf("%d operations are unfinished", got)
	}
}

func same(a, b idemkeys.Answer) error {
	if a.Code != b.Code || string(a.Body) != string(b.Body) || fmt.Sprint(a.Header) != fmt.Sprint(b.Header) {
		return fmt.Errorf("two answers for one key:\n%d %s%v\n%d %s%v", a.Code, a.Body, a.Header, b.Code, b.Body, b.Header)
	}
	return nil
}
