package charges

import (
	"context"

	"paidonce/db"
	"paidonce/inbox"
	"paidonce/outbox"
	"paidonce/provider"
)

// What becomes of a client's payment intent without a request: the payer confirms it in the
// browser, or tries another card there, somebody cancels it at the provider. Its charge moves as
// every charge does, and the intent moves with it.

// addChargeEvents writes the events that tell of a charge's changes. Of an intent's charge that the
// provider has none for, the intent tells.
func (s *Store) addChargeEvents(
	ctx context.Context, tx db.DBTX, o trigger, was, now db.Charge,
) error {
	if now.OfIntent && now.ProviderID == nil {
		return nil
	}
	charge, err := fromRow(now)
	if err != nil {
		return db.Final(err)
	}
	for _, kind := range changesOf(was, now) {
		if err := s.addEvent(ctx, tx, o, kind, charge); err != nil {
			return err
		}
	}
	if now.OfIntent && was.ProviderID == nil && now.Status == string(provider.Pending) {
		o.attempt = *now.ProviderID
		return s.addEvent(ctx, tx, o, outbox.ChargePending, charge) // its money is under way
	}
	return nil
}

// addIntentEvents writes the events that tell of an intent's changes.
func (s *Store) addIntentEvents(
	ctx context.Context, tx db.DBTX, o trigger, was, now clientIntent, created bool,
) error {
	kinds := changesOfIntent(was, now)
	if created {
		kinds = append([]string{outbox.PaymentIntentCreated}, kinds...)
	}
	if len(kinds) == 0 {
		return nil
	}
	shown, err := now.render()
	if err != nil {
		return db.Final(err)
	}
	for _, kind := range kinds {
		if err := s.addEvent(ctx, tx, o, kind, shown); err != nil {
			return err
		}
	}
	return nil
}

// intentEvents has the type of event of an intent that has come to a status.
var intentEvents = map[provider.IntentStatus]string{
	provider.IntentRequiresAction:  outbox.PaymentIntentRequiresAction,
	provider.IntentProcessing:      outbox.PaymentIntentProcessing,
	provider.IntentRequiresCapture: outbox.PaymentIntentAmountCapturable,
	provider.IntentSucceeded:       outbox.PaymentIntentSucceeded,
	provider.IntentCanceled:        outbox.PaymentIntentCanceled,
}

// changesOfIntent returns the types of events that tell of the changes of an intent. That an
// operation works on it is no change.
func changesOfIntent(was, now clientIntent) (events []string) {
	was.charge.CaptureOperationID = nil
	if lastErrorOf(now).Type != "" && now.charge.ProviderID == nil &&
		(lastErrorOf(was) != lastErrorOf(now) ||
			was.status() != now.status() && now.status() == provider.IntentRequiresPaymentMethod) {
		events = append(events, outbox.PaymentIntentPaymentFailed)
	}
	if kind := intentEvents[now.status()]; kind != "" && now.status() != was.status() {
		events = append(events, kind)
	}
	return events
}

// followCharge moves an intent on with its charge, which was changed in this transaction.
func (s *Store) followCharge(
	ctx context.Context, tx db.DBTX, o trigger, was, now db.Charge,
) error {
	if !now.OfIntent {
		return nil
	}
	of, found, err := db.Found(s.queries.PaymentIntentOfChargeLock(ctx, tx, now.ID))
	if err != nil || !found {
		return err
	}
	after := clientIntent{of, now}
	if o.intent != nil {
		after.take(o.intent)
	}
	after.settle()
	if err := s.putIntent(ctx, tx, after.intent); err != nil {
		return err
	}
	return s.addIntentEvents(ctx, tx, o, clientIntent{of, was}, after, false)
}

// attemptFailed writes an attempt that was declined. The charge is locked.
func (pe *ProviderEvents) attemptFailed(
	ctx context.Context, tx db.DBTX, ev incoming, row db.Charge, no *provider.Refusal,
) error {
	s := pe.store
	of, err := s.queries.PaymentIntentOfChargeLock(ctx, tx, row.ID)
	if err != nil {
		return err
	}
	failed, err := s.failedAttempt(ctx, tx, row, no)
	if err != nil {
		return err
	}
	was, now := clientIntent{of, row}, clientIntent{of, row}
	if row.Status == string(provider.Pending) &&
		(row.ProviderID == nil || *row.ProviderID == no.ChargeID) {
		if ev.intent != nil {
			now.take(ev.intent)
		}
		now.fail(failed)
	}
	return pe.changeIntentTo(ctx, tx, ev, was, now, failed)
}

// changeIntentTo writes an intent, whose charge is locked, as the provider has it now.
func (pe *ProviderEvents) changeIntentTo(
	ctx context.Context, tx db.DBTX, ev incoming, was, now clientIntent, failed *failedAttempt,
) error {
	if ok, err := ev.mark(ctx, tx, changed(changesOfIntent(was, now))); err != nil || !ok {
		return err
	}
	o := ev.trigger(was.charge.AccountID, was.charge.Livemode)
	return pe.store.writeIntent(ctx, tx, o, was.charge, now, failed)
}

// intentWaits learns what a client's intent waits for now.
func (pe *ProviderEvents) intentWaits(
	ctx context.Context, ev incoming, in *provider.Intent,
) error {
	return db.Tx(ctx, pe.store.pool, func(ctx context.Context, tx db.DBTX) error {
		row, found, err := db.Found(
			pe.store.queries.ChargeOfOperationLock(ctx, tx, in.Tags.Operation),
		)
		if err != nil {
			return err
		}
		if !found || !row.OfIntent || row.SettledAt == nil ||
			row.Status != string(provider.Pending) || db.OrEmpty(row.IntentID) != in.ID {
			_, err := ev.mark(ctx, tx, inbox.NothingNew)
			return err
		}
		if isEnding(row) {
			return db.Final(errEnding)
		}
		of, err := pe.store.queries.PaymentIntentOfChargeLock(ctx, tx, row.ID)
		if err != nil {
			return err
		}
		was, now := clientIntent{of, row}, clientIntent{of, row}
		now.charge.NextAction = nil
		now.take(in)
		return pe.changeIntentTo(ctx, tx, ev, was, now, nil)
	})
}

// showingIntent returns what shows the intent of a charge, once that has changed.
func (s *Store) showingIntent(
	ctx context.Context, row db.Charge, withCharge bool,
) (showing, error) {
	of, err := db.Read(ctx, s.pool, s.queries.PaymentIntentOfCharge, row.ID)
	if err != nil {
		return nil, rowError("the payment intent of the charge "+row.ID, err)
	}
	latest := ChargeRef{ID: db.OrEmpty(of.LatestCharge)}
	if withCharge && latest.ID != "" && latest.ID != row.ID {
		if err := s.readCharges(ctx, row.AccountID, &latest); err != nil {
			return nil, rowError("the charge "+latest.ID, err)
		}
	}
	return func(now db.Charge) (any, error) {
		i := clientIntent{of, now}
		i.settle()
		shown, err := i.render()
		switch {
		case err != nil || !withCharge || shown.LatestCharge == nil:
		case shown.LatestCharge.ID == latest.ID && latest.whole != nil:
			shown.LatestCharge = &latest
		case shown.LatestCharge.ID == now.ID:
			shown.LatestCharge.whole = new(Charge)
			*shown.LatestCharge.whole, err = fromRow(now)
		}
		return shown, err
	}, nil
}
