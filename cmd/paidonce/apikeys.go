package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"paidonce/accounts"
	"paidonce/db"
)

func newAPIKeysCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "apikeys",
		Short: "Create, list and revoke API keys",
		Example: "  paidonce apikeys create --account shop\n  paidonce apikeys list\n" +
			"  paidonce apikeys revoke key_01J…",
	}
	c.AddCommand(newAPIKeysCreateCommand(), newAPIKeysListCommand(), newAPIKeysRevokeCommand())
	return c
}

// withAccounts calls use with a store on the database of DATABASE_URL.
func withAccounts(ctx context.Context, use func(context.Context, *accounts.Store) error) error {
	cfg, err := loadConfig(needDatabase)
	if err != nil {
		return err
	}
	pool, err := db.Open(cfg.DatabaseURL, 2)
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := db.CheckStart(ctx, pool); err != nil {
		return err
	}
	return use(ctx, accounts.NewStore(pool))
}

// findAccount returns the account that --account names. A misspelt name is an error, so that it
// does not look like an account that has nothing.
func findAccount(
	ctx context.Context, s *accounts.Store, idOrName string,
) (accounts.Account, error) {
	a, err := s.Find(ctx, idOrName)
	if err != nil {
		return a, fmt.Errorf("--account %s: %w", oneLine(idOrName), err)
	}
	return a, nil
}

func newAPIKeysCreateCommand() *cobra.Command {
	var account string
	var readOnly, asJSON bool
	c := &cobra.Command{
		Use:   "create --account NAME",
		Short: "Create an API key; it is shown once and never again",
		Long: `Creates an API key for the account of that name, and the account, too, if it does
not exist. The keys of one account share its idempotency keys, so a client may
change its key between a request and its retry.

A read-only key, rk_…, may do every GET and nothing else. It sees no secret, and no
address where a payer's payment goes on. It is for dashboards, exports, and people who
look into things.`,
		Example: "  paidonce apikeys create --account shop\n" +
			"  paidonce apikeys create --account shop --json | jq -r .api_key\n" +
			"  paidonce apikeys create --account shop --read-only   # for a dashboard",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if account == "" {
				return usageError{fmt.Errorf("--account is required")}
			}
			return withAccounts(cmd.Context(), func(ctx context.Context, s *accounts.Store) error {
				create := s.CreateKey
				if readOnly {
					create = s.CreateReadOnlyKey
				}
				k, err := create(ctx, account)
				if err != nil {
					return err
				}
				if asJSON {
					return writeJSON(cmd.OutOrStdout(), map[string]string{
						"account_id": k.AccountID, "account": k.AccountName, "api_key": k.Secret,
						"id": k.ID,
					})
				}
				kind := "API key"
				if k.ReadOnly {
					kind = "Read-only API key"
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(),
					"%s of %s (%s), shown this once:\n%s\nIts id, to revoke it: %s\n",
					kind, k.AccountName, k.AccountID, k.Secret, k.ID)
				return err
			})
		},
	}
	c.Flags().StringVar(&account, "account", "", "name of the account (required)")
	c.Flags().BoolVar(&readOnly, "read-only", false, "a key that may do every GET and nothing else")
	c.Flags().BoolVar(&asJSON, "json", false, `print {"account_id","account","api_key","id"}`)
	return c
}

func newAPIKeysListCommand() *cobra.Command {
	var account string
	var asJSON bool
	c := &cobra.Command{
		Use:     "list",
		Short:   "List API keys, each with its last characters only",
		Example: "  paidonce apikeys list --account shop",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withAccounts(cmd.Context(), func(ctx context.Context, s *accounts.Store) error {
				if account != "" {
					found, err := findAccount(ctx, s, account)
					if err != nil {
						return err
					}
					account = found.Name
				}
				keys, err := s.Keys(ctx, account)
				if err != nil {
					return err
				}
				return printList(cmd.OutOrStdout(), asJSON, keys, keyToJSON,
					"ID,ACCOUNT,KEY,MAY,CREATED,REVOKED", func(k accounts.Key) []any {
						prefix, may := accounts.KeyPrefix, "everything"
						if k.ReadOnly {
							prefix, may = accounts.ReadOnlyPrefix, "read"
						}
						return []any{
							k.ID, k.Account, prefix + "…" + k.Hint, may, rfc3339(k.CreatedAt),
							timeOrDash(k.RevokedAt),
						}
					})
			})
		},
	}
	c.Flags().StringVar(&account, "account", "", "only of the account with this id or name")
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	return c
}

type keyJSON struct {
	ID        string  `json:"id"`
	AccountID string  `json:"account_id"`
	Account   string  `json:"account"`
	Hint      string  `json:"hint"`
	ReadOnly  bool    `json:"read_only"`
	CreatedAt string  `json:"created_at"`
	RevokedAt *string `json:"revoked_at"`
}

func keyToJSON(k accounts.Key) keyJSON {
	return keyJSON{
		ID: k.ID, AccountID: k.AccountID, Account: k.Account, Hint: k.Hint,
		ReadOnly: k.ReadOnly, CreatedAt: rfc3339(k.CreatedAt), RevokedAt: rfc3339Ptr(k.RevokedAt),
	}
}

func newAPIKeysRevokeCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "revoke ID",
		Short:   "Refuse an API key from now on",
		Example: "  paidonce apikeys revoke key_01J…",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withAccounts(cmd.Context(), func(ctx context.Context, s *accounts.Store) error {
				if err := s.Revoke(ctx, args[0]); err != nil {
					return err
				}
				fmt.Fprintln(cmd.OutOrStdout(), "revoked", args[0])
				return nil
			})
		},
	}
}
