package stripe

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"paidonce/provider"
)

// busy is an account with a charge for each number below count, perSecond of them in each second
// from begin on. A charge's operation is op_N. It is made up as it is asked for.
type busy struct {
	begin, perSecond int64
	count            atomic.Int64
	missing          atomic.Int64 // the number that was never made; -1: none
	ahead            atomic.Int64 // of this machine's clock, in seconds
	searches         bool
	found            string // what its search finds, if not what there is
	unfiltered       bool   // it ignores what is asked for of created
	refuse           atomic.Int64
	delay            time.Duration

	lists, asked, read atomic.Int64 // requests for lists, of its search, for single charges
}

func newBusy(perSecond, count int64) *busy {
	b := &busy{begin: 1_800_000_000, perSecond: perSecond}
	b.missing.Store(-1)
	b.count.Store(count)
	b.setClock(b.begin + count/perSecond + 1200)
	return b
}

func (b *busy) setClock(now int64) { b.ahead.Store(now - time.Now().Unix()) }

func (b *busy) created(n int64) int64 { return b.begin + n/b.perSecond }

func (b *busy) at(n int64) time.Time { return time.Unix(b.created(n), 0) }

func (b *busy) charge(n int64) string {
	return fmt.Sprintf(`{"id":"ch_%d","object":"charge","status":"succeeded","amount":2000,"amount_captured":2000,"currency":"usd","captured":true,"created":%d,"metadata":{"paidonce_operation":"op_%d","paidonce_installation":"test"}}`, n, b.created(n), n)
}

