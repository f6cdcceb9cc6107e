package idemkeys

import (
	"context"
	"sync"
	"time"
)

const (
	// Another process may finish the operation, so waiters also look for themselves: soon at first, then less often. No connection is
	// held between looks.
	lookFirst = 40 * time.Millisecond
	lookMax   = 500 * time.Millisecond
)

type scopedKey struct{ account, key string }

// waiters lets requests of this process wait for an operation of this process without asking the database.
type waiters struct {
	over chan struct{} // closed when nobody shall wait any more

	mu    sync.Mutex
	m     map[scopedKey]*room
	ended bool
}

// room is where those wait who want to know of one key.
type room struct {
	changed chan struct{}
	people  int
}

func newWaiters() waiters { return waiters{over: make(chan struct{}), m: map[scopedKey]*room{}} }

// end lets everybody go, now and from now on.
func (w *waiters) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ended {
		w.ended = true
		close(w.over)
	}
}

func (w *waiters) join(k scopedKey) *room {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.m[k]
	if r == nil {
		r = &room{changed: make(chan struct{})}
		w.m[k] = r
	}
	r.people++
	return r
}

func (w *waiters) leave(k scopedKey, r *room) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.people--; r.people == 0 && w.m[k] == r {
		delete(w.m, k)
	}
}

// wake wakes everybody who waits for the key.
func (w *waiters) wake(k scopedKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r := w.m[k]; r != nil {
		close(r.changed)
		delete(w.m, k)
	}
}

// pause waits until the key changes, it is time to look, or until is reached. It reports whether there is reason to look again.
func (w *waiters) pause(ctx context.Context, k scopedKey, look time.Duration, until time.Time) bool {
	left := time.Until(until) //tidy:clock how long this caller still waits
	if left <= 0 {
		return false
	}
	r := w.join(k)
	defer w.leave(k, r)
	timer := time.NewTimer(min(look, left))
	defer timer.Stop()
	select {
	case <-r.changed:
	case <-timer.C:
	case <-w.over:
		return false
	case <-ctx.Done():
		return false
	}
	return true
}
