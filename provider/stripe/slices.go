package stripe

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"paidonce/provider"
)

const (
	// How many slices are read at once: with pages that take a fifth of a second these are 40 reads
	// a second, which leaves Stripe's limit of 100 room for whatever else is read.
	readersMax = 8
	// A slice that ended this long before it was read has all that it will ever have: an object's
	// "created" is when it is made, and a list shows it at once. The minute is for Stripe's own
	// machines.
	settledAfter = time.Minute
	// How long no slice is read after a 429 that doesn't say how long.
	limitPause = time.Second
	// And at most: what asks for more is asked again, while somebody waits.
	limitPauseMax = 30 * time.Second
	// How many blocks of five minutes one look-up reads, the nearest first: ten days.
	blocksMax = 3000
	// How many pages are remembered, at some 900 bytes: what 1,000 charges a second come to in half
	// an hour.
	pagesMax = 20_000
	// How many look-ups are asked for what there is to read. They ask for the same as a rule.
	askedMax = 64
)

// widths are those of slices, in seconds. A block that doesn't fit on a page falls into slices of
// the next width, and so on. All look-ups cut time at the same seconds, so they share what is read.
var widths = [...]int64{300, 30, 3, 1}

// slice is what was created in [from, from + its width), and how far it was read.
type slice struct {
	from  int64
	level int
	parts []*slice // what it fell into

	reading bool      // a page is under way
	began   time.Time // when the walk under way began; zero: none is
	lasting bool      // that walk began when the slice was settled
	cursor  string
	under   []seenPage // of the walk under way
	pages   []seenPage // of the last complete walk: as long as that counts, so does what it saw
	whole   time.Time  // when the last complete walk began; zero: there was none
	final   bool       // and nothing will come to what it saw
}

// seenPage is a page that was read: where it began, and whose objects it has. Of what is remembered
// this is the most, so it is a number for each.
type seenPage struct {
	cursor string
	tags   []uint64
}

// grid has the slices of a list. The mutex of its searches guards it.
type grid[T any] struct {
	blocks  map[int64]*slice
	active  []*search[T] // in the order in which they were asked for
	readers int
	pages   int
	pause   time.Time // no read before
	resets  int       // of the provider's clock, as the grid knows it
}

func (g *grid[T]) leave(s *search[T]) {
	if i := slices.Index(g.active, s); i >= 0 {
		g.active = slices.Delete(g.active, i, i+1)
	}
}

// dig lets a look-up be answered from slices, the nearest to its attempt first. The caller holds
// the mutex.
func (q *searches[F, T]) digSlices(s *search[T]) {
	g := &q.grid
	now, known := q.provider.clock.now()
	// what was settled by another clock isn't
	if resets := q.provider.clock.resets(); g.blocks == nil || resets != g.resets {
		g.blocks, g.pages, g.resets = map[int64]*slice{}, 0, resets
		for _, other := range slices.Clone(g.active) {
			q.finish(other, other.incomplete())
		}
	}
	to := s.To
	if to.IsZero() && known {
		to = now
	}
	if s.From.IsZero() || to.IsZero() {
		s.started = true
		q.finish(s, s.incomplete())
		return
	}
	near := s.Near
	if near.IsZero() {
		near = s.From
	}
	s.todo, s.cut = g.window(s.From.Add(-allowance).Unix(), to.Add(allowance).Unix(), near.Unix())
	for _, b := range s.todo {
		b.recall(s.hashed, func(of *slice, cursor string) { s.again = append(s.again, job[T]{of, cursor, s}) })
	}
	g.active = append(g.active, s)
	q.settleFor(s)
	if !s.ended {
		go q.askSearch(s)
	}
	q.spawn()
}

