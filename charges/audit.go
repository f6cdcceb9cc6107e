package charges

import (
	"context"
	"fmt"
	"time"

	"paidonce/db"
	"paidonce/provider"
)

// Difference is one difference between the provider's records and ours.
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
	// the provider has a charge of this installation that we do not know
	UnknownHere = "unknown_here"
	// the provider has the charge; our operation has no outcome yet
	UnsettledHere = "unsettled_here"
	MissingThere  = "missing_there" // we have it as made; the provider has no such charge
	MadeTwice     = "made_twice"    // the provider has another charge of the same operation
	OtherStatus   = "other_status"
	OtherAmount   = "other_amount" // amount, captured or refunded amount, or currency
	// the refunds that are here do not add up to what the provider has refunded
	OtherRefunds = "other_refunds"
)

// AuditCounts is how far an audit has come.
type AuditCounts struct {
	// charges of this installation at the provider
	There int `json:"provider_charges"`
	Here  int `json:"charges"` // ours that a provider has
	// ours, and of another account of the provider: left out
	Elsewhere   int `json:"charges_of_other_accounts"`
	Differences int `json:"differences"`
}

const (
	// The audit goes through time in steps, and remembers what it saw of two of them: memory is
	// bounded by what an hour brings.
	auditStep = time.Hour
	// Rows and ids are compared by the page.
	auditPage = 500
)

// AuditConfig is what an audit compares, and where it reports differences.
type AuditConfig struct {
	Installation string        // only charges that carry its tag are ours
	StaleAfter   time.Duration // when an operation's owner is presumed gone
	Skew         time.Duration // how far the provider's clock is ahead of the database's
	Since, Until time.Time     // the charges made from then to then, by the database's clock

	// is given each difference; its error ends the audit
	Report   func(Difference) error
	Progress func(upTo time.Time, c AuditCounts) // is called now and then
}

// auditor walks the provider's list and ours side by side.
type auditor struct {
	AuditConfig
	store        *Store
	provider     provider.Provider
	counts       AuditCounts
	seen, before map[string]struct{} // provider ids of this step and of the one before
	cursorAt     time.Time
	cursorID     string
}

// Audit compares charges with the provider's. It reads only. Operations that somebody works on at
// this moment are left out. Errors: the provider's, the database's, or Report's.
func Audit(
	ctx context.Context, s *Store, p provider.Provider, cfg AuditConfig,
) (AuditCounts, error) {
	a := auditor{
		AuditConfig: cfg, store: s, provider: p, cursorAt: cfg.Since, before: map[string]struct{}{},
	}
	for from := cfg.Since; from.Before(cfg.Until); from = from.Add(auditStep) {
		to := from.Add(auditStep)
		if to.After(cfg.Until) {
			to = cfg.Until
		}
		if err := a.step(ctx, from, to); err != nil {
			return a.counts, err
		}
	}
	err := a.ours(ctx, cfg.Until)
	return a.counts, err
}

// step compares what the provider made between from and to, in our time, then our charges of the
// step before. The provider makes a charge in the step of its claim or in the next one; a later one
// is read by its id.
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
	a.Progress(to, a.counts)
	return nil
}

func (a *auditor) differ(d Difference) error {
	a.counts.Differences++
	return a.Report(d)
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
	rows, err := db.Read(
		ctx, a.store.pool, a.store.queries.ChargesOfOperations,
		db.ChargesOfOperationsParams{StaleAfter: a.StaleAfter, OperationIds: ids},
	)
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
	d := Difference{
		Operation: c.Tags.Operation, ProviderID: c.ID,
		There: fmt.Sprintf("%s %d %s", c.Status, c.Amount, c.Currency),
	}
	known, ok := ours[c.Tags.Operation]
	if !ok {
		d.Kind = UnknownHere
		return d
	}
	row := known.Charge
	d.Charge, d.Here = row.ID, fmt.Sprintf("%s %d %s", row.Status, row.Amount, row.Currency)
	switch {
	case row.OfIntent && c.Status == provider.Failed:
		return Difference{} // a declined attempt, which is a charge of its own or not learnt yet
	case row.ProviderID == nil && row.Status == string(provider.Pending) && known.Running:
		return Difference{}
	case row.ProviderID == nil && row.Status == string(provider.Pending) && row.SettledAt != nil:
		if c.Status != provider.Succeeded { // it waits for its payer, or its money is under way
			return Difference{}
		}
		d.Kind = OtherStatus
	case row.ProviderID == nil && row.Status == string(provider.Pending):
		d.Kind = UnsettledHere
	case row.ProviderID == nil && c.Status == provider.Failed:
		// The provider recorded a decline without naming the charge in its answer: no money moved
		// on either side.
		return Difference{}
	case row.ProviderID == nil:
		d.Kind = OtherStatus
	case *row.ProviderID != c.ID:
		d.Kind = MadeTwice
	case row.Status != string(c.Status):
		d.Kind = OtherStatus
	case row.Amount == c.Amount && row.Currency == c.Currency && c.Status == provider.Pending:
		return Difference{} // nothing is captured here as long as it is under way
	case row.Amount != c.Amount || row.Currency != c.Currency ||
		row.AmountCaptured != c.AmountCaptured || refundedOf(row) != c.AmountRefunded:
		d.Kind = OtherAmount
		d.Here += fmt.Sprintf(" (captured %d, refunded %d)", row.AmountCaptured, refundedOf(row))
		d.There += fmt.Sprintf(" (captured %d, refunded %d)", c.AmountCaptured, c.AmountRefunded)
	case c.Captured && known.RefundsSum != c.AmountRefunded:
		d.Kind = OtherRefunds
		d.Here += fmt.Sprintf(" (refunds of %d)", known.RefundsSum)
		d.There += fmt.Sprintf(" (refunded %d)", c.AmountRefunded)
	default:
		return Difference{}
	}
	return d
}

// ours goes on through our charges up to before, and reads each charge that the provider did not
// list.
func (a *auditor) ours(ctx context.Context, before time.Time) error {
	for {
		rows, err := db.Read(ctx, a.store.pool, a.store.queries.ChargesCreated, db.ChargesCreatedParams{
			Before: before, AfterAt: a.cursorAt, AfterID: a.cursorID, MaxRows: auditPage,
		})
		if err != nil {
			return err
		}
		for _, row := range rows {
			a.cursorAt, a.cursorID = row.CreatedAt, row.ID
			if !a.store.own.is(row.ProviderAccount) {
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
				if err := a.differ(
					Difference{
						Kind: MissingThere, Charge: row.ID, Operation: row.OperationID,
						ProviderID: row.ProviderID, Here: row.Status,
					},
				); err != nil {
					return err
				}
			}
		}
		if len(rows) < auditPage {
			return nil
		}
	}
}
