package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"paidonce/internal/backoff"
	sdk "paidonce/sdk/go"
)

const (
	// tailPause is how long a tail that has printed everything waits before it asks again. A reader
	// does not notice a second, and the database does not notice one query a second.
	tailPause = time.Second
	// tailPage is the size of a page, the largest that the API gives: so a tail that is behind
	// catches up soonest. It is also the limit of -n.
	tailPage = 100
	// tailRetryFor is how long a tail goes on asking while there is no answer: longer than anybody
	// lets it run.
	tailRetryFor = 100 * 365 * 24 * time.Hour
)

func newEventsTailCommand() *cobra.Command {
	var t tail
	c := &cobra.Command{
		Use:   "tail",
		Short: "Print events as they occur, as a client of the API",
		Long: `Prints each event of the account once, in the order of GET /v1/events, until Ctrl-C.
It begins now, or where --after, --from-start or -n says. While the API does not
answer it goes on asking, and misses nothing. It is a client of a running API, like
"paidonce charges": PAIDONCE_URL is the address (http://127.0.0.1:8080 if it is not
set), PAIDONCE_API_KEY the account's key. It needs no database.

--json prints each event whole, one a line; --after continues behind the id of the
last one. With --once it ends when there are no more events, and does not wait for
an API that does not answer.
Exit codes: 0 ended by Ctrl-C, or --once has printed all; 1 refused, such as for a
wrong key; 2 wrong usage.`,
		Example: `  paidonce events tail
  paidonce events tail -n 10 --type charge.failed
  paidonce events tail --from-start --json | jq -r 'select(.type == "charge.succeeded") | .data.object.id'
  paidonce events tail --after evt_01J… --once --json >> events.jsonl     # for cron`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			given := 0
			for _, flag := range []string{"after", "from-start", "n"} {
				if cmd.Flags().Changed(flag) {
					given++
				}
			}
			switch {
			case given > 1:
				return usageError{errors.New("only one of --after, --from-start and -n says " +
					"where to begin")}
			case given == 0 && t.once:
				return usageError{errors.New("--once needs --after, --from-start or -n: nothing " +
					"has come yet from now on")}
			case t.last < 0 || t.last > tailPage:
				return usageError{fmt.Errorf("-n must be 0 to %d", tailPage)}
			case cmd.Flags().Changed("after") && t.cursor == "":
				return usageError{errors.New("--after needs the id of an event")}
			}
			var err error
			if t.api, err = newAPIClient(); err != nil {
				return err
			}
			t.api.missing = "begin with the oldest that is kept (--from-start), or without " +
				"--after with what comes from now on"
			t.out, t.notices = cmd.OutOrStdout(), cmd.ErrOrStderr()
			t.placed = t.fromStart || t.cursor != ""
			return t.run(cmd.Context())
		},
	}
	c.Flags().StringVar(&t.cursor, "after", "", "begin after the event with this id")
	c.Flags().BoolVar(&t.fromStart, "from-start", false, "begin with the oldest event that is kept")
	c.Flags().IntVarP(&t.last, "n",
		"n", 0, fmt.Sprintf("begin with the last so many events, up to %d", tailPage))
	c.Flags().StringVar(&t.typ, "type", "", "only events of this type, such as charge.succeeded")
	c.Flags().BoolVar(&t.once, "once", false, "print what there is and exit")
	c.Flags().BoolVar(&t.json, "json", false, "print each event as a line of JSON, whole")
	return c
}

// tail reads the events of an account in their order. Its position advances when an event is
// printed. So a page that was lost on its way is read again, and an event that was printed is not.
type tail struct {
	api          *apiClient
	out, notices io.Writer
	typ          string
	last         int
	fromStart    bool
	once, json   bool

	cursor string // the last event that was read; empty if none was
	placed bool   // whether cursor is the position to go on from
	headed bool   // whether the head of the table is printed
}

// run prints until ctx ends, or, with once, until there are no more events. It returns only errors
// that asking again does not change.
func (t *tail) run(ctx context.Context) error {
	for {
		more, err := t.step(ctx)
		switch {
		case ctx.Err() != nil && t.once:
			return errors.New("interrupted before all was printed")
		case ctx.Err() != nil:
			return nil //nolint:nilerr // Ctrl-C ends it, and with it the call under way
		case err != nil:
			return err
		case !more && t.once:
			return nil
		case !more:
			backoff.Sleep(ctx, tailPause)
		}
	}
}

