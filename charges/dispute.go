package charges

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"paidonce/db"
	"paidonce/outbox"
	"paidonce/provider"
)

// Disputes are the provider's: nobody makes one here. Each is a row of its own, and a charge is
// disputed while any of its disputes is open.

// Dispute is a dispute as clients see it, with Stripe's names and types, and provider, which is
// ours.
type Dispute struct {
	ID                 string          `json:"id"`
	Object             string          `json:"object"`
	Amount             int64           `json:"amount"` // minor units
	Charge             ChargeRef       `json:"charge"`
	Created            int64           `json:"created"` // unix seconds, the provider's
	Currency           string          `json:"currency"`
	EvidenceDetails    EvidenceDetails `json:"evidence_details"`
	IsChargeRefundable bool            `json:"is_charge_refundable"`
	Livemode           bool            `json:"livemode"`
	PaymentIntent      *string         `json:"payment_intent"`
	Provider           Provider        `json:"provider"`
	Reason             string          `json:"reason"`
	Status             string          `json:"status"`
}

// EvidenceDetails says until when evidence is accepted, and what there is.
type EvidenceDetails struct {
	DueBy           *int64 `json:"due_by"`
	HasEvidence     bool   `json:"has_evidence"`
	PastDue         bool   `json:"past_due"`
	SubmissionCount int64  `json:"submission_count"`
}

func disputeFromRow(row db.Dispute) Dispute {
	d := Dispute{
		ID: row.ID, Object: "dispute", Amount: row.Amount, Charge: ChargeRef{ID: row.ChargeID},
		Created: row.CreatedAt.Unix(), Currency: row.Currency, IsChargeRefundable: row.Refundable,
		EvidenceDetails: EvidenceDetails{
			HasEvidence: row.HasEvidence, PastDue: row.PastDue, SubmissionCount: row.Submissions,
		},
		Livemode: row.Livemode, PaymentIntent: row.IntentID,
		Provider: Provider{Name: row.Provider, ID: &row.ProviderID}, Reason: row.Reason,
		Status: row.Status,
	}
	if row.DueBy != nil {
		due := row.DueBy.Unix()
		d.EvidenceDetails.DueBy = &due
	}
	return d
}

// disputeEnds are the states of a dispute that is decided. A state that is not known here is open.
var disputeEnds = []string{"won", "lost", "warning_closed", "prevented", "charge_refunded"}

// disputeID returns our id of a dispute: derived, so that a database that has forgotten it gives it
// the same again, and ordered by time.
func disputeID(d provider.Dispute) string {
	var id ulid.ULID
	if ms := d.Created.UnixMilli(); ms > 0 {
		_ = id.SetTime(uint64(ms)) // positive; it ends long after the year 9999
	}
	sum := sha256.Sum256([]byte(d.ID))
	_ = id.SetEntropy(sum[:10])
	return "dp_" + id.String()
}

// disputeState is what is known of a dispute.
type disputeState struct {
	provider.Dispute
	// asOf is when it stood like this, in the provider's time; zero: that is not known.
	asOf time.Time
	// believed says that it was not read, since it may not be: it is the word of a signed event,
	// which may be late.
	believed bool
}

// disputeChange is how a dispute changes, and its charge with it.
type disputeChange struct {
	row    db.Dispute
	events []disputeEvent
}

type disputeEvent struct{ kind, cause string }

// planDispute compares a dispute with what is known of a charge, which is locked, and sets whether
// the charge is disputed. nil: it is older than what is known.
func (s *Store) planDispute(
	ctx context.Context, tx db.DBTX, charge *db.Charge, d disputeState,
) (*disputeChange, error) {
	known, err := s.queries.DisputesOfCharge(ctx, tx, charge.ID)
	if err != nil {
		return nil, err
	}
	c := &disputeChange{row: db.Dispute{
		ID: disputeID(d.Dispute), AccountID: charge.AccountID, ChargeID: charge.ID,
		Status: d.Status, IsOpen: !slices.Contains(disputeEnds, d.Status), Reason: d.Reason,
		Amount: d.Amount, Currency: d.Currency, Refundable: d.Refundable, DueBy: timeOrNil(d.DueBy),
		HasEvidence: d.HasEvidence, PastDue: d.PastDue, Submissions: d.Submissions,
		IntentID: db.OrNil(d.IntentID), Livemode: charge.Livemode, Provider: charge.Provider,
		ProviderID: d.ID, CreatedAt: d.Created, AsOf: timeOrNil(d.asOf),
	}}
	if d.Created.IsZero() {
		c.row.CreatedAt = charge.CreatedAt
	}
	disputed := c.row.IsOpen
	var was *db.Dispute
	for _, row := range known {
		if row.ProviderID == d.ID {
			was = &row
		} else if row.IsOpen {
			disputed = true
		}
	}
	if was != nil {
		if d.believed && isOlder(c.row, *was) {
			return nil, nil
		}
		c.keep(*was)
	}
	// A charge that is disputed, and of which no dispute is known, was disputed before disputes
	// were kept: that was told.
	c.plan(was, was == nil && charge.Disputed && len(known) == 0, charge.Events+1)
	charge.Disputed = disputed
	return c, nil
}

