// Package idemkeys is the life of an idempotency key: claim, lease, run, replay, take-over.
//
// Read run.go first. An operation is the work that a key stands for. It is a table of phases, one for each recovery point.
// A phase does its outside work first and returns a commit; the runner executes that commit, which also moves the recovery point,
// in one transaction. The HTTP handler and the reconciler call the same runner; neither contains phase code.
//
// The package knows nothing of charges, HTTP or providers.
package idemkeys

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Request is what a caller of a key brings along.
type Request struct {
	AccountID   string // the scope of the key
	APIKeyID    string // the claim checks that it is not revoked
	Key         string // as ParseKey returned it
	RequestID   string // of this HTTP request
	Fingerprint Fingerprint
	// Wait is how long to wait for an answer when somebody else is running the same request; 0 answers InUse at once.
	Wait time.Duration
}

// Answer is what every caller of a finished key learns: status, the headers worth repeating, and the bytes of the body.
type Answer struct {
	Code   int
	Header map[string]string // Content-Type and Location; never per-exchange headers
	Body   []byte
}

// Result is an answer and how it came about.
type Result struct {
	Answer          Answer
	OperationID     string
	Status          Status // Completed, or Failed: proven that nothing moved
	Replayed        bool   // the answer was stored by an earlier request
	OriginalRequest string // request id of the request that claimed the key
}

// Status of a key.
type Status string

// The states of a key.
const (
	InProgress Status = "in_progress"
	Completed  Status = "completed"
	Failed     Status = "failed" // proven that nothing moved; the same request under the same key runs anew
)

// Point is a recovery point: where to resume, named for what is true when the operation stands there.
type Point string

// Points that every operation has. Kinds may have more between them.
const (
	Started  Point = "started"  // the key is claimed; the provider may have been called from here on
	Finished Point = "finished" // the answer is stored
)

// Operation is the work that a claimed key stands for, as the driver that holds its lease sees it. It is a value: a phase decides by
// what it says, never by who drives it.
type Operation struct {
	AccountID  string
	Key        string
	ID         string // random, new for every claim generation
	Kind       string
	Point      Point
	Params     []byte // frozen at the claim
	ResourceID string
	RequestID  string
	LeaseToken string
	Actor      string // who drives it, for the operation's log
	Attempts   int
	Passes     int       // of the attempts, those of the reconciler
	CreatedAt  time.Time // the database's clock

	// Reached: an earlier attempt may have had its effect at the provider.
	Reached bool
	// FirstAttemptAt and LastAttemptAt bound the attempts so far, this one included; the database's clock.
	FirstAttemptAt, LastAttemptAt time.Time
	// WindowOpen: the provider still remembers the derived key, so it may be sent again.
	WindowOpen bool
	// ServerErrors counts the sends whose answer said nothing and is replayed for ever.
	ServerErrors int
	// Misses counts complete look-ups that found nothing since sending stopped; SpanOver: the first of them is long enough ago.
	Misses   int
	SpanOver bool
	// MissSkew is what Unresolved.Skew was at the first miss; nil: not known.
	MissSkew *time.Duration
	// SentAt is when the latest attempt began that could send, this one if it can; the database's clock.
	SentAt time.Time

	now    time.Time // the database's clock when leased
	leased time.Time // monotonic reading at that moment
}

// Commit is what a phase wants written: a value, executed by the runner. Either Next is a further point and Answer is nil, or Next is
// Finished and Answer is what every caller will learn.
type Commit struct {
	Next   Point
	Status Status // Completed or Failed when Next is Finished
	Answer *Answer
	Params []byte // at a further point: what is frozen from there on; nil keeps what was
	Write  Write
	Note   string // how the outcome was learnt, for the operation's log; may be empty

	// Log is what the write adds to the operation's log; nil adds nothing. Set by the engine.
	Log *LogEntry
}

// LogEntry is a line of an operation's log. A charge that just works leaves none.
type LogEntry struct {
	Event  string // settled or resolved
	Actor  string
	Detail string
}

// Fence names the lease under which a commit is written. A write that matches no row under it has lost the lease.
type Fence struct {
	AccountID, Key, OperationID, LeaseToken string
	Point                                   Point
}

