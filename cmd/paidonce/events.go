package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"paidonce/outbox"
)

func newEventsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "events",
		Short: "Events for consumers: tail, list, show, resend",
		Long: `Every event is committed together with the change that it reports, and delivered to
the webhook endpoints that want it. tail is a client of the API and prints an
account's events as they occur. The other commands are for operators, and need
DATABASE_URL: list and show report the deliveries of any account's events; resend
sends the same bytes under the same id again.`,
		Example: "  paidonce events tail -n 10\n  paidonce events list --undelivered\n" +
			"  paidonce events show evt_01J…\n  paidonce events resend evt_01J… --endpoint hook",
	}
	c.AddCommand(newEventsTailCommand(), newEventsListCommand(), newEventsShowCommand(),
		newEventsResendCommand())
	return c
}

type eventJSON struct {
	ID         string          `json:"id"`
	Account    string          `json:"account"`
	Type       string          `json:"type"`
	Object     string          `json:"object"`
	Operation  string          `json:"operation"`
	CreatedAt  string          `json:"created_at"`
	Position   int64           `json:"position"`
	Deliveries []deliveryJSON  `json:"deliveries,omitempty"`
	Delivery   *countsJSON     `json:"delivery,omitempty"`
	Payload    json.RawMessage `json:"payload,omitempty"`
}

type countsJSON struct {
	Endpoints int `json:"endpoints"`
	Pending   int `json:"pending"`
	Dead      int `json:"dead"`
}

type deliveryJSON struct {
	Endpoint   string  `json:"endpoint"`
	URL        string  `json:"url"`
	Disabled   bool    `json:"endpoint_disabled"`
	State      string  `json:"state"`
	Attempts   int     `json:"attempts"`
	NextRunAt  *string `json:"next_run_at"`
	LastAt     *string `json:"last_attempt_at"`
	LastStatus int     `json:"last_status"`
	LastBody   string  `json:"last_body"`
	LastError  string  `json:"last_error"`
}

func eventToJSON(e outbox.Event) eventJSON {
	return eventJSON{
		ID: e.ID, Account: e.AccountID, Type: e.Type, Object: e.ObjectID, Operation: e.OperationID,
		CreatedAt: rfc3339(e.Created), Position: e.Position, Payload: e.Payload,
	}
}

func summaryState(s outbox.Summary) string {
	switch {
	case s.Deliveries == 0:
		return "no endpoint wants it"
	case s.Pending+s.Dead == 0:
		return fmt.Sprintf("delivered to %d", s.Deliveries)
	}
	return fmt.Sprintf("delivered to %d, pending %d, given up on %d", s.Deliveries-s.Pending-s.Dead,
		s.Pending, s.Dead)
}

func newEventsListCommand() *cobra.Command {
	var listed listing
	var typ string
	var undelivered bool
	c := &cobra.Command{
		Use:   "list",
		Short: "List events, the newest first",
		Example: "  paidonce events list --undelivered\n" +
			"  paidonce events list --since 2h --type charge.failed --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkListLimit(listed.limit); err != nil {
				return err
			}
			if typ != "" && !slices.Contains(outbox.Types, typ) {
				return usageError{fmt.Errorf("--type must be one of %s",
					strings.Join(outbox.Types, ", "))}
			}
			return withApp(cmd, needDatabase, func(ctx context.Context, a *app) error {
				from, account, err := listed.scope(ctx, a)
				if err != nil {
					return err
				}
				list, err := a.events.Newest(ctx, outbox.Selection{
					Since: from, Type: typ, AccountID: account, Undelivered: undelivered,
					Limit: listed.limit,
				})
				if err != nil {
					return err
				}
				return printEvents(cmd.OutOrStdout(), list, listed.json)
			})
		},
	}
	c.Flags().StringVar(&typ, "type", "", "only of this type")
	c.Flags().BoolVar(&undelivered, "undelivered", false,
		"only those that some endpoint does not have")
	listed.flags(c)
	return c
}

