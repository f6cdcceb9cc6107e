package idemkeys

import (
	"context"
	"errors"
	"time"

	"paidonce/db"
)

// State of an unfinished operation, as an operator sees it.
type State string

// The states.
const (
	StateParked  State = "parked"  // an operator has to decide
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

// Errors of an operator's requests.
var (
	// ErrNoOperation says that no operation has this id, or that it was swept.
	ErrNoOperation = errors.New("no such operation")
	// ErrNotParked says that the operation is not parked: only a parked one can be returned to the
	// drivers.
	ErrNotParked = errors.New("the operation is not parked")
	// ErrBusy says that a driver works on the operation at this moment.
	ErrBusy = errors.New(
		"somebody works on the operation at this moment; try again when its lease is over",
	)
	// ErrFinished says that the operation's answer is stored and will not change.
	ErrFinished = errors.New("the operation is finished; its answer does not change any more")
)

// Desk lets operators look at operations, and decide those that no driver could. Safe for
// concurrent use.
type Desk struct {
	*core
	leases *Leases
	runner *Runner
}

// List lists up to most unfinished operations in these states, the oldest first. Errors: the
// database's.
func (d *Desk) List(ctx context.Context, states []State, most int) ([]OperationInfo, error) {
	names := make([]string, len(states))
	for i, s := range states {
		names[i] = string(s)
	}
	rows, err := db.Read(ctx, d.pool, d.queries.OperationList, db.OperationListParams{
		StaleAfter: d.cfg.StaleAfter, States: names, MaxRows: int32(most), //nolint:gosec // bounded by the caller
	})
	if err != nil {
		return nil, err
	}
	list := make([]OperationInfo, 0, len(rows))
	for _, r := range rows {
		info := OperationInfo{
			ID: r.OperationID, AccountID: r.AccountID, Kind: r.Kind, ResourceID: r.ResourceID,
			Point: Point(r.RecoveryPoint), State: State(r.State), Attempts: int(r.Attempts),
			CreatedAt: r.CreatedAt, NextRunAt: r.NextRunAt,
		}
		if r.LastError != nil {
			info.LastError = *r.LastError
		}
		list = append(list, info)
	}
	return list, nil
}

// ListDue lists up to most operations that a pass would drive now, the longest waiting first. It
// changes nothing. Errors: the database's.
func (d *Desk) ListDue(ctx context.Context, most int) ([]History, error) {
	ids, err := db.Read(ctx, d.pool, d.queries.KeyListDue, db.KeyListDueParams{
		StaleAfter: d.cfg.StaleAfter, MaxRows: int32(most), //nolint:gosec // bounded by the caller
	})
	if err != nil {
		return nil, err
	}
	list := make([]History, 0, len(ids))
	for _, id := range ids {
		h, err := d.Show(ctx, id)
		if errors.Is(err, ErrNoOperation) {
			continue // finished and swept meanwhile
		}
		if err != nil {
			return nil, err
		}
		list = append(list, h)
	}
	return list, nil
}

// Show returns all that is known of an operation. Its log outlives its key; after that only the log
// is returned. Errors: [ErrNoOperation], or the database's.
func (d *Desk) Show(ctx context.Context, operationID string) (History, error) {
	lines, err := db.Read(ctx, d.pool, d.queries.OperationLog, operationID)
	if err != nil {
		return History{}, err
	}
	h := History{OperationInfo: OperationInfo{ID: operationID}}
	for _, l := range lines {
		h.Log = append(h.Log, LogLine{
			At: l.At, Event: l.Event, Attempt: int(l.Attempt), Actor: l.Actor, BeganAt: l.BeganAt,
			Detail: l.Detail, Reference: l.Reference,
		})
	}
	k, err := d.byOperation(ctx, operationID)
	if errors.Is(err, ErrNoOperation) && len(h.Log) > 0 {
		return h, nil
	}
	if err != nil {
		return History{}, err
	}
	row := k.IdempotencyKey
	h.OperationInfo = OperationInfo{
		ID: row.OperationID, AccountID: row.AccountID, Kind: row.Kind, ResourceID: row.ResourceID,
		Point: Point(row.RecoveryPoint), State: k.state(), Attempts: int(row.Attempts),
		CreatedAt: row.CreatedAt, NextRunAt: row.NextRunAt,
	}
	if row.LastError != nil {
		h.LastError = *row.LastError
	}
	h.Status, h.RequestID, h.FirstAttemptAt = Status(row.Status), row.RequestID, row.FirstAttemptAt
	h.ParkedAt, h.FinishedAt, h.ServerErrors, h.Misses = row.ParkedAt, row.FinishedAt, int(row.ServerErrors), int(row.LookupMisses)
	if row.ResponseCode != nil {
		h.ResponseCode = int(*row.ResponseCode)
	}
	if h.State != "" && h.State != StateParked {
		_, known := d.kinds[h.Kind].Phases[h.Point]
		h.Next, _ = planFor(k.unleased(), known, h.State != StateRunning)
	}
	return h, nil
}

// unleased is as much of an operation as planFor needs for its next driver.
func (k record) unleased() *Operation {
	row := k.IdempotencyKey
	op := &Operation{
		Kind: row.Kind, Point: Point(row.RecoveryPoint), Attempts: int(row.Attempts),
		CreatedAt: row.CreatedAt, Reached: row.FirstAttemptAt != nil, WindowOpen: k.WindowOpen,
		ServerErrors: int(row.ServerErrors), Misses: int(row.LookupMisses), SpanOver: k.SpanOver,
	}
	op.SetLeased(k.Now, beforeLease())
	return op
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
