package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"syscall"
	"testing"
	"time"

	"paidonce/api/apitest"
)

// killMoments are counted from the request on: before it is read, around the claim, around the
// provider's work (which is half of callMillis in), around the last commit, and after it.
var killMoments = []int{0, 3, 10, 30, 100, 250, 300, 350, 500, 598, 604, 612, 700}

const callMillis = 600

// killedAt has an instance killed at each moment of a charge, and returns the keys.
func (w *world) killedAt() (keys []string) {
	w.t.Helper()
	w.sim.slow(callMillis)
	owners := make([]*proc, len(killMoments))
	for i := range owners {
		owners[i] = w.serve()
		// The first request of a process is slow; the moments are meant for one that has warmed up.
		if a := w.client(owners[i]).Charge(fmt.Sprint("warm-up-", i), twenty); a.Code != http.StatusCreated {
			w.t.Errorf("warming up: %d %s", a.Code, a.Body)
		}
	}
	keys = make([]string, len(owners))
	together(len(owners), func(i int) {
		keys[i] = fmt.Sprint("killed-after-", killMoments[i])
		c := w.client(owners[i])
		go func() { _, _ = try(w.t, c, keys[i], twenty) }()
		time.Sleep(time.Duration(killMoments[i]) * time.Millisecond)
		owners[i].signal(syscall.SIGKILL)
	})
	for _, p := range owners {
		p.wait()
	}
	return keys
}

func (w *world) status(key string) string {
	return querySQL[string](w.t, w.dbURL, "SELECT status FROM idempotency_keys WHERE key = $1", key)
}

// The retry waits for the lease to go stale, then finds out what became of the charge.
func TestKilledThenRetried(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	keys := w.killedAt()
	c := w.client(w.serve())
	together(len(keys), func(i int) {
		// Read in one statement with its age, as the machine may take longer for the next steps
		// than the lease lasts.
		young := querySQL[bool](t, w.dbURL, "SELECT status = 'in_progress' AND locked_at > "+
			"clock_timestamp() - interval '1 second' FROM idempotency_keys WHERE key = $1", keys[i])
		before := w.status(keys[i])
		sent := time.Now()
		first := c.Charge(keys[i], twenty)
		switch {
		case young && time.Since(sent) < time.Second && first.Code != http.StatusConflict:
			t.Errorf("%s: %d %s while its owner may be alive, want 409", keys[i], first.Code,
				first.Body)
		case before == "completed" && !first.Replayed():
			t.Errorf("%s: %d %s, want a replay: it was finished", keys[i], first.Code, first.Body)
		}
		a, _ := until(t, func() *apitest.Client { return c }, keys[i], twenty)
		if again := c.Charge(keys[i], twenty); a.Code != http.StatusCreated || !again.Replayed() ||
			!bytes.Equal(again.Body, a.Body) {
			t.Errorf("%s: %d %s, then %d %s", keys[i], a.Code, a.Body, again.Code, again.Body)
		}
	})
	w.sim.mustHave(t, 2*len(keys)) // with those for warming up
	w.checkBooks()
}

func TestKilledThenReconciled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	keys := w.killedAt()
	eventually(t, "the reconciler finishes what was begun", func() bool {
		w.must("reconcile", "--json")
		return querySQL[int](t, w.dbURL,
			"SELECT count(*) FROM idempotency_keys WHERE status = 'in_progress'") == 0
	})
	c := w.client(w.serve())
	for _, key := range keys {
		begun := w.status(key) != ""
		a := c.Charge(key, twenty)
		if a.Code != http.StatusCreated || a.Replayed() != begun {
			t.Errorf("%s (begun: %t): %d %s, replayed: %t", key, begun, a.Code, a.Body,
				a.Replayed())
		}
	}
	w.sim.mustHave(t, 2*len(keys))
	w.checkBooks()
}

// A process that was stopped long enough to be taken for gone comes back to life in the middle of
// its charge.
func TestStoppedOwnerCannotOverwrite(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"another instance", "the reconciler"} {
		t.Run(by, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.sim.slow(callMillis)
			owner, other := w.serve(), w.serve()
			type outcome struct {
				a   apitest.Answer
				err error
			}
			late := make(chan outcome, 1)
			c := w.client(owner)
			go func() {
				a, err := try(t, c, "k", twenty)
				late <- outcome{a, err}
			}()
			w.sim.awaitRequests(1)
			owner.signal(syscall.SIGSTOP)
			if by == "the reconciler" {
				eventually(t, "the reconciler takes over", func() bool {
					w.must("reconcile")
					return w.status("k") == "completed"
				})
			}
			stored, _ := until(t, func() *apitest.Client { return w.client(other) }, "k", twenty)
			if stored.Code != http.StatusCreated {
				t.Fatalf("taken over: %d %s", stored.Code, stored.Body)
			}
			owner.signal(syscall.SIGCONT)
			// Its client hears what is stored, or to come again; never anything else.
			switch got := <-late; {
			case got.err != nil:
				t.Errorf("the owner's client got no answer: %v", got.err)
			case got.a.Code == http.StatusCreated && bytes.Equal(got.a.Body, stored.Body):
			case !mayRetry(t, got.a):
				t.Errorf("the owner's client got %d %s, stored is %s", got.a.Code, got.a.Body,
					stored.Body)
			}
			for _, p := range []*proc{owner, other} {
				if a := w.client(p).Charge("k", twenty); !a.Replayed() ||
					!bytes.Equal(a.Body, stored.Body) {
					t.Errorf("%s replays %d %s, stored was %s", p.name, a.Code, a.Body, stored.Body)
				}
			}
			w.sim.mustHave(t, 1)
			w.checkBooks() // one event, one charge
		})
	}
}
