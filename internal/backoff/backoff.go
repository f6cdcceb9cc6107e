// Package backoff says how long to wait before something is tried again: the one policy of the
// whole product, apart from sdk/go, which is a module of its own.
//
// The pause after the nth failure in a row is
//
//	Whole(n) = min(First · 2^(n-1), Max)
//	After(n) = Whole(n) · (1 + x), x drawn evenly from [-1/4, 1/4]
//
// So pauses grow until an outage of any length costs few attempts; they are capped, so that the end
// of the outage is noticed; and they are spread, so that what failed together does not come back
// together.
package backoff

import (
	"context"
	"math/rand/v2"
	"time"
)

// Policy is how the pauses of one kind of work grow.
type Policy struct {
	First time.Duration // after the first failure
	Max   time.Duration // at most, before a quarter of it is added or taken away
}

// Whole returns the pause after that many failures in a row, without its random part. It is 0 for
// no failure.
func (p Policy) Whole(failures int) time.Duration {
	if failures < 1 {
		return 0
	}
	pause := min(p.First, p.Max)
	for ; failures > 1 && pause < p.Max; failures-- {
		pause = min(2*pause, p.Max)
	}
	return pause
}

// After returns the pause after that many failures in a row. It is 0 for no failure.
func (p Policy) After(failures int) time.Duration {
	whole := p.Whole(failures)
	return whole/2 + About(whole/2)
}

// About returns a duration from half of d to one and a half of it. It is for work that repeats all
// the time, so that processes which began together do not stay in step.
func About(d time.Duration) time.Duration {
	return d/2 + rand.N(d+1)
}

// Sleep waits for d and reports whether it did; it returns false at once when ctx ends.
func Sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return ctx.Err() == nil
	}
}
