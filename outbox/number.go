package outbox

import (
	"context"

	"paidonce/db"
)

const (
	// numberBatch is how many events get their places at once: some megabytes of rows and milliseconds of a lock at most.
	numberBatch = 1000
	// numberRounds bounds what a reader does for others: with more new events than this, it reads what is numbered and comes back for the rest.
	numberRounds = 20
)

// Number gives places to all events that are committed and have none, queues them for the endpoints that want them, and tells how many it took. An event that
// commits later, however early it was written, gets a later place: a reader that has passed a place has seen all before it. Errors: the database's.
func (s *Store) Number(ctx context.Context) (int, error) {
	total := 0
	for {
		n, err := s.numberSome(ctx)
		total += n
		if err != nil || n == 0 {
			return total, err
		}
	}
}

// numberSome numbers a batch. Asking first costs one look into a small index and spares the lock.
func (s *Store) numberSome(ctx context.Context) (n int, err error) {
	err = db.Retry(ctx, func(ctx context.Context) error {
		fresh, err := s.queries.OutboxHasNew(ctx, s.pool)
		if err != nil || !fresh {
			return err
		}
		// Not cancelled half-way: a batch that is thrown away would only be work done twice.
		row, err := s.queries.OutboxNumber(context.WithoutCancel(ctx), s.pool, numberBatch)
		n = int(row.Numbered)
		return err
	})
	return n, err
}

// numberForReader numbers what is new, within reason.
func (s *Store) numberForReader(ctx context.Context) error {
	for range numberRounds {
		if n, err := s.numberSome(ctx); err != nil || n < numberBatch {
			return err
		}
	}
	return nil
}
