package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"time"

	"github.com/spf13/cobra"

	sdk "paidonce/sdk/go"
)

const intentsPath = "/v1/payment_intents"

func newIntentsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "intents",
		Short: "Create, confirm, capture, cancel and show payment intents, as a client of the API",
		Long: `A client of a running API, with PAIDONCE_URL and PAIDONCE_API_KEY as for "paidonce
charges". You may repeat each command that changes something, with the same --key and
the same flags, as often as you like. Without --key a key is generated and printed first.
Network errors, and answers that ask for it, are retried for as long as --wait says.`,
		Example: `  paidonce intents create --amount 2000 --currency usd --payment-method pm_card_visa --types card --confirm --key order-6735
  paidonce intents confirm pi_3Mt… --payment-method pm_card_visa --key order-6735-2
  paidonce intents list --customer cus_42 --json`,
	}
	c.AddCommand(
		newIntentsCreateCommand(), newIntentsGetCommand(), newIntentsListCommand(),
		newIntentsActCommand("confirm", "Charge what an intent was made for", map[string]string{
			"payment-method": "pay with this one, such as pm_card_visa",
			"return-url":     "where the payer comes back to after having authenticated",
		}),
		newIntentsActCommand("capture", "Take the money that an intent holds", map[string]string{
			"amount-to-capture": "only so much, in minor units",
		}),
		newIntentsActCommand("cancel", "End an intent that nobody has paid, or let go of what it holds",
			map[string]string{
				"cancellation-reason": "abandoned, duplicate, fraudulent or requested_by_customer",
			}),
	)
	return c
}

// intentChange is a command that changes an intent once for its key.
type intentChange struct {
	texts  map[string]*string
	pairs  []string
	key    string
	wait   time.Duration
	asJSON bool
}

func (i *intentChange) flags(c *cobra.Command, texts map[string]string) {
	i.texts = map[string]*string{}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		i.texts[name] = c.Flags().String(name, "", texts[name])
	}
	c.Flags().StringVar(&i.key, "key", "", "idempotency key: the name of this operation")
	c.Flags().DurationVar(&i.wait, "wait", time.Minute, "how long to retry what may be retried")
	c.Flags().BoolVar(&i.asJSON, "json", false, "print the API's answer")
}

// send sends the flags, and more.
func (i *intentChange) send(cmd *cobra.Command, path string, more map[string]any) error {
	members, err := bodyOf(i.texts, map[string][]string{"metadata": i.pairs})
	if err != nil {
		return usageError{err}
	}
	maps.Copy(members, more)
	body, err := json.Marshal(members)
	if err != nil {
		return err
	}
	api, err := newIntentsClient()
	if err != nil {
		return err
	}
	nameKey(cmd, &i.key)
	answer, err := api.create(cmd.Context(), sdk.Operation{
		Name: i.key, Key: i.key, Path: path, Body: body, Begun: time.Now(),
	}, i.wait)
	return showIntent(cmd, i.asJSON, answer, err)
}

func newIntentsClient() (*apiClient, error) {
	api, err := newAPIClient()
	if err == nil {
		api.missing = "look for it: paidonce intents list"
	}
	return api, err
}

