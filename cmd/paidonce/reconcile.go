package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"paidonce/idemkeys"
	"paidonce/recovery"
)

func newReconcileCommand() *cobra.Command {
	var limit int
	var dryRun, asJSON bool
	c := &cobra.Command{
		Use:   "reconcile",
		Short: "One pass over stuck operations, for cron",
		Long: `Drives each operation that is due and that nobody works on, once, and exits. Any
number of passes may run at the same time. Exit codes: 0 pass done, 1 could not run,
2 wrong usage, 3 pass done, but parked operations need an operator.`,
		Example: "  * * * * *  paidonce reconcile          # in a crontab\n" +
			"  paidonce reconcile --dry-run\n  paidonce reconcile --limit 500 --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 1 {
				return usageError{fmt.Errorf("--limit must be at least 1")}
			}
			return withApp(cmd, needDatabase|needProvider, func(ctx context.Context, a *app) error {
				if err := a.mustRecognise(ctx, "reconcile"); err != nil {
					return err
				}
				if dryRun {
					return listDue(cmd, a.engine.Desk, limit, asJSON)
				}
				return reconcile(cmd, a, limit, asJSON)
			})
		},
	}
	c.Flags().IntVar(&limit, "limit", recovery.LimitDefault, "drive at most this many operations")
	c.Flags().BoolVar(&dryRun, "dry-run", false, "list what would be driven; touch nothing")
	c.Flags().BoolVar(&asJSON, "json", false, "print the counts (or the list) as JSON")
	return c
}

// awaitMost is how many charges that wait for their payer are looked up in one pass, and how many
// charges and refunds whose money is under way: less than a minute of calls each.
const awaitMost = 100

// heldMost is how many authorisations that may have lapsed are asked for in one pass: few seconds
// of calls, and enough for ten thousand new ones a day with a pass a minute.
const heldMost = 20

// reconciler returns what continues operations whose owner died, charges that wait for their payer
// or may have lapsed, and money that is under way for days.
func (a *app) reconciler() recovery.Reconciler {
	await := func(ctx context.Context) error {
		if a.chargeStore.Held() != nil {
			return nil //nolint:nilerr // it was logged; the charges wait for the next pass
		}
		_, err := a.fromProvider.Await(ctx, awaitMost)
		_, under := a.fromProvider.AskUnderWay(ctx, awaitMost)
		_, held := a.fromProvider.AskHeld(ctx, heldMost)
		return errors.Join(err, under, held)
	}
	return recovery.Reconciler{
		Leases: a.engine.Leases, Runner: a.engine.Runner, Await: await, Log: a.log,
	}
}

func reconcile(cmd *cobra.Command, a *app, limit int, asJSON bool) error {
	if err := a.guard.Check(cmd.Context()); err != nil {
		return fmt.Errorf("reconcile: %w", err)
	}
	counts, err := a.reconciler().Pass(cmd.Context(), limit)
	if asJSON {
		if err := writeJSON(cmd.OutOrStdout(), counts); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(cmd.OutOrStdout(),
			"driven %d, finished %d, waiting %d, parked %d (in all %d)\n",
			counts.Driven, counts.Finished, counts.Waiting, counts.Parked, counts.ParkedAll)
	}
	switch {
	case errors.Is(err, context.Canceled):
		return errors.New("reconcile: interrupted; what was begun has ended, the rest waits for " +
			"the next pass")
	case err != nil:
		return fmt.Errorf("reconcile: %w", err)
	case counts.ParkedAll > 0:
		return needsOperator{fmt.Errorf("%d parked operations need an operator", counts.ParkedAll)}
	}
	return nil
}

func listDue(cmd *cobra.Command, d *idemkeys.Desk, limit int, asJSON bool) error {
	due, err := d.ListDue(cmd.Context(), limit)
	if err != nil {
		return fmt.Errorf("reconcile --dry-run: %w", err)
	}
	type row struct {
		Operation string `json:"operation"`
		Kind      string `json:"kind"`
		Resource  string `json:"resource"`
		Point     string `json:"recovery_point"`
		Plan      string `json:"plan"`
		Attempts  int    `json:"attempts"`
		Created   int64  `json:"created"`
		LastError string `json:"last_error"`
	}
	return printList(cmd.OutOrStdout(), asJSON, due, func(d idemkeys.History) row {
		return row{
			d.ID, d.Kind, d.ResourceID, string(d.Point), string(d.Next), d.Attempts,
			d.CreatedAt.Unix(), d.LastError,
		}
	}, "OPERATION,KIND,RESOURCE,POINT,PLAN,ATTEMPTS,CREATED,LAST ERROR",
		func(d idemkeys.History) []any {
			return []any{
				d.ID, d.Kind, d.ResourceID, d.Point, d.Next, d.Attempts, rfc3339(d.CreatedAt),
				d.LastError,
			}
		})
}
