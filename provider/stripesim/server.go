// Package stripesim simulates the part of Stripe's HTTP API that a payments service needs, with its
// idempotency rules, a durable ledger and switches for faults, so that tests and benchmarks can ask
// afterwards how often money moved.
//
// It knows nothing of the programs that talk to it and shares no code with them: a mistake in a
// client can't be mirrored here. docs/simulator.md lists what it answers and each switch.
package stripesim

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Config says how a simulator runs. The zero value keeps everything in memory and sends no
// webhooks.
type Config struct {
	// LedgerPath is the JSON-lines file that everything is kept in; empty: in memory only. One
	// process at a time may use a file; a second one is refused.
	LedgerPath string
	// NoSync leaves the fsync out: a killed process still loses nothing, a crashed machine may.
	NoSync bool
	// KeyWindow is how long an idempotency key is remembered, counted from its first request. 0
	// means 24 hours.
	KeyWindow time.Duration
	// SearchLag is how long a charge stays invisible to search. Lists are never late.
	SearchLag time.Duration
	// Webhooks are told about every event.
	Webhooks []Endpoint
	// Seed makes faults with a probability repeatable; 0 takes a random one.
	Seed uint64
	// Account is whose account this is; empty: acct_simulated.
	Account string
	// Now is the clock; nil means time.Now. The offset of SetClock is added to it.
	Now func() time.Time
}

const (
	maxBody         = 1 << 20 // bytes of one request
	defaultWindow   = 24 * time.Hour
	stripeAPI       = "2023-10-16" // the version the objects are shaped after
	maxListLimit    = 100
	defaultLimit    = 10
	requestLogLimit = 2000
)

// Server is the simulator: an http.Handler for Stripe's paths and for the switches under /_sim/.
// Its methods may be called from any number of goroutines.
type Server struct {
	cfg     Config
	book    *ledger // nil when in memory
	hooks   *notifier
	faults  *faultSet
	rights  rightSet
	log     *requestLog
	counts  counters
	offset  atomic.Int64 // nanoseconds added to the clock
	window  atomic.Int64 // nanoseconds
	lag     atomic.Int64 // nanoseconds
	closing context.Context
	stop    context.CancelFunc
	once    sync.Once

	mu    sync.Mutex // guards state
	state *state
}

// New opens the ledger, replays it and returns a simulator that is ready to serve. Close it when
// done.
func New(cfg Config) (*Server, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Account == "" {
		cfg.Account = "acct_simulated"
	}
	if cfg.KeyWindow == 0 {
		cfg.KeyWindow = defaultWindow
	}
	s := &Server{cfg: cfg, state: newState(), faults: newFaultSet(cfg.Seed), log: newRequestLog(requestLogLimit)}
	s.window.Store(int64(cfg.KeyWindow))
	s.lag.Store(int64(cfg.SearchLag))
	s.closing, s.stop = context.WithCancel(context.Background())
	if cfg.LedgerPath != "" {
		book, err := openLedger(cfg.LedgerPath, !cfg.NoSync, s.state.apply)
		if err != nil {
			s.stop()
			return nil, fmt.Errorf("stripesim: ledger: %w", err)
		}
		s.book = book
	}
	s.hooks = newNotifier(s.closing, cfg.Webhooks)
	return s, nil
}

// Close ends background deliveries and hanging requests, and closes the ledger after what is queued
// is written.
func (s *Server) Close() error {
	var err error
	s.once.Do(func() {
		s.stop()
		s.hooks.wait()
		if s.book != nil {
			err = s.book.close()
		}
	})
	return err
}

// now is the simulator's time, to which the settable offset belongs.
func (s *Server) now() time.Time { return s.cfg.Now().Add(time.Duration(s.offset.Load())) }

// SetClock makes the simulator's clock differ by offset from the machine's. It moves created times
// and forgets keys.
func (s *Server) SetClock(offset time.Duration) { s.offset.Store(int64(offset)) }

// SetSearchLag changes Config.SearchLag.
func (s *Server) SetSearchLag(lag time.Duration) { s.lag.Store(int64(lag)) }

// SetKeyWindow changes Config.KeyWindow, also for keys that exist.
func (s *Server) SetKeyWindow(window time.Duration) { s.window.Store(int64(window)) }

// AddFault arms a rule and returns its number.
func (s *Server) AddFault(r Rule) (int, error) { return s.faults.add(r) }

// ClearFaults disarms every rule.
func (s *Server) ClearFaults() { s.faults.clear() }

// ForgetKeys drops every finished idempotency key, as if its window had passed; with a name, only
// that key.
func (s *Server) ForgetKeys(name string) error {
	s.mu.Lock()
	ticket, err := s.commit(&record{Op: opForget, Forget: name})
	s.mu.Unlock()
	if err != nil {
		return err
	}
	return s.durable(ticket)
}

// Reset empties the ledger, the counters, the log of requests and the rules, and puts the clock
// right.
func (s *Server) Reset() error {
	s.mu.Lock()
	ticket, err := s.commit(&record{Op: opReset})
	s.mu.Unlock()
	s.faults.clear()
	s.rights.take(nil)
	s.log.clear()
	s.counts.reset()
	s.offset.Store(0)
	if err != nil {
		return err
	}
	return s.durable(ticket)
}

// commit applies a record and queues it for the ledger, in one order for both. The caller holds mu,
// and waits for the ticket after letting go of it.
func (s *Server) commit(rec *record) (int64, error) {
	if s.book == nil {
		s.state.apply(rec)
		return 0, nil
	}
	ticket, err := s.book.append(rec)
	if err != nil {
		return 0, err
	}
	s.state.apply(rec)
	return ticket, nil
}

// durable returns once everything up to ticket is on disk.
func (s *Server) durable(ticket int64) error {
	if s.book == nil {
		return nil
	}
	return s.book.wait(ticket)
}

// settled waits for all that has been applied so far: what a reader is shown must survive a crash.
func (s *Server) settled() error {
	if s.book == nil {
		return nil
	}
	return s.book.wait(s.book.last())
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	page := isBank(r.URL.Path)
	// a shop sends its payers to the bank's page, which changes nothing by being shown
	if why := foreign(r); why != "" && (!page || r.Method != http.MethodGet || foreignHost(r)) {
		writeJSON(w, http.StatusForbidden, map[string]string{"error": why})
		return
	}
	if page {
		s.serveBank(w, r)
		return
	}
	if isControl(r.URL.Path) {
		s.serveControl(w, r)
		return
	}
	s.serveAPI(w, r)
}
