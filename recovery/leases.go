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
	var group []chan leased
	if !l.busy {
		group = l.take()
	}
	l.mu.Unlock()
	if group != nil {
		l.leaseFor(ctx, group)
	}
	got := <-mine
	return got.op, got.err
}

// take is everybody who waits at this moment; nil: nobody does. The caller holds mu, from when it saw that it is its turn: so who is in a group is decided by who
// came when, and not by who gets on faster afterwards, and a simulated pass can be repeated.
func (l *leases) take() []chan leased {
	group := l.waiting
	l.waiting, l.busy = nil, len(group) > 0
	return group
}

// leaseFor leases for a group. Whoever came meanwhile is served by a goroutine: this one's worker has work now.
func (l *leases) leaseFor(ctx context.Context, group []chan leased) {
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
		if next := l.take(); next != nil {
			go l.leaseFor(ctx, next)
		}
	}()
	ops, err = l.lease(ctx, len(group))
}
