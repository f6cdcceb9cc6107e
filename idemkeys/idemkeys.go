// Package idemkeys is the life of an idempotency key: claim, lease, run, replay, take-over.
//
// Read run.go first. An operation is the work that a key stands for. It is a table of phases, one
// for each recovery point. A phase does its outside work first and returns a commit; the runner
// executes that commit, which also moves the recovery point, in one transaction. The HTTP handler
// and the reconciler call the same runner; neither contains phase code.
//
// An [Engine] has four parts, one for each kind of user. The package knows nothing of charges, HTTP
// or providers: what an operation asks of the outside world is its own matter.
package idemkeys

import (
	"context"
	"time"
)

// Request is what a caller of a key brings along.
type Request struct {
	AccountID   string // the scope of the key
	APIKeyID    string // the claim checks that it may write
	Key         string // as ParseKey returned it
	RequestID   string // of this HTTP request
	Fingerprint Fingerprint
	// Wait is how long to wait for an answer when somebody else is running the same request. With 0
	// the caller gets InUse at once.
	Wait time.Duration
}

// Answer is what every caller of a finished key learns. This package stores it and returns it as it
// is: only the code that makes answers and the code that shows them know what they mean.
type Answer struct {
	Code   int               // 0 to 32767
	Header map[string]string // headers of the result, none of the HTTP exchange that made it
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
	// proven that nothing moved; the same request under the same key runs anew
	Failed Status = "failed"
)

// Point is a recovery point: where to resume, named for what is true when an operation has reached
// it.
type Point string

// Points that every operation has. Kinds may have more between them.
const (
	// the key is claimed; the provider may have been called from here on
	Started  Point = "started"
	Finished Point = "finished" // the answer is stored
)

// Commit is what a phase wants written: a value, executed by the runner. Either Next is a further
// point and Answer is nil, or Next is Finished and Answer is what every caller will learn.
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
	Event  string // settled, resolved or adopted
	Actor  string
	Detail string
}

// Fence names the lease under which a commit is written. A write that matches no row under it has
// lost the lease.
type Fence struct {
	AccountID, Key, OperationID, LeaseToken string
	Point                                   Point
}

// Write is how the domain carries a commit out. Execute writes the key's row and the domain's rows
// in one transaction, under the fence, and reports whether the fence held. Executing it twice is
// safe: the second finds the fence broken.
type Write interface {
	Execute(ctx context.Context, f Fence, c *Commit) (won bool, err error)
}

// Phase does the outside work of one recovery point and returns what to commit. It holds no
// transaction and no connection while it works. An error means that the outcome is unknown;
// [*Unresolved] says more.
type Phase func(ctx context.Context, op *Operation) (*Commit, error)

// Phases is the table of an operation: what to do at each recovery point.
type Phases map[Point]Phase

// Kind is a kind of operation.
type Kind struct {
	Phases Phases
	// Resolve checks an operator's decision on an operation against the provider and returns the
	// commit that ends it. An error says why the decision cannot be taken.
	Resolve func(ctx context.Context, op *Operation, r Resolution) (*Commit, error)
}

// Resolution is an operator's decision on an operation that no driver could end.
type Resolution struct {
	Succeeded  bool   // false: the operation failed, and nothing moved
	ProviderID string // the provider's id of the object; required when it succeeded
	Reason     string
	By         string // the operator's name
}
