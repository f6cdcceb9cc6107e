package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"paidonce/db"
	"paidonce/idemkeys"
)

func newOpsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "ops",
		Short: "Operations that are stuck or parked: list, show, retry, resolve",
		Long: `An operation is the work that an idempotency key stands for. The reconciler ends
what it can, and parks for an operator what it must not decide. ID is an operation
(op_…) or a charge (ch_…).`,
		Example: `  paidonce ops list
  paidonce ops show op_01J…
  paidonce ops retry op_01J… --reason 'the provider is back'
  paidonce ops resolve op_01J… --as succeeded --provider-id ch_3M… --reason 'seen in the dashboard'`,
	}
	c.AddCommand(newOpsListCommand(), newOpsShowCommand(), newOpsRetryCommand(),
		newOpsResolveCommand())
	return c
}

// opsListMax is more than anybody reads; the metrics count the rest.
const opsListMax = 1000

func newOpsListCommand() *cobra.Command {
	var all, asJSON bool
	var limit int
	c := &cobra.Command{
		Use:     "list",
		Short:   "List parked and stuck operations, the oldest first",
		Example: "  paidonce ops list\n  paidonce ops list --all --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkListLimit(limit); err != nil {
				return err
			}
			states := []idemkeys.State{idemkeys.StateParked, idemkeys.StateStuck}
			if all {
				states = append(states, idemkeys.StateWaiting, idemkeys.StateRunning)
			}
			return withApp(cmd, needDatabase, func(ctx context.Context, a *app) error {
				list, err := a.engine.List(ctx, states, limit)
				if err != nil {
					return err
				}
				return printList(cmd.OutOrStdout(), asJSON, list, opToJSON,
					"OPERATION,STATE,KIND,RESOURCE,POINT,ATTEMPTS,CREATED,LAST ERROR",
					func(o idemkeys.OperationInfo) []any {
						return []any{
							o.ID, o.State, o.Kind, o.ResourceID, o.Point, o.Attempts,
							rfc3339(o.CreatedAt), o.LastError,
						}
					})
			})
		},
	}
	c.Flags().BoolVar(&all, "all", false,
		"also those that wait for their next run, or run now")
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	c.Flags().IntVar(&limit, "limit", 100, "list at most this many")
	return c
}

type opJSON struct {
	Operation string  `json:"operation"`
	Account   string  `json:"account"`
	State     string  `json:"state"`
	Kind      string  `json:"kind"`
	Resource  string  `json:"resource"`
	Point     string  `json:"recovery_point"`
	Attempts  int     `json:"attempts"`
	CreatedAt string  `json:"created_at"`
	NextRunAt *string `json:"next_run_at"`
	LastError string  `json:"last_error"`
}

func opToJSON(o idemkeys.OperationInfo) opJSON {
	return opJSON{
		Operation: o.ID, Account: o.AccountID, State: string(o.State), Kind: o.Kind,
		Resource: o.ResourceID, Point: string(o.Point),
		Attempts: o.Attempts, CreatedAt: rfc3339(o.CreatedAt), NextRunAt: rfc3339Ptr(o.NextRunAt),
		LastError: o.LastError,
	}
}

// operationID returns the operation of an id, which may be a charge's.
func operationID(ctx context.Context, a *app, id string) (string, error) {
	if strings.HasPrefix(id, "ch_") {
		return a.charges.Operation(ctx, id)
	}
	return id, nil
}

func newOpsShowCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "show ID",
		Short:   "Show an operation with its whole history",
		Example: "  paidonce ops show op_01J…\n  paidonce ops show ch_01J… --json",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withApp(cmd, needDatabase, func(ctx context.Context, a *app) error {
				id, err := operationID(ctx, a, args[0])
				if err != nil {
					return err
				}
				h, err := a.engine.Show(ctx, id)
				if err != nil {
					return err
				}
				reference, err := a.charges.Reference(ctx, id)
				if err != nil {
					return err
				}
				if asJSON {
					return writeJSON(cmd.OutOrStdout(), historyToJSON(h, reference))
				}
				return printHistory(cmd.OutOrStdout(), h, reference)
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

type historyJSON struct {
	opJSON
	Status         string     `json:"status"`
	Reference      *string    `json:"reference"` // what is paid for
	RequestID      string     `json:"request_id"`
	FirstAttemptAt *string    `json:"first_attempt_at"`
	ServerErrors   int        `json:"server_errors"`
	Misses         int        `json:"lookup_misses"`
	ParkedAt       *string    `json:"parked_at"`
	ResponseCode   int        `json:"response_code"`
	FinishedAt     *string    `json:"finished_at"`
	Plan           string     `json:"plan"`
	Log            []lineJSON `json:"log"`
}

type lineJSON struct {
	At        string  `json:"at"`
	Event     string  `json:"event"`
	Attempt   int     `json:"attempt"`
	Actor     string  `json:"actor"`
	BeganAt   *string `json:"began_at"`
	Detail    string  `json:"detail"`
	Reference string  `json:"reference"`
}

func historyToJSON(h idemkeys.History, reference string) historyJSON {
	j := historyJSON{
		opJSON: opToJSON(h.OperationInfo), Status: string(h.Status), RequestID: h.RequestID,
		Reference:      db.OrNil(reference),
		FirstAttemptAt: rfc3339Ptr(h.FirstAttemptAt),
		ServerErrors:   h.ServerErrors, Misses: h.Misses, ParkedAt: rfc3339Ptr(h.ParkedAt),
		ResponseCode: h.ResponseCode,
		FinishedAt:   rfc3339Ptr(h.FinishedAt), Plan: string(h.Next), Log: []lineJSON{},
	}
	switch {
	case h.Status == "":
		j.State = "swept" // only the log is left
	case j.State == "":
		j.State = "finished"
	}
	for _, l := range h.Log {
		j.Log = append(j.Log, lineJSON{
			rfc3339(l.At), l.Event, l.Attempt, l.Actor, rfc3339Ptr(l.BeganAt), l.Detail,
			l.Reference,
		})
	}
	return j
}

func printHistory(out io.Writer, h idemkeys.History, reference string) error {
	w := newTable(out)
	if h.Status == "" {
		writeRow(w, "operation", h.ID, "(its key is swept; this is its log)")
	} else {
		state := string(h.State)
		if state == "" {
			state = fmt.Sprintf("%s, answered %d at %s", h.Status, h.ResponseCode,
				rfc3339(*h.FinishedAt))
		}
		for _, line := range [][2]any{
			{"operation", h.ID}, {"kind", h.Kind}, {"resource", h.ResourceID},
			{"account", h.AccountID}, {"state", state}, {"recovery point", h.Point},
			{"claimed", rfc3339(h.CreatedAt) + " by request " + h.RequestID},
			{"attempts",
				fmt.Sprintf("%d (5xx %d, misses %d)", h.Attempts, h.ServerErrors, h.Misses)},
		} {
			writeRow(w, line[:]...)
		}
		if reference != "" {
			writeRow(w, "reference", reference)
		}
		for _, line := range []struct {
			name string
			at   *time.Time
		}{{"first attempt", h.FirstAttemptAt}, {"next run", h.NextRunAt}, {"parked", h.ParkedAt}} {
			if line.at != nil {
				writeRow(w, line.name, rfc3339(*line.at))
			}
		}
		if h.Next != "" {
			writeRow(w, "next driver will", h.Next)
		}
		if h.LastError != "" {
			writeRow(w, "last error", h.LastError)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if len(h.Log) == 0 {
		fmt.Fprintln(out, "\nNothing is in its log: it has had one attempt.")
		return nil
	}
	fmt.Fprintln(out)
	return printTable(out, "AT,EVENT,ATTEMPT,ACTOR,BEGAN,REFERENCE,DETAIL", h.Log,
		func(l idemkeys.LogLine) []any {
			return []any{
				rfc3339(l.At), l.Event, l.Attempt, l.Actor, timeOrDash(l.BeganAt), l.Reference,
				l.Detail,
			}
		})
}

// operatorName returns the name of whoever runs the command, for the log, as far as the system
// knows it.
func operatorName() string {
	if name := os.Getenv("SUDO_USER"); name != "" {
		return name
	}
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "unknown"
}

func newOpsRetryCommand() *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use:   "retry ID --reason TEXT",
		Short: "Make a parked operation due again, with its attempts counted anew",
		Long: `Makes a parked operation due again. If it was sent to another account at the
provider than the current one, this command drives it at once; STRIPE_API_KEY must
be a key of that account.`,
		Example: "  paidonce ops retry op_01J… --reason 'the credentials are right again'",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.TrimSpace(reason) == "" {
				return usageError{errors.New("--reason is required: it is kept in the " +
					"operation's log")}
			}
			return withApp(cmd, needDatabase, func(ctx context.Context, a *app) error {
				id, err := operationID(ctx, a, args[0])
				if err != nil {
					return err
				}
				if current, err := a.chargeStore.OfCurrentAccount(ctx, id); err != nil {
					return err
				} else if !current {
					return retryElsewhere(cmd, a, id, reason)
				}
				if err := a.engine.Retry(ctx, id, operatorName(), reason); err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s is due; the next pass of the reconciler, or "+
					"the client's retry, drives it\n", id)
				return nil
			})
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "why (required)")
	return c
}

// retryElsewhere drives an operation of another account than the current one now, with the key of
// that account: no server would do it.
func retryElsewhere(cmd *cobra.Command, a *app, id, reason string) error {
	if a.provider == nil {
		return errors.New("the operation was sent to another account at the provider than the " +
			"current one: STRIPE_API_KEY must be a key of that account")
	}
	ctx := cmd.Context()
	if err := a.useKeysAccount(ctx); err != nil {
		return err
	}
	if err := a.chargeStore.CheckAccount(ctx, id); err != nil {
		return err
	}
	result, err := a.engine.RetryNow(ctx, id, operatorName(), reason)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is finished; callers of its key get %d\n", id,
		result.Answer.Code)
	return err
}

