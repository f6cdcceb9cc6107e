package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"paidonce/db"
)

func newMigrateCommand() *cobra.Command {
	up := func(cmd *cobra.Command, _ []string) error {
		cfg, err := loadConfig(needDatabase)
		if err != nil {
			return err
		}
		applied, err := db.Migrate(cmd.Context(), cfg.DatabaseURL)
		for _, name := range applied {
			fmt.Fprintln(cmd.OutOrStdout(), "applied", name)
		}
		if err != nil {
			return fmt.Errorf("migrate: %w", err)
		}
		if len(applied) == 0 {
			fmt.Fprintln(cmd.OutOrStdout(), "the schema is current")
		}
		return nil
	}
	c := &cobra.Command{
		Use:   "migrate",
		Short: "Bring the database's schema up to date (up), or show where it stands (status)",
		Long: `Applies the migrations that are embedded in this binary to DATABASE_URL. Safe when several instances
start at once: one works, the others wait. Needs a direct connection, not one through a pooler in transaction mode.`,
		Example: "  paidonce migrate\n  paidonce migrate status",
		RunE:    up,
	}
	c.AddCommand(
		&cobra.Command{Use: "up", Short: "Apply all pending migrations", Example: "  paidonce migrate up", RunE: up},
		&cobra.Command{Use: "status", Short: "List the migrations and when each was applied", Example: "  paidonce migrate status",
			RunE: func(cmd *cobra.Command, _ []string) error {
				cfg, err := loadConfig(needDatabase)
				if err != nil {
					return err
				}
				states, err := db.MigrationStatus(cmd.Context(), cfg.DatabaseURL)
				if err != nil {
					return fmt.Errorf("migrate status: %w", err)
				}
				for _, s := range states {
					when := "pending"
					if !s.AppliedAt.IsZero() {
						when = s.AppliedAt.UTC().Format(time.RFC3339)
					}
					fmt.Fprintf(cmd.OutOrStdout(), "%-20s  %s\n", when, s.Name)
				}
				return nil
			}},
	)
	return c
}
