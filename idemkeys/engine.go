package idemkeys

import (
	"crypto/rand"
	"log/slog"
	"time"

	"paidonce/db"
)

// Config is the time in an operation's life. All durations are compared with the database's clock.
type Config struct {
	// StaleAfter is how long an owner may hold its lease before it is presumed gone. It is at least
	// StaleMin.
	StaleAfter time.Duration
	// CallLimit is how long one call of a phase to the outside world may last.
	CallLimit time.Duration
	// SendWindow is how long after the first attempt the same request may be sent again.
	SendWindow time.Duration
	// LookupSpan is over how long look-ups must have found nothing before absence is proven.
	LookupSpan time.Duration
	// KeyTTL is how long a finished key is kept.
	KeyTTL time.Duration
}

// CommitTime is what a commit may take within a run, beside the call; a healthy database needs a
// hundredth of it.
const CommitTime = 500 * time.Millisecond

// RunLimit is how long a driver may work on an operation: nine tenths of the lease, so that it has
// stopped before anybody presumes it gone, however its timer and the database's clock drift within
// a lease.
func (c Config) RunLimit() time.Duration { return c.StaleAfter / 10 * 9 }

// StaleMin is the shortest StaleAfter within which a run has the time for a call and its commit.
func (c Config) StaleMin() time.Duration {
	return ((c.CallLimit + CommitTime) * 10 / 9).Round(time.Millisecond) + time.Millisecond
}

// Engine is everything that can be done with keys and operations. The program that is put together
// from packages has it whole; other code takes the part that it uses. Safe for concurrent use.
type Engine struct {
	*Runner // for callers of a key: claim, drive, answer
	*Leases // for the reconciler: what nobody works on
	*Desk   // for operators: show, retry, resolve
	*Keys   // for what becomes of keys afterwards: look up, sweep
}

// core is what the parts have in common.
type core struct {
	pool    db.Pool
	queries *db.Queries
	cfg     Config
	log     *slog.Logger
	kinds   map[string]Kind
	gate    Gate         // nil: claims are never held back
	hold    func() error // nil: work is never held back
	running admission
	waiters waiters
	stats   stats
}

// NewEngine returns an engine on the database that drives the given kinds of operation.
func NewEngine(pool db.Pool, cfg Config, log *slog.Logger, kinds map[string]Kind) *Engine {
	c := &core{
		pool: pool, queries: db.New(), cfg: cfg, log: log, kinds: kinds, waiters: newWaiters(),
	}
	leases := &Leases{core: c}
	runner := &Runner{core: c, leases: leases, recent: newRecentKeys()}
	return &Engine{
		Runner: runner, Leases: leases, Desk: &Desk{core: c, leases: leases, runner: runner},
		Keys: &Keys{core: c},
	}
}

// Behind puts the engine behind a gate. Call it before the engine is used.
func (e *Engine) Behind(g Gate) { e.Runner.gate = g }

// Hold lets no new work begin while held returns an error: no claim, no take-over, no lease for a
// pass. Callers get [ErrUnavailable], joined with that error. Reads and replays go on. Call it
// before the engine is used; held is called often, and concurrently.
func (e *Engine) Hold(held func() error) { e.Runner.hold = held }

// newOperationID returns a random id, new for every claim: derived keys are made of it.
func newOperationID() string { return db.NewID("op") }

// newLeaseToken returns a random token: whoever can name it holds the lease.
func newLeaseToken() string { return rand.Text() }
