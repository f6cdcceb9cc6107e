package charges

import (
	"context"
	"encoding/json"
	"time"

	"paidonce/db"
	"paidonce/outbox"
	"paidonce/problem"
	"paidonce/provider"
)

// failedAttempt is an attempt to pay an intent that was declined. It is a charge of its own, if the
// provider has recorded one.
type failedAttempt struct {
	id         string // our charge; empty: there is none
	providerID string
	no         *provider.Refusal
}

// failedAttempt names an attempt that was declined. Errors: the database's.
func (s *Store) failedAttempt(
	ctx context.Context, conn db.DBTX, of db.Charge, no *provider.Refusal,
) (*failedAttempt, error) {
	f := &failedAttempt{providerID: no.ChargeID, no: no}
	if no.ChargeID == "" {
		return f, nil
	}
	f.id = db.NewID("ch")
	known, found, err := db.Found(s.queries.ChargeByProviderID(ctx, conn, &no.ChargeID))
	if err == nil && found && known.ID != of.ID {
		f.id = known.ID
	}
	return f, err
}

// operation stands for the operation of the attempt's charge: each attempt is written once.
func (f *failedAttempt) operation() string {
	return derivedID("op_", f.providerID)
}

// lastError is what is stored of an intent's last failure.
type lastError struct {
	PaymentError          // zero once the intent was changed
	ProviderCharge string `json:"provider_charge,omitempty"`
}

// lastErrorOf is the last failure of an intent, or zero.
func lastErrorOf(i clientIntent) (e lastError) {
	if json.Unmarshal(i.intent.LastPaymentError, &e) != nil {
		return lastError{}
	}
	return e
}

// fail is what becomes of an intent whose attempt was declined.
func (i *clientIntent) fail(f *failedAttempt) {
	i.charge.ProviderID, i.charge.NextAction = nil, nil
	i.intent.ProviderStatus = string(provider.IntentRequiresPaymentMethod)
	i.intent.PaymentMethod = nil
	if f.id != "" {
		i.intent.LatestCharge = &f.id
	}
	p := refusal(problem.CardDeclined, f.no, f.id, "payment")
	i.intent.LastPaymentError, _ = json.Marshal(lastError{ //nolint:errchkjson // texts alone
		PaymentError: PaymentError{
			Charge: f.id, Code: p.Name(), DeclineCode: p.DeclineCode, Message: p.Message,
			Param: p.Param, Type: p.Code.Type(),
		},
		ProviderCharge: f.providerID,
	})
}

// writeFailedAttempt writes the charge of an attempt that was declined, once, with its event.
func (s *Store) writeFailedAttempt(
	ctx context.Context, tx db.DBTX, o trigger, of db.Charge, f *failedAttempt,
) error {
	if f.id == "" {
		return nil
	}
	p := refusal(problem.CardDeclined, f.no, f.id, "charge")
	row := of
	row.ID, row.OperationID, row.CreatedAt = f.id, f.operation(), time.Now() //tidy:clock shown to people, nothing is decided by it
	row.Status, row.ProviderID = string(provider.Failed), &f.providerID
	row.FailureCode, row.FailureMessage = db.OrNil(p.Name()), db.OrNil(p.Message)
	row.NextAction, row.Outcome, row.Details, row.Release = nil, nil, nil, nil
	row.Captured, row.AmountCaptured, row.AmountRefunded, row.Disputed = false, 0, 0, false
	n, err := s.queries.ChargeRestore(ctx, tx, restoreParams(row))
	if err != nil || n == 0 {
		return err
	}
	charge, err := fromRow(row)
	if err != nil {
		return db.Final(err)
	}
	id := eventID(outbox.ChargeFailed, f.id, o.cause)
	return s.queries.OutboxAdd(ctx, tx, db.OutboxAddParams{
		EventID: id, AccountID: o.account, Type: outbox.ChargeFailed, OperationID: o.cause,
		ObjectID: f.id,
		Payload:  renderEvent(id, outbox.ChargeFailed, o.at, charge, o.livemode, firstEvent),
	})
}

// forgive lets an intent show no failure any more, as the provider's does once it was changed.
func (i *clientIntent) forgive() {
	last := lastErrorOf(*i)
	i.intent.LastPaymentError = nil
	if last.ProviderCharge != "" {
		i.intent.LastPaymentError, _ = json.Marshal(lastError{ProviderCharge: last.ProviderCharge}) //nolint:errchkjson // a text
	}
}
