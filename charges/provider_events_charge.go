package charges

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"paidonce/db"
	"paidonce/inbox"
	"paidonce/outbox"
	"paidonce/provider"
)

// alreadyKnown reports whether an event about a charge says what we know already. Most do, and
// reading each charge once more would use up the provider's rate limit.
func (pe *ProviderEvents) alreadyKnown(ctx context.Context, ev incoming) bool {
	row, err := db.Read(ctx, pe.store.pool, pe.store.queries.ChargeByProviderID, &ev.ObjectID)
	if err != nil { // then the provider is asked
		return false
	}
	switch ev.Type {
	case "charge.succeeded", "charge.failed":
		return "charge."+row.Status == ev.Type
	case "charge.captured":
		return row.Captured
	case "charge.expired", "charge.refunded": // what was let go of changes no more
		return row.Release != nil && *row.Release != releasePending
	}
	return false
}

func (pe *ProviderEvents) charge(ctx context.Context, ev incoming) error {
	if pe.alreadyKnown(ctx, ev) {
		return pe.markOnly(ctx, ev, inbox.NothingNew)
	}
	got, err := pe.provider.GetCharge(ctx, ev.ObjectID)
	switch {
	case err != nil:
		return err
	case got == nil:
		return pe.markOnly(ctx, ev, inbox.Nothing("the provider has no such charge"))
	case got.Tags.Installation != pe.cfg.Installation:
		return pe.markOnly(ctx, ev, inbox.Foreign)
	}
	if err := pe.settleCharge(ctx, got); err != nil {
		return err
	}
	return pe.changeCharge(ctx, ev, got, nil)
}

// ownCharge reads the charge that something else of the provider is about, and lets its operation
// end. It returns nil, and the event is marked as foreign, when this installation has not made it.
func (pe *ProviderEvents) ownCharge(
	ctx context.Context, ev incoming, id string,
) (*provider.Charge, error) {
	got, err := pe.provider.GetCharge(ctx, id)
	switch {
	case err != nil:
		return nil, err
	case got == nil || got.Tags.Installation != pe.cfg.Installation:
		return nil, pe.markOnly(ctx, ev, inbox.Foreign)
	}
	return got, pe.settleCharge(ctx, got)
}

// settleCharge lets the operation of a charge that succeeded end. A failed or pending one says
// nothing final of an operation that may be tried again under its key.
func (pe *ProviderEvents) settleCharge(ctx context.Context, got *provider.Charge) error {
	if got.Status != provider.Succeeded {
		return nil
	}
	return pe.settle(ctx, got.Tags.Operation, providerObject{charge: got})
}

// changeCharge moves a settled charge forward to what the provider has: disputed, refunded
// elsewhere, let go of. dispute is nil unless the event is about one: the charge itself does not
// say whether any of its disputes is open.
func (pe *ProviderEvents) changeCharge(
	ctx context.Context, ev incoming, got *provider.Charge, dispute *disputeState,
) (err error) {
	how := ""
	if got.Released() {
		if how, err = howReleased(ctx, pe.provider, got, pe.cfg.Installation); err != nil {
			return err
		}
	}
	return pe.changeChargeTo(ctx, ev, got, how, dispute)
}

