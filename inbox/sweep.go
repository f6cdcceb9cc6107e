package inbox

import (
	"context"
	"time"

	"paidonce/db"
)

// KeptAtLeast is how long a processed event is kept at least. Stripe sends an event again for three
// days by itself, and for thirty when a person asks it to; after that it has the event no more. An
// event that was forgotten and comes again would be processed again.
const KeptAtLeast = 30 * 24 * time.Hour

// Sweep forgets up to most events that were processed longer ago than ttl, and tells how many. What
// is parked or not processed stays. Errors: the database's.
func (i *Inbox) Sweep(ctx context.Context, ttl time.Duration, most int) (int, error) {
	p := db.InboxSweepParams{Ttl: max(ttl, KeptAtLeast), Most: int32(most)} //nolint:gosec // a constant of the caller's
	var n int64
	err := db.RetryConflict(ctx, func(ctx context.Context) (err error) {
		n, err = i.queries.InboxSweep(ctx, i.cfg.Pool, p)
		return err
	})
	return int(n), err
}
