package sim_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"paidonce/charges"
	"paidonce/idemkeys"
)

// stopStatements are the statements at which a goroutine stops until the scheduler lets it go on.
var stopStatements = []string{
	"ChargeClaim", "ChargeSettle", "KeyRead", "KeyTakeOver", "KeyLeaseDue", "KeyRelease", "KeyPark",
	"KeyForget", "KeySweep",
}

// stopTransactions are the statements that transactions begin with. A goroutine stops before such a
// statement, and then does the whole transaction, so that nobody waits for its locks.
var stopTransactions = []string{"ChargeLock", "KeyFinish"}

// moves and lookUps are the calls to the provider at which it stops.
var (
	moves   = []string{"Charge", "Capture", "Refund"}
	lookUps = []string{"FindCharge", "FindRefund", "GetCharge", "RefundsOf"}
)

// fate is what becomes of a goroutine at a stop.
type fate int

const (
	goOn      fate = iota
	dieInside      // the process dies; a statement is rolled back, a call is not made
	dieAfter       // the process dies; the statement is committed, the call was made
	refuse         // the statement fails before it is executed: the connection is gone
	lose           // the statement is committed, and its answer is lost
	dead           // the process has died meanwhile
)

// stoppedCall is a goroutine of the product that waits at a step boundary.
type stoppedCall struct {
	in      *process
	actor   string // the actor on whose behalf it works; empty for what the product does by itself
	place   string // name of the statement or the call
	args    []any
	subject string // key or operation
	held    int    // not before this step: a process that was stopped for long
	resume  chan instruction
}

type instruction struct {
	fate  fate
	fault string // of a call
}

type actorKey struct{}

// process is a process of the product.
type process struct {
	run     *run
	number  int
	dead    bool // guarded by run.mu
	down    int  // it does not reach the database before this step
	engine  *idemkeys.Engine
	service *charges.Service
}

// stop holds the goroutine until the scheduler lets it go. A goroutine of a dead process ends here,
// on the spot.
func (in *process) stop(ctx context.Context, place string, args ...any) instruction {
	s := &stoppedCall{in: in, place: place, args: args, resume: make(chan instruction)}
	s.actor, _ = ctx.Value(actorKey{}).(string)
	in.run.mu.Lock()
	if in.dead {
		in.run.mu.Unlock()
		runtime.Goexit()
	}
	in.run.arrived = append(in.run.arrived, s)
	in.run.mu.Unlock()
	o := <-s.resume
	if o.fate == dead {
		runtime.Goexit()
	}
	return o
}

// simulatedPool is the database as an instance sees it.
type simulatedPool struct{ in *process }

func statementName(sql string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(sql, "-- name: "), " ")
	return name
}

// begin stops before the statement. done: it is over already, with err.
func (p simulatedPool) begin(
	ctx context.Context, sql string, args []any,
) (changed string, done bool, err error) {
	changed = p.in.run.change(sql)
	name := statementName(sql)
	if !slices.Contains(stopStatements, name) {
		return changed, false, ctx.Err()
	}
	switch p.in.stop(ctx, name, args...).fate {
	case dieInside:
		p.in.run.lane.carry(func() { rolledBack(p.in.run.lane, changed, args) })
		runtime.Goexit()
	case dieAfter:
		_ = p.in.run.lane.exec(changed, args...)
		runtime.Goexit()
	case refuse:
		return changed, true, fmt.Errorf("simulated: the connection is gone before %s", name)
	case lose:
		if ctx.Err() != nil {
			return changed, true, ctx.Err()
		}
		if err := p.in.run.lane.exec(changed, args...); err != nil {
			return changed, true, err
		}
		return changed, true, fmt.Errorf("simulated: the connection is gone after %s", name)
	}
	return changed, ctx.Err() != nil, ctx.Err()
}

func rolledBack(l *lane, sql string, args []any) {
	ctx := context.Background()
	tx, err := l.pool.Begin(ctx)
	if err != nil {
		return
	}
	defer func() { _ = tx.Rollback(ctx) }()
	if rows, err := tx.Query(ctx, sql, args...); err == nil {
		rows.Close() // it is executed whole
	}
}

func (p simulatedPool) Exec(
	ctx context.Context, sql string, args ...any,
) (tag pgconn.CommandTag, err error) {
	args = evenPauses(sql, args)
	sql, done, err := p.begin(ctx, sql, args)
	if done || err != nil {
		return tag, err
	}
	p.in.run.lane.carry(
		func() { tag, err = p.in.run.lane.pool.Exec(context.Background(), sql, args...) },
	)
	return tag, err
}

func (p simulatedPool) Query(
	ctx context.Context, sql string, args ...any,
) (rows pgx.Rows, err error) {
	sql, done, err := p.begin(ctx, sql, args)
	if done || err != nil {
		return nil, err
	}
	pool := p.in.run.lane.pool
	p.in.run.lane.carry(func() { rows, err = pool.Query(context.Background(), sql, args...) }) //nolint:sqlclosecheck // the caller's
	return rows, err
}

func (p simulatedPool) QueryRow(ctx context.Context, sql string, args ...any) (row pgx.Row) {
	sql, done, err := p.begin(ctx, sql, args)
	if done || err != nil {
		return failedRow{err}
	}
	p.in.run.lane.carry(
		func() { row = p.in.run.lane.pool.QueryRow(context.Background(), sql, args...) },
	)
	return row
}

type failedRow struct{ err error }

func (r failedRow) Scan(...any) error { return r.err }

// evenPauses takes the dice out of the pause before an operation's next run: half of it is random,
// and a run must be able to be repeated.
func evenPauses(sql string, args []any) []any {
	if statementName(sql) != "KeyRelease" {
		return args
	}
	args = slices.Clone(args)
	for i, a := range args {
		if d, ok := a.(time.Duration); ok {
			even := 500 * time.Millisecond
			for even < 128*time.Second && 2*even <= d {
				even *= 2
			}
			args[i] = even
		}
	}
	return args
}
