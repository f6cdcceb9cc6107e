package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"paidonce/charges"
	"paidonce/idemkeys"
)

func newAuditCommand() *cobra.Command {
	var since string
	var asJSON, adopt bool
	c := &cobra.Command{
		Use:   "audit --since WHEN",
		Short: "Compare the provider's charges with ours, and tell what does not agree",
		Long: `Walks the provider's list of charges and ours side by side, from WHEN (a duration such as 48h, a date, or a time in RFC 3339) to now, and tells
every difference. It reads only, in bounded memory. --adopt also writes in what it finds unsettled here, checked at the provider and through the
same fence as any driver.

Kinds of difference; docs/operations.md says what to do about each:
  unknown_here    the provider has a charge of this installation that is not here
  unsettled_here  the provider has the charge; here its operation has no outcome yet
  missing_there   here it was made; the provider does not have it
  made_twice      the provider has another charge of the same operation
  other_status    one side says that it succeeded, the other that it did not
  other_amount    amount, currency, captured or refunded amount differ

Exit codes: 0 all agree, 1 could not run, 2 wrong usage, 3 something differs.`,
		Example: "  paidonce audit --since 48h\n  paidonce audit --since 2026-01-31 --json\n  paidonce audit --since 72h --adopt     # after a restore",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withOperations(cmd, needDatabase|needProvider, func(ctx context.Context, a *app) error {
				now, err := a.engine.Now(ctx)
				if err != nil {
					return err
				}
				from, err := parseSince(since, now)
				if err != nil {
					return usageError{err}
				}
				if err := a.mustRecognise(ctx, "audit"); err != nil {
					return err
				}
				r := auditReport{out: cmd.OutOrStdout(), json: asJSON, app: a, adopt: adopt, told: time.Now()}
				return r.run(ctx, from, now)
			})
		},
	}
	c.Flags().StringVar(&since, "since", "", "from when on: 48h, 2026-01-31, or 2026-01-31T12:00:00Z (required)")
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON object for each difference, and one with the counts at the end")
	c.Flags().BoolVar(&adopt, "adopt", false, "settle what the provider has and we have not settled")
	return c
}

// auditSlack is how much longer than until now is listed: the clocks are compared to a second, and go on meanwhile.
const auditSlack = 5 * time.Minute

func parseSince(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, errors.New("--since is required")
	}
	if d, err := time.ParseDuration(s); err == nil && d > 0 {
		return now.Add(-d), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil && t.Before(now) {
			return t, nil
		}
	}
	return time.Time{}, errors.New("--since must be a duration such as 48h, a date such as 2026-01-31, or a time in RFC 3339, and in the past")
}

type auditReport struct {
	out   io.Writer
	json  bool
	app   *app
	adopt bool

	adopted int
	told    time.Time
}

func (r *auditReport) run(ctx context.Context, from, now time.Time) error {
	skew, err := r.skew(ctx)
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	counts, err := charges.Audit(ctx, r.app.chargeStore, r.app.provider,
		charges.AuditConfig{Installation: r.app.installation, StaleAfter: r.app.cfg.StaleAfter, Skew: skew}, from, now.Add(auditSlack),
		func(d charges.Difference) error { return r.tell(ctx, d) }, r.progress)
	if err != nil {
		if errors.Is(err, context.Canceled) {
			return errors.New("audit: interrupted")
		}
		return fmt.Errorf("audit: %w", err)
	}
	if r.json {
		err = writeJSON(r.out, struct {
			charges.AuditCounts
			Adopted int `json:"adopted"`
		}{counts, r.adopted})
	} else {
		_, err = fmt.Fprintf(r.out, "%d charges at the provider, %d here, %d differences, %d adopted\n", counts.There, counts.Here, counts.Differences, r.adopted)
		if counts.Elsewhere > 0 && err == nil {
			_, err = fmt.Fprintf(r.out, "%d charges of other accounts at the provider were left out; `paidonce provider show` lists these\n", counts.Elsewhere)
		}
	}
	if err != nil {
		return err
	}
	if n := counts.Differences - r.adopted; n > 0 {
		return needsPerson{fmt.Errorf("%d differences need a person", n)}
	}
	return nil
}

// skew is how far the provider's clock is ahead of the database's, so that the same time is read on both sides. A provider that tells no time has ours.
func (r *auditReport) skew(ctx context.Context) (time.Duration, error) {
	_, _ = r.app.provider.Account(ctx) // any answer has the time
	now, err := r.app.engine.Now(ctx)
	if err != nil {
		return 0, err
	}
	theirs, ok := r.app.provider.Now()
	if !ok {
		return 0, nil
	}
	return theirs.Sub(now).Truncate(time.Second), nil
}

func (r *auditReport) tell(ctx context.Context, d charges.Difference) error {
	note := ""
	if r.adopt && d.Kind == charges.UnsettledHere {
		_, err := r.app.engine.Resolve(ctx, d.Operation, idemkeys.Resolution{Succeeded: true, ProviderID: d.ProviderID, Reason: "audit --adopt", By: whoAmI(), Adopt: true})
		if err == nil {
			r.adopted++
			note = "adopted"
		} else {
			note = "not adopted: " + err.Error()
		}
	}
	if r.json {
		return writeJSON(r.out, struct {
			charges.Difference
			Note string `json:"note,omitempty"`
		}{d, note})
	}
	_, err := fmt.Fprintf(r.out, "%-14s  charge %s  operation %s  provider's %s  here: %s  there: %s  %s\n",
		d.Kind, orDash(d.Charge), orDash(d.Operation), orDash(d.ProviderID), orDash(d.Here), orDash(d.There), oneLine(note))
	return err
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return oneLine(s)
}

// auditTell is how often a long audit says how far it has come.
const auditTell = 5 * time.Second

func (r *auditReport) progress(at time.Time, c charges.AuditCounts) {
	if time.Since(r.told) < auditTell {
		return
	}
	r.told = time.Now()
	r.app.log.Info("auditing", slog.Time("up_to", at), slog.Int("provider_charges", c.There), slog.Int("charges", c.Here), slog.Int("differences", c.Differences))
}
