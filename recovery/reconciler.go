// Package recovery is the second driver: it finds operations that nobody works on and hands them to
// the same runner that the HTTP handler uses. It knows nothing of what an operation does.
package recovery

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"paidonce/idemkeys"
)

const (
	// workers is how many operations a pass drives at once. No more are leased than there are free
	// workers, so no lease waits in a queue while its time runs; most of a worker's time is waiting
	// for a call.
	workers = 32
	// leaseFrom is how many workers have to be free before operations are leased for them: half, so
	// that one statement leases many, and the commits of those that end together share a
	// transaction. The other half works meanwhile.
	leaseFrom = workers / 2
)

// LimitDefault bounds a pass when nothing else is asked for: a cron job that runs every minute gets
// through as many in one.
const LimitDefault = 10_000

// Reconciler goes on with what was left. Safe for concurrent use, and any number of processes may
// have one.
type Reconciler struct {
	Leases *idemkeys.Leases
	Runner *idemkeys.Runner
	// Await asks the provider about what waits for somebody else, such as a payer. It may be nil.
	Await func(ctx context.Context) error
	Log   *slog.Logger
}

// Counts is what a pass did.
type Counts struct {
	Driven    int `json:"driven"`
	Finished  int `json:"finished"`   // the answer is stored
	Waiting   int `json:"waiting"`    // still no outcome; driven again later
	Parked    int `json:"parked"`     // parked by this pass
	ParkedAll int `json:"parked_all"` // parked in all, waiting for an operator
}

// Pass drives up to limit operations that are stale or due, then asks for what is awaited, and
// returns. An operation is driven at most once in a pass, and by one of those that run at the same
// time. Errors: the database's, or those of Await. What was begun has ended all the same, and is
// counted.
func (r Reconciler) Pass(ctx context.Context, limit int) (Counts, error) {
	c, err := r.driveDue(ctx, limit)
	if err == nil && r.Await != nil {
		err = r.Await(ctx)
	}
	return c, err
}

func (r Reconciler) driveDue(ctx context.Context, limit int) (Counts, error) {
	start, err := r.Leases.Now(ctx)
	if err != nil {
		return Counts{}, err
	}
	p := pass{Reconciler: r, start: start}
	defer p.report(ctx)()
	err = p.dispatch(ctx, limit)
	p.running.Wait()
	c := p.counts()
	if ctx.Err() != nil {
		return c, context.Cause(ctx)
	}
	if err == nil {
		c.ParkedAll, err = r.Leases.CountParked(ctx)
	}
	return c, err
}

type pass struct {
	Reconciler
	start   time.Time // the database's clock
	running sync.WaitGroup

	finished, waiting, parked atomic.Int64
}

func (p *pass) counts() Counts {
	c := Counts{
		Finished: int(p.finished.Load()), Waiting: int(p.waiting.Load()),
		Parked: int(p.parked.Load()),
	}
	c.Driven = c.Finished + c.Waiting + c.Parked
	return c
}

// dispatch leases operations for the workers that are free, in one statement for all of them, until
// nothing is due.
func (p *pass) dispatch(ctx context.Context, limit int) error {
	done := make(chan struct{}, workers)
	for free := workers; limit > 0; {
		for free < leaseFrom {
			select {
			case <-done:
				free++
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		for ; len(done) > 0; free++ { // nobody else receives
			<-done
		}
		most := min(free, limit)
		ops, err := p.Leases.LeaseDue(ctx, p.start, most)
		for _, op := range ops {
			p.running.Go(func() {
				defer func() { done <- struct{}{} }()
				p.work(ctx, op)
			})
		}
		if err != nil || len(ops) < most {
			return err
		}
		free, limit = free-len(ops), limit-len(ops)
	}
	return nil
}

func (p *pass) work(ctx context.Context, op *idemkeys.Operation) {
	_, err := p.Runner.Drive(ctx, op)
	var parked *idemkeys.Parked
	switch {
	case err == nil:
		p.finished.Add(1)
	case errors.As(err, &parked):
		p.parked.Add(1)
	default:
		p.waiting.Add(1)
	}
}

// reportEvery is how often long work says that it is alive: often enough for somebody who watches
// it.
const reportEvery = 5 * time.Second

// report logs the progress of a long pass until it is stopped.
func (p *pass) report(ctx context.Context) (stop func()) {
	done := make(chan struct{})
	go func() {
		tick := time.NewTicker(reportEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				p.Log.InfoContext(ctx, "reconciling", p.counts().attributes()...)
			case <-done:
				return
			}
		}
	}()
	return func() { close(done) }
}

// attributes are those of a line of the log.
func (c Counts) attributes() []any {
	return []any{
		"driven", c.Driven, "finished", c.Finished, "waiting", c.Waiting, "parked", c.Parked,
	}
}