func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// isOlder reports whether the word of an event is from before what is known. Of the same second it
// may end a dispute, and not open it again.
func isOlder(now, was db.Dispute) bool {
	switch {
	case now.AsOf == nil || was.AsOf == nil:
		return now.IsOpen && !was.IsOpen
	case now.AsOf.Equal(*was.AsOf):
		return now.IsOpen && !was.IsOpen
	}
	return now.AsOf.Before(*was.AsOf)
}

// keep takes over what does not change.
func (c *disputeChange) keep(was db.Dispute) {
	c.row.ID, c.row.CreatedAt, c.row.ClosedAt = was.ID, was.CreatedAt, was.ClosedAt
	c.row.IntentID = was.IntentID
	if c.row.AsOf == nil || was.AsOf != nil && was.AsOf.After(*c.row.AsOf) {
		c.row.AsOf = was.AsOf
	}
}

// plan says which events tell of the change. next is the number of the charge's next event. That a
// dispute was opened or decided is told under an id that a database which has forgotten it gives it
// again.
func (c *disputeChange) plan(was *db.Dispute, toldBefore bool, next int32) {
	now, d := &c.row, c.row.ProviderID
	numbered := fmt.Sprintf("%s, event %d", d, next)
	switch {
	case was == nil && toldBefore && now.IsOpen:
		c.add(outbox.ChargeDisputeUpdated, numbered)
	case was == nil && !toldBefore:
		c.add(outbox.ChargeDisputeCreated, d)
	}
	switch {
	case now.IsOpen && (was == nil || same(*was, *now)), was != nil && same(*was, *now):
	case now.IsOpen, was != nil && was.Status == now.Status:
		c.add(outbox.ChargeDisputeUpdated, numbered)
	case now.ClosedAt == nil:
		c.add(outbox.ChargeDisputeClosed, d+" "+now.Status)
	default: // decided once more
		c.add(outbox.ChargeDisputeClosed, numbered)
	}
	if !now.IsOpen && now.ClosedAt == nil {
		at := time.Now() //tidy:clock shown to people, nothing is decided by it
		now.ClosedAt = &at
	}
}

func (c *disputeChange) add(kind, cause string) {
	c.events = append(c.events, disputeEvent{kind, cause})
}

// same reports whether clients are shown the same.
func same(a, b db.Dispute) bool {
	x, y := disputeFromRow(a), disputeFromRow(b)
	due := func(d *Dispute) (at int64) {
		if d.EvidenceDetails.DueBy != nil {
			at = *d.EvidenceDetails.DueBy
		}
		d.EvidenceDetails.DueBy, d.PaymentIntent, d.Provider.ID = nil, nil, nil
		return at
	}
	return due(&x) == due(&y) && x == y
}

// writeDispute writes a dispute, and an event for each change. The charge is locked, and written.
func (s *Store) writeDispute(
	ctx context.Context, tx db.DBTX, charge Charge, o trigger, c disputeChange,
) error {
	row := c.row
	err := s.queries.DisputeWrite(ctx, tx, db.DisputeWriteParams{
		ID: row.ID, AccountID: row.AccountID, ChargeID: row.ChargeID, Status: row.Status,
		IsOpen: row.IsOpen, Reason: row.Reason, Amount: row.Amount, Currency: row.Currency,
		Refundable: row.Refundable, DueBy: row.DueBy, HasEvidence: row.HasEvidence,
		PastDue: row.PastDue, Submissions: row.Submissions, IntentID: row.IntentID,
		Livemode: row.Livemode, ProviderID: row.ProviderID, CreatedAt: row.CreatedAt,
		ClosedAt: row.ClosedAt, AsOf: row.AsOf,
	})
	if err != nil {
		return err
	}
	dispute := disputeFromRow(row)
	charge.Dispute = &dispute
	for _, e := range c.events {
		o.cause = e.cause
		if err := s.addEvent(ctx, tx, o, e.kind, charge); err != nil {
			return err
		}
	}
	return nil
}

