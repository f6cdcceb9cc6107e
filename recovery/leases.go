package recovery

import (
	"context"
	"errors"
	"sync"

	"paidonce/idemkeys"
)

// leases lets workers that became free while the last statement was under way lease in company: one statement for all of them, and never more
// than one operation for each, so that none waits while its lease runs.
type leases struct {
	// lease leases up to most operations.
	lease func(ctx context.Context, most int) ([]idemkeys.Operation, error)

	mu      sync.Mutex
	waiting []chan leased
	busy    bool
}

type leased struct {
	op  *idemkeys.Operation // nil: nothing is due
	err error
}

// errNotLeased is what is told when the statement neither returned nor failed: its goroutine ended.
var errNotLeased = errors.New("the lease of operations was broken off")

// next returns an operation to work on, or nil when nothing is due. Statements end with ctx, so it does too.
func (l *leases) next(ctx context.Context) (*idemkeys.Operation, error) {
	mine := make(chan leased, 1)
	l.mu.Lock()
	l.waiting = append(l.waiting, mine)
	lead := !l.busy
	l.busy = true
	l.mu.Unlock()
	if lead {
		l.leaseForAll(ctx)
	}
	got := <-mine
	return got.op, got.err
}

// leaseForAll leases for everybody who waits at this moment. Whoever came meanwhile is served by a goroutine: this one's worker has work now.
func (l *leases) leaseForAll(ctx context.Context) {
	l.mu.Lock()
	group := l.waiting
	l.waiting = nil
	l.mu.Unlock()
	var ops []idemkeys.Operation
	err := errNotLeased
	defer func() {
		for i, one := range group {
			if i < len(ops) {
				one <- leased{op: &ops[i]}
			} else {
				one <- leased{err: err}
			}
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.busy = len(l.waiting) > 0; l.busy {
			go l.leaseForAll(ctx)
		}
	}()
	ops, err = l.lease(ctx, len(group))
}
