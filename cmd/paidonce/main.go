// Command paidonce is the payments API, its migrations, its recovery and its tools in one binary.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"paidonce/db"
)

// Exit codes. The help of the program lists them.
const (
	exitFailed   = 1 // it could not be done
	exitUsage    = 2 // wrong usage
	exitOperator = 3 // done, but something needs an operator
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	stdout, stderr = plainWriter{stdout}, plainWriter{stderr}
	// The first signal asks for an orderly end. Then the default action is restored, so that a
	// second one ends the process at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)

	root := newRootCommand()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	var usage usageError
	var unfinished needsOperator
	var list problemList
	switch {
	case err == nil:
		return 0
	case errors.As(err, &unfinished):
		fmt.Fprintln(stderr, "paidonce:", singleLine(err))
		return exitOperator
	case errors.As(err, &usage), strings.HasPrefix(err.Error(), "unknown command"):
		fmt.Fprintf(stderr, "paidonce: %s (see --help)\n", singleLine(err))
		return exitUsage
	case errors.As(err, &list):
		fmt.Fprintln(stderr, "paidonce:", err)
		return exitFailed
	default:
		said := singleLine(err)
		if advice := db.Advice(err); advice != "" {
			said += ": " + advice
		}
		fmt.Fprintln(stderr, "paidonce:", said)
		return exitFailed
	}
}

// singleLine returns the text of an error as one line, so that it stays whole in a log. Some
// libraries write several: pgx one for each address, cobra one for each suggestion.
func singleLine(err error) string {
	var said string
	for line := range strings.Lines(err.Error()) {
		switch line = strings.TrimSpace(line); {
		case line == "":
		case said == "" || strings.HasSuffix(said, ":") || strings.HasSuffix(said, "?"):
			said = strings.TrimSpace(said + " " + line)
		default:
			said += "; " + line
		}
	}
	return said
}

// usageError is an error in the command line.
type usageError struct{ error }

// problemList is an error of several problems, one a line.
type problemList struct{ error }

// needsOperator is a success that left something for an operator.
type needsOperator struct{ error }

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "paidonce",
		Short: "A payments API that charges once",
		Long: `Paidonce stands between your services and your payment provider and keeps one
promise: one idempotency key moves money at most once, and every caller of that key
learns the same answer.

Settings come from the environment; docs/settings.md lists them.
Exit codes: 0 done, 1 could not do it, 2 wrong usage, 3 done, but something needs an
operator.`,
		Example: `  paidonce dev                                    # everything on this machine, to try it
  paidonce migrate && paidonce serve              # the API
  paidonce apikeys create --account shop --json   # a key for a client
  paidonce reconcile                              # one pass over stuck operations, for cron`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.Version = version()
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(newDevCommand(), newServeCommand(), newMigrateCommand(), newReconcileCommand(),
		newSweepCommand(), newOpsCommand(), newInboxCommand(), newRelayCommand(),
		newEventsCommand(), newReceiptsCommand(), newAuditCommand(), newProviderCommand(),
		newAccountsCommand(), newAPIKeysCommand(), newChargesCommand(), newIntentsCommand(),
		newStripeSimCommand(), newCompletionCommand(), newManCommand())
	root.SetHelpCommand(newHelpCommand(root))
	strictArgs(root)
	return root
}

// newHelpCommand returns cobra's help command, except that an unknown command is wrong usage, as it
// is everywhere else.
func newHelpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND]",
		Short:   "Help about any command",
		Example: "  paidonce help charges create",
		RunE: func(_ *cobra.Command, args []string) error {
			about, rest, err := root.Find(args)
			switch {
			case err != nil:
				return usageError{err}
			case len(rest) > 0:
				return usageError{fmt.Errorf("unknown command %q for %q", rest[0],
					about.CommandPath())}
			}
			return about.Help()
		},
	}
}

// strictArgs turns wrong arguments into wrong usage, for every command.
func strictArgs(c *cobra.Command) {
	// It only groups commands. Cobra would print its help for an unknown one and report success.
	if !c.Runnable() && c.HasParent() {
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

// version returns the version and the commit that the program was built from, as far as the build
// has recorded them.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return versionOf(info)
}

func versionOf(info *debug.BuildInfo) string {
	revision, modified := "unknown", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			modified = ", modified"
		}
	}
	return fmt.Sprintf("%s (revision %s%s)", info.Main.Version, revision, modified)
}
