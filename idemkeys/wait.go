package idemkeys

import (
	"context"
	"sync"
	"time"
)

const (
	// Another process may finish the operation, so waiters also poll: soon at first, then less
	// often. No connection is held between polls.
	pollFirst = 40 * time.Millisecond
	pollMax   = 500 * time.Millisecond
)

type scopedKey struct{ account, key string }

// waiters lets requests of this process wait for an operation of this process without asking the
// database.
type waiters struct {
	closed chan struct{} // closed when nobody may wait any more

	mu     sync.Mutex
	groups map[scopedKey]*waitGroup
	ended  bool
}

// waitGroup is the group of callers that wait for one key.
type waitGroup struct {
	changed chan struct{}
	n       int
}

func newWaiters() waiters {
	return waiters{closed: make(chan struct{}), groups: map[scopedKey]*waitGroup{}}
}

// end wakes all waiters, and lets nobody wait from now on.
func (w *waiters) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ended {
		w.ended = true
		close(w.closed)
	}
}

func (w *waiters) join(k scopedKey) *waitGroup {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.groups[k]
	if r == nil {
		r = &waitGroup{changed: make(chan struct{})}
		w.groups[k] = r
	}
	r.n++
	return r
}

func (w *waiters) leave(k scopedKey, r *waitGroup) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.n--; r.n == 0 && w.groups[k] == r {
		delete(w.groups, k)
	}
}

// wake wakes all waiters for the key.
func (w *waiters) wake(k scopedKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r := w.groups[k]; r != nil {
		close(r.changed)
		delete(w.groups, k)
	}
}

// pause waits until the key changes, poll has passed, or until is reached. It reports whether there
// is reason to read again.
func (w *waiters) pause(
	ctx context.Context, k scopedKey, poll time.Duration, until time.Time,
) bool {
	left := time.Until(until) //tidy:clock how long this caller still waits
	if left <= 0 {
		return false
	}
	r := w.join(k)
	defer w.leave(k, r)
	timer := time.NewTimer(min(poll, left))
	defer timer.Stop()
	select {
	case <-r.changed:
	case <-timer.C:
	case <-w.closed:
		return false
	case <-ctx.Done():
		return false
	}
	return true
}
