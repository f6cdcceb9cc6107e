package stripe

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	json "github.com/go-json-experiment/json"
	sdk "github.com/stripe/stripe-go/v76"
	"github.com/stripe/stripe-go/v76/form"

	"paidonce/provider"
)

// The books are the provider's lists, read whole: for the audit, and to rebuild what our database has
// forgotten. Their objects are decoded with everything that we once sent; on a charge's own path nobody
// needs that, and nobody pays for it.

// terms are the fields with which an object was made.
type terms struct {
	Customer     ref                     `json:"customer"`
	Description  text                    `json:"description"`
	ReceiptEmail text                    `json:"receipt_email"`
	Suffix       text                    `json:"statement_descriptor_suffix"`
	Reason       text                    `json:"reason"`
	Pairs        object[map[string]text] `json:"metadata"`
}

// terms gives back what we sent, as it was: cleaned as the provider's own words are, a line's end or a
// long text of a client's would come back as another.
func (p *Provider) terms(t *terms) *provider.Terms {
	out := &provider.Terms{
		Customer: storable(t.Customer), Description: storable(t.Description), ReceiptEmail: storable(t.ReceiptEmail),
		StatementDescriptorSuffix: storable(t.Suffix), Reason: storable(t.Reason), Metadata: map[string]string{},
	}
	if t.Pairs.at == nil {
		return out
	}
	for k, v := range *t.Pairs.at {
		switch k {
		case provider.MetadataOperation, provider.MetadataInstallation:
		case provider.MetadataClaim:
			out.Claim = string(v)
		default:
			out.Metadata[storable(k)] = storable(v)
		}
	}
	return out
}

// storable leaves out what no database of ours could have kept: somebody else wrote it.
func storable[S ~string](s S) string {
	return strings.ReplaceAll(strings.ToValidUTF8(string(s), "\uFFFD"), "\x00", "")
}

type bookedCharge struct {
	fields chargeFields
	terms  terms
}

type bookedRefund struct {
	fields refundFields
	terms  terms
}

type bookedIntent struct {
	fields intentFields
	terms  terms
}

// Their fields are decoded in two goes, since both halves have a field named metadata.

func (c *bookedCharge) UnmarshalJSON(b []byte) error { return decodeBoth(b, &c.fields, &c.terms) }
func (r *bookedRefund) UnmarshalJSON(b []byte) error { return decodeBoth(b, &r.fields, &r.terms) }
func (i *bookedIntent) UnmarshalJSON(b []byte) error { return decodeBoth(b, &i.fields, &i.terms) }

func decodeBoth(b []byte, fields, terms any) error {
	if err := json.Unmarshal(b, fields, decoding); err != nil {
		return err
	}
	return json.Unmarshal(b, terms, decoding)
}

// listPages bounds a walk through the books: ten million objects in one.
const listPages = 100_000

// listTries is how often a page of the books is asked for: of a thousand pages each of which fails once in
// ten times, nine walks in ten come to their end.
const listTries = 4

// period is a list's filter. Stripe counts in seconds, so both ends are cut down to theirs; a zero to
// leaves that end open.
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
	return walk(ctx, p, "/v1/charges", period(from, to), listPages, listTries, func(c *bookedCharge) (string, error) {
		return booked(p, c.fields.name(), c.fields.Metadata, c.fields.whole(), func() error {
			out := p.charge(&c.fields)
			out.Terms = p.terms(&c.terms)
			return each(*out)
		})
	})
}

// ListRefunds hands every refund of [from, to) to each, newest first.
func (p *Provider) ListRefunds(ctx context.Context, from, to time.Time, each func(provider.Refund) error) error {
	return walk(ctx, p, "/v1/refunds", period(from, to), listPages, listTries, func(r *bookedRefund) (string, error) {
		return booked(p, r.fields.name(), r.fields.Metadata, r.fields.whole(), func() error {
			out := p.refund(&r.fields)
			out.Terms = p.terms(&r.terms)
			return each(*out)
		})
	})
}

// ListIntents hands every payment intent of [from, to) to each, newest first.
func (p *Provider) ListIntents(ctx context.Context, from, to time.Time, each func(provider.Intent) error) error {
	return walk(ctx, p, intentsPath, period(from, to), listPages, listTries, func(i *bookedIntent) (string, error) {
		return booked(p, i.fields.name(), i.fields.Metadata, i.fields.whole(), func() error {
			out := p.intent(&i.fields)
			out.Terms = p.terms(&i.terms)
			return each(*out)
		})
	})
}

// booked hands an object on that can be judged; of those that cannot, only our own matter.
func booked(p *Provider, id string, tags wireTags, whole bool, each func() error) (string, error) {
	switch {
	case whole:
		return id, each()
	case untagged(tags.tags()): // somebody else's
		return id, nil
	}
	return "", p.halfHit(id)
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
// error with Alert set. A gateway or a double that has no such path answers no id.
func (p *Provider) Account(ctx context.Context) (provider.Account, error) {
	out := provider.Account{Livemode: p.livemode}
	var a wireAccount
	res := p.get(ctx, "/v1/account", nil, &a, oneObject)
	refusal, failed := p.settle(res)
	switch {
	case res.status == http.StatusNotFound || res.status == http.StatusMethodNotAllowed || res.status == http.StatusNotImplemented:
		return out, nil
	case failed != nil:
		return out, failed
	case refusal != nil:
		return out, p.refusedRead(res, refusal)
	case !strings.HasPrefix(string(a.ID), "acct_") || !maybe(a.Object, "account"):
		return out, p.unreadable(res, "an account")
	}
	out.ID = p.clean(string(a.ID))
	return out, nil
}
