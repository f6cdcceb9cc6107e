package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"paidonce/charges"
)

func newProviderCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "provider",
		Short: "The account at the payment provider: show, switch, recover from its records",
		Long: `Operations are sent to one account at the provider, in one of its modes, test or
live. Once anything was sent there, serve, reconcile and audit refuse a
STRIPE_API_KEY of any other: operations without an outcome would be charged again.`,
		Example: "  paidonce provider show\n" +
			"  STRIPE_API_KEY=sk_live_… paidonce provider switch     # with the new key",
	}
	c.AddCommand(newProviderShowCommand(), newProviderSwitchCommand(), newProviderRecoverCommand())
	return c
}

type providerAccountJSON struct {
	Account      string  `json:"account"` // empty if it is not known
	Livemode     bool    `json:"livemode"`
	Current      bool    `json:"current"`
	FirstSeenAt  string  `json:"first_seen_at"`
	CurrentSince *string `json:"current_since"`
	Unfinished   int     `json:"unfinished"`
	Awaiting     int     `json:"awaiting_payer"`
}

func providerAccountToJSON(a charges.ProviderAccount) providerAccountJSON {
	return providerAccountJSON{
		a.ID, a.Livemode, a.Current, rfc3339(a.FirstSeenAt), rfc3339Ptr(a.CurrentSince),
		a.Unfinished, a.Awaiting,
	}
}

// providerKeyJSON says what STRIPE_API_KEY is for, as far as the provider reports it.
type providerKeyJSON struct {
	Account  string `json:"account"`
	Livemode bool   `json:"livemode"`
	Known    bool   `json:"known"`   // whether the account is in the list
	Current  bool   `json:"current"` // whether operations are sent to it
	Problem  string `json:"problem,omitempty"`

	name string // in words
}

type providerShowJSON struct {
	BaseURL    string                `json:"base_url"`
	Accounts   []providerAccountJSON `json:"accounts"`
	Key        *providerKeyJSON      `json:"key"` // null without STRIPE_API_KEY
	Recoveries []recoveryJSON        `json:"recoveries"`
}

func newProviderShowCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "show",
		Short: "Show the accounts at the provider, which one STRIPE_API_KEY is for, and what " +
			"was rebuilt from its records",
		Example: "  paidonce provider show\n  paidonce provider show --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withApp(cmd, needDatabase, func(ctx context.Context, a *app) error {
				all, err := a.chargeStore.ProviderAccounts(ctx)
				if err != nil {
					return err
				}
				shown := providerShowJSON{
					BaseURL:  a.cfg.StripeAPIBase,
					Accounts: make([]providerAccountJSON, 0, len(all)), Key: a.whoseKey(ctx),
				}
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
	account, known, err := a.chargeStore.Identify(ctx, a.provider, a.cfg.live())
	k := providerKeyJSON{
		Account: account.ID, Livemode: a.cfg.live(), Known: known, Current: known &&
			account.Current, name: account.String(),
	}
	if err != nil {
		k.Problem = err.Error()
	}
	return &k
}

func printProviderAccounts(
	out io.Writer, shown providerShowJSON, all []charges.ProviderAccount,
) error {
	err := printTable(out, "ACCOUNT,CURRENT,FIRST SEEN,CURRENT SINCE,WITHOUT OUTCOME,AWAITING "+
		"THE PAYER", all, func(a charges.ProviderAccount) []any {
		current := ""
		if a.Current {
			current = "yes"
		}
		return []any{
			a, current, rfc3339(a.FirstSeenAt), timeOrDash(a.CurrentSince), a.Unfinished,
			a.Awaiting,
		}
	})
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "\nprovider: %s\nSTRIPE_API_KEY: %s\n", shown.BaseURL, shown.Key); err != nil {
		return err
	}
	return printRecoveries(out, shown.Recoveries)
}

// String returns it as text for an operator.
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
	From    *providerAccountJSON `json:"from"` // null if there was none
	To      providerAccountJSON  `json:"to"`
}

func newProviderSwitchCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "switch",
		Short: "Send operations to the account of STRIPE_API_KEY from now on",
		Long: `Makes the account of STRIPE_API_KEY, in the key's mode, the one that operations are
sent to. From then on, servers with a key of another account claim nothing, and have
to be restarted. Operations without an outcome at the former account are never sent
to the new one. The former account's webhooks settle them, as long as its secret
stays in STRIPE_WEBHOOK_SECRET; or an operator does, by "paidonce ops" with the
former key.`,
		Example: "  STRIPE_API_KEY=sk_live_… paidonce provider switch\n" +
			"  STRIPE_API_KEY=sk_live_… paidonce provider switch --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withApp(cmd, needDatabase|needProvider, func(ctx context.Context, a *app) error {
				s, err := a.chargeStore.Switch(ctx, a.provider, a.cfg.live())
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
	_, err := fmt.Fprintf(out, "operations are sent to %s from now on; restart the servers "+
		"with its key\n", s.To)
	if s.From.Number == 0 || s.From.Unfinished+s.From.Awaiting == 0 {
		return err
	}
	_, also := fmt.Fprintf(out,
		`left at %s: %d operations without an outcome, %d charges that wait for their payer.
They are never sent elsewhere. That account's webhooks settle them as long as its secret
stays in STRIPE_WEBHOOK_SECRET; what these do not settle is parked, for "paidonce ops
resolve" or "ops retry" with its key.
`, s.From, s.From.Unfinished, s.From.Awaiting)
	return errors.Join(err, also)
}

// useKeysAccount lets an operator work on an operation with the key of the account that it was sent
// to, whichever account is the current one.
func (a *app) useKeysAccount(ctx context.Context) error {
	_, ok, err := a.chargeStore.Identify(ctx, a.provider, a.cfg.live())
	switch {
	case err != nil:
		return err
	case !ok: // no server has started yet, or the key is of an unknown account
		return a.recognise(ctx)
	}
	return nil
}
