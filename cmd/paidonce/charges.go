package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	sdk "paidonce/sdk/go"
)

func newChargesCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "charges",
		Short: "Create, show, list and cancel charges, as a client of the API",
		Long: `A client of a running API. PAIDONCE_URL is its address (http://127.0.0.1:8080 if it
is not set), PAIDONCE_API_KEY a key that "paidonce apikeys create" or "paidonce dev"
printed. It needs no database.`,
		Example: `  paidonce charges create --amount 2000 --currency usd --source tok_visa --key order-6735
  paidonce charges get ch_01J…
  paidonce charges list --limit 20 --status failed --json
  paidonce charges cancel ch_01J… --key order-6735-cancel`,
	}
	c.AddCommand(
		newChargesCreateCommand(), newChargesGetCommand(), newChargesListCommand(),
		newChargesCancelCommand(),
	)
	return c
}

func newChargesCreateCommand() *cobra.Command {
	var key string
	var wait time.Duration
	var hold, offSession, asJSON bool
	texts := map[string]*string{}
	var pairs, shipping []string
	c := &cobra.Command{
		Use:   "create --amount N --currency CODE --source TOKEN",
		Short: "Charge once",
		Long: `Charges once for --key: you may repeat it, with the same key and the same flags, as
often as you like. Without --key a key is generated and printed first, so that you
can repeat the command with it. Network errors, and answers that ask for it, are
retried for as long as --wait says.`,
		Example: `  paidonce charges create --amount 2000 --currency usd --source tok_visa --key order-6735 --metadata order=6735
  paidonce charges create --amount 2000 --currency usd --customer cus_42 --hold --json
  paidonce charges create --amount 2000 --currency gbp --source tok_visa --shipping name=Jenny --shipping address.city=London
  paidonce charges create --amount 2000 --currency eur --source tok_visa --return-url https://shop.example/orders/6735
  paidonce charges create --amount 900 --currency eur --customer cus_42 --off-session --key subscription-42-2026-11`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, name := range []string{"amount", "currency"} {
				if *texts[name] == "" {
					return usageError{fmt.Errorf("--%s is required", name)}
				}
			}
			body, err := chargeBody(texts, pairs, shipping, hold, offSession)
			if err != nil {
				return usageError{err}
			}
			api, err := newAPIClient()
			if err != nil {
				return err
			}
			nameKey(cmd, &key)
			answer, err := api.create(cmd.Context(), sdk.Operation{Name: key, Key: key,
				Path: "/v1/charges", Body: body, Begun: time.Now()}, wait)
			return showCharge(cmd, asJSON, answer, err)
		},
	}
	for name, use := range map[string]string{
		"amount":      "in minor units: 2000 is $20.00 (required)",
		"currency":    "ISO 4217 code (required)",
		"source":      "a token of the provider, such as tok_visa",
		"customer":    "a customer of the provider; --source may name one of their cards",
		"description": "your text",
		"receipt-email": "where the payer gets a receipt: from the provider, or with " +
			"PAIDONCE_SMTP_URL from the server",
		"reference": "your name of what is paid for, such as an order's number: at most one live " +
			"charge has it",
		"return-url": "where a payer who has to authenticate comes back to " +
			"(only with STRIPE_FLOW=payment_intents)",
		"statement-descriptor":        "what the statement shows (only with STRIPE_FLOW=charges)",
		"statement-descriptor-suffix": "what the card's statement shows after the operator's name",
		"duplicate-of":                "the charge of the same --reference beside which this one is meant",
	} {
		texts[name] = c.Flags().String(name, "", use)
	}
	c.Flags().StringArrayVar(&pairs, "metadata", nil, "NAME=VALUE; may be repeated")
	c.Flags().StringArrayVar(&shipping, "shipping", nil, "where goods are sent, as name=VALUE and "+
		"address.city=VALUE; may be repeated")
	c.Flags().BoolVar(&hold, "hold", false, "authorise only; capture later")
	c.Flags().BoolVar(&offSession, "off-session", false, "the payer is not there: decline what "+
		"they would have to authenticate (only with STRIPE_FLOW=payment_intents)")
	c.Flags().StringVar(&key, "key", "",
		"idempotency key: the name of this payment, such as an order's number")
	c.Flags().DurationVar(&wait, "wait", time.Minute, "how long to retry what may be retried")
	c.Flags().BoolVar(&asJSON, "json", false, "print the API's answer")
	return c
}

