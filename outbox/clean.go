package outbox

import (
	"context"
	"time"

	"paidonce/db"
)

// cleanBatch is how many events one statement looks at: a moment's work, so that nobody waits for it.
const cleanBatch = 500

// Clean forgets events that are older than ttl, with their deliveries, and tells how many. What some endpoint still waits for, or some stream has not got, stays.
// Errors: the database's.
func (s *Store) Clean(ctx context.Context, ttl time.Duration) (int, error) {
	if _, err := s.queries.DeliveriesOfNobody(ctx, s.pool); err != nil {
		return 0, err
	}
	total, after := 0, int64(0)
	for ctx.Err() == nil {
		var row db.EventsCleanRow
		err := db.Retry(ctx, func(ctx context.Context) (err error) {
			row, err = s.queries.EventsClean(ctx, s.pool, db.EventsCleanParams{Ttl: ttl, After: after, Most: cleanBatch})
			return err
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
	for r.cfg.TTL > 0 {
		select {
		case <-ctx.Done():
			return
		case <-time.After(around(cleanEvery)):
		}
		n, err := r.store.Clean(ctx, r.cfg.TTL)
		r.counts.cleaned.Add(int64(n))
		switch {
		case ctx.Err() != nil:
		case err != nil:
			r.cfg.Log.WarnContext(ctx, "old events cannot be forgotten", "cause", err)
		case n > 0:
			r.cfg.Log.InfoContext(ctx, "old events are forgotten", "events", n)
		}
	}
}

// cleanOnce forgets old events: where relays run from cron alone, nobody else does.
func (r *Relay) cleanOnce(ctx context.Context) error {
	if r.cfg.TTL == 0 {
		return nil
	}
	n, err := r.store.Clean(ctx, r.cfg.TTL)
	r.counts.cleaned.Add(int64(n))
	return err
}