// changeChargeTo does it without asking. how is how the charge was let go of, if it was.
func (pe *ProviderEvents) changeChargeTo(
	ctx context.Context, ev incoming, got *provider.Charge, how string, dispute *disputeState,
) error {
	if err := pe.readRefunds(ctx, &ev, got.ID); err != nil {
		return err
	}
	return db.Tx(ctx, pe.store.pool, func(ctx context.Context, tx db.DBTX) error {
		row, found, err := db.Found(
			pe.store.queries.ChargeOfOperationLock(ctx, tx, got.Tags.Operation),
		)
		if err != nil {
			return err
		}
		if !found {
			_, err := ev.mark(ctx, tx, orphan(got.Tags.Operation))
			return err
		}
		was := row
		switch {
		case row.SettledAt == nil:
			return db.Final(fmt.Errorf("the operation %s has no outcome yet", row.OperationID))
		case row.Amount != got.Amount || row.Currency != got.Currency:
			return db.Final(
				fmt.Errorf(
					"the provider's charge %s is of %d %s, ours of %d %s", got.ID, got.Amount,
					got.Currency, row.Amount, row.Currency,
				),
			)
		case row.AmountRefundPending > 0 && got.AmountRefunded != row.AmountRefunded:
			return db.Final(
				fmt.Errorf(
					"refunds of the charge %s are under way; their outcome decides what is new",
					row.ID,
				),
			)
		case isEnding(row):
			return db.Final(errEnding)
		case row.OfIntent && got.Status == provider.Failed:
			return pe.attemptFailed(ctx, tx, ev, row, failureOf(got))
		// it waited for its payer
		case row.ProviderID == nil && row.Status == string(provider.Pending) && row.IntentID != nil:
			row.ProviderID = &got.ID
		case row.ProviderID == nil || *row.ProviderID != got.ID:
			_, err := ev.mark(ctx, tx, inbox.RecordsDiffer(
				"another charge of the same operation than the one we know; `paidonce audit` tells more",
			))
			return err
		}
		advanceCharge(&row, got, how)
		var change *disputeChange
		if dispute != nil {
			if change, err = pe.store.planDispute(ctx, tx, &row, *dispute); err != nil {
				return err
			}
		}
		if err := pe.store.checkExplained(ctx, tx, ev, was, got); err != nil {
			return err
		}
		if row.AmountRefunded != was.AmountRefunded || change != nil && len(change.events) > 0 {
			if err := ev.checkUnchanged(was); err != nil {
				return err
			}
		}
		refunds, err := pe.store.foundRefunds(
			ctx, tx, row, got, ev.refunds, pe.cfg.Installation,
		)
		if err != nil {
			return err
		}
		return pe.writeChange(ctx, tx, ev, was, row, change, refunds...)
	})
}

// readRefunds reads the refunds of a charge, after the charge itself, once something about it is
// new. A provider that has no such list tells nothing.
func (pe *ProviderEvents) readRefunds(ctx context.Context, ev *incoming, chargeID string) error {
	if ev.eventsBefore == nil || ev.refundsRead {
		return nil
	}
	refunds, err := pe.provider.RefundsOf(ctx, chargeID)
	if err != nil && provider.KindOf(err) != provider.Unsupported {
		return err
	}
	ev.refunds, ev.refundsRead = refunds, true
	return nil
}

// advanceCharge moves a charge to what the provider has; it never goes back. how is how it was let
// go of, if it was.
func advanceCharge(row *db.Charge, got *provider.Charge, how string) {
	if row.Status == string(provider.Pending) && got.Status != provider.Pending {
		row.Status = string(got.Status)
		row.FailureCode, row.FailureMessage = db.OrNil(got.FailureCode), db.OrNil(got.FailureMessage)
		if outcome, err := json.Marshal(outcomeOf(got.Outcome)); err == nil && got.Outcome != nil {
			row.Outcome = outcome
		}
		row.Captured = got.Captured && got.Status == provider.Succeeded
		if row.Captured {
			row.AmountCaptured = got.AmountCaptured
		}
	}
	// captured elsewhere
	held := row.Status == string(provider.Succeeded) && !row.Captured && row.Release == nil &&
		row.CaptureOperationID == nil
	switch {
	case held && got.Captured:
		row.Captured, row.AmountCaptured = true, got.AmountCaptured
	case held && how != "":
		row.Release = &how
	}
	// refunded elsewhere, or a refund that failed after all; no refund by us is under way
	if got.AmountRefunded <= row.AmountCaptured {
		row.AmountRefunded = got.AmountRefunded
	}
	if row.Status != string(provider.Pending) {
		row.NextAction = nil
	}
	if details, err := learn(row.Details, got.Details); err == nil {
		row.Details = details
	}
}

