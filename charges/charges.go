// Package charges makes charges: parameters, phases, rendering, rows.
//
// Read phases.go first: it is the table of all kinds and their phases. creation.go, intents.go, capture_phases.go
// and refund_phases.go are a kind each. params.go says what a client may ask for, render.go what it is
// shown, store.go what is written. The package knows nothing of HTTP.
package charges

import (
	"context"
	"errors"
	"fmt"
	"time"

	"paidonce/idemkeys"
)

// ErrNotFound: the account has no such charge.
var ErrNotFound = errors.New("no such charge")

// Filter selects charges of an account for a list. Times are compared at full precision: created in [CreatedFrom, CreatedBefore).
type Filter struct {
	Limit         int // 1-100
	StartingAfter string
	EndingBefore  string
	CreatedFrom   *time.Time
	CreatedBefore *time.Time
	Customer      string
	Status        string // "", pending, succeeded or failed
}

// Page is a page of charges, newest first.
type Page struct {
	Charges []Charge
	HasMore bool
}

// Config is what charges need to know.
type Config struct {
	Installation string // tag in provider metadata and derived keys
	Intents      bool   // make charges through payment intents: two steps, of which only the second moves money
	Livemode     bool   // whether the provider's credentials move real money
	OwnReceipts  bool   // we mail the receipts of charges that are claimed from now on, so the provider is not told where to
	// LookupMisses is how many complete look-ups, over idemkeys.Config.LookupSpan, prove that a charge was never made.
	LookupMisses int
	// Clocks tells the provider's time; without it no absence is proven.
	Clocks *Clocks
	// KeyWindow and RunLimit are those of [idemkeys.Config].
	KeyWindow, RunLimit time.Duration
}

// Service is what the HTTP edge calls. Safe for concurrent use.
type Service struct {
	store  *Store
	engine *idemkeys.Engine
	cfg    Config
}

// Create makes a charge once for the request's key, or answers what that key already stands for.
// Errors: those of [idemkeys.Engine.Do].
func (s *Service) Create(ctx context.Context, r idemkeys.Request, p Params) (idemkeys.Result, error) {
	return s.do(ctx, r, s.claim(p))
}

func (s *Service) do(ctx context.Context, r idemkeys.Request, claim idemkeys.Claim) (idemkeys.Result, error) {
	res, err := s.engine.Do(ctx, r, claim)
	return s.store.unlessReplaced(ctx, res, err)
}

// Get returns a charge as it is now. Errors: [ErrNotFound], or the database's.
func (s *Service) Get(ctx context.Context, accountID, id string) (Charge, error) {
	c, err := s.store.get(ctx, accountID, id)
	return c, s.notHere(err)
}

// List returns a page of charges, newest first. Errors: [ErrNotFound] for a cursor that names no charge of the account, or
// the database's.
func (s *Service) List(ctx context.Context, accountID string, f Filter) (Page, error) {
	p, err := s.store.list(ctx, accountID, f)
	return p, s.notHere(err)
}

// notHere is the error of a read: what is not here while it is in doubt whether the database is whole may
// have been forgotten, so nobody is told that it never was.
func (s *Service) notHere(err error) error {
	if held := s.engine.Held(); held != nil && errors.Is(err, ErrNotFound) {
		return fmt.Errorf("%w: %w", idemkeys.ErrUnavailable, held)
	}
	return err
}

// Operation tells which operation made a charge, of any account: for operators. Errors: [ErrNotFound], or the database's.
func (s *Service) Operation(ctx context.Context, id string) (string, error) {
	return s.store.operation(ctx, id)
}
