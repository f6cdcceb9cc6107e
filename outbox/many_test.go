package outbox_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"paidonce/outbox"
)

// TestManyRelays: four of them, 10,000 events, one endpoint that hangs: the other gets its own at
// full rate, and none from two at once.
func TestManyRelays(t *testing.T) {
	w, r, hanging := newWorld(t), newReceiver(t), newReceiver(t)
	const events = 10_000
	// What is sent meanwhile hangs until the test ends.
	over := make(chan struct{})
	hanging.answer = func(_ http.ResponseWriter, req *http.Request, _ int) {
		select {
		case <-req.Context().Done():
		case <-over:
		}
	}
	w.put("a-hanging", hanging.URL)
	w.put("b-good", r.URL)
	w.addMany(events)
	var relays []*outbox.Relay
	for range 4 {
		relays = append(relays, w.relay(func(c *outbox.RelayConfig) { c.Pause = time.Minute }))
	}
	began := time.Now()
	stop := w.run(relays...)
	eventually(t, 60*time.Second, "the good endpoint has all", func() bool { return r.distinct() == events })
	t.Logf("%d deliveries in %s: %.0f/s", events, time.Since(began), events/time.Since(began).Seconds())
	eventually(t, 5*time.Second, "all is written down", func() bool { return w.Count(`SELECT count(*) FROM deliveries WHERE state = 'delivered'`) == events })
	close(over)
	stop()
	if len(r.seen()) != events || r.doubled != 0 {
		t.Errorf("%d deliveries of %d events, %d of them while another was under way", len(r.seen()), events, r.doubled)
	}
}

// TestRate prints how fast one relay delivers to an instant receiver.
func TestRate(t *testing.T) {
	w := newWorld(t)
	r := newReceiver(t)
	w.put("hook", r.URL)
	const events = 10_000
	w.addMany(events)
	began := time.Now()
	if _, err := w.store.Number(t.Context()); err != nil {
		t.Fatal(err)
	}
	order := time.Since(began)
	began = time.Now()
	if err := w.relay().RunOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	took := time.Since(began)
	if n := len(r.seen()); n != events {
		t.Errorf("%d deliveries", n)
	}
	t.Logf("ordered and queued %.0f/s, delivered %.0f/s", events/order.Seconds(), events/took.Seconds())
}

// TestKilledRelay: a relay that dies between claim and result leaves its deliveries to others, when
// its lease is over; ids and bytes stay the same.
func TestKilledRelay(t *testing.T) {
	w, r := newWorld(t), newReceiver(t)
	w.put("hook", r.URL)
	const events = 100
	w.addMany(events)
	lease := func(c *outbox.RelayConfig) { c.Lease = 2 * time.Second }
	// It sends half of what it claims, and writes nothing down of any of it.
	dying := w.relay(lease, func(c *outbox.RelayConfig) { c.Sender = &dies{Sender: c.Sender, hang: make(chan struct{})} })
	// never stopped: its goroutines hang forever, as those of a stopped process do
	go dying.Work(context.Background())
	eventually(t, 10*time.Second, "some are sent", func() bool { return r.distinct() >= 10 })
	w.run(w.relay(lease))
	eventually(t, 20*time.Second, "all are delivered", func() bool { return w.Count(`SELECT count(*) FROM deliveries WHERE state = 'delivered'`) == events })
	if r.distinct() != events {
		t.Errorf("%d events", r.distinct())
	}
}

// dies sends every other message, and never comes back.
type dies struct {
	outbox.Sender
	mu   sync.Mutex
	n    int
	hang chan struct{}
}

func (d *dies) Send(ctx context.Context, m outbox.Message) (outbox.Answer, error) {
	d.mu.Lock()
	d.n++
	n := d.n
	d.mu.Unlock()
	if n%2 == 0 {
		_, _ = d.Sender.Send(ctx, m)
	}
	<-d.hang
	return outbox.Answer{}, nil
}

// TestLateResult: a relay that was away for longer than its lease does not undo what another has
// written down.
func TestLateResult(t *testing.T) {
	w, r := newWorld(t), newReceiver(t)
	w.put("hook", r.URL)
	id := w.add(w.Pool, "charge.succeeded", "ch_1")
	gate := &gate{inside: make(chan struct{}), open: make(chan struct{})}
	slow := w.relay(func(c *outbox.RelayConfig) { c.Sender, c.Lease = gate, 300*time.Millisecond })
	done := make(chan error)
	go func() { done <- slow.RunOnce(context.Background()) }()
	<-gate.inside
	time.Sleep(350 * time.Millisecond)
	if err := w.relay().RunOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	close(gate.open) // and now it fails
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	list, _ := w.store.Deliveries(t.Context(), id)
	if list[0].State != "delivered" || slow.Counts().Failed != 0 {
		t.Errorf("%+v, %+v", list[0], slow.Counts())
	}
}

