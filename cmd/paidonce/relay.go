package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"paidonce/outbox"
)

// relayProgressEvery is how often a relay that a person started says what it has done.
const relayProgressEvery = 10 * time.Second

func newRelayCommand() *cobra.Command {
	var once, asJSON bool
	c := &cobra.Command{
		Use:   "relay",
		Short: "Deliver events to webhook endpoints",
		Long: `Delivers events to the endpoints that want them, as the worker relay of ` + "`paidonce serve`" + ` does. Any number of relays share the
work; each delivery is made by one of them. On SIGTERM or SIGINT what is being sent ends, and the process exits.`,
		Example: "  paidonce relay             # until it is stopped\n  paidonce relay --once      # all that is due now, for cron",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asJSON && !once {
				return usageError{fmt.Errorf("--json goes with --once")}
			}
			return withOperations(cmd, func(ctx context.Context, a *app) error {
				if once {
					return relayOnce(ctx, a.relay, cmd.OutOrStdout(), asJSON)
				}
				relayOn(ctx, a, cmd.OutOrStdout())
				return nil
			})
		},
	}
	c.Flags().BoolVar(&once, "once", false, "deliver all that is due and exit")
	c.Flags().BoolVar(&asJSON, "json", false, "with --once: print the counts as a JSON object")
	return c
}

func relayOnce(ctx context.Context, r *outbox.Relay, out io.Writer, asJSON bool) error {
	err := r.Once(ctx)
	c := r.Counts()
	if asJSON {
		if err := writeJSON(out, map[string]int64{"numbered": c.Numbered, "delivered": c.Delivered, "failed": c.Failed, "dead": c.Dead, "disabled_endpoints": c.Disabled}); err != nil {
			return err
		}
	} else {
		printCounts(out, c)
	}
	if err == nil && ctx.Err() != nil {
		return fmt.Errorf("relay: interrupted; the rest is delivered next time")
	}
	return err
}

// relayOn delivers until ctx ends, and says now and then what it did.
func relayOn(ctx context.Context, a *app, out io.Writer) {
	a.log.Info("delivering events")
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.relay.Work(ctx)
	}()
	ticks := time.NewTicker(relayProgressEvery)
	defer ticks.Stop()
	var told outbox.Counts
	tell := func() {
		if c := a.relay.Counts(); c != told {
			told = c
			printCounts(out, c)
		}
	}
	for {
		select {
		case <-ticks.C:
			tell()
		case <-done:
			tell()
			return
		}
	}
}

func printCounts(out io.Writer, c outbox.Counts) {
	fmt.Fprintf(out, "%d new events, %d delivered, %d attempts failed, %d given up on, %d endpoints disabled\n", c.Numbered, c.Delivered, c.Failed, c.Dead, c.Disabled)
}
