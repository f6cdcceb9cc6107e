package stripe

import (
	"strings"

	json "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	sdk "github.com/stripe/stripe-go/v76"

	"paidonce/provider"
)

// The structs below take from Stripe's objects what the port has. stripe-go's own have several
// hundred fields for every payment method, and decoding into them was most of a charge's CPU time.
// They tell "absent" from zero: an object without amount isn't one over nothing.
//
// An object is known when it can be told what it is and in which state. In the answer to a request
// that is enough: what else is absent is taken from the request, what is there has to agree with
// it. An object that was read or found has to be whole: there is nothing to take the rest from.
//
// They decode with exact names: encoding/json would let a client's metadata "Paidonce_Operation"
// overwrite our tag.

var decoding = json.JoinOptions(jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))

// wireTags are our tags of the metadata, which may lack one or both.
type wireTags struct{ object[tagPair] }

type tagPair struct {
	Operation    word `json:"paidonce_operation"`
	Installation word `json:"paidonce_installation"`
}

func (t wireTags) tags() provider.Tags {
	if t.at == nil {
		return provider.Tags{}
	}
	return provider.Tags{Operation: string(t.at.Operation), Installation: string(t.at.Installation)}
}

// are reports whether the tags aren't known to be others.
func (t wireTags) are(want provider.Tags) bool {
	got := t.tags()
	return (got.Operation == "" || got.Operation == want.Operation) && (got.Installation == "" || got.Installation == want.Installation)
}

// sameCurrency reports whether a currency isn't known to be another. Case makes no difference.
func sameCurrency(got word, want string) bool {
	return got == "" || strings.EqualFold(string(got), want)
}

func (p *Provider) currency(w word) string { return p.clean(strings.ToLower(string(w))) }

// maybe reports whether an object isn't said to be something else.
func isOrUnsaid(object word, what string) bool { return object == "" || string(object) == what }

type wireCharge struct {
	sdk.APIResource `json:"-"`
	chargeFields
}

type chargeFields struct {
	ID             text                   `json:"id"`
	Object         word                   `json:"object"`
	Status         word                   `json:"status"`
	Amount         amount                 `json:"amount"`
	AmountCaptured amount                 `json:"amount_captured"`
	AmountRefunded amount                 `json:"amount_refunded"`
	Currency       word                   `json:"currency"`
	Captured       flag                   `json:"captured"`
	Disputed       flag                   `json:"disputed"`
	Livemode       flag                   `json:"livemode"`
	Created        moment                 `json:"created"`
	FailureCode    text                   `json:"failure_code"`
	FailureMessage text                   `json:"failure_message"`
	Outcome        object[wireAssessment] `json:"outcome"`
	Intent         ref                    `json:"payment_intent"`
	Metadata       wireTags               `json:"metadata"`

	BalanceTransaction ref                `json:"balance_transaction"`
	Method             object[wireMethod] `json:"payment_method_details"`
	ReceiptURL         text               `json:"receipt_url"`
}

type wireAssessment struct {
	NetworkStatus text `json:"network_status"`
	Reason        text `json:"reason"`
	RiskLevel     text `json:"risk_level"`
	SellerMessage text `json:"seller_message"`
	Type          text `json:"type"`
}

func (c *wireCharge) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, &c.chargeFields, decoding)
}

func (c *chargeFields) name() string { return string(c.ID) }

// known reports whether this is a charge at all, in a state that means something.
func (c *chargeFields) known() bool {
	return c.ID != "" && isOrUnsaid(c.Object, "charge") && (c.Status == "pending" || c.succeeded() || c.Status == "failed") &&
		!c.Amount.odd && !c.AmountCaptured.odd && !c.AmountRefunded.odd && !c.Captured.odd && !c.Livemode.odd
}

func (c *chargeFields) succeeded() bool { return c.Status == "succeeded" }

// whole reports whether nothing is missing from which money would be counted. What is captured says
// also whether something is.
func (c *chargeFields) whole() bool {
	return c.known() && c.Amount.given && c.Currency != "" && (c.Captured.given || c.AmountCaptured.given || !c.succeeded())
}

