package charges

import (
	"context"
	"crypto/sha256"
	"slices"

	"paidonce/db"
	"paidonce/outbox"
	"paidonce/provider"
)

// Refunds of our charges that somebody made at the provider: in its dashboard, or with another
// program. They are among our refunds, so that these explain how much of a charge is refunded. Our
// tags tell whose a refund is: they are sent with each of our own, so one whose answer was lost is
// never taken for another's.

// foundRefund is what is new about such a refund, with the types of the events that say so.
type foundRefund struct {
	row   db.Refund
	isNew bool
	kinds []string
}

// foundRefunds compares the refunds of a charge at the provider with our rows. The charge, ours, is
// locked.
func (s *Store) foundRefunds(
	ctx context.Context, tx db.DBTX, charge db.Charge, there *provider.Charge,
	refunds []provider.Refund, installation string,
) (found []foundRefund, err error) {
	rows, err := s.queries.RefundsOfCharge(ctx, tx, charge.ID)
	if err != nil {
		return nil, err
	}
	known := make(map[string]db.Refund, len(rows))
	for _, row := range rows {
		known[*row.ProviderID] = row
	}
	refunds = withoutRelease(refunds, there, installation)
	for _, got := range slices.Backward(refunds) { // the oldest first
		row, ok := known[got.ID]
		switch {
		// its own operation, or its own event, settles it
		case got.Tags.Installation == installation:
		case ok && movesForward(row.Status, string(got.Status)):
			row.Status, row.FailureReason = string(got.Status), db.OrNil(got.FailureReason)
			found = append(found, foundRefund{row: row, kinds: changedKinds(row.Status)})
		case !ok && got.Amount > 0 && got.Currency == charge.Currency:
			found = append(found, newlyFound(charge, got))
		}
	}
	return found, nil
}

// withoutRelease leaves out what the provider lists as a refund and is none: the part of an
// authorisation that a smaller capture let go of. It was never taken, and is not in the charge's
// refunded amount either, so the list then has more than the charge. It came with the capture,
// before anything could be refunded.
func withoutRelease(
	refunds []provider.Refund, there *provider.Charge, installation string,
) []provider.Refund {
	released := there.Amount - there.AmountCaptured
	if !there.Captured { // whatever was let go of had not been taken
		return nil
	}
	listed := int64(0)
	for _, r := range refunds {
		if moneyMoves(string(r.Status)) {
			listed += r.Amount
		}
	}
	if released <= 0 || listed <= there.AmountRefunded {
		return refunds
	}
	for i, r := range slices.Backward(refunds) {
		if r.Amount == released && r.Tags.Installation != installation {
			return slices.Concat(refunds[:i], refunds[i+1:])
		}
	}
	return refunds
}

// newlyFound is the row of a refund that is not known yet. Its id is derived from the provider's,
// so that a database that has forgotten it learns it again under the same.
func newlyFound(charge db.Charge, got provider.Refund) foundRefund {
	sum := sha256.Sum256([]byte(got.ID))
	row := db.Refund{
		ID: db.DerivedID("re", got.Created, sum), AccountID: charge.AccountID, ChargeID: charge.ID,
		OperationID: got.ID, Status: string(got.Status), Amount: got.Amount,
		Currency: charge.Currency, FailureReason: db.OrNil(got.FailureReason),
		Metadata: []byte("{}"), Provider: charge.Provider, ProviderID: &got.ID,
		CreatedAt: got.Created, MadeBy: madeByProvider,
	}
	if slices.Contains(refundReasons, got.Reason) {
		row.Reason = &got.Reason
	}
	kind := outbox.RefundCreated
	if !moneyMoves(row.Status) {
		kind = outbox.RefundFailed
	}
	return foundRefund{row: row, isNew: true, kinds: []string{kind}}
}

// changedKinds are the types of the events of a refund whose status has become another.
func changedKinds(status string) []string {
	kinds := []string{outbox.RefundUpdated}
	if !moneyMoves(status) {
		kinds = append(kinds, outbox.RefundFailed)
	}
	return kinds
}

// writeFound writes what is new about refunds, with their events.
func (s *Store) writeFound(ctx context.Context, tx db.DBTX, o trigger, found []foundRefund) error {
	for _, f := range found {
		if err := s.writeFoundRow(ctx, tx, f); err != nil {
			return err
		}
		refund, err := refundFromRow(f.row)
		if err != nil {
			return db.Final(err)
		}
		for _, kind := range f.kinds {
			if err := s.addEvent(ctx, tx, o, kind, refund); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Store) writeFoundRow(ctx context.Context, tx db.DBTX, f foundRefund) error {
	row := f.row
	if !f.isNew {
		return s.queries.RefundChange(ctx, tx, db.RefundChangeParams{
			ID: row.ID, Status: row.Status, FailureReason: row.FailureReason,
		})
	}
	return s.queries.RefundFound(ctx, tx, db.RefundFoundParams{
		ID: row.ID, AccountID: row.AccountID, ChargeID: row.ChargeID, ProviderID: *row.ProviderID,
		Status: row.Status, Amount: row.Amount, Currency: row.Currency, Reason: row.Reason,
		FailureReason: row.FailureReason, CreatedAt: row.CreatedAt,
	})
}

// checkExplained returns an error while our refunds of a charge, whose row is locked, do not add up
// to what the provider has refunded, and its list was not read yet; or where the list is wanted
// whatever they add up to.
func (s *Store) checkExplained(
	ctx context.Context, tx db.DBTX, ev incoming, row db.Charge, there *provider.Charge,
) error {
	if ev.refundsRead {
		return nil
	}
	rows, err := s.queries.RefundsOfCharge(ctx, tx, row.ID)
	if err != nil {
		return err
	}
	sum := int64(0)
	for _, r := range rows {
		if moneyMoves(r.Status) {
			sum += r.Amount
		}
	}
	if !ev.wantsRefunds && (!there.Captured || sum == there.AmountRefunded) {
		return nil
	}
	return db.Final(&staleRead{row.Events})
}
