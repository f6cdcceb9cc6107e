// Command paidonce is the payments API, its migrations, its recovery and its tools in one binary.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// Exit codes, also in every command's help.
const (
	exitFailed = 1 // could not do it
	exitUsage  = 2 // asked for wrongly
	exitPerson = 3 // done, and something needs a person
)

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	// The first signal asks for an orderly end; after it the default action is back, so a second one ends the process at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)

	root := newRootCommand()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	var usage usageError
	var person needsPerson
	switch {
	case err == nil:
		return 0
	case errors.As(err, &person):
		fmt.Fprintln(os.Stderr, "paidonce:", err)
		return exitPerson
	case errors.As(err, &usage), strings.HasPrefix(err.Error(), "unknown command"):
		// On one line also when cobra suggests similar commands.
		fmt.Fprintf(os.Stderr, "paidonce: %s (see --help)\n", strings.Join(strings.Fields(err.Error()), " "))
		return exitUsage
	default:
		fmt.Fprintln(os.Stderr, "paidonce:", err)
		return exitFailed
	}
}

// usageError is a command line that says nothing we know.
type usageError struct{ error }

// needsPerson is a success that left something for a person.
type needsPerson struct{ error }

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "paidonce",
		Short: "A payments API that charges once",
		Long: `Paidonce stands between your services and your payment provider and keeps one promise:
one idempotency key moves money at most once, and every caller of that key learns the same answer.

Settings come from the environment; README.md lists them.
Exit codes: 0 done, 1 could not do it, 2 wrong usage, 3 done, but something needs a person.`,
		Example: `  paidonce dev                                    # everything on this machine, to try it
  paidonce migrate && paidonce serve              # the API
  paidonce apikeys create --account shop --json   # a key for a client
  paidonce reconcile                              # one pass over stuck operations, for cron`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.Version = version()
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(newDevCommand(), newServeCommand(), newMigrateCommand(), newReconcileCommand(), newSweepCommand(), newOpsCommand(), newInboxCommand(), newRelayCommand(), newEventsCommand(), newAuditCommand(), newAPIKeysCommand(), newChargesCommand(), newStripeSimCommand())
	root.CompletionOptions.HiddenDefaultCmd = true
	strictArgs(root)
	return root
}

// strictArgs makes wrong arguments wrong usage, for every command.
func strictArgs(c *cobra.Command) {
	if !c.Runnable() && c.HasParent() { // only holds others: cobra would show its help, and call an unknown one a success
		c.Args = cobra.ArbitraryArgs
		c.RunE = func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("unknown command %q for %q", args[0], c.CommandPath())}
			}
			return c.Help()
		}
	}
	check := c.Args
	if check == nil && c.Runnable() {
		check = cobra.NoArgs
	}
	if check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return usageError{err}
			}
			return nil
		}
	}
	for _, sub := range c.Commands() {
		strictArgs(sub)
	}
}

// version is the module's version or the commit that it was built from, as far as the build knows.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return info.Main.Version
}
