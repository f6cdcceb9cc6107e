package api

import (
	"sync"
	"testing"
	"time"
)

// One account never has all places, never are there more than that, and all are given back.
func TestPlaces(t *testing.T) {
	for most, each := range map[int]int{1: 1, 2: 1, 3: 2, 8: 5} {
		p := newListSlots(most)
		var taken []func()
		for range each {
			release, ok := p.take(t.Context(), "a")
			if !ok {
				t.Fatalf("of %d: no place", most)
			}
			taken = append(taken, release)
		}
		if most > 1 {
			release, ok := p.take(t.Context(), "b")
			if !ok {
				t.Errorf("of %d: an account has all", most)
			} else {
				release()
			}
		}
		for _, release := range taken {
			release()
		}
		if len(p.accounts) != 0 || len(p.all) != 0 {
			t.Errorf("of %d: %d accounts and %d places are kept", most, len(p.accounts), len(p.all))
		}
	}
	p := newListSlots(3)
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			if release, ok := p.take(t.Context(), []string{"a", "b", "c"}[i%3]); ok {
				if len(p.all) > 3 {
					t.Error("too many")
				}
				time.Sleep(time.Millisecond)
				release()
			}
		})
	}
	all.Wait()
	if len(p.accounts) != 0 || len(p.all) != 0 {
		t.Errorf("%d accounts and %d places are kept", len(p.accounts), len(p.all))
	}
	if release, ok := newListSlots(0).take(t.Context(), "a"); !ok {
		t.Error("without a bound there is no place")
	} else {
		release()
	}
}