func printEvents(out io.Writer, list []outbox.Summary, asJSON bool) error {
	return printList(out, asJSON, list, func(s outbox.Summary) eventJSON {
		row := eventToJSON(s.Event)
		row.Delivery = &countsJSON{s.Deliveries, s.Pending, s.Dead}
		return row
	}, "EVENT,TYPE,OBJECT,ACCOUNT,CREATED,STATE", func(s outbox.Summary) []any {
		return []any{s.ID, s.Type, s.ObjectID, s.AccountID, rfc3339(s.Created), summaryState(s)}
	})
}

func newEventsShowCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "show EVENT",
		Short:   "Show an event, its deliveries and the bytes that are sent",
		Example: "  paidonce events show evt_01J…",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withApp(cmd, needDatabase, func(ctx context.Context, a *app) error {
				e, err := a.events.Find(ctx, args[0])
				if err != nil {
					return fmt.Errorf("%s: %w", oneLine(args[0]), err)
				}
				deliveries, err := a.events.Deliveries(ctx, e.ID)
				if err != nil {
					return err
				}
				return printEvent(cmd.OutOrStdout(), e, deliveries, asJSON)
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func printEvent(out io.Writer, e outbox.Event, deliveries []outbox.Delivery, asJSON bool) error {
	if asJSON {
		row := eventToJSON(e)
		for _, d := range deliveries {
			row.Deliveries = append(row.Deliveries, deliveryJSON{
				Endpoint: d.EndpointID, URL: d.URL, Disabled: d.Disabled, State: d.State,
				Attempts: d.Attempts, NextRunAt: rfc3339Ptr(d.NextRunAt),
				LastAt: rfc3339Ptr(d.LastAt), LastStatus: d.LastStatus,
				LastBody: string(d.LastBody), LastError: d.LastError,
			})
		}
		return writeJSON(out, row)
	}
	fmt.Fprintf(out, "event      %s\ntype       %s\nobject     %s\naccount    %s\noperation  %s\n"+
		"created    %s\n", e.ID, e.Type, oneLine(e.ObjectID), e.AccountID, e.OperationID,
		rfc3339(e.Created))
	for _, d := range deliveries {
		fmt.Fprintf(out, "\nendpoint   %s  %s\nstate      %s\nattempts   %d\n", d.EndpointID,
			oneLine(d.URL), d.State, d.Attempts)
		if d.Disabled {
			fmt.Fprintln(out, "           the endpoint is disabled; what is pending waits")
		}
		if next := rfc3339Ptr(d.NextRunAt); next != nil {
			fmt.Fprintf(out, "next       %s\n", *next)
		}
		if d.LastError != "" {
			fmt.Fprintf(out, "reason     %s\n", oneLine(d.LastError))
		}
		if len(d.LastBody) > 0 {
			fmt.Fprintf(out, "answer     %d %q\n", d.LastStatus, d.LastBody)
		}
	}
	_, err := fmt.Fprintf(out, "\n%s\n", plainJSON(e.Payload))
	return err
}

func newEventsResendCommand() *cobra.Command {
	var endpoint string
	c := &cobra.Command{
		Use:   "resend EVENT",
		Short: "Deliver an event again: the same bytes, the same id",
		Example: "  paidonce events resend evt_01J…\n" +
			"  paidonce events resend evt_01J… --endpoint hook",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withApp(cmd, needDatabase, func(ctx context.Context, a *app) error {
				e, err := a.events.Find(ctx, args[0])
				if err != nil {
					return fmt.Errorf("%s: %w", oneLine(args[0]), err)
				}
				n, err := a.events.Requeue(ctx, e.AccountID, e.ID, endpoint)
				if err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(),
					"due again for %d endpoints; the relay delivers it\n", n)
				return nil
			})
		},
	}
	c.Flags().StringVar(&endpoint, "endpoint", "", "only to this endpoint, whatever types it wants")
	return c
}
