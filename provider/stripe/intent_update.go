package stripe

import (
	"context"
	"maps"
	"net/url"
	"slices"
	"strconv"

	"github.com/stripe/stripe-go/v76/form"

	"paidonce/provider"
)

// UpdateIntent changes an intent. Stripe refuses what does not fit where the intent stands, and
// takes its last error off. Our own pairs of metadata stay, whatever the client's are named.
func (p *Provider) UpdateIntent(ctx context.Context, r provider.UpdateIntentRequest) (provider.IntentOutcome, error) {
	if r.IntentID == "" {
		return provider.IntentOutcome{}, noID("an intent")
	}
	var i wireIntent
	res := p.post(ctx, intentsPath+"/"+url.PathEscape(r.IntentID), r.IdempotencyKey, r.Tags, updateBody(&r), &i)
	refusal, failed := p.settle(res)
	switch out, err := p.answered(res, refusal, failed, &i, r.IntentID, "updated"); {
	case err != nil, out.Refusal != nil:
		return out, err
	case !i.Metadata.are(r.Tags):
		return provider.IntentOutcome{}, p.contradiction(res, "intent %s carries the tags of another operation", i.ID)
	case r.Amount != 0 && !i.Amount.is(r.Amount) || r.Currency != "" && !sameCurrency(i.Currency, r.Currency):
		return provider.IntentOutcome{}, p.contradiction(res, "intent %s is over %d %s, asked for were %d %s",
			i.ID, i.Amount.n, i.Currency, r.Amount, r.Currency)
	}
	return p.withCharge(res, &i.intentFields, r.Tags)
}

func updateBody(r *provider.UpdateIntentRequest) *form.Values {
	body := &form.Values{}
	if r.Amount != 0 {
		body.Add("amount", strconv.FormatInt(r.Amount, 10))
	}
	addGiven(body, [][2]string{
		{"currency", r.Currency}, {"customer", r.Customer}, {"setup_future_usage", r.SetupFutureUsage},
		{"statement_descriptor_suffix", r.StatementDescriptorSuffix},
	}...)
	addTypes(body, r.PaymentMethodTypes)
	addSource(body, r.Source)
	for _, f := range [...]struct {
		name string
		to   *string
	}{{"description", r.Description}, {"receipt_email", r.ReceiptEmail}} {
		if f.to != nil {
			body.Add(f.name, *f.to)
		}
	}
	ours := ownPairs(&provider.ChargeRequest{})
	for _, k := range slices.Sorted(maps.Keys(r.Metadata)) {
		if !slices.ContainsFunc(ours, func(pair [2]string) bool { return pair[0] == k }) {
			body.Add("metadata["+k+"]", r.Metadata[k])
		}
	}
	expandCharge(body)
	return body
}
