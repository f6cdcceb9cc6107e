package inbox

import (
	"context"
	"time"

	"paidonce/db"
)

// KeptAtLeast is how long a processed event is kept at least. Stripe sends an event again for three
// days by itself, and for thirty when asked to; after that it has the event no more. An
// event that was forgotten and comes again would be processed again.
const KeptAtLeast = 30 * 24 * time.Hour

// Sweep forgets up to most events that were processed longer ago than ttl, and says how many. What
// is parked or not processed stays. Errors: the database's.
func (i *Inbox) Sweep(ctx context.Context, ttl time.Duration, most int) (int, error) {
	p := db.InboxSweepParams{Ttl: max(ttl, KeptAtLeast), MaxRows: int32(most)} //nolint:gosec // a constant of the caller's
	n, err := db.Write(ctx, i.cfg.Pool, i.queries.InboxSweep, p)
	return int(n), err
}
