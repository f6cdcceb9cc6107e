package outbox

import (
	"context"
	"time"

	"paidonce/db"
)

const (
	// numberBatch is how many events get their places at once: some megabytes of rows and milliseconds of a lock at most.
	numberBatch = 1000
	// numberRounds bounds what a reader does for others: with more new events than this, it reads what is numbered and comes back for the rest.
	numberRounds = 20
	// lateCommit is how long a transaction may take to be seen at once; one that takes longer is seen at the next look from the beginning.
	lateCommit = db.TxIdleMax + 2*time.Second
	// fullLookEvery is how often that is, or less often when it takes long: one part in so many of the time.
	fullLookEvery = 2 * time.Second
	fullLookShare = 20
)

// Number gives places to all events that are committed and have none, queues them for the endpoints that want them, and tells how many it took. An event that
// commits later, however early it was written, gets a later place: a reader that has passed a place has seen all before it. Errors: the database's.
func (s *Store) Number(ctx context.Context) (int, error) {
	total := 0
	for {
		n, _, err := s.numberSome(ctx, time.Time{})
		total += n
		if err != nil || n == 0 {
			return total, err
		}
	}
}

// numberSome numbers a batch of what was written since then, and tells when the newest of it was. Asking first costs one look into a small index and spares the lock.
func (s *Store) numberSome(ctx context.Context, since time.Time) (n int, newest time.Time, err error) {
	newest = since
	err = db.Retry(ctx, func(ctx context.Context) error {
		fresh, err := s.queries.OutboxHasNew(ctx, s.pool, since)
		if err != nil || !fresh {
			return err
		}
		// Not cancelled half-way: a batch that is thrown away would only be work done twice.
		row, err := s.queries.OutboxNumber(context.WithoutCancel(ctx), s.pool, db.OutboxNumberParams{Since: since, Most: numberBatch})
		if err == nil {
			n, newest = int(row.Numbered), row.Newest
		}
		return err
	})
	s.numbered.Add(int64(n))
	return n, newest, err
}

// Numbered tells how many events got their places from this store, whoever asked for it: a relay, a stream, a reader.
func (s *Store) Numbered() int64 { return s.numbered.Load() }

// numberer numbers again and again. While some transaction stays open for hours, what was numbered since stays in the index as dead entries, and whoever looks from its
// beginning walks over them all. So it looks from shortly before what it has seen, and from the beginning only now and then, for those that commit late.
type numberer struct {
	store   *Store
	seen    time.Time // by the database's clock
	fullyAt time.Time // by ours
}

func (n *numberer) some(ctx context.Context) (int, error) {
	began := time.Now()
	full := !began.Before(n.fullyAt)
	since := time.Time{}
	if !full && !n.seen.IsZero() {
		since = n.seen.Add(-lateCommit)
	}
	count, newest, err := n.store.numberSome(ctx, since)
	if newest.After(n.seen) {
		n.seen = newest
	}
	if full && err == nil && count < numberBatch {
		n.fullyAt = time.Now().Add(max(fullLookEvery, fullLookShare*time.Since(began)))
	}
	return count, err
}

// NumberAll gives new events their places, within reason: what a reader does first, who need not wait for a relay. Errors: the database's.
func (s *Store) NumberAll(ctx context.Context) error {
	for range numberRounds {
		if n, _, err := s.numberSome(ctx, time.Time{}); err != nil || n < numberBatch {
			return err
		}
	}
	return nil
}
