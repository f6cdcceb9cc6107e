package main

import (
	"context"
	"errors"
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

// app is what serve, dev and reconcile have in common: everything but the network.
type app struct {
	cfg          *config
	log          *slog.Logger
	pool, hot    *pgxpool.Pool
	installation string
	provider     provider.Provider
	livemode     bool // of the provider's credentials
	accounts     *accounts.Store
	engine       *idemkeys.Engine
	chargeStore  *charges.Store
	charges      *charges.Service
	learner      *charges.Learner
	guard        *history.Guard
	rebuilder    *charges.Rebuilder
	inbox        *inbox.Inbox
	events       *outbox.Store
	relay        *outbox.Relay
	streams      []*outbox.Stream // of openStreams
	receipts     *receipt.Mailer  // of openReceipts; nil: there is no mail server
	closers      []func()         // called last
	metrics      *metrics.Metrics
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
	measured := metrics.New(log)
	chargesConfig := cfg.charges(installation)
	var psp provider.Provider // stays nil for commands that never call it; loadConfig has seen to the others
	if cfg.StripeAPIKey != "" {
		psp, err = stripe.New(stripe.Config{APIKey: cfg.StripeAPIKey, BaseURL: cfg.StripeAPIBase, Proxy: cfg.ProviderProxy, Timeout: cfg.ProviderTimeout})
		if err != nil {
			return nil, fmt.Errorf("the provider: %w", err)
		}
		chargesConfig.Clocks = charges.NewClocks(psp, log)
		psp = measured.Provider(psp)
	}
	store := charges.NewStore(pool, cfg.KeyTTL)
	store.CommitOn(hot)
	engine := idemkeys.NewEngine(pool, cfg.engine(), log, charges.Kinds(psp, store, chargesConfig))
	if psp != nil {
		store.NeedAccount(senderMark(installation, cfg))
		engine.Hold(store.Held)
	}
	rebuilder := charges.NewRebuilder(store, psp, chargesConfig, log)
	guard.Use(pool, history.Config{Books: rebuilder, Log: log, Off: cfg.Recover == "off", CallLimit: cfg.ProviderTimeout})
	learner := charges.NewLearner(store, engine, psp, chargesConfig)
	news := inbox.New(inbox.Config{Pool: pool, Secrets: cfg.StripeWebhookSecrets, Log: log, Held: store.Held, Sift: learner.Sift, Now: chargesConfig.Clocks.Now, Refused: measured.SignatureRefused, Apply: func(ctx context.Context, e inbox.Event, mark inbox.Mark) error {
		err := learner.Learn(ctx, charges.News{ID: e.ID, Type: e.Type, ObjectID: e.ObjectID, Livemode: e.Livemode, Payload: e.Payload}, charges.Mark(mark))
		if errors.Is(err, idemkeys.ErrBusy) { // its request is not answered yet
			return inbox.Early(err)
		}
		return err
	}})
	addresses := webhook.Guard{AllowPrivate: cfg.AllowPrivate}
	events := outbox.New(outbox.Config{Pool: pool, CheckURL: addresses.CheckURL})
	relay := outbox.NewRelay(events, outbox.RelayConfig{Sender: webhook.New(webhook.Config{Guard: addresses}), Log: log, TTL: cfg.EventTTL, Attempted: measured.Attempted})
	measured.Watch(metrics.Sources{Pool: pool, Engine: engine, Held: guard.Held, Charges: store, Events: events, Relay: relay, StaleAfter: cfg.StaleAfter, Clocks: chargesConfig.Clocks})
	return &app{
		events: events, relay: relay, guard: guard, rebuilder: rebuilder,
		learner: learner, inbox: news, cfg: cfg, metrics: measured, log: log, pool: pool, hot: hot, installation: installation, provider: psp, livemode: chargesConfig.Livemode,
		accounts: accounts.NewStore(pool), engine: engine, chargeStore: store, charges: charges.NewService(store, engine, chargesConfig),
	}, nil
}

// close ends what runs and gives the connections back.
func (a *app) close() {
	a.engine.Drain()
	for _, c := range a.closers {
		c()
	}
	a.pool.Close()
	a.hot.Close()
}
