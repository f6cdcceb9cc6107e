package stripe

import (
	"context"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/stripe/stripe-go/v76/form"

	"paidonce/provider"
)

// maxMetadata is Stripe's limit of pairs, of which our own take their share.
const maxMetadata = 50

// Charge creates a charge under r.IdempotencyKey. Errors are *provider.Error.
func (p *Provider) Charge(ctx context.Context, r *provider.ChargeRequest) (provider.ChargeOutcome, error) {
	c := &wireCharge{}
	res := p.post(ctx, "/v1/charges", r.IdempotencyKey, r.Tags, chargeBody(r), c)
	return p.newCharge(r, res, c)
}

func chargeBody(r *provider.ChargeRequest) *form.Values {
	body := &form.Values{}
	body.Add("amount", strconv.FormatInt(r.Amount, 10))
	body.Add("currency", r.Currency)
	body.Add("capture", strconv.FormatBool(r.Capture))
	for _, f := range [...][2]string{
		{"customer", r.Customer}, {"source", r.Source}, {"description", r.Description}, {"receipt_email", r.ReceiptEmail},
		{"statement_descriptor_suffix", r.StatementDescriptorSuffix}, {"statement_descriptor", r.StatementDescriptor},
	} {
		if f[1] != "" {
			body.Add(f[0], f[1])
		}
	}
	addShipping(body, r.Shipping)
	addMetadata(body, ownPairs(r), r.Metadata)
	return body
}

// newCharge is what the answer to a request for a charge says.
func (p *Provider) newCharge(r *provider.ChargeRequest, res *result, c *wireCharge) (provider.ChargeOutcome, error) {
	if out, over, err := p.noCharge(res); over {
		return out, err
	}
	if !c.known() {
		return provider.ChargeOutcome{}, p.unreadable(res, "a charge")
	}
	// The key decides what Stripe answers: if another operation had used it, this would be its
	// charge.
	switch {
	case !c.Amount.is(r.Amount) || !sameCurrency(c.Currency, r.Currency):
		return provider.ChargeOutcome{}, p.contradiction(res, "charge %s is over %d %s, asked for were %d %s",
			c.ID, c.Amount.or(r.Amount), c.Currency, r.Amount, r.Currency)
	case !c.Livemode.is(r.Livemode):
		return provider.ChargeOutcome{}, p.contradiction(res, "charge %s has livemode %t", c.ID, c.Livemode.on)
	case !c.Metadata.are(r.Tags):
		return provider.ChargeOutcome{}, p.contradiction(res, "charge %s carries the tags of another operation", c.ID)
	}
	p.clock.compare(res.header, c.Created.Time)
	c.Amount.assume(r.Amount)
	c.Livemode.assume(r.Livemode)
	c.Captured.assume(r.Capture && c.succeeded())
	out := p.charge(&c.chargeFields)
	out.Currency, out.Tags = strings.ToLower(r.Currency), r.Tags
	return provider.ChargeOutcome{Charge: out, RequestID: p.requestID(res)}, nil
}

// noCharge handles every result but a 2xx one; over tells that there is nothing more to look at.
func (p *Provider) noCharge(res *result) (out provider.ChargeOutcome, over bool, err error) {
	refusal, failed := p.settle(res)
	switch {
	case failed != nil:
		return out, true, failed
	case refusal != nil:
		return provider.ChargeOutcome{Refusal: refusal, RequestID: p.requestID(res)}, true, nil
	}
	return out, false, nil
}

// Capture captures a charge. Stripe takes no metadata here, so a capture is found again by the
// state of its charge, not by tags; for the same reason a refusal with the code
// charge_already_captured may be about our own earlier attempt, when Stripe has forgotten its key.
func (p *Provider) Capture(ctx context.Context, r provider.CaptureRequest) (provider.ChargeOutcome, error) {
	if r.IntentID != "" {
		return p.captureIntent(ctx, r)
	}
	if r.ChargeID == "" {
		return provider.ChargeOutcome{}, noID("a charge")
	}
	body := &form.Values{}
	body.Add("amount", strconv.FormatInt(r.Amount, 10))
	var c wireCharge
	res := p.post(ctx, "/v1/charges/"+url.PathEscape(r.ChargeID)+"/capture", r.IdempotencyKey, r.Tags, body, &c)
	if out, over, err := p.noCharge(res); over {
		return out, err
	}
	if !c.known() {
		return provider.ChargeOutcome{}, p.unreadable(res, "a charge")
	}
	if string(c.ID) != r.ChargeID {
		return provider.ChargeOutcome{}, p.contradiction(res, "charge %s was captured, asked for was %s", c.ID, r.ChargeID)
	}
	return p.capturedCharge(res, &c.chargeFields, r.Amount)
}

