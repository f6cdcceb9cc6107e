package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
)

// listing has the flags that lists of events have in common: since when, of which account, how
// many, and how they are printed.
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

// scope evaluates the flags: from is a time of the database's clock, accountID is empty for all
// accounts. Errors: [usageError], an unknown account, and those of the database.
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

// checkListLimit checks the --limit of a list.
func checkListLimit(limit int) error {
	if limit < 1 || limit > opsListMax {
		return usageError{fmt.Errorf("--limit must be 1 to %d", opsListMax)}
	}
	return nil
}
