package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"paidonce/db"
	"paidonce/recovery"
)

func newSweepCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "sweep",
		Short: "Delete finished idempotency keys, provider events and operation logs that are " +
			"past their retention",
		Long: `Deletes in small batches, until none is left: finished keys past PAIDONCE_KEY_TTL,
processed events of the provider past PAIDONCE_INBOX_TTL, and logs of finished
operations past PAIDONCE_LOG_TTL. Unfinished keys and their logs never expire, and
neither do events that are parked or not processed. Charges stay. Events for
consumers have PAIDONCE_EVENT_TTL (see relay). Any number of sweeps may run at once.`,
		Example: "  17 * * * *  paidonce sweep          # in a crontab\n  paidonce sweep --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withApp(cmd, needDatabase|needWrites, func(ctx context.Context, a *app) error {
				n, err := recovery.Sweep(ctx, a.log, a.expiring()...)
				if asJSON {
					said := struct {
						Keys   int `json:"swept"`
						Events int `json:"provider_events"`
						Logs   int `json:"operation_log"`
					}{n["keys"], n["provider_events"], n["operation_log"]}
					if err := writeJSON(cmd.OutOrStdout(), said); err != nil {
						return err
					}
				} else {
					fmt.Fprintf(cmd.OutOrStdout(),
						"swept %d keys, %d events of the provider, %d lines of operation logs\n",
						n["keys"], n["provider_events"], n["operation_log"])
				}
				if errors.Is(err, context.Canceled) {
					return errors.New("sweep: interrupted; the rest is swept next time")
				}
				return err
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false,
		`print {"swept":N,"provider_events":N,"operation_log":N}; swept: the keys`)
	return c
}

// expiring lists what a sweep deletes when its retention is over.
func (a *app) expiring() []recovery.Kind {
	events := func(ctx context.Context, most int) (int, bool, error) {
		n, err := a.inbox.Sweep(ctx, a.cfg.InboxTTL, most)
		return n, n == most, err
	}
	return []recovery.Kind{
		{Name: "keys", Batch: a.engine.Sweep},
		{Name: "provider_events", Batch: events},
		{Name: "operation_log", Batch: a.engine.SweepLogs(a.cfg.LogTTL)},
	}
}

// withApp calls use with an app, after checking what needs asks for.
func withApp(cmd *cobra.Command, needs need, use func(context.Context, *app) error) error {
	cfg, err := loadConfig(needs)
	if err != nil {
		return err
	}
	a, err := newApp(cmd.Context(), cfg, cfg.logger())
	if err != nil {
		return err
	}
	defer a.close()
	switch {
	case needs&needProvider != 0:
		err = db.Chargeable(cmd.Context(), a.pool)
	case needs&needWrites != 0:
		err = db.Writable(cmd.Context(), a.pool)
	}
	if err != nil {
		return err
	}
	return use(cmd.Context(), a)
}