// window gives the blocks of [from, to], the nearest to near first, and reports whether it left
// some out.
func (g *grid[T]) window(from, to, near int64) (blocks []*slice, cut bool) {
	width := widths[0]
	var at []int64
	for b := from / width * width; b <= to && len(at) < 10*blocksMax; b += width {
		at = append(at, b)
	}
	// What was made is made at its attempt or after it, so of two that are as far the later comes
	// first.
	far := func(b int64) int64 { return max(b-near, near-(b+width-1), 0)*2 - min(max(b-near, 0), 1) }
	slices.SortStableFunc(at, func(a, b int64) int { return int(far(a) - far(b)) })
	if cut = len(at) > blocksMax; cut {
		at = at[:blocksMax]
	}
	for _, b := range at {
		if g.blocks[b] == nil {
			g.blocks[b] = &slice{from: b}
		}
		blocks = append(blocks, g.blocks[b])
	}
	return blocks, cut
}

// recall gives the pages that had an object of these tags.
func (s *slice) recall(hashed uint64, found func(*slice, string)) {
	for _, p := range s.parts {
		p.recall(hashed, found)
	}
	for _, pages := range [][]seenPage{s.pages, s.under} {
		for _, p := range pages {
			if slices.Contains(p.tags, hashed) {
				found(s, p.cursor)
			}
		}
	}
}

// read reports whether all of the slice was read for a look-up of that moment: since then, or for
// good.
func (s *slice) read(asked time.Time) bool {
	if s.final || !s.whole.IsZero() && !s.whole.Before(asked) {
		return true
	}
	final := len(s.parts) > 0
	for _, p := range s.parts {
		if !p.read(asked) {
			return false
		}
		final = final && p.final
	}
	s.final = final
	return len(s.parts) > 0
}

// next gives a slice of which a page should be read now, or nil. earliest is the first moment that
// anybody waits since: a walk that began before it is of use to nobody, unless it lasts.
func (g *grid[T]) next(s *slice, asked, earliest time.Time, now func() (time.Time, bool)) *slice {
	if s.read(asked) {
		return nil
	}
	for _, p := range s.parts {
		if n := g.next(p, asked, earliest, now); n != nil {
			return n
		}
	}
	if len(s.parts) > 0 || s.reading {
		return nil
	}
	if s.began.IsZero() || !s.lasting && s.began.Before(earliest) {
		at, known := now()
		g.pages -= len(s.under)
		s.began, s.cursor, s.under = time.Now(), "", nil
		s.lasting = known && at.Unix() >= s.end()+int64(settledAfter/time.Second)
	}
	return s
}

// job is a page to be read.
type job[T any] struct {
	of     *slice
	cursor string
	again  *search[T] // it was read before, and has what this look-up looks for; nil: a new one
}

// choose gives the next page to read. The caller holds the mutex.
func (q *searches[F, T]) choose() (job[T], bool) {
	g := &q.grid
	for n, s := range g.active {
		if n == askedMax {
			break
		}
		if last := len(s.again) - 1; last >= 0 {
			j := s.again[last]
			s.again = s.again[:last]
			s.rereading++
			return j, true
		}
		for _, b := range s.todo {
			if of := g.next(b, s.asked, g.active[0].asked, q.provider.clock.latest); of != nil {
				of.reading = true
				return job[T]{of: of, cursor: of.cursor}, true
			}
		}
	}
	return job[T]{}, false
}

// spawn sees to it that what there is to read is read. The caller holds the mutex.
func (q *searches[F, T]) spawn() {
	for q.grid.readers < readersMax && len(q.grid.active) > 0 {
		j, some := q.choose()
		if !some {
			return
		}
		q.grid.readers++
		go q.readPages(j)
	}
}

// readPages reads pages until nobody needs one.
func (q *searches[F, T]) readPages(j job[T]) {
	for some := true; some; {
		q.mu.Lock()
		pause := time.Until(q.grid.pause)
		q.mu.Unlock()
		time.Sleep(pause)
		query := listQuery()
		query.Add("created[gte]", strconv.FormatInt(j.of.from, 10))
		query.Add("created[lt]", strconv.FormatInt(j.of.end(), 10))
		if j.cursor != "" {
			query.Add("starting_after", j.cursor)
		}
		items, more, err := page[F](context.Background(), q.provider, q.path, query)
		q.mu.Lock()
		q.note(j, items, more, err)
		q.spawn()
		if j, some = q.choose(); !some {
			q.grid.readers--
		}
		q.mu.Unlock()
	}
}

