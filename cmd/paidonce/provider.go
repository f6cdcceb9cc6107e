package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"paidonce/charges"
)

func newProviderCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "provider",
		Short: "The account at the payment provider and its books: show, switch, recover",
		Long: `Operations are sent to one account at the provider, in one of its modes, test or live. serve, reconcile and audit refuse a STRIPE_API_KEY that is
for another one, once anything was sent: what has no outcome there would be charged again here.`,
		Example: "  paidonce provider show\n  STRIPE_API_KEY=sk_live_… paidonce provider switch     # with the new key",
	}
	c.AddCommand(newProviderShowCommand(), newProviderSwitchCommand(), newProviderRecoverCommand())
	return c
}

type providerAccountJSON struct {
	Account      string  `json:"account"` // empty: not known
	Livemode     bool    `json:"livemode"`
	Current      bool    `json:"current"`
	FirstSeenAt  string  `json:"first_seen_at"`
	CurrentSince *string `json:"current_since"`
	Unfinished   int     `json:"unfinished"`
	Awaiting     int     `json:"awaiting_payer"`
}

func providerAccountToJSON(a charges.ProviderAccount) providerAccountJSON {
	return providerAccountJSON{a.ID, a.Livemode, a.Current, rfc3339(a.FirstSeenAt), rfc3339Ptr(a.CurrentSince), a.Unfinished, a.Awaiting}
}

// providerKeyJSON is what STRIPE_API_KEY is for, as far as the provider tells.
type providerKeyJSON struct {
	Account  string `json:"account"`
	Livemode bool   `json:"livemode"`
	Known    bool   `json:"known"`   // an account in the list
	Current  bool   `json:"current"` // the one that operations are sent to
	Problem  string `json:"problem,omitempty"`

	name string // to a person
}

type providerShowJSON struct {
	BaseURL    string                `json:"base_url"`
	Accounts   []providerAccountJSON `json:"accounts"`
	Key        *providerKeyJSON      `json:"key"` // null: there is no STRIPE_API_KEY
	Recoveries []recoveryJSON        `json:"recoveries"`
}

func newProviderShowCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "show",
		Short:   "Show the accounts at the provider, which one STRIPE_API_KEY is for, and what was rebuilt from its books",
		Example: "  paidonce provider show\n  paidonce provider show --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withOperations(cmd, needDatabase, func(ctx context.Context, a *app) error {
				all, err := a.chargeStore.ProviderAccounts(ctx)
				if err != nil {
					return err
				}
				shown := providerShowJSON{BaseURL: a.cfg.StripeAPIBase, Accounts: make([]providerAccountJSON, 0, len(all)), Key: a.whoseKey(ctx)}
				if shown.Recoveries, err = a.recoveries(ctx); err != nil {
					return err
				}
				for _, one := range all {
					shown.Accounts = append(shown.Accounts, providerAccountToJSON(one))
				}
				if asJSON {
					return writeJSON(cmd.OutOrStdout(), shown)
				}
				return printProviderAccounts(cmd.OutOrStdout(), shown, all)
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func (a *app) whoseKey(ctx context.Context) *providerKeyJSON {
	if a.provider == nil {
		return nil
	}
	account, known, err := a.chargeStore.Identify(ctx, a.provider, a.livemode)
	k := providerKeyJSON{Account: account.ID, Livemode: a.livemode, Known: known, Current: known && account.Current, name: account.String()}
	if err != nil {
		k.Problem = err.Error()
	}
	return &k
}

func printProviderAccounts(out io.Writer, shown providerShowJSON, all []charges.ProviderAccount) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ACCOUNT\tCURRENT\tFIRST SEEN\tCURRENT SINCE\tWITHOUT OUTCOME\tAWAITING THE PAYER")
	for i, a := range shown.Accounts {
		current, since := "", "-"
		if a.Current {
			current = "yes"
		}
		if a.CurrentSince != nil {
			since = *a.CurrentSince
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%d\n", all[i], current, a.FirstSeenAt, since, a.Unfinished, a.Awaiting)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "\nprovider: %s\nSTRIPE_API_KEY: %s\n", shown.BaseURL, shown.Key); err != nil {
		return err
	}
	return printRecoveries(out, shown.Recoveries)
}

// String says it to a person.
func (k *providerKeyJSON) String() string {
	switch {
	case k == nil:
		return "not set"
	case k.Problem != "":
		return k.Problem
	case k.Current:
		return "for the current account"
	case k.Known:
		return "for " + k.name + ", which is not the current one"
	case k.Account == "":
		return "for none of these accounts, or nothing tells for which"
	}
	return "for " + k.name + ", with which this installation has not worked"
}

type providerSwitchJSON struct {
	Changed bool                 `json:"changed"`
	From    *providerAccountJSON `json:"from"` // null: there was none
	To      providerAccountJSON  `json:"to"`
}

func newProviderSwitchCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "switch",
		Short: "Send operations to the account of STRIPE_API_KEY from now on",
		Long: `Makes the account of STRIPE_API_KEY, in the key's mode, the one that operations are sent to. Servers with a key of another account claim nothing any
more from that moment on, and are to be started anew. What has no outcome at the former account is never sent to the new one: it is settled by the former
account's webhooks, whose secret stays in STRIPE_WEBHOOK_SECRET, or by a person with "paidonce ops" and the former key.`,
		Example: "  STRIPE_API_KEY=sk_live_… paidonce provider switch\n  STRIPE_API_KEY=sk_live_… paidonce provider switch --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withOperations(cmd, needDatabase|needProvider, func(ctx context.Context, a *app) error {
				s, err := a.chargeStore.Switch(ctx, a.provider, a.livemode)
				if err != nil {
					return fmt.Errorf("provider switch: %w", err)
				}
				if !asJSON {
					return printSwitched(cmd.OutOrStdout(), s)
				}
				out := providerSwitchJSON{Changed: s.Changed, To: providerAccountToJSON(s.To)}
				if s.From.Number != 0 {
					from := providerAccountToJSON(s.From)
					out.From = &from
				}
				return writeJSON(cmd.OutOrStdout(), out)
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func printSwitched(out io.Writer, s charges.Switched) error {
	if !s.Changed {
		_, err := fmt.Fprintf(out, "operations are sent to %s already\n", s.To)
		return err
	}
	_, err := fmt.Fprintf(out, "operations are sent to %s from now on; start the servers anew with its key\n", s.To)
	if s.From.Number == 0 || s.From.Unfinished+s.From.Awaiting == 0 {
		return err
	}
	_, also := fmt.Fprintf(out, `left at %s: %d operations without an outcome, %d charges that wait for their payer. They are never sent elsewhere. That account's
webhooks settle them as long as its secret stays in STRIPE_WEBHOOK_SECRET; what these do not settle is parked, for "paidonce ops resolve" or "ops retry" with its key.
`, s.From, s.From.Unfinished, s.From.Awaiting)
	return errors.Join(err, also)
}

// asItsAccount lets a person work on one operation with the key of the account that it was sent to, whichever is the current one.
func (a *app) asItsAccount(ctx context.Context) error {
	_, ok, err := a.chargeStore.Identify(ctx, a.provider, a.livemode)
	switch {
	case err != nil:
		return err
	case !ok: // before the first start of a server, or a key of none of the accounts
		return a.recognise(ctx)
	}
	return nil
}
