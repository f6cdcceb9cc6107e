package api_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
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
	"paidonce/internal/dbtest"
	"paidonce/provider/stripe"
	"paidonce/provider/stripesim"
)

// shop is the product behind a socket, with a database and a simulated provider of its own.
type shop struct {
	*apitest.Client // account A
	b               *apitest.Client
	server          *api.Server
	pool            *pgxpool.Pool
	sim             *stripesim.Server
	accounts        *accounts.Store
	keyID           string // of account A's API key
}

func newShop(t *testing.T) *shop {
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
	provider := httptest.NewServer(sim)
	t.Cleanup(func() { provider.CloseClientConnections(); provider.Close(); _ = sim.Close() })
	psp, err := stripe.New(stripe.Config{APIKey: "sk_test_x", BaseURL: provider.URL, Timeout: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	cfg, store := charges.Config{Installation: "test", LookupMisses: 3}, charges.NewStore(pool, 24*time.Hour)
	engine := idemkeys.NewEngine(pool, idemkeys.Config{
		StaleAfter: 90 * time.Second, ProviderTimeout: 2 * time.Second, KeyWindow: 23 * time.Hour, LookupSpan: 2 * time.Minute,
	}, log, map[string]idemkeys.Kind{charges.KindCreate: charges.Creation(psp, store, cfg)})
	s := &shop{pool: pool, sim: sim, accounts: accounts.NewStore(pool)}
	s.server, err = api.New(api.Config{
		Charges: charges.NewService(store, engine, cfg), Keys: engine, Accounts: s.accounts, Log: log,
		Ready: func(ctx context.Context) error { return db.Ready(ctx, pool) },
	})
	if err != nil {
		t.Fatal(err)
	}
	edge := httptest.NewUnstartedServer(nil)
	edge.Config = s.server.HTTP()
	edge.Start()
	t.Cleanup(func() { edge.Close(); engine.Drain() })
	a := s.apiKey(t, "A")
	s.keyID = a.ID
	s.Client = apitest.NewClient(t, edge.URL, a.Secret)
	s.b = s.As(s.apiKey(t, "B").Secret)
	return s
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
