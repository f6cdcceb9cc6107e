package stripe

import (
	"strings"

	json "github.com/go-json-experiment/json"
	sdk "github.com/stripe/stripe-go/v76"

	"paidonce/provider"
)

type wireDispute struct {
	sdk.APIResource `json:"-"`
	disputeFields
}

type disputeFields struct {
	ID         text                 `json:"id"`
	Object     word                 `json:"object"`
	Charge     ref                  `json:"charge"`
	Intent     ref                  `json:"payment_intent"`
	Status     text                 `json:"status"`
	Reason     text                 `json:"reason"`
	Amount     amount               `json:"amount"`
	Currency   word                 `json:"currency"`
	Livemode   flag                 `json:"livemode"`
	Created    moment               `json:"created"`
	Refundable flag                 `json:"is_charge_refundable"`
	Evidence   object[wireEvidence] `json:"evidence_details"`
}

type wireEvidence struct {
	DueBy       moment `json:"due_by"`
	HasEvidence flag   `json:"has_evidence"`
	PastDue     flag   `json:"past_due"`
	Submissions amount `json:"submission_count"`
}

func (d *wireDispute) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, &d.disputeFields, decoding)
}

func (d *disputeFields) name() string { return string(d.ID) }

// whole takes any status: a new one of Stripe's is for the reader to judge.
func (d *disputeFields) whole() bool {
	return d.ID != "" && isOrUnsaid(d.Object, "dispute") && d.Charge != "" && d.Status != "" && d.Amount.given && d.Amount.n >= 0 &&
		d.Currency != "" && !d.Livemode.odd
}

// refundable is what Stripe says, or what it says of every dispute in this state: an inquiry takes
// no money.
func (d *disputeFields) refundable() bool {
	if d.Refundable.given {
		return d.Refundable.on
	}
	return d.Status == "won" || strings.HasPrefix(string(d.Status), "warning_")
}

func (p *Provider) dispute(d *disputeFields) *provider.Dispute {
	out := &provider.Dispute{
		ID: p.clean(string(d.ID)), ChargeID: p.clean(string(d.Charge)), IntentID: p.clean(string(d.Intent)), Status: p.clean(string(d.Status)),
		Reason: p.clean(string(d.Reason)), Amount: d.Amount.n, Currency: p.currency(d.Currency), Livemode: p.mode(d.Livemode),
		Created: d.Created.Time, Refundable: d.refundable(),
	}
	if e := d.Evidence.at; e != nil {
		out.DueBy, out.HasEvidence, out.PastDue, out.Submissions = e.DueBy.Time, e.HasEvidence.on, e.PastDue.on, max(0, e.Submissions.n)
	}
	return out
}

type wireWarning struct {
	sdk.APIResource `json:"-"`
	warningFields
}

type warningFields struct {
	ID         text   `json:"id"`
	Object     word   `json:"object"`
	Charge     ref    `json:"charge"`
	Intent     ref    `json:"payment_intent"`
	FraudType  text   `json:"fraud_type"`
	Actionable flag   `json:"actionable"`
	Livemode   flag   `json:"livemode"`
	Created    moment `json:"created"`
}

func (w *wireWarning) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, &w.warningFields, decoding)
}

func (w *warningFields) name() string { return string(w.ID) }

func (w *warningFields) whole() bool {
	return w.ID != "" && isOrUnsaid(w.Object, warningObject) && w.Charge != "" && !w.Livemode.odd
}

const warningObject = "radar.early_fraud_warning"

func (p *Provider) warning(w *warningFields) *provider.FraudWarning {
	return &provider.FraudWarning{
		ID: p.clean(string(w.ID)), ChargeID: p.clean(string(w.Charge)), IntentID: p.clean(string(w.Intent)), FraudType: p.clean(string(w.FraudType)),
		Actionable: w.Actionable.on, Livemode: p.mode(w.Livemode), Created: w.Created.Time,
	}
}
