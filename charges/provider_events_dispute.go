package charges

import (
	"context"

	"paidonce/db"
	"paidonce/inbox"
	"paidonce/outbox"
	"paidonce/provider"
)

func (pe *ProviderEvents) dispute(ctx context.Context, ev incoming) error {
	d, err := pe.readDispute(ctx, ev)
	switch {
	case err != nil:
		return err
	case d == nil:
		return pe.markOnly(ctx, ev, inbox.Nothing("the provider has no such dispute"))
	}
	got, err := pe.ownCharge(ctx, ev, d.ChargeID)
	if err != nil || got == nil {
		return err
	}
	return pe.changeCharge(ctx, ev, got, d)
}

// readDispute returns the dispute that an event is about, as the provider has it; nil: it has none.
// A restricted key may not be allowed to read disputes. Then the event's own word counts, since it
// is signed. A dispute that the provider does not have is not believed, whatever the event says.
func (pe *ProviderEvents) readDispute(ctx context.Context, ev incoming) (*disputeState, error) {
	got, err := pe.provider.GetDispute(ctx, ev.ObjectID)
	if provider.Denied(err) {
		if o := pe.provider.EventObject(ev.Payload); o.Dispute != nil && o.Dispute.ID == ev.ObjectID {
			return &disputeState{Dispute: *o.Dispute, asOf: o.At, believed: true}, nil
		}
	}
	if err != nil || got == nil {
		return nil, err
	}
	now, _ := pe.provider.Now()
	return &disputeState{Dispute: *got, asOf: now}, nil
}

// FraudWarning is a card network's warning that a charge was fraudulent, with Stripe's names, and
// provider, which is ours. Its id is the provider's: nothing of it is kept here.
type FraudWarning struct {
	ID            string   `json:"id"`
	Object        string   `json:"object"`
	Actionable    bool     `json:"actionable"`
	Charge        string   `json:"charge"`
	Created       int64    `json:"created"` // unix seconds, the provider's
	FraudType     string   `json:"fraud_type"`
	Livemode      bool     `json:"livemode"`
	PaymentIntent *string  `json:"payment_intent"`
	Provider      Provider `json:"provider"`
}

// fraudWarning tells of an early fraud warning, once.
func (pe *ProviderEvents) fraudWarning(ctx context.Context, ev incoming) error {
	got, err := pe.provider.GetFraudWarning(ctx, ev.ObjectID)
	if provider.Denied(err) { // as of a dispute
		if o := pe.provider.EventObject(ev.Payload); o.Warning != nil && o.Warning.ID == ev.ObjectID {
			got, err = o.Warning, nil
		}
	}
	switch {
	case err != nil:
		return err
	case got == nil:
		return pe.markOnly(ctx, ev, inbox.Nothing("the provider has no such warning"))
	}
	charge, err := pe.ownCharge(ctx, ev, got.ChargeID)
	if err != nil || charge == nil {
		return err
	}
	return pe.tellWarning(ctx, ev, charge.Tags.Operation, *got)
}

func (pe *ProviderEvents) tellWarning(
	ctx context.Context, ev incoming, operation string, w provider.FraudWarning,
) error {
	return db.Tx(ctx, pe.store.pool, func(ctx context.Context, tx db.DBTX) error {
		row, found, err := db.Found(pe.store.queries.ChargeOfOperationLock(ctx, tx, operation))
		if err != nil {
			return err
		}
		if !found {
			_, err := ev.mark(ctx, tx, orphan(operation))
			return err
		}
		known, err := pe.store.queries.FraudWarningKnown(ctx, tx, w.ID)
		if err != nil {
			return err
		}
		if known {
			_, err := ev.mark(ctx, tx, inbox.NothingNew)
			return err
		}
		ok, err := ev.mark(ctx, tx, inbox.Changed(outbox.FraudWarningCreated))
		if err != nil || !ok {
			return err
		}
		err = pe.store.queries.FraudWarningTell(ctx, tx, db.FraudWarningTellParams{
			ProviderID: w.ID, AccountID: row.AccountID, ChargeID: row.ID,
		})
		if err != nil {
			return err
		}
		return pe.store.addEvent(
			ctx, tx, ev.trigger(row.AccountID, row.Livemode), outbox.FraudWarningCreated,
			FraudWarning{
				ID: w.ID, Object: "radar.early_fraud_warning", Actionable: w.Actionable,
				Charge: row.ID, Created: w.Created.Unix(), FraudType: w.FraudType,
				Livemode: row.Livemode, PaymentIntent: db.OrNil(w.IntentID),
				Provider: Provider{Name: row.Provider, ID: &w.ID},
			},
		)
	})
}
