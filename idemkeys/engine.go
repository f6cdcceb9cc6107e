package idemkeys

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"paidonce/db"
)

// Config is the time in an operation's life. All of it is compared with the database's clock.
type Config struct {
	// StaleAfter: an owner that has held its lease for this long is presumed gone. Above ProviderTimeout; see Check.
	StaleAfter time.Duration
	// ProviderTimeout bounds one provider call.
	ProviderTimeout time.Duration
	// KeyWindow: how long after the first attempt the derived key may be sent again.
	KeyWindow time.Duration
	// LookupSpan: over how long look-ups must have missed before absence is proven.
	LookupSpan time.Duration
	// KeyTTL: how long a finished key is kept.
	KeyTTL time.Duration
}

// commitTime is what a commit may take within a run, beside the provider's call; a healthy database needs a hundredth of it.
const commitTime = 500 * time.Millisecond

// RunLimit is how long a driver may work on an operation: nine tenths of the lease, so that it has stopped before anybody presumes it gone,
// however its timer and the database's clock drift within a lease.
func (c Config) RunLimit() time.Duration { return c.StaleAfter / 10 * 9 }

// Check refuses a StaleAfter that the longest run would outlive.
func (c Config) Check() error {
	if need := c.ProviderTimeout + commitTime; c.RunLimit() < need {
		return fmt.Errorf("PAIDONCE_STALE_AFTER=%v is too short: nine tenths of it must cover one provider call and its commit (PAIDONCE_PROVIDER_TIMEOUT=%v and %v), so at least %v",
			c.StaleAfter, c.ProviderTimeout, commitTime, (need*10/9).Round(time.Millisecond)+time.Millisecond)
	}
	return nil
}

// Engine claims keys and drives operations. Safe for concurrent use.
type Engine struct {
	pool    db.Pool
	queries *db.Queries
	cfg     Config
	log     *slog.Logger
	kinds   map[string]Kind
	waiters waiters
	seen    *sightings
	stats   stats
	gate    Gate

	hold func() error // nil: nothing holds work back

	mu       sync.Mutex // guards draining against running.Add after Drain
	draining bool
	inFlight int
	running  sync.WaitGroup
}

// inFlightMax is how many requests may be under way at once: at some 60 kB each these are 400 MB, and a provider that takes two seconds gets three thousand
// a second. What comes beyond is told to come again; nothing was begun for it.
const inFlightMax = 6_000

// NewEngine returns an engine on the database that drives the given kinds of operation.
func NewEngine(pool db.Pool, cfg Config, log *slog.Logger, kinds map[string]Kind) *Engine {
	return &Engine{pool: pool, queries: db.New(), cfg: cfg, log: log, kinds: kinds, waiters: newWaiters(), seen: newSightings()}
}

// Gate says whether keys may be claimed, and operations driven, at all: not while it is in doubt whether
// the database is whole. Answers that are stored are replayed whatever it says.
type Gate interface {
	// Held returns why not, or nil.
	Held() error
	// Wait is Held, after a while for what passes by itself.
	Wait(ctx context.Context) error
	// Kick tells that a claim was refused by what is in the database.
	Kick()
}

// Behind puts the engine behind a gate. Call it before the engine is used.
func (e *Engine) Behind(g Gate) { e.gate = g }

// Hold lets no new work begin while held returns an error: no claim, no take-over, no lease for a pass. Callers
// hear [ErrUnavailable], joined with that error. Reads and replays go on. Call it before the engine is used;
// held is asked often, by many at once.
func (e *Engine) Hold(held func() error) { e.hold = held }

// Held returns why nothing may be claimed or driven at this moment, joined with [ErrUnavailable], or nil.
func (e *Engine) Held() error {
	var err error
	if e.hold != nil {
		err = e.hold()
	}
	if err == nil && e.gate != nil {
		err = e.gate.Held()
	}
	if err != nil {
		return errors.Join(ErrUnavailable, ErrHeld, err)
	}
	return nil
}

// EndWaits answers callers that wait for somebody else's work, who would keep a process for as long as they like: they hear that the key is
// in use, and find its answer at another process. Work of this process goes on.
func (e *Engine) EndWaits() { e.waiters.end() }

// Drain stops new operations from beginning and returns when those that run have ended.
func (e *Engine) Drain() {
	e.mu.Lock()
	e.draining = true
	e.mu.Unlock()
	e.running.Wait()
}

// enter counts a request that runs; it refuses when draining or full. The caller calls leave.
func (e *Engine) enter() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.draining || e.inFlight >= inFlightMax {
		return false
	}
	e.inFlight++
	e.running.Add(1)
	return true
}

func (e *Engine) leave() {
	e.mu.Lock()
	e.inFlight--
	e.mu.Unlock()
	e.running.Done()
}

// newOperationID is random and new for every claim generation: derived keys are made of it.
func newOperationID() string { return db.NewID("op") }

// newLeaseToken is random: whoever can name it holds the lease.
func newLeaseToken() string { return rand.Text() }