type gate struct {
	inside, open chan struct{}
	once         sync.Once
}

func (g *gate) Send(context.Context, outbox.Message) (outbox.Answer, error) {
	g.once.Do(func() { close(g.inside) })
	<-g.open
	return outbox.Answer{Status: 500}, nil
}

// TestOrderOfAnObject: several relays and a receiver of random speed; events of one object arrive
// in their order.
func TestOrderOfAnObject(t *testing.T) {
	w, r := newWorld(t), newReceiver(t)
	w.put("hook", r.URL)
	r.answer = func(w http.ResponseWriter, _ *http.Request, nth int) {
		time.Sleep(time.Duration(rand.N(3000)) * time.Microsecond)
		if nth == 1 && rand.N(20) == 0 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}
	w.run(w.relay(), w.relay())
	const objects = 200
	of, order := map[string]int{}, map[string]int{}
	for i := range 4 {
		for o := range objects {
			id := w.add(w.Pool, "charge.succeeded", "ch_"+strconv.Itoa(o))
			of[id], order[id] = o, i
		}
	}
	eventually(t, 60*time.Second, "all delivered", func() bool {
		return w.Count(`SELECT count(*) FROM deliveries WHERE state = 'delivered'`) == 4*objects
	})
	last := map[int]int{}
	for _, d := range r.seen() {
		if order[d.id] < last[of[d.id]] {
			t.Errorf("event %d of object %d arrived after event %d", order[d.id], of[d.id], last[of[d.id]])
		}
		last[of[d.id]] = max(last[of[d.id]], order[d.id])
	}
}

// TestPoison: an event that its consumer cannot take holds back those of its object for a while,
// others not at all, and none forever.
func TestPoison(t *testing.T) {
	w, r := newWorld(t), newReceiver(t)
	w.put("hook", r.URL)
	poison := w.add(w.Pool, "charge.succeeded", "ch_1")
	after := w.add(w.Pool, "charge.refunded", "ch_1")
	other := w.add(w.Pool, "charge.succeeded", "ch_2")
	r.answer = func(w http.ResponseWriter, req *http.Request, _ int) {
		if req.Header.Get("webhook-id") == poison {
			w.WriteHeader(http.StatusBadRequest)
		}
	}
	w.run(w.relay(func(c *outbox.RelayConfig) { c.Pause = 10 * time.Millisecond }))
	eventually(t, 20*time.Second, "the rest is delivered", func() bool {
		return r.distinct() == 3 && w.Count(`SELECT count(*) FROM deliveries WHERE state = 'delivered'`) == 2
	})
	got := r.seen()
	at := func(id string) int { return slices.IndexFunc(got, func(d delivery) bool { return d.id == id }) }
	if at(other) > 3 || at(after) < 6 {
		t.Errorf("the other object's at place %d, the same object's at place %d", at(other), at(after))
	}
}

// TestResend sends the stored bytes again, to one endpoint or to all that want them.
func TestResend(t *testing.T) {
	w, r, second := newWorld(t), newReceiver(t), newReceiver(t)
	r.secret = w.put("hook", r.URL).Secret
	w.put("refunds", second.URL, "charge.refunded")
	id := w.add(w.Pool, "charge.succeeded", "ch_1")
	relay := w.relay()
	for i, c := range []struct {
		endpoint            string
		n, first, elsewhere int
	}{{"", 1, 2, 0}, {"hook", 1, 3, 0}, {"refunds", 1, 3, 1}} {
		if err := relay.RunOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		n, err := w.store.Requeue(t.Context(), account, id, c.endpoint)
		if err != nil || n != c.n {
			t.Errorf("%d: resent to %d: %v", i, n, err)
		}
		if err := relay.RunOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		if r.times[id] != c.first || second.times[id] != c.elsewhere {
			t.Errorf("%d: %d and %d deliveries, want %d and %d", i, r.times[id], second.times[id], c.first, c.elsewhere)
		}
	}
	for _, c := range [][2]string{{"evt_nowhere", ""}, {"evt_nowhere", "hook"}, {id, "nowhere"}} {
		_, err := w.store.Requeue(t.Context(), account, c[0], c[1])
		if !errors.Is(err, outbox.ErrNotFound) || errors.Is(err, outbox.ErrNoEndpoint) != (c[1] == "nowhere") {
			t.Errorf("%v: got %v, want outbox.ErrNotFound", c, err)
		}
	}
}

