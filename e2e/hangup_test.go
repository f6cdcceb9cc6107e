package e2e

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"

	"paidonce/api/apitest"
)

// hangUp sends a charge and gives up after a while.
func hangUp(t testing.TB, c *apitest.Client, key string, after time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), after)
	defer cancel()
	req := c.Request(http.MethodPost, "/v1/charges", twenty, "Content-Type", "application/json",
		"Idempotency-Key", key)
	_, _ = do(t, c, req.WithContext(ctx))
}

func TestClientHangsUpAtAnyMoment(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sim.slow(600)
	c := w.client(w.serve())
	moments := []int{5, 10, 20, 40, 80, 150, 250, 300, 350, 450, 590, 600, 610, 650}
	together(len(moments), func(i int) {
		key := fmt.Sprint("after-", moments[i])
		hangUp(t, c, key, time.Duration(moments[i])*time.Millisecond)
		a, _ := until(t, func() *apitest.Client { return c }, key, twenty)
		again := c.Charge(key, twenty)
		if a.Code != http.StatusCreated || !again.Replayed() ||
			string(again.Body) != string(a.Body) {
			t.Errorf("%s: %d %s, then %d %s", key, a.Code, a.Body, again.Code, again.Body)
		}
	})
	w.sim.mustHave(t, len(moments))
	w.checkBooks()
}

// Clients that hang up in crowds neither disturb others' queries nor make the pool reconnect.
func TestStormOfHangUps(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "PAIDONCE_DB_MAX_CONNS=5", "PAIDONCE_PROVIDER_TIMEOUT=10s",
		"PAIDONCE_STALE_AFTER=30s")
	p := w.serve()
	stormy := w.client(p)
	calm := stormy.As(w.newKey("calm").APIKey)
	stop := make(chan struct{})
	var storm sync.WaitGroup
	storm.Go(func() {
		// At a rate that the service can bear, also with the race detector on a busy machine: this
		// is about hanging up, not about overload.
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			case <-tick.C:
				storm.Go(func() {
					hangUp(t, stormy, fmt.Sprint("storm-", n),
						time.Duration(1+n%20)*time.Millisecond)
				})
			}
		}
	})
	sessions := map[int]bool{}
	for i := range 40 {
		if a := calm.Charge(fmt.Sprint("calm-", i), twenty); a.Code != http.StatusCreated {
			t.Errorf("calm charge %d: %d %s", i, a.Code, a.Body)
		}
		pid := querySQL[int](t, w.dbURL, "SELECT pid FROM pg_stat_activity WHERE datname = "+
			"current_database() AND pid <> pg_backend_pid() ORDER BY random() LIMIT 1")
		sessions[pid] = true
	}
	close(stop)
	storm.Wait()
	if len(sessions) > 5 {
		t.Errorf("%d database sessions were seen, want the pool's 5: hang-ups close connections",
			len(sessions))
	}
	// What was begun when its client went ends all the same, each once. The process is ended first,
	// as requests may still be on their way in.
	p.signal(syscall.SIGTERM)
	p.wait()
	eventually(t, "all keys finish", func() bool {
		w.must("reconcile")
		return querySQL[int](t, w.dbURL,
			"SELECT count(*) FROM idempotency_keys WHERE status = 'in_progress'") == 0
	})
	w.checkBooks()
}

// The provider's answers come about when its limit ends; each caller gets one whole answer, of its
// own account.
func TestAnswersAtTheTimeoutDoNotMix(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "PAIDONCE_PROVIDER_TIMEOUT=300ms", "PAIDONCE_STALE_AFTER=3s")
	p := w.serve()
	mine := w.client(p)
	theirs := mine.As(w.newKey("other").APIKey)
	other := theirs.Charge("first", twenty)
	w.sim.control(http.MethodPost,
		"faults",
		map[string]any{"match": map[string]any{"method": "POST",
			"params": map[string]string{"amount": "777"}},
			"fault": fault{"type": "delay", "delay_after_ms": 295}}, nil)
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			for n := range 4 {
				key := fmt.Sprint("edge-", i, "-", n)
				if a, _ := until(t, func() *apitest.Client {
					return mine
				}, key, order(777)); a.Code != http.StatusCreated {
					t.Errorf("%s: got %d %s, want 201", key, a.Code, a.Body)
				}
			}
		})
		wg.Go(func() {
			for range 20 {
				if a := theirs.Get("/v1/charges/" + other.ID()); a.Code != http.StatusOK ||
					string(a.Body) != string(other.Body) {
					t.Errorf("the other account reads %d %s, want %s", a.Code, a.Body, other.Body)
				}
			}
		})
	}
	wg.Wait()
	w.checkBooks()
}
