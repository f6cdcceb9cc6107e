package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"paidonce/db"
)

func newMigrateCommand() *cobra.Command {
	var o db.MigrateOptions
	up := func(cmd *cobra.Command, _ []string) error {
		if o.LockTimeout < time.Millisecond || o.MaxWait <= 0 {
			return usageError{errors.New("--lock-timeout and --patience must be longer than 0")}
		}
		cfg, err := loadConfig(needDatabase)
		if err != nil {
			return err
		}
		current := true
		o.Applied = func(name string) {
			current = false
			fmt.Fprintln(cmd.OutOrStdout(), "applied", name)
		}
		o.Waiting = func(text string) { fmt.Fprintln(cmd.ErrOrStderr(), text) }
		if err := db.Migrate(cmd.Context(), cfg.DatabaseURL, o); err != nil {
			return fmt.Errorf("migrate: %w", err)
		}
		if current {
			fmt.Fprintln(cmd.OutOrStdout(), "the schema is current")
		}
		return nil
	}
	c := &cobra.Command{
		Use:   "migrate",
		Short: "Bring the database's schema up to date (up), or show its version (status)",
		Long: `Applies the migrations that are embedded in this binary to DATABASE_URL. It is safe
when several instances start at once: one works, the others wait. It is also safe
while servers of the previous release run: if they hold a table, it is waited for in
short tries. It needs a direct connection, not one through a pooler in transaction
mode.`,
		Example: "  paidonce migrate\n  paidonce migrate status\n" +
			"  paidonce migrate --patience 1h      # during a long dump",
		RunE: up,
	}
	upCommand := &cobra.Command{
		Use: "up", Short: "Apply all pending migrations", Example: "  paidonce migrate up",
		RunE: up,
	}
	for _, flagged := range []*cobra.Command{c, upCommand} {
		flagged.Flags().DurationVar(&o.LockTimeout, "lock-timeout", db.LockTimeoutDefault,
			"how long a statement, and others queued behind it, wait for a table before it retries")
		flagged.Flags().DurationVar(&o.MaxWait, "patience", db.MaxWaitDefault,
			"how long a migration is retried while others hold a table")
	}
	c.AddCommand(upCommand, newMigrateStatusCommand())
	return c
}

func newMigrateStatusCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "status",
		Short:   "List the migrations and when each was applied",
		Example: "  paidonce migrate status",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := loadConfig(needDatabase)
			if err != nil {
				return err
			}
			states, newer, err := db.MigrationStatus(cmd.Context(), cfg.DatabaseURL)
			if err != nil {
				return fmt.Errorf("migrate status: %w", err)
			}
			out := cmd.OutOrStdout()
			for _, s := range states {
				when := "pending"
				if !s.AppliedAt.IsZero() {
					when = rfc3339(s.AppliedAt)
				}
				fmt.Fprintf(out, "%-20s  %s\n", when, s.Name)
			}
			if newer > 0 {
				fmt.Fprintf(out, "%-20s  the schema is of a newer release: version %d\n", "", newer)
			}
			return nil
		},
	}
}
