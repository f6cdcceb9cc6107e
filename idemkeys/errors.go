package idemkeys

import (
	"errors"
	"fmt"
	"time"
)

// Obstacle is why a provider that answered did not act.
type Obstacle string

// The obstacles. An empty one means that the provider was not reached.
const (
	ObstacleCredentials Obstacle = "credentials" // it refuses our credentials
	ObstacleRateLimit   Obstacle = "rate_limit"  // it takes no more calls from us at the moment
)

// Unresolved is what a phase knows when it knows no outcome.
type Unresolved struct {
	Reason      string   // for operators; without secrets
	Reference   string   // the provider's request id, if any
	NotExecuted bool     // this attempt is known to have had no effect
	Obstacle    Obstacle // why it has had none, when the provider said so
	// the provider stored an answer to a send that says nothing, mostly a 500
	ServerError bool
	Missed      bool // a complete look-up found nothing, and sending is no longer possible
	// of a miss: earlier ones no longer count, since a clock was set after the first
	Anew bool
	// of a miss: how far the outside world's clock is ahead of the database's
	Skew       time.Duration
	Park       bool          // an operator has to decide
	RetryAfter time.Duration // the pause that the provider asked for; 0: our own schedule
}

func (u *Unresolved) Error() string { return u.Reason }

// Errors that Do and Drive return. Each says what the caller may conclude.
var (
	// ErrReused: the key stands for another request. Nothing was done.
	ErrReused = errors.New("idempotency key stands for another request")
	// ErrForbidden: the API key that asks is revoked, or may only read. Nothing was done.
	ErrForbidden = errors.New("the API key is revoked or may only read")
	// ErrUnavailable: the database could not be asked, so nothing was begun by this request. The
	// same key may be tried again.
	ErrUnavailable = errors.New("the key store is not available")
	// ErrNotFound: there is no such key in the account's scope.
	ErrNotFound = errors.New("no such idempotency key")
)

// Refused says that a claim was refused for a reason that the client should know: what it asks for
// is not possible as things stand. Nothing was begun and the key is not spent.
type Refused struct{ Reason error }

func (r *Refused) Error() string { return r.Reason.Error() }
func (r *Refused) Unwrap() error { return r.Reason }

// InUse says that somebody else is working on the same request.
type InUse struct {
	OperationID string
	RetryAfter  time.Duration
}

// Operation names the operation, for the log.
func (i *InUse) Operation() string { return i.OperationID }

func (*InUse) Error() string { return "the key is in use" }

// Unknown says that the work was begun and its outcome is not known yet. The same key is the right
// retry.
type Unknown struct {
	OperationID string
	ResourceID  string
	RetryAfter  time.Duration
	NotExecuted bool     // the provider is known not to have acted
	Obstacle    Obstacle // why it has not, when it said so
	Cause       error
}

func (u *Unknown) Error() string { return fmt.Sprintf("outcome unknown: %v", u.Cause) }

// Operation names the operation, for the log.
func (u *Unknown) Operation() string { return u.OperationID }

func (u *Unknown) Unwrap() error { return u.Cause }

// Parked says that an operator has to decide; retrying does not help until then.
type Parked struct {
	OperationID string
	ResourceID  string
}

// Operation names the operation, for the log.
func (p *Parked) Operation() string { return p.OperationID }

func (*Parked) Error() string { return "the operation is parked" }
