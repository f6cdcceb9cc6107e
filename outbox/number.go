package outbox

import (
	"context"
	"time"

	"paidonce/db"
)

const (
	// batchMax is how many events get their positions, or are queued, in one statement: at most a
	// few megabytes of rows and milliseconds of a lock.
	batchMax = 1000
	// numberRounds is how many batches a reader numbers before it reads. With more new events than
	// that it reads what is numbered, and comes back for the rest.
	numberRounds = 20
	// lateCommit is how long a transaction may take and still be seen at once. One that takes
	// longer is seen at the next look from the beginning.
	lateCommit = db.TxIdleMax + 2*time.Second
	// fullLookEvery is how often a sequencer looks from the beginning. When such a look takes long
	// it comes less often, so that it takes one part in fullLookShare of the time.
	fullLookEvery = 2 * time.Second
	fullLookShare = 20
)

// Number gives positions to all committed events that have none, queues what is new for the
// endpoints that want it, and returns how many events it queued. An event that commits later,
// however early it was written, gets a later position. So a reader that has passed a position has
// seen all events before it. Errors: the database's.
func (s *Store) Number(ctx context.Context) (int, error) {
	total := 0
	for {
		b, err := s.numberBatch(ctx, time.Time{})
		total += b.queued
		if err != nil || b.numbered+b.queued == 0 {
			return total, err
		}
	}
}

// batch is what one round did: how many events got positions, and how many were queued for
// endpoints.
type batch struct {
	numbered, queued int
	newest           time.Time // when the newest of those numbered was written
}

// full reports whether there may be more.
func (b batch) full() bool { return b.numbered == batchMax || b.queued == batchMax }

// numberBatch gives positions to a batch of the events written since the given time, and queues a
// batch. Asking first whether there are any costs two index look-ups and spares the locks.
func (s *Store) numberBatch(ctx context.Context, since time.Time) (batch, error) {
	b := batch{newest: since}
	found, err := db.Read(ctx, s.pool, s.queries.OutboxHasNew, since)
	if err != nil {
		return b, err
	}
	// The statements are not cancelled half-way: the next ones would only do the same work again.
	ctx = context.WithoutCancel(ctx)
	if found.Unnumbered {
		row, err := db.Repeat(ctx, s.pool, s.queries.OutboxNumber,
			db.OutboxNumberParams{Since: since, MaxRows: batchMax})
		if err != nil {
			return b, err
		}
		b.numbered, b.newest = int(row.Numbered), row.Newest
	}
	if found.Unqueued || b.numbered > 0 {
		n, err := db.Repeat(ctx, s.pool, s.queries.DeliveriesQueue, batchMax)
		if err != nil {
			return b, err
		}
		b.queued = int(n)
		s.queued.Add(n)
	}
	return b, nil
}

// Queued returns how many events this store queued for the endpoints that want them, on behalf of a
// relay, a stream or a reader.
func (s *Store) Queued() int64 { return s.queued.Load() }

// sequencer gives positions to new events, batch after batch. While some transaction stays open for
// hours, the events numbered since then stay in the index as dead entries, and a scan from its
// beginning walks over all of them. So a sequencer looks from shortly before the newest event that
// it has seen, and from the beginning only now and then, to find events that were committed late.
// It is not safe for concurrent use.
type sequencer struct {
	store   *Store
	seen    time.Time // when the newest event seen was written, by the database's clock
	fullyAt time.Time // when to look from the beginning again, by this machine's clock
}

func (q *sequencer) next(ctx context.Context) (batch, error) {
	began := time.Now()
	full := !began.Before(q.fullyAt)
	since := time.Time{}
	if !full && !q.seen.IsZero() {
		since = q.seen.Add(-lateCommit)
	}
	b, err := q.store.numberBatch(ctx, since)
	if b.newest.After(q.seen) {
		q.seen = b.newest
	}
	if full && err == nil && !b.full() {
		q.fullyAt = time.Now().Add(max(fullLookEvery, fullLookShare*time.Since(began)))
	}
	return b, err
}

// NumberAll gives new events their positions, in at most numberRounds batches. Readers call it
// first, so that they need not wait for a relay. Errors: the database's.
func (s *Store) NumberAll(ctx context.Context) error {
	for range numberRounds {
		if b, err := s.numberBatch(ctx, time.Time{}); err != nil || !b.full() {
			return err
		}
	}
	return nil
}
