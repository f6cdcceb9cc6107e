package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
)

func newChargesCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "charges",
		Short: "Make, show and list charges, as a client of the API",
		Long: `A client of a running API: PAIDONCE_URL says where it is (http://127.0.0.1:8080 when it is not set), PAIDONCE_API_KEY is a key that
"paidonce apikeys create" or "paidonce dev" printed. No database is needed.`,
		Example: `  paidonce charges create --amount 2000 --currency usd --source tok_visa --key order-6735
  paidonce charges get ch_01J…
  paidonce charges list --limit 20 --status failed --json`,
	}
	c.AddCommand(newChargesCreateCommand(), newChargesGetCommand(), newChargesListCommand())
	return c
}

// chargeJSON is what the tables show of a charge.
type chargeJSON struct {
	ID             string  `json:"id"`
	Amount         int64   `json:"amount"`
	AmountRefunded int64   `json:"amount_refunded"`
	Captured       bool    `json:"captured"`
	Created        int64   `json:"created"`
	Currency       string  `json:"currency"`
	Customer       *string `json:"customer"`
	Description    *string `json:"description"`
	FailureMessage *string `json:"failure_message"`
	Status         string  `json:"status"`
}

func newChargesCreateCommand() *cobra.Command {
	var key string
	var wait time.Duration
	var hold, asJSON bool
	texts := map[string]*string{}
	var pairs []string
	c := &cobra.Command{
		Use:   "create --amount N --currency CODE --source TOKEN",
		Short: "Charge once",
		Long: `Charges once for --key: with the same key and the same flags it may be repeated as often as you like. Without --key one is made and
printed first, so that you can repeat the command with it. Network errors and answers that ask for it are retried for --wait.`,
		Example: `  paidonce charges create --amount 2000 --currency usd --source tok_visa --key order-6735 --metadata order=6735
  paidonce charges create --amount 2000 --currency usd --customer cus_42 --hold --json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, name := range []string{"amount", "currency"} {
				if *texts[name] == "" {
					return usageError{fmt.Errorf("--%s is required", name)}
				}
			}
			form := url.Values{}
			for name, value := range texts {
				if *value != "" {
					form.Set(strings.ReplaceAll(name, "-", "_"), *value)
				}
			}
			for _, pair := range pairs {
				name, value, ok := strings.Cut(pair, "=")
				if !ok {
					return usageError{fmt.Errorf("--metadata %s: it has to be NAME=VALUE", pair)}
				}
				form.Set("metadata["+name+"]", value)
			}
			if hold {
				form.Set("capture", "false")
			}
			if key == "" {
				key = "cli-" + rand.Text()
				fmt.Fprintf(cmd.ErrOrStderr(), "To repeat this safely, add: --key %s\n", key)
			}
			return showCharge(cmd, asJSON, apiCall{method: http.MethodPost, path: "/v1/charges", form: form, key: key, wait: wait})
		},
	}
	for name, use := range map[string]string{
		"amount": "in minor units: 2000 is $20.00 (required)", "currency": "ISO 4217 code (required)", "source": "a token of the provider, such as tok_visa",
		"customer": "a customer of the provider, instead of --source", "description": "your text", "receipt-email": "where the payer gets a receipt: from the provider, or with PAIDONCE_SMTP_URL from the server",
	} {
		texts[name] = c.Flags().String(name, "", use)
	}
	c.Flags().StringArrayVar(&pairs, "metadata", nil, "NAME=VALUE; may be repeated")
	c.Flags().BoolVar(&hold, "hold", false, "authorise only; capture later")
	c.Flags().StringVar(&key, "key", "", "idempotency key: the name of this payment, such as an order's number")
	c.Flags().DurationVar(&wait, "wait", time.Minute, "how long to retry what may be retried")
	c.Flags().BoolVar(&asJSON, "json", false, "print the API's answer")
	return c
}

func newChargesGetCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "get ID",
		Short:   "Show a charge as it is now",
		Example: "  paidonce charges get ch_01J…\n  paidonce charges get ch_01J… --json | jq .status",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return showCharge(cmd, asJSON, apiCall{method: http.MethodGet, path: "/v1/charges/" + url.PathEscape(args[0])})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the API's answer")
	return c
}

func newChargesListCommand() *cobra.Command {
	var limit int
	var asJSON bool
	filters := map[string]*string{}
	c := &cobra.Command{
		Use:     "list",
		Short:   "List charges, newest first",
		Example: "  paidonce charges list\n  paidonce charges list --limit 100 --status failed --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			query := url.Values{"limit": {strconv.Itoa(limit)}}
			for name, value := range filters {
				if *value != "" {
					query.Set(strings.ReplaceAll(name, "-", "_"), *value)
				}
			}
			answer, err := apiCall{method: http.MethodGet, path: "/v1/charges?" + query.Encode()}.do(cmd.Context())
			if err != nil || asJSON {
				return printed(cmd.OutOrStdout(), answer, err)
			}
			var page struct {
				Data    []chargeJSON `json:"data"`
				HasMore bool         `json:"has_more"`
			}
			if err := json.Unmarshal(answer, &page); err != nil {
				return fmt.Errorf("the answer cannot be read: %w", err)
			}
			if err := chargesTable(cmd.OutOrStdout(), page.Data); err != nil {
				return err
			}
			if page.HasMore {
				fmt.Fprintf(cmd.ErrOrStderr(), "There are more: --starting-after %s\n", page.Data[len(page.Data)-1].ID)
			}
			return nil
		},
	}
	c.Flags().IntVar(&limit, "limit", 10, "how many at most, up to 100")
	for name, use := range map[string]string{"customer": "only of this customer", "status": "only pending, succeeded or failed ones", "starting-after": "go on after this charge"} {
		filters[name] = c.Flags().String(name, "", use)
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the API's answer")
	return c
}

// showCharge prints the charge that a call answers.
func showCharge(cmd *cobra.Command, asJSON bool, call apiCall) error {
	answer, err := call.do(cmd.Context())
	if err != nil || asJSON {
		return printed(cmd.OutOrStdout(), answer, err)
	}
	var charge chargeJSON
	if err := json.Unmarshal(answer, &charge); err != nil {
		return fmt.Errorf("the answer cannot be read: %w", err)
	}
	return chargesTable(cmd.OutOrStdout(), []chargeJSON{charge})
}

func printed(w io.Writer, answer []byte, err error) error {
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(w, strings.TrimSpace(string(shownJSON(answer))))
	return err
}

func chargesTable(to io.Writer, charges []chargeJSON) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tAMOUNT\tREFUNDED\tCURRENCY\tSTATUS\tCREATED\tDESCRIPTION")
	for _, c := range charges {
		status, said := c.Status, ""
		if c.Status == "succeeded" && !c.Captured {
			status = "authorised"
		}
		for _, text := range []*string{c.Description, c.FailureMessage} {
			if text != nil {
				said = *text
			}
		}
		writeRow(w, c.ID, c.Amount, c.AmountRefunded, c.Currency, status, time.Unix(c.Created, 0).UTC().Format(time.RFC3339), said)
	}
	return w.Flush()
}

// apiCall is one request of a client of the API.
type apiCall struct {
	method, path string
	form         url.Values
	key          string
	wait         time.Duration // how long it may be retried
	missing      string        // what to do when what it names is not there; empty: look among the charges
}

// do sends it until there is an answer, or its time is up. Errors say what to do next.
func (c apiCall) do(ctx context.Context) ([]byte, error) {
	base, apiKey, err := apiTarget()
	if err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(c.wait); ; {
		answer, err := c.attempt(ctx, base, apiKey)
		var again tryAgain
		if !errors.As(err, &again) {
			return answer, err
		}
		const shortestPause = time.Second // somebody waits for it
		pause := max(again.after, shortestPause)
		if ctx.Err() != nil || time.Now().Add(pause).After(deadline) {
			if c.key != "" {
				err = fmt.Errorf("%w; it may have gone through: repeat the command with --key %s", err, c.key)
			}
			return nil, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}
