package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"paidonce/api/apitest"
)

// 30 charges, a receiver that refuses each event three times, and an instance, its relay inside,
// that is killed in the middle of every tenth charge. What is taken is what is committed and what
// is listed, under the same ids and in the same bytes each time; each try is signed anew.
func TestReceiverFailsAndServeIsKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, allowPrivate, "PAIDONCE_WORKERS=relay")
	s := newSink(t)
	s.answer = func(w http.ResponseWriter, _ *http.Request, _ event, nth int) {
		if nth <= 3 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}
	p := w.serve()
	c := w.client(p)
	s.listen(c)
	const rest = 1500 * time.Millisecond // so that no two tries are of the same second
	w.hurry(rest)
	for i := range 30 {
		key := fmt.Sprint("k", i)
		if i%10 == 9 {
			go func() { _, _ = try(t, c, key, twenty) }()
			time.Sleep(rand.N(20 * time.Millisecond))
			p.kill()
			p = w.serve()
			c = w.client(p)
		}
		if a, _ := until(t, func() *apitest.Client {
			return c
		}, key, twenty); a.Code != http.StatusCreated {
			t.Errorf("got %d %s, want 201", a.Code, a.Body)
		}
	}
	w.awaitDelivered()
	stored := w.stored()
	if len(stored) != 30 {
		t.Errorf("%d events of 30 charges", len(stored))
	}
	s.mustHaveTaken(stored)
	ids, bodies := listed(t, c, "")
	if len(ids) != len(stored) {
		t.Errorf("%d events are listed, %d are stored", len(ids), len(stored))
	}
	for id, payload := range stored {
		if bodies[id] != strings.TrimSuffix(payload, "\n") {
			t.Errorf("%s is listed as %q, stored is %q", id, bodies[id], payload)
		}
	}
	for id, tries := range s.tries {
		if len(tries) < 4 {
			t.Errorf("%s was taken after %d tries", id, len(tries))
		}
		for i, a := range tries[1:] { // each try is signed anew, with its own time
			if before := tries[i]; a.stamp <= before.stamp || a.signature == before.signature {
				t.Errorf("try %d of %s is not signed anew: %+v after %+v", i+2, id, a, before)
			}
		}
	}
	w.checkBooks()
}

// mustHaveTaken checks that what was taken is what is stored, to the byte.
func (s *sink) mustHaveTaken(stored map[string]string) {
	s.t.Helper()
	taken := s.takenOf("")
	s.mu.Lock()
	defer s.mu.Unlock()
	got := map[string]bool{}
	for _, e := range taken {
		if got[e.ID] = true; stored[e.ID] != s.bodies[e.ID] {
			s.t.Errorf("%s: delivered was %q, stored is %q", e.ID, s.bodies[e.ID], stored[e.ID])
		}
	}
	if len(got) != len(stored) {
		s.t.Errorf("%d events were taken, %d are stored", len(got), len(stored))
	}
}

// An instance dies forever, within 20 ms of the answers that it gave. The events of all that was
// answered are there, and another process delivers them.
func TestEventsOutliveWhoAnswered(t *testing.T) {
	t.Parallel()
	w := newWorld(t, allowPrivate)
	s := newSink(t)
	s.listen(w.client(w.serve()))
	const runs, callers = 10, 20
	var mu sync.Mutex
	answered := map[string]bool{}
	for run := range runs {
		p := w.serve()
		c := w.client(p)
		first := make(chan struct{})
		dead := make(chan struct{})
		once := sync.OnceFunc(func() { close(first) })
		go func() {
			<-first
			time.Sleep(rand.N(20 * time.Millisecond))
			p.signal(syscall.SIGKILL)
			close(dead)
		}()
		together(callers, func(i int) {
			for n := 0; ; n++ {
				a, err := try(t, c, fmt.Sprint(run, "-", i, "-", n), twenty)
				if err != nil {
					<-dead
					return
				}
				if a.Code != http.StatusCreated {
					t.Errorf("got %d %s, want 201", a.Code, a.Body)
				}
				mu.Lock()
				answered[a.ID()] = true
				mu.Unlock()
				once()
			}
		})
		p.wait()
	}
	w.must("relay", "--once")
	s.mustHaveTaken(w.stored())
	for _, e := range s.takenOf("") {
		delete(answered, e.Data.Object.ID)
	}
	if len(answered) > 0 {
		t.Errorf("no events of %d charges that were answered: %v", len(answered), answered)
	}
	t.Logf("%d events after %d kills", len(w.stored()), runs)
}

