package stripe

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"paidonce/provider"
)

// A burst of charges whose answers were all lost is found again with little more than the pages
// that have them and one read each, though look-ups come a few at a time, as a reconciler's do, and
// their windows are not over, so that no part of the list is known to be settled. Those that were
// never made are proven to be missing by walks that they share.
func TestABurstIsFoundInFewCalls(t *testing.T) {
	t.Parallel()
	const (
		perSecond = 400
		burst     = 2000
		workers   = 16 // as a reconciler has
	)
	for name, c := range map[string]struct {
		made  int64 // of them; the rest was never sent
		lists int64 // at most
		reads int64
	}{
		"all made":  {burst, 400, burst},
		"none made": {0, burst / 2, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBusy(perSecond, c.made)
			b.setClock(b.begin + burst/perSecond + 20)
			b.delay = time.Millisecond
			p := b.connect(t)
			wantFound(t, p, provider.Lookup{Tags: provider.Tags{Operation: "op_none", Installation: "test"}, From: b.at(burst * 1000), To: b.at(burst * 1000)}, 0)
			b.lists.Store(0)
			var next, found atomic.Int64
			var group sync.WaitGroup
			for range workers {
				group.Go(func() {
					for n := next.Add(1) - 1; n < burst; n = next.Add(1) - 1 {
						hits, err := p.FindCharge(t.Context(), b.lookup(n))
						if err != nil || len(hits) > 1 || (len(hits) == 1) != (n < c.made) || len(hits) == 1 && hits[0].Tags != b.lookup(n).Tags {
							t.Errorf("op_%d: %v, %v", n, hits, err)
							return
						}
						found.Add(1)
					}
				})
			}
			group.Wait()
			t.Logf("%d look-ups: %d pages of lists, %d single reads, %d searches", found.Load(), b.lists.Load(), b.read.Load(), b.asked.Load())
			if found.Load() != burst || b.lists.Load() > c.lists || b.read.Load() > c.reads {
				t.Errorf("%d pages of lists and %d single reads for %d look-ups, want at most %d and %d",
					b.lists.Load(), b.read.Load(), found.Load(), c.lists, c.reads)
			}
		})
	}
}
