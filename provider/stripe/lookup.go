package stripe

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	sdk "github.com/stripe/stripe-go/v76"
	"github.com/stripe/stripe-go/v76/form"

	"paidonce/provider"
)

// allowance widens a look-up's window on both sides. The window comes from our database's clock, "created" from Stripe's,
// and Stripe may carry a request out well after it was sent. Too wide costs pages; too narrow would prove an absence that
// isn't one.
const allowance = 5 * time.Minute

const pageSize = 100

// GetCharge reads one charge. Only Stripe's own "no such charge" is nil, nil.
func (p *Provider) GetCharge(ctx context.Context, id string) (*provider.Charge, error) {
	if id == "" {
		return nil, noID()
	}
	var c wireCharge
	res := p.get(ctx, "/v1/charges/"+url.PathEscape(id), nil, &c, oneObject)
	refusal, failed := p.settle(res)
	switch {
	case failed != nil:
		return nil, failed
	case refusal != nil && res.status == http.StatusNotFound && refusal.Code == string(sdk.ErrorCodeResourceMissing) && !otherMode(refusal):
		return nil, nil
	case refusal != nil:
		return nil, p.refusedRead(res, refusal)
	case !c.whole():
		return nil, p.unreadable(res, "a charge")
	case c.ID != id:
		return nil, p.contradiction(res, "asked for charge %s, got %s", id, c.ID)
	}
	return p.charge(&c.chargeFields), nil
}

// otherMode tells that the object exists, but in the mode that our key isn't for.
func otherMode(r *provider.Refusal) bool {
	return strings.Contains(r.Message, "a similar object exists in")
}

// refusedRead is a read that Stripe wouldn't do: nothing is known, and an operator should know why.
func (p *Provider) refusedRead(res *result, r *provider.Refusal) *provider.Error {
	e := p.failure(res, provider.Unknown)
	e.Code, e.Message, e.Alert = r.Code, r.Message, otherMode(r)
	return e
}

// FindCharge lists the charges of the window and gives every one that carries exactly l.Tags, failed ones included. A zero
// From or To leaves that side open. Anything but a complete walk through all pages is an error.
func (p *Provider) FindCharge(ctx context.Context, l provider.Lookup) ([]provider.Charge, error) {
	query := &form.Values{}
	if !l.From.IsZero() {
		query.Add("created[gte]", strconv.FormatInt(l.From.Add(-allowance).Unix(), 10))
	}
	if !l.To.IsZero() {
		query.Add("created[lte]", strconv.FormatInt(l.To.Add(allowance).Unix()+1, 10)) // up to the end of that second
	}
	var hits []provider.Charge
	err := walk(ctx, p, "/v1/charges", query, l.Tags, func(c *chargeFields) (string, bool) {
		if !c.whole() {
			return "", false
		}
		if c.Metadata.tags() == l.Tags {
			hits = append(hits, *p.charge(c))
		}
		return c.ID, true
	})
	if err != nil {
		return nil, err
	}
	return hits, nil
}

// FindRefund lists the refunds of l.ChargeID and gives every one that carries exactly l.Tags.
func (p *Provider) FindRefund(ctx context.Context, l provider.Lookup) ([]provider.Refund, error) {
	if l.ChargeID == "" {
		return nil, noID()
	}
	query := &form.Values{}
	query.Add("charge", l.ChargeID)
	var hits []provider.Refund
	err := walk(ctx, p, "/v1/refunds", query, l.Tags, func(r *refundFields) (string, bool) {
		if !r.whole() || r.Charge != l.ChargeID {
			return "", false
		}
		if r.Metadata.tags() == l.Tags {
			hits = append(hits, *p.refund(r))
		}
		return r.ID, true
	})
	if err != nil {
		return nil, err
	}
	return hits, nil
}

// walk goes through all pages of a list, newest first, and hands every object to take, which gives its id. The end is
// where Stripe says that there is no more; whatever looks like an end but isn't said to be one is an error, because the
// caller draws a conclusion from what is missing.
func walk[T any](ctx context.Context, p *Provider, path string, query *form.Values, tags provider.Tags, take func(*T) (string, bool)) error {
	if tags.Operation == "" || tags.Installation == "" {
		return &provider.Error{Kind: provider.Conflict, Message: "a look-up needs the operation's and the installation's tag"}
	}
	query.Add("limit", strconv.Itoa(pageSize))
	cursor := ""
	for range p.pages {
		if cursor != "" {
			query.Set("starting_after", cursor)
		}
		var list wireList[T]
		res := p.get(ctx, path, query, &list, onePage)
		refusal, failed := p.settle(res)
		if failed != nil {
			return failed
		}
		if refusal != nil {
			return p.refusedRead(res, refusal)
		}
		page := &list.page
		if page.Object != "list" || page.HasMore == nil || page.Data == nil {
			return p.unreadable(res, "a list")
		}
		last := ""
		for i := range page.Data {
			var whole bool
			if last, whole = take(&page.Data[i]); !whole {
				return p.unreadable(res, "a list of what was asked for")
			}
		}
		if !*page.HasMore {
			return nil
		}
		if last == "" || last == cursor {
			return p.unreadable(res, "a list that goes on: it has more, but no next page")
		}
		cursor = last
	}
	return &provider.Error{Kind: provider.Unknown, Message: "the look-up was given up after " + strconv.Itoa(p.pages) + " pages"}
}
