package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"paidonce"
	"paidonce/api"
	"paidonce/db"
	"paidonce/docs/reference"
	"paidonce/internal/loop"
	"paidonce/recovery"
)

const (
	// The reconcile worker of serve looks this often, so an operation is found within half a minute
	// of its time.
	reconcileEvery = 15 * time.Second
	// Keys are kept for a day, so sweeping every few minutes keeps each sweep small.
	sweepEvery = 5 * time.Minute
)

func newServeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "Serve the API, with the background workers named in PAIDONCE_WORKERS",
		Long: `Serves the API on PAIDONCE_LISTEN and runs the workers named in PAIDONCE_WORKERS. On
SIGTERM or SIGINT it accepts nothing new, answers the requests that it has begun,
and exits; a second signal ends it at once.`,
		Example: "  DATABASE_URL=postgres://… STRIPE_API_KEY=sk_test_… paidonce serve\n" +
			"  PAIDONCE_WORKERS=none PAIDONCE_LISTEN=:8080 paidonce serve",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := loadConfig(needDatabase | needProvider)
			if err != nil {
				return err
			}
			paceCollector()
			log := cfg.logger()
			if err := servePprof(cmd.Context(), cfg.PprofListen, log); err != nil {
				return err
			}
			return serve(cmd.Context(), cfg, log, nil, nil)
		},
	}
}

// serve runs the API and its workers until ctx ends, then drains. It listens on cfg.Listen unless
// it is given a listener. It calls started with the address once it accepts requests.
func serve(
	ctx context.Context, cfg *config, log *slog.Logger, listener net.Listener,
	started func(addr string),
) error {
	a, err := newApp(ctx, cfg, log)
	if err != nil {
		return err
	}
	defer a.close()
	if err := db.Chargeable(ctx, a.pool); err != nil {
		return err
	}
	if err := db.CheckDurability(ctx, a.pool); err != nil {
		if cfg.live() || !errors.Is(err, db.ErrNotDurable) {
			return err
		}
		log.Warn("not for real money", "cause", err)
	}
	cfg.warnServing(log)
	working, endWork := context.WithCancelCause(ctx)
	defer endWork(nil)
	if err := a.recogniseOrHold(working, endWork); err != nil {
		return err
	}
	if err := a.openReceipts(ctx); err != nil {
		return err
	}
	edge, err := a.edge()
	if err != nil {
		return err
	}
	if listener == nil {
		if listener, err = net.Listen("tcp", cfg.Listen); err != nil {
			return fmt.Errorf("PAIDONCE_LISTEN: %w", err)
		}
	}
	server := edge.HTTP()
	// The reference page shows nothing that is not in the repository, so it needs no API key.
	server.Handler = reference.Handler(paidonce.OpenAPI, a.metrics.Handler(edge))
	if slices.Contains(cfg.workers, "relay") {
		if err := a.openStreams(); err != nil {
			return err
		}
	}
	a.engine.Behind(a.guard)
	defer func() { a.engine.Drain(); a.guard.Leave(ctx) }()
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	// Deferred, so that no process only works in the background after the API has failed.
	defer a.startWorkers(working)()
	log.Info("serving", "address", listener.Addr().String(), "workers", cfg.workers,
		"livemode", cfg.live())
	if started != nil {
		started(listener.Addr().String())
	}
	select {
	case err := <-failed:
		return err
	case <-working.Done():
	}
	log.Info("shutting down: nothing new is accepted, what runs ends with its answer")
	edge.Drain()
	a.engine.EndWaits()
	// An operation runs for RunLimit at most, so each has the time to end with its answer.
	enough := cfg.engine().RunLimit() + server.ReadTimeout
	shutdown, cancel := context.WithTimeout(context.WithoutCancel(ctx), enough)
	defer cancel()
	if err := server.Shutdown(shutdown); err != nil && !errors.Is(err, http.ErrServerClosed) {
		log.Warn("some connections did not end", "cause", err)
	}
	if err := context.Cause(working); ctx.Err() == nil {
		return err // the server ends by itself, because the provider's account is another one
	}
	return nil
}

// edge returns the HTTP API.
func (a *app) edge() (*api.Server, error) {
	c := api.Config{
		Charges: a.charges, Keys: a.engine.Keys, Accounts: a.accounts, Events: a.events, Log: a.log,
		Measure: a.metrics.Route, CORSOrigins: a.cfg.CORSOrigins,
		MaxBody: a.cfg.maxBody, RateLimit: a.cfg.ratePerSec,
		// the other half is for statements that take a millisecond
		Lists: max(1, int(a.pool.Config().MaxConns)/2),
		Ready: func(ctx context.Context) error { return db.Ready(ctx, a.pool) },
	}
	if len(a.cfg.StripeWebhookSecrets) > 0 {
		c.ProviderEvents = a.inbox
	}
	return api.New(c)
}

// startWorkers runs the workers that the settings name; stop ends them and waits for them.
func (a *app) startWorkers(ctx context.Context) (stop func()) {
	running := []func(context.Context){a.guard.Work}
	for name, works := range map[string][]func(context.Context){
		"reconcile": {func(ctx context.Context) {
			a.reconciler().Work(ctx, reconcileEvery, a.metrics.RecordPass)
		}},
		"inbox": {a.inbox.Work},
		"relay": {a.workRelay},
		"sweep": {func(ctx context.Context) {
			recovery.WorkSweep(ctx, a.expiring, sweepEvery, a.log, a.metrics.RecordSweep)
		}},
	} {
		if slices.Contains(a.cfg.workers, name) {
			a.metrics.Worker(name)
			running = append(running, works...)
		}
	}
	return loop.Start(ctx, running...)
}
