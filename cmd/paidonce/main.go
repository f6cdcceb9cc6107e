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

// Exit codes, also in every command's help.
const (
	exitFailed = 1 // could not do it
	exitUsage  = 2 // asked for wrongly
	exitPerson = 3 // done, and something needs a person
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	stdout, stderr = shownWriter{stdout}, shownWriter{stderr}
	// The first signal asks for an orderly end; after it the default action is back, so a second one ends the process at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)

	root := newRootCommand()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	var usage usageError
	var person needsPerson
	var list problemList
	switch {
	case err == nil:
		return 0
	case errors.As(err, &person):
		fmt.Fprintln(stderr, "paidonce:", inOneLine(err))
		return exitPerson
	case errors.As(err, &usage), strings.HasPrefix(err.Error(), "unknown command"):
		fmt.Fprintf(stderr, "paidonce: %s (see --help)\n", inOneLine(err))
		return exitUsage
	case errors.As(err, &list):
		fmt.Fprintln(stderr, "paidonce:", err)
		return exitFailed
	default:
		said := inOneLine(err)
		if advice := db.Advice(err); advice != "" {
			said += ": " + advice
		}
		fmt.Fprintln(stderr, "paidonce:", said)
		return exitFailed
	}
}

// inOneLine is an error on one line, also where libraries make several (pgx tells of each address, cobra suggests commands): so it stays whole in a log.
func inOneLine(err error) string {
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

// usageError is a command line that says nothing we know.
type usageError struct{ error }

// problemList is an error of several problems, a line each.
type problemList struct{ error }

// needsPerson is a success that left something for a person.
type needsPerson struct{ error }

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "paidonce",
		Short: "A payments API that charges once",
		Long: `Paidonce stands between your services and your payment provider and keeps one promise:
one idempotency key moves money at most once, and every caller of that key learns the same answer.

Settings come from the environment; docs/settings.md lists them.
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
	root.AddCommand(newDevCommand(), newServeCommand(), newMigrateCommand(), newReconcileCommand(), newSweepCommand(), newOpsCommand(), newInboxCommand(), newRelayCommand(), newEventsCommand(), newReceiptsCommand(), newAuditCommand(), newProviderCommand(), newAPIKeysCommand(), newChargesCommand(), newStripeSimCommand())
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetHelpCommand(newHelpCommand(root))
	strictArgs(root)
	return root
}

// newHelpCommand is cobra's, but for what does not exist: that is wrong usage here as anywhere.
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
				return usageError{fmt.Errorf("unknown command %q for %q", rest[0], about.CommandPath())}
			}
			return about.Help()
		},
	}
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
