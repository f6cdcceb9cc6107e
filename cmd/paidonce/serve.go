package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"paidonce"
	"paidonce/api"
	"paidonce/db"
	"paidonce/docs/reference"
	"paidonce/recovery"
)

const (
	// The reconcile worker of serve looks this often: an operation is found within half a minute of its time.
	reconcileEvery = 15 * time.Second
	// Keys are kept for a day; sweeping every few minutes keeps each sweep small.
	sweepEvery = 5 * time.Minute
)

func newServeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "Serve the API, with the background workers named in PAIDONCE_WORKERS",
		Long: `Serves the API on PAIDONCE_LISTEN and runs the workers named in PAIDONCE_WORKERS. On SIGTERM or SIGINT nothing new is
accepted, what runs ends with its answer, and the process exits; a second signal exits at once.`,
		Example: "  DATABASE_URL=postgres://… STRIPE_API_KEY=sk_test_… paidonce serve\n  PAIDONCE_WORKERS=none PAIDONCE_LISTEN=:8080 paidonce serve",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := loadConfig(needDatabase | needProvider)
			if err != nil {
				return err
			}
			return serve(cmd.Context(), cfg, cfg.logger(), nil, nil)
		},
	}
}

// serve runs the API and its workers until ctx ends, then drains. It listens on cfg.Listen unless it is given a listener; started is told
// the address once requests are accepted.
func serve(ctx context.Context, cfg *config, log *slog.Logger, listener net.Listener, started func(addr string)) error {
	a, err := newApp(ctx, cfg, log)
	if err != nil {
		return err
	}
	defer a.close()
	if err := db.Ready(ctx, a.pool); err != nil {
		return err
	}
	if err := db.CheckDurability(ctx, a.pool); err != nil {
		if cfg.charges("").Livemode || !errors.Is(err, db.ErrNotDurable) {
			return err
		}
		log.Warn("not for real money", "cause", err) // a live key is refused
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
	// The reference page tells nothing that is not in the repository, so it needs no API key.
	server.Handler = reference.Handler(paidonce.OpenAPI, a.metrics.Around(edge))
	if slices.Contains(cfg.workers, "relay") {
		if err := a.openStreams(); err != nil {
			return err
		}
	}
	a.engine.Behind(a.guard)
	defer func() { a.engine.Drain(); a.guard.Leave(ctx) }()
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	stopWorkers := a.startWorkers(working)
	defer stopWorkers()
	defer endWork(nil) // also when the API ends by an error, which must not leave a process that only works in the background
	log.Info("serving", "address", listener.Addr().String(), "workers", cfg.workers, "livemode", cfg.charges("").Livemode)
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
	// An operation runs for RunLimit at most, so this is enough for each to end with its answer.
	shutdown, cancel := context.WithTimeout(context.WithoutCancel(ctx), cfg.engine().RunLimit()+server.ReadTimeout)
	defer cancel()
	if err := server.Shutdown(shutdown); err != nil && !errors.Is(err, http.ErrServerClosed) {
		log.Warn("some connections did not end", "cause", err)
	}
	if err := context.Cause(working); ctx.Err() == nil {
		return err // it ends by itself: the provider's account is another one
	}
	return nil
}

// edge is the HTTP API.
func (a *app) edge() (*api.Server, error) {
	c := api.Config{
		Charges: a.charges, Keys: a.engine, Accounts: a.accounts, Events: a.events, Log: a.log, Measure: a.metrics.Route, CORSOrigins: a.cfg.CORSOrigins,
		MaxBody: a.cfg.maxBody, RateLimit: a.cfg.ratePerSec,
		Lists: max(1, int(a.pool.Config().MaxConns)/2), // the other half is for what takes a millisecond
		Ready: func(ctx context.Context) error { return db.Ready(ctx, a.pool) },
	}
	if len(a.cfg.StripeWebhookSecrets) > 0 {
		c.News = a.inbox
	}
	return api.New(c)
}

// awaitMost is how many charges that wait for their payer are asked for at a time: less than a minute of calls.
const awaitMost = 100

func (a *app) await(ctx context.Context) (int, error) {
	if a.chargeStore.Held() != nil {
		return 0, nil //nolint:nilerr // it has been told; what is awaited waits on
	}
	return a.learner.Await(ctx, awaitMost)
}

// startWorkers runs the workers that the configuration names; stop waits for them.
func (a *app) startWorkers(ctx context.Context) (stop func()) {
	var running sync.WaitGroup
	running.Go(func() { a.guard.Work(ctx) })
	for name, work := range map[string]func(){
		"reconcile": func() {
			running.Go(func() { recovery.WorkAwait(ctx, a.await, reconcileEvery, a.log) })
			recovery.Work(ctx, a.engine, reconcileEvery, a.log, a.metrics.Passed)
		},
		"inbox": func() { a.inbox.Work(ctx) },
		"relay": func() { a.workRelay(ctx) },
		"sweep": func() { recovery.WorkSweep(ctx, a.expiring, sweepEvery, a.log, a.metrics.Swept) },
	} {
		if slices.Contains(a.cfg.workers, name) {
			a.metrics.Worker(name)
			running.Go(work)
		}
	}
	return running.Wait
}
