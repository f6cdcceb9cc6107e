package charges

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"paidonce/db"
	"paidonce/idemkeys"
	"paidonce/outbox"
	"paidonce/problem"
	"paidonce/provider"
)

// eventAPIVersion is the version of Stripe's API whose shapes our events have; its Go SDK v76
// refuses any other.
const eventAPIVersion = "2023-10-16"

// event is what consumers get: the object as GET shows it, in Stripe's envelope.
type event struct {
	ID         string    `json:"id"`
	Object     string    `json:"object"`
	APIVersion string    `json:"api_version"`
	Created    int64     `json:"created"`
	Data       eventData `json:"data"`
	Livemode   bool      `json:"livemode"`
	// of the events of one object, from 1 without gaps: what came first, whatever arrived first
	Sequence int32  `json:"sequence"`
	Type     string `json:"type"`
}

// firstEvent is the sequence of an object's first event, such as that of a charge's settlement.
const firstEvent = 1

type eventData struct {
	// a Charge, a Refund, a FraudWarning or a PaymentIntent
	Object any `json:"object"`
}

func renderEvent(id, kind string, at time.Time, object any, livemode bool, sequence int32) []byte {
	switch o := object.(type) {
	case Charge:
		object = o.WithoutSecrets()
	case PaymentIntent:
		object = o.WithoutSecrets()
	}
	return problem.Render(event{
		ID: id, Object: "event", APIVersion: eventAPIVersion, Created: at.Unix(),
		Data: eventData{object}, Livemode: livemode, Sequence: sequence, Type: kind,
	})
}

// eventID returns the id of an object's event of a type. It is derived, so that a database that has
// forgotten the event sends it again under the same id, and consumers recognise it. cause, the id
// of an operation or of an event of the provider, distinguishes several events of one type and
// object.
func eventID(kind, object, cause string) string {
	if oncePerObject[kind] {
		cause = ""
	}
	return derivedID("evt_", kind+"\x00"+object+"\x00"+cause)
}

// derivedID is an id that follows from a text, in the form of all our ids.
func derivedID(prefix, text string) string {
	sum := sha256.Sum256([]byte(text))
	return prefix + strings.ToUpper(hex.EncodeToString(sum[:13]))
}

// oncePerObject has the types of events that an object has at most once.
var oncePerObject = map[string]bool{
	outbox.ChargePending: true, outbox.ChargeSucceeded: true, outbox.ChargeFailed: true,
	outbox.ChargeCaptured: true, outbox.ChargeCanceled: true, outbox.ChargeExpired: true,
	outbox.RefundCreated: true, outbox.RefundFailed: true,
	outbox.FraudWarningCreated:  true,
	outbox.PaymentIntentCreated: true, outbox.PaymentIntentSucceeded: true,
	outbox.PaymentIntentCanceled: true,
}

// trigger is what caused events.
type trigger struct {
	account  string
	cause    string // the id of an operation, or of an event of the provider
	at       time.Time
	livemode bool
	intent   *provider.Intent // what the provider showed of the charge's intent; nil: not read
	// attempt is the provider's id of the charge that an intent's charge stands for now, in an
	// event that there is once for each of them.
	attempt string
}

func triggerOf(op *idemkeys.Operation, livemode bool) trigger {
	return trigger{account: op.AccountID, cause: op.ID, at: op.Now(), livemode: livemode}
}

// addEvent writes an event about a [Charge], a [Refund], a [FraudWarning] or a [PaymentIntent] in
// the transaction that makes it true. The object's row is locked, or written by this transaction
// already.
func (s *Store) addEvent(
	ctx context.Context, tx db.DBTX, o trigger, kind string, object any,
) error {
	objectID, count := "", s.queries.ChargeCountEvent
	switch object := object.(type) {
	case Charge:
		objectID = object.ID
	case Refund:
		objectID, count = object.ID, s.queries.RefundCountEvent
	case PaymentIntent:
		objectID, count = object.ID, s.queries.PaymentIntentCountEvent
	case FraudWarning: // it has one event
		objectID = object.ID
		count = func(context.Context, db.DBTX, string) (int32, error) { return firstEvent, nil }
	}
	sequence, err := count(ctx, tx, objectID)
	if err != nil {
		return err
	}
	id := eventID(kind, objectID+o.attempt, o.cause)
	return s.queries.OutboxAdd(ctx, tx, db.OutboxAddParams{
		EventID: id, AccountID: o.account, Type: kind, OperationID: o.cause, ObjectID: objectID,
		Payload: renderEvent(id, kind, o.at, object, o.livemode, sequence),
	})
}
