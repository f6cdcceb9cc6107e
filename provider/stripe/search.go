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
	// How many walks through a list go on at once: Stripe allows some 25 to 100 reads a second in all.
	walksMax = 4
	// Look-ups whose windows begin this close to each other share a walk: none is made to wait for many more pages than its own.
	shareWithin = 15 * time.Minute
	// A walk that takes longer is given up; its look-ups prove nothing.
	walkLimit = 2 * time.Minute
)

// searches lets look-ups share walks through one list of Stripe's: whatever was asked for while the last walks went on is looked for in
// one. After an outage thousands of operations look for their charges in the same hour, and each would walk through the same pages.
type searches[F, T any] struct {
	provider *Provider
	path     string
	look     func(*F) (id string, tags provider.Tags)
	whole    func(*F) bool
	hit      func(*F) *T

	mu      sync.Mutex
	waiting []*search[T]
	walks   int
}

type search[T any] struct {
	provider.Lookup
	done chan struct{}
	hits []T
	err  error
}

// FindCharge lists the charges of the window and gives every one that carries exactly l.Tags, failed ones included. A zero
// From or To leaves that side open. Anything but a complete walk through all pages, begun after this call, is an error.
func (p *Provider) FindCharge(ctx context.Context, l provider.Lookup) ([]provider.Charge, error) {
	return p.charges.find(ctx, l)
}

func (q *searches[F, T]) find(ctx context.Context, l provider.Lookup) ([]T, error) {
	if untagged(l.Tags) {
		return nil, noTags()
	}
	if ctx.Err() != nil { // else a walk that is quick enough would answer somebody who has no time left
		return nil, &provider.Error{Kind: provider.Unknown, Message: "the look-up had no time"}
	}
	s := &search[T]{Lookup: l, done: make(chan struct{})}
	q.mu.Lock()
	q.waiting = append(q.waiting, s)
	if q.walks < walksMax {
		q.walks++
		go q.walkOn(context.WithoutCancel(ctx))
	}
	q.mu.Unlock()
	select {
	case <-s.done:
		return s.hits, s.err
	case <-ctx.Done():
		return nil, &provider.Error{Kind: provider.Unknown, Message: "the look-up was not over in time"}
	}
}

// walkOn makes walks until nobody waits for one.
func (q *searches[F, T]) walkOn(ctx context.Context) {
	for {
		group := q.take()
		if len(group) == 0 {
			return
		}
		q.lookFor(ctx, group)
	}
}

// take takes the look-up that has waited longest, and all that can share its walk.
func (q *searches[F, T]) take() (group []*search[T]) {
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
func (q *searches[F, T]) lookFor(ctx context.Context, group []*search[T]) {
	ctx, cancel := context.WithTimeout(ctx, walkLimit)
	defer cancel()
	from, to := group[0].From, group[0].To
	wanted := make(map[provider.Tags][]*search[T], len(group))
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
	err := walk(ctx, q.provider, q.path, query, q.provider.pages, func(f *F) (string, error) {
		id, tags := q.look(f)
		for _, s := range wanted[tags] {
			if q.whole(f) {
				s.hits = append(s.hits, *q.hit(f))
			} else {
				s.err = q.provider.halfHit(id)
			}
		}
		return id, nil
	})
	for _, s := range group {
		if err != nil {
			s.err = err
		}
		if s.err != nil {
			s.hits = nil
		}
		close(s.done)
	}
}
