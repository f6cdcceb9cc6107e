package charges

import (
	"context"
	"fmt"

	"paidonce/db"
	"paidonce/inbox"
	"paidonce/provider"
)

func (pe *ProviderEvents) intent(ctx context.Context, ev incoming) error {
	in, err := pe.provider.GetIntent(ctx, ev.ObjectID)
	switch {
	case err != nil:
		return err
	case in == nil:
		return pe.markOnly(ctx, ev, inbox.Nothing("the provider has no such intent"))
	case in.Tags.Installation != pe.cfg.Installation:
		return pe.markOnly(ctx, ev, inbox.Foreign)
	}
	return pe.changeIntent(ctx, ev, in)
}

// changeIntent moves a charge forward to what its intent has come to.
func (pe *ProviderEvents) changeIntent(
	ctx context.Context, ev incoming, in *provider.Intent,
) error {
	ev.intent = in
	switch in.Status {
	case provider.IntentSucceeded, provider.IntentRequiresCapture:
		got, err := chargeOf(ctx, pe.provider, in)
		if err != nil {
			return err
		}
		got.Tags = in.Tags // Stripe copies them; it is the intent that proves them
		whole := *in       // so that the charge is read once
		whole.Charge = got
		if err := pe.settle(
			ctx, in.Tags.Operation, providerObject{intent: &whole},
		); err != nil {
			return err
		}
		return pe.changeCharge(ctx, ev, got, nil)
	case provider.IntentCanceled:
		if in.ChargeID == "" {
			return pe.failIntent(ctx, ev, in)
		}
		got, err := chargeOf(ctx, pe.provider, in)
		if err != nil {
			return err
		}
		if !got.Released() { // a charge that was declined, say
			return pe.failIntent(ctx, ev, in)
		}
		got.Tags = in.Tags
		return pe.changeCharge(ctx, ev, got, nil)
	case provider.IntentRequiresPaymentMethod:
		return pe.failIntent(ctx, ev, in)
	}
	return pe.intentWaits(ctx, ev, in)
}

// failIntent ends a charge whose payer did not go through with it. An operation that is still open
// ends by itself.
func (pe *ProviderEvents) failIntent(ctx context.Context, ev incoming, in *provider.Intent) error {
	open := false
	err := db.Tx(ctx, pe.store.pool, func(ctx context.Context, tx db.DBTX) error {
		row, found, err := db.Found(
			pe.store.queries.ChargeOfOperationLock(ctx, tx, in.Tags.Operation),
		)
		switch {
		case err != nil:
			return err
		case !found:
			_, err := ev.mark(
				ctx, tx,
				inbox.RecordsDiffer(
					"an orphan: the operation "+in.Tags.Operation+" is not known here",
				),
			)
			return err
		case row.SettledAt == nil:
			return db.Final(fmt.Errorf("the operation %s has no outcome yet", row.OperationID))
		case isEnding(row):
			return db.Final(errEnding)
		case row.Status != string(provider.Pending) || row.IntentID == nil ||
			*row.IntentID != in.ID:
			_, err := ev.mark(ctx, tx, inbox.NothingNew)
			return err
		case in.Status == provider.IntentRequiresPaymentMethod && row.OfIntent:
			if in.Failure == nil { // nobody has tried yet
				_, err := ev.mark(ctx, tx, inbox.NothingNew)
				return err
			}
			return pe.attemptFailed(ctx, tx, ev, row, intentRefusal(in))
		case in.Status == provider.IntentRequiresPaymentMethod:
			open = true
			return nil
		}
		was, no := row, intentRefusal(in)
		row.Status, row.FailureCode, row.FailureMessage, row.NextAction = string(provider.Failed), db.OrNil(no.Code), db.OrNil(no.Message), nil
		row.ProviderID = db.OrNil(no.ChargeID)
		if in.Failure == nil { // it was not declined
			row.Release = db.OrNil(releaseCanceled)
		}
		return pe.writeChange(ctx, tx, ev, was, row, nil)
	})
	if err != nil || !open {
		return err
	}
	return pe.endIntent(ctx, ev, in)
}
