package inbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"time"

	"paidonce/db"
	"paidonce/internal/backoff"
	"paidonce/internal/loop"
)

const (
	// workers is how many events are processed at once; each mostly waits for the provider.
	workers = 8
	// lease is how long a worker has for an event before another may take it: two provider calls of
	// the longest kind.
	lease = 2 * time.Minute
	// Other processes may have received an event, so a worker also looks for itself.
	pollEvery = 2 * time.Second
	// An event that failed this often, over about half a day, waits for an operator.
	attemptsMax = 20
	errorMax    = 1000 // bytes kept of a reason
)

// pauses are those of an event that failed: soon enough for one that was early, rare enough for
// what an operator has to repair.
var pauses = backoff.Policy{First: 2 * time.Second, Max: time.Hour}

// Work processes events until ctx ends; what it has begun ends in order.
func (i *Inbox) Work(ctx context.Context) {
	worker := loop.Loop{
		Step:  func(ctx context.Context) (bool, error) { n, err := i.RunOnce(ctx, 1); return n > 0, err },
		Every: pollEvery,
		Wake:  i.arrived,
		Failed: func(err error, _ time.Duration) {
			i.cfg.Log.WarnContext(ctx, "events of the provider cannot be read", "cause", err)
		},
	}
	loop.All(ctx, slices.Repeat([]func(context.Context){worker.Run}, workers)...)
}

// RunOnce takes up to most due events, processes each, and returns how many it took. Errors: the
// database's.
func (i *Inbox) RunOnce(ctx context.Context, most int) (int, error) {
	if i.cfg.Held != nil && i.cfg.Held() != nil {
		return 0, nil //nolint:nilerr // whoever holds them logs why
	}
	rows, err := db.Write(ctx, i.cfg.Pool, i.queries.InboxTake, db.InboxTakeParams{Lease: lease, MaxRows: int32(most)}) //nolint:gosec // a handful
	if err != nil {
		return 0, err
	}
	if len(rows) == most && most > 0 { // there may be more: wake another worker
		select {
		case i.arrived <- struct{}{}:
		default:
		}
	}
	for _, row := range rows {
		i.process(context.WithoutCancel(ctx), row)
	}
	return len(rows), nil
}

// Early marks an error of Apply: the event came before what it is about was written, as one does
// after every charge. It is tried again without a warning.
func Early(err error) error { return early{err} }

type early struct{ error }

func (e early) Unwrap() error { return e.error }

func (i *Inbox) process(ctx context.Context, row db.ProviderEvent) {
	ctx, cancel := context.WithTimeout(ctx, lease)
	defer cancel()
	e := Event{
		ID: row.ID, Type: row.Type, ObjectID: row.ObjectID, Livemode: row.Livemode,
		Payload: row.Payload,
	}
	var result Result
	err := i.apply(ctx, e, func(ctx context.Context, tx db.DBTX, r Result) (bool, error) {
		result = r
		n, err := i.queries.InboxDone(ctx, tx, db.InboxDoneParams{
			Result: db.Clean(r.text, errorMax), DropPayload: r.kind == foreign, ID: row.ID,
			Attempts: row.Attempts,
		})
		return n == 1, err
	})
	if err == nil {
		if result.kind == recordsDiffer {
			i.cfg.Log.ErrorContext(
				ctx, "the provider's records and ours do not agree: an operator has to look", "event_id",
				e.ID, "type", e.Type, "object", e.ObjectID, "result", result.text,
			)
		}
		return
	}
	log := i.cfg.Log.With("event_id", row.ID, "type", row.Type, "attempt", row.Attempts)
	reason := db.Clean(err.Error(), errorMax)
	if row.Attempts >= attemptsMax {
		park := db.InboxParkParams{LastError: reason, ID: row.ID, Attempts: row.Attempts}
		if _, err := db.Repeat(ctx, i.cfg.Pool, i.queries.InboxPark, park); err != nil {
			log.ErrorContext(ctx, "an event could not be parked; it is tried again", "cause", err)
			return
		}
		log.ErrorContext(
			ctx, "an event of the provider failed too often and waits for `paidonce inbox replay`",
			"reason", reason,
		)
		return
	}
	pause := pauses.After(int(row.Attempts))
	failed := db.InboxFailedParams{
		Pause: pause, LastError: reason, ID: row.ID, Attempts: row.Attempts,
	}
	// Run twice it only counts the pause from a moment later.
	if _, err := db.Repeat(ctx, i.cfg.Pool, i.queries.InboxFailed, failed); err != nil {
		log.WarnContext(ctx, "a failed event is tried again when its lease is over", "cause", err)
		return
	}
	level := slog.LevelWarn
	if errors.As(err, new(early)) {
		level = slog.LevelDebug
	}
	log.Log(
		ctx, level, "an event of the provider is tried again", "reason", reason, "in",
		pause.Round(time.Millisecond),
	)
}

// apply hands an event over. A panic is a parser's bug: the event is kept, and others go on.
func (i *Inbox) apply(ctx context.Context, e Event, mark Mark) (err error) {
	defer func() {
		if p := recover(); p != nil {
			i.cfg.Log.ErrorContext(
				ctx, "processing an event panicked", "event_id", e.ID, "panic", p, "stack",
				string(debug.Stack()),
			)
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return i.cfg.Apply(ctx, e, mark)
}