// DisputeFilter selects disputes of an account for a list; see [Filter].
type DisputeFilter struct {
	Limit         int // 1-100
	StartingAfter string
	EndingBefore  string
	CreatedFrom   *time.Time
	CreatedBefore *time.Time
	Charge        string
	WithCharge    bool // the whole of it
}

// DisputePage is a page of disputes, newest first.
type DisputePage struct {
	Disputes []Dispute
	HasMore  bool
}

// GetDispute returns a dispute as it is now, with its whole charge if that is wanted. Errors:
// [ErrNotFound], or the database's.
func (s *Service) GetDispute(
	ctx context.Context, accountID, id string, withCharge bool,
) (Dispute, error) {
	row, err := s.store.dispute(ctx, accountID, id)
	if err != nil {
		return Dispute{}, s.readError(err)
	}
	d := disputeFromRow(row)
	if withCharge {
		err = s.store.readCharges(ctx, accountID, &d.Charge)
	}
	return d, err
}

// ListDisputes returns a page of disputes, newest first. Errors: [ErrNotFound] for a cursor that
// names no dispute of the account, or the database's.
func (s *Service) ListDisputes(
	ctx context.Context, accountID string, f DisputeFilter,
) (DisputePage, error) {
	var rows []db.Dispute
	err := s.store.ownID(ctx, accountID, &f.Charge)
	if err == nil {
		rows, err = s.store.disputeRows(ctx, accountID, f)
	}
	if err != nil {
		return DisputePage{}, s.readError(err)
	}
	var page DisputePage
	page.Disputes, page.HasMore, err = pageOf(rows, f.Limit, f.EndingBefore != "",
		func(row db.Dispute) (Dispute, error) { return disputeFromRow(row), nil })
	if err == nil && f.WithCharge {
		err = readChargesOf(ctx, s.store, accountID, page.Disputes,
			func(d *Dispute) *ChargeRef { return &d.Charge })
	}
	return page, err
}

func (s *Store) dispute(ctx context.Context, accountID, id string) (db.Dispute, error) {
	row, found, err := db.One(
		ctx, s.pool, s.queries.DisputeGet, db.DisputeGetParams{AccountID: accountID, ID: id},
	)
	if err == nil && !found {
		row, found, err = db.One(
			ctx, s.pool, s.queries.DisputeGetAtProvider,
			db.DisputeGetAtProviderParams{AccountID: accountID, ProviderID: id},
		)
	}
	if err == nil && !found {
		err = ErrNotFound
	}
	return row, err
}

// disputeRows reads one row more than asked for, to know whether there are more.
func (s *Store) disputeRows(
	ctx context.Context, accountID string, f DisputeFilter,
) ([]db.Dispute, error) {
	ctx = db.OnlyReads(ctx)
	in := wholeTime
	if f.CreatedFrom != nil {
		in.above.at = *f.CreatedFrom
	}
	if f.CreatedBefore != nil {
		in.below.at = *f.CreatedBefore
	}
	if id := f.StartingAfter + f.EndingBefore; id != "" { // one of them at most
		cursor, err := s.dispute(ctx, accountID, id)
		switch at := (position{cursor.CreatedAt, cursor.ID}); {
		case err != nil:
			return nil, err
		case f.EndingBefore != "":
			in.startAbove(at)
		default:
			in.startBelow(at)
		}
	}
	p := db.DisputeListOfChargeParams{
		ChargeID: f.Charge, AccountID: accountID, BelowAt: in.below.at, BelowID: in.below.id,
		AboveAt: in.above.at, AboveID: in.above.id,
		MaxRows: int32(f.Limit + 1), //nolint:gosec // 101 at most
	}
	all := db.DisputeListParams{
		AccountID: accountID, BelowAt: p.BelowAt, BelowID: p.BelowID, AboveAt: p.AboveAt,
		AboveID: p.AboveID, MaxRows: p.MaxRows,
	}
	return db.Read0(ctx, s.pool, func(ctx context.Context, conn db.DBTX) ([]db.Dispute, error) {
		switch backwards := f.EndingBefore != ""; {
		case f.Charge == "" && backwards:
			return s.queries.DisputeListBefore(ctx, conn, db.DisputeListBeforeParams(all))
		case f.Charge == "":
			return s.queries.DisputeList(ctx, conn, all)
		case backwards:
			return s.queries.DisputeListOfChargeBefore(
				ctx, conn, db.DisputeListOfChargeBeforeParams(p),
			)
		}
		return s.queries.DisputeListOfCharge(ctx, conn, p)
	})
}
