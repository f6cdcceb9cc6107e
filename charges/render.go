package charges

import (
	"cmp"
	"encoding/json"

	"paidonce/db"
	"paidonce/idemkeys"
	"paidonce/provider"
)

// Charge is a charge as clients see it: the fields of Stripe's charge object that make sense here,
// with its names and types, and one of our own, provider.
type Charge struct {
	ID             string            `json:"id"`
	Object         string            `json:"object"`
	Amount         int64             `json:"amount"` // minor units, as are the two below
	AmountCaptured int64             `json:"amount_captured"`
	AmountRefunded int64             `json:"amount_refunded"`
	Captured       bool              `json:"captured"`
	Created        int64             `json:"created"` // unix seconds
	Currency       string            `json:"currency"`
	Customer       *string           `json:"customer"`
	Description    *string           `json:"description"`
	Dispute        *Dispute          `json:"dispute,omitempty"` // only in events of disputes
	Disputed       bool              `json:"disputed"`
	FailureCode    *string           `json:"failure_code"`
	FailureMessage *string           `json:"failure_message"`
	Livemode       bool              `json:"livemode"`
	Metadata       map[string]string `json:"metadata"`
	// only while the payer has to do something
	NextAction *NextAction `json:"next_action,omitempty"`
	Outcome    *Outcome    `json:"outcome"`
	Paid       bool        `json:"paid"`
	// the charge of the same reference beside which this one is meant
	DuplicateOf   *string  `json:"duplicate_of,omitempty"`
	PaymentIntent *string  `json:"payment_intent"` // the provider's id, whoever made the intent
	Provider      Provider `json:"provider"`
	ReceiptEmail  *string  `json:"receipt_email"`
	Reference     *string  `json:"reference,omitempty"` // what is paid for
	Refunded      bool     `json:"refunded"`
	// only if they are asked for
	Refunds *RefundsOf `json:"refunds,omitempty"`
	// only if they were given
	Shipping                  *Shipping `json:"shipping,omitempty"`
	StatementDescriptor       *string   `json:"statement_descriptor,omitempty"`
	StatementDescriptorSuffix *string   `json:"statement_descriptor_suffix"`
	Status                    string    `json:"status"`
	Details
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
	return &Outcome{
		db.OrNil(a.NetworkStatus), db.OrNil(a.Reason), db.OrNil(a.RiskLevel),
		db.OrNil(a.SellerMessage), a.Type,
	}
}

// Provider names the provider and its own id of the charge; the id is null until the provider has
// answered.
type Provider struct {
	Name string  `json:"name"`
	ID   *string `json:"id"`
}

// Refund is a refund as clients see it, with Stripe's names and types, and provider, which is ours.
type Refund struct {
	ID            string            `json:"id"`
	Object        string            `json:"object"`
	Amount        int64             `json:"amount"` // minor units
	Charge        ChargeRef         `json:"charge"`
	Created       int64             `json:"created"` // unix seconds
	Currency      string            `json:"currency"`
	FailureReason *string           `json:"failure_reason"`
	MadeBy        string            `json:"made_by"` // madeByAPI or madeByProvider
	Metadata      map[string]string `json:"metadata"`
	Provider      Provider          `json:"provider"`
	Reason        *string           `json:"reason"`
	Status        string            `json:"status"`
}

// Who makes refunds.
const (
	madeByAPI      = "api"      // a request to us
	madeByProvider = "provider" // somebody at the provider: in its dashboard, or another program
)

// pendingCharge is the charge of an operation as it stands after the claim.
func pendingCharge(op *idemkeys.Operation, r *provider.ChargeRequest) Charge {
	return Charge{
		ID: op.ResourceID, Object: "charge", Amount: r.Amount, Created: op.CreatedAt.Unix(),
		Currency: r.Currency, Customer: db.OrNil(r.Customer), Description: db.OrNil(r.Description),
		Livemode: r.Livemode, Metadata: orEmpty(r.Metadata), Provider: Provider{Name: "stripe"},
		ReceiptEmail:              db.OrNil(receiptEmail(r)),
		Shipping:                  shippingOf(r.Shipping),
		StatementDescriptor:       db.OrNil(r.StatementDescriptor),
		StatementDescriptorSuffix: db.OrNil(r.StatementDescriptorSuffix),
		Reference:                 db.OrNil(r.Reference),
		DuplicateOf:               db.OrNil(r.DuplicateOf),
		Status:                    string(provider.Pending),
	}
}

// orEmpty are the pairs, which are shown even if there are none.
func orEmpty(pairs map[string]string) map[string]string {
	if pairs == nil {
		return map[string]string{}
	}
	return pairs
}

// receiptEmail is where a receipt goes, whoever mails it.
func receiptEmail(r *provider.ChargeRequest) string {
	return cmp.Or(r.ReceiptEmail, r.OwnReceiptEmail)
}

func fromRow(row db.Charge) (Charge, error) {
	c := Charge{
		ID: row.ID, Object: "charge", Amount: row.Amount, AmountCaptured: row.AmountCaptured,
		AmountRefunded: refundedOf(row), Captured: row.Captured, Created: row.CreatedAt.Unix(),
		Currency: row.Currency, Customer: row.Customer, Description: row.Description,
		Disputed: row.Disputed, FailureCode: row.FailureCode, FailureMessage: row.FailureMessage,
		Livemode: row.Livemode, Paid: row.Status == string(provider.Succeeded),
		Provider: Provider{Name: row.Provider, ID: row.ProviderID}, ReceiptEmail: row.ReceiptEmail,
		Refunded: row.AmountRefunded > 0 && row.AmountRefunded == row.AmountCaptured ||
			released(row) && row.Status == string(provider.Succeeded),
		StatementDescriptorSuffix: row.StatementDescriptorSuffix, Status: row.Status,
		Reference: row.Reference, DuplicateOf: row.DuplicateOf,
		StatementDescriptor: row.StatementDescriptor, PaymentIntent: row.IntentID,
	}
	var err error
	if c.Shipping, err = shippingFrom(row.Shipping); err != nil {
		return Charge{}, err
	}
	if err := json.Unmarshal(row.Metadata, &c.Metadata); err != nil {
		return Charge{}, err
	}
	known, err := readDetails(row.Details)
	if err != nil {
		return Charge{}, err
	}
	c.Details = detailsOf(known)
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

func refundFromRow(row db.Refund) (Refund, error) {
	r := Refund{
		ID: row.ID, Object: "refund", Amount: row.Amount, Charge: ChargeRef{ID: row.ChargeID},
		Created: row.CreatedAt.Unix(), Currency: row.Currency, FailureReason: row.FailureReason,
		MadeBy: row.MadeBy, Provider: Provider{Name: row.Provider, ID: row.ProviderID}, Reason: row.Reason,
		Status: row.Status,
	}
	return r, json.Unmarshal(row.Metadata, &r.Metadata)
}
