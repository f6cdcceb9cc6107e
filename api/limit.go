package api

import (
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// limitersMax bounds the memory for rate limits: 10,000 accounts are some 2 MB. Beyond that,
// accounts that are idle are forgotten first, which changes nothing for them.
const limitersMax = 10_000

// limiter allows each account perSecond requests a second, in bursts of up to as many. A nil
// limiter allows everything. It is safe for concurrent use.
type limiter struct {
	perSecond rate.Limit
	burst     int

	mu       sync.Mutex
	accounts map[string]*rate.Limiter
}

func newLimiter(perSecond float64) *limiter {
	if perSecond <= 0 {
		return nil
	}
	return &limiter{
		perSecond: rate.Limit(perSecond), burst: max(1, int(math.Ceil(perSecond))),
		accounts: map[string]*rate.Limiter{},
	}
}

// take counts a request. When there are too many, it says how long to wait, and counts nothing.
func (l *limiter) take(account string, now time.Time) (wait time.Duration) {
	if l == nil {
		return 0
	}
	r := l.of(account, now).ReserveN(now, 1)
	if wait = r.DelayFrom(now); wait > 0 {
		r.CancelAt(now)
	}
	return wait
}

func (l *limiter) of(account string, now time.Time) *rate.Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.accounts[account]
	if a == nil {
		if len(l.accounts) >= limitersMax {
			l.forget(now)
		}
		a = rate.NewLimiter(l.perSecond, l.burst)
		l.accounts[account] = a
	}
	return a
}

// forget drops the accounts that have their whole allowance again, and any tenth when nobody has:
// the next ones should not search in vain.
func (l *limiter) forget(now time.Time) {
	for account, a := range l.accounts {
		if a.TokensAt(now) >= float64(l.burst) {
			delete(l.accounts, account)
		}
	}
	for account := range l.accounts {
		if len(l.accounts) <= limitersMax/10*9 {
			return
		}
		delete(l.accounts, account)
	}
}
