package inbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"paidonce/db"
)

const (
	// workers is how many events are processed at once; each mostly waits for the provider.
	workers = 8
	// lease is how long a worker has for an event before another may take it: two provider calls of the longest kind.
	lease = 2 * time.Minute
	// Other processes may have received an event, so a worker also looks for itself.
	lookEvery = 2 * time.Second
	// Pauses after a failure start here, double, and stop growing at the maximum; half of each is random.
	pauseFirst = 2 * time.Second
	pauseMax   = time.Hour
	// An event that failed this often, over about half a day, waits for a person.
	attemptsMax = 20
	errorMax    = 1000 // bytes kept of a reason
)

// Foreign is the result of an event that is not about anything of ours: its payload is kept no longer.
const Foreign = "not of this installation"

// NeedsPerson begins the result of an event that shows that the books do not agree; it is told once, at level error.
const NeedsPerson = "books differ: "

// Work processes events until ctx ends; what it has begun ends in order.
func (i *Inbox) Work(ctx context.Context) {
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for ctx.Err() == nil {
				if n, err := i.RunOnce(ctx, 1); err == nil && n > 0 {
					continue
				} else if err != nil && ctx.Err() == nil {
					i.cfg.Log.WarnContext(ctx, "events of the provider cannot be read", "cause", err)
				}
				select {
				case <-ctx.Done():
				case <-i.arrived:
				case <-time.After(lookEvery/2 + rand.N(lookEvery)):
				}
			}
		})
	}
	group.Wait()
}

// RunOnce takes up to most due events, processes each, and tells how many it took. Errors: the database's.
func (i *Inbox) RunOnce(ctx context.Context, most int) (int, error) {
	if i.cfg.Held != nil && i.cfg.Held() != nil {
		return 0, nil //nolint:nilerr // whoever holds them tells why
	}
	var rows []db.ProviderEvent
	err := db.RetryConflict(ctx, func(ctx context.Context) (err error) {
		rows, err = i.queries.InboxTake(ctx, i.cfg.Pool, db.InboxTakeParams{Lease: lease, Most: int32(most)}) //nolint:gosec // a handful
		return err
	})
	if err != nil {
		return 0, err
	}
	if len(rows) == most && most > 0 { // there may be more: tell another worker
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

// Early marks an error of Apply: the event came before what it is about was written, as one does after every charge. It is tried again without a warning.
func Early(err error) error { return early{err} }

type early struct{ error }

func (e early) Unwrap() error { return e.error }

func (i *Inbox) process(ctx context.Context, row db.ProviderEvent) {
	ctx, cancel := context.WithTimeout(ctx, lease)
	defer cancel()
	e := Event{ID: row.ID, Type: row.Type, ObjectID: row.ObjectID, Livemode: row.Livemode, Payload: row.Payload}
	var came string
	err := i.apply(ctx, e, func(ctx context.Context, tx db.DBTX, result string) (bool, error) {
		came = result
		n, err := i.queries.InboxDone(ctx, tx, db.InboxDoneParams{Result: db.Clean(result, errorMax), DropPayload: result == Foreign, ID: row.ID, Attempts: row.Attempts})
		return n == 1, err
	})
	if err == nil {
		if strings.HasPrefix(came, NeedsPerson) {
			i.cfg.Log.ErrorContext(ctx, "the provider's books and ours do not agree: a person has to look", "event_id", e.ID, "type", e.Type, "object", e.ObjectID, "result", came)
		}
		return
	}
	log := i.cfg.Log.With("event_id", row.ID, "type", row.Type, "attempt", row.Attempts)
	reason := db.Clean(err.Error(), errorMax)
	if row.Attempts >= attemptsMax {
		if err := db.Retry(ctx, func(ctx context.Context) error {
			_, err := i.queries.InboxPark(ctx, i.cfg.Pool, db.InboxParkParams{LastError: reason, ID: row.ID, Attempts: row.Attempts})
			return err
		}); err != nil {
			log.ErrorContext(ctx, "an event could not be parked; it is tried again", "cause", err)
			return
		}
		log.ErrorContext(ctx, "an event of the provider failed too often and waits for `paidonce inbox replay`", "reason", reason)
		return
	}
	pause := pauseAfter(int(row.Attempts))
	if err := db.Retry(ctx, func(ctx context.Context) error { // run twice it only counts the pause from a moment later
		_, err := i.queries.InboxFailed(ctx, i.cfg.Pool, db.InboxFailedParams{Pause: pause, LastError: reason, ID: row.ID, Attempts: row.Attempts})
		return err
	}); err != nil {
		log.WarnContext(ctx, "a failed event is tried again when its lease is over", "cause", err)
		return
	}
	level := slog.LevelWarn
	if errors.As(err, new(early)) {
		level = slog.LevelDebug
	}
	log.Log(ctx, level, "an event of the provider is tried again", "reason", reason, "in", pause.Round(time.Millisecond))
}

// apply hands an event over. A panic is a parser's bug: the event is kept, and others go on.
func (i *Inbox) apply(ctx context.Context, e Event, mark Mark) (err error) {
	defer func() {
		if p := recover(); p != nil {
			i.cfg.Log.ErrorContext(ctx, "processing an event panicked", "event_id", e.ID, "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return i.cfg.Apply(ctx, e, mark)
}

// pauseAfter is how long an event rests after a failed try.
func pauseAfter(attempts int) time.Duration {
	p := pauseMax
	if attempts < 12 {
		p = min(pauseFirst<<max(attempts-1, 0), pauseMax)
	}
	return p/2 + rand.N(p/2+1)
}
