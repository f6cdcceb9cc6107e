package stripe

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/stripe/stripe-go/v76/form"

	"paidonce/provider"
)

const (
	// How many walks through the list of charges go on at once: Stripe allows some 25 to 100 reads a second in all.
	walksMax = 4
	// Look-ups whose windows begin this close to each other share a walk: none is made to wait for many more pages than its own.
	shareWithin = 15 * time.Minute
	// A walk that takes longer is given up; its look-ups prove nothing.
	walkLimit = 2 * time.Minute
)

// searches lets look-ups share walks through the list: whatever was asked for while the last walks went on is looked for in one. After an outage
// thousands of operations look for their charges in the same hour, and each would walk through the same pages.
type searches struct {
	mu      sync.Mutex
	waiting []*search
	walks   int
}

type search struct {
	provider.Lookup
	done chan struct{}
	hits []provider.Charge
	err  error
}

// FindCharge lists the charges of the window and gives every one that carries exactly l.Tags, failed ones included. A zero
// From or To leaves that side open. Anything but a complete walk through all pages, begun after this call, is an error.
func (p *Provider) FindCharge(ctx context.Context, l provider.Lookup) ([]provider.Charge, error) {
	if untagged(l.Tags) {
		return nil, noTags()
	}
	s := &search{Lookup: l, done: make(chan struct{})}
	p.searches.mu.Lock()
	p.searches.waiting = append(p.searches.waiting, s)
	if p.searches.walks < walksMax {
		p.searches.walks++
		go p.walkOn(context.WithoutCancel(ctx))
	}
	p.searches.mu.Unlock()
	select {
	case <-s.done:
		return s.hits, s.err
	case <-ctx.Done():
		return nil, &provider.Error{Kind: provider.Unknown, Message: "the look-up was not over in time"}
	}
}

// walkOn makes walks until nobody waits for one.
func (p *Provider) walkOn(ctx context.Context) {
	for {
		group := p.searches.take()
		if len(group) == 0 {
			return
		}
		p.lookFor(ctx, group)
	}
}

// take takes the look-up that has waited longest, and all that can share its walk.
func (q *searches) take() (group []*search) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		q.walks--
		return nil
	}
	first, rest := q.waiting[0], q.waiting[:0:0]
	for _, s := range q.waiting {
		if s.From.IsZero() == first.From.IsZero() && s.From.Sub(first.From).Abs() <= shareWithin && s.To.IsZero() == first.To.IsZero() {
			group = append(group, s)
		} else {
			rest = append(rest, s)
		}
	}
	q.waiting = rest
	return group
}

// lookFor makes one walk for a group of look-ups.
func (p *Provider) lookFor(ctx context.Context, group []*search) {
	ctx, cancel := context.WithTimeout(ctx, walkLimit)
	defer cancel()
	from, to := group[0].From, group[0].To
	wanted := make(map[provider.Tags][]*search, len(group))
	for _, s := range group {
		if s.From.Before(from) {
			from = s.From
		}
		if s.To.After(to) {
			to = s.To
		}
		wanted[s.Tags] = append(wanted[s.Tags], s)
	}
	query := &form.Values{}
	if !from.IsZero() {
		query.Add("created[gte]", strconv.FormatInt(from.Add(-allowance).Unix(), 10))
	}
	if !to.IsZero() {
		query.Add("created[lte]", strconv.FormatInt(to.Add(allowance).Unix()+1, 10)) // up to the end of that second
	}
	err := walk(ctx, p, "/v1/charges", query, p.pages, func(c *chargeFields) (string, bool, error) {
		if c.whole() {
			for _, s := range wanted[c.Metadata.tags()] {
				s.hits = append(s.hits, *p.charge(c))
			}
		}
		return c.ID, c.whole(), nil
	})
	for _, s := range group {
		if err != nil {
			s.hits, s.err = nil, err
		}
		close(s.done)
	}
}