// taken reports whether the charge is captured.
func (c *chargeFields) taken() bool {
	if c.Captured.given {
		return c.Captured.on
	}
	return c.succeeded() && c.AmountCaptured.or(0) > 0
}

func (p *Provider) charge(c *chargeFields) *provider.Charge {
	out := &provider.Charge{
		ID: p.clean(string(c.ID)), IntentID: p.clean(string(c.Intent)), Status: provider.Status(c.Status), Amount: c.Amount.n,
		AmountRefunded: c.AmountRefunded.n, Currency: p.currency(c.Currency), Captured: c.taken(), Disputed: c.Disputed.on,
		Livemode: p.mode(c.Livemode), Created: c.Created.Time, FailureCode: p.clean(string(c.FailureCode)),
		FailureMessage: p.clean(string(c.FailureMessage)), Tags: c.Metadata.tags(), Details: p.details(c),
	}
	if out.Captured {
		out.AmountCaptured = c.AmountCaptured.or(out.Amount)
		// Stripe counts the part that a partial capture let go as refunded. It was never taken, so
		// it isn't given back.
		out.AmountRefunded = max(0, out.AmountRefunded-(out.Amount-out.AmountCaptured))
	} else {
		out.AmountCaptured = c.AmountCaptured.n
	}
	if o := c.Outcome.at; o != nil {
		out.Outcome = &provider.Assessment{
			NetworkStatus: p.clean(string(o.NetworkStatus)), Reason: p.clean(string(o.Reason)), RiskLevel: p.clean(string(o.RiskLevel)),
			SellerMessage: p.clean(string(o.SellerMessage)), Type: p.clean(string(o.Type)),
		}
	}
	return out
}

// mode is the mode of an object: what isn't said is that of our key, which sees no other.
func (p *Provider) mode(livemode flag) bool {
	if livemode.given {
		return livemode.on
	}
	return p.livemode
}

type wireRefund struct {
	sdk.APIResource `json:"-"`
	refundFields
}

type refundFields struct {
	ID            text     `json:"id"`
	Object        word     `json:"object"`
	Charge        ref      `json:"charge"`
	Status        word     `json:"status"`
	Amount        amount   `json:"amount"`
	Currency      word     `json:"currency"`
	Reason        text     `json:"reason"`
	FailureReason text     `json:"failure_reason"`
	Created       moment   `json:"created"`
	Metadata      wireTags `json:"metadata"`
}

func (r *wireRefund) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, &r.refundFields, decoding)
}

// whole is, for one refund that is read, also one of something else than a charge.
func (r *wireRefund) whole() bool {
	return r.known() && r.Amount.given && r.Currency != ""
}

func (r *refundFields) name() string { return string(r.ID) }

func (r *refundFields) known() bool {
	switch provider.Status(r.Status) {
	case provider.Pending, provider.Succeeded, provider.Failed, provider.Canceled, provider.RequiresAction:
		return r.ID != "" && isOrUnsaid(r.Object, "refund") && !r.Amount.odd
	}
	return false
}

func (r *refundFields) whole() bool {
	return r.known() && r.Amount.given && r.Currency != "" && r.Charge != ""
}

func (p *Provider) refund(r *refundFields) *provider.Refund {
	return &provider.Refund{
		ID: p.clean(string(r.ID)), ChargeID: p.clean(string(r.Charge)), Status: provider.Status(r.Status), Amount: r.Amount.n,
		Currency: p.currency(r.Currency), Reason: p.clean(string(r.Reason)), FailureReason: p.clean(string(r.FailureReason)), Created: r.Created.Time,
		Tags: r.Metadata.tags(),
	}
}

// wireList is a page of a list.
type wireList[T any] struct {
	sdk.APIResource `json:"-"`
	page            pageFields[T]
}

type pageFields[T any] struct {
	Object  word `json:"object"`
	HasMore flag `json:"has_more"`
	Data    []T  `json:"data"`
}

func (l *wireList[T]) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, &l.page, decoding) }
