package idemkeys

import (
	"math"
	"sync"
)

const (
	// inFlightMax is how many requests may be under way at once: at some 60 kB each these are 400
	// MB, and a provider that takes two seconds gets three thousand a second. Further requests are
	// told to come again; nothing was begun for them.
	inFlightMax = 6_000
	// unlimited is for work that was already begun, or that its driver limits.
	unlimited = math.MaxInt
)

// admission counts the work under way, so that a process ends when all of it has.
type admission struct {
	mu       sync.Mutex // guards draining against group.Add after drain
	draining bool
	inFlight int
	group    sync.WaitGroup
}

// enter counts work that begins. It reports false when the process is ending, or when most are
// already under way. After true the caller calls leave.
func (a *admission) enter(most int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.draining || a.inFlight >= most {
		return false
	}
	a.inFlight++
	a.group.Add(1)
	return true
}

// background runs work that outlives its caller's. The caller is counted, so drain still waits.
func (a *admission) background(work func()) { a.group.Go(work) }

func (a *admission) leave() {
	a.mu.Lock()
	a.inFlight--
	a.mu.Unlock()
	a.group.Done()
}

// drain lets no more work begin, and returns when the running work has ended.
func (a *admission) drain() {
	a.mu.Lock()
	a.draining = true
	a.mu.Unlock()
	a.group.Wait()
}