// nameKey makes a key if none is given, and prints it first, so that the command can be repeated.
func nameKey(cmd *cobra.Command, key *string) {
	if *key == "" {
		*key = "cli-" + rand.Text()
		fmt.Fprintf(cmd.ErrOrStderr(), "To repeat this safely, add: --key %s\n", *key)
	}
}

func newChargesCancelCommand() *cobra.Command {
	var key string
	var wait time.Duration
	var asJSON bool
	c := &cobra.Command{
		Use:   "cancel ID",
		Short: "Let go of an authorised charge, or end one that waits for its payer",
		Long: `Ends a charge whose money was not taken, once for --key: you may repeat it with the
same key. What was authorised is let go of. Without --key a key is generated and
printed first. Network errors, and answers that ask for it, are retried for as long
as --wait says.`,
		Example: "  paidonce charges cancel ch_01J… --key order-6735-cancel",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := newAPIClient()
			if err != nil {
				return err
			}
			nameKey(cmd, &key)
			answer, err := api.create(cmd.Context(), sdk.Operation{
				Name: key, Key: key, Path: "/v1/charges/" + url.PathEscape(args[0]) + "/cancel",
				Body: []byte("{}"), Begun: time.Now(),
			}, wait)
			return showCharge(cmd, asJSON, answer, err)
		},
	}
	c.Flags().StringVar(&key, "key", "", "idempotency key: the name of this cancellation")
	c.Flags().DurationVar(&wait, "wait", time.Minute, "how long to retry what may be retried")
	c.Flags().BoolVar(&asJSON, "json", false, "print the API's answer")
	return c
}

// chargeBody makes the body of a request from flags. The API checks their values.
func chargeBody(
	texts map[string]*string, pairs, shipping []string, hold, offSession bool,
) ([]byte, error) {
	body, err := bodyOf(texts, map[string][]string{"metadata": pairs, "shipping": shipping})
	if err != nil {
		return nil, err
	}
	// what is within shipping's address is named address.city
	if shipping, given := body["shipping"].(map[string]any); given {
		for name, value := range shipping {
			if inner, inside := strings.CutPrefix(name, "address."); inside {
				delete(shipping, name)
				within(shipping, "address")[inner] = value
			}
		}
	}
	if hold {
		body["capture"] = false
	}
	if offSession {
		body["off_session"] = true
	}
	return json.Marshal(body)
}

// bodyOf returns the parameters that flags name, texts and pairs within others. Amounts are numbers
// where they look like ones.
func bodyOf(texts map[string]*string, pairsOf map[string][]string) (map[string]any, error) {
	body := map[string]any{}
	for name, value := range texts {
		member := strings.ReplaceAll(name, "-", "_")
		if *value != "" {
			body[member] = *value
		}
		if !utf8.ValidString(*value) {
			return nil, fmt.Errorf("--%s is not in UTF-8", name)
		}
		if n, err := strconv.ParseInt(*value, 10, 64); err == nil &&
			strings.HasPrefix(name, "amount") && strconv.FormatInt(n, 10) == *value {
			body[member] = n
		}
	}
	for flag, pairs := range pairsOf {
		for _, pair := range pairs {
			name, value, ok := strings.Cut(pair, "=")
			if !ok || !utf8.ValidString(pair) {
				return nil, fmt.Errorf("--%s %s: it has to be NAME=VALUE, in UTF-8", flag, pair)
			}
			within(body, flag)[name] = value
		}
	}
	return body, nil
}

// within is the object within another by its name, which is added if it is not there.
func within(object map[string]any, name string) map[string]any {
	inner, _ := object[name].(map[string]any)
	if inner == nil {
		inner = map[string]any{}
		object[name] = inner
	}
	return inner
}

func newChargesGetCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "get ID",
		Short: "Show a charge as it is now",
		Example: "  paidonce charges get ch_01J…\n" +
			"  paidonce charges get ch_01J… --json | jq .status",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := newAPIClient()
			if err != nil {
				return err
			}
			answer, err := api.read(cmd.Context(), 0,
				func(ctx context.Context, c *sdk.Client) error {
					_, err := c.Charge(ctx, args[0])
					return err
				})
			return showCharge(cmd, asJSON, answer, err)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the API's answer")
	return c
}

