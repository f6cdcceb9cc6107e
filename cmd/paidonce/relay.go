package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"paidonce/internal/loop"
	"paidonce/outbox"
	"paidonce/outbox/publish"
	"paidonce/outbox/receipt"
)

// relayProgressEvery is how often a relay that an operator started reports what it has done.
const relayProgressEvery = 10 * time.Second

func newRelayCommand() *cobra.Command {
	var once, asJSON bool
	c := &cobra.Command{
		Use:   "relay",
		Short: "Deliver events to webhook endpoints, and receipts by mail",
		Long: `Delivers events to the endpoints that want them and to the streams of
PAIDONCE_NATS_URL and PAIDONCE_KAFKA_BROKERS, and mails receipts with
PAIDONCE_SMTP_URL, as the worker relay of serve does. Any number of relays share the
work; one of them makes each delivery. On SIGTERM or SIGINT it finishes what it is
sending, and exits.`,
		Example: "  paidonce relay             # until it is stopped\n" +
			"  paidonce relay --once      # everything that is due now, for cron",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asJSON && !once {
				return usageError{fmt.Errorf("--json goes with --once")}
			}
			return withApp(cmd, needDatabase|needWrites, func(ctx context.Context, a *app) error {
				if err := a.openStreams(); err != nil {
					return err
				}
				if err := a.openReceipts(ctx); err != nil {
					return err
				}
				if once {
					return relayOnce(ctx, a, cmd.OutOrStdout(), asJSON)
				}
				relayOn(ctx, a, cmd.OutOrStdout())
				return nil
			})
		},
	}
	c.Flags().BoolVar(&once, "once", false, "deliver everything that is due and exit")
	c.Flags().BoolVar(&asJSON, "json", false, "with --once: print the counts as a JSON object")
	return c
}

func relayOnce(ctx context.Context, a *app, out io.Writer, asJSON bool) error {
	err := a.relay.RunOnce(ctx)
	for _, s := range a.streams {
		_, failed := s.RunOnce(ctx)
		err = errors.Join(err, failed)
	}
	if a.receipts != nil {
		err = errors.Join(err, a.receipts.RunOnce(ctx))
	}
	c, r := a.relay.Counts(), a.receiptCounts()
	if asJSON {
		if err := writeJSON(out, map[string]int64{
			"numbered": c.Numbered, "delivered": c.Delivered, "failed": c.Failed, "dead": c.Dead,
			"disabled_endpoints": c.Disabled,
			"receipts_sent":      r.Sent, "receipts_failed": r.Failed,
			"receipts_refused": r.Refused, "receipts_unknown": r.Unknown,
			"receipts_expired": r.Expired,
		}); err != nil {
			return err
		}
	} else {
		printCounts(out, c, r)
	}
	if err == nil && ctx.Err() != nil {
		return fmt.Errorf("relay: interrupted; the rest is delivered next time")
	}
	return err
}

// workRelay delivers events to endpoints and streams until ctx ends.
func (a *app) workRelay(ctx context.Context) {
	works := []func(context.Context){a.relay.Work}
	for _, s := range a.streams {
		works = append(works, s.Work)
	}
	if a.receipts != nil {
		works = append(works, a.receipts.Work)
	}
	loop.All(ctx, works...)
}

// openStreams creates the publishers that the settings name.
func (a *app) openStreams() error {
	if a.cfg.NATSURL != "" {
		p, err := publish.NewNATS(a.cfg.NATSURL)
		if err != nil {
			return err
		}
		a.closers = append(a.closers, p.Close)
		a.streams = append(a.streams, outbox.NewStream(a.events, p, a.log))
	}
	if len(a.cfg.KafkaBrokers) > 0 {
		p, err := publish.NewKafka(a.cfg.KafkaBrokers)
		if err != nil {
			return err
		}
		a.closers = append(a.closers, p.Close)
		a.streams = append(a.streams, outbox.NewStream(a.events, p, a.log))
	}
	for _, s := range a.streams {
		a.metrics.Stream(s)
	}
	return nil
}

// relayOn delivers until ctx ends, and reports now and then what it has done.
func relayOn(ctx context.Context, a *app, out io.Writer) {
	a.log.Info("delivering events")
	stop := loop.Start(ctx, a.workRelay)
	var last outbox.Counts
	var lastReceipts receipt.Counts
	report := func(context.Context) {
		if c, r := a.relay.Counts(), a.receiptCounts(); c != last || r != lastReceipts {
			last, lastReceipts = c, r
			printCounts(out, c, r)
		}
	}
	loop.Every(ctx, relayProgressEvery, report)
	stop()
	report(ctx)
}

func printCounts(out io.Writer, c outbox.Counts, r receipt.Counts) {
	fmt.Fprintf(out, "%d new events, %d delivered, %d attempts failed, %d given up on, %d "+
		"endpoints disabled\n", c.Numbered, c.Delivered, c.Failed, c.Dead, c.Disabled)
	if r != (receipt.Counts{}) {
		fmt.Fprintf(out,
			"%d receipts sent, %d attempts failed, %d refused, %d unknown, %d too old\n", r.Sent,
			r.Failed, r.Refused, r.Unknown, r.Expired)
	}
}
