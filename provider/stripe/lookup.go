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

// allowance widens a look-up's window on both sides. Both the window and "created" are Stripe's
// time, so this is for what Stripe's own machines may differ by, and for a request that it carries
// out well after it was sent. Too wide costs pages; too narrow would prove an absence that isn't
// one.
const allowance = 5 * time.Minute

const pageSize = 100

// GetCharge reads one charge. Only Stripe's own "no such charge" is nil, nil.
func (p *Provider) GetCharge(ctx context.Context, id string) (*provider.Charge, error) {
	var c wireCharge
	if found, err := p.read(ctx, "/v1/charges/", id, nil, "a charge", &c); !found {
		return nil, err
	}
	return p.charge(&c.chargeFields), nil
}

// GetRefund reads one refund. Only Stripe's own "no such refund" is nil, nil.
func (p *Provider) GetRefund(ctx context.Context, id string) (*provider.Refund, error) {
	var r wireRefund
	if found, err := p.read(ctx, "/v1/refunds/", id, nil, "a refund", &r); !found {
		return nil, err
	}
	return p.refund(&r.refundFields), nil
}

// GetDispute reads one dispute. Only Stripe's own "no such dispute" is nil, nil.
func (p *Provider) GetDispute(ctx context.Context, id string) (*provider.Dispute, error) {
	var d wireDispute
	if found, err := p.read(ctx, "/v1/disputes/", id, nil, "a dispute", &d); !found {
		return nil, err
	}
	return p.dispute(&d.disputeFields), nil
}

// GetFraudWarning reads one early fraud warning. Only Stripe's own "no such warning" is nil, nil.
func (p *Provider) GetFraudWarning(ctx context.Context, id string) (*provider.FraudWarning, error) {
	var w wireWarning
	if found, err := p.read(ctx, "/v1/radar/early_fraud_warnings/", id, nil, "an early fraud warning", &w); !found {
		return nil, err
	}
	return p.warning(&w.warningFields), nil
}

// single is an object that is read by its id.
type single interface {
	wire
	whole() bool
	name() string // its id
}

// read reads one object by its id; what is named with its article. It is there, it isn't by
// Stripe's own word, or nothing is known.
func (p *Provider) read(ctx context.Context, path, id string, query *form.Values, what string, into single) (found bool, err error) {
	if id == "" {
		return false, noID(what)
	}
	res := p.get(ctx, path+url.PathEscape(id), query, into, oneObject)
	refusal, failed := p.settle(res)
	switch {
	case failed != nil:
		return false, failed
	case refusal != nil && p.missing(res, refusal):
		return false, nil
	case refusal != nil:
		return false, p.refusedRead(res, refusal)
	case !into.whole():
		return false, p.unreadable(res, what)
	case into.name() != id:
		return false, p.contradiction(res, "asked for %s with the id %s, got %s", what, id, into.name())
	}
	return true, nil
}

// missing distinguishes Stripe's own "no such object", in a mode that our key is for, from a 404 of
// anything else.
func (p *Provider) missing(res *result, r *provider.Refusal) bool {
	return res.status == http.StatusNotFound && r.Code == string(sdk.ErrorCodeResourceMissing) && !otherMode(r)
}

// otherMode reports whether the object exists, but in the mode that our key isn't for.
func otherMode(r *provider.Refusal) bool {
	return strings.Contains(r.Message, "a similar object exists in")
}

// refusedRead is a read that Stripe wouldn't do: nothing is known, and an operator should know why.
func (p *Provider) refusedRead(res *result, r *provider.Refusal) *provider.Error {
	kind := provider.Unknown
	if otherMode(r) {
		kind = provider.Credentials
	}
	e := p.failure(res, kind)
	e.Code, e.Message = r.Code, r.Message
	return e
}

// FindRefund lists the refunds of l.ChargeID and gives every one that carries exactly l.Tags.
func (p *Provider) FindRefund(ctx context.Context, l provider.Lookup) ([]provider.Refund, error) {
	if l.ChargeID == "" {
		return nil, noID("a charge")
	}
	if untagged(l.Tags) {
		return nil, noTags()
	}
	return p.refundsOf(ctx, l.ChargeID, func(r *refundFields) bool { return r.Metadata.tags() == l.Tags })
}

// RefundsOf lists all refunds of a charge, whoever made them, the newest first.
func (p *Provider) RefundsOf(ctx context.Context, chargeID string) ([]provider.Refund, error) {
	if chargeID == "" {
		return nil, noID("a charge")
	}
	return p.refundsOf(ctx, chargeID, func(*refundFields) bool { return true })
}

