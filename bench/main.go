// Command bench measures charges a second, in one run and on one PostgreSQL server, of these
// systems:
//
//   - F, the floor: pgbench with the two statements of a charge and nothing else;
//   - B, the bare server: echo, pgx, a provider call and the same two statements, one connection
//     a commit;
//   - F0 and B0: the same two on a lean schema, with what a charge needs to be safe and nothing
//     more;
//   - P, the product: `paidonce serve`, built from this repository.
//
// Read run.go first: it is the plan of a run. docs/performance.md says what the figures mean.
// Nothing of the product is imported but the package that starts PostgreSQL, so that B cannot
// become fast or slow with the product.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

const usage = `bench compares the product (P) with a bare server (B) and with PostgreSQL alone (F), and with both of
them on a schema that holds nothing but what a charge needs to be safe (B0, F0).

Usage:
  go run ./bench [flags]        a whole run: table on stdout, progress on stderr
  go run ./bench stub [flags]   the loopback provider alone
  go run ./bench bare [flags]   the bare server alone
  go run ./bench drive [flags]  the load driver alone
  go run ./bench post [flags]   posts of events alone

Examples:
  go run ./bench                                  everything the first two goals need, about ten minutes
  go run ./bench --short                          a smoke run, about 20 s; its figures mean nothing
  go run ./bench --systems F0,B0                  without the product
  go run ./bench --clients 32 --slow-clients ''   one cell of each system
  go run ./bench --replay --inflight 5000         and the replays, the retry storm, 5,000 charges in flight
  go run ./bench --clients '' --slow-clients '' --sweep 1000000   charges beside a sweep of a million keys
  go run ./bench --clients '' --slow-clients '' --backlog 20000   stuck operations and waiting events
  go run ./bench --clients '' --slow-clients '' --servers 2       two servers on one database
  go run ./bench --clients '' --slow-clients '' --references      charges without a reference, and with one each
  go run ./bench --clients '' --slow-clients '' --intents         payment intents beside charges
  go run ./bench --clients '' --slow-clients '' --before old      charges of an older paidonce, and of this one
  go run ./bench --json out.json                  all figures, of each round too

Exit status: 0 also when goals are missed; 1 when something went wrong: a wrong status, a charge too many or too few.

Flags:
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := dispatch(ctx, os.Args[1:])
	stop()
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(os.Stderr, "bench: interrupted")
		os.Exit(130)
	case errors.As(err, new(usageError)):
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// usageError is a mistake of whoever typed the command.
type usageError struct{ error }

// dispatch runs the named part; without a name, the whole benchmark. The parts are processes of
// their own, so that the CPU time of each can be told apart.
func dispatch(ctx context.Context, args []string) error {
	if len(args) > 0 {
		switch args[0] {
		case "stub":
			return stubMain(ctx, args[1:])
		case "bare":
			return bareMain(ctx, args[1:])
		case "drive":
			return driveMain(ctx, args[1:])
		case "post":
			return postMain(ctx, args[1:])
		}
	}
	cfg, err := parseConfig(args)
	if err != nil {
		return err
	}
	return run(ctx, cfg)
}

// parseFlags reports wrong usage as such and refuses what is left over.
func parseFlags(fs *flag.FlagSet, args []string) error {
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return usageError{err}
	}
	if fs.NArg() > 0 {
		return usageError{fmt.Errorf("unexpected argument %q", fs.Arg(0))}
	}
	return nil
}