func (s *slice) end() int64 { return s.from + widths[s.level] }

// note draws the conclusions from a page. The caller holds the mutex.
func (q *searches[F, T]) note(j job[T], items []F, more bool, err error) {
	g, of := &q.grid, j.of
	if j.again == nil {
		of.reading = false
	} else {
		j.again.rereading--
	}
	var limited *provider.Error
	if errors.As(err, &limited) && limited.Kind == provider.RateLimited {
		g.pause = time.Now().Add(min(max(limited.RetryAfter, limitPause), limitPauseMax))
		if j.again != nil {
			j.again.again = append(j.again.again, j)
		}
		return
	}
	seen := seenPage{cursor: j.cursor}
	w := walked{last: j.cursor}
	if err == nil {
		err = pass(q, &w, items, more)
	}
	for i := range items {
		o := q.look(&items[i])
		if at := o.created.Unix(); !o.created.IsZero() && (at < of.from || at >= of.end()) && err == nil {
			err = q.provider.odd("the list has what was created at another time than was asked for: " + o.id)
		}
		if !untagged(o.tags) {
			seen.tags = append(seen.tags, hashOf(o.tags))
		}
	}
	if err != nil {
		for _, s := range slices.Clone(g.active) {
			if s == j.again || j.again == nil && s.wants(of) {
				q.finish(s, err)
			}
		}
		return
	}
	q.show(items, slices.Clone(g.active))
	if j.again == nil {
		g.advance(of, seen, w.last, more)
	}
	for _, s := range slices.Clone(g.active) {
		q.settleFor(s)
	}
	g.forget()
	if g.pages > pagesMax { // they want more than can be remembered
		for _, s := range slices.Clone(g.active) {
			q.finish(s, s.incomplete())
		}
		g.forget()
	}
}

// wants reports whether the look-up still waits for the block of a slice.
func (s *search[T]) wants(of *slice) bool {
	block := of.from / widths[0] * widths[0]
	return slices.ContainsFunc(s.todo, func(b *slice) bool { return b.from == block })
}

// advance notes how far a slice is read.
func (g *grid[T]) advance(of *slice, seen seenPage, last string, more bool) {
	switch {
	case more && len(of.under) == 0 && of.level < len(widths)-1:
		for at := of.from; at < of.end(); at += widths[of.level+1] {
			of.parts = append(of.parts, &slice{from: at, level: of.level + 1})
		}
		of.began = time.Time{}
		return
	case more:
		of.cursor, of.under = last, append(of.under, seen)
	default:
		g.pages -= len(of.pages)
		of.under = append(of.under, seen)
		of.pages, of.under = of.under, nil
		of.whole, of.final, of.began = of.began, of.lasting, time.Time{}
	}
	g.pages++
}

// settleFor ends a look-up for which everything was read, or whose time is over. The caller holds
// the mutex.
func (q *searches[F, T]) settleFor(s *search[T]) {
	s.todo = slices.DeleteFunc(s.todo, func(b *slice) bool { return b.read(s.asked) })
	switch {
	case len(s.todo) == 0 && len(s.again) == 0 && s.rereading == 0 && !s.cut:
		q.finish(s, nil)
	case len(s.todo) == 0 && len(s.again) == 0 && s.rereading == 0, s.brief && s.started:
		q.finish(s, s.incomplete())
	}
}

// forget makes room: blocks that nobody waits for go once there are too many pages.
func (g *grid[T]) forget() {
	if g.pages <= pagesMax {
		return
	}
	wanted := map[int64]bool{}
	for _, s := range g.active {
		for _, b := range s.todo {
			wanted[b.from] = true
		}
	}
	for at, b := range g.blocks {
		if !wanted[at] {
			g.pages -= b.count()
			delete(g.blocks, at)
		}
	}
}

func (s *slice) count() int {
	n := len(s.pages) + len(s.under)
	for _, p := range s.parts {
		n += p.count()
	}
	return n
}
