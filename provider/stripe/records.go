package stripe

import (
	"context"
	"strconv"
	"strings"
	"time"

	json "github.com/go-json-experiment/json"
	sdk "github.com/stripe/stripe-go/v76"
	"github.com/stripe/stripe-go/v76/form"

	"paidonce/provider"
)

// The provider's records are its lists, read whole: for the audit, and to rebuild what our database
// has forgotten. Their objects are decoded with everything that we once sent; on a charge's own
// path nobody needs that, and nobody pays for it.

// terms are the fields with which an object was made.
type terms struct {
	Customer     ref                     `json:"customer"`
	Description  text                    `json:"description"`
	ReceiptEmail text                    `json:"receipt_email"`
	Suffix       text                    `json:"statement_descriptor_suffix"`
	Descriptor   text                    `json:"statement_descriptor"`
	Shipping     object[wireShipping]    `json:"shipping"`
	Reason       text                    `json:"reason"`
	Pairs        object[map[string]text] `json:"metadata"`
}

type wireShipping struct {
	Address        object[wireAddress] `json:"address"`
	Carrier        text                `json:"carrier"`
	Name           text                `json:"name"`
	Phone          text                `json:"phone"`
	TrackingNumber text                `json:"tracking_number"`
}

type wireAddress struct {
	City       text `json:"city"`
	Country    text `json:"country"`
	Line1      text `json:"line1"`
	Line2      text `json:"line2"`
	PostalCode text `json:"postal_code"`
	State      text `json:"state"`
}

// sent is what was sent; nil where there is nothing.
func (w *wireShipping) sent() *provider.Shipping {
	if w == nil {
		return nil
	}
	a := w.Address.at
	if a == nil {
		a = &wireAddress{}
	}
	return &provider.Shipping{
		Address: provider.Address{
			City: storable(a.City), Country: storable(a.Country), Line1: storable(a.Line1), Line2: storable(a.Line2),
			PostalCode: storable(a.PostalCode), State: storable(a.State),
		},
		Carrier: storable(w.Carrier), Name: storable(w.Name), Phone: storable(w.Phone),
		TrackingNumber: storable(w.TrackingNumber),
	}
}

// terms gives back what we sent, as it was: cleaned as the provider's own words are, a line's end
// or a long text of a client's would come back as another.
func (p *Provider) terms(t *terms) *provider.Terms {
	out := &provider.Terms{
		Customer: storable(t.Customer), Description: storable(t.Description), ReceiptEmail: storable(t.ReceiptEmail),
		StatementDescriptorSuffix: storable(t.Suffix), Reason: storable(t.Reason),
		StatementDescriptor: storable(t.Descriptor), Shipping: t.Shipping.at.sent(), Metadata: map[string]string{},
	}
	if t.Pairs.at == nil {
		return out
	}
	for k, v := range *t.Pairs.at {
		switch k {
		case provider.MetadataOperation, provider.MetadataInstallation:
		case provider.MetadataClaim:
			out.Claim = string(v)
		case provider.MetadataReference:
			out.Reference = storable(v)
		case provider.MetadataDuplicateOf:
			out.DuplicateOf = storable(v)
		default:
			out.Metadata[storable(k)] = storable(v)
		}
	}
	return out
}

// storable leaves out what our database could not have kept: somebody else wrote it.
func storable[S ~string](s S) string {
	return strings.ReplaceAll(strings.ToValidUTF8(string(s), "\uFFFD"), "\x00", "")
}

type listedCharge struct {
	fields chargeFields
	terms  terms
}

type listedRefund struct {
	fields refundFields
	terms  terms
}

type listedIntent struct {
	fields intentFields
	terms  terms
}

// Their fields are decoded in two goes, since both halves have a field named metadata.

func (c *listedCharge) UnmarshalJSON(b []byte) error { return decodeBoth(b, &c.fields, &c.terms) }
func (r *listedRefund) UnmarshalJSON(b []byte) error { return decodeBoth(b, &r.fields, &r.terms) }
func (i *listedIntent) UnmarshalJSON(b []byte) error { return decodeBoth(b, &i.fields, &i.terms) }

func decodeBoth(b []byte, fields, terms any) error {
	if err := json.Unmarshal(b, fields, decoding); err != nil {
		return err
	}
	return json.Unmarshal(b, terms, decoding)
}

