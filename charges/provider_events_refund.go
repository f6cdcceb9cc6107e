package charges

import (
	"context"
	"errors"

	"paidonce/db"
	"paidonce/inbox"
	"paidonce/outbox"
	"paidonce/provider"
)

func (pe *ProviderEvents) refund(ctx context.Context, ev incoming) error {
	got, err := pe.provider.GetRefund(ctx, ev.ObjectID)
	switch {
	case err != nil:
		return err
	case got == nil:
		return pe.markOnly(ctx, ev, inbox.Nothing("the provider has no such refund"))
	case got.ChargeID == "" && got.Tags.Installation != pe.cfg.Installation:
		return pe.markOnly(ctx, ev, inbox.Foreign) // of a customer's balance, say
	}
	return pe.changeRefunded(ctx, ev, got)
}

// changeRefunded moves a charge and its refund forward to what the provider has.
func (pe *ProviderEvents) changeRefunded(
	ctx context.Context, ev incoming, got *provider.Refund,
) error {
	if got.Tags.Installation == pe.cfg.Installation {
		if moneyMoves(string(got.Status)) {
			if err := pe.settle(ctx, got.Tags.Operation, providerObject{refund: got}); err != nil {
				return err
			}
		}
		// A refund that fails after all gives its amount back; the charge itself says how much is
		// refunded now.
		charge, err := pe.provider.GetCharge(ctx, got.ChargeID)
		if err != nil {
			return err
		}
		if charge == nil {
			return pe.markOnly(ctx, ev, inbox.Nothing("the provider has no charge of this refund"))
		}
		return pe.changeRefund(ctx, ev, got, charge)
	}
	// Not made by us; it may still be a refund of one of our charges. What is new about it is seen
	// in the list of the charge's refunds.
	ev.wantsRefunds = true
	charge, err := pe.ownCharge(ctx, ev, got.ChargeID)
	if err != nil || charge == nil {
		return err
	}
	return pe.changeCharge(ctx, ev, charge, nil)
}

// changeRefund moves a settled refund forward. One that fails after all gives its amount back to
// the charge.
func (pe *ProviderEvents) changeRefund(
	ctx context.Context, ev incoming, got *provider.Refund, theirs *provider.Charge,
) error {
	return db.Tx(ctx, pe.store.pool, func(ctx context.Context, tx db.DBTX) error {
		at, found, err := db.Found(pe.store.queries.RefundOfOperation(ctx, tx, got.Tags.Operation))
		if err != nil {
			return err
		}
		if !found {
			result, err := pe.withoutRefund(ctx, tx, got)
			if err == nil {
				_, err = ev.mark(ctx, tx, result)
			}
			return err
		}
		// The charge first, as everywhere.
		charge, err := pe.store.queries.ChargeLock(
			ctx, tx, db.ChargeLockParams{AccountID: at.AccountID, ID: at.ChargeID},
		)
		if err != nil {
			return err
		}
		row, err := pe.store.queries.RefundLock(ctx, tx, at.ID)
		if err != nil {
			return err
		}
		switch {
		case row.ProviderID == nil && row.Status == string(provider.Pending):
			return db.Final(errors.New("the operation " + row.OperationID + " has no outcome yet"))
		case row.ProviderID == nil || *row.ProviderID != got.ID:
			_, err := ev.mark(ctx, tx, inbox.RecordsDiffer(
				"another refund of the same operation than the one we know; `paidonce audit` tells more",
			))
			return err
		case !movesForward(row.Status, string(got.Status)):
			_, err := ev.mark(ctx, tx, inbox.NothingNew)
			return err
		}
		if !moneyMoves(string(got.Status)) {
			if charge.AmountRefundPending > 0 { // the charge's sum may or may not contain them
				return db.Final(errors.New(
					"refunds of the charge " + charge.ID + " are under way; their outcome decides how much is refunded",
				))
			}
			if err := ev.checkUnchanged(charge); err != nil {
				return err
			}
		}
		if ok, err := ev.mark(ctx, tx, inbox.Changed("refund "+string(got.Status))); err != nil ||
			!ok {
			return err
		}
		return pe.writeRefundChange(ctx, tx, refundChange{ev, charge, row, got, theirs})
	})
}

// withoutRefund is the result of an event about one of our own refunds that is no refund here: a
// cancellation lets go of a charge so, and otherwise it is an orphan.
func (pe *ProviderEvents) withoutRefund(
	ctx context.Context, tx db.DBTX, got *provider.Refund,
) (inbox.Result, error) {
	row, found, err := db.Found(pe.store.queries.ChargeByProviderID(ctx, tx, &got.ChargeID))
	if err == nil && found && row.Release != nil {
		return inbox.NothingNew, nil
	}
	return orphan(got.Tags.Operation), err
}

// movesForward reports whether a refund may change its status so: from pending to an end, and from
// succeeded to failed. It never leaves failed.
func movesForward(was, now string) bool {
	return was != now && moneyMoves(was) && (was != string(provider.Succeeded) || !moneyMoves(now))
}

// addRefundedEvent writes the event of a charge whose refunded sum has changed: it is less now, or
// more if it was refunded elsewhere meanwhile.
func (pe *ProviderEvents) addRefundedEvent(
	ctx context.Context, tx db.DBTX, ev incoming, was db.Charge, refunded int64,
) error {
	if refunded == was.AmountRefunded {
		return nil
	}
	kind := outbox.ChargeUpdated
	if refunded > was.AmountRefunded {
		kind = outbox.ChargeRefunded
	}
	was.AmountRefunded = refunded
	charge, err := fromRow(was)
	if err != nil {
		return db.Final(err)
	}
	return pe.store.addEvent(ctx, tx, ev.trigger(was.AccountID, was.Livemode), kind, charge)
}

// refundChange is how a refund changes with an event.
type refundChange struct {
	event  incoming
	charge db.Charge // ours, locked
	refund db.Refund // ours, locked
	there  *provider.Refund
	// chargeThere has how much is refunded now.
	chargeThere *provider.Charge
}

func (pe *ProviderEvents) writeRefundChange(
	ctx context.Context, tx db.DBTX, change refundChange,
) error {
	ev, charge, row := change.event, change.charge, change.refund
	row.Status, row.FailureReason = string(change.there.Status), db.OrNil(
		change.there.FailureReason,
	)
	if err := pe.store.queries.RefundChange(
		ctx, tx,
		db.RefundChangeParams{ID: row.ID, Status: row.Status, FailureReason: row.FailureReason},
	); err != nil {
		return err
	}
	refund, err := refundFromRow(row)
	if err != nil {
		return db.Final(err)
	}
	if !moneyMoves(row.Status) {
		refunded := max(charge.AmountRefunded-row.Amount, 0)
		if change.chargeThere.AmountRefunded <= charge.AmountCaptured {
			refunded = change.chargeThere.AmountRefunded
		}
		now := charge
		now.AmountRefunded = refunded
		if err := pe.store.yieldReference(ctx, tx, charge, now); err != nil {
			return err
		}
		if err := pe.store.queries.ChargeSetRefunded(
			ctx, tx, db.ChargeSetRefundedParams{AmountRefunded: refunded, ID: row.ChargeID},
		); err != nil {
			return err
		}
		if err := pe.addRefundedEvent(ctx, tx, ev, charge, refunded); err != nil {
			return err
		}
	}
	for _, kind := range changedKinds(row.Status) {
		if err := pe.store.addEvent(
			ctx, tx, ev.trigger(row.AccountID, charge.Livemode), kind, refund,
		); err != nil {
			return err
		}
	}
	return nil
}
