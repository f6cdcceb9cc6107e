// Package outbox tells the world what came true: the order of events, the endpoints that want them, and their delivery.
//
// Whoever makes an event true inserts it in the same transaction; so an event exists exactly if its result does. Everything here comes after that commit:
// number.go gives committed events their places, events.go reads them, endpoints.go keeps the addresses, relay.go delivers, stream.go publishes.
// How something is sent is in the packages below this one: webhook, nats, kafka.
package outbox

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"paidonce/db"
)

// ErrNotFound: the account has no such event or endpoint.
var ErrNotFound = errors.New("there is no such object")

// ErrNoEndpoint is the [ErrNotFound] of an endpoint, where an event is named as well.
var ErrNoEndpoint = fmt.Errorf("%w: the webhook endpoint", ErrNotFound)

// ParamError is a parameter that is not what it must be.
type ParamError struct {
	Param   string
	Code    string
	Message string
}

func (e *ParamError) Error() string { return e.Message }

func invalid(param, code, format string, args ...any) error {
	return &ParamError{Param: param, Code: code, Message: fmt.Sprintf(format, args...)}
}

// Types are the types of events, in the order in which an object usually goes through them.
var Types = []string{
	"charge.pending", "charge.succeeded", "charge.failed", "charge.captured", "charge.refunded", "charge.updated", "charge.dispute.created", "charge.dispute.closed",
	"refund.created", "refund.updated", "refund.failed",
}

// Config is what a store is made of.
type Config struct {
	Pool db.Pool
	// CheckURL tells why an endpoint's URL is not acceptable, in words that complete "url"; nil: all are, for tests. It may look names up.
	CheckURL func(ctx context.Context, url string) error
}

// Store reads events and keeps endpoints. Safe for concurrent use.
type Store struct {
	pool     db.Pool
	queries  *db.Queries
	checkURL func(ctx context.Context, url string) error
	numbered atomic.Int64
}

// New returns a store.
func New(cfg Config) *Store {
	check := cfg.CheckURL
	if check == nil {
		check = func(context.Context, string) error { return nil }
	}
	return &Store{pool: cfg.Pool, queries: db.New(), checkURL: check}
}

// Event is a stored event. Its payload is JSON and stays the same for ever: every reader and every delivery gets these bytes.
type Event struct {
	ID          string
	AccountID   string
	Type        string
	ObjectID    string // the object it speaks of
	OperationID string // what made it true: one of ours, or the provider's event
	Payload     []byte
	Created     time.Time
	Position    int64 // its place among all events; 0: it has none yet
}

func fromRow(r db.Outbox) Event {
	e := Event{ID: r.EventID, AccountID: r.AccountID, Type: r.Type, ObjectID: r.ObjectID, OperationID: r.OperationID, Payload: r.Payload, Created: r.CreatedAt}
	if r.Position != nil {
		e.Position = *r.Position
	}
	return e
}
