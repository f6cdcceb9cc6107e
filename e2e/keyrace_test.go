package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"paidonce/api/apitest"
)

// together calls fn n times at one instant, and returns when all have returned.
func together(n int, fn func(i int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() { <-start; fn(i) })
	}
	close(start)
	wg.Wait()
}

// oneFresh checks what many got for one key: one did the work, the others were told so or got its
// bytes.
func oneFresh(t *testing.T, answers []apitest.Answer, allWait bool) (body []byte) {
	t.Helper()
	fresh := 0
	for _, a := range answers {
		if a.Code == http.StatusCreated && !a.Replayed() {
			fresh++
			body = a.Body
		}
	}
	if fresh != 1 {
		t.Errorf("%d answers are fresh 201, want one", fresh)
	}
	for _, a := range answers {
		switch {
		case a.Code == http.StatusCreated && bytes.Equal(a.Body, body):
		case a.Code == http.StatusConflict && !allWait:
			if a.Header.Get("Retry-After") == "" || a.Error().Code != "idempotency_key_in_use" {
				t.Errorf("409 without Retry-After or with another code: %v %s", a.Header, a.Body)
			}
		default:
			t.Errorf("answer %d %s; want the first one's bytes or 409", a.Code, a.Body)
		}
	}
	return body
}

// Many requests with one key come at one instant: one charge is made.
func TestOneKeyAtOneInstant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sim.slow(400)
	clients := []*apitest.Client{w.client(w.serve()), w.client(w.serve())}
	for _, prefer := range []string{"", "wait=5"} {
		t.Run("Prefer "+prefer, func(t *testing.T) {
			var header []string
			if prefer != "" {
				header = []string{"Prefer", prefer}
			}
			key := "race-" + prefer
			answers := make([]apitest.Answer, 40)
			together(len(answers), func(i int) {
				answers[i] = clients[i%2].Charge(key, twenty, header...)
			})
			body := oneFresh(t, answers, prefer != "")
			for _, c := range clients {
				if a := c.Charge(key, twenty); !a.Replayed() || !bytes.Equal(a.Body, body) {
					t.Errorf("afterwards: %d %s, want a replay", a.Code, a.Body)
				}
			}
		})
	}
	w.sim.mustHave(t, 2)
	w.checkBooks()
}

// The second request comes while the first runs, to the same process and to another one. It hears
// so at once.
func TestSecondRequestHearsAtOnceThatTheFirstRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sim.slow(1500)
	a, b := w.client(w.serve()), w.client(w.serve())
	first := make(chan apitest.Answer, 1)
	go func() { first <- a.Charge("k", twenty) }()
	w.sim.awaitRequests(1)
	for _, c := range []*apitest.Client{a, b} {
		if got := c.Charge("k", twenty); got.Code != http.StatusConflict ||
			got.Header.Get("Retry-After") == "" {
			t.Errorf("%d %s, want 409 with Retry-After", got.Code, got.Body)
		}
		if got := c.Charge("k", order(2001)); got.Code != http.StatusUnprocessableEntity {
			t.Errorf("another body under the running key: %d, want 422", got.Code)
		}
	}
	select {
	case <-first:
		t.Error("the others were answered only when the first was over")
	default:
	}
	done := <-first
	for _, c := range []*apitest.Client{a, b} {
		if got := c.Charge("k", twenty); !got.Replayed() || !bytes.Equal(got.Body, done.Body) ||
			got.Header.Get("Location") != done.Header.Get("Location") {
			t.Errorf("%d %s, want a replay of %s", got.Code, got.Body, done.Body)
		}
	}
	w.sim.mustHave(t, 1)
}

// Keys that many fight for are no trouble of the service's. Callers with keys of their own notice
// nothing.
func TestContestedKeysHurtNobodyElse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sim.slow(100)
	clients := []*apitest.Client{w.client(w.serve()), w.client(w.serve())}
	const contested, each, probes = 6, 5, 10
	stop := make(chan struct{})
	var fight sync.WaitGroup
	for i := range contested * each {
		fight.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				// A new generation of keys from time to time, so that there are fresh ones to fight
				// for.
				a := clients[i%2].Charge(fmt.Sprint("contested-", i%contested, "-", n/4), twenty)
				if a.Code != http.StatusCreated && a.Code != http.StatusConflict {
					t.Errorf("a contested key: %d %s", a.Code, a.Body)
				}
				time.Sleep(20 * time.Millisecond) // the machine is shared
			}
		})
	}
	for i := range probes {
		if a := clients[i%2].Charge(fmt.Sprint("probe-", i), twenty); a.Code != http.StatusCreated || a.Replayed() {
			t.Errorf("probe %d: %d %s", i, a.Code, a.Body)
		}
	}
	close(stop)
	fight.Wait()
	w.checkBooks()
}
