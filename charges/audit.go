package charges

import (
	"context"
	"fmt"
	"time"

	"paidonce/db"
	"paidonce/provider"
)

// Difference is one thing in which the provider's books and ours do not agree.
type Difference struct {
	Kind       string `json:"kind"` // one of the constants below
	Charge     string `json:"charge,omitempty"`
	Operation  string `json:"operation,omitempty"`
	ProviderID string `json:"provider_id,omitempty"`
	Here       string `json:"here,omitempty"`
	There      string `json:"there,omitempty"`
}

// Kinds of difference.
const (
	UnknownHere   = "unknown_here"   // the provider has a charge of this installation that we do not know
	UnsettledHere = "unsettled_here" // the provider has the charge; our operation has no outcome yet
	MissingThere  = "missing_there"  // we say that it was made; the provider has no such charge
	MadeTwice     = "made_twice"     // the provider has another charge of the same operation
	OtherStatus   = "other_status"
	OtherAmount   = "other_amount" // amount, captured or refunded amount, or currency
)

// AuditCounts is how far an audit has come.
type AuditCounts struct {
	There       int `json:"provider_charges"`          // charges of this installation at the provider
	Here        int `json:"charges"`                   // ours that a provider has
	Elsewhere   int `json:"charges_of_other_accounts"` // ours, and of another account of the provider: left out
	Differences int `json:"differences"`
}

const (
	// The audit goes through time in steps, and remembers what it saw of two of them: memory is bounded by what an hour brings.
	auditStep = time.Hour
	// Rows and ids are compared by the page.
	auditPage = 500
)

// AuditConfig is what an audit needs to know.
type AuditConfig struct {
	Installation string        // only charges that carry its tag are ours
	StaleAfter   time.Duration // when an operation's owner is presumed gone
	Skew         time.Duration // how far the provider's clock is ahead of the database's
}

// auditor walks the provider's list and ours side by side.
type auditor struct {
	AuditConfig
	store        *Store
	provider     provider.Provider
	tell         func(Difference) error
	progress     func(at time.Time, c AuditCounts)
	counts       AuditCounts
	seen, before map[string]struct{} // provider ids of this step and of the one before
	cursorAt     time.Time
	cursorID     string
}

// Audit compares all charges from since to until, by the database's clock, with the provider's, and hands each difference to tell. It reads only. Operations that somebody
// works on at this moment are left out. Errors: the provider's, the database's, or tell's.
func Audit(ctx context.Context, s *Store, p provider.Provider, cfg AuditConfig, since, until time.Time,
	tell func(Difference) error, progress func(at time.Time, c AuditCounts),
) (AuditCounts, error) {
	a := auditor{AuditConfig: cfg, store: s, provider: p, tell: tell, progress: progress, cursorAt: since, before: map[string]struct{}{}}
	for from := since; from.Before(until); from = from.Add(auditStep) {
		to := from.Add(auditStep)
		if to.After(until) {
			to = until
		}
		if err := a.step(ctx, from, to); err != nil {
			return a.counts, err
		}
	}
	err := a.ours(ctx, until)
	return a.counts, err
}

// step compares what the provider made between from and to, which is our time, then ours of the step before: a charge is made at the provider in the
// step in which we claimed it, or in the next; one that came later still is asked for by itself.
func (a *auditor) step(ctx context.Context, from, to time.Time) error {
	a.seen = map[string]struct{}{}
	page := make([]provider.Charge, 0, auditPage)
	err := a.provider.ListCharges(ctx, from.Add(a.Skew), to.Add(a.Skew), func(c provider.Charge) error {
		if c.Tags.Installation != a.Installation {
			return nil
		}
		a.seen[c.ID] = struct{}{}
		if page = append(page, c); len(page) < auditPage {
			return nil
		}
		defer func() { page = page[:0] }()
		return a.theirs(ctx, page)
	})
	if err != nil {
		return fmt.Errorf("the provider's list: %w", err)
	}
	if err := a.theirs(ctx, page); err != nil {
		return err
	}
	if err := a.ours(ctx, from); err != nil {
		return err
	}
	a.before = a.seen
	a.progress(to, a.counts)
	return nil
}

