package main

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

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
		Long: `Drives every operation that nobody works on and whose time has come, once, and exits. Any number of passes may run at the same
time. Exit codes: 0 pass done, 1 could not run, 2 wrong usage, 3 pass done and operations are parked: they need a person.`,
		Example: "  * * * * *  paidonce reconcile          # in a crontab\n  paidonce reconcile --dry-run\n  paidonce reconcile --limit 500 --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 1 {
				return usageError{fmt.Errorf("--limit must be at least 1")}
			}
			return withOperations(cmd, needDatabase|needProvider, func(ctx context.Context, a *app) error {
				if err := a.mustRecognise(ctx, "reconcile"); err != nil {
					return err
				}
				if dryRun {
					return listDue(cmd, a.engine, limit, asJSON)
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

func reconcile(cmd *cobra.Command, a *app, limit int, asJSON bool) error {
	if err := a.guard.Check(cmd.Context()); err != nil {
		return fmt.Errorf("reconcile: %w", err)
	}
	counts, err := recovery.Pass(cmd.Context(), a.engine, limit, a.log)
	if err == nil {
		_, err = a.await(cmd.Context())
	}
	if asJSON {
		if err := writeJSON(cmd.OutOrStdout(), counts); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(cmd.OutOrStdout(), "driven %d, finished %d, waiting %d, parked %d (in all %d)\n",
			counts.Driven, counts.Finished, counts.Waiting, counts.Parked, counts.ParkedAll)
	}
	switch {
	case errors.Is(err, context.Canceled):
		return errors.New("reconcile: interrupted; what was begun has ended, the rest waits for the next pass")
	case err != nil:
		return fmt.Errorf("reconcile: %w", err)
	case counts.ParkedAll > 0:
		return needsPerson{fmt.Errorf("%d parked operations need a person", counts.ParkedAll)}
	}
	return nil
}

func listDue(cmd *cobra.Command, e *idemkeys.Engine, limit int, asJSON bool) error {
	due, err := e.ListDue(cmd.Context(), limit)
	if err != nil {
		return fmt.Errorf("reconcile --dry-run: %w", err)
	}
	if asJSON {
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
		rows := make([]row, 0, len(due))
		for _, d := range due {
			rows = append(rows, row{d.ID, d.Kind, d.ResourceID, string(d.Point), string(d.Next), d.Attempts, d.CreatedAt.Unix(), d.LastError})
		}
		return writeJSON(cmd.OutOrStdout(), rows)
	}
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "OPERATION\tKIND\tRESOURCE\tPOINT\tPLAN\tATTEMPTS\tCREATED\tLAST ERROR")
	for _, d := range due {
		writeRow(w, d.ID, d.Kind, d.ResourceID, d.Point, d.Next, d.Attempts, d.CreatedAt.UTC().Format(time.RFC3339), d.LastError)
	}
	return w.Flush()
}
