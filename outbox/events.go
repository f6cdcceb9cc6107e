package outbox

import (
	"context"
	"errors"
	"math"
	"regexp"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"paidonce/db"
)

// Filter selects events of an account.
type Filter struct {
	Type          string // "": all
	StartingAfter string // an event's id: the page begins with the one that follows it in the order of reading
	NewestFirst   bool   // backwards; what comes later is seen by reading forwards only
	Limit         int    // 1-100
}

// Page is a page of events in the order of reading: that in which they became visible, or backwards. HasMore: there are more in that direction.
type Page struct {
	Events  []Event
	HasMore bool
}

// List returns a page of an account's events. Who reads to the end, and later reads on from the last event it has seen, misses none: a new event is always
// placed after all that were ever listed, and a cursor behind which events were forgotten is refused. Errors: [ErrNotFound] for such a cursor, or one that names no event of the account, [*ParamError], or the database's.
func (s *Store) List(ctx context.Context, accountID string, f Filter) (Page, error) {
	if f.Type != "" && !slices.Contains(Types, f.Type) {
		return Page{}, invalid("type", "parameter_invalid", "there are no events of this type.")
	}
	if err := s.NumberAll(ctx); err != nil {
		return Page{}, err
	}
	cursor, err := s.start(ctx, accountID, f)
	if err != nil {
		return Page{}, err
	}
	rows, err := s.listRows(ctx, accountID, f, cursor)
	if err != nil {
		return Page{}, err
	}
	if f.StartingAfter != "" && !f.NewestFirst {
		// After the events were read: what is forgotten meanwhile may be told as missed, but nothing is missed untold.
		switch cleaned, err := s.cleanedUpTo(ctx, accountID, f.Type); {
		case err != nil:
			return Page{}, err
		case cleaned > cursor:
			return Page{}, ErrNotFound
		}
	}
	page := Page{Events: make([]Event, 0, len(rows)), HasMore: len(rows) > f.Limit}
	for _, row := range rows[:min(len(rows), f.Limit)] {
		page.Events = append(page.Events, fromRow(row))
	}
	return page, nil
}

// listRows asks the statement that fits the filter: each has one index to go by. One row more than asked for tells whether there is more.
func (s *Store) listRows(ctx context.Context, accountID string, f Filter, cursor int64) ([]db.Outbox, error) {
	ctx = db.OnlyReads(ctx)
	most := int32(f.Limit) + 1 //nolint:gosec // at most 100
	return ask(ctx, func(ctx context.Context) ([]db.Outbox, error) {
		switch {
		case f.Type == "" && f.NewestFirst:
			return s.queries.EventListBefore(ctx, s.pool, db.EventListBeforeParams{AccountID: accountID, Before: cursor, Most: most})
		case f.Type == "":
			return s.queries.EventList(ctx, s.pool, db.EventListParams{AccountID: accountID, After: cursor, Most: most})
		case f.NewestFirst:
			return s.queries.EventListOfTypeBefore(ctx, s.pool, db.EventListOfTypeBeforeParams{AccountID: accountID, Type: f.Type, Before: cursor, Most: most})
		}
		return s.queries.EventListOfType(ctx, s.pool, db.EventListOfTypeParams{AccountID: accountID, Type: f.Type, After: cursor, Most: most})
	})
}

// start is the position that a page begins at. The first page begins after what was forgotten: what is kept from before has gaps after it.
func (s *Store) start(ctx context.Context, accountID string, f Filter) (int64, error) {
	switch {
	case f.StartingAfter != "":
		return s.place(ctx, accountID, f.StartingAfter)
	case f.NewestFirst:
		return math.MaxInt64, nil
	}
	return s.cleanedUpTo(ctx, accountID, f.Type)
}

func (s *Store) cleanedUpTo(ctx context.Context, accountID, kind string) (int64, error) {
	return ask(ctx, func(ctx context.Context) (int64, error) {
		return s.queries.EventsCleanedUpTo(ctx, s.pool, db.EventsCleanedUpToParams{AccountID: accountID, Type: db.OrNil(kind)})
	})
}

// place tells where an event stands. One that the database has forgotten stood after all that it had at the
// moment to which it was put back, so its reader goes on from there: it may get what it had, and misses
// nothing.
func (s *Store) place(ctx context.Context, accountID, id string) (int64, error) {
	e, err := s.Get(ctx, accountID, id)
	if errors.Is(err, ErrNotFound) && eventForm.MatchString(id) {
		at, askErr := ask(ctx, func(ctx context.Context) (db.RecoveryOfCursorRow, error) {
			return s.queries.RecoveryOfCursor(ctx, s.pool, cursorLife)
		})
		if askErr != nil || at.Recoveries > 0 {
			return at.Position, askErr
		}
	}
	if err == nil && e.Position == 0 { // it was committed while many others waited for their places
		return 0, ErrNotFound
	}
	return e.Position, err
}

// eventForm is the form of an event's id.
var eventForm = regexp.MustCompile(`^evt_[0-9A-Z]{26}$`)

// cursorLife is how long after a recovery the cursors of forgotten events are known to be such: readers
// that come once a quarter are still served, and a mistyped cursor is told as one again some day.
const cursorLife = 100 * 24 * time.Hour

