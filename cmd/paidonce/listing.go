package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
)

// listing is what the lists of things that happen have in common: since when, of which account, how many, and how they are printed.
type listing struct {
	since, account string
	json           bool
	limit          int
}

func (l *listing) flags(c *cobra.Command) {
	c.Flags().StringVar(&l.since, "since", "24h", "since: 24h, 2026-01-31, or 2026-01-31T12:00:00Z")
	c.Flags().StringVar(&l.account, "account", "", "only of the account with this id or name")
	c.Flags().BoolVar(&l.json, "json", false, "print a JSON array")
	c.Flags().IntVar(&l.limit, "limit", 100, "list at most this many")
}

// scope reads since and account: from is by the database's clock, accountID empty for all. Errors: [usageError], an account that is not there, the database's.
func (l *listing) scope(ctx context.Context, a *app) (from time.Time, accountID string, err error) {
	now, err := a.engine.Now(ctx)
	if err != nil {
		return from, "", err
	}
	if from, err = parseSince(l.since, now); err != nil {
		return from, "", usageError{err}
	}
	if l.account == "" {
		return from, "", nil
	}
	found, err := findAccount(ctx, a.accounts, l.account)
	return from, found.ID, err
}

// checkListLimit is for --limit of lists.
func checkListLimit(limit int) error {
	if limit < 1 || limit > opsListMax {
		return usageError{fmt.Errorf("--limit must be 1 to %d", opsListMax)}
	}
	return nil
}