func (b *busy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Date", time.Now().Add(time.Duration(b.ahead.Load())*time.Second).UTC().Format(http.TimeFormat))
	id, single := strings.CutPrefix(r.URL.Path, "/v1/charges/ch_")
	switch {
	case single:
		b.read.Add(1)
		n, err := strconv.ParseInt(id, 10, 64)
		if err != nil || n >= b.count.Load() || n == b.missing.Load() {
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"error":{"type":"invalid_request_error","code":"resource_missing","message":"No such charge"}}`))
			return
		}
		_, _ = w.Write([]byte(b.charge(n)))
	case r.URL.Path == "/v1/charges/search":
		b.asked.Add(1)
		if !b.searches {
			http.NotFound(w, r)
			return
		}
		_, op, _ := strings.Cut(r.FormValue("query"), ":'op_")
		n, _ := strconv.ParseInt(strings.TrimSuffix(op, "'"), 10, 64)
		found := b.found
		if found == "" && n < b.count.Load() && n != b.missing.Load() {
			found = b.charge(n)
		}
		_, _ = w.Write([]byte(`{"object":"search_result","has_more":false,"data":[` + found + `]}`))
	default:
		b.list(w, r)
	}
}

func (b *busy) list(w http.ResponseWriter, r *http.Request) {
	b.lists.Add(1)
	time.Sleep(b.delay)
	if b.refuse.Add(-1) >= 0 {
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	newest, oldest := b.count.Load()-1, int64(0)
	bound := func(name string, otherwise int64) int64 {
		if v := r.FormValue(name); v != "" && !b.unfiltered {
			otherwise, _ = strconv.ParseInt(v, 10, 64)
		}
		return otherwise
	}
	if lt := bound("created[lt]", -1); lt >= 0 {
		newest = min(newest, (lt-b.begin)*b.perSecond-1)
	}
	if gte := bound("created[gte]", -1); gte >= 0 {
		oldest = max(oldest, (gte-b.begin)*b.perSecond)
	}
	if after := strings.TrimPrefix(r.FormValue("starting_after"), "ch_"); after != "" {
		n, _ := strconv.ParseInt(after, 10, 64)
		newest = min(newest, n-1)
	}
	var items []string
	n := newest
	for ; n >= oldest && len(items) < pageSize; n-- {
		if n != b.missing.Load() {
			items = append(items, b.charge(n))
		}
	}
	_, _ = fmt.Fprintf(w, `{"object":"list","has_more":%t,"data":[%s]}`, n >= oldest, strings.Join(items, ","))
}

func (b *busy) connect(t *testing.T) *Provider {
	t.Helper()
	server := httptest.NewServer(b)
	p, err := New(Config{APIKey: "sk_test_x", BaseURL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close(); server.Close() })
	return p
}

// lookup is what an operation whose attempt was when charge n was made asks for.
func (b *busy) lookup(n int64) provider.Lookup {
	return provider.Lookup{
		Tags: provider.Tags{Operation: fmt.Sprint("op_", n), Installation: "test"}, From: b.at(n), To: b.at(n).Add(90 * time.Second),
	}
}

func wantFound(t *testing.T, p *Provider, l provider.Lookup, want int) {
	t.Helper()
	hits, err := p.FindCharge(t.Context(), l)
	if err != nil || len(hits) != want || want == 1 && hits[0].Tags != l.Tags {
		t.Errorf("%s: %d hits, %v; want %d", l.Tags.Operation, len(hits), err, want)
	}
}

// A thousand charges a second: what was made is found within a minute's worth of reads, without a
// search, and what was not is proven within the window's own pages, once for everybody.
func TestBusyAccount(t *testing.T) {
	t.Parallel()
	b := newBusy(1000, 1_800_000) // half an hour
	p := b.connect(t)
	wantFound(t, p, b.lookup(900_123), 1)
	if n := b.lists.Load(); n > 150 {
		t.Errorf("%d pages were read for a charge that was made at the attempt", n)
	}
	const perSecond = 150 // what follows is so many pages for each second of the window
	b = newBusy(perSecond, 1800*perSecond)
	p = b.connect(t)
	b.missing.Store(900 * perSecond)
	wantFound(t, p, b.lookup(b.missing.Load()), 0)
	// Five minutes before, a minute and a half, five minutes after, in whole blocks; and what is
	// read to see how much there is.
	window := int64(20 * 60 * (perSecond/pageSize + 1))
	if n := b.lists.Load(); n > window*11/10 {
		t.Errorf("%d pages were read for a window of at most %d", n, window)
	}
	b.lists.Store(0)
	wantFound(t, p, b.lookup(b.missing.Load()), 0)
	var group sync.WaitGroup
	for n := range int64(40) {
		group.Go(func() { wantFound(t, p, b.lookup(b.missing.Load()+perSecond*n+1), 1) })
	}
	group.Wait()
	if n := b.lists.Load(); n > 150 {
		t.Errorf("%d pages were read again", n)
	}
}

// Look-ups that come at once read what they have in common once.
func TestLookUpsShareSlices(t *testing.T) {
	t.Parallel()
	b := newBusy(100, 120_000)
	p := b.connect(t)
	var group sync.WaitGroup
	for n := range int64(30) {
		l := b.lookup(60_000 + n)
		l.Tags.Operation = fmt.Sprint("op_never_", n)
		group.Go(func() { wantFound(t, p, l, 0) })
	}
	group.Wait()
	if n, window := b.lists.Load(), int64(20*60*100/pageSize); n > 2*window {
		t.Errorf("%d pages were read for 30 look-ups of the same %d", n, window)
	}
}

// However many there are in one second, a look-up comes to its end: it goes on where the last one
// stopped.
func TestLookUpsGoOnWhereTheyStopped(t *testing.T) {
	t.Parallel()
	for _, made := range []bool{true, false} {
		b := newBusy(20_000, 60_000)
		b.delay = time.Millisecond
		p := b.connect(t)
		l := b.lookup(20_001) // on the last page of its second
		if !made {
			b.missing.Store(20_001)
		}
		attempts := 0
		for ; ; attempts++ {
			// a slow machine gets beyond the walk in the end
			l.Within = time.Duration(100+10*attempts) * time.Millisecond
			hits, err := p.FindCharge(t.Context(), l)
			// incomplete; or, on a busy machine, not one page was read in time
			var cut *provider.Error
			if errors.As(err, &cut) && (cut.Kind == provider.Incomplete || cut.Kind == provider.Unknown) && attempts < 500 {
				continue
			}
			if err != nil || (len(hits) == 1) != made {
				t.Fatalf("made %v: %d hits, %v", made, len(hits), err)
			}
			break
		}
		if n := b.lists.Load(); attempts == 0 || n > 700+int64(attempts+1)*(walkPages+readersMax) {
			t.Errorf("made %v: %d pages in %d attempts for 600 of them", made, n, attempts+1)
		}
	}
}

// Of a list that has not answered nothing is known; one that has, and has more, is incomplete.
func TestIncompleteTakesAnAnswer(t *testing.T) {
	t.Parallel()
	b := newBusy(100, 60_000)
	b.missing.Store(30_000)
	b.delay = 20 * time.Millisecond
	l := b.lookup(b.missing.Load())
	l.Within = time.Nanosecond
	if _, err := b.connect(t).FindCharge(t.Context(), l); provider.KindOf(err) != provider.Incomplete {
		t.Errorf("after a page: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	if _, err := b.connect(t).FindCharge(ctx, l); provider.KindOf(err) != provider.Unknown {
		t.Errorf("before a page: %v", err)
	}
	// All there is on one page: that a look-up had little time doesn't matter.
	quiet := newBusy(1, 20)
	quiet.delay = b.delay
	l = quiet.lookup(21)
	l.Within = time.Nanosecond
	wantFound(t, quiet.connect(t), l, 0)
}

// A slice is read again as long as something may come to it.
func TestYoungSlicesAreReadAgain(t *testing.T) {
	t.Parallel()
	const perSecond = 50
	b := newBusy(perSecond, 600*perSecond)
	b.setClock(b.created(600 * perSecond))
	// made half a minute ago, and told late; too far back for the walk
	b.missing.Store(570 * perSecond)
	p := b.connect(t)
	l := b.lookup(600*perSecond + 5) // in the last second
	wantFound(t, p, l, 0)
	b.count.Store(600*perSecond + 10)
	wantFound(t, p, l, 1)
	wantFound(t, p, b.lookup(570*perSecond), 0)
	b.missing.Store(-1)
	wantFound(t, p, b.lookup(570*perSecond), 1)
	// What a clock that is set back had settled is not.
	settled := b.lookup(590 * perSecond)
	settled.Tags.Operation = "op_late"
	ask := func() int64 {
		_, _ = p.GetCharge(t.Context(), "ch_1") // tells the time
		b.lists.Store(0)
		wantFound(t, p, settled, 0)
		return b.lists.Load()
	}
	b.setClock(b.created(600*perSecond) + 3600)
	ask()
	again := ask()
	b.setClock(b.created(600 * perSecond))
	if anew := ask(); again > 50 || anew < 200 {
		t.Errorf("%d pages were read again, %d after the clock was set back", again, anew)
	}
}

// Being told to slow down is not an outcome.
func TestSlicesSlowDown(t *testing.T) {
	t.Parallel()
	b := newBusy(100, 120_000)
	b.missing.Store(30_000)
	p := b.connect(t)
	wantFound(t, p, b.lookup(60_000), 1)
	b.refuse.Store(readersMax)
	wantFound(t, p, b.lookup(b.missing.Load()), 0)
}

// The search helps, once what it found was read; that it found nothing, or has no such thing, says
// nothing.
func TestSearch(t *testing.T) {
	t.Parallel()
	const far = 5_000 // made an hour before its look-up begins to look
	for name, c := range map[string]struct {
		search bool
		found  string
		hit    bool
	}{
		"finds it":           {true, "", true},
		"has none":           {false, "", false},
		"finds another":      {true, newBusy(20, 1).charge(7), false},
		"finds what is gone": {true, strings.Replace(newBusy(20, 1).charge(far), `"ch_5000"`, `"ch_99999999"`, 1), false},
		"is garbage":         {true, "7", false},
		"finds what is not":  {true, strings.Replace(newBusy(20, 1).charge(far), `"ch_5000"`, `"ch_7"`, 1), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBusy(20, 144_000)
			b.searches, b.found, b.delay = c.search, c.found, 5*time.Millisecond
			p := b.connect(t)
			l := b.lookup(far)
			l.From, l.To = b.at(far).Add(time.Hour), b.at(far).Add(time.Hour+time.Minute)
			hits, err := p.FindCharge(t.Context(), l)
			if err != nil || (len(hits) == 1) != c.hit {
				t.Errorf("%d hits, %v", len(hits), err)
			}
			if b.asked.Load() != 1 || c.hit && b.read.Load() != 1 {
				t.Errorf("%d searches, %d reads", b.asked.Load(), b.read.Load())
			}
		})
	}
}

// A list that doesn't do as it is asked proves nothing.
func TestUnfilteredList(t *testing.T) {
	t.Parallel()
	b := newBusy(1000, 600_000)
	b.unfiltered = true
	b.missing.Store(300_000)
	if _, err := b.connect(t).FindCharge(t.Context(), b.lookup(b.missing.Load())); provider.KindOf(err) != provider.Unknown {
		t.Errorf("%v", err)
	}
}

// A list that isn't newest first is read to its end.
func TestOldestFirst(t *testing.T) {
	t.Parallel()
	b := newBusy(1, 300)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		after := int64(-1)
		if last := strings.TrimPrefix(r.FormValue("starting_after"), "ch_"); last != "" {
			after, _ = strconv.ParseInt(last, 10, 64)
		}
		var items []string
		for n := after + 1; n < 300 && len(items) < pageSize; n++ {
			items = append(items, strings.Replace(b.charge(n), fmt.Sprint(b.created(n)), fmt.Sprint(b.begin+60*n), 1))
		}
		_, _ = fmt.Fprintf(w, `{"object":"list","has_more":%t,"data":[%s]}`, after+pageSize < 299, strings.Join(items, ","))
	}))
	defer server.Close()
	p, err := New(Config{APIKey: "sk_test_x", BaseURL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	l := b.lookup(298)
	l.From = time.Unix(b.begin+60*298, 0)
	l.To = l.From.Add(time.Minute)
	wantFound(t, p, l, 1)
}

// While a slice is read anew, what its last complete walk saw still counts for whom that is young
// enough: otherwise a look-up that comes to the slices late, from a walk, would be told that its
// charge was never made, because the page that has it is only to be read again.
func TestWhatAWalkSawCountsUntilTheNextIsComplete(t *testing.T) {
	t.Parallel()
	const ours = 7
	var g grid[provider.Charge]
	never := func() (time.Time, bool) { return time.Time{}, false }
	s := &slice{level: len(widths) - 1}
	recalled := func() (cursors []string) {
		s.recall(ours, func(_ *slice, cursor string) { cursors = append(cursors, cursor) })
		return cursors
	}
	asked := time.Now()
	read := func(asked time.Time) {
		t.Helper()
		if g.next(s, asked, asked, never) != s {
			t.Fatal("it is not read")
		}
	}
	read(asked)
	g.advance(s, seenPage{cursor: "", tags: []uint64{1}}, "ch_1", true)
	read(asked)
	g.advance(s, seenPage{cursor: "ch_1", tags: []uint64{ours}}, "ch_2", false)
	if !s.read(asked) || len(recalled()) != 1 {
		t.Fatal("it was read, with ours")
	}
	time.Sleep(time.Millisecond)
	read(time.Now()) // for another look-up, that was asked for since
	if s.read(asked) && len(recalled()) == 0 {
		t.Error("the slice is complete for the first look-up, and does not show what it has")
	}
	g.advance(s, seenPage{cursor: "", tags: []uint64{ours}}, "ch_1", true)
	if s.read(asked) && len(recalled()) == 0 || g.pages != 3 {
		t.Errorf("page by page, too; %d pages", g.pages)
	}
	g.advance(s, seenPage{cursor: "ch_1", tags: []uint64{1}}, "ch_2", false)
	if got := recalled(); !s.read(asked) || len(got) != 1 || got[0] != "" || g.pages != 2 || s.count() != g.pages {
		t.Errorf("the new walk takes its place: %v, %d pages, counted %d", got, g.pages, s.count())
	}
}
