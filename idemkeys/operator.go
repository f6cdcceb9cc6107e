package idemkeys

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"paidonce/db"
)

// State of an unfinished operation, as an operator sees it.
type State string

// The states.
const (
	StateParked  State = "parked"  // a person has to decide
	StateStuck   State = "stuck"   // its owner is gone; the next pass takes it
	StateWaiting State = "waiting" // between two attempts
	StateRunning State = "running" // somebody works on it
)

// OperationInfo is an operation as an operator sees it.
type OperationInfo struct {
	ID         string
	AccountID  string
	Kind       string
	ResourceID string
	Point      Point
	State      State // empty when it is finished
	Attempts   int
	CreatedAt  time.Time
	NextRunAt  *time.Time
	LastError  string
}

// History is an operation with all that is known of it.
type History struct {
	OperationInfo
	Status         Status
	RequestID      string
	FirstAttemptAt *time.Time
	ServerErrors   int
	Misses         int
	ParkedAt       *time.Time
	ResponseCode   int // 0 while unfinished
	FinishedAt     *time.Time
	Next           Plan // what the next driver would do; empty when it is finished
	Log            []LogLine
}

// LogLine is a line of an operation's log.
type LogLine struct {
	At        time.Time
	Event     string
	Attempt   int
	Actor     string
	BeganAt   *time.Time
	Detail    string
	Reference string
}

// Errors of what a person asks for.
var (
	// ErrNoOperation: no unswept operation has this id.
	ErrNoOperation = errors.New("no such operation")
	// ErrNotParked: only a parked operation can be given back to the drivers.
	ErrNotParked = errors.New("the operation is not parked")
	// ErrBusy: a driver works on it at this moment.
	ErrBusy = errors.New("somebody works on the operation at this moment; try again when its lease is over")
	// ErrFinished: its answer is stored and will not change.
	ErrFinished = errors.New("the operation is finished; its answer does not change any more")
)

// List lists up to most unfinished operations in these states, the oldest first. Errors: the database's.
func (e *Engine) List(ctx context.Context, states []State, most int) ([]OperationInfo, error) {
	names := make([]string, len(states))
	for i, s := range states {
		names[i] = string(s)
	}
	var rows []db.OperationListRow
	err := db.Retry(ctx, func(ctx context.Context) (err error) {
		rows, err = e.queries.OperationList(ctx, e.pool, db.OperationListParams{StaleAfter: e.cfg.StaleAfter, States: names, Most: int32(most)}) //nolint:gosec // bounded by the caller
		return err
	})
	if err != nil {
		return nil, err
	}
	list := make([]OperationInfo, 0, len(rows))
	for _, r := range rows {
		info := OperationInfo{
			ID: r.OperationID, AccountID: r.AccountID, Kind: r.Kind, ResourceID: r.ResourceID, Point: Point(r.RecoveryPoint), State: State(r.State),
			Attempts: int(r.Attempts), CreatedAt: r.CreatedAt, NextRunAt: r.NextRunAt,
		}
		if r.LastError != nil {
			info.LastError = *r.LastError
		}
		list = append(list, info)
	}
	return list, nil
}