// writeChange writes what changed, with one event for each change.
func (pe *ProviderEvents) writeChange(
	ctx context.Context, tx db.DBTX, ev incoming, was, now db.Charge, dispute *disputeChange,
	found ...foundRefund,
) error {
	events := changesOf(was, now)
	var all []string
	for _, f := range found {
		all = append(all, f.kinds...)
	}
	all = append(all, events...)
	if dispute != nil {
		for _, e := range dispute.events {
			all = append(all, e.kind)
		}
	}
	o := ev.trigger(now.AccountID, now.Livemode)
	if ok, err := ev.mark(ctx, tx, changed(all)); err != nil || !ok {
		return err
	}
	err := pe.store.writeFound(ctx, tx, o, found)
	if err != nil || len(events) == 0 && dispute == nil {
		return err
	}
	if err := pe.store.writeChange(ctx, tx, o, was, now); err != nil || dispute == nil {
		return err
	}
	charge, err := fromRow(now)
	if err != nil {
		return db.Final(err)
	}
	return pe.store.writeDispute(ctx, tx, charge, o, *dispute)
}

// changed is the result of an event of the provider, by the types of our events that tell of it.
func changed(events []string) inbox.Result {
	if len(events) == 0 {
		return inbox.NothingNew
	}
	return inbox.Changed(events...)
}

// changesOf returns the types of events that tell of the changes of a charge, in the order in which
// these can have occurred: it is that of their sequence.
func changesOf(was, now db.Charge) (events []string) {
	let := func(how string) bool {
		return db.OrEmpty(now.Release) == how && db.OrEmpty(was.Release) != how
	}
	for _, e := range []struct {
		kind    string
		changed bool
	}{
		{settledEvents[provider.Status(now.Status)], now.Status != was.Status},
		{outbox.ChargeCaptured, now.Captured && !was.Captured && was.Status == now.Status},
		{outbox.ChargeCanceled, let(releaseCanceled)},
		{outbox.ChargeExpired, let(releaseExpired)},
		{outbox.ChargeRefunded, now.AmountRefunded > was.AmountRefunded || let(releaseRefunded)},
		// a refund failed after all
		{outbox.ChargeUpdated, now.AmountRefunded < was.AmountRefunded},
	} {
		if e.changed {
			events = append(events, e.kind)
		}
	}
	// another event shows as well what became known of the payment
	if len(events) == 0 && db.OrEmpty(now.Details) != db.OrEmpty(was.Details) {
		events = append(events, outbox.ChargeUpdated)
	}
	return events
}

// writeChange writes a charge, whose row is locked, as it is now, with the events that say what
// changed.
func (s *Store) writeChange(
	ctx context.Context, tx db.DBTX, o trigger, was, now db.Charge,
) error {
	if err := s.yieldReference(ctx, tx, was, now); err != nil {
		return err
	}
	err := s.queries.ChargeChange(ctx, tx, db.ChargeChangeParams{
		ID: now.ID, Status: now.Status, Captured: now.Captured, AmountCaptured: now.AmountCaptured,
		AmountRefunded: now.AmountRefunded, Disputed: now.Disputed, ProviderID: now.ProviderID,
		FailureCode: now.FailureCode, FailureMessage: now.FailureMessage, Outcome: now.Outcome,
		Release: now.Release, CaptureOperationID: now.CaptureOperationID,
		CaptureForgotten: now.CaptureForgotten, Details: now.Details,
	})
	if err != nil {
		return err
	}
	if err := s.addChargeEvents(ctx, tx, o, was, now); err != nil {
		return err
	}
	return s.followCharge(ctx, tx, o, was, now)
}

// trigger is the trigger of our events that follow from this event of the provider: one of each
// type.
func (ev incoming) trigger(account string, livemode bool) trigger {
	return trigger{account: account, cause: ev.ID, at: time.Now(), livemode: livemode, intent: ev.intent} //tidy:clock shown to people, nothing is decided by it
}
