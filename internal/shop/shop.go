// Package shop is the product behind a socket: a world (package world) whose instances are servers,
// and clients of two accounts that check each answer (package apitest).
package shop

import (
	"context"
	"errors"
	"net"
	"net/http/httptest"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"paidonce/accounts"
	"paidonce/api"
	"paidonce/api/apitest"
	"paidonce/db"
	"paidonce/inbox"
	"paidonce/internal/world"
	"paidonce/outbox"
	"paidonce/outbox/webhook"
	"paidonce/provider/stripesim"
)

// LongCallLimit is a limit for calls of the provider that none exceeds, however busy the machine:
// for tests of thousands of requests, none of which may fail.
const LongCallLimit = 30 * time.Second

// noNames resolves no name, so that tests ask no server of this machine's network. A webhook
// endpoint whose address cannot be looked up is accepted.
var noNames = &net.Resolver{PreferGo: true,
	Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("there is no DNS in tests")
	}}

// Shop is a world whose instances are servers, with a client for each of two accounts.
type Shop struct {
	*apitest.Client // of account A, the world's own, at the first server
	*Server         // the first
	B               *apitest.Client
	World           *world.World
}

// Server is one server of a shop, with its own connections, engine and inbox.
type Server struct {
	URL    string
	API    *api.Server
	Pool   *pgxpool.Pool
	Inbox  *inbox.Inbox
	Outbox *outbox.Store
}

// New opens a shop in a world. Its first server accepts events signed with [world.Secret].
func New(w *world.World) *Shop {
	w.T.Helper()
	s := &Shop{World: w}
	s.Server = s.Serve(world.Secret)
	s.Client = apitest.NewClient(w.T, s.URL, w.Key.Secret)
	s.B = s.As(s.NewKey("B").Secret)
	return s
}

// Serve starts a server of the shop that accepts events signed with any of the secrets.
func (s *Shop) Serve(secrets ...string) *Server {
	s.World.T.Helper()
	return s.ServeWith(func(*api.Config) {}, secrets...)
}

// ServeWith starts a server with another configuration.
func (s *Shop) ServeWith(change func(*api.Config), secrets ...string) *Server {
	t := s.World.T
	t.Helper()
	pool := s.World.Connect(world.Connections)
	instance := s.World.StartWith(pool, nil)
	server := &Server{
		Pool: pool,
		Inbox: inbox.New(inbox.Config{
			Pool: pool, Secrets: secrets, Log: world.Quiet,
			Apply: s.World.ProviderEvents(instance, nil).Apply,
		}),
		Outbox: outbox.New(outbox.Config{
			Pool: pool, Runner: instance.Engine.Runner,
			CheckURL: webhook.Guard{Resolver: noNames}.CheckURL,
		}),
	}
	cfg := api.Config{
		Charges: instance.Charges, Keys: instance.Engine.Keys, Accounts: accounts.NewStore(pool),
		Events: server.Outbox, ProviderEvents: server.Inbox, Log: world.Quiet,
		Ready: func(ctx context.Context) error { return db.Ready(ctx, pool) },
	}
	change(&cfg)
	var err error
	if server.API, err = api.New(cfg); err != nil {
		t.Fatal(err)
	}
	edge := httptest.NewUnstartedServer(nil)
	edge.Config = server.API.HTTP()
	edge.Start()
	t.Cleanup(func() { edge.Close(); instance.Engine.Drain() })
	server.URL = edge.URL
	return server
}

// NewKey creates an API key of an account.
func (s *Shop) NewKey(account string) accounts.NewKey {
	s.World.T.Helper()
	k, err := accounts.NewStore(s.World.Pool).CreateKey(s.World.T.Context(), account)
	if err != nil {
		s.World.T.Fatal(err)
	}
	return k
}

// NewReadOnlyKey creates an API key of an account that may only read.
func (s *Shop) NewReadOnlyKey(account string) accounts.NewKey {
	s.World.T.Helper()
	k, err := accounts.NewStore(s.World.Pool).CreateReadOnlyKey(s.World.T.Context(), account)
	if err != nil {
		s.World.T.Fatal(err)
	}
	return k
}

// ChargeRequests is how often the provider was asked for a charge.
func (s *Shop) ChargeRequests() int64 { return s.World.Sim.Stats().ChargeRequests }

// Twenty is a charge of $20 that succeeds.
const Twenty = `{"amount":2000,"currency":"usd","source":"tok_visa"}`

// MustCharge makes a charge of a valid card with these JSON members, and returns its id.
func (s *Shop) MustCharge(key, members string) string {
	s.World.T.Helper()
	a := s.Charge(key, `{"currency":"usd","source":"tok_visa",`+members+`}`)
	apitest.Created(s.World.T, a)
	return a.ID()
}

// PostFault lets something go wrong with the next POSTs to a path of the provider; count 0: all.
func (s *Shop) PostFault(count int, path string, f stripesim.Fault) {
	s.World.T.Helper()
	if _, err := s.World.Sim.AddFault(stripesim.Rule{Count: count,
		Match: stripesim.Match{Method: "POST", Path: path}, Fault: f}); err != nil {
		s.World.T.Fatal(err)
	}
}