// byOperation reads the key's row of an operation. Errors: [ErrNoOperation], or the database's.
func (e *Engine) byOperation(ctx context.Context, operationID string) (record, error) {
	var at db.OperationKeyRow
	err := db.Retry(ctx, func(ctx context.Context) (err error) {
		at, err = e.queries.OperationKey(ctx, e.pool, operationID)
		return err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return record{}, ErrNoOperation
	}
	if err != nil {
		return record{}, err
	}
	k, err := e.read(ctx, at.AccountID, at.Key)
	if errors.Is(err, ErrNotFound) || err == nil && k.IdempotencyKey.OperationID != operationID {
		return record{}, ErrNoOperation
	}
	return k, err
}

// Show tells all that is known of an operation. Its log outlives its key: then only that is told. Errors: [ErrNoOperation], or the database's.
func (e *Engine) Show(ctx context.Context, operationID string) (History, error) {
	var lines []db.OperationLog
	err := db.Retry(ctx, func(ctx context.Context) (err error) {
		lines, err = e.queries.OperationLog(ctx, e.pool, operationID)
		return err
	})
	if err != nil {
		return History{}, err
	}
	h := History{OperationInfo: OperationInfo{ID: operationID}}
	for _, l := range lines {
		h.Log = append(h.Log, LogLine{At: l.At, Event: l.Event, Attempt: int(l.Attempt), Actor: l.Actor, BeganAt: l.BeganAt, Detail: l.Detail, Reference: l.Reference})
	}
	k, err := e.byOperation(ctx, operationID)
	if errors.Is(err, ErrNoOperation) && len(h.Log) > 0 {
		return h, nil
	}
	if err != nil {
		return History{}, err
	}
	row := k.IdempotencyKey
	op := operation(row, facts{reached: row.FirstAttemptAt != nil, windowOpen: k.WindowOpen, spanOver: k.SpanOver, now: k.Now})
	h.OperationInfo = OperationInfo{
		ID: row.OperationID, AccountID: row.AccountID, Kind: row.Kind, ResourceID: row.ResourceID, Point: op.Point, State: k.state(),
		Attempts: op.Attempts, CreatedAt: row.CreatedAt, NextRunAt: row.NextRunAt,
	}
	if row.LastError != nil {
		h.LastError = *row.LastError
	}
	h.Status, h.RequestID, h.FirstAttemptAt, h.ParkedAt, h.FinishedAt = Status(row.Status), row.RequestID, row.FirstAttemptAt, row.ParkedAt, row.FinishedAt
	h.ServerErrors, h.Misses = op.ServerErrors, op.Misses
	if row.ResponseCode != nil {
		h.ResponseCode = int(*row.ResponseCode)
	}
	if h.State != "" && h.State != StateParked {
		_, known := e.kinds[op.Kind].Phases[op.Point]
		h.Next, _ = planFor(op, known, h.State != StateRunning)
	}
	return h, nil
}

func (k record) state() State {
	row := k.IdempotencyKey
	switch {
	case Status(row.Status) != InProgress:
		return ""
	case row.ParkedAt != nil:
		return StateParked
	case row.LeaseToken == nil:
		return StateWaiting
	case k.Stale:
		return StateStuck
	}
	return StateRunning
}

// Retry gives a parked operation back to the drivers. Errors: [ErrNoOperation], [ErrNotParked], or the database's.
func (e *Engine) Retry(ctx context.Context, operationID, by, reason string) error {
	var n int64
	err := db.RetryConflict(ctx, func(ctx context.Context) (err error) {
		n, err = e.queries.KeyUnpark(ctx, e.pool, db.KeyUnparkParams{OperationID: operationID, Actor: operator(by), Reason: bounded(reason)})
		return err
	})
	if err != nil || n > 0 {
		return err
	}
	if _, err := e.byOperation(ctx, operationID); err != nil {
		return err
	}
	return ErrNotParked
}

func operator(by string) string { return "operator " + bounded(by) }

// Resolve ends an operation by a person's word, after it was checked at the provider, through the fenced path that every driver takes. Errors:
// [ErrNoOperation], [ErrFinished], [ErrBusy]; why the word cannot be taken; or the database's. After an error the operation is as it was.
func (e *Engine) Resolve(ctx context.Context, operationID string, r Resolution) (Answer, error) {
	k, err := e.byOperation(ctx, operationID)
	if err != nil {
		return Answer{}, err
	}
	switch k.state() {
	case "":
		return Answer{}, ErrFinished
	case StateRunning:
		return Answer{}, ErrBusy
	}
	kind, known := e.kinds[k.IdempotencyKey.Kind]
	if !known || kind.Resolve == nil {
		return Answer{}, fmt.Errorf("operations of kind %q cannot be resolved by this binary", k.IdempotencyKey.Kind)
	}
	actor := operator(r.By)
	if r.News {
		actor = "provider"
	}
	op, won, err := e.takeOver(ctx, k, actor, true)
	if err != nil {
		return Answer{}, err
	}
	if !won {
		return Answer{}, ErrBusy
	}
	c, err := kind.Resolve(ctx, op, r)
	if err != nil {
		e.giveBack(ctx, op, k, err)
		return Answer{}, err
	}
	c.Log = &LogEntry{Event: "resolved", Actor: op.Actor, Detail: bounded(r.Reason)}
	switch {
	case r.Adopt:
		c.Log.Event = "adopted"
	case r.News:
		c.Log.Event = "settled"
	}
	won, err = execute(ctx, op, c)
	switch {
	case err != nil:
		e.giveBack(ctx, op, k, err)
		return Answer{}, err
	case !won:
		return Answer{}, ErrBusy
	}
	e.waiters.wake(scopedKey{op.AccountID, op.Key})
	return *c.Answer, nil
}

const parkedBecause = "; parked because: "

// giveBack leaves an operation as it was before a person tried to resolve it.
func (e *Engine) giveBack(ctx context.Context, op Operation, was record, why error) {
	u := Unresolved{Reason: "not resolved: " + why.Error()}
	if was.state() == StateParked {
		if last := was.IdempotencyKey.LastError; last != nil {
			// What it was parked for stays in sight, once.
			parts := strings.Split(*last, parkedBecause)
			u.Reason += parkedBecause + parts[len(parts)-1]
		}
		_, _ = e.park(ctx, op, u) // it tells the log when it cannot
		return
	}
	e.release(ctx, op, u)
}

// RetryNow is Retry, and drives the operation at once, in this process. Errors: those of Retry, [ErrBusy], and
// what Drive makes of it.
func (e *Engine) RetryNow(ctx context.Context, operationID, by, reason string) (Result, error) {
	if err := e.Retry(ctx, operationID, by, reason); err != nil {
		return Result{}, err
	}
	k, err := e.byOperation(ctx, operationID)
	if err != nil {
		return Result{}, err
	}
	op, won, err := e.takeOver(ctx, k, operator(by), false)
	switch {
	case err != nil:
		return Result{}, err
	case !won:
		return Result{}, ErrBusy
	}
	return e.Drive(ctx, op)
}
