package stripe

import (
	"context"
	"net/url"

	"github.com/stripe/stripe-go/v76/form"

	"paidonce/provider"
)

// CancelIntent cancels an intent. What Stripe refuses because of the intent's state is a refusal
// here, too: whether that state is what was asked for, an earlier cancellation, only the intent
// tells, and the callers read it.
func (p *Provider) CancelIntent(ctx context.Context, r provider.CancelRequest) (provider.IntentOutcome, error) {
	if r.IntentID == "" {
		return provider.IntentOutcome{}, noID("an intent")
	}
	body := &form.Values{}
	if r.Reason != "" {
		body.Add("cancellation_reason", r.Reason)
	}
	expandCharge(body)
	var i wireIntent
	res := p.post(ctx, intentsPath+"/"+url.PathEscape(r.IntentID)+"/cancel", r.IdempotencyKey, r.Tags, body, &i)
	refusal, failed := p.settle(res)
	switch out, err := p.answered(res, refusal, failed, &i, r.IntentID, "cancelled"); {
	case err != nil, out.Refusal != nil:
		return out, err
	case provider.IntentStatus(i.Status) != provider.IntentCanceled:
		return provider.IntentOutcome{}, p.contradiction(res, "intent %s is %s after it was cancelled", i.ID, i.Status)
	}
	return provider.IntentOutcome{Intent: p.intent(&i.intentFields), RequestID: p.requestID(res)}, nil
}
