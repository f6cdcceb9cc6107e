package charges

import (
	"cmp"
	"encoding/json"
	"time"

	"paidonce/db"
	"paidonce/idemkeys"
	"paidonce/provider"
)

// Charge is a charge as clients see it: the fields of Stripe's charge object that make sense here, with its names and types, and
// one of our own, provider.
type Charge struct {
	ID                        string            `json:"id"`
	Object                    string            `json:"object"`
	Amount                    int64             `json:"amount"` // minor units, as are the two below
	AmountCaptured            int64             `json:"amount_captured"`
	AmountRefunded            int64             `json:"amount_refunded"`
	Captured                  bool              `json:"captured"`
	Created                   int64             `json:"created"` // unix seconds
	Currency                  string            `json:"currency"`
	Customer                  *string           `json:"customer"`
	Description               *string           `json:"description"`
	Disputed                  bool              `json:"disputed"`
	FailureCode               *string           `json:"failure_code"`
	FailureMessage            *string           `json:"failure_message"`
	Livemode                  bool              `json:"livemode"`
	Metadata                  map[string]string `json:"metadata"`
	NextAction                *NextAction       `json:"next_action,omitempty"` // only while the payer has to do something
	Outcome                   *Outcome          `json:"outcome"`
	Paid                      bool              `json:"paid"`
	Provider                  Provider          `json:"provider"`
	ReceiptEmail              *string           `json:"receipt_email"`
	Refunded                  bool              `json:"refunded"`
	StatementDescriptorSuffix *string           `json:"statement_descriptor_suffix"`
	Status                    string            `json:"status"`

	intentID string // the provider's, for the row
}

// NextAction is what the payer has to do before a pending charge can go on, with Stripe's names.
type NextAction struct {
	Type          string         `json:"type"`
	RedirectToURL *RedirectToURL `json:"redirect_to_url,omitempty"`
}

// RedirectToURL is where to send the payer.
type RedirectToURL struct {
	URL string `json:"url"`
}

func nextActionOf(n *provider.NextAction) *NextAction {
	if n == nil {
		return nil
	}
	a := &NextAction{Type: n.Type}
	if n.RedirectURL != "" {
		a.RedirectToURL = &RedirectToURL{URL: n.RedirectURL}
	}
	return a
}

// Outcome is the provider's assessment, with Stripe's names and its nulls.
type Outcome struct {
	NetworkStatus *string `json:"network_status"`
	Reason        *string `json:"reason"`
	RiskLevel     *string `json:"risk_level"`
	SellerMessage *string `json:"seller_message"`
	Type          string  `json:"type"`
}

func outcomeOf(a *provider.Assessment) *Outcome {
	if a == nil {
		return nil
	}
	return &Outcome{db.OrNil(a.NetworkStatus), db.OrNil(a.Reason), db.OrNil(a.RiskLevel), db.OrNil(a.SellerMessage), a.Type}
}

// Provider names the provider and its own id of the charge; the id is null until the provider has answered.
type Provider struct {
	Name string  `json:"name"`
	ID   *string `json:"id"`
}

// pendingCharge is the charge of an operation as it stands after the claim.
func pendingCharge(op idemkeys.Operation, r provider.ChargeRequest) Charge {
	metadata := r.Metadata
	if metadata == nil {
		metadata = map[string]string{}
	}
	return Charge{
		ID: op.ResourceID, Object: "charge", Amount: r.Amount, Created: op.CreatedAt.Unix(), Currency: r.Currency,
		Customer: db.OrNil(r.Customer), Description: db.OrNil(r.Description), Livemode: r.Livemode, Metadata: metadata,
		Provider: Provider{Name: "stripe"}, ReceiptEmail: db.OrNil(receiptEmail(r)),
		StatementDescriptorSuffix: db.OrNil(r.StatementDescriptorSuffix), Status: string(provider.Pending),
	}
}

// receiptEmail is where a receipt goes, whoever mails it.
func receiptEmail(r provider.ChargeRequest) string { return cmp.Or(r.ReceiptEmail, r.OwnReceiptEmail) }

func fromRow(row db.Charge) (Charge, error) {
	c := Charge{
		ID: row.ID, Object: "charge", Amount: row.Amount, AmountCaptured: row.AmountCaptured, AmountRefunded: row.AmountRefunded,
		Captured: row.Captured, Created: row.CreatedAt.Unix(), Currency: row.Currency, Customer: row.Customer, Description: row.Description,
		Disputed: row.Disputed, FailureCode: row.FailureCode, FailureMessage: row.FailureMessage, Livemode: row.Livemode,
		Paid: row.Status == string(provider.Succeeded), Provider: Provider{Name: row.Provider, ID: row.ProviderID},
		ReceiptEmail: row.ReceiptEmail, Refunded: row.AmountRefunded > 0 && row.AmountRefunded == row.AmountCaptured,
		StatementDescriptorSuffix: row.StatementDescriptorSuffix, Status: row.Status, intentID: db.OrEmpty(row.IntentID),
	}
	if err := json.Unmarshal(row.Metadata, &c.Metadata); err != nil {
		return Charge{}, err
	}
	if row.NextAction != nil {
		if err := json.Unmarshal(row.NextAction, &c.NextAction); err != nil {
			return Charge{}, err
		}
	}
	if row.Outcome != nil {
		if err := json.Unmarshal(row.Outcome, &c.Outcome); err != nil {
			return Charge{}, err
		}
	}
	return c, nil
}

// eventAPIVersion is the version of Stripe's API whose shapes our events have; its Go SDK v76 refuses any other.
const eventAPIVersion = "2023-10-16"

// event is what consumers get: the object as GET shows it, in Stripe's envelope.
type event struct {
	ID         string    `json:"id"`
	Object     string    `json:"object"`
	APIVersion string    `json:"api_version"`
	Created    int64     `json:"created"`
	Data       eventData `json:"data"`
	Livemode   bool      `json:"livemode"`
	Sequence   int32     `json:"sequence"` // of the events of one object, from 1 without gaps: what came first, whatever arrived first
	Type       string    `json:"type"`
}

// firstEvent is the sequence of the event that tells how a charge was settled: nothing tells of it before.
const firstEvent = 1

type eventData struct {
	Object any `json:"object"` // a Charge or a Refund
}

func renderEvent(id, kind string, at time.Time, object any, livemode bool, sequence int32) []byte {
	return idemkeys.Render(event{
		ID: id, Object: "event", APIVersion: eventAPIVersion, Created: at.Unix(), Data: eventData{object}, Livemode: livemode, Sequence: sequence, Type: kind,
	})
}
