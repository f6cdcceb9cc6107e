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
		Use:   "sweep",
		Short: "Delete finished idempotency keys that are past their retention",
		Long: `Deletes finished keys whose PAIDONCE_KEY_TTL is over, in small batches, until none is left. Unfinished keys never expire;
charges, events and the logs of operations stay. Any number of sweeps may run at once.`,
		Example: "  17 * * * *  paidonce sweep          # in a crontab\n  paidonce sweep --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withOperations(cmd, needDatabase|needWrites, func(ctx context.Context, a *app) error {
				n, err := recovery.Sweep(ctx, a.engine, a.log)
				if asJSON {
					if err := writeJSON(cmd.OutOrStdout(), map[string]int{"swept": n}); err != nil {
						return err
					}
				} else {
					fmt.Fprintf(cmd.OutOrStdout(), "swept %d keys\n", n)
				}
				if errors.Is(err, context.Canceled) {
					return errors.New("sweep: interrupted; the rest is swept next time")
				}
				return err
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, `print {"swept":N}`)
	return c
}

// withOperations runs use with everything that works on operations, given what needs says.
func withOperations(cmd *cobra.Command, needs need, use func(context.Context, *app) error) error {
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
		err = db.Ready(cmd.Context(), a.pool)
	case needs&needWrites != 0:
		err = db.Writable(cmd.Context(), a.pool)
	}
	if err != nil {
		return err
	}
	return use(cmd.Context(), a)
}
