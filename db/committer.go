package db

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

// batchMax is how many rows one transaction has at most: enough for every caller of a busy server,
// few enough that a statement stays far below a megabyte and a failed one is cheap to repeat row by
// row.
const batchMax = 512

// ErrNotWritten means that the row was not written and will not be: its caller gave up before, or
// the queue was full.
var ErrNotWritten = fmt.Errorf("the row was not taken: %w", ErrUnavailable)

// ErrBusy is the [ErrNotWritten] of a row that found the queue full.
var ErrBusy = fmt.Errorf("too many rows wait to be written: %w", ErrNotWritten)

// ErrMaybeWritten means that the caller gave up while its row was being written. It may or may not
// be written.
var ErrMaybeWritten = fmt.Errorf("gave up while the row was being written: %w", ErrUnavailable)

// Committer writes rows in batches: the rows that queued up while the last transaction was
// committing are written together by one set-based statement, in one transaction, with one fsync.
// There is no timer: a row that finds the committer idle is written at once. A Committer is safe
// for concurrent use once its fields are set.
//
// Rows stay independent. The statement checks a fence for each row and returns the rows that won,
// so a row whose fence fails is left out alone. When a statement fails, its rows are run again one
// by one, so that a bad row does not affect the others.
//
// R is a row, W what a winning row gets back.
type Committer[R, W any] struct {
	// Write executes one set-based statement and returns what the winning rows got, by id. It must
	// be safe to execute twice: every row is a compare-and-swap.
	Write func(ctx context.Context, rows []R) (map[string]W, error)
	// ID names a row among those of one statement.
	ID func(R) string
	// QueueMax is how many rows may wait; one more is refused at once with [ErrBusy]. 0 means any
	// number. A bounded queue keeps waits short under overload: a caller that would have given up
	// before its turn is better refused at once.
	QueueMax int
	// Late, unless nil, is called with a row that won after its caller had given up.
	Late func(R, W)

	mu    sync.Mutex
	queue []*waiter[R, W]
	busy  bool

	statements, rows, won atomic.Int64
}

// CommitterStats counts what a committer has done since it was created. Rows divided by Statements
// is the average size of a batch.
type CommitterStats struct {
	Statements int64 // statements, those included that failed or ran a row alone again
	Rows       int64 // rows in these statements
	Won        int64 // rows whose fence held
}

// Stats returns the counts so far.
func (c *Committer[R, W]) Stats() CommitterStats {
	return CommitterStats{Statements: c.statements.Load(), Rows: c.rows.Load(), Won: c.won.Load()}
}

// waiter is a caller of Do whose row is queued or being written.
type waiter[R, W any] struct {
	row   R
	state atomic.Int32
	done  chan outcome[W]
}

type outcome[W any] struct {
	got W
	won bool
	err error
}

const (
	queued int32 = iota
	taken
	answered
	left // the caller gave up
)

// Do writes row and reports whether its fence held. It returns early when ctx ends: with
// [ErrNotWritten] or [ErrMaybeWritten]. The statement itself is never cancelled: cancelling a
// commit does not undo it, and with a synchronous standby makes it lie.
func (c *Committer[R, W]) Do(ctx context.Context, row R) (got W, won bool, err error) {
	me := &waiter[R, W]{row: row, done: make(chan outcome[W], 1)}
	c.mu.Lock()
	if c.QueueMax > 0 && len(c.queue) >= c.QueueMax {
		c.mu.Unlock()
		return got, false, ErrBusy
	}
	c.queue = append(c.queue, me)
	if !c.busy {
		c.busy = true
		go c.flush(context.WithoutCancel(ctx))
	}
	c.mu.Unlock()
	select {
	case o := <-me.done:
		return o.got, o.won, o.err
	case <-ctx.Done():
	}
	switch {
	case me.state.CompareAndSwap(queued, left):
		return got, false, ErrNotWritten
	case me.state.CompareAndSwap(taken, left):
		return got, false, ErrMaybeWritten
	}
	o := <-me.done
	return o.got, o.won, o.err
}

// flush works until the queue is empty, then ends: an idle committer has no goroutine.
func (c *Committer[R, W]) flush(ctx context.Context) {
	for {
		c.mu.Lock()
		n := min(len(c.queue), batchMax)
		if n == 0 {
			c.busy = false
			c.mu.Unlock()
			return
		}
		next := c.queue[:n:n]
		c.queue = c.queue[n:]
		c.mu.Unlock()

		batch := next[:0:0]
		for _, one := range next {
			if one.state.CompareAndSwap(queued, taken) {
				batch = append(batch, one)
			}
		}
		c.write(ctx, batch)
	}
}

// write executes one statement for the whole batch or, when that fails because of its data, one for
// each row.
func (c *Committer[R, W]) write(ctx context.Context, batch []*waiter[R, W]) {
	got, err := c.execute(ctx, batch)
	if err == nil || len(batch) <= 1 || errors.Is(err, ErrUnavailable) {
		c.answer(batch, got, err)
		return
	}
	for i := range batch {
		one := batch[i : i+1]
		got, err = c.execute(ctx, one)
		c.answer(one, got, err)
		if errors.Is(err, ErrUnavailable) {
			c.answer(batch[i+1:], nil, err)
			return
		}
	}
}

func (c *Committer[R, W]) execute(
	ctx context.Context, batch []*waiter[R, W],
) (got map[string]W, err error) {
	if len(batch) == 0 {
		return nil, nil
	}
	rows := make([]R, len(batch))
	for i, one := range batch {
		rows[i] = one.row
	}
	err = Retry(ctx, func(ctx context.Context) (err error) {
		c.statements.Add(1)
		c.rows.Add(int64(len(rows)))
		got, err = c.Write(ctx, rows)
		return err
	})
	c.won.Add(int64(len(got)))
	return got, err
}

func (c *Committer[R, W]) answer(batch []*waiter[R, W], got map[string]W, err error) {
	for _, one := range batch {
		o := outcome[W]{err: err}
		o.got, o.won = got[c.ID(one.row)]
		switch {
		case one.state.CompareAndSwap(taken, answered):
			one.done <- o
		case o.won && c.Late != nil:
			c.Late(one.row, o.got)
		}
	}
}
