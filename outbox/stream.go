package outbox

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"paidonce/db"
)

const (
	// streamBatch is how many events are published before the cursor moves: what is repeated at most after a crash.
	streamBatch = 500
	// publishLimit is how long a stream has to acknowledge a batch.
	publishLimit = 30 * time.Second
	// Pauses after a failure start here, double, and stop growing at the maximum.
	streamPauseFirst = time.Second
	streamPauseMax   = time.Minute
)

// Publisher hands events to a stream that has many readers.
type Publisher interface {
	// Name names the stream's cursor.
	Name() string
	// Publish returns when the stream has acknowledged all of the events; after an error some of them may be there. So events are published at least once, and
	// carry their ids for who must have them once.
	Publish(ctx context.Context, events []Event) error
}

// Stream publishes all events, of all accounts, in their order. Several at once are fine: one of them moves the cursor, and what others repeat, the stream or its
// readers recognise by its id. Not for concurrent use.
type Stream struct {
	store     *Store
	publisher Publisher
	log       *slog.Logger
	orders    numberer
	published atomic.Int64
	failed    atomic.Int64
}

// StreamCounts is what a stream has done since it was made.
type StreamCounts struct {
	Published int64 // events that were acknowledged; what had to be published again counts again
	Failed    int64 // times that events could not be read, published or counted as published
}

// Name names the stream: its publisher's.
func (s *Stream) Name() string { return s.publisher.Name() }

// Counts returns what was done so far. Safe for concurrent use.
func (s *Stream) Counts() StreamCounts {
	return StreamCounts{Published: s.published.Load(), Failed: s.failed.Load()}
}

// NewStream returns a stream over a store.
func NewStream(s *Store, p Publisher, log *slog.Logger) *Stream {
	return &Stream{store: s, publisher: p, log: log.With("stream", p.Name()), orders: numberer{store: s}}
}

// Work publishes until ctx ends; what is being published then is, as far as its limit allows.
func (s *Stream) Work(ctx context.Context) {
	pause := streamPauseFirst
	for ctx.Err() == nil {
		n, err := s.counted(ctx)
		wait := around(lookEvery)
		switch {
		case err != nil:
			s.log.WarnContext(ctx, "events cannot be published; they are tried again", "cause", err, "in", pause)
			wait, pause = pause, min(2*pause, streamPauseMax)
		case n > 0:
			pause = streamPauseFirst
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// Once publishes all events that there are and tells how many. Errors: the database's, or the stream's.
func (s *Stream) Once(ctx context.Context) (int, error) {
	total := 0
	for ctx.Err() == nil {
		n, err := s.counted(ctx)
		total += n
		if err != nil || n == 0 {
			return total, err
		}
	}
	return total, nil
}

// counted makes a step, to its end although ctx may end meanwhile.
func (s *Stream) counted(ctx context.Context) (int, error) {
	n, err := s.step(context.WithoutCancel(ctx))
	s.published.Add(int64(n))
	if err != nil {
		s.failed.Add(1)
	}
	return n, err
}

// step publishes the next events after the cursor, waits for their acknowledgement, and only then moves the cursor.
func (s *Stream) step(ctx context.Context) (int, error) {
	if _, err := s.orders.some(ctx); err != nil {
		return 0, err
	}
	at, err := s.cursor(ctx)
	if err != nil {
		return 0, err
	}
	rows, err := s.store.queries.StreamEvents(ctx, s.store.pool, db.StreamEventsParams{After: at, Most: streamBatch})
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	events := make([]Event, 0, len(rows))
	for _, r := range rows {
		events = append(events, Event{ID: r.EventID, AccountID: r.AccountID, Type: r.Type, ObjectID: r.ObjectID, Payload: r.Payload, Position: r.Position})
	}
	limited, cancel := context.WithTimeout(ctx, publishLimit)
	defer cancel()
	if err := s.publisher.Publish(limited, events); err != nil {
		return 0, err
	}
	// No row: another publisher has moved it meanwhile; the next step goes on from there.
	_, err = s.store.queries.CursorMove(ctx, s.store.pool, db.CursorMoveParams{MovedTo: rows[len(rows)-1].Position, Publisher: s.publisher.Name(), MovedFrom: at})
	return len(events), err
}

// cursor tells where the publisher stands; one that is new stands at the beginning.
func (s *Stream) cursor(ctx context.Context) (int64, error) {
	at, err := s.store.queries.CursorGet(ctx, s.store.pool, s.publisher.Name())
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, s.store.queries.CursorNew(ctx, s.store.pool, s.publisher.Name())
	}
	return at, err
}
