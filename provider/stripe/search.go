package stripe

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/stripe/stripe-go/v76/form"

	"paidonce/provider"
)

const (
	// How many walks from the newest on go on at once: Stripe allows some 25 to 100 reads a second
	// in all, and the slices want some of them.
	walksMax = 4
	// Look-ups whose windows begin this close to each other share a walk: none is made to wait for
	// many more pages than its own.
	shareWithin = 15 * time.Minute
	// How many pages such a walk reads: a quiet account has all that is near in one or two. Where
	// ten are not enough the window is read in slices.
	walkPages = 10
	// A look-up that takes longer is given up. Who asks has less time as a rule; this is for those
	// that bring no end of their own.
	lookupLimit = 5 * time.Minute
	// How many searches go on at once: Stripe allows 20 a second.
	searchesMax = 4
	// How many hits a search is asked for: one is usual, and two are for an operator already.
	searchHits = 10
)

// searches are the look-ups through one list of Stripe's. Each begins with a walk from the newest
// object on, shared by whoever was asked for while the last walks went on: after an outage
// thousands of operations look for their charges, and each would read the same pages. What a few
// pages do not settle is read in slices of time; see slices.go.
type searches[F, T any] struct {
	provider *Provider
	path     string
	look     func(*F) passed
	whole    func(*F) bool
	hit      func(*F) *T
	// one object by its id; nil: there is none
	get  func(ctx context.Context, id string) (*T, error)
	tags func(*T) provider.Tags

	mu        sync.Mutex
	waiting   []*search[T] // for a walk
	walks     int
	horizon   time.Time // how far back the last walk came that was cut short
	grid      grid[T]
	known     known
	searching chan struct{}
}

// passed is what a look-up has to know of an object that it passes.
type passed struct {
	id      string
	tags    provider.Tags
	created time.Time // zero where it doesn't say
}

// search is a look-up that goes on. All but the first two fields are guarded by the mutex of its
// searches.
type search[T any] struct {
	provider.Lookup
	done chan struct{}

	asked   time.Time
	ended   bool // done is closed, or nobody waits for it any more
	started bool // a page was read for it
	brief   bool // its time is over: it ends with the next page
	hits    []T
	err     error

	todo      []*slice // not read since it was asked for, the nearest first
	again     []job[T] // pages that have what it looks for, and were read before
	rereading int      // of these, how many are being read
	cut       bool     // its window is wider than todo
	hashed    uint64
}

// FindCharge looks for the charges of the window that carry exactly l.Tags, failed ones included. A
// zero From leaves that side open, and a zero To ends at Stripe's present. Hits are those of the
// first page that has any; what an earlier look-up has passed is read by its id. That there is none
// is the word of a complete look-up that was begun after this call; anything else is an error, of
// the kind Incomplete when there is just more to read.
func (p *Provider) FindCharge(ctx context.Context, l provider.Lookup) ([]provider.Charge, error) {
	return p.charges.find(ctx, l)
}

func (q *searches[F, T]) find(ctx context.Context, l provider.Lookup) ([]T, error) {
	if untagged(l.Tags) {
		return nil, noTags()
	}
	// else a walk that is quick enough would answer somebody who has no time left
	if ctx.Err() != nil {
		return nil, &provider.Error{Kind: provider.Unknown, Message: "the look-up had no time"}
	}
	ctx, cancel := context.WithTimeout(ctx, lookupLimit)
	defer cancel()
	began := time.Now()
	if got := q.readKnown(ctx, l); got != nil {
		return []T{*got}, nil
	}
	if l.Within > 0 {
		l.Within = max(l.Within-time.Since(began), time.Millisecond)
	}
	s := &search[T]{Lookup: l, done: make(chan struct{}), asked: time.Now(), hashed: hashOf(l.Tags)}
	if off := q.provider.clock.skew(); off != 0 {
		s.stamped(off)
	}
	q.mu.Lock()
	switch {
	case !q.horizon.IsZero() && !l.From.IsZero() && !l.To.IsZero() && l.To.Add(allowance).Before(q.horizon):
		q.digSlices(s) // no walk came that far
	default:
		q.waiting = append(q.waiting, s)
		if q.walks < walksMax {
			q.walks++
			go q.runWalks()
		}
	}
	q.mu.Unlock()
	var brief <-chan time.Time
	if l.Within > 0 {
		t := time.NewTimer(l.Within)
		defer t.Stop()
		brief = t.C
	}
	for {
		select {
		case <-s.done:
			return s.hits, s.err
		case <-brief:
			q.mu.Lock()
			if s.brief = true; s.started {
				q.finish(s, s.incomplete())
			}
			q.mu.Unlock()
		case <-ctx.Done():
			q.mu.Lock()
			q.finish(s, s.incomplete())
			q.mu.Unlock()
		}
	}
}

// stamped widens a window, which is in the time that Date tells, to where "created" puts what was
// made.
func (s *search[T]) stamped(off time.Duration) {
	if !s.From.IsZero() {
		s.From = s.From.Add(min(off, 0))
	}
	if !s.To.IsZero() {
		s.To = s.To.Add(max(off, 0))
	}
	if !s.Near.IsZero() {
		s.Near = s.Near.Add(off)
	}
}

// incomplete is what a look-up that is cut short comes to. Of a list that was never seen to answer
// nothing at all is known.
func (s *search[T]) incomplete() error {
	kind := provider.Unknown
	if s.started {
		kind = provider.Incomplete
	}
	return &provider.Error{Kind: kind, Message: "the look-up was not over in time"}
}

// finish ends a look-up, once. The caller holds the mutex.
func (q *searches[F, T]) finish(s *search[T], err error) {
	if s.ended {
		return
	}
	s.ended = true
	if s.err == nil {
		s.err = err
	}
	if s.err != nil {
		s.hits = nil
	}
	q.grid.leave(s)
	close(s.done)
}