func newOpsResolveCommand() *cobra.Command {
	var as, providerID, reason string
	c := &cobra.Command{
		Use:   "resolve ID --as succeeded|failed --reason TEXT",
		Short: "End an operation by an operator's decision, checked at the provider",
		Long: `Ends an operation that no driver can end. --as succeeded needs --provider-id: the
object must exist at the provider, with this operation's tags, amount, currency and
mode. --as failed is refused while the provider has a success of this operation. A
decision that cannot be checked is refused.`,
		Example: `  paidonce ops resolve op_01J… --as succeeded --provider-id ch_3M… --reason 'ticket 417'
  paidonce ops resolve ch_01J… --as failed --reason 'the provider confirms that nothing was charged'`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case as != "succeeded" && as != "failed":
				return usageError{errors.New("--as must be succeeded or failed")}
			case as == "succeeded" && providerID == "":
				return usageError{errors.New("--provider-id is required with --as succeeded")}
			case strings.TrimSpace(reason) == "":
				return usageError{errors.New("--reason is required: it is kept in the " +
					"operation's log")}
			}
			return withApp(cmd, needDatabase|needProvider, func(ctx context.Context, a *app) error {
				id, err := operationID(ctx, a, args[0])
				if err != nil {
					return err
				}
				if err := a.useKeysAccount(ctx); err != nil {
					return fmt.Errorf("not resolved: %w", err)
				}
				answer, err := a.engine.Resolve(ctx, id, idemkeys.Resolution{
					Succeeded: as == "succeeded", ProviderID: providerID, Reason: reason,
					By: operatorName(),
				})
				if err != nil {
					return fmt.Errorf("not resolved: %w", err)
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s is resolved; callers of its key get %d\n%s", id,
					answer.Code, plainJSON(answer.Body))
				return nil
			})
		},
	}
	c.Flags().StringVar(&as, "as", "", "succeeded or failed (required)")
	c.Flags().StringVar(&providerID, "provider-id", "", "the provider's id of the object")
	c.Flags().StringVar(&reason, "reason", "", "why (required)")
	return c
}
