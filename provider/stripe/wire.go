package stripe

import (
	"time"

	json "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	sdk "github.com/stripe/stripe-go/v76"

	"paidonce/provider"
)

// The structs below take from Stripe's objects what the port has. stripe-go's own have several hundred fields for every
// payment method, and decoding into them was most of a charge's CPU time. Pointers tell "absent" from zero: an object
// without amount isn't one over nothing.
//
// They decode with exact names: encoding/json would let a client's metadata "Paidonce_Operation" overwrite our tag.

var decoding = json.JoinOptions(jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))

type wireTags struct {
	Operation    string `json:"paidonce_operation"`
	Installation string `json:"paidonce_installation"`
}

func (t wireTags) tags() provider.Tags {
	return provider.Tags{Operation: t.Operation, Installation: t.Installation}
}

type wireCharge struct {
	sdk.APIResource `json:"-"`
	chargeFields
}

type chargeFields struct {
	ID             string               `json:"id"`
	Object         string               `json:"object"`
	Status         string               `json:"status"`
	Amount         *int64               `json:"amount"`
	AmountCaptured int64                `json:"amount_captured"`
	AmountRefunded int64                `json:"amount_refunded"`
	Currency       string               `json:"currency"`
	Captured       bool                 `json:"captured"`
	Disputed       bool                 `json:"disputed"`
	Livemode       *bool                `json:"livemode"`
	Created        int64                `json:"created"`
	FailureCode    string               `json:"failure_code"`
	FailureMessage string               `json:"failure_message"`
	Outcome        *provider.Assessment `json:"outcome"`
	Intent         string               `json:"payment_intent"`
	Metadata       wireTags             `json:"metadata"`
}

func (c *wireCharge) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, &c.chargeFields, decoding)
}

func (c *chargeFields) name() string { return c.ID }

// whole tells whether this is a charge at all.
func (c *chargeFields) whole() bool {
	return c.ID != "" && c.Object == "charge" && c.Amount != nil && c.Currency != "" && c.Livemode != nil &&
		(c.Status == "pending" || c.Status == "succeeded" || c.Status == "failed")
}

func (p *Provider) charge(c *chargeFields) *provider.Charge {
	out := &provider.Charge{
		ID: p.clean(c.ID), IntentID: p.clean(c.Intent), Status: provider.Status(c.Status), Amount: *c.Amount,
		AmountCaptured: c.AmountCaptured, AmountRefunded: c.AmountRefunded, Currency: c.Currency, Captured: c.Captured, Disputed: c.Disputed,
		Livemode: *c.Livemode, Created: time.Unix(c.Created, 0).UTC(), FailureCode: p.clean(c.FailureCode),
		FailureMessage: p.clean(c.FailureMessage), Tags: c.Metadata.tags(),
	}
	if c.Captured {
		// Stripe counts the part that a partial capture let go as refunded. It was never taken, so it isn't given back.
		out.AmountRefunded = max(0, c.AmountRefunded-(*c.Amount-c.AmountCaptured))
	}
	if o := c.Outcome; o != nil {
		out.Outcome = &provider.Assessment{
			NetworkStatus: p.clean(o.NetworkStatus), Reason: p.clean(o.Reason), RiskLevel: p.clean(o.RiskLevel),
			SellerMessage: p.clean(o.SellerMessage), Type: p.clean(o.Type),
		}
	}
	return out
}

type wireRefund struct {
	sdk.APIResource `json:"-"`
	refundFields
}

type refundFields struct {
	ID            string   `json:"id"`
	Object        string   `json:"object"`
	Charge        string   `json:"charge"`
	Status        string   `json:"status"`
	Amount        *int64   `json:"amount"`
	Currency      string   `json:"currency"`
	Reason        string   `json:"reason"`
	FailureReason string   `json:"failure_reason"`
	Created       int64    `json:"created"`
	Metadata      wireTags `json:"metadata"`
}

func (r *wireRefund) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, &r.refundFields, decoding)
}

func (r *refundFields) name() string { return r.ID }

func (r *refundFields) whole() bool {
	switch provider.Status(r.Status) {
	case provider.Pending, provider.Succeeded, provider.Failed, provider.Canceled, provider.RequiresAction:
		return r.ID != "" && r.Object == "refund" && r.Amount != nil && r.Currency != "" && r.Charge != ""
	}
	return false
}

func (p *Provider) refund(r *refundFields) *provider.Refund {
	return &provider.Refund{
		ID: p.clean(r.ID), ChargeID: p.clean(r.Charge), Status: provider.Status(r.Status), Amount: *r.Amount, Currency: r.Currency,
		Reason: p.clean(r.Reason), FailureReason: p.clean(r.FailureReason), Created: time.Unix(r.Created, 0).UTC(), Tags: r.Metadata.tags(),
	}
}

// wireList is a page of a list.
type wireList[T any] struct {
	sdk.APIResource `json:"-"`
	page            pageFields[T]
}

type pageFields[T any] struct {
	Object  string `json:"object"`
	HasMore *bool  `json:"has_more"`
	Data    []T    `json:"data"`
}

func (l *wireList[T]) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, &l.page, decoding) }

type wireDispute struct {
	sdk.APIResource `json:"-"`
	disputeFields
}

type disputeFields struct {
	ID       string `json:"id"`
	Object   string `json:"object"`
	Charge   string `json:"charge"`
	Status   string `json:"status"`
	Reason   string `json:"reason"`
	Amount   *int64 `json:"amount"`
	Currency string `json:"currency"`
	Livemode *bool  `json:"livemode"`
	Created  int64  `json:"created"`
}

func (d *wireDispute) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, &d.disputeFields, decoding)
}

func (d *disputeFields) name() string { return d.ID }

// whole takes any status: a new one of Stripe's is for the reader to judge.
func (d *disputeFields) whole() bool {
	return d.ID != "" && d.Object == "dispute" && d.Charge != "" && d.Status != "" && d.Amount != nil && d.Currency != "" && d.Livemode != nil
}

func (p *Provider) dispute(d *disputeFields) *provider.Dispute {
	return &provider.Dispute{
		ID: p.clean(d.ID), ChargeID: p.clean(d.Charge), Status: p.clean(d.Status), Reason: p.clean(d.Reason), Amount: *d.Amount,
		Currency: d.Currency, Livemode: *d.Livemode, Created: time.Unix(d.Created, 0).UTC(),
	}
}
