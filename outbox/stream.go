package outbox

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"paidonce/db"
	"paidonce/internal/backoff"
	"paidonce/internal/loop"
)

const (
	// streamBatch is how many events are published before the cursor moves, and so how many are
	// repeated at most after a crash.
	streamBatch = 500
	// publishLimit is how long a stream has to acknowledge a batch.
	publishLimit = 30 * time.Second
)

// retryPauses are the pauses while a stream takes nothing. One that is back after hours is found
// within a minute.
var retryPauses = backoff.Policy{First: time.Second, Max: time.Minute}

// Publisher hands events to a stream that has many readers.
type Publisher interface {
	// Name names the stream's cursor.
	Name() string
	// Publish returns when the stream has acknowledged all of the events; after an error some of
	// them may be there. So events are published at least once, and carry their ids for readers
	// that must act on each once.
	Publish(ctx context.Context, events []Event) error
}

// Stream publishes all events, of all accounts, in their order. Several processes may run one for
// the same publisher: one of them moves the cursor, and events that others repeat are recognised by
// their ids. A Stream is not safe for concurrent use.
type Stream struct {
	store     *Store
	publisher Publisher
	log       *slog.Logger
	sequence  sequencer
	published atomic.Int64
	failed    atomic.Int64
}

// StreamCounts is what a stream has done since it was made.
type StreamCounts struct {
	// Events that were acknowledged; one that had to be published again counts again.
	Published int64
	Failed    int64 // how often events could not be read or published, or the cursor not moved
}

// Name returns the name of the publisher.
func (s *Stream) Name() string { return s.publisher.Name() }

// Counts returns what was done so far. Safe for concurrent use.
func (s *Stream) Counts() StreamCounts {
	return StreamCounts{Published: s.published.Load(), Failed: s.failed.Load()}
}

// NewStream returns a stream over a store.
func NewStream(s *Store, p Publisher, log *slog.Logger) *Stream {
	return &Stream{
		store: s, publisher: p, log: log.With("stream", p.Name()), sequence: sequencer{store: s},
	}
}

// Work publishes until ctx ends. A batch that is being published then is finished within its time
// limit.
func (s *Stream) Work(ctx context.Context) {
	loop.Loop{
		Step:  func(ctx context.Context) (bool, error) { n, err := s.countedStep(ctx); return n > 0, err },
		Every: pollEvery,
		Retry: retryPauses,
		Failed: func(err error, pause time.Duration) {
			s.log.WarnContext(ctx, "events cannot be published; they are tried again", "cause", err,
				"in", pause.Round(time.Millisecond))
		},
	}.Run(ctx)
}

// RunOnce publishes all events that there are and returns how many. Errors: the database's, or the
// stream's.
func (s *Stream) RunOnce(ctx context.Context) (int, error) {
	total := 0
	for ctx.Err() == nil {
		n, err := s.countedStep(ctx)
		total += n
		if err != nil || n == 0 {
			return total, err
		}
	}
	return total, nil
}

// countedStep makes a step and counts it. The step is completed even if ctx ends meanwhile.
func (s *Stream) countedStep(ctx context.Context) (int, error) {
	n, err := s.step(context.WithoutCancel(ctx))
	s.published.Add(int64(n))
	if err != nil {
		s.failed.Add(1)
	}
	return n, err
}

// step publishes the next events after the cursor, waits for their acknowledgement, and only then
// moves the cursor.
func (s *Stream) step(ctx context.Context) (int, error) {
	if _, err := s.sequence.next(ctx); err != nil {
		return 0, err
	}
	at, err := s.cursor(ctx)
	if err != nil {
		return 0, err
	}
	rows, err := s.store.queries.StreamEvents(ctx, s.store.pool, db.StreamEventsParams{
		After: at, MaxRows: streamBatch,
	})
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	events := make([]Event, 0, len(rows))
	for _, r := range rows {
		events = append(events, Event{
			ID: r.EventID, AccountID: r.AccountID, Type: r.Type, ObjectID: r.ObjectID,
			Payload: r.Payload, Position: r.Position,
		})
	}
	limited, cancel := context.WithTimeout(ctx, publishLimit)
	defer cancel()
	if err := s.publisher.Publish(limited, events); err != nil {
		return 0, err
	}
	// If no row is changed, another publisher has moved the cursor meanwhile. The next step goes on
	// from there.
	_, err = s.store.queries.CursorMove(ctx, s.store.pool, db.CursorMoveParams{
		MovedTo: rows[len(rows)-1].Position, Publisher: s.publisher.Name(), MovedFrom: at,
	})
	return len(events), err
}

// cursor returns the publisher's position. A new publisher begins at 0.
func (s *Stream) cursor(ctx context.Context) (int64, error) {
	at, found, err := db.Found(s.store.queries.CursorGet(ctx, s.store.pool, s.publisher.Name()))
	if err == nil && !found {
		return 0, s.store.queries.CursorNew(ctx, s.store.pool, s.publisher.Name())
	}
	return at, err
}
