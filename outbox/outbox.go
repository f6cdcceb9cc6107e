// Package outbox publishes what has happened: it puts events in order, keeps the endpoints that
// want them, and delivers them.
//
// The transaction that stores a result inserts its event, so an event exists exactly if its result
// does. Everything here happens after that commit: number.go gives committed events their
// positions, events.go reads them, endpoints.go keeps the addresses, relay.go delivers, stream.go
// publishes. How something is sent is in the packages below this one: webhook, publish and receipt.
package outbox

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"paidonce/db"
	"paidonce/idemkeys"
)

// ErrNotFound: the account has no such event or endpoint.
var ErrNotFound = errors.New("there is no such object")

// ErrNoEndpoint is the [ErrNotFound] of an endpoint, where an event is named as well.
var ErrNoEndpoint = fmt.Errorf("%w: the webhook endpoint", ErrNotFound)

// Config is what a store is made of.
type Config struct {
	Pool db.Pool
	// Runner runs a resend or a rotation once for a request's key. It may be nil where neither is
	// called.
	Runner *idemkeys.Runner
	// CheckURL returns why an endpoint's URL is not acceptable, in words that complete "url". It
	// may look names up. nil accepts every URL, for tests.
	CheckURL func(ctx context.Context, url string) error
	// Livemode: events are about real money.
	Livemode bool
}

// Store reads events and keeps endpoints. Safe for concurrent use.
type Store struct {
	pool     db.Pool
	queries  *db.Queries
	runner   *idemkeys.Runner
	checkURL func(ctx context.Context, url string) error
	livemode bool
	queued   atomic.Int64
}

// New returns a store.
func New(cfg Config) *Store {
	check := cfg.CheckURL
	if check == nil {
		check = func(context.Context, string) error { return nil }
	}
	return &Store{
		pool: cfg.Pool, queries: db.New(), runner: cfg.Runner, checkURL: check,
		livemode: cfg.Livemode,
	}
}

// Event is a stored event. Its payload is JSON and never changes: every reader and every delivery
// gets these bytes.
type Event struct {
	ID          string
	AccountID   string
	Type        string
	ObjectID    string // the object that it is about
	OperationID string // what caused it: an operation, or an event of the provider
	Payload     []byte
	Created     time.Time
	Position    int64 // its position among all events; 0: it has none yet
}

func fromRow(r db.Outbox) Event {
	e := Event{
		ID: r.EventID, AccountID: r.AccountID, Type: r.Type, ObjectID: r.ObjectID,
		OperationID: r.OperationID, Payload: r.Payload, Created: r.CreatedAt,
	}
	if r.Position != nil {
		e.Position = *r.Position
	}
	return e
}
