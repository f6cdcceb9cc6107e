package idemkeys

import (
	"context"
	"errors"
	"time"

	"paidonce/db"
)

// KeyInfo is what an account may know of one of its keys.
type KeyInfo struct {
	Key             string
	Status          Status
	Point           Point
	Attempts        int
	OperationID     string
	ResourceID      string
	Parked          bool
	ResponseCode    int // 0 while unfinished
	OriginalRequest string
	CreatedAt       time.Time
	ExpiresAt       *time.Time // nil while unfinished: an unfinished key never expires
}

// Lookup tells what became of a key. Errors: [ErrNotFound], also for a key whose time is over; or the database's.
func (e *Engine) Lookup(ctx context.Context, accountID, key string) (KeyInfo, error) {
	k, err := e.read(ctx, accountID, key)
	if errors.Is(err, ErrNotFound) {
		if err := e.whyNot(ctx, Request{AccountID: accountID, Key: key}); err != nil {
			return KeyInfo{}, err
		}
		k, err = e.read(ctx, accountID, key)
	}
	if err != nil {
		return KeyInfo{}, err
	}
	if k.Expired {
		return KeyInfo{}, ErrNotFound
	}
	row := k.IdempotencyKey
	info := KeyInfo{
		Key: row.Key, Status: Status(row.Status), Point: Point(row.RecoveryPoint), Attempts: int(row.Attempts),
		OperationID: row.OperationID, ResourceID: row.ResourceID, Parked: row.ParkedAt != nil, OriginalRequest: row.RequestID,
		CreatedAt: row.CreatedAt, ExpiresAt: row.ExpiresAt,
	}
	if row.ResponseCode != nil {
		info.ResponseCode = int(*row.ResponseCode)
	}
	return info, nil
}

// Now is the database's time. Errors: the database's.
func (e *Engine) Now(ctx context.Context) (now time.Time, err error) {
	err = db.Retry(ctx, func(ctx context.Context) (err error) {
		now, err = e.queries.Now(ctx, e.pool)
		return err
	})
	return now, err
}

// CountParked returns how many operations wait for a person. Errors: the database's.
func (e *Engine) CountParked(ctx context.Context) (int, error) {
	var n int64
	err := db.Retry(ctx, func(ctx context.Context) (err error) {
		n, err = e.queries.KeyCountParked(ctx, e.pool)
		return err
	})
	return int(n), err
}

// ListDue lists up to most operations that a pass would drive now, the longest waiting first, and touches nothing. Errors: the database's.
func (e *Engine) ListDue(ctx context.Context, most int) ([]History, error) {
	var ids []string
	err := db.Retry(ctx, func(ctx context.Context) (err error) {
		ids, err = e.queries.KeyListDue(ctx, e.pool, db.KeyListDueParams{StaleAfter: e.cfg.StaleAfter, Most: int32(most)}) //nolint:gosec // bounded by the caller
		return err
	})
	if err != nil {
		return nil, err
	}
	list := make([]History, 0, len(ids))
	for _, id := range ids {
		h, err := e.Show(ctx, id)
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

// Sweep forgets up to most keys whose time is over and tells how many. Unfinished keys have no end of their time. Errors: the database's.
func (e *Engine) Sweep(ctx context.Context, most int) (int, error) {
	var n int64
	err := db.RetryConflict(ctx, func(ctx context.Context) (err error) { // a batch whose answer was lost would go uncounted: the next sweep goes on
		n, err = e.queries.KeySweep(ctx, e.pool, int32(most)) //nolint:gosec // a constant of the caller's
		if err != nil || n > 0 {
			return err
		}
		n, err = e.queries.RecoveredSweep(ctx, e.pool, int32(most)) //nolint:gosec // as above
		return err
	})
	return int(n), err
}
