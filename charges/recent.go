package charges

import (
	"sync"
	"time"
)

const (
	// recentMax is of how many transactions a claim is remembered. They reach a standby in order, so the
	// last few tell of all before; several are under way at a time, and may be answered in another order.
	recentMax = 64
	// recentFor is how long: a standby that is further behind is not one that somebody promotes.
	recentFor = 10 * time.Minute
)

// recentClaims remembers what this process has claimed last, of that of which a row stays for ever.
// Safe for concurrent use.
type recentClaims struct {
	mu   sync.Mutex
	ids  [recentMax]string
	at   [recentMax]time.Time
	next int
}

func (c *recentClaims) add(operationID string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ids[c.next], c.at[c.next] = operationID, time.Now() //tidy:clock how long ago, on this machine alone
	c.next = (c.next + 1) % recentMax
}

// list returns what was claimed within recentFor, and within keptFor: that long a key's row is kept at
// least, and of a capture that came to nothing there is no other trace.
func (c *recentClaims) list(keptFor time.Duration) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	ids := make([]string, 0, recentMax)
	for i, id := range c.ids {
		if id != "" && time.Since(c.at[i]) < min(recentFor, keptFor) { //tidy:clock as above
			ids = append(ids, id)
		}
	}
	return ids
}

func (c *recentClaims) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ids = [recentMax]string{}
}
