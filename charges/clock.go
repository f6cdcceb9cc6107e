package charges

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"paidonce/idemkeys"
	"paidonce/provider"
)

// Look-ups use the provider's time: comparing its "created" with our database's clock would prove
// the absence of a charge that exists, as soon as the two clocks are far enough apart.

const (
	// skewTolerance is by how much the difference of the two clocks may change without either
	// having been set: the provider's time has whole seconds, and an answer may be on its way for
	// half a minute.
	skewTolerance = time.Minute
	// clocksApart is how far apart the clocks may have been at an attempt of which only our own
	// time is known: an hour for a wrong time zone or forgotten daylight saving, and some minutes
	// more.
	clocksApart = 65 * time.Minute
	// lookBriefly is how long a look-up may take if the operation may be sent again anyway: enough
	// for some pages, short enough for the caller to wait. It takes at most a quarter of a run.
	lookBriefly = 5 * time.Second
)

// Clocks knows how far the provider's clock is ahead of the database's. A nil one knows nothing,
// and then no absence is ever proven. Safe for concurrent use.
type Clocks struct {
	provider ProviderClock
	log      *slog.Logger

	mu     sync.Mutex
	skew   time.Duration
	known  bool
	logged time.Duration // what was logged last
}

// ProviderClock is what is needed of a [provider.Provider].
type ProviderClock interface {
	Now() (at time.Time, ok bool)
	Account(ctx context.Context) (provider.Account, error)
}

// NewClocks returns clocks that have not been compared yet.
func NewClocks(p ProviderClock, log *slog.Logger) *Clocks { return &Clocks{provider: p, log: log} }

