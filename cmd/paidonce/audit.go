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
		Short: "Compare the provider's charges with ours, and report what differs",
		Long: `Walks through the provider's list of charges and ours side by side, from WHEN (a
duration such as 48h, a date, or a time in RFC 3339) to now, and reports every
difference. It only reads, in bounded memory. --adopt also settles operations that
are unsettled here, and moves charges and their refunds forward to what the provider
has, as its events do. What it writes is checked at the provider, and fenced as every
settlement is.

Kinds of difference; docs/operations.md says what to do about each:
  unknown_here    the provider has a charge of this installation that is not here
  unsettled_here  the provider has the charge; here its operation has no outcome yet
  missing_there   the charge is here; the provider does not have it
  made_twice      the provider has another charge of the same operation
  other_status    one side says that it succeeded, the other that it did not
  other_amount    amount, currency, captured or refunded amount differ
  other_refunds   the refunds that are here do not add up to what is refunded

Exit codes: 0 all agree, 1 could not run, 2 wrong usage, 3 something differs.`,
		Example: "  paidonce audit --since 48h\n  paidonce audit --since 2026-01-31 --json\n" +
			"  paidonce audit --since 72h --adopt     # after a restore",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withApp(cmd, needDatabase|needProvider, func(ctx context.Context, a *app) error {
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
				r := auditReport{
					out: cmd.OutOrStdout(), json: asJSON, app: a, adopt: adopt,
					reported: time.Now(),
				}
				return r.run(ctx, from, now)
			})
		},
	}
	c.Flags().StringVar(&since, "since", "",
		"the beginning: 48h, 2026-01-31, or 2026-01-31T12:00:00Z (required)")
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON object for each difference, and one "+
		"with the counts at the end")
	c.Flags().BoolVar(&adopt, "adopt", false,
		"settle what the provider has and we have not settled")
	return c
}

// auditSlack is how far beyond the present the audit lists. The two clocks are compared to a
// second, and time passes while it runs.
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
	return time.Time{}, errors.New("--since must be a duration such as 48h, a date such as " +
		"2026-01-31, or a time in RFC 3339, and in the past")
}

type auditReport struct {
	out   io.Writer
	json  bool
	app   *app
	adopt bool

	adopted  int
	reported time.Time
}

func (r *auditReport) run(ctx context.Context, from, now time.Time) error {
	skew, err := r.skew(ctx)
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	counts, err := charges.Audit(ctx, r.app.chargeStore, r.app.provider, charges.AuditConfig{
		Installation: r.app.installation, StaleAfter: r.app.cfg.StaleAfter, Skew: skew, Since: from,
		Until:  now.Add(auditSlack),
		Report: func(d charges.Difference) error { return r.report(ctx, d) }, Progress: r.progress,
	})
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
		_, err = fmt.Fprintf(r.out,
			"%d charges at the provider, %d here, %d differences, %d adopted\n", counts.There,
			counts.Here, counts.Differences, r.adopted)
		if counts.Elsewhere > 0 && err == nil {
			_, err = fmt.Fprintf(r.out, "%d charges of other accounts at the provider were left "+
				"out; `paidonce provider show` lists these\n", counts.Elsewhere)
		}
	}
	if err != nil {
		return err
	}
	if n := counts.Differences - r.adopted; n > 0 {
		return needsOperator{fmt.Errorf("%d differences need an operator", n)}
	}
	return nil
}

// skew returns how far the provider's clock is ahead of the database's, so that both sides are read
// up to the same moment. It is 0 if the provider sends no time.
func (r *auditReport) skew(ctx context.Context) (time.Duration, error) {
	_, _ = r.app.provider.Account(ctx) // any answer carries the time
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

func (r *auditReport) report(ctx context.Context, d charges.Difference) error {
	note := ""
	if adopt := r.adoption(d); r.adopt && adopt != nil {
		if err := adopt(ctx); err == nil {
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
	_, err := fmt.Fprintf(r.out,
		"%-14s  charge %s  operation %s  provider's %s  here: %s  there: %s  %s\n",
		d.Kind, orDash(d.Charge), orDash(d.Operation), orDash(d.ProviderID), orDash(d.Here),
		orDash(d.There), oneLine(note))
	return err
}

// adoption returns what adopts a difference of this kind; nil: nothing does.
func (r *auditReport) adoption(d charges.Difference) func(context.Context) error {
	switch d.Kind {
	case charges.UnsettledHere:
		return func(ctx context.Context) error {
			_, err := r.app.engine.Adopt(ctx, d.Operation, idemkeys.Resolution{
				Succeeded: true, ProviderID: d.ProviderID, Reason: "audit --adopt",
				By: operatorName(),
			})
			return err
		}
	case charges.OtherStatus, charges.OtherAmount, charges.OtherRefunds:
		return func(ctx context.Context) error {
			changed, err := r.app.fromProvider.Adopt(ctx, d.ProviderID)
			if err == nil && !changed {
				err = errors.New("it is not one that a charge can come to by itself")
			}
			return err
		}
	}
	return nil
}

// auditProgressEvery is how often a long audit reports how far it is: often enough to see that it
// moves, rarely enough for a log.
const auditProgressEvery = 5 * time.Second

func (r *auditReport) progress(at time.Time, c charges.AuditCounts) {
	if time.Since(r.reported) < auditProgressEvery {
		return
	}
	r.reported = time.Now()
	r.app.log.Info("auditing", slog.Time("up_to", at), slog.Int("provider_charges", c.There),
		slog.Int("charges", c.Here), slog.Int("differences", c.Differences))
}
