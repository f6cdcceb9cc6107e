// Package receipt mails receipts: at most one for each charge, to the address that the charge
// names, when its money was taken.
//
// There are three steps, each committed before the next: read.go inserts a row for each charge that
// wants a receipt, so that there is never a second one; mailer.go claims the row; and only then
// conversation.go calls the mail server. A mail that is not known to have been turned down is never
// sent again. message.go writes the text.
package receipt

import (
	"context"
	"log/slog"
	"net/mail"
	"sync"
	"sync/atomic"
	"time"

	"paidonce/db"
	"paidonce/internal/backoff"
)

const (
	// Oldest is how long after the money was taken a receipt is still sent. A payer has looked for
	// it by then, and one that arrives after a long outage, or because receipts were switched on
	// again, only worries them.
	Oldest = 24 * time.Hour
	// mailsMax is how many mails one mailer has under way at once: mail servers allow an address
	// some ten to twenty connections.
	mailsMax = 8
	// pollEvery is how long a new charge waits for its receipt at most, if nothing else delays it.
	// A poll costs two look-ups in small indexes.
	pollEvery = time.Second
	// readBatch is how many events one statement looks at. It holds for milliseconds a lock that
	// only mailers take.
	readBatch = 1000
	// Pauses after a failure grow from the first to the maximum: a server that restarts is met
	// again soon, one that is back after hours within minutes.
	pauseFirst = 5 * time.Second
	pauseMax   = 10 * time.Minute
	// abandonedAfter is how long a receipt may stay in the state sending: time for five
	// conversations, or for one and a database that was away for minutes.
	abandonedAfter = 5 * time.Minute
	// cleanUpEvery is how often abandoned and old receipts are looked for: operators should learn
	// of the former within minutes.
	cleanUpEvery = time.Minute
	// cleanBatch is how many old receipts one statement forgets: a moment's work.
	cleanBatch = 100
	// singlePassFailuresMax is after how many mails in a row that found no mail server RunOnce
	// ends: the rest would not find it either.
	singlePassFailuresMax = 3
	errorMax              = 500 // bytes kept of a reason
)

// awayPauses are the pauses after which a single mail tries whether the mail server is back. While
// it is not, no other mail loses its time on it, and it is not flooded when it comes back.
var awayPauses = backoff.Policy{First: time.Second, Max: 30 * time.Second}

// Config is what a mailer is made of.
type Config struct {
	// Held, unless nil, returns why nothing may be mailed at this moment, or nil. Nothing is mailed
	// while it is in doubt whether the database is whole.
	Held func(context.Context) error

	Pool   db.Pool
	Server Server
	From   *mail.Address // as [ParseSender] returns it; nil: [Server.Sender]
	// Decimals returns how many decimals a currency, in lower case, is shown with.
	Decimals func(currency string) int
	Log      *slog.Logger
	TTL      time.Duration // how long receipts are kept, at least two days; 0: forever
	Pause    time.Duration // after the first failure of a mail, growing from there; 0: 5 s
	// OnResult, unless nil, is called with each result that was stored, one of [Results]. took is
	// the time of the conversation, 0 where there was none. Calls are concurrent.
	OnResult func(result string, took time.Duration)
}

// Mailer mails receipts. Any number of mailers share the work: each mail is claimed by one of them,
// and only once. Work and RunOnce must not run at the same time. Counts is safe for concurrent use.
type Mailer struct {
	cfg       Config
	queries   *db.Queries
	ended     chan struct{} // a mail ended
	running   sync.WaitGroup
	busy      atomic.Int32 // mails under way
	cleanedUp time.Time

	mu         sync.Mutex
	singlePass bool
	away       int       // mails in a row for which no mail server opened a session
	resume     time.Time // while away is not 0, when the next mail may be tried

	counts struct{ made, sent, failed, refused, unknown, expired atomic.Int64 }
}

// Counts is what a mailer has done since it was made.
type Counts struct {
	Made int64 // charges found that want a receipt
	Sent int64 // mails that the mail server took
	// Attempts that are to be repeated: the mail server is known not to have taken the mail.
	Failed  int64
	Refused int64 // mails that the mail server refused permanently
	// Mails of which it is not known whether the mail server has them; they are not sent again.
	Unknown int64
	Expired int64 // mails that could not be sent in time
}

// New returns a mailer.
func New(cfg Config) *Mailer {
	if cfg.From == nil {
		cfg.From = cfg.Server.Sender()
	}
	if cfg.Pause == 0 {
		cfg.Pause = pauseFirst
	}
	if cfg.OnResult == nil {
		cfg.OnResult = func(string, time.Duration) {}
	}
	return &Mailer{cfg: cfg, queries: db.New(), ended: make(chan struct{}, 1)}
}

// Counts returns what was done so far.
func (m *Mailer) Counts() Counts {
	c := &m.counts
	return Counts{
		Made: c.made.Load(), Sent: c.sent.Load(), Failed: c.failed.Load(),
		Refused: c.refused.Load(), Unknown: c.unknown.Load(), Expired: c.expired.Load(),
	}
}

// count counts a result that was stored, and reports it.
func (m *Mailer) count(result string, took time.Duration) {
	c := &m.counts
	switch result {
	case stateSent:
		c.sent.Add(1)
	case statePending:
		result = "failed"
		c.failed.Add(1)
	case stateRefused:
		c.refused.Add(1)
	case stateUnknown:
		c.unknown.Add(1)
	case stateExpired:
		c.expired.Add(1)
	}
	m.cfg.OnResult(result, took)
}

// Results are the possible results of an attempt: sent; failed, when it will be tried again;
// refused; unknown; expired.
var Results = []string{stateSent, "failed", stateRefused, stateUnknown, stateExpired}

// States of a receipt. A receipt in the state sending belongs to the mailer that claimed it.
const (
	statePending = "pending"
	stateSending = "sending"
	stateSent    = "sent"
	stateRefused = "refused"
	stateUnknown = "unknown"
	stateExpired = "expired"
)

// States are the states of a receipt, in the order in which they may follow each other.
var States = []string{
	statePending, stateSending, stateSent, stateRefused, stateUnknown, stateExpired,
}
