package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/spf13/cobra"

	"paidonce/inbox"
)

func newInboxCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "inbox",
		Short: "Events from the provider: list, show, replay",
		Long: `Every event that the provider delivered is kept as it came, and processed from
there. After a bug is fixed, replay makes stored events due again. Effects that took
place are not repeated.`,
		Example: "  paidonce inbox list\n  paidonce inbox show evt_3M…\n" +
			"  paidonce inbox replay --since 24h --type charge.succeeded",
	}
	c.AddCommand(newInboxListCommand(), newInboxShowCommand(), newInboxReplayCommand())
	return c
}

func withInbox(cmd *cobra.Command, use func(context.Context, *inbox.Inbox, time.Time) error) error {
	return withApp(cmd, needDatabase, func(ctx context.Context, a *app) error {
		now, err := a.engine.Now(ctx)
		if err != nil {
			return err
		}
		return use(ctx, a.inbox, now)
	})
}

type inboxJSON struct {
	ID          string  `json:"id"`
	Type        string  `json:"type"`
	Object      string  `json:"object"`
	ReceivedAt  string  `json:"received_at"`
	ProcessedAt *string `json:"processed_at"`
	Result      string  `json:"result"`
	Attempts    int     `json:"attempts"`
	NextRunAt   *string `json:"next_run_at"`
	ParkedAt    *string `json:"parked_at"`
	LastError   string  `json:"last_error"`
	Payload     string  `json:"payload,omitempty"`
}

func inboxToJSON(e inbox.Info) inboxJSON {
	return inboxJSON{
		ID: e.ID, Type: e.Type, Object: e.ObjectID, ReceivedAt: rfc3339(e.ReceivedAt),
		ProcessedAt: rfc3339Ptr(e.ProcessedAt), Result: e.Result,
		Attempts: e.Attempts, NextRunAt: rfc3339Ptr(e.NextRunAt), ParkedAt: rfc3339Ptr(e.ParkedAt),
		LastError: e.LastError, Payload: string(hideSecrets(e.Payload)),
	}
}

// secrets are how events of the provider show the client secret of a payment intent, as a member
// and within addresses, and the address of a receipt.
var secrets = regexp.MustCompile(`(pi_[A-Za-z0-9]+_secret_)[A-Za-z0-9]+|("receipt_url"\s*:\s*")[^"]+`)

// hideSecrets takes out what would let its reader go on with a payment in the payer's place, or see
// the payer's receipt.
func hideSecrets(payload []byte) []byte { return secrets.ReplaceAll(payload, []byte("$1$2…")) }

func inboxState(e inbox.Info) string {
	switch {
	case e.ProcessedAt != nil:
		return e.Result
	case e.ParkedAt != nil:
		return "parked: " + e.LastError
	case e.Attempts > 0:
		return "tried: " + e.LastError
	}
	return "new"
}

func newInboxListCommand() *cobra.Command {
	var since, typ string
	var unprocessed, asJSON bool
	var limit int
	c := &cobra.Command{
		Use:   "list",
		Short: "List events, the newest first",
		Example: "  paidonce inbox list --unprocessed\n" +
			"  paidonce inbox list --since 2h --type charge.succeeded --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkListLimit(limit); err != nil {
				return err
			}
			return withInbox(cmd, func(ctx context.Context, i *inbox.Inbox, now time.Time) error {
				from, err := parseSince(since, now)
				if err != nil {
					return usageError{err}
				}
				list, err := i.List(ctx, inbox.Filter{
					Since: from, Type: typ, Unprocessed: unprocessed, Most: limit,
				})
				if err != nil {
					return err
				}
				return printList(cmd.OutOrStdout(), asJSON, list, inboxToJSON,
					"EVENT,TYPE,OBJECT,RECEIVED,ATTEMPTS,STATE", func(e inbox.Info) []any {
						return []any{
							e.ID, e.Type, e.ObjectID, rfc3339(e.ReceivedAt), e.Attempts,
							inboxState(e),
						}
					})
			})
		},
	}
	c.Flags().StringVar(&since, "since", "24h",
		"received since: 24h, 2026-01-31, or 2026-01-31T12:00:00Z")
	c.Flags().StringVar(&typ, "type", "", "only of this type")
	c.Flags().BoolVar(&unprocessed, "unprocessed", false, "only those that are not processed yet")
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	c.Flags().IntVar(&limit, "limit", 100, "list at most this many")
	return c
}

func newInboxShowCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "show EVENT",
		Short:   "Show an event and the bytes that were delivered, without secrets of payers",
		Example: "  paidonce inbox show evt_3M…",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withInbox(cmd, func(ctx context.Context, i *inbox.Inbox, _ time.Time) error {
				e, err := i.Get(ctx, args[0])
				if err != nil {
					return err
				}
				if asJSON {
					return writeJSON(cmd.OutOrStdout(), inboxToJSON(e))
				}
				payload := plainJSON(hideSecrets(e.Payload))
				if e.Payload == nil {
					payload = []byte("the bytes are not kept: it is not about anything of this " +
						"installation")
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "event     %s\ntype      %s\n"+
					"object    %s\nreceived  %s\nattempts  %d\nstate     %s\n\n%s\n",
					oneLine(e.ID), oneLine(e.Type), oneLine(e.ObjectID), rfc3339(e.ReceivedAt),
					e.Attempts, oneLine(inboxState(e)), payload)
				return err
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func newInboxReplayCommand() *cobra.Command {
	var since, typ string
	c := &cobra.Command{
		Use:   "replay [EVENT] [--since WHEN] [--type TYPE]",
		Short: "Make stored events due again",
		Example: "  paidonce inbox replay evt_3M…\n" +
			"  paidonce inbox replay --since 24h --type charge.succeeded",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && since == "" {
				return usageError{errors.New("name an event, or say --since when")}
			}
			return withInbox(cmd, func(ctx context.Context, i *inbox.Inbox, now time.Time) error {
				var from time.Time
				if since != "" {
					var err error
					if from, err = parseSince(since, now); err != nil {
						return usageError{err}
					}
				}
				id := ""
				if len(args) > 0 {
					id = args[0]
				}
				n, err := i.Replay(ctx, id, from, typ)
				if err != nil {
					return err
				}
				if id != "" && n == 0 {
					return inbox.ErrNotFound
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%d events are due again; the inbox worker of "+
					"`paidonce serve` processes them\n", n)
				return nil
			})
		},
	}
	c.Flags().StringVar(&since, "since", "",
		"all received since: 24h, 2026-01-31, or 2026-01-31T12:00:00Z")
	c.Flags().StringVar(&typ, "type", "", "only of this type")
	return c
}
