package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"paidonce/history"
	"paidonce/internal/loop"
)

func newProviderRecoverCommand() *cobra.Command {
	var since string
	var asJSON bool
	c := &cobra.Command{
		Use:   "recover [--since WHEN]",
		Short: "Rebuild what the database has lost from the provider's records",
		Long: `Reads the provider's charges, refunds and intents since WHEN (a duration such as
48h, a date, or a time in RFC 3339), and writes those of this installation that the
database lacks, with their keys, answers and events. It changes nothing that is
there, so it may run at any time, beside servers, and repeatedly. Without --since it
begins before the newest charge that both sides have.

serve does this by itself when the history of its database has forked
(PAIDONCE_RECOVER=auto). If claims are held and no server runs, this command also
releases them.

Exit codes: 0 done, 1 could not run to the end, 2 wrong usage.`,
		Example: "  paidonce provider recover\n  paidonce provider recover --since 48h\n" +
			"  paidonce provider recover --since 2026-01-31T12:00:00Z --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withApp(cmd, needDatabase|needProvider, func(ctx context.Context, a *app) error {
				if err := a.mustRecognise(ctx, "provider recover"); err != nil {
					return err
				}
				counts, err := a.recoverSince(ctx, since)
				if err != nil {
					return fmt.Errorf("provider recover: %w", err)
				}
				if asJSON {
					return writeJSON(cmd.OutOrStdout(), map[string]int{
						"charges": counts.Charges, "refunds": counts.Refunds,
						"captures": counts.Captures,
					})
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(),
					"rebuilt %d charges, %d refunds, %d captures\n", counts.Charges, counts.Refunds,
					counts.Captures)
				return err
			})
		},
	}
	c.Flags().StringVar(&since, "since", "",
		"the beginning: 48h, 2026-01-31, or 2026-01-31T12:00:00Z")
	c.Flags().BoolVar(&asJSON, "json", false, "print the counts as a JSON object")
	return c
}

// recoverSince rebuilds at an operator's request. A recovery that is open already is completed
// afterwards.
func (a *app) recoverSince(ctx context.Context, since string) (counts history.Counts, err error) {
	now, err := a.engine.Now(ctx)
	if err != nil {
		return counts, err
	}
	var from time.Time
	if since == "" {
		from, err = a.rebuilder.RebuildFrom(ctx)
	} else if from, err = parseSince(since, now); err != nil {
		return counts, usageError{err}
	}
	if err != nil {
		return counts, err
	}
	a.log.Info("reading the provider's records", "since", from)
	err = a.rebuilder.Rebuild(ctx, from, func(_ context.Context, c history.Counts) error {
		counts.Charges, counts.Refunds, counts.Captures = counts.Charges+c.Charges,
			counts.Refunds+c.Refunds, counts.Captures+c.Captures
		a.log.Info("rebuilt", "charges", counts.Charges, "refunds", counts.Refunds, "captures",
			counts.Captures)
		return nil
	})
	if err != nil || !errors.Is(a.guard.Check(ctx), history.ErrHeld) {
		return counts, err
	}
	a.log.Info("claims are held: waiting until they may go on")
	stop := loop.Start(ctx, a.guard.Work)
	for err = a.guard.Held(); err != nil && ctx.Err() == nil; {
		err = a.guard.Wait(ctx)
	}
	stop()
	return counts, errors.Join(err, ctx.Err())
}

type recoveryJSON struct {
	BeganAt   string  `json:"began_at"`
	Reason    string  `json:"reason"`
	Since     *string `json:"since"` // null if it is not known yet
	Charges   int     `json:"charges"`
	Refunds   int     `json:"refunds"`
	Captures  int     `json:"captures"`
	LastError string  `json:"last_error,omitempty"`
	EndedAt   *string `json:"ended_at"` // null while claims are held
}

// recoveriesShown is how many recoveries are listed; older ones are of no interest.
const recoveriesShown = 5

func (a *app) recoveries(ctx context.Context) ([]recoveryJSON, error) {
	list, err := a.guard.Recoveries(ctx, recoveriesShown)
	shown := make([]recoveryJSON, 0, len(list))
	for _, r := range list {
		shown = append(shown, recoveryJSON{
			rfc3339(r.BeganAt), r.Reason, rfc3339Ptr(r.Since), r.Counts.Charges, r.Counts.Refunds,
			r.Counts.Captures, r.LastError, rfc3339Ptr(r.EndedAt),
		})
	}
	return shown, err
}

func printRecoveries(out io.Writer, list []recoveryJSON) error {
	for _, r := range list {
		ended := "claims are held"
		if r.EndedAt != nil {
			ended = "ended " + *r.EndedAt
		}
		if r.LastError != "" {
			ended += "; " + oneLine(r.LastError)
		}
		if _, err := fmt.Fprintf(out,
			"recovery: %s  %s; rebuilt %d charges, %d refunds, %d captures; %s\n", r.BeganAt,
			r.Reason, r.Charges, r.Refunds, r.Captures, ended); err != nil {
			return err
		}
	}
	return nil
}
