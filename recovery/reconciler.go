// Package recovery is the second driver: it finds operations that nobody works on and hands them to the same runner that the HTTP handler
// uses. It knows nothing of what an operation does.
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

// workers is how many operations a pass drives at once. Each gets its next one only when it is free, so no lease waits in a queue
// while its time runs; most of a worker's time is waiting for the provider.
const workers = 16

// LimitDefault bounds a pass when nothing else is asked for: a cron job that runs every minute gets through as many in one.
const LimitDefault = 10_000

// Engine is what a pass needs of [idemkeys.Engine].
type Engine = idemkeys.Engine

// Counts is what a pass did.
type Counts struct {
	Driven    int `json:"driven"`
	Finished  int `json:"finished"`   // the answer is stored
	Waiting   int `json:"waiting"`    // still no outcome; driven again later
	Parked    int `json:"parked"`     // parked by this pass
	ParkedAll int `json:"parked_all"` // parked in all, waiting for a person
}

// Pass drives up to limit operations that are stale or due, and returns. Any number of passes may run at once: each operation is leased by
// one of them. An operation is driven at most once in a pass. Errors: the database's, when nothing could be driven.
func Pass(ctx context.Context, e *Engine, limit int, log *slog.Logger) (Counts, error) {
	start, err := e.Now(ctx)
	if err != nil {
		return Counts{}, err
	}
	p := pass{engine: e, start: start, log: log}
	p.left.Store(int64(limit))
	p.due.lease = func(ctx context.Context, most int) ([]idemkeys.Operation, error) { return e.LeaseDue(ctx, start, most) }
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			if err := p.work(ctx); err != nil {
				cancel(err)
			}
		})
	}
	stop := p.report(ctx)
	group.Wait()
	stop()
	c := Counts{Driven: int(p.driven.Load()), Finished: int(p.finished.Load()), Waiting: int(p.waiting.Load()), Parked: int(p.parked.Load())}
	if err := context.Cause(ctx); err != nil {
		return c, err
	}
	c.ParkedAll, err = e.CountParked(ctx)
	return c, err
}

type pass struct {
	engine *Engine
	start  time.Time // the database's clock
	log    *slog.Logger

	left                              atomic.Int64
	due                               leases
	driven, finished, waiting, parked atomic.Int64
}

// work leases and drives one operation after the other until nothing is due.
func (p *pass) work(ctx context.Context) error {
	for ctx.Err() == nil && p.left.Add(-1) >= 0 {
		op, err := p.due.next(ctx)
		if err != nil || op == nil {
			return err
		}
		p.drive(ctx, *op)
	}
	return nil
}

func (p *pass) drive(ctx context.Context, op idemkeys.Operation) {
	_, err := p.engine.Drive(ctx, op)
	p.driven.Add(1)
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

// reportEvery is how often a long pass says that it is alive.
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
				p.log.InfoContext(ctx, "reconciling", "driven", p.driven.Load(), "finished", p.finished.Load(), "waiting", p.waiting.Load(), "parked", p.parked.Load())
			case <-done:
				return
			}
		}
	}()
	return func() { close(done) }
}
