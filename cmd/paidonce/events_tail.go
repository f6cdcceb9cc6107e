package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
)

const (
	// tailPause is how long a tail that has seen everything waits before it asks again: a person does not notice a second, and the database does not
	// notice one question a second.
	tailPause = time.Second
	// tailPauseMost ends the growing of pauses while there is no answer: half a minute after the server is back, at most, the tail is, too.
	tailPauseMost = 30 * time.Second
	// tailPage is the largest page that the API gives, so that whoever is behind catches up soonest; also the most that -n may ask for.
	tailPage = 100
)

func newEventsTailCommand() *cobra.Command {
	var t tail
	c := &cobra.Command{
		Use:   "tail",
		Short: "Print events as they come, as a client of the API",
		Long: `Prints each event of the account once, in the order of GET /v1/events, from now on or from where --after, --from-start or -n says, until Ctrl-C.
While the API does not answer it goes on asking, and misses nothing. A client of a running API, like "paidonce charges": PAIDONCE_URL says where
it is (http://127.0.0.1:8080 when it is not set), PAIDONCE_API_KEY is the account's key. No database is needed.

--json prints one whole event a line. The id of the last one is where --after goes on. With --once it ends when there are no more, and does not
wait for an API that does not answer.
Exit codes: 0 ended by Ctrl-C, or --once has printed all; 1 refused, such as for a wrong key; 2 wrong usage.`,
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
				return usageError{errors.New("only one of --after, --from-start and -n says where to begin")}
			case given == 0 && t.once:
				return usageError{errors.New("--once needs --after, --from-start or -n: nothing has come yet from now on")}
			case t.last < 0 || t.last > tailPage:
				return usageError{fmt.Errorf("-n must be 0 to %d", tailPage)}
			case cmd.Flags().Changed("after") && t.cursor == "":
				return usageError{errors.New("--after needs the id of an event")}
			}
			var err error
			if t.base, t.apiKey, err = apiTarget(); err != nil {
				return err
			}
			t.out, t.notices = cmd.OutOrStdout(), cmd.ErrOrStderr()
			t.placed = t.fromStart || t.cursor != ""
			return t.run(cmd.Context())
		},
	}
	c.Flags().StringVar(&t.cursor, "after", "", "begin after the event with this id")
	c.Flags().BoolVar(&t.fromStart, "from-start", false, "begin with the oldest event that is kept")
	c.Flags().IntVarP(&t.last, "n", "n", 0, fmt.Sprintf("begin with the last so many events, up to %d", tailPage))
	c.Flags().StringVar(&t.typ, "type", "", "only events of this type, such as charge.succeeded")
	c.Flags().BoolVar(&t.once, "once", false, "print what there is and exit")
	c.Flags().BoolVar(&t.json, "json", false, "print each event as a line of JSON, whole")
	return c
}

// tail reads the events of an account in their order. Its place moves when an event is printed, so a page that was lost on its way is read again,
// and one that was printed is not.
type tail struct {
	base, apiKey string
	out, notices io.Writer
	typ          string
	last         int
	fromStart    bool
	once, json   bool

	cursor string // the last event that was seen; "": none
	placed bool   // whether cursor says where to go on
	headed bool   // whether the table has its head
}

// run prints until ctx ends, or once until there are no more. Errors: what asking again does not change.
func (t *tail) run(ctx context.Context) error {
	for failures := 0; ; {
		pause := tailPause
		more, err := t.step(ctx)
		var again tryAgain
		switch {
		case ctx.Err() != nil && t.once:
			return errors.New("interrupted before all was printed")
		case ctx.Err() != nil:
			return nil //nolint:nilerr // Ctrl-C is how it ends, and cuts off what it asks for at that moment
		case errors.As(err, &again) && !t.once && (t.placed || !errors.Is(err, errNotPaidonce)): // at first it is the wrong address, later a proxy's page
			if failures == 0 {
				fmt.Fprintf(t.notices, "paidonce: %v; trying again until it answers\n", again)
			}
			pause = tailPauseAfter(failures, again.after)
			failures++
		case err != nil:
			return err
		case more:
			failures = 0
			continue
		case t.once:
			return nil
		default:
			failures = 0
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// tailPauseAfter is how long to wait after the failure that so many came before: longer each time, and never less than the server asks for.
func tailPauseAfter(earlier int, asked time.Duration) time.Duration {
	return max(asked, min(tailPause<<min(earlier, 10), tailPauseMost)) // shifted no further than the most needs
}

// step finds the place to begin at, or prints the next page. more: there is something to be read at once.
func (t *tail) step(ctx context.Context) (more bool, err error) {
	query := url.Values{"limit": {strconv.Itoa(tailPage)}}
	if t.typ != "" {
		query.Set("type", t.typ)
	}
	switch {
	case !t.placed: // also for none the last one is needed: it is where to go on
		query.Set("limit", strconv.Itoa(max(t.last, 1)))
		query.Set("order", "desc")
	case t.cursor != "":
		query.Set("starting_after", t.cursor)
	}
	answer, err := apiCall{
		method: http.MethodGet, path: "/v1/events?" + query.Encode(),
		missing: "begin with the oldest that is kept (--from-start), or without --after with what comes from now on",
	}.attempt(ctx, t.base, t.apiKey)
	if err != nil {
		return false, err
	}
	var page struct {
		Object  string            `json:"object"`
		HasMore bool              `json:"has_more"`
		Data    []json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(answer, &page); err != nil || page.Object != "list" {
		return false, fmt.Errorf("%s does not answer as Paidonce does: check %s", t.base, apiURLVariable)
	}
	if !t.placed {
		slices.Reverse(page.Data)
		page.HasMore = true // what follows is not known yet
	}
	for _, event := range page.Data {
		if err := t.see(event); err != nil {
			return false, err
		}
	}
	t.placed = true
	return page.HasMore, t.head()
}

// tailColumns fits the usual types and ids; longer ones move what follows.
const tailColumns = "%-20s  %-22s  %-29s  %-12s  %-10s  %s\n"

// head prints the table's head, once, also when there is no event yet: it shows that the API answered.
func (t *tail) head() error {
	if t.json || t.headed {
		return nil
	}
	t.headed = true
	_, err := fmt.Fprintf(t.out, tailColumns, "TIME", "TYPE", "OBJECT", "AMOUNT", "STATUS", "EVENT")
	return err
}

// tailedEvent is what the table shows of an event. Not every object has an amount or a state.
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
	return fmt.Sprintf(tailColumns, time.Unix(e.Created, 0).UTC().Format(time.RFC3339), oneLine(e.Type), oneLine(o.ID), oneLine(amount), oneLine(status), oneLine(e.ID))
}

// see prints an event, unless it is only the place to begin at, and goes on after it.
func (t *tail) see(raw json.RawMessage) error {
	var e tailedEvent
	if err := json.Unmarshal(raw, &e); err != nil || e.ID == "" {
		return fmt.Errorf("an event of %s cannot be read: check %s", t.base, apiURLVariable)
	}
	if t.placed || t.last > 0 {
		if err := t.print(&e, raw); err != nil {
			return err
		}
	}
	t.cursor = e.ID
	return nil
}

// print writes an event at once and with one write, so that whoever reads along sees whole lines.
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
	_, err := t.out.Write(shownJSON(line.Bytes()))
	return err
}
