package outbox

import (
	"context"
	"regexp"
	"time"
	"unicode/utf8"

	"paidonce/db"
	"paidonce/idemkeys"
	"paidonce/problem"
)

// eventForm is the form of an event's id.
var eventForm = regexp.MustCompile(`^evt_[0-9A-Z]{26}$`)

// cursorLife is how long after a recovery an unknown cursor is taken for one of a lost event.
// Readers that come once a quarter are still served, and eventually a mistyped cursor is an error
// again.
const cursorLife = 100 * 24 * time.Hour

// Get returns an event of an account. Errors: [ErrNotFound], or the database's.
func (s *Store) Get(ctx context.Context, accountID, id string) (Event, error) {
	row, found, err := db.One(ctx, s.pool, s.queries.EventGet, db.EventGetParams{
		AccountID: accountID, EventID: id,
	})
	if err == nil && !found {
		err = ErrNotFound
	}
	return fromRow(row), err
}

// Resent is the answer to a resend: EventResend of openapi.yaml.
type Resent struct {
	// For how many endpoints it is queued; disabled ones get none.
	Deliveries int    `json:"deliveries"`
	Event      string `json:"event"`
	Object     string `json:"object"`
}

// Resend queues an event of the request's account once more: for one endpoint, whatever its filter,
// or with "" for all that want it. If the request has a key, that is done once for the key. The
// same bytes are sent under the same id, so a consumer that has the event recognises it. The answer
// is [Resent]. Errors: [*problem.Error], [ErrNotFound], [ErrNoEndpoint], the database's, or those
// of [idemkeys.Runner.Local].
func (s *Store) Resend(
	ctx context.Context, r idemkeys.Request, id, endpoint string,
) (idemkeys.Result, error) {
	if utf8.RuneCountInString(endpoint) > endpointNameMax {
		return idemkeys.Result{}, problem.ParameterInvalid.Of("webhook_endpoint",
			"webhook_endpoint may have at most %d characters.", endpointNameMax)
	}
	// An event without a position is queued when it gets one.
	if err := s.NumberAll(ctx); err != nil {
		return idemkeys.Result{}, err
	}
	return s.runner.Local(ctx, r, "event.resend", id, func(ctx context.Context, tx db.DBTX) (idemkeys.Answer, error) {
		n, err := s.resend(ctx, tx, r.AccountID, id, endpoint)
		return answer(Resent{Deliveries: n, Event: id, Object: "event_resend"}), err
	})
}

// Requeue is [Store.Resend] for operators, without a key. It returns for how many endpoints the
// event is queued. Errors: [ErrNotFound], [ErrNoEndpoint], or the database's.
func (s *Store) Requeue(ctx context.Context, accountID, id, endpoint string) (n int, err error) {
	if err := s.NumberAll(ctx); err != nil {
		return 0, err
	}
	err = db.Tx(ctx, s.pool, func(ctx context.Context, tx db.DBTX) (err error) {
		n, err = s.resend(ctx, tx, accountID, id, endpoint)
		return err
	})
	return n, err
}

// endpointNameMax is the longest endpoint name, in characters, that is looked up. No endpoint has a
// longer one ([EndpointID]), so a longer text is a mistake.
const endpointNameMax = 255

func (s *Store) resend(
	ctx context.Context, tx db.DBTX, accountID, id, endpoint string,
) (int, error) {
	_, found, err := db.Found(s.queries.EventGet(ctx, tx, db.EventGetParams{
		AccountID: accountID, EventID: id,
	}))
	if err != nil {
		return 0, err
	}
	if !found {
		return 0, db.Final(ErrNotFound)
	}
	if endpoint != "" {
		_, found, err := db.Found(s.queries.EndpointGet(ctx, tx, db.EndpointGetParams{
			AccountID: accountID, ID: endpoint,
		}))
		if err != nil {
			return 0, err
		}
		if !found {
			return 0, db.Final(ErrNoEndpoint)
		}
	}
	queued, err := s.queries.EventResend(ctx, tx, db.EventResendParams{
		AccountID: accountID, EventID: id, EndpointID: endpoint,
	})
	return len(queued), err
}

// Find returns an event of any account, for operators. Errors: [ErrNotFound], or the database's.
func (s *Store) Find(ctx context.Context, id string) (Event, error) {
	row, found, err := db.One(ctx, s.pool, s.queries.EventFind, id)
	if err == nil && !found {
		err = ErrNotFound
	}
	return fromRow(row), err
}

// Selection selects events of all accounts, for operators.
type Selection struct {
	Since       time.Time
	Type        string // "": all
	AccountID   string // "": all
	Undelivered bool   // only events that some endpoint has not taken
	Limit       int
}

// Summary is an event and how many deliveries it has.
type Summary struct {
	Event                     // without its payload
	Deliveries, Pending, Dead int
}

// Newest returns events of all accounts, the newest first, for operators. Errors: the database's.
func (s *Store) Newest(ctx context.Context, sel Selection) ([]Summary, error) {
	if err := s.NumberAll(ctx); err != nil {
		return nil, err
	}
	rows, err := db.Read(ctx, s.pool, s.queries.EventNewest, db.EventNewestParams{
		Since: sel.Since, Type: db.OrNil(sel.Type), AccountID: db.OrNil(sel.AccountID), Undelivered: sel.Undelivered, MaxRows: int32(sel.Limit), //nolint:gosec // bounded by the caller
	})
	if err != nil {
		return nil, err
	}
	list := make([]Summary, 0, len(rows))
	for _, r := range rows {
		list = append(list, Summary{
			Event: Event{
				ID: r.EventID, AccountID: r.AccountID, Type: r.Type, ObjectID: r.ObjectID,
				OperationID: r.OperationID, Created: r.CreatedAt, Position: r.Position,
			},
			Deliveries: int(r.Deliveries), Pending: int(r.Pending), Dead: int(r.Dead),
		})
	}
	return list, nil
}

// Delivery is the delivery of an event to an endpoint, as an operator sees it.
type Delivery struct {
	EndpointID string
	URL        string
	Disabled   bool   // the endpoint is disabled, so what is pending waits
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
	rows, err := db.Read(ctx, s.pool, s.queries.EventDeliveries, id)
	if err != nil {
		return nil, err
	}
	list := make([]Delivery, 0, len(rows))
	for _, r := range rows {
		d := Delivery{
			EndpointID: r.EndpointID, URL: r.Url, Disabled: r.DisabledAt != nil,
			State: r.Delivery.State, Attempts: int(r.Delivery.Attempts),
			NextRunAt: r.Delivery.NextRunAt, LastAt: r.Delivery.LastAttemptAt,
			LastBody: r.Delivery.LastBody, LastError: db.OrEmpty(r.Delivery.LastError),
			FinishedAt: r.Delivery.FinishedAt,
		}
		if r.Delivery.LastStatus != nil {
			d.LastStatus = int(*r.Delivery.LastStatus)
		}
		list = append(list, d)
	}
	return list, nil
}
