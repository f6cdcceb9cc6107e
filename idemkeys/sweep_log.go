package idemkeys

import (
	"context"
	"time"

	"paidonce/db"
)

// LogSweep forgets the logs of operations, from the oldest line on. A log stays as long as its
// operation is unfinished, or one of its lines is younger than TTL.
type LogSweep struct {
	Engine *Engine
	TTL    time.Duration

	at time.Time // how far it came
	n  int64
}

// Batch looks at up to most lines, and tells how many it forgot and whether there may be more. What
// stays is looked at once. Errors: the database's.
func (s *LogSweep) Batch(ctx context.Context, most int) (swept int, more bool, err error) {
	p := db.OperationLogSweepParams{Ttl: s.TTL, AfterAt: s.at, AfterN: s.n, Most: int32(most)} //nolint:gosec // a constant of the caller's
	var row db.OperationLogSweepRow
	err = db.RetryConflict(ctx, func(ctx context.Context) (err error) {
		row, err = s.Engine.queries.OperationLogSweep(ctx, s.Engine.pool, p)
		return err
	})
	if err != nil {
		return 0, false, err
	}
	s.at, s.n = row.LastAt, row.LastN
	return int(row.Swept), int(row.Looked) == most, nil
}
