// Package world is the harness that tests of several packages share: a real PostgreSQL database
// (package dbtest), Stripe's simulator, and as many instances of the product as a test starts.
//
// world.go has the database and the instances, money.go what clients ask for, crash.go how an
// instance dies, guard.go takes a guard out of a statement, inbox.go delivers what the provider
// sends. Its methods fail the test on any error that a test does not ask about.
package world

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"paidonce/accounts"
	"paidonce/charges"
	"paidonce/db"
	"paidonce/idemkeys"
	"paidonce/internal/dbtest"
	"paidonce/provider"
	"paidonce/provider/stripe"
	"paidonce/provider/stripesim"
	"paidonce/recovery"
)

// Quiet is a log that discards everything.
var Quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// Installation is the tag of a world's operations at the provider.
const Installation = "test"

// Account is the name of the account of a world.
const Account = "shop"

// misses is how many failed look-ups of an instance prove that a charge was never made.
const misses = 3

// Connections is the size of a world's pool: enough for the busiest test, few enough for several
// worlds on a server with PostgreSQL's default of 100.
const Connections = 12

// callLimit bounds a call to the provider. The simulator answers from this process, and a test of a
// hanging call has to wait this long.
const callLimit = 2 * time.Second

// PayerWindow is how long a world's charges wait for their payers: as by default.
const PayerWindow = 23 * time.Hour

// keyTTL is how long a finished key is kept: a day, as by default.
const keyTTL = 24 * time.Hour

// World is one database, one simulated provider, and as many instances of the product as a test
// starts. Its settings apply to instances that are started afterwards.
type World struct {
	*dbtest.Database
	Sim      *stripesim.Server
	SimURL   string
	Provider provider.Provider // the adapter of Stripe, in front of Sim
	Key      accounts.NewKey   // of the only account

	Keys    idemkeys.Config
	Intents bool // charges go through payment intents
	Clock   charges.ProviderClock
}

// New creates a world. It is removed when the test ends.
func New(t testing.TB) *World {
	t.Helper()
	return NewWith(t, callLimit)
}

// NewWith creates a world with another limit for calls to the provider.
func NewWith(t testing.TB, limit time.Duration) *World {
	t.Helper()
	w := &World{Database: dbtest.Open(t, Connections), Keys: idemkeys.Config{
		StaleAfter: 90 * time.Second, CallLimit: limit, SendWindow: 23 * time.Hour,
		LookupSpan: 2 * time.Minute, KeyTTL: keyTTL,
	}}
	var err error
	if w.Sim, err = stripesim.New(stripesim.Config{Seed: 1}); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(w.Sim)
	w.SimURL = server.URL
	t.Cleanup(func() { server.CloseClientConnections(); server.Close(); _ = w.Sim.Close() })
	psp, err := stripe.New(stripe.Config{APIKey: "sk_test_x", BaseURL: server.URL, Timeout: limit})
	if err != nil {
		t.Fatal(err)
	}
	w.Provider, w.Clock = psp, psp
	if w.Key, err = accounts.NewStore(w.Pool).CreateKey(t.Context(), Account); err != nil {
		t.Fatal(err)
	}
	return w
}

// NewIntents creates a world whose charges go through payment intents.
func NewIntents(t testing.TB) *World {
	t.Helper()
	w := New(t)
	w.Intents = true
	return w
}

// Instance is one process of the product, without its network. It is safe for concurrent use.
type Instance struct {
	Engine  *idemkeys.Engine
	Store   *charges.Store
	Charges *charges.Service
	world   *World
	cfg     charges.Config
}

// Start starts an instance on the world's own pool and provider.
func (w *World) Start() Instance { return w.StartWith(nil, nil) }

