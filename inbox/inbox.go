// Package inbox takes the provider's events: verify, store, answer at once; process from the stored
// row.
//
// receive.go is the door, work.go the worker. The package does not know what an event means: the
// worker passes it to one function, with a mark to be written in the transaction of its effect. So
// an event has its effect once, although it may arrive, and be tried, many times.
package inbox

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"paidonce/db"
)

// Event is a stored event of the provider.
type Event struct {
	ID       string
	Type     string // the provider's, such as charge.succeeded
	ObjectID string // the provider's id of the object it speaks of
	Livemode bool
	// raw and signed, but maybe old: state is asked for at the provider wherever that can be asked.
	// nil: not kept
	Payload []byte
}

// delivery is an event as it is stored.
type delivery struct {
	Event
	keepPayload bool   // the payload
	result      Result // what came of it already; none: it is to be processed
	unreadable  string // why it is parked; "": it is not
}

// Mark writes what came of an event, in the transaction of its effect. It reports false when
// somebody else has processed the event meanwhile: then the effect must not be written either.
type Mark func(ctx context.Context, tx db.DBTX, result Result) (bool, error)

// Apply does what an event asks for. It must call mark in the same transaction as its effect. An
// error means: later again; one of [Early], without a warning.
type Apply func(ctx context.Context, e Event, mark Mark) error

// Config is what an inbox is made of.
type Config struct {
	Pool db.Pool
	// Sift reports whether the payload of an event is kept, and what came of one that need not be
	// processed; no result for all others. nil: all are kept and processed.
	Sift    func(kind string, payload []byte) (keep bool, done Result)
	Secrets []string // signing secrets, any of which may have signed; none: nothing is taken
	Apply   Apply    // nil where nothing is processed
	// Refused is called for each signature that is refused, with one of RefusedReasons. It may be
	// nil.
	Refused func(reason string)
	Log     *slog.Logger
	// Held returns an error while nothing can be processed; the events wait for that, as they are,
	// or for another process. nil: never.
	Held func() error
	// Now returns the provider's own time, once an answer of it had one. It may be nil.
	Now func() (at time.Time, ok bool)
}

// Inbox receives and processes events. Safe for concurrent use.
type Inbox struct {
	cfg     Config
	queries *db.Queries
	store   db.Committer[delivery, struct{}]
	arrived chan struct{}
}

// New returns an inbox.
func New(cfg Config) *Inbox {
	i := &Inbox{cfg: cfg, queries: db.New(), arrived: make(chan struct{}, 1)}
	i.store.ID = func(e delivery) string { return e.ID }
	i.store.Write = i.write
	return i
}

// write stores a batch of events.
func (i *Inbox) write(ctx context.Context, events []delivery) (map[string]struct{}, error) {
	var p db.InboxStoreParams
	for _, e := range events {
		p.Ids = append(p.Ids, e.ID)
		p.Types = append(p.Types, e.Type)
		p.ObjectIds = append(p.ObjectIds, e.ObjectID)
		p.Livemodes = append(p.Livemodes, e.Livemode)
		p.Payloads = append(p.Payloads, e.Payload)
		p.Kept = append(p.Kept, e.keepPayload)
		p.Results = append(p.Results, e.result.String())
		p.Unreadable = append(p.Unreadable, e.unreadable)
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

// ErrNotFound says that there is no such event.
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
	rows, err := db.Read(ctx, i.cfg.Pool, i.queries.InboxList, db.InboxListParams{Since: f.Since, Type: db.OrNil(f.Type), Unprocessed: f.Unprocessed, MaxRows: int32(f.Most)}) //nolint:gosec // bounded by the caller
	if err != nil {
		return nil, err
	}
	list := make([]Info, 0, len(rows))
	for _, r := range rows {
		list = append(list, Info{
			Event: Event{ID: r.ID, Type: r.Type, ObjectID: r.ObjectID}, ReceivedAt: r.ReceivedAt,
			ProcessedAt: r.ProcessedAt, Result: db.OrEmpty(r.Result), Attempts: int(r.Attempts),
			NextRunAt: r.NextRunAt, LastError: db.OrEmpty(r.LastError), ParkedAt: r.ParkedAt,
		})
	}
	return list, nil
}

// Get returns an event with its payload. Errors: [ErrNotFound], or the database's.
func (i *Inbox) Get(ctx context.Context, id string) (Info, error) {
	r, found, err := db.One(ctx, i.cfg.Pool, i.queries.InboxGet, id)
	if err == nil && !found {
		err = ErrNotFound
	}
	return Info{
		Event: Event{
			ID: r.ID, Type: r.Type, ObjectID: r.ObjectID, Livemode: r.Livemode, Payload: r.Payload,
		},
		ReceivedAt: r.ReceivedAt, ProcessedAt: r.ProcessedAt, Result: db.OrEmpty(r.Result),
		Attempts: int(r.Attempts), NextRunAt: r.NextRunAt, LastError: db.OrEmpty(r.LastError),
		ParkedAt: r.ParkedAt,
	}, err
}

// Replay makes events due again, processed and parked ones alike, and returns how many. id "" means
// all that were received since since and, unless typ is "", are of that type. Effects that took
// place are not repeated: state only moves forward. Errors: the database's.
func (i *Inbox) Replay(ctx context.Context, id string, since time.Time, typ string) (int, error) {
	n, err := db.Write(
		ctx, i.cfg.Pool, i.queries.InboxReplay,
		db.InboxReplayParams{ID: db.OrNil(id), Since: since, Type: db.OrNil(typ)},
	)
	return int(n), err
}