// refundsOf lists the refunds of a charge that are wanted.
func (p *Provider) refundsOf(ctx context.Context, chargeID string, wanted func(*refundFields) bool) (hits []provider.Refund, err error) {
	query := &form.Values{}
	query.Add("charge", chargeID)
	err = walk(ctx, p, "/v1/refunds", query, p.pages, 1, func(r *refundFields) (string, error) {
		if r.Charge == "" {
			r.Charge = ref(chargeID)
		}
		if string(r.Charge) != chargeID {
			return "", p.odd("the list of refunds has one of another charge than was asked for")
		}
		if wanted(r) {
			if !r.whole() {
				return "", p.unreadableHit(r.name())
			}
			hits = append(hits, *p.refund(r))
		}
		return r.name(), nil
	})
	if err != nil {
		return nil, err
	}
	return hits, nil
}

// unreadableHit is about an object that carries our tags, so that it matters, and lacks what it
// would be judged by.
func (p *Provider) unreadableHit(id string) *provider.Error {
	return p.odd("the list has what was looked for, but not in a form that can be read: " + id)
}

func (p *Provider) odd(message string) *provider.Error {
	return &provider.Error{Kind: provider.Unknown, Message: p.clean(message)}
}

func untagged(t provider.Tags) bool { return t.Operation == "" || t.Installation == "" }

func noTags() *provider.Error {
	return &provider.Error{Kind: provider.Conflict, Message: "a look-up needs the operation's and the installation's tag"}
}

// pagePause doubles before each further try of a page: Stripe's limits are by the second.
const pagePause = 250 * time.Millisecond

// passes reports whether a read that failed may succeed in a moment.
func retryable(err error) bool {
	switch provider.KindOf(err) {
	case provider.Unknown, provider.NotExecuted, provider.RateLimited, provider.Unreadable:
		return true
	}
	return false
}

// walk goes through all pages of a list, newest first, and hands every object to take, which gives
// its id; only that every object must have. The end is where Stripe says that there is no more;
// whatever looks like an end but isn't said to be one is an error, because the caller draws a
// conclusion from what is missing. Each page but the first is tried up to tries times: a long walk
// that began anew at each failure would hardly ever end, and one that fails at once is better told.
func walk[T any](ctx context.Context, p *Provider, path string, query *form.Values, pages, tries int, take func(*T) (string, error)) error {
	query.Add("limit", strconv.Itoa(pageSize))
	cursor := ""
	for range pages {
		if cursor != "" {
			query.Set("starting_after", cursor)
		}
		items, more, err := page[T](ctx, p, path, query)
		for try := 1; try < tries && cursor != "" && retryable(err); try++ {
			select {
			case <-ctx.Done():
				return err
			case <-time.After(pagePause << (try - 1)):
			}
			items, more, err = page[T](ctx, p, path, query)
		}
		if err != nil {
			return err
		}
		last := ""
		for i := range items {
			var err error
			if last, err = take(&items[i]); err != nil {
				return err
			} else if last == "" {
				return p.notList()
			}
		}
		if !more {
			return nil
		}
		if last == "" || last == cursor {
			return p.noNextPage()
		}
		cursor = last
	}
	return &provider.Error{Kind: provider.Unknown, Message: "the look-up was given up after " + strconv.Itoa(pages) + " pages"}
}

// page reads one page of a list, and whether there are more.
func page[T any](ctx context.Context, p *Provider, path string, query *form.Values) (items []T, more bool, err error) {
	var list wireList[T]
	res := p.get(ctx, path, query, &list, onePage)
	refusal, failed := p.settle(res)
	if failed != nil {
		return nil, false, failed
	}
	if refusal != nil {
		return nil, false, p.refusedRead(res, refusal)
	}
	got := &list.page
	if !isOrUnsaid(got.Object, "list") || !got.HasMore.given || got.Data == nil {
		return nil, false, p.unreadable(res, "a list")
	}
	return got.Data, got.HasMore.on, nil
}

func (p *Provider) notList() *provider.Error {
	return p.odd("the answer is not a list of what was asked for")
}

func (p *Provider) noNextPage() *provider.Error {
	return p.odd("the answer is not a list that goes on: it has more, but no next page")
}

func listQuery() *form.Values {
	query := &form.Values{}
	query.Add("limit", strconv.Itoa(pageSize))
	return query
}