func newChargesListCommand() *cobra.Command {
	var query sdk.ChargeQuery
	var limit int
	var asJSON bool
	var customer, status, intent, reference, since, until, after string
	c := &cobra.Command{
		Use:   "list",
		Short: "List charges, newest first",
		Example: "  paidonce charges list\n" +
			"  paidonce charges list --limit 100 --status failed --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			api, err := newAPIClient()
			if err != nil {
				return err
			}
			query.Limit = &limit
			setIfGiven(&query.Customer, customer)
			setIfGiven(&query.Status, status)
			setIfGiven(&query.PaymentIntent, intent)
			setIfGiven(&query.Reference, reference)
			setIfGiven(&query.StartingAfter, after)
			if query.Created, err = createdWithin(since, until); err != nil {
				return usageError{err}
			}
			answer, err := api.read(cmd.Context(), 0,
				func(ctx context.Context, c *sdk.Client) error {
					return firstPage(c.Charges(ctx, query))
				})
			if err != nil || asJSON {
				return printed(cmd.OutOrStdout(), answer, err)
			}
			var page struct {
				Data    []sdk.Charge `json:"data"`
				HasMore bool         `json:"has_more"`
			}
			if err := json.Unmarshal(answer, &page); err != nil {
				return fmt.Errorf("the answer cannot be read: %w", err)
			}
			if err := chargesTable(cmd.OutOrStdout(), page.Data); err != nil {
				return err
			}
			if page.HasMore {
				fmt.Fprintf(cmd.ErrOrStderr(), "There are more: --starting-after %s\n",
					page.Data[len(page.Data)-1].ID)
			}
			return nil
		},
	}
	c.Flags().IntVar(&limit, "limit", 10, "how many at most, up to 100")
	c.Flags().StringVar(&customer, "customer", "", "only of this customer")
	c.Flags().StringVar(&status, "status", "", "only pending, succeeded or failed ones")
	c.Flags().StringVar(&reference, "reference", "", "only with this reference")
	c.Flags().StringVar(&intent, "payment-intent", "",
		"only of this payment intent of the provider")
	c.Flags().StringVar(&since, "since", "",
		"only those created since then: a duration such as 48h, or a time such as 2026-01-31")
	c.Flags().StringVar(&until, "until", "", "only those created before then, likewise")
	c.Flags().StringVar(&after, "starting-after", "", "go on after this charge")
	c.Flags().BoolVar(&asJSON, "json", false, "print the API's answer")
	return c
}

// createdWithin returns the range of times that the flags --since and --until name.
func createdWithin(since, until string) (*sdk.TimeRange, error) {
	if since+until == "" {
		return nil, nil //nolint:nilnil // no range
	}
	within := &sdk.TimeRange{}
	for _, bound := range []struct {
		flag  string
		field **int64
	}{{since, &within.Gte}, {until, &within.Lt}} {
		if bound.flag == "" {
			continue
		}
		at, err := parseSince(bound.flag, time.Now())
		if err != nil {
			return nil, err
		}
		*bound.field = sdk.Ptr(at.Unix())
	}
	return within, nil
}

// setIfGiven sets a parameter of a query unless its value is empty.
func setIfGiven[T ~string](parameter **T, flag string) {
	if flag != "" {
		*parameter = sdk.Ptr(T(flag))
	}
}

// showCharge prints the charge that an answer holds.
func showCharge(cmd *cobra.Command, asJSON bool, answer []byte, err error) error {
	if err != nil || asJSON {
		return printed(cmd.OutOrStdout(), answer, err)
	}
	var charge sdk.Charge
	if err := json.Unmarshal(answer, &charge); err != nil {
		return fmt.Errorf("the answer cannot be read: %w", err)
	}
	if next := charge.NextAction; next != nil && next.RedirectToURL != nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "The payer has to go on at %s\n", next.RedirectToURL.URL)
	}
	return chargesTable(cmd.OutOrStdout(), []sdk.Charge{charge})
}

func printed(w io.Writer, answer []byte, err error) error {
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(w, strings.TrimSpace(string(plainJSON(answer))))
	return err
}

func chargesTable(to io.Writer, charges []sdk.Charge) error {
	return printTable(to, "ID,AMOUNT,REFUNDED,CURRENCY,STATUS,CREATED,DESCRIPTION", charges,
		func(c sdk.Charge) []any {
			status, said := string(c.Status), ""
			if c.Status == "succeeded" && !c.Captured {
				status = "authorised"
				if c.Refunded {
					status = "released"
				}
			}
			for _, text := range []*string{c.Description, c.FailureMessage} {
				if text != nil {
					said = *text
				}
			}
			return []any{
				c.ID, c.Amount, c.AmountRefunded, c.Currency, status,
				rfc3339(time.Unix(c.Created, 0)), said,
			}
		})
}
