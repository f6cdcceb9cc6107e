package e2e

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"paidonce/api/apitest"
)

func TestTerminatedInstanceEndsItsCharges(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "PAIDONCE_PROVIDER_TIMEOUT=10s", "PAIDONCE_STALE_AFTER=30s")
	w.sim.slow(2000)
	p, other := w.serve(), w.serve()
	const running = 8
	var answers [running]apitest.Answer
	var wg sync.WaitGroup
	for i := range running {
		c := w.client(p)
		wg.Go(func() { answers[i] = c.Charge(fmt.Sprint("k", i), twenty) })
	}
	w.sim.awaitRequests(running)
	p.signal(syscall.SIGTERM)
	p.await("shutting down")
	eventually(t, "new connections are refused", func() bool {
		conn, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	})
	wg.Wait()
	for i, a := range answers {
		if a.Code != http.StatusCreated || a.Replayed() {
			t.Errorf("running charge %d: %d %s", i, a.Code, a.Body)
		}
	}
	if state := p.wait(); state.ExitCode() != 0 {
		t.Errorf("%v, want exit code 0", state)
	}
	c := w.client(other)
	for i, a := range answers {
		if again := c.Charge(fmt.Sprint("k", i), twenty); !again.Replayed() ||
			string(again.Body) != string(a.Body) {
			t.Errorf("through the other instance: %d %s", again.Code, again.Body)
		}
	}
	w.sim.mustHave(t, running)
	w.checkBooks()
}

// A client that waits for the result of another instance's work does not keep the process: it is
// told to come again.
func TestTerminatedInstanceLetsWaitersGo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "PAIDONCE_PROVIDER_TIMEOUT=40s", "PAIDONCE_STALE_AFTER=90s")
	w.sim.arm(1, fault{"type": "delay", "delay_ms": 25000})
	owner, p := w.client(w.serve()), w.serve()
	go func() { _, _ = try(t, owner, "k", twenty) }()
	w.sim.awaitRequests(1)
	var a apitest.Answer
	var err error
	waited := make(chan struct{})
	waiter := w.client(p)
	go func() {
		defer close(waited)
		a, err = try(t, waiter, "k", twenty, "Prefer", "wait=30")
	}()
	// That it waits shows nowhere outside. Should it not have come yet, it is refused: the test
	// then shows less, and passes.
	time.Sleep(500 * time.Millisecond)
	p.signal(syscall.SIGTERM)
	<-waited
	if err == nil && !mayRetry(t, a) {
		t.Errorf("the waiter got %d %s", a.Code, a.Body)
	}
	if state := p.wait(); state.ExitCode() != 0 {
		t.Errorf("%v, want exit code 0", state)
	}
	if s := w.status("k"); s != "in_progress" {
		t.Errorf("the key is %s: the process stayed until the other's work was done", s)
	}
}

// The second signal ends the process at once, in the middle of a charge; the charge is recoverable
// as after any kill.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "PAIDONCE_PROVIDER_TIMEOUT=40s", "PAIDONCE_STALE_AFTER=90s")
	w.sim.arm(1, fault{"type": "delay", "delay_ms": 30000})
	p := w.serve()
	go func() { _, _ = try(t, w.client(p), "k", twenty) }()
	w.sim.awaitRequests(1)
	p.signal(syscall.SIGTERM)
	p.await("shutting down")
	// Again and again: the first of these may come before the process has put the default action
	// back.
	eventually(t, "the end", func() bool { p.signal(syscall.SIGTERM); return p.ended() })
	if status, ok := p.wait().Sys().(syscall.WaitStatus); !ok || !status.Signaled() {
		t.Errorf("%v, want that the signal ended it", p.cmd.ProcessState)
	}
}

// The reconciler is told to go in the middle of an operation: it ends that one. Killed, its lease
// expires.
func TestReconcilerTerminated(t *testing.T) {
	t.Parallel()
	for _, hard := range []bool{false, true} {
		t.Run(fmt.Sprint("killed ", hard), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c := w.client(w.serve())
			w.sim.arm(1, fault{"type": "drop_before"})
			c.Charge("k", twenty)
			w.sim.slow(1200)
			var rec *proc
			eventually(t, "a reconciler is at it", func() bool {
				if rec == nil || rec.ended() { // the operation was not due yet
					rec = w.start("reconcile", w.command(nil, "reconcile"))
				}
				return w.sim.stats().ChargeRequests == 2
			})
			rec.signal(syscall.SIGTERM)
			if hard {
				rec.kill()
			} else {
				rec.wait()
				if s := w.status("k"); s != "completed" {
					t.Errorf("the key is %s after the reconciler's orderly end, want completed", s)
				}
			}
			if a, _ := until(t, func() *apitest.Client {
				return c
			}, "k", twenty); a.Code != http.StatusCreated {
				t.Errorf("got %d %s, want 201", a.Code, a.Body)
			}
			w.sim.mustHave(t, 1)
			w.checkBooks()
		})
	}
}
