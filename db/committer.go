package db

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

// companyMax is how many rows share one transaction at most: enough for every caller of a busy server, small enough that one
// statement stays far below a megabyte and a failed one is cheap to take apart.
const companyMax = 512

// ErrNotWritten: the row was not taken, and was and will not be written: its caller gave up before, or it was not let in.
var ErrNotWritten = fmt.Errorf("the row was not taken: %w", ErrUnavailable)

// ErrBusy is the [ErrNotWritten] of a row that was not let in: too many wait already.
var ErrBusy = fmt.Errorf("too many rows wait to be written: %w", ErrNotWritten)

// ErrMaybeWritten: the caller gave up while its row was being written; it may or may not be.
var ErrMaybeWritten = fmt.Errorf("gave up while the row was being written: %w", ErrUnavailable)

// Committer writes rows in company: whatever queued up while the last transaction was committing is written by one set-based statement,
// in one transaction, with one fsync. There is no timer: a row that comes alone is written at once, alone.
//
// Rows stay independent. The statement carries a fence for each row and returns the rows that won; a row that loses its fence loses
// alone; when a statement fails, its rows are run again one by one, so that a bad row hurts nobody else.
//
// R is a row, W what a winning row gets back.
type Committer[R, W any] struct {
	// Write executes one set-based statement and returns what the winning rows got, by id. It must be safe to execute twice:
	// every row is a compare-and-swap.
	Write func(ctx context.Context, rows []R) (map[string]W, error)
	// ID names a row among those of one statement.
	ID func(R) string
	// QueueMax is how many rows may wait; one more is refused at once with [ErrBusy]. 0: any number. A bounded queue keeps waiting short under
	// overload: who would be served when nobody listens any more is better told at once.
	QueueMax int
	// Late is told of a row that won after its caller had given up. May be nil.
	Late func(R, W)

	mu    sync.Mutex
	queue []*companion[R, W]
	busy  bool

	statements, rows, won atomic.Int64
}

// CommitterStats counts what a committer has done since it was made. Rows over Statements is the size of the company.
type CommitterStats struct {
	Statements int64 // statements, those included that failed or ran a row alone again
	Rows       int64 // rows in these statements
	Won        int64 // rows whose fence held
}

// Stats returns the counts so far.
func (c *Committer[R, W]) Stats() CommitterStats {
	return CommitterStats{Statements: c.statements.Load(), Rows: c.rows.Load(), Won: c.won.Load()}
}

type companion[R, W any] struct {
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

// Do writes row and reports whether its fence held. It returns early when ctx ends: with [ErrNotWritten] or [ErrMaybeWritten]. The
// statement itself is never cancelled: cancelling a commit does not undo it, and with a synchronous standby makes it lie.
func (c *Committer[R, W]) Do(ctx context.Context, row R) (got W, won bool, err error) {
	me := &companion[R, W]{row: row, done: make(chan outcome[W], 1)}
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
		n := min(len(c.queue), companyMax)
		if n == 0 {
			c.busy = false
			c.mu.Unlock()
			return
		}
		batch := c.queue[:n:n]
		c.queue = c.queue[n:]
		c.mu.Unlock()

		company := batch[:0:0]
		for _, one := range batch {
			if one.state.CompareAndSwap(queued, taken) {
				company = append(company, one)
			}
		}
		c.write(ctx, company)
	}
}

// write executes one statement for the whole company, or, when it fails by its data, one for each.
func (c *Committer[R, W]) write(ctx context.Context, company []*companion[R, W]) {
	got, err := c.execute(ctx, company)
	if err == nil || len(company) <= 1 || errors.Is(err, ErrUnavailable) {
		c.answer(company, got, err)
		return
	}
	for i := range company {
		one := company[i : i+1]
		got, err = c.execute(ctx, one)
		c.answer(one, got, err)
		if errors.Is(err, ErrUnavailable) {
			c.answer(company[i+1:], nil, err)
			return
		}
	}
}

func (c *Committer[R, W]) execute(ctx context.Context, company []*companion[R, W]) (got map[string]W, err error) {
	if len(company) == 0 {
		return nil, nil
	}
	rows := make([]R, len(company))
	for i, one := range company {
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

func (c *Committer[R, W]) answer(company []*companion[R, W], got map[string]W, err error) {
	for _, one := range company {
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