// runWalks makes walks until nobody waits for one.
func (q *searches[F, T]) runWalks() {
	for {
		group := q.take()
		if len(group) == 0 {
			return
		}
		q.walk(group)
	}
}

// take takes the look-up that has waited longest, and all that can share its walk.
func (q *searches[F, T]) take() (group []*search[T]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = living(q.waiting)
	if len(q.waiting) == 0 {
		q.walks--
		return nil
	}
	first, rest := q.waiting[0], q.waiting[:0:0]
	for _, s := range q.waiting {
		if s.From.IsZero() == first.From.IsZero() && s.From.Sub(first.From).Abs() <= shareWithin {
			group = append(group, s)
		} else {
			rest = append(rest, s)
		}
	}
	q.waiting = rest
	return group
}

func living[T any](all []*search[T]) []*search[T] {
	alive := all[:0:0]
	for _, s := range all {
		if !s.ended {
			alive = append(alive, s)
		}
	}
	return alive
}

// walk reads the list for a group of look-ups, from the newest object on, to one whole page beyond
// the earliest of their windows: a provider whose "created" is minutes off its Date still shows
// what is there.
func (q *searches[F, T]) walk(group []*search[T]) {
	from := group[0].From
	for _, s := range group {
		if s.From.Before(from) {
			from = s.From
		}
	}
	query := listQuery()
	var w walked
	for range walkPages {
		beyond := !from.IsZero() && w.before(from.Add(-allowance))
		// it belongs to all who wait
		items, more, err := page[F](context.Background(), q.provider, q.path, query)
		if err == nil {
			err = pass(q, &w, items, more)
		}
		q.mu.Lock()
		if err == nil {
			q.show(items, group)
		}
		whole := err == nil && (!more || beyond && !w.mixed)
		for _, s := range group {
			if err != nil || whole {
				q.finish(s, err)
			} else if s.brief {
				q.finish(s, s.incomplete())
			}
		}
		group = living(group)
		q.mu.Unlock()
		if len(group) == 0 {
			return
		}
		query.Set("starting_after", w.last)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.horizon = w.oldest
	for _, s := range group {
		q.digSlices(s)
	}
}

// walked is how far a walk has come.
type walked struct {
	last   string
	oldest time.Time // zero as long as nothing said
	// the list isn't newest first, as Stripe's is, so nothing is known of what comes later
	mixed bool
}

// before reports whether whatever comes later was created before t.
func (w *walked) before(t time.Time) bool { return !w.oldest.IsZero() && w.oldest.Before(t) }

// pass notes a page, and refuses one that is none.
func pass[F, T any](q *searches[F, T], w *walked, items []F, more bool) error {
	was := w.last
	for i := range items {
		o := q.look(&items[i])
		if o.id == "" {
			return q.provider.notList()
		}
		w.last = o.id
		switch {
		case o.created.IsZero():
		case w.oldest.IsZero() || !o.created.After(w.oldest):
			w.oldest = o.created
		default:
			w.mixed = true
		}
	}
	if more && w.last == was {
		return q.provider.noNextPage()
	}
	return nil
}

// show lets look-ups see the objects of a page. One that finds something is over. The caller holds
// the mutex.
func (q *searches[F, T]) show(items []F, to []*search[T]) {
	wanted := make(map[provider.Tags][]*search[T], len(to))
	for _, s := range to {
		wanted[s.Tags] = append(wanted[s.Tags], s)
		s.started = true
	}
	var found []*search[T]
	for i := range items {
		o := q.look(&items[i])
		if !untagged(o.tags) && o.id != "" {
			q.known.note(hashOf(o.tags), o.id)
		}
		for _, s := range wanted[o.tags] {
			switch {
			case s.ended:
				continue
			case q.whole(&items[i]):
				s.hits = append(s.hits, *q.hit(&items[i]))
			default:
				s.err = q.provider.unreadableHit(o.id)
			}
			found = append(found, s)
		}
	}
	for _, s := range found {
		q.finish(s, nil)
	}
}

// askSearch asks Stripe's search for what the walk has not come to: one read, where the slices are
// hundreds. It lags by a minute or so, thus what it finds counts once it was read by its id, and
// what it doesn't find says nothing. A provider may have no search.
func (q *searches[F, T]) askSearch(s *search[T]) {
	q.searching <- struct{}{}
	defer func() { <-q.searching }()
	q.mu.Lock()
	over := s.ended
	q.mu.Unlock()
	if over {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), q.provider.timeout)
	defer cancel()
	query := &form.Values{}
	query.Add("query", "metadata['"+provider.MetadataOperation+"']:'"+strings.Map(unquoted, s.Tags.Operation)+"'")
	query.Add("limit", strconv.Itoa(searchHits))
	var list wireList[F]
	res := q.provider.get(ctx, q.path+"/search", query, &list, onePage)
	if refusal, failed := q.provider.settle(res); refusal != nil || failed != nil {
		return
	}
	var hits []T
	for i := range list.page.Data {
		o := q.look(&list.page.Data[i])
		if o.tags != s.Tags || o.id == "" {
			continue
		}
		got, err := q.get(ctx, o.id)
		if err != nil {
			return
		}
		if got != nil && q.tags(got) == s.Tags {
			hits = append(hits, *got)
		}
	}
	if len(hits) == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if !s.ended {
		s.hits = hits
		q.finish(s, nil)
	}
}

// unquoted leaves out what would end a search's string. Operations' ids are letters and digits.
func unquoted(r rune) rune {
	if r == '\\' || r == '\'' {
		return -1
	}
	return r
}