// StartWith starts an instance whose statements go through pool and whose provider calls go through
// psp; nil stands for the world's own.
func (w *World) StartWith(pool db.Pool, psp provider.Provider) Instance {
	if pool == nil {
		pool = w.Pool
	}
	if psp == nil {
		psp = w.Provider
	}
	cfg := charges.Config{
		Installation: Installation, LookupMisses: misses, Intents: w.Intents,
		Clocks:      charges.NewClocks(w.Clock, Quiet),
		PayerWindow: PayerWindow, KeyWindow: w.Keys.SendWindow, RunLimit: w.Keys.RunLimit(),
	}
	store := charges.NewStore(charges.StoreConfig{Pool: pool, KeyTTL: keyTTL})
	engine := idemkeys.NewEngine(pool, w.Keys, Quiet, charges.Kinds(psp, store, cfg))
	return Instance{
		Engine: engine, Store: store, Charges: charges.NewService(store, engine.Runner, cfg),
		world: w, cfg: cfg,
	}
}

// Reconciler returns the instance's reconciler.
func (i Instance) Reconciler() recovery.Reconciler {
	return recovery.Reconciler{Leases: i.Engine.Leases, Runner: i.Engine.Runner, Log: Quiet}
}

// Age makes every unfinished key older by d, as if nothing had happened to it for that long.
func (w *World) Age(d time.Duration) {
	w.T.Helper()
	w.Exec(`UPDATE idempotency_keys SET locked_at = locked_at - $1::interval, next_run_at = next_run_at - $1::interval,
		created_at = created_at - $1::interval, first_attempt_at = first_attempt_at - $1::interval,
		last_attempt_at = last_attempt_at - $1::interval, first_miss_at = first_miss_at - $1::interval
		WHERE status = 'in_progress'`, d)
}

// Pass runs one pass of the reconciler over everything that is free, whatever its schedule says.
func (w *World) Pass(i Instance) recovery.Counts {
	w.T.Helper()
	w.Exec(
		`UPDATE idempotency_keys SET next_run_at = clock_timestamp() WHERE next_run_at IS NOT NULL`,
	)
	counts, err := i.Reconciler().Pass(w.T.Context(), 100)
	if err != nil {
		w.T.Fatal(err)
	}
	return counts
}

// LastError returns why the last attempt at a key's operation did not end it.
func (w *World) LastError(key string) string {
	var why *string
	err := w.Pool.QueryRow(context.Background(),
		`SELECT last_error FROM idempotency_keys WHERE key = $1`, key).Scan(&why)
	if err != nil || why == nil {
		return fmt.Sprint(err)
	}
	return *why
}

// ChargeFault makes the simulator answer the next count charges so; 0 stands for all.
func (w *World) ChargeFault(count int, f stripesim.Fault) {
	w.T.Helper()
	w.fault(http.MethodPost, "/v1/charges", count, f)
}

// LookUpFault is Fault for the reads of charges.
func (w *World) LookUpFault(count int, f stripesim.Fault) {
	w.T.Helper()
	w.fault(http.MethodGet, "/v1/charges", count, f)
}

// RefundFault is Fault for refunds.
func (w *World) RefundFault(count int, f stripesim.Fault) {
	w.T.Helper()
	w.fault(http.MethodPost, "/v1/refunds", count, f)
}

func (w *World) fault(method, path string, count int, f stripesim.Fault) {
	w.T.Helper()
	rule := stripesim.Rule{
		Match: stripesim.Match{Method: method, Path: path}, Count: count, Fault: f,
	}
	if _, err := w.Sim.AddFault(rule); err != nil {
		w.T.Fatal(err)
	}
}

// CheckRecords compares what the provider did with what we say, and fails the test on any
// difference.
func (w *World) CheckRecords(wantCharges int) {
	w.T.Helper()
	if got := int(w.Sim.Stats().Succeeded); got != wantCharges {
		w.T.Errorf("the provider made %d charges, want %d", got, wantCharges)
	}
	if got := w.Count(
		`SELECT count(*) FROM charges WHERE status = 'succeeded'`,
	); got != wantCharges {
		w.T.Errorf("we say that %d charges succeeded, want %d", got, wantCharges)
	}
	if got := w.Count(
		`SELECT count(*) FROM outbox WHERE type = 'charge.succeeded'`,
	); got != wantCharges {
		w.T.Errorf("%d events say that a charge succeeded, want %d", got, wantCharges)
	}
	if got := w.Count(
		`SELECT count(*) FROM idempotency_keys WHERE status = 'in_progress'`,
	); got != 0 {
		w.T.Errorf("%d operations are unfinished, want none", got)
	}
}