// Get returns an event of an account. Errors: [ErrNotFound], or the database's.
func (s *Store) Get(ctx context.Context, accountID, id string) (Event, error) {
	row, err := ask(ctx, func(ctx context.Context) (db.Outbox, error) {
		return s.queries.EventGet(ctx, s.pool, db.EventGetParams{AccountID: accountID, EventID: id})
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return Event{}, ErrNotFound
	}
	return fromRow(row), err
}

// Resend queues an event once more, in a transaction of the caller's: for one endpoint, whatever its filter, or with "" for all that want it. It tells for how
// many; disabled ones take none. The same bytes are sent under the same id, so a consumer that has it already knows it. Call [Store.NumberAll] before: an event
// that has no place yet is queued when it gets one. Errors: [ErrNotFound], [ErrNoEndpoint], or the database's.
func (s *Store) Resend(ctx context.Context, tx db.DBTX, accountID, id, endpoint string) (int, error) {
	_, err := s.queries.EventGet(ctx, tx, db.EventGetParams{AccountID: accountID, EventID: id})
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, db.Final(ErrNotFound)
	}
	if err != nil {
		return 0, err
	}
	if endpoint != "" {
		_, err := s.queries.EndpointGet(ctx, tx, db.EndpointGetParams{AccountID: accountID, ID: endpoint})
		if errors.Is(err, pgx.ErrNoRows) {
			return 0, db.Final(ErrNoEndpoint)
		}
		if err != nil {
			return 0, err
		}
	}
	queued, err := s.queries.EventResend(ctx, tx, db.EventResendParams{AccountID: accountID, EventID: id, EndpointID: endpoint})
	return len(queued), err
}

// Find returns an event of any account: for operators. Errors: [ErrNotFound], or the database's.
func (s *Store) Find(ctx context.Context, id string) (Event, error) {
	row, err := ask(ctx, func(ctx context.Context) (db.Outbox, error) { return s.queries.EventFind(ctx, s.pool, id) })
	if errors.Is(err, pgx.ErrNoRows) {
		return Event{}, ErrNotFound
	}
	return fromRow(row), err
}

// Selection selects events of all accounts, for operators.
type Selection struct {
	Since       time.Time
	Type        string // "": all
	AccountID   string // "": all
	Undelivered bool   // only those that some endpoint does not have
	Most        int
}

// Summary is an event and how many deliveries it has.
type Summary struct {
	Event                     // without its payload
	Deliveries, Pending, Dead int
}

// Newest returns events of all accounts, the newest first: for operators. Errors: the database's.
func (s *Store) Newest(ctx context.Context, sel Selection) ([]Summary, error) {
	if err := s.NumberAll(ctx); err != nil {
		return nil, err
	}
	rows, err := ask(ctx, func(ctx context.Context) ([]db.EventNewestRow, error) {
		return s.queries.EventNewest(ctx, s.pool, db.EventNewestParams{
			Since: sel.Since, Type: db.OrNil(sel.Type), AccountID: db.OrNil(sel.AccountID), Undelivered: sel.Undelivered, Most: int32(sel.Most), //nolint:gosec // bounded by the caller
		})
	})
	if err != nil {
		return nil, err
	}
	list := make([]Summary, 0, len(rows))
	for _, r := range rows {
		list = append(list, Summary{
			Event:      Event{ID: r.EventID, AccountID: r.AccountID, Type: r.Type, ObjectID: r.ObjectID, OperationID: r.OperationID, Created: r.CreatedAt, Position: r.Position},
			Deliveries: int(r.Deliveries), Pending: int(r.Pending), Dead: int(r.Dead),
		})
	}
	return list, nil
}

// Delivery is the delivery of an event to an endpoint, as an operator sees it.
type Delivery struct {
	EndpointID string
	URL        string
	Disabled   bool   // the endpoint is: what is pending waits
	State      string // pending, delivered, or dead
	Attempts   int
	NextRunAt  *time.Time
	LastAt     *time.Time
	LastStatus int    // 0: there was no answer
	LastBody   []byte // the beginning of the last answer
	LastError  string
	FinishedAt *time.Time
}

// Deliveries returns the deliveries of an event. Errors: the database's.
func (s *Store) Deliveries(ctx context.Context, id string) ([]Delivery, error) {
	rows, err := ask(ctx, func(ctx context.Context) ([]db.EventDeliveriesRow, error) {
		return s.queries.EventDeliveries(ctx, s.pool, id)
	})
	if err != nil {
		return nil, err
	}
	list := make([]Delivery, 0, len(rows))
	for _, r := range rows {
		d := Delivery{
			EndpointID: r.EndpointID, URL: r.Url, Disabled: r.DisabledAt != nil, State: r.Delivery.State, Attempts: int(r.Delivery.Attempts),
			NextRunAt: r.Delivery.NextRunAt, LastAt: r.Delivery.LastAttemptAt, LastBody: r.Delivery.LastBody, LastError: db.OrEmpty(r.Delivery.LastError),
			FinishedAt: r.Delivery.FinishedAt,
		}
		if r.Delivery.LastStatus != nil {
			d.LastStatus = int(*r.Delivery.LastStatus)
		}
		list = append(list, d)
	}
	return list, nil
}

// ask reads, and reads again after a conflict or a lost connection.
func ask[T any](ctx context.Context, read func(context.Context) (T, error)) (v T, err error) {
	err = db.Retry(ctx, func(ctx context.Context) (err error) {
		v, err = read(ctx)
		return err
	})
	return v, err
}