// page reads a page. While there is no answer it goes on asking, and says so once.
func (t *tail) page(ctx context.Context, query sdk.EventQuery) ([]byte, error) {
	read := func(wait time.Duration) ([]byte, error) {
		return t.api.read(ctx, wait, func(ctx context.Context, c *sdk.Client) error {
			return firstPage(c.Events(ctx, query))
		})
	}
	answer, err := read(0)
	switch {
	case !errors.Is(err, sdk.ErrNoOutcome), t.once, ctx.Err() != nil:
		return answer, err
	// At first the address is wrong; later it may be a proxy's error page.
	case !t.placed && errors.Is(err, errNotPaidonce):
		return nil, err
	}
	fmt.Fprintf(t.notices, "paidonce: %v; trying again until it answers\n", err)
	return read(tailRetryFor)
}

// step finds the position to begin at, or prints the next page. It reports whether there is more to
// read at once.
func (t *tail) step(ctx context.Context) (more bool, err error) {
	query := sdk.EventQuery{Limit: sdk.Ptr(tailPage)}
	setIfGiven(&query.Type, t.typ)
	setIfGiven(&query.StartingAfter, t.cursor)
	if !t.placed { // even for -n 0 the last event is needed, as the position
		query.Limit, query.Order = sdk.Ptr(max(t.last, 1)), sdk.Ptr(sdk.NewestFirst)
	}
	answer, err := t.page(ctx, query)
	if err != nil {
		return false, err
	}
	var page struct {
		HasMore bool              `json:"has_more"`
		Data    []json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(answer, &page); err != nil {
		return false, fmt.Errorf("the answer cannot be read: %w", err)
	}
	if !t.placed {
		slices.Reverse(page.Data)
		page.HasMore = true // whether events follow is not known yet
	}
	for _, event := range page.Data {
		if err := t.see(event); err != nil {
			return false, err
		}
	}
	t.placed = true
	return page.HasMore, t.head()
}

// tailColumns fits the usual types and ids; longer ones shift the rest of their line.
const tailColumns = "%-20s  %-22s  %-29s  %-12s  %-10s  %s\n"

// head prints the head of the table, once. It appears before the first event, to show that the API
// answered.
func (t *tail) head() error {
	if t.json || t.headed {
		return nil
	}
	t.headed = true
	_, err := fmt.Fprintf(t.out, tailColumns, "TIME", "TYPE", "OBJECT", "AMOUNT", "STATUS", "EVENT")
	return err
}

// tailedEvent is what the table shows of an event. Not every object has an amount or a status.
type tailedEvent struct {
	ID      string `json:"id"`
	Type    string `json:"type"`
	Created int64  `json:"created"`
	Data    struct {
		Object struct {
			ID       string `json:"id"`
			Amount   *int64 `json:"amount"`
			Currency string `json:"currency"`
			Status   string `json:"status"`
			Captured *bool  `json:"captured"`
		} `json:"object"`
	} `json:"data"`
}

func (e *tailedEvent) row() string {
	o := e.Data.Object
	amount, status := "-", orDash(o.Status)
	if o.Amount != nil {
		amount = fmt.Sprintf("%d %s", *o.Amount, o.Currency)
	}
	if o.Status == "succeeded" && o.Captured != nil && !*o.Captured {
		status = "authorised"
	}
	return fmt.Sprintf(tailColumns, time.Unix(e.Created, 0).UTC().Format(time.RFC3339),
		oneLine(e.Type), oneLine(o.ID), oneLine(amount), oneLine(status), oneLine(e.ID))
}

// see prints an event, unless it only marks the position to begin at, and advances the position.
func (t *tail) see(raw json.RawMessage) error {
	var e tailedEvent
	if err := json.Unmarshal(raw, &e); err != nil || e.ID == "" {
		return fmt.Errorf("an event of %s cannot be read: check %s", t.api.base, apiURLVariable)
	}
	if t.placed || t.last > 0 {
		if err := t.print(&e, raw); err != nil {
			return err
		}
	}
	t.cursor = e.ID
	return nil
}

// print writes an event at once, in one write, so that readers see whole lines.
func (t *tail) print(e *tailedEvent, raw json.RawMessage) error {
	if err := t.head(); err != nil {
		return err
	}
	line := new(bytes.Buffer)
	if !t.json {
		line.WriteString(e.row())
	} else if err := json.Compact(line, raw); err != nil {
		return err
	} else {
		line.WriteByte('\n')
	}
	_, err := t.out.Write(plainJSON(line.Bytes()))
	return err
}
