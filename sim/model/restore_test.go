package model

import "testing"

// restored gives every state in which the database may be after it was put back: to the moment
// before or after the claim of any generation. All commits since are forgotten. No driver lives on,
// and what was on its way to the provider has arrived or never will; then what was forgotten is
// rebuilt from its books.
func (s state) restored(w without) (all []state) {
	s.putBack, s.drivers = true, [drivers]driver{}
	ends := []state{s}
	for op := range s.operations {
		for _, to := range ends {
			if to.operations[op].late > 0 {
				to.operations[op].late = 0
				to.execute(uint8(op))
				ends = append(ends, to)
			}
		}
		for i := range ends {
			ends[i].operations[op].late = 0
		}
	}
	for _, end := range ends {
		for g := range s.claims {
			for _, claimed := range []bool{false, true} {
				all = append(all, end.back(g, claimed, w))
			}
		}
	}
	return all
}

// back is the database as it was before or after the claim of generation g.
func (s state) back(g uint8, claimed bool, w without) state {
	s.remove()
	for op := int(g); op < int(s.claims); op++ {
		s.operations[op].charge = unmade
	}
	if claimed {
		s.status, s.op, s.operations[g].charge = inProgress, g, pending
		// That it may have been sent since is assumed, and for how long is not known.
		s.reached, s.since = !w.reachedAfter, window
		if w.reachedAfter {
			s.since = 0
		}
	}
	for op := range s.operations {
		o := &s.operations[op]
		if w.rebuild || o.made == 0 || o.charge != unmade {
			continue
		}
		o.charge, s.rebuilt = charged, uint8(op+1)
		// the key came to stand for another operation: the older one is only looked up
		if claimed && !w.overtaken {
			s.serverErrors = errorsMax
		}
	}
	return s
}

// TestModelOfRestores: the database may forget its last commits at any moment.
func TestModelOfRestores(t *testing.T) {
	for _, c := range []struct {
		name   string
		out    without
		broken bool
	}{
		{"all guards", without{}, false},
		{"what was forgotten is rebuilt", without{rebuild: true}, true},
		{"what is unfinished is taken for sent", without{reachedAfter: true}, true},
		// Past its window, which is how it is taken, it is only looked up anyway.
		{"what was overtaken is not sent", without{overtaken: true}, false},
		{
			"what is unfinished is taken for sent, what was overtaken is not",
			without{reachedAfter: true, overtaken: true}, true,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.out.idle, c.out.restores = 1, true
			explore(state{}, c.out, true).tell(t, c.broken)
		})
	}
}
