package charges

import (
	"context"
	"errors"

	"paidonce/db"
	"paidonce/idemkeys"
	"paidonce/outbox"
	"paidonce/problem"
	"paidonce/provider"
)

// How a charge ended without its money being taken: the values of its column release. A charge that
// waited for its payer ends so as well: it is canceled, and failed.
const (
	releasePending  = "pending"  // an operation is about to bring it about
	releaseCanceled = "canceled" // by cancelling the charge, or its intent
	releaseRefunded = "refunded" // by refunding what was only authorised
	releaseExpired  = "expired"  // nobody captured it in time
)

// releasing reports whether an operation is about to let go of the charge, or to end it.
func releasing(c db.Charge) bool { return db.OrEmpty(c.Release) == releasePending }

// released reports whether the charge has ended without its money being taken.
func released(c db.Charge) bool { return c.Release != nil && !releasing(c) }

// isEnding reports whether an operation captures the charge, or lets go of it, and has no outcome
// yet.
func isEnding(c db.Charge) bool {
	return c.CaptureOperationID != nil && !c.Captured && !released(c)
}

// refundedOf returns how much of the charge is refunded. As at the provider, what was authorised
// and let go of counts.
func refundedOf(c db.Charge) int64 {
	if released(c) && c.Status == string(provider.Succeeded) {
		return c.Amount
	}
	return c.AmountRefunded
}

// ending is how a charge that was to be let go of has ended at the provider.
type ending struct {
	how    string           // it was let go of; empty: it is captured
	charge *provider.Charge // nil: it was never made, or is as ours
	refund *provider.Refund // what let go of it, if that is known
	others bool             // known not to be this operation's doing
}

// end moves one of our charges to its ending, by an operation.
func (e *ending) end(row *db.Charge, operationID string) {
	if released(*row) { // it was found to have been forgotten
		row.CaptureOperationID, row.CaptureForgotten = &operationID, false
		return
	}
	row.Release, row.CaptureOperationID = nil, nil
	switch {
	case e == nil:
		return
	case e.charge != nil:
		row.ProviderID = &e.charge.ID
		advanceCharge(row, e.charge, "")
	case row.Status == string(provider.Pending): // its payer never went through with it
		row.Status, row.NextAction = string(provider.Failed), nil
		row.FailureCode = db.OrNil(problem.IntentCanceled.String())
		row.FailureMessage = db.OrNil(problem.IntentCanceled.New().Message)
	}
	if e.how != "" {
		row.Release, row.CaptureOperationID = &e.how, &operationID
	}
}

// charged is the charge of row as its ending by an operation leaves it.
func (e *ending) charged(row db.Charge, operation string) (*Charge, error) {
	e.end(&row, operation)
	charge, err := fromRow(row)
	if err != nil {
		return nil, parked("the charge %s cannot be shown: %v", row.ID, err)
	}
	return &charge, nil
}

// howReleased asks the provider how a charge was let go of that it shows as released.
func howReleased(
	ctx context.Context, p provider.Provider, got *provider.Charge, installation string,
) (string, error) {
	if got.IntentID != "" {
		in, err := p.GetIntent(ctx, got.IntentID)
		switch {
		case err != nil && provider.KindOf(err) != provider.Unsupported:
			return "", err
		case in != nil && in.Lapsed:
			return releaseExpired, nil
		}
		return releaseCanceled, nil
	}
	refunds, err := p.RefundsOf(ctx, got.ID)
	if err != nil && provider.KindOf(err) != provider.Unsupported {
		return "", err
	}
	for _, r := range refunds {
		switch {
		case r.Reason == provider.ReasonLapsed:
			return releaseExpired, nil
		case r.Tags.Installation == installation: // those asked for as refunds are known here
			return releaseCanceled, nil
		}
	}
	return releaseRefunded, nil
}

// learnReleased has a charge learn how it was let go of, from a capture that was refused for that.
func (s *Store) learnReleased(
	ctx context.Context, tx db.DBTX, op *idemkeys.Operation, was db.Charge, how string,
) error {
	now := was
	now.CaptureOperationID, now.Release = nil, &how
	return s.writeChange(ctx, tx, triggerOf(op, was.Livemode), was, now)
}

// capturedThere is the ending of a charge that somebody else has captured, or nil. The provider
// would not refuse its refund: the money would go back, and nobody be told that it was taken.
func (s *cancelStep) capturedThere(ctx context.Context) (*ending, error) {
	got, err := s.provider.GetCharge(ctx, s.frozen.Request.ChargeID)
	var failed *provider.Error
	switch {
	case provider.KindOf(err) == provider.Unsupported:
		return nil, nil
	case errors.As(err, &failed) && !failed.Kind.NotExecuted():
		unsent := *failed
		unsent.Kind = provider.NotExecuted // of the refund, which was not sent
		return nil, &unsent
	case err != nil || got == nil || !got.Captured:
		return nil, err
	}
	return &ending{charge: got}, nil
}

// unknownThere is the error of a look-up for something that the provider has to have.
func unknownThere(noun, id string) error {
	return parked("the provider does not know the %s %s", noun, id)
}

// AskHeld asks the provider about up to most authorisations that may have lapsed and are due, and
// reports how many: for when no event comes. Errors: the database's; a charge that cannot be asked
// for is asked for again later.
func (pe *ProviderEvents) AskHeld(ctx context.Context, most int) (int, error) {
	rows, err := db.Write(ctx, pe.store.pool, pe.store.queries.ChargeTakeHeld, int32(most)) //nolint:gosec // a constant of the caller's
	if err != nil {
		return 0, err
	}
	accountOf := func(row db.ChargeTakeHeldRow) int16 { return row.ProviderAccount }
	return askEach(pe, rows, accountOf, func(row db.ChargeTakeHeldRow) error {
		_, err := pe.Adopt(ctx, row.ProviderID)
		return err
	})
}

// settleHold settles the refund of what is only authorised, with its event.
func (s *Store) settleHold(
	ctx context.Context, tx db.DBTX, o trigger, operationID string, r Refund,
) error {
	n, err := s.queries.RefundSettle(ctx, tx, db.RefundSettleParams{
		Status: r.Status, ProviderID: r.Provider.ID, FailureReason: r.FailureReason, ID: r.ID,
		OperationID: operationID,
	})
	switch {
	case err != nil:
		return err
	case n == 0:
		return db.Final(errors.New("the refund is settled already"))
	case moneyMoves(r.Status):
		return s.addEvent(ctx, tx, o, outbox.RefundCreated, r)
	}
	return s.addEvent(ctx, tx, o, outbox.RefundFailed, r)
}