// A transaction that wrote its event before all others stays open. Charges, their events and their
// readers do not wait for it; when it commits, its event is delivered, and listed to who has read
// on; of one that is rolled back nobody hears.
func TestLateCommit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, allowPrivate, "PAIDONCE_WORKERS=relay")
	c, other := w.client(w.serve()), w.client(w.serve())
	s := newSink(t)
	s.listen(c)
	c.Charge("first", twenty)
	const late, undone = "evt_00000000000000000000000000", "evt_00000000000000000000000001"
	held, rolledBack := w.hold(late), w.hold(undone)
	w.awaitDelivered()
	const charges = 20
	for i := range charges {
		if a := []*apitest.Client{c, other}[i%2].Charge(fmt.Sprint("k", i), twenty); a.Code != http.StatusCreated {
			t.Errorf("got %d %s, want 201", a.Code, a.Body)
		}
	}
	w.awaitDelivered() // all but the two
	seen, _ := listed(t, c, "")
	if len(seen) != charges+1 || len(s.takenOf("")) != charges+1 || slices.Contains(seen, late) {
		t.Errorf("%d events are listed and %d delivered while a transaction is open, want %d",
			len(seen), len(s.takenOf("")), charges+1)
	}
	rolledBack("ROLLBACK")
	held("COMMIT")
	w.awaitDelivered()
	s.mustHaveTaken(w.stored())
	if ids, _ := listed(t, other, seen[len(seen)-1]); !slices.Equal(ids, []string{late}) {
		t.Errorf("to who reads on are listed %v, want %s", ids, late)
	}
	if all, _ := listed(t, c, ""); len(all) != charges+2 || slices.Contains(all, undone) {
		t.Errorf("listed in the end: %v", all)
	}
}

// A relay is stopped in the middle of its deliveries. Others go on with other charges, and with its
// own when its lease is over, each charge's events in their order; when it comes back to life, what
// it then writes changes nothing.
func TestRelayIsFrozen(t *testing.T) {
	t.Parallel()
	w := newWorld(t, allowPrivate)
	c := w.client(w.serve())
	s := newSink(t)
	const charges = 5
	// The first tries hang until their relay is back, and fail; the second ones hang for longer,
	// and are taken.
	arrived := make(chan struct{}, 2*charges)
	gates, statuses := []chan struct{}{make(chan struct{}), make(chan struct{})},
		[]int{http.StatusInternalServerError, http.StatusOK}
	held := map[string]bool{}
	s.answer = func(w http.ResponseWriter, r *http.Request, e event, nth int) {
		if !held[e.Data.Object.ID] || e.Type != "charge.succeeded" || nth > 2 {
			return
		}
		arrived <- struct{}{}
		select {
		case <-gates[nth-1]:
		case <-r.Context().Done():
		}
		w.WriteHeader(statuses[nth-1])
	}
	s.listen(c)
	for i := range charges {
		held[c.Charge(fmt.Sprint("k", i), twenty).ID()] = true
	}
	frozen := w.relay()
	eventually(t, "it sends all", func() bool { return len(arrived) == charges })
	frozen.signal(syscall.SIGSTOP)
	w.relay()
	for id := range held {
		if a := c.Post("/v1/refunds", "refund-"+id, fmt.Sprintf(`{"charge":%q,"amount":500}`, id)); a.Code != http.StatusCreated {
			t.Errorf("got %d %s, want 201", a.Code, a.Body)
		}
	}
	c.Charge("another", twenty)
	// refund.created of each, and the other charge
	eventually(t, "what it does not hold is delivered", func() bool {
		return len(s.takenOf("")) == charges+1
	})
	execSQL(t, w.dbURL, readCommitted,
		`UPDATE deliveries SET next_run_at = clock_timestamp(), leased_until = clock_timestamp() WHERE leased_until IS NOT NULL AND state = 'pending'`)
	eventually(t, "the other relay takes over", func() bool { return len(arrived) == 2*charges })
	close(gates[0])
	frozen.signal(syscall.SIGCONT)
	frozen.await(fmt.Sprintf(`(?s)(the lease of a delivery was lost.*){%d}`, charges))
	if n := querySQL[int](t, w.dbURL,
		`SELECT count(*) FROM deliveries WHERE leased_until > clock_timestamp()`); n != charges {
		t.Errorf("the other relay has %d of its %d leases after the first one is back", n, charges)
	}
	close(gates[1])
	w.awaitDelivered()
	for id := range held {
		if got := s.takenOf(id); len(got) != 2 || got[0].Type != "charge.succeeded" ||
			got[1].Type != "charge.refunded" {
			t.Errorf("of %s were taken %+v", id, got)
		}
	}
	s.mustHaveTaken(w.stored())
}

// hold writes an event in a transaction that stays open until it is told how to end.
func (w *world) hold(id string) (end func(how string)) {
	w.t.Helper()
	tx := w.connect()
	exec := func(sql string, args ...any) {
		w.t.Helper()
		if _, err := tx.Exec(w.t.Context(), sql, args...); err != nil {
			w.t.Fatal(err)
		}
	}
	exec("BEGIN")
	exec(`INSERT INTO outbox (event_id, account_id, type, operation_id, object_id, payload, created_at)
		SELECT $1::text, account_id, type, 'op_' || $1, object_id, convert_to(replace(convert_from(payload, 'UTF8'), event_id, $1), 'UTF8'), created_at - interval '1 hour'
		FROM outbox ORDER BY created_at LIMIT 1`, id)
	return func(how string) { w.t.Helper(); exec(how) }
}