// Skew is how far the provider's clock was ahead of the database's when both were last seen. ok is
// false before that.
func (c *Clocks) Skew() (ahead time.Duration, ok bool) {
	if c == nil {
		return 0, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.skew, c.known
}

// Now is the provider's time, once an answer of it had one.
func (c *Clocks) Now() (time.Time, bool) {
	if c == nil || c.provider == nil {
		return time.Time{}, false
	}
	return c.provider.Now()
}

// seconds returns the provider's time for storage, or 0 if it is not known.
func (c *Clocks) seconds() int64 {
	if now, ok := c.Now(); ok {
		return now.Unix()
	}
	return 0
}

// compare measures the difference, and says in the log when it has changed by more than it may.
func (c *Clocks) compare(database time.Time) (ahead time.Duration, ok bool) {
	now, ok := c.Now()
	if !ok {
		return 0, false
	}
	ahead = now.Sub(database)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.skew, c.known = ahead, true
	if apart(ahead, c.logged) {
		c.log.Warn("the provider's clock and the database's differ, or one of them was set: see to NTP",
			"provider_ahead", ahead.Round(time.Second).String(), "before", c.logged.Round(time.Second).String())
		c.logged = ahead
	}
	return ahead, true
}

func apart(a, b time.Duration) bool { return (a - b).Abs() > skewTolerance }

// reading is what the clocks said when a look-up began.
type reading struct {
	now   time.Time // the provider's
	skew  time.Duration
	known bool
}

// read reads the clocks for a look-up. A provider that has not answered anything yet is asked for
// its account, since every answer has its time.
func (c *Clocks) read(ctx context.Context, op *idemkeys.Operation) (r reading) {
	if c == nil {
		return r
	}
	if _, ok := c.Now(); !ok {
		_, _ = c.provider.Account(ctx) // an error has the time as well
	}
	r.skew, r.known = c.compare(op.Now())
	r.now, _ = c.Now()
	return r
}

// window returns the time span of an operation's attempts, in the provider's time. claimed is that
// time at the claim, or 0 if it is not known. runLimit is how long after its beginning a run may
// send.
func (r reading) window(
	op *idemkeys.Operation, claimed int64, runLimit time.Duration,
) (l provider.Lookup) {
	var slack time.Duration
	switch {
	case claimed != 0:
		l.From = time.Unix(claimed, 0)
		// a clock was set since; nobody knows which, and when
		if then := l.From.Sub(op.CreatedAt); r.known && apart(r.skew, then) {
			slack = (r.skew - then).Abs()
		}
	case r.known:
		l.From, slack = op.CreatedAt.Add(r.skew), clocksApart
	default:
		return l // everything
	}
	l.Near = l.From.Add(max(op.FirstAttemptAt.Sub(op.CreatedAt), 0))
	l.To = l.From.Add(
		max(op.SentAt.Sub(op.CreatedAt), op.FirstAttemptAt.Sub(op.CreatedAt), 0) + runLimit + slack,
	)
	l.From = l.From.Add(-slack)
	return l
}

// lookup says where to look for an operation, and for how long.
func (cfg *Config) lookup(
	ctx context.Context, op *idemkeys.Operation, r reading, tags provider.Tags, claimed int64,
) provider.Lookup {
	l := r.window(op, claimed, cfg.RunLimit)
	l.Tags = tags
	if cfg.mayResend(op, r, claimed) {
		l.Within = lookBriefly
		if end, ok := ctx.Deadline(); ok {
			l.Within = min(l.Within, max(time.Until(end)/4, time.Millisecond)) //tidy:clock how much is left of the run
		}
	}
	return l
}

// mayResend reports whether an operation may be sent again although its look-up was cut short: by
// both clocks the provider still remembers the derived key. After a complete look-up that found
// nothing the database's clock is enough, since there is nothing to be made twice.
func (cfg *Config) mayResend(op *idemkeys.Operation, r reading, claimed int64) bool {
	age := op.Now().Sub(op.CreatedAt) + clocksApart
	if claimed != 0 && r.known {
		age = r.now.Sub(time.Unix(claimed, 0))
	}
	return op.Plan() == idemkeys.LookUpThenSend && r.known && age < cfg.KeyWindow
}

// cutShort reports whether a look-up ran out of time and the operation may be sent all the same.
func (cfg *Config) cutShort(op *idemkeys.Operation, r reading, claimed int64, err error) bool {
	return provider.KindOf(err) == provider.Incomplete && cfg.mayResend(op, r, claimed)
}

// steady returns an error if a clock was set during a look-up that found nothing: its window may
// have been the wrong one.
func (cfg *Config) steady(op *idemkeys.Operation, r reading) error {
	if skew, known := cfg.Clocks.compare(op.Now()); known && r.known && apart(skew, r.skew) {
		return &idemkeys.Unresolved{
			Reason: "a look-up found nothing; a clock was set meanwhile, so that proves nothing",
		}
	}
	return nil
}

// foundNothing decides after a complete look-up that found nothing, when nothing may be sent any
// more. Enough of them, over enough time, prove that the object was never made; before that nothing
// is concluded. r is what the clocks said before the look-up.
//
// The span is counted by the database's clock. As long as its difference to the provider's clock is
// the same as at the first miss, neither was set, and the span is right. When the difference
// changes, the misses begin anew.
func foundNothing(
	op *idemkeys.Operation, cfg *Config, r reading, never func() *idemkeys.Commit,
) (*idemkeys.Commit, error) {
	if err := cfg.steady(op, r); err != nil {
		return nil, err
	}
	skew, known := cfg.Clocks.compare(op.Now())
	looks := op.Misses + 1
	switch {
	case !r.known || !known:
		return nil, &idemkeys.Unresolved{
			Reason: "a look-up found nothing; as long as the provider's time is not known that proves nothing",
		}
	case op.Misses > 0 && (op.MissSkew == nil || apart(skew, *op.MissSkew)):
		return nil, &idemkeys.Unresolved{Missed: true, Anew: true, Skew: skew,
			Reason: fmt.Sprintf(
				"look-up %d found nothing; a clock was set since the first, so they begin anew",
				looks,
			)}
	case looks >= cfg.LookupMisses && op.SpanOver:
		return withNote(never(), fmt.Sprintf("absent in %d complete look-ups", looks)), nil
	}
	return nil, &idemkeys.Unresolved{
		Missed: true, Skew: skew,
		Reason: fmt.Sprintf("look-up %d found nothing; absence is not proven yet", looks),
	}
}