// Write is the domain's half of a commit. Execute writes the key's row and the domain's rows in one transaction, under the fence, and
// reports whether the fence held. Executing it twice is safe: the second finds the fence broken.
type Write interface {
	Execute(ctx context.Context, f Fence, c Commit) (won bool, err error)
}

// Phase does the outside work of one recovery point and returns what to commit. It holds no transaction and no connection while it
// works. An error means that the outcome is unknown; [*Unresolved] says more.
type Phase func(ctx context.Context, op Operation) (Commit, error)

// Phases is the table of an operation: what to do at each recovery point.
type Phases map[Point]Phase

// Kind is a kind of operation.
type Kind struct {
	Phases Phases
	// Resolve checks a person's word on an operation against the provider and returns the commit that ends it. An error says why not.
	Resolve func(ctx context.Context, op Operation, r Resolution) (Commit, error)
}

// Resolution is a person's word on an operation that no driver could end.
type Resolution struct {
	Succeeded  bool   // else: it failed, nothing moved
	ProviderID string // the provider's id of the object; required when it succeeded
	Reason     string
	By         string // who says so
	Adopt      bool   // an audit found it; the log says adopted instead of resolved
	News       bool   // not a person's word but the provider's own news; the log says settled
	// Evidence is the object itself, as signed news of the provider has it: for an operation that the
	// provider cannot be asked about. nil: it is asked.
	Evidence any
}

// Obstacle is why a provider that answered did not act.
type Obstacle string

// Obstacles; without one the provider was not reached.
const (
	ObstacleCredentials Obstacle = "credentials" // it refuses ours
	ObstacleRateLimit   Obstacle = "rate_limit"  // it takes no more calls from us at the moment
)

// Unresolved is what a phase knows when it knows no outcome.
type Unresolved struct {
	Reason      string        // cleaned text for operators
	Reference   string        // the provider's request id, if any
	NotExecuted bool          // this attempt is known to have had no effect
	Obstacle    Obstacle      // why it has had none, when the provider said so
	ServerError bool          // the provider answered a send with what says nothing, and stored that: a 500 mostly
	Missed      bool          // a complete look-up found nothing, and sending is no longer possible
	Anew        bool          // of a miss: those before it do not count, a clock has jumped since the first
	Skew        time.Duration // of a miss: how far the outside world's clock is ahead of the database's
	Park        bool          // a person has to decide
	RetryAfter  time.Duration // what the provider asked for; 0 for our own schedule
}

func (u *Unresolved) Error() string { return u.Reason }

// Errors that Do and Drive return. Each says what the caller may conclude.
var (
	// ErrReused: the key stands for another request. Nothing was done.
	ErrReused = errors.New("idempotency key stands for another request")
	// ErrNotClaimable: the claim was refused although the key is free (the API key was revoked). Nothing was done.
	ErrNotClaimable = errors.New("the claim was refused")
	// ErrUnavailable: the database could not be asked, so nothing was begun by this request. The same key may be tried again.
	ErrUnavailable = errors.New("the key store is not available")
	// ErrNotFound: there is no such key in the account's scope.
	ErrNotFound = errors.New("no such idempotency key")
)

// Refused: a claim was refused for a reason that the client should know: what it asks for is not possible as things stand. Nothing was begun and the
// key is not spent.
type Refused struct {
	Code    int // HTTP status
	Problem Problem
}

func (r *Refused) Error() string { return r.Problem.Message }

// InUse: somebody else is working on the same request.
type InUse struct {
	OperationID string
	RetryAfter  time.Duration
}

// Operation names the operation, for the log.
func (i *InUse) Operation() string { return i.OperationID }

func (*InUse) Error() string { return "the key is in use" }

// Unknown: the work was begun and its outcome is not known yet. The same key is the right retry.
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

// Parked: a person has to decide; retrying does not help until then.
type Parked struct {
	OperationID string
	ResourceID  string
}

// Operation names the operation, for the log.
func (p *Parked) Operation() string { return p.OperationID }

func (*Parked) Error() string { return "the operation is parked" }