// TestOldSnapshots: a transaction that stays open keeps dead rows; delivery goes on.
func TestOldSnapshots(t *testing.T) {
	w, r := newWorld(t), newReceiver(t)
	w.put("hook", r.URL)
	tx, err := w.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := tx.Exec(t.Context(), `SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM outbox`); err != nil {
		t.Fatal(err)
	}
	relay := w.relay()
	var first, last time.Duration
	const rounds, events = 10, 300
	for i := range rounds {
		w.Exec(`INSERT INTO outbox (event_id, account_id, type, operation_id, object_id, payload)
			SELECT 'evt_' || $2::int || '_' || i, $1, 'charge.succeeded', 'op_' || $2::int || '_' || i, 'ch_' || i, '{}' FROM generate_series(1, $3::int) i`, account, i, events)
		began := time.Now()
		if err := relay.RunOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		last = time.Since(began)
		if i < 3 {
			first = max(first, last)
		}
	}
	t.Logf("a round of %d took %s at first, %s after %d rounds of dead rows", events, first, last, rounds)
	if r.distinct() != rounds*events {
		t.Errorf("%d delivered", r.distinct())
	}
}

// TestRetention forgets what is old and delivered, and nothing else.
func TestRetention(t *testing.T) {
	w, r := newWorld(t), newReceiver(t)
	w.put("hook", r.URL)
	old := w.add(w.Pool, "charge.succeeded", "ch_old")
	if err := w.relay().RunOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	waits := w.add(w.Pool, "charge.succeeded", "ch_waits")
	if _, err := w.store.Number(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.Exec(`UPDATE outbox SET created_at = created_at - interval '31 days'`)
	young := w.add(w.Pool, "charge.succeeded", "ch_young")
	w.Exec(`INSERT INTO outbox_cursors (publisher, position) VALUES ('behind', 0)`)
	clean := func(want int) {
		t.Helper()
		if n, err := w.store.Clean(t.Context(), 30*24*time.Hour); err != nil || n != want {
			t.Errorf("%d events are forgotten, want %d: %v", n, want, err)
		}
	}
	clean(0)
	w.Exec(`UPDATE outbox_cursors SET position = 100`)
	clean(1)
	if got := w.walk("", 10); !slices.Equal(got, []string{waits, young}) {
		t.Errorf("left are %v, not %s", got, old)
	}
	w.Exec(`UPDATE outbox SET created_at = created_at - interval '31 days'`)
	if err := w.relay().RunOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	clean(1)
	// it stays as the newest of its type, with a gap behind it
	stale := w.add(w.Pool, "charge.captured", "ch_young")
	gone := w.add(w.Pool, "charge.succeeded", "ch_gone")
	young = w.add(w.Pool, "charge.succeeded", "ch_young")
	if err := w.relay().RunOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.Exec(`UPDATE outbox SET created_at = created_at - interval '31 days'`)
	clean(2)
	if _, err := w.store.List(t.Context(), account, outbox.Filter{StartingAfter: stale, Limit: 1}); !errors.Is(err, outbox.ErrNotFound) {
		t.Errorf("who stands before %s, which is gone, is told: %v", gone, err)
	}
	if page, err := w.store.List(t.Context(), account, outbox.Filter{StartingAfter: stale, Types: []string{"charge.captured"}, Limit: 1}); err != nil || len(page.Events) != 0 {
		t.Errorf("who reads its type alone has missed nothing, and is told: %v, %v", page, err)
	}
	if got := w.walk("", 1); !slices.Equal(got, []string{young}) {
		t.Errorf("a walk from the beginning finds %v, not %s", got, young)
	}
	// who has seen all reads on, however long nothing happened
	late := w.add(w.Pool, "charge.succeeded", "ch_late")
	if got := w.walk(young, 10); !slices.Equal(got, []string{late}) {
		t.Errorf("after %s come %v, not %s", young, got, late)
	}
	if n := w.Count(`SELECT count(*) FROM deliveries WHERE event_id = $1`, old); n != 0 {
		t.Errorf("%d deliveries of a forgotten event", n)
	}
}