// capturedCharge is the charge of a capture's answer, when it is captured as was asked for. The
// request can't tell its currency, nor an amount of which a part was captured.
func (p *Provider) capturedCharge(res *result, c *chargeFields, amount int64) (provider.ChargeOutcome, error) {
	if !c.Captured.is(true) || !c.AmountCaptured.is(amount) {
		return provider.ChargeOutcome{}, p.contradiction(res, "charge %s has %d captured, asked for were %d", c.ID, c.AmountCaptured.n, amount)
	}
	c.Captured.assume(true)
	c.AmountCaptured.assume(amount)
	c.Amount.assume(amount)
	return provider.ChargeOutcome{Charge: p.charge(c), RequestID: p.requestID(res)}, nil
}

// Refund gives money of a captured charge back. A refund that succeeded can still fail days later;
// Stripe tells that by webhook.
func (p *Provider) Refund(ctx context.Context, r provider.RefundRequest) (provider.RefundOutcome, error) {
	if r.ChargeID == "" {
		return provider.RefundOutcome{}, noID("a charge")
	}
	body := &form.Values{}
	body.Add("charge", r.ChargeID)
	body.Add("amount", strconv.FormatInt(r.Amount, 10))
	if r.Reason != "" {
		body.Add("reason", r.Reason)
	}
	addMetadata(body, ownPairs(&provider.ChargeRequest{Tags: r.Tags, Claim: r.Claim}), r.Metadata)
	var w wireRefund
	res := p.post(ctx, "/v1/refunds", r.IdempotencyKey, r.Tags, body, &w)
	refusal, failed := p.settle(res)
	switch {
	case failed != nil:
		return provider.RefundOutcome{}, failed
	case refusal != nil:
		return provider.RefundOutcome{Refusal: refusal, RequestID: p.requestID(res)}, nil
	case !w.known():
		return provider.RefundOutcome{}, p.unreadable(res, "a refund")
	case !w.Amount.is(r.Amount) || w.Charge != "" && string(w.Charge) != r.ChargeID:
		return provider.RefundOutcome{}, p.contradiction(res, "refund %s is over %d of %s, asked for were %d of %s",
			w.ID, w.Amount.or(r.Amount), w.Charge, r.Amount, r.ChargeID)
	case !w.Metadata.are(r.Tags):
		return provider.RefundOutcome{}, p.contradiction(res, "refund %s carries the tags of another operation", w.ID)
	}
	w.Amount.assume(r.Amount)
	out := p.refund(&w.refundFields)
	out.ChargeID, out.Tags = r.ChargeID, r.Tags
	return provider.RefundOutcome{Refund: out, RequestID: p.requestID(res)}, nil
}

func addShipping(body *form.Values, s *provider.Shipping) {
	if s == nil {
		return
	}
	for _, t := range s.Texts() {
		if *t.Text != "" {
			body.Add(t.Param(), *t.Text)
		}
	}
}

func noID(what string) *provider.Error {
	return &provider.Error{Kind: provider.Conflict, Message: what + " can't be asked for without its id at the provider"}
}

// ownPairs are our own pairs of metadata; those without a value are not sent.
func ownPairs(r *provider.ChargeRequest) [][2]string {
	return [][2]string{
		{provider.MetadataOperation, r.Tags.Operation}, {provider.MetadataInstallation, r.Tags.Installation},
		{provider.MetadataClaim, r.Claim}, {provider.MetadataReference, r.Reference}, {provider.MetadataDuplicateOf, r.DuplicateOf},
	}
}

// addMetadata adds our pairs and the client's, of whom a client can't set ours. Stripe takes 50 in
// all. No more are claimed today; of what earlier versions claimed, the first in key order that fit
// beside ours go along.
func addMetadata(body *form.Values, ours [][2]string, client map[string]string) {
	left := maxMetadata
	for _, pair := range ours {
		if pair[1] != "" {
			body.Add("metadata["+pair[0]+"]", pair[1])
			left--
		}
	}
	for _, k := range slices.Sorted(maps.Keys(client)) {
		if slices.ContainsFunc(ours, func(pair [2]string) bool { return pair[0] == k }) {
			continue
		}
		if left == 0 {
			return
		}
		left--
		body.Add("metadata["+k+"]", client[k])
	}
}
