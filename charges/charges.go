// Package charges makes charges: parameters, phases, rendering, rows.
//
// Read phases.go first: it is the table of all kinds and their phases. charge.go with
// charge_phases.go, intent.go, capture.go, and refund.go with refund_phases.go are one kind each,
// in the same order: the parameters, the claim, what is frozen, the phases, the last commit, an
// operator's decision. attempt.go and claim.go are what they share, render.go is what clients are
// shown.
package charges

import (
	"errors"
	"time"

	"paidonce/db"
	"paidonce/idemkeys"
)

// ErrNotFound: the account has no such charge.
var ErrNotFound = errors.New("no such charge")

// Config is what charges need to know.
type Config struct {
	Installation string // tag in provider metadata and derived keys
	// make charges through payment intents: two steps, of which only the second moves money
	Intents  bool
	Livemode bool // whether the provider's credentials move real money
	// we mail the receipts of charges that are claimed from now on, so the provider is not told
	// where to
	OwnReceipts bool
	// LookupMisses is how many complete look-ups, over idemkeys.Config.LookupSpan, prove that a
	// charge was never made.
	LookupMisses int
	// Clocks knows the provider's time. Without it no absence is ever proven.
	Clocks *Clocks
	// PayerWindow is how long a charge waits for its payer, from the answer that says so.
	PayerWindow time.Duration
	// KeyWindow is how long the provider remembers a derived key, as idemkeys.Config.SendWindow;
	// RunLimit is that of [idemkeys.Config].
	KeyWindow, RunLimit time.Duration
}

// Service is what the HTTP edge calls. Safe for concurrent use.
type Service struct {
	store  *Store
	runner *idemkeys.Runner
	cfg    Config
	claims db.Committer[*claimRow, time.Time] // commit 1 of whoever claims at the same moment
}

// claimsMax is how many claims may wait for their turn: enough for thousands of callers at the same
// moment, and few enough to be written in a second or two, while their callers still wait.
// Settlements are never refused: their money has moved.
const claimsMax = 5 * 1024

// NewService returns the service of charges, whose operations runner runs.
func NewService(s *Store, runner *idemkeys.Runner, cfg Config) *Service {
	return &Service{store: s, runner: runner, cfg: cfg, claims: db.Committer[*claimRow, time.Time]{
		Write: s.writeClaims, ID: func(r *claimRow) string { return r.op.ID }, QueueMax: claimsMax,
		Late: func(r *claimRow, claimedAt time.Time) {
			op := *r.op // the caller has it, too
			op.SetClaimed(claimedAt)
			runner.Abandon(&op, "claimed after the caller had given up")
		},
	}}
}

// CommitStats counts what commit 1 and commit 2 of charges have done.
func (s *Service) CommitStats() (claims, settlements db.CommitterStats) {
	return s.claims.Stats(), s.store.settlements.Stats()
}
