package idemkeys

import (
	"time"

	"paidonce/db"
)

// Operation is the work that a claimed key stands for, as the driver that holds its lease sees it.
// A phase decides by what it says, never by who drives it. It is handed on by its address, because
// thousands may wait for the outside world, each with a copy in every frame of its stack; once it
// is claimed or leased, nobody changes it.
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

	// Reached is whether an earlier attempt may have had its effect outside.
	Reached bool
	// FirstAttemptAt and LastAttemptAt bound the attempts so far, this one included, by the
	// database's clock.
	FirstAttemptAt, LastAttemptAt time.Time
	// WindowOpen is whether the provider still remembers the derived key, so that the same request
	// may be sent again.
	WindowOpen bool
	// ServerErrors counts the sends whose answer said nothing and is repeated forever.
	ServerErrors int
	// Misses counts complete look-ups that found nothing since sending stopped; SpanOver is whether
	// the first of them was long enough ago.
	Misses   int
	SpanOver bool
	// MissSkew is what Unresolved.Skew was at the first miss; nil means that it is not known.
	MissSkew *time.Duration
	// SentAt is when the latest attempt that could send began, by the database's clock. It may be
	// this one.
	SentAt time.Time

	now    time.Time // the database's clock when leased
	leased time.Time // monotonic reading from before the lease was asked for
}

// newOperation is the operation that a claim of r makes. The claim adds its kind, its resource and
// the frozen parameters, and, when it has won, the time.
func newOperation(r Request) *Operation {
	return &Operation{
		AccountID: r.AccountID, Key: r.Key, ID: newOperationID(), Point: Started,
		RequestID: r.RequestID, LeaseToken: newLeaseToken(), Actor: caller(r), Attempts: 1,
		WindowOpen: true, leased: beforeLease(),
	}
}

// caller names a request as the driver of an operation.
func caller(r Request) string { return "request " + r.RequestID }

// SetClaimed sets the moment of the claim, by the database's clock. Only a claim calls it.
func (op *Operation) SetClaimed(at time.Time) {
	op.CreatedAt, op.FirstAttemptAt, op.LastAttemptAt, op.SentAt, op.now = at, at, at, at, at
}

// SetLeased sets the database's time at the moment of a lease, and this machine's from before the
// lease was asked for. The run counts from the latter, so it ends before anybody presumes its owner
// gone, however late the answer came. Only what takes a lease calls it.
func (op *Operation) SetLeased(now, asked time.Time) { op.now, op.leased = now, asked }

// operation returns the operation whose lease was taken.
func operation(r *db.KeyLeaseDueRow, actor string, asked time.Time) *Operation {
	op := &Operation{
		AccountID: r.AccountID, Key: r.Key, ID: r.OperationID, Kind: r.Kind,
		Point: Point(r.RecoveryPoint), Params: r.Params, ResourceID: r.ResourceID,
		RequestID: r.RequestID, LeaseToken: r.LeaseToken, Actor: actor, Attempts: int(r.Attempts),
		Passes: int(r.Passes), CreatedAt: r.CreatedAt, Reached: r.Reached,
		FirstAttemptAt: r.FirstAttemptAt, LastAttemptAt: r.LastAttemptAt, WindowOpen: r.WindowOpen,
		ServerErrors: int(r.ServerErrors), Misses: int(r.LookupMisses), SpanOver: r.SpanOver,
		SentAt: r.SentAt,
	}
	if r.MissSkew != nil {
		skew := seconds(*r.MissSkew)
		op.MissSkew = &skew
	}
	op.SetLeased(r.Now, asked)
	return op
}

// at is the operation after the commit c, when nothing of the next step was sent yet.
func (op *Operation) at(c *Commit) *Operation {
	next, now := *op, op.Now()
	next.Point = c.Next
	if c.Params != nil {
		next.Params = c.Params
	}
	next.Reached, next.WindowOpen, next.ServerErrors, next.Misses, next.SpanOver, next.MissSkew = false, true, 0, 0, false, nil
	next.FirstAttemptAt, next.LastAttemptAt, next.SentAt = now, now, now
	return &next
}

// beforeLease is this machine's time before a lease is asked for; only its monotonic reading is
// used.
func beforeLease() time.Time { return time.Now() } //tidy:clock to measure how long a run takes

// Now is the database's time, carried on since the lease by this machine's monotonic clock. It is
// for display, never for decisions.
func (op *Operation) Now() time.Time {
	return op.now.Add(time.Since(op.leased)) //tidy:clock monotonic: how long ago the lease was taken
}

// Fence names the operation's lease and point.
func (op *Operation) Fence() Fence {
	return Fence{
		AccountID: op.AccountID, Key: op.Key, OperationID: op.ID, LeaseToken: op.LeaseToken,
		Point: op.Point,
	}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