func (a *auditor) differ(d Difference) error {
	a.counts.Differences++
	return a.tell(d)
}

// theirs compares charges of the provider with ours.
func (a *auditor) theirs(ctx context.Context, page []provider.Charge) error {
	if len(page) == 0 {
		return nil
	}
	ids := make([]string, len(page))
	for i, c := range page {
		ids[i] = c.Tags.Operation
	}
	var rows []db.ChargesOfOperationsRow
	err := db.Retry(ctx, func(ctx context.Context) (err error) {
		rows, err = a.store.queries.ChargesOfOperations(ctx, a.store.pool, db.ChargesOfOperationsParams{StaleAfter: a.StaleAfter, OperationIds: ids})
		return err
	})
	if err != nil {
		return err
	}
	ours := make(map[string]db.ChargesOfOperationsRow, len(rows))
	for _, row := range rows {
		ours[row.Charge.OperationID] = row
	}
	for _, c := range page {
		a.counts.There++
		if d := compare(c, ours); d.Kind != "" {
			if err := a.differ(d); err != nil {
				return err
			}
		}
	}
	return nil
}

func compare(c provider.Charge, ours map[string]db.ChargesOfOperationsRow) Difference {
	d := Difference{Operation: c.Tags.Operation, ProviderID: c.ID, There: fmt.Sprintf("%s %d %s", c.Status, c.Amount, c.Currency)}
	known, ok := ours[c.Tags.Operation]
	if !ok {
		d.Kind = UnknownHere
		return d
	}
	row := known.Charge
	d.Charge, d.Here = row.ID, fmt.Sprintf("%s %d %s", row.Status, row.Amount, row.Currency)
	switch {
	case row.ProviderID == nil && row.Status == string(provider.Pending) && known.Running:
		return Difference{}
	case row.ProviderID == nil && row.Status == string(provider.Pending):
		d.Kind = UnsettledHere
	case row.ProviderID == nil && c.Status == provider.Failed:
		// A decline that the provider recorded without naming it in its answer: no money on either side.
		return Difference{}
	case row.ProviderID == nil:
		d.Kind = OtherStatus
	case *row.ProviderID != c.ID:
		d.Kind = MadeTwice
	case row.Status != string(c.Status):
		d.Kind = OtherStatus
	case row.Amount != c.Amount || row.Currency != c.Currency || row.AmountCaptured != c.AmountCaptured || row.AmountRefunded != c.AmountRefunded:
		d.Kind = OtherAmount
		d.Here += fmt.Sprintf(" (captured %d, refunded %d)", row.AmountCaptured, row.AmountRefunded)
		d.There += fmt.Sprintf(" (captured %d, refunded %d)", c.AmountCaptured, c.AmountRefunded)
	default:
		return Difference{}
	}
	return d
}

// ours goes on through our charges up to before, and asks the provider for each that it did not list.
func (a *auditor) ours(ctx context.Context, before time.Time) error {
	for {
		var rows []db.ChargesCreatedRow
		err := db.Retry(ctx, func(ctx context.Context) (err error) {
			rows, err = a.store.queries.ChargesCreated(ctx, a.store.pool, db.ChargesCreatedParams{
				Before: before, AfterAt: a.cursorAt, AfterID: a.cursorID, Most: auditPage,
			})
			return err
		})
		if err != nil {
			return err
		}
		for _, row := range rows {
			a.cursorAt, a.cursorID = row.CreatedAt, row.ID
			if !a.store.own.mine(row.ProviderAccount) {
				a.counts.Elsewhere++
				continue
			}
			a.counts.Here++
			_, now := a.seen[row.ProviderID]
			_, earlier := a.before[row.ProviderID]
			if now || earlier {
				continue
			}
			got, err := a.provider.GetCharge(ctx, row.ProviderID)
			if err != nil {
				return fmt.Errorf("the provider's charge %s: %w", row.ProviderID, err)
			}
			if got == nil {
				if err := a.differ(Difference{Kind: MissingThere, Charge: row.ID, Operation: row.OperationID, ProviderID: row.ProviderID, Here: row.Status}); err != nil {
					return err
				}
			}
		}
		if len(rows) < auditPage {
			return nil
		}
	}
}
