package outbox

import (
	"context"
	"time"

	"paidonce/db"
	"paidonce/internal/loop"
)

// cleanBatch is how many events one statement looks at: few enough that nobody waits for its locks.
const cleanBatch = 500

// Clean deletes events that are older than ttl, with their deliveries, and returns how many. Events
// that some endpoint still waits for, or that some stream does not have yet, stay. Errors: the
// database's.
func (s *Store) Clean(ctx context.Context, ttl time.Duration) (int, error) {
	if _, err := s.queries.DeliveriesOfNobody(ctx, s.pool); err != nil {
		return 0, err
	}
	total, after := 0, int64(0)
	for ctx.Err() == nil {
		row, err := db.Repeat(ctx, s.pool, s.queries.EventsClean, db.EventsCleanParams{
			Ttl: ttl, After: after, MaxRows: cleanBatch,
		})
		if err != nil {
			return total, err
		}
		total += int(row.Cleaned)
		if row.Young || row.Looked < cleanBatch {
			break
		}
		after = row.LastPosition
	}
	return total, ctx.Err()
}

// clean forgets old events now and then until ctx ends.
func (r *Relay) clean(ctx context.Context) {
	loop.Every(ctx, cleanEvery, func(ctx context.Context) {
		switch n, err := r.cleanOnce(ctx); {
		case ctx.Err() != nil:
		case err != nil:
			r.cfg.Log.WarnContext(ctx, "old events cannot be forgotten", "cause", err)
		case n > 0:
			r.cfg.Log.InfoContext(ctx, "old events are forgotten", "events", n)
		}
	})
}

// cleanOnce forgets old events and returns how many. RunOnce calls it too: where relays run from
// cron alone, nothing else does.
func (r *Relay) cleanOnce(ctx context.Context) (int, error) {
	if r.cfg.TTL == 0 {
		return 0, nil
	}
	n, err := r.store.Clean(ctx, r.cfg.TTL)
	r.counts.cleaned.Add(int64(n))
	return n, err
}
