package api_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"paidonce/accounts"
	"paidonce/api"
	"paidonce/api/apitest"
	"paidonce/charges"
	"paidonce/db"
	"paidonce/idemkeys"
	"paidonce/inbox"
	"paidonce/internal/dbtest"
	"paidonce/outbox"
	outboxhook "paidonce/outbox/webhook"
	"paidonce/provider/stripe"
	"paidonce/provider/stripesim"
)

// noNames knows no name: tests ask no server of this machine's network. A webhook endpoint's address that cannot be looked up is taken.
var noNames = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
	return nil, errors.New("there is no DNS in tests")
}}

// shop is the product behind a socket, with a database and a simulated provider of its own.
type shop struct {
	*apitest.Client // account A
	*instance
	b        *apitest.Client
	database string
	sim      *stripesim.Server
	simURL   string
	accounts *accounts.Store
	keyID    string        // of account A's API key
	timeout  time.Duration // of a call of the provider
}

// instance is one server of a shop, with its own connections, engine and inbox.
type instance struct {
	url    string
	server *api.Server
	pool   *pgxpool.Pool
	inbox  *inbox.Inbox
	outbox *outbox.Store
}

func newShop(t *testing.T) *shop {
	t.Helper()
	return newShopWith(t, 2*time.Second)
}

// patient is a time for calls of the provider that none exceeds, however busy the machine: for tests of thousands of requests, none of which may fail.
const patient = 30 * time.Second

// newShopWith is newShop with another limit for calls of the provider.
func newShopWith(t *testing.T, timeout time.Duration) *shop {
	t.Helper()
	sim, err := stripesim.New(stripesim.Config{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	provider := httptest.NewServer(sim)
	t.Cleanup(func() { provider.CloseClientConnections(); provider.Close(); _ = sim.Close() })
	s := &shop{database: dbtest.New(t), sim: sim, simURL: provider.URL, timeout: timeout}
	s.instance = s.serve(t, whsec)
	s.accounts = accounts.NewStore(s.pool)
	a := s.apiKey(t, "A")
	s.keyID = a.ID
	s.Client = apitest.NewClient(t, s.url, a.Secret)
	s.b = s.As(s.apiKey(t, "B").Secret)
	return s
}

// serve starts a server of the shop that takes events signed with any of the secrets.
func (s *shop) serve(t *testing.T, secrets ...string) *instance {
	t.Helper()
	return s.serveWith(t, func(*api.Config) {}, secrets...)
}

// serveWith starts a server whose configuration is another.
func (s *shop) serveWith(t *testing.T, change func(*api.Config), secrets ...string) *instance {
	t.Helper()
	pool, err := db.Open(s.database, 12)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	psp, err := stripe.New(stripe.Config{APIKey: "sk_test_x", BaseURL: s.simURL, Timeout: s.timeout})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	cfg, store := charges.Config{Installation: "test", LookupMisses: 3, Clocks: charges.NewClocks(psp, log)}, charges.NewStore(pool, 24*time.Hour)
	engine := idemkeys.NewEngine(pool, idemkeys.Config{
		StaleAfter: 90 * time.Second, ProviderTimeout: s.timeout, KeyWindow: 23 * time.Hour, LookupSpan: 2 * time.Minute, KeyTTL: 24 * time.Hour,
	}, log, charges.Kinds(psp, store, cfg))
	learner := charges.NewLearner(store, engine, psp, cfg)
	i := &instance{pool: pool, inbox: inbox.New(inbox.Config{Pool: pool, Secrets: secrets, Log: log, Apply: func(ctx context.Context, e inbox.Event, mark inbox.Mark) error {
		return learner.Learn(ctx, charges.News{ID: e.ID, Type: e.Type, ObjectID: e.ObjectID, Livemode: e.Livemode}, charges.Mark(mark))
	}})}
	i.outbox = outbox.New(outbox.Config{Pool: pool, CheckURL: outboxhook.Guard{Resolver: noNames}.CheckURL})
	served := api.Config{
		Charges: charges.NewService(store, engine, cfg), Keys: engine, Accounts: accounts.NewStore(pool), Events: i.outbox, News: i.inbox, Log: log,
		Ready: func(ctx context.Context) error { return db.Ready(ctx, pool) },
	}
	change(&served)
	if i.server, err = api.New(served); err != nil {
		t.Fatal(err)
	}
	edge := httptest.NewUnstartedServer(nil)
	edge.Config = i.server.HTTP()
	edge.Start()
	t.Cleanup(func() { edge.Close(); engine.Drain() })
	i.url = edge.URL
	return i
}

func (s *shop) apiKey(t *testing.T, account string) accounts.NewKey {
	t.Helper()
	k, err := s.accounts.CreateKey(t.Context(), account)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// keys is how many idempotency keys are stored.
func (s *shop) keys(t *testing.T) (n int) {
	t.Helper()
	if err := s.pool.QueryRow(t.Context(), "SELECT count(*) FROM idempotency_keys").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func (s *shop) asked() int64 { return s.sim.Stats().ChargeRequests }

// same fails unless the second is a replay of the first.
func same(t *testing.T, first, second apitest.Answer) {
	t.Helper()
	if first.Replayed() || !second.Replayed() || second.Code != first.Code || !bytes.Equal(second.Body, first.Body) {
		t.Errorf("no replay: %d %s, then %d (replayed %t) %s", first.Code, first.Body, second.Code, second.Replayed(), second.Body)
	}
	for _, name := range []string{"Content-Type", "Location", "Content-Length"} {
		if first.Header.Get(name) != second.Header.Get(name) {
			t.Errorf("%s: %q, then %q", name, first.Header.Get(name), second.Header.Get(name))
		}
	}
	if second.Header.Get("Original-Request") != first.Header.Get("Request-Id") || second.Header.Get("Request-Id") == first.Header.Get("Request-Id") {
		t.Errorf("Request-Id %s, replayed as %s of %s", first.Header.Get("Request-Id"), second.Header.Get("Request-Id"), second.Header.Get("Original-Request"))
	}
}

func created(t *testing.T, a apitest.Answer) {
	t.Helper()
	if a.Code != 201 || a.Replayed() {
		t.Errorf("got %d (replayed %t) %s", a.Code, a.Replayed(), a.Body)
	}
}