func newIntentsCreateCommand() *cobra.Command {
	var change intentChange
	var confirm, hold bool
	var types []string
	c := &cobra.Command{
		Use:   "create --amount N --currency CODE",
		Short: "Create a payment intent, and confirm it with --confirm",
		Example: `  paidonce intents create --amount 2000 --currency usd --payment-method pm_card_visa --types card --confirm --key order-6735
  paidonce intents create --amount 2000 --currency usd --json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, name := range []string{"amount", "currency"} {
				if *change.texts[name] == "" {
					return usageError{fmt.Errorf("--%s is required", name)}
				}
			}
			more := map[string]any{}
			if confirm {
				more["confirm"] = true
			}
			if hold {
				more["capture_method"] = "manual"
			}
			if len(types) > 0 {
				more["payment_method_types"] = types
			}
			return change.send(cmd, intentsPath, more)
		},
	}
	change.flags(c, map[string]string{
		"amount": "in minor units: 2000 is $20.00 (required)", "currency": "ISO 4217 code (required)",
		"payment-method": "a means of payment of the provider, such as pm_card_visa",
		"customer":       "a customer of the provider", "description": "your text",
		"receipt-email": "where the payer gets a receipt",
		"return-url":    "where the payer comes back to after having authenticated; with --confirm",
		"reference": "your name of what is paid for, such as an order's number: at most one live " +
			"charge has it",
		"duplicate-of": "the charge of the same --reference beside which this one is meant",
	})
	c.Flags().StringArrayVar(&change.pairs, "metadata", nil, "NAME=VALUE; may be repeated")
	c.Flags().StringSliceVar(&types, "types", nil,
		"the provider's types of means of payment, such as card; without, the provider chooses")
	c.Flags().BoolVar(&confirm, "confirm", false, "charge at once")
	c.Flags().BoolVar(&hold, "hold", false, "authorise only; capture later")
	return c
}

func newIntentsActCommand(name, short string, texts map[string]string) *cobra.Command {
	var change intentChange
	c := &cobra.Command{
		Use: name + " ID", Short: short, Args: cobra.ExactArgs(1),
		Example: "  paidonce intents " + name + " pi_3Mt… --key order-6735-" + name,
		RunE: func(cmd *cobra.Command, args []string) error {
			return change.send(cmd, intentsPath+"/"+url.PathEscape(args[0])+"/"+name, nil)
		},
	}
	change.flags(c, texts)
	return c
}

func newIntentsGetCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "get ID", Short: "Show a payment intent as it is now", Args: cobra.ExactArgs(1),
		Example: "  paidonce intents get pi_3Mt… --json | jq .status",
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := newIntentsClient()
			if err != nil {
				return err
			}
			answer, err := api.read(cmd.Context(), 0,
				func(ctx context.Context, c *sdk.Client) error {
					_, err := c.PaymentIntent(ctx, args[0])
					return err
				})
			return showIntent(cmd, asJSON, answer, err)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the API's answer")
	return c
}

func newIntentsListCommand() *cobra.Command {
	var query sdk.PaymentIntentQuery
	var limit int
	var asJSON bool
	var customer, since, until, after string
	c := &cobra.Command{
		Use: "list", Short: "List payment intents, newest first",
		Example: "  paidonce intents list --limit 100 --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			api, err := newIntentsClient()
			if err != nil {
				return err
			}
			query.Limit = &limit
			setIfGiven(&query.Customer, customer)
			setIfGiven(&query.StartingAfter, after)
			if query.Created, err = createdWithin(since, until); err != nil {
				return usageError{err}
			}
			answer, err := api.read(cmd.Context(), 0,
				func(ctx context.Context, c *sdk.Client) error {
					return firstPage(c.PaymentIntents(ctx, query))
				})
			return showIntents(cmd, asJSON, answer, err)
		},
	}
	c.Flags().IntVar(&limit, "limit", 10, "how many at most, up to 100")
	c.Flags().StringVar(&customer, "customer", "", "only of this customer")
	c.Flags().StringVar(&since, "since", "",
		"only those created since then: a duration such as 48h, or a time such as 2026-01-31")
	c.Flags().StringVar(&until, "until", "", "only those created before then, likewise")
	c.Flags().StringVar(&after, "starting-after", "", "go on after this payment intent")
	c.Flags().BoolVar(&asJSON, "json", false, "print the API's answer")
	return c
}

// showIntents prints the page of intents that an answer holds.
func showIntents(cmd *cobra.Command, asJSON bool, answer []byte, err error) error {
	if err != nil || asJSON {
		return printed(cmd.OutOrStdout(), answer, err)
	}
	var page struct {
		Data    []sdk.PaymentIntent `json:"data"`
		HasMore bool                `json:"has_more"`
	}
	if err := json.Unmarshal(answer, &page); err != nil {
		return fmt.Errorf("the answer cannot be read: %w", err)
	}
	if err := intentsTable(cmd.OutOrStdout(), page.Data); err != nil {
		return err
	}
	if page.HasMore {
		fmt.Fprintf(cmd.ErrOrStderr(), "There are more: --starting-after %s\n",
			page.Data[len(page.Data)-1].ID)
	}
	return nil
}

// showIntent prints the intent that an answer holds.
func showIntent(cmd *cobra.Command, asJSON bool, answer []byte, err error) error {
	if err != nil || asJSON {
		return printed(cmd.OutOrStdout(), answer, err)
	}
	var intent sdk.PaymentIntent
	if err := json.Unmarshal(answer, &intent); err != nil {
		return fmt.Errorf("the answer cannot be read: %w", err)
	}
	return intentsTable(cmd.OutOrStdout(), []sdk.PaymentIntent{intent})
}

func intentsTable(to io.Writer, intents []sdk.PaymentIntent) error {
	return printTable(to, "ID,AMOUNT,RECEIVED,CURRENCY,STATUS,CREATED,DESCRIPTION", intents,
		func(i sdk.PaymentIntent) []any {
			said := ""
			if i.Description != nil {
				said = *i.Description
			}
			if i.LastPaymentError != nil && i.Status == "requires_payment_method" {
				said = i.LastPaymentError.Message
			}
			if i.NextAction != nil && i.NextAction.RedirectToURL != nil {
				said = i.NextAction.RedirectToURL.URL
			}
			return []any{
				i.ID, i.Amount, i.AmountReceived, i.Currency, i.Status,
				rfc3339(time.Unix(i.Created, 0)), said,
			}
		})
}
