package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"paidonce/accounts"
)

func newAccountsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "accounts",
		Short: "List accounts, and set what holds for all charges of one",
		Long: `An account has its own API keys, charges and endpoints. "paidonce apikeys create"
makes one.`,
		Example: "  paidonce accounts list\n" +
			"  paidonce accounts set shop --reference-from metadata.order_id",
	}
	c.AddCommand(newAccountsListCommand(), newAccountsSetCommand())
	return c
}

// inMetadata is how a key of metadata is written on the command line.
const inMetadata = "metadata."

func newAccountsSetCommand() *cobra.Command {
	var from string
	c := &cobra.Command{
		Use:   "set ACCOUNT --reference-from metadata.NAME",
		Short: "Set where an account's charges have their reference",
		Long: `With --reference-from metadata.NAME a charge that names no reference takes that key
of its metadata for one: at most one live charge has a reference. So programs that
use Stripe's libraries need no change. With --reference-from none the reference is
only what requests name. Servers go by it within half a minute; charges that are
there keep theirs. ACCOUNT is an id or a name.`,
		Example: "  paidonce accounts set shop --reference-from metadata.order_id\n" +
			"  paidonce accounts set shop --reference-from none",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, isKey := strings.CutPrefix(from, inMetadata)
			switch {
			case from == "none":
				name = ""
			case !isKey || name == "":
				return usageError{fmt.Errorf("--reference-from must be %sNAME, or none", inMetadata)}
			}
			return withAccounts(cmd.Context(), func(ctx context.Context, s *accounts.Store) error {
				a, err := s.SetReferenceFrom(ctx, args[0], name)
				switch {
				case errors.Is(err, accounts.ErrReferenceFrom):
					return usageError{fmt.Errorf("--reference-from: %w", err)}
				case err != nil:
					return fmt.Errorf("%s: %w", oneLine(args[0]), err)
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s (%s) takes references from: %s\n", a.Name,
					a.ID, referenceFrom(a))
				return err
			})
		},
	}
	c.Flags().StringVar(&from, "reference-from", "", "metadata.NAME, or none (required)")
	return c
}

// referenceFrom is where an account's charges have their reference, as the flag says it.
func referenceFrom(a accounts.Account) string {
	if a.ReferenceFrom == "" {
		return "none"
	}
	return inMetadata + a.ReferenceFrom
}

func newAccountsListCommand() *cobra.Command {
	var asJSON bool
	var limit int
	c := &cobra.Command{
		Use:     "list",
		Short:   "List accounts, the oldest first",
		Example: "  paidonce accounts list --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkListLimit(limit); err != nil {
				return err
			}
			return withAccounts(cmd.Context(), func(ctx context.Context, s *accounts.Store) error {
				list, err := s.List(ctx, limit)
				if err != nil {
					return err
				}
				return printList(cmd.OutOrStdout(), asJSON, list, accountToJSON,
					"ID,NAME,REFERENCE FROM,CREATED", func(a accounts.Account) []any {
						return []any{a.ID, a.Name, referenceFrom(a), rfc3339(a.CreatedAt)}
					})
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	c.Flags().IntVar(&limit, "limit", 100, "list at most this many")
	return c
}

type accountJSON struct {
	ID            string `json:"id"`
	Name          string `json:"name"`
	ReferenceFrom string `json:"reference_from"`
	CreatedAt     string `json:"created_at"`
}

func accountToJSON(a accounts.Account) accountJSON {
	return accountJSON{
		ID: a.ID, Name: a.Name, ReferenceFrom: referenceFrom(a), CreatedAt: rfc3339(a.CreatedAt),
	}
}
