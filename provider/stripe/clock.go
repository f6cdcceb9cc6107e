package stripe

import (
	"net/http"
	"sync"
	"time"
)

// clock is the provider's time as its answers tell it: each has a Date. Between answers it is
// carried on by this machine's monotonic clock, which neither an administrator nor NTP sets.
type clock struct {
	mu   sync.Mutex
	date time.Time // the newest Date
	at   time.Time // monotonic: when it was read
	sets int       // how often it was set to another time than it had come to

	stamps time.Duration // how far "created" is ahead of Date
}

// made compares the two times of an answer about what it has just made. At Stripe they are the
// same; where they aren't, what is listed lies by as much elsewhere than Date says. Only the last
// answer counts: one that is a replay without saying so would be believed forever.
func (c *clock) compare(h http.Header, created time.Time) {
	date, err := http.ParseTime(h.Get("Date"))
	if err != nil || created.IsZero() || h.Get("Idempotent-Replayed") != "" {
		return
	}
	off := created.Sub(date)
	if off.Abs() < dateSlack {
		off = 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if (off - c.stamps).Abs() >= dateSlack {
		c.stamps = off
		c.sets++ // what was taken for settled may have been too young
	}
}

// off is how far "created" is ahead of Date.
func (c *clock) skew() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stamps
}

// latest returns how far the list has come, at least: nothing that is made from now on lies before
// it.
func (c *clock) latest() (time.Time, bool) {
	now, known := c.now()
	return now.Add(min(c.skew(), 0)), known
}

// read takes the time from an answer. Of answers that arrive out of order the newest Date counts,
// but a clock that was set back is believed: its Date lies well before what the last one had come
// to.
func (c *clock) read(h http.Header) {
	date, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return
	}
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	carried := c.date.Add(now.Sub(c.at))
	switch {
	case c.date.IsZero():
	case carried.Sub(date).Abs() >= dateSlack:
		c.sets++
	case date.Before(carried):
		return
	}
	c.date, c.at = date, now
}

// dateSlack is by how much an answer's Date may lie behind the clock without setting it back: Date
// is cut down to a second, and an answer may have been on its way for as long as a call may take.
const dateSlack = 25 * time.Second

// turned returns how often the clock was set: whatever was concluded from its time before that is
// not to be relied on.
func (c *clock) resets() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sets
}

// now returns the provider's time, if it has told one.
func (c *clock) now() (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.date.IsZero() {
		return time.Time{}, false
	}
	return c.date.Add(time.Since(c.at)), true
}

// Now returns the provider's time: that of its last answer, carried on since.
func (p *Provider) Now() (time.Time, bool) { return p.clock.now() }