// listPages bounds a walk through the records: ten million objects in one.
const listPages = 100_000

// listTries is how often a page of the records is asked for: of a thousand pages each of which
// fails once in ten times, nine walks in ten come to their end.
const listTries = 4

// period is a list's filter. Stripe counts in seconds, so both ends are cut down to theirs; a zero
// to leaves that end open.
func period(from, to time.Time) *form.Values {
	query := &form.Values{}
	query.Add("created[gte]", strconv.FormatInt(from.Unix(), 10))
	if !to.IsZero() {
		query.Add("created[lt]", strconv.FormatInt(to.Unix(), 10))
	}
	return query
}

// ListCharges hands every charge of [from, to) to each, newest first.
func (p *Provider) ListCharges(ctx context.Context, from, to time.Time, each func(provider.Charge) error) error {
	return walk(ctx, p, "/v1/charges", period(from, to), listPages, listTries, func(c *listedCharge) (string, error) {
		return listed(p, c.fields.name(), c.fields.Metadata, c.fields.whole(), func() error {
			out := p.charge(&c.fields)
			out.Terms = p.terms(&c.terms)
			return each(*out)
		})
	})
}

// ListRefunds hands every refund of [from, to) to each, newest first.
func (p *Provider) ListRefunds(ctx context.Context, from, to time.Time, each func(provider.Refund) error) error {
	return walk(ctx, p, "/v1/refunds", period(from, to), listPages, listTries, func(r *listedRefund) (string, error) {
		return listed(p, r.fields.name(), r.fields.Metadata, r.fields.whole(), func() error {
			out := p.refund(&r.fields)
			out.Terms = p.terms(&r.terms)
			return each(*out)
		})
	})
}

// ListIntents hands every payment intent of [from, to) to each, newest first.
func (p *Provider) ListIntents(ctx context.Context, from, to time.Time, each func(provider.Intent) error) error {
	return walk(ctx, p, intentsPath, period(from, to), listPages, listTries, func(i *listedIntent) (string, error) {
		return listed(p, i.fields.name(), i.fields.Metadata, i.fields.whole(), func() error {
			out := p.intent(&i.fields)
			out.Terms = p.terms(&i.terms)
			return each(*out)
		})
	})
}

// ListDisputes hands every dispute of [from, to) to each, newest first.
func (p *Provider) ListDisputes(ctx context.Context, from, to time.Time, each func(provider.Dispute) error) error {
	return walk(ctx, p, "/v1/disputes", period(from, to), listPages, listTries, func(d *disputeFields) (string, error) {
		if !d.whole() { // whose it is cannot be told
			return "", p.unreadableHit(d.name())
		}
		return d.name(), each(*p.dispute(d))
	})
}

// booked hands an object on that can be judged; of those that cannot, only our own matter.
func listed(p *Provider, id string, tags wireTags, whole bool, each func() error) (string, error) {
	switch {
	case whole:
		return id, each()
	case untagged(tags.tags()): // somebody else's
		return id, nil
	}
	return "", p.unreadableHit(id)
}

type wireAccount struct {
	sdk.APIResource `json:"-"`
	ID              text `json:"id"`
	Object          word `json:"object"`
}

func (a *wireAccount) UnmarshalJSON(b []byte) error {
	type plain wireAccount
	return json.Unmarshal(b, (*plain)(a), decoding)
}

// Account asks whose account our key is for. A restricted key may not be allowed to ask: that is an
// error of the kind Credentials. A gateway or a double that has no such path answers no id.
func (p *Provider) Account(ctx context.Context) (provider.Account, error) {
	out := provider.Account{Livemode: p.livemode}
	var a wireAccount
	res := p.get(ctx, "/v1/account", nil, &a, oneObject)
	refusal, failed := p.settle(res)
	if refusal != nil {
		failed = p.refusedRead(res, refusal)
	}
	switch {
	case failed != nil && failed.Kind == provider.Unsupported:
		return out, nil
	case failed != nil:
		return out, failed
	case !strings.HasPrefix(string(a.ID), "acct_") || !isOrUnsaid(a.Object, "account"):
		return out, p.unreadable(res, "an account")
	}
	out.ID = p.clean(string(a.ID))
	return out, nil
}
