package charges

import (
	"sync"
	"time"
)

const (
	// recentMax is how many claims are remembered, one for each transaction. Transactions reach a
	// standby in order, so the last few stand for all before them; there are several because they
	// may be answered in another order.
	recentMax = 64
	// recentFor is how long claims are remembered: nobody promotes a standby that is further
	// behind.
	recentFor = 10 * time.Minute
)

// recentClaims remembers the last operations that this process has claimed and that leave a row
// forever. Safe for concurrent use.
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

// list returns what was claimed within recentFor and within keptFor, the time for which a key's row
// is kept: a capture that came to nothing leaves no other trace.
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
