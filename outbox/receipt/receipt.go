// Package receipt mails receipts: to the address that a charge names, when its money was taken, at most once.
//
// Three steps, each committed before the next: read.go makes a row of each charge that wants a receipt, so that there is never a second one; mailer.go claims the row;
// and only then the mail server is called, as server.go does. What is not known to have been turned down is never sent again. message.go is what the mail says.
package receipt

import (
	"context"
	"log/slog"
	"net/mail"
	"sync"
	"sync/atomic"
	"time"

	"paidonce/db"
)

const (
	// Oldest is how long after the money was taken a receipt is still sent: whoever paid has looked for it by then, and one that comes out of a long outage, or
	// because receipts are switched on again, only worries them.
	Oldest = 24 * time.Hour
	// atOnce is how many mails one mailer has under way: mail servers allow an address some ten to twenty connections.
	atOnce = 8
	// lookEvery is how long a new charge waits for its receipt, on average half of it, where nothing is in the way: two looks into small indexes.
	lookEvery = time.Second
	// readBatch is how many events one statement looks at: milliseconds of a lock that only mailers take.
	readBatch = 1000
	// Pauses after a failure start here, double, and stop growing at the maximum: a server that restarts is met again soon, one that is back after hours within
	// minutes. A quarter of each is random, in either direction.
	pauseFirst = 5 * time.Second
	pauseMax   = 10 * time.Minute
	// abandonedAfter is how long a mail may be called being sent: five conversations, or one and a database that was away for minutes.
	abandonedAfter = 5 * time.Minute
	// tidyEvery is how often abandoned and old receipts are looked for: people wait for the former for minutes.
	tidyEvery = time.Minute
	// cleanBatch is how many old receipts one statement forgets: a moment's work.
	cleanBatch = 100
	// While there is no mail server that deals with us, one mail at a time looks whether it is back, after pauses that start here, double, and stop growing at the maximum:
	// others' time is not spent on it, and it is not run down when it comes back.
	awayPauseFirst = time.Second
	awayPauseMax   = 30 * time.Second
	// onceFailures is after how many such mails in a row a single pass ends: the rest would not find it either.
	onceFailures = 3
	errorMax     = 500 // bytes kept of a reason
)

// Config is what a mailer is made of.
type Config struct {
	// Held returns why nothing may be mailed at this moment, or nil: not while it is in doubt whether the
	// database is whole. May be nil.
	Held func(context.Context) error

	Pool   db.Pool
	Server Server
	From   *mail.Address // as [ParseSender] returns it; nil: [Server.Sender]
	// Decimals returns how many decimals a currency, in lower case, is shown with.
	Decimals func(currency string) int
	Log      *slog.Logger
	TTL      time.Duration // how long receipts are kept, at least two days; 0: for ever
	Pause    time.Duration // after the first failure of a mail, growing from there; 0: 5 s
	// Attempted is told of each result that was written down, for who measures: one of [Results]. took is the time of the conversation, 0 where there was none.
	// May be nil. Called concurrently.
	Attempted func(result string, took time.Duration)
}

// Mailer mails receipts. Any number of them share the work; each mail is claimed by one, and once. Work and Once are not for use at the same time; Counts is safe.
type Mailer struct {
	cfg     Config
	queries *db.Queries
	ended   chan struct{} // a mail ended
	going   sync.WaitGroup
	busy    atomic.Int32 // mails under way
	tidied  time.Time

	mu     sync.Mutex
	once   bool
	away   int       // mails in a row that found no mail server that deals with us
	resume time.Time // not before then is the next tried, while that is so

	counts struct{ made, sent, failed, refused, unknown, expired atomic.Int64 }
}

// Counts is what a mailer has done since it was made.
type Counts struct {
	Made    int64 // charges that were found to want one
	Sent    int64 // mails that the mail server took
	Failed  int64 // attempts that are to be repeated: the mail server is known not to have taken the mail
	Refused int64 // mails that the mail server wants never
	Unknown int64 // mails of which it is not known whether the mail server has them; they are not sent again
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
	if cfg.Attempted == nil {
		cfg.Attempted = func(string, time.Duration) {}
	}
	return &Mailer{cfg: cfg, queries: db.New(), ended: make(chan struct{}, 1)}
}

// Counts returns what was done so far.
func (m *Mailer) Counts() Counts {
	c := &m.counts
	return Counts{Made: c.made.Load(), Sent: c.sent.Load(), Failed: c.failed.Load(), Refused: c.refused.Load(), Unknown: c.unknown.Load(), Expired: c.expired.Load()}
}

// count counts a result that was written down, and tells who measures.
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
	m.cfg.Attempted(result, took)
}

// Results are what can become of a mail: sent; failed, and tried again; refused; unknown; expired.
var Results = []string{stateSent, "failed", stateRefused, stateUnknown, stateExpired}

// States of a receipt. A receipt that is sending belongs to whoever claimed it.
const (
	statePending = "pending"
	stateSending = "sending"
	stateSent    = "sent"
	stateRefused = "refused"
	stateUnknown = "unknown"
	stateExpired = "expired"
)

// States are the states of a receipt, in the order in which they may follow each other.
var States = []string{statePending, stateSending, stateSent, stateRefused, stateUnknown, stateExpired}
