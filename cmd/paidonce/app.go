package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5/pgxpool"

	"paidonce/accounts"
	"paidonce/charges"
	"paidonce/db"
	"paidonce/history"
	"paidonce/idemkeys"
	"paidonce/inbox"
	"paidonce/metrics"
	"paidonce/outbox"
	"paidonce/outbox/receipt"
	"paidonce/outbox/webhook"
	"paidonce/provider"
	"paidonce/provider/stripe"
)

// app is what serve, dev, reconcile and the other commands share: everything but the network.
type app struct {
	cfg          *config
	log          *slog.Logger
	guard        *history.Guard
	pool, hot    *pgxpool.Pool
	installation string
	metrics      *metrics.Metrics
	provider     provider.Provider
	chargeStore  *charges.Store
	engine       *idemkeys.Engine
	charges      *charges.Service
	accounts     *accounts.Store
	rebuilder    *charges.Rebuilder
	fromProvider *charges.ProviderEvents
	inbox        *inbox.Inbox
	events       *outbox.Store
	relay        *outbox.Relay

	streams  []*outbox.Stream // set by openStreams
	receipts *receipt.Mailer  // set by openReceipts; nil without a mail server
	closers  []func()         // called by close
}

// newApp wires the product together, in reading order. It needs a database with a current schema.
func newApp(ctx context.Context, cfg *config, log *slog.Logger) (_ *app, err error) {
	cfg.warn(log)
	guard := history.New()
	pool, hot, err := db.OpenBoth(cfg.DatabaseURL, int32(cfg.DBMaxConns), guard.Connected) //nolint:gosec // at most 1000
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			pool.Close()
			hot.Close()
		}
	}()
	if err := db.CheckStart(ctx, pool); err != nil {
		return nil, err
	}
	installation := cfg.Instance
	if installation == "" {
		if installation, err = db.New().InstallationTag(ctx, pool); err != nil {
			return nil, fmt.Errorf("the installation's tag: %w", err)
		}
	}
	recorder := metrics.New(log)
	chargesConfig := cfg.charges(installation)
	psp, err := newProvider(cfg)
	if err != nil {
		return nil, err
	}
	if psp != nil {
		chargesConfig.Clocks = charges.NewClocks(psp, log)
		psp = recorder.Provider(psp)
	}
	storeConfig := charges.StoreConfig{Pool: pool, Hot: hot, KeyTTL: cfg.KeyTTL}
	if psp != nil {
		storeConfig.Sender = senderMark(installation, cfg)
	}
	store := charges.NewStore(storeConfig)
	engine := idemkeys.NewEngine(pool, cfg.engine(), log, charges.Kinds(psp, store, chargesConfig))
	if psp != nil {
		engine.Hold(store.Held)
	}
	rebuilder := charges.NewRebuilder(store, psp, chargesConfig, log)
	guard.Use(pool, history.Config{
		Records: rebuilder, Log: log, Off: cfg.Recover == "off", CallLimit: cfg.ProviderTimeout,
	})
	fromProvider := charges.NewProviderEvents(store, engine.Desk, psp, chargesConfig)
	in := inbox.New(inbox.Config{
		Pool: pool, Secrets: cfg.StripeWebhookSecrets, Log: log, Held: store.Held,
		Sift: fromProvider.Sift, Apply: fromProvider.Apply,
		Now: chargesConfig.Clocks.Now, Refused: recorder.RecordRefusedSignature,
	})
	service := charges.NewService(store, engine.Runner, chargesConfig)
	addresses := webhook.Guard{AllowPrivate: cfg.AllowPrivate}
	events := outbox.New(outbox.Config{
		Pool: pool, Runner: engine.Runner, CheckURL: addresses.CheckURL, Livemode: cfg.live(),
	})
	relay := outbox.NewRelay(events, outbox.RelayConfig{
		Sender: webhook.New(webhook.Config{Guard: addresses}), Log: log, TTL: cfg.EventTTL,
		OnAttempt: recorder.RecordAttempt,
	})
	recorder.Watch(metrics.Sources{
		Pool: pool, Leases: engine.Leases, Held: guard.Held, Charges: service, Events: events,
		Relay: relay, StaleAfter: cfg.StaleAfter, Clocks: chargesConfig.Clocks,
	})
	return &app{
		cfg: cfg, log: log, guard: guard, pool: pool, hot: hot, installation: installation,
		metrics: recorder, provider: psp, chargeStore: store, engine: engine, charges: service,
		accounts:  accounts.NewStore(pool),
		rebuilder: rebuilder, fromProvider: fromProvider, inbox: in, events: events, relay: relay,
	}, nil
}

// newProvider returns nil without STRIPE_API_KEY: loadConfig has required it of the commands that
// call the provider.
func newProvider(cfg *config) (provider.Provider, error) {
	if cfg.StripeAPIKey == "" {
		return nil, nil
	}
	p, err := stripe.New(stripe.Config{
		APIKey: cfg.StripeAPIKey, BaseURL: cfg.StripeAPIBase, Proxy: cfg.ProviderProxy,
		Timeout: cfg.ProviderTimeout,
	})
	if err != nil {
		return nil, fmt.Errorf("the provider: %w", err)
	}
	return p, nil
}

// close ends all background work and closes the connections.
func (a *app) close() {
	a.engine.Drain()
	for _, c := range a.closers {
		c()
	}
	a.pool.Close()
	a.hot.Close()
}
