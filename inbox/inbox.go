// Package inbox takes the provider's news: verify, store, answer at once; process from the stored row.
//
// receive.go is the door, work.go the worker. What an event means is not known here: the worker hands it to one function, with a mark to be written in
// the transaction of its effect. So an event has its effect once, although it may come, and be tried, many times.
package inbox

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"paidonce/db"
)

// Event is a stored event of the provider.
type Event struct {
	ID       string
	Type     string // the provider's, such as charge.succeeded
	ObjectID string // the provider's id of the object it speaks of
	Livemode bool
	Payload  []byte // raw; for operators. State is asked for at the provider, never taken from here. nil: not kept

	keep bool   // the payload
	done string // what came of it already; "": it is to be processed
}

// Mark writes what came of an event, in the transaction of its effect. It reports false when somebody else has processed the event meanwhile: then the
// effect must not be written either.
type Mark func(ctx context.Context, tx db.DBTX, result string) (bool, error)

// Apply does what an event asks for. It must call mark in the same transaction as its effect. An error means: later again.
type Apply func(ctx context.Context, e Event, mark Mark) error

// Config is what an inbox is made of.
type Config struct {
	Pool db.Pool
	// Sift reports whether the payload of an event is kept, and what came of one that need not be
	// processed; "" of all others. nil: all are kept and processed.
	Sift    func(kind string, payload []byte) (keep bool, done string)
	Secrets []string // signing secrets, any of which may have signed; none: nothing is taken
	Apply   Apply    // nil where nothing is processed
	// Refused is told of each signature that is refused, and why: one of RefusedReasons. nil: nobody is.
	Refused func(reason string)
	Log     *slog.Logger
	// Held returns an error while nothing can be processed; the events wait for that, as they are, or for
	// another process. nil: never.
	Held func() error
	// Now is the provider's own time, once it has told one; nil: it never does.
	Now func() (at time.Time, ok bool)
}

// Inbox receives and processes events. Safe for concurrent use.
type Inbox struct {
	cfg     Config
	queries *db.Queries
	store   db.Committer[Event, struct{}]
	arrived chan struct{}
}

// New returns an inbox.
func New(cfg Config) *Inbox {
	i := &Inbox{cfg: cfg, queries: db.New(), arrived: make(chan struct{}, 1)}
	i.store.ID = func(e Event) string { return e.ID }
	i.store.Write = i.write
	return i
}

// write stores the events of everybody who delivers at this moment.
func (i *Inbox) write(ctx context.Context, events []Event) (map[string]struct{}, error) {
	var p db.InboxStoreParams
	for _, e := range events {
		p.Ids = append(p.Ids, e.ID)
		p.Types = append(p.Types, e.Type)
		p.ObjectIds = append(p.ObjectIds, e.ObjectID)
		p.Livemodes = append(p.Livemodes, e.Livemode)
		p.Payloads = append(p.Payloads, e.Payload)
		p.Kept = append(p.Kept, e.keep)
		p.Results = append(p.Results, e.done)
	}
	ids, err := i.queries.InboxStore(ctx, i.cfg.Pool, p)
	if err != nil {
		return nil, err
	}
	stored := make(map[string]struct{}, len(ids))
	for _, id := range ids {
		stored[id] = struct{}{}
	}
	return stored, nil
}

// ErrNotFound: there is no such event.
var ErrNotFound = errors.New("no such event")

// Info is an event as an operator sees it.
type Info struct {
	Event
	ReceivedAt  time.Time
	ProcessedAt *time.Time
	Result      string
	Attempts    int
	NextRunAt   *time.Time
	LastError   string
	ParkedAt    *time.Time
}

// Filter selects events.
type Filter struct {
	Since       time.Time
	Type        string // "": all
	Unprocessed bool
	Most        int
}

// List lists events, the newest first, without their payloads. Errors: the database's.
func (i *Inbox) List(ctx context.Context, f Filter) ([]Info, error) {
	var rows []db.InboxListRow
	err := db.Retry(ctx, func(ctx context.Context) (err error) {
		rows, err = i.queries.InboxList(ctx, i.cfg.Pool, db.InboxListParams{Since: f.Since, Type: db.OrNil(f.Type), Unprocessed: f.Unprocessed, Most: int32(f.Most)}) //nolint:gosec // bounded by the caller
		return err
	})
	if err != nil {
		return nil, err
	}
	list := make([]Info, 0, len(rows))
	for _, r := range rows {
		list = append(list, Info{
			Event: Event{ID: r.ID, Type: r.Type, ObjectID: r.ObjectID}, ReceivedAt: r.ReceivedAt, ProcessedAt: r.ProcessedAt, Result: db.OrEmpty(r.Result),
			Attempts: int(r.Attempts), NextRunAt: r.NextRunAt, LastError: db.OrEmpty(r.LastError), ParkedAt: r.ParkedAt,
		})
	}
	return list, nil
}

// Get returns an event with its payload. Errors: [ErrNotFound], or the database's.
func (i *Inbox) Get(ctx context.Context, id string) (Info, error) {
	var r db.ProviderEvent
	err := db.Retry(ctx, func(ctx context.Context) (err error) {
		r, err = i.queries.InboxGet(ctx, i.cfg.Pool, id)
		return err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return Info{}, ErrNotFound
	}
	return Info{
		Event:      Event{ID: r.ID, Type: r.Type, ObjectID: r.ObjectID, Livemode: r.Livemode, Payload: r.Payload},
		ReceivedAt: r.ReceivedAt, ProcessedAt: r.ProcessedAt, Result: db.OrEmpty(r.Result), Attempts: int(r.Attempts), NextRunAt: r.NextRunAt,
		LastError: db.OrEmpty(r.LastError), ParkedAt: r.ParkedAt,
	}, err
}

// Replay makes events due again, processed and parked ones alike, and tells how many. id "" means all that were received since since and, unless typ is "",
// are of that type. Effects that took place are not repeated: state only moves forward. Errors: the database's.
func (i *Inbox) Replay(ctx context.Context, id string, since time.Time, typ string) (int, error) {
	var n int64
	err := db.RetryConflict(ctx, func(ctx context.Context) (err error) {
		n, err = i.queries.InboxReplay(ctx, i.cfg.Pool, db.InboxReplayParams{ID: db.OrNil(id), Since: since, Type: db.OrNil(typ)})
		return err
	})
	return int(n), err
}
