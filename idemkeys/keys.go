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

// Keys looks up keys after their requests, and forgets them in the end. Safe for concurrent use.
type Keys struct {
	*core
}

// Lookup returns what became of a key. Errors: [ErrNotFound], also for a key that has expired;
// [ErrHeld] for one that the database may have forgotten; or the database's.
func (k *Keys) Lookup(ctx context.Context, accountID, key string) (KeyInfo, error) {
	found, err := k.read(ctx, accountID, key)
	// out of the way of an operation that the key may have come to stand for since
	if err == nil && found.Expired {
		if err = k.forget(ctx, found.IdempotencyKey); err == nil {
			err = ErrNotFound
		}
	}
	if errors.Is(err, ErrNotFound) {
		found, err = k.readRecovered(ctx, accountID, key)
	}
	switch {
	case err != nil:
		return KeyInfo{}, err
	case found.Expired:
		return KeyInfo{}, ErrNotFound
	}
	row := found.IdempotencyKey
	info := KeyInfo{
		Key: row.Key, Status: Status(row.Status), Point: Point(row.RecoveryPoint),
		Attempts: int(row.Attempts), OperationID: row.OperationID, ResourceID: row.ResourceID,
		Parked: row.ParkedAt != nil, OriginalRequest: row.RequestID, CreatedAt: row.CreatedAt,
		ExpiresAt: row.ExpiresAt,
	}
	if row.ResponseCode != nil {
		info.ResponseCode = int(*row.ResponseCode)
	}
	return info, nil
}

// readRecovered reads a key that was rebuilt and is not in the table of all keys yet.
func (k *Keys) readRecovered(ctx context.Context, accountID, key string) (record, error) {
	found, err := k.moveRecovered(ctx, accountID, key)
	if err == nil && !found {
		err = k.heldBack(ctx)
	}
	if err != nil {
		return record{}, err
	}
	return k.read(ctx, accountID, key)
}

// Sweep deletes up to most keys that have expired. It reports how many, and whether there may be
// more. Unfinished keys never expire. Errors: the database's.
func (k *Keys) Sweep(ctx context.Context, most int) (swept int, more bool, err error) {
	for _, sweep := range []func(context.Context, db.DBTX, int32) (int64, error){k.queries.KeySweep, k.queries.RecoveredSweep} {
		// A batch whose answer was lost is not counted; the next sweep goes on after it.
		n, err := db.Write(ctx, k.pool, sweep, int32(most)) //nolint:gosec // a constant of the caller's
		if err != nil || n > 0 {
			return int(n), int(n) == most, err
		}
	}
	return 0, false, nil
}

// SweepLogs returns a function that deletes the logs of operations, batch by batch, from the oldest
// line on. A log stays as long as its operation is unfinished, or one of its lines is younger than
// ttl. Lines that stay are read once. The function is for one goroutine.
func (k *Keys) SweepLogs(
	ttl time.Duration,
) func(ctx context.Context, most int) (swept int, more bool, err error) {
	var last db.OperationLogSweepRow // the last line that was read
	return func(ctx context.Context, most int) (int, bool, error) {
		row, err := db.Write(ctx, k.pool, k.queries.OperationLogSweep, db.OperationLogSweepParams{
			Ttl: ttl, AfterAt: last.LastAt, AfterN: last.LastN, MaxRows: int32(most), //nolint:gosec // a constant of the caller's
		})
		if err != nil {
			return 0, false, err
		}
		last = row
		return int(row.Swept), int(row.Looked) == most, nil
	}
}
