package model

import (
	"fmt"
	"testing"
)

// order is a reference and the two keys that race for it: two of the worlds of one key, whose
// claims look at each other's charges, and what became of the money.
type order struct {
	graph *graph
	keys  [2]int32 // each a state of the graph
	back  [2][generations]uint8
	// somebody is between the look for a live charge and the claim, which the index judges
	looked [2]bool
}

// How far a charge's money is on its way back: a whole refund, or the release of what was only
// authorised. Whether the client asks for it or it happens at the provider is the same.
const (
	kept     uint8 = iota
	asked          // the provider does it, or refuses to
	returned       // the provider has done it, and we do not know
	known          // we do
)

// withoutOfReferences names the guards of references that are taken out.
type withoutOfReferences struct {
	look, index bool
	// unknown outcomes, refunds without an outcome and keys that are forgotten free a reference
	unknownKeeps, askedKeeps, forgottenKeeps bool
	failedFrees, returnedFrees               bool // a reference stays taken
}

const claimsOfOrder = 3 // of both keys together

// graph has all states of one key and all steps between them, and the guards that are taken out.
type graph struct {
	out    withoutOfReferences
	states []state
	steps  [][]step[int32]
}

func newGraph(w without) graph {
	e := explore(state{}, w, false)
	g := graph{states: e.states, steps: make([][]step[int32], len(e.states))}
	var steps []step[state]
	for i, s := range e.states {
		steps = s.next(w, steps[:0])
		for _, x := range steps {
			g.steps[i] = append(g.steps[i], step[int32]{
				name: x.name, who: x.who, fault: x.fault, tick: x.tick, wrong: x.wrong,
				to: e.known[x.to.plain(w)],
			})
		}
	}
	return g
}

func (o *order) key(k int) *state { return &o.graph.states[o.keys[k]] }

// claims reports whether a step is a claim of key k.
func (o *order) claims(k int, to int32) bool {
	return o.graph.states[to].claims > o.key(k).claims
}

// next gives every way on from o.
func (o order) next(_ without, out []step[order]) []step[order] {
	for k := range o.keys {
		claimable := false
		for _, x := range o.graph.steps[o.keys[k]] {
			to := o
			to.keys[k] = x.to
			switch {
			case x.tick:
				if k == 0 {
					out = o.ticks(x.to, out)
				}
				continue
			case o.claims(k, x.to):
				claimable = true
				if !o.mayClaim(k) {
					continue
				}
				to.looked[k] = false
			}
			out = append(out, step[order]{
				name: x.name, who: 10*k + x.who, fault: x.fault, wrong: x.wrong, to: to,
			})
		}
		if claimable && !o.looked[k] && !o.graph.out.look && !o.taken() {
			to := o
			to.looked[k] = true
			out = append(out, step[order]{name: "finds the reference free", who: 10 * k, to: to})
		}
		out = o.refunds(k, out)
	}
	return out
}

// mayClaim: the look found the reference free, and so does the index now.
func (o *order) mayClaim(k int) bool {
	return o.key(0).claims+o.key(1).claims < claimsOfOrder && (o.looked[k] || o.graph.out.look) &&
		(!o.taken() || o.graph.out.index)
}

// ticks lets time pass for both keys.
func (o order) ticks(first int32, out []step[order]) []step[order] {
	for _, x := range o.graph.steps[o.keys[1]] {
		if x.tick {
			o.keys = [2]int32{first, x.to}
			out = append(out, step[order]{name: "a tick", to: o})
		}
	}
	return out
}

// refunds gives what can become of the money of key k's charges.
func (o order) refunds(k int, out []step[order]) []step[order] {
	for op := range o.back[k] {
		add := func(name string, back uint8) {
			to := o
			to.back[k][op] = back
			out = append(out, step[order]{name: name, who: 10*k + op, to: to})
		}
		switch o.back[k][op] {
		case kept:
			if o.key(k).operations[op].charge == charged {
				add("a refund is asked for", asked)
			}
		case asked:
			add("the provider refuses it", kept)
			add("the provider gives the money back", returned)
		case returned:
			add("the refund is learnt", known)
		}
	}
	return out
}

// live is how many live charges have the reference, by our books.
func (o *order) live() (n int) {
	for k := range o.keys {
		for op, x := range o.key(k).operations {
			if x.charge == pending || x.charge == charged && o.back[k][op] != known {
				n++
			}
		}
	}
	return n
}

// taken is what look and index say: a live charge has the reference, or what passes for one without
// the guards.
func (o *order) taken() bool {
	w, n := o.graph.out, o.live()
	for k := range o.keys {
		s := o.key(k)
		for op, x := range s.operations {
			back := o.back[k][op]
			live := x.charge == pending || x.charge == charged && back != known
			switch {
			case live && (w.unknownKeeps && x.charge == pending && s.holder == nobody ||
				w.askedKeeps && back == asked || w.forgottenKeeps && s.status == absent):
				n--
			case w.failedFrees && x.charge == never, w.returnedFrees && back == known:
				n++
			}
		}
	}
	return n > 0
}

// paid is how many charges took money that was not given back, at the provider.
func (o *order) paid() (n int) {
	for k := range o.keys {
		for op, x := range o.key(k).operations {
			if x.made > 0 && o.back[k][op] < returned {
				n += int(x.made)
			}
		}
	}
	return n
}

// plain brings states together that differ only in which key is which, or in a look that is worth
// nothing while the index would refuse the claim: who claims later may as well have looked later.
func (o order) plain(without) order {
	if o.taken() && !o.graph.out.index {
		o.looked = [2]bool{}
	}
	if o.keys[0] < o.keys[1] {
		o.keys[0], o.keys[1] = o.keys[1], o.keys[0]
		o.back[0], o.back[1] = o.back[1], o.back[0]
		o.looked[0], o.looked[1] = o.looked[1], o.looked[0]
	}
	return o
}

// wrong says what must never be.
func (o order) wrong() string {
	switch paid := o.paid(); {
	case paid > 1:
		return "one order is paid twice"
	case o.live() > 1:
		return "one order has two live charges"
	case o.done() && paid == 0 && o.taken():
		return "the order's money is back or never moved, and its reference is taken"
	case o.done() && paid > 0 && !o.taken():
		return "the order is paid, and its reference is free"
	}
	return ""
}

// done: nothing is unfinished, at either key.
func (o order) done() bool {
	for k := range o.keys {
		for _, back := range o.back[k] {
			if back == asked || back == returned {
				return false
			}
		}
		if !o.key(k).done() {
			return false
		}
	}
	return true
}

func (o order) String() string {
	return fmt.Sprintf("%v [%v]; %v [%v]", o.key(0), o.back[0], o.key(1), o.back[1])
}

// TestModelOfReferences: two keys race for one order. Each has one driver at a time: what several
// do to one key is the other tests' part.
func TestModelOfReferences(t *testing.T) {
	w := without{idle: drivers - 1}
	g := newGraph(w)
	for _, c := range []struct {
		name   string
		out    withoutOfReferences
		broken bool
	}{
		{"all guards", withoutOfReferences{}, false},
		// The look is for the others of its batch: the index decides.
		{"look", withoutOfReferences{look: true}, false},
		{"index", withoutOfReferences{index: true}, true},
		{"look, index", withoutOfReferences{look: true, index: true}, true},
		{"unknown outcomes keep it", withoutOfReferences{unknownKeeps: true}, true},
		{"refunds without an outcome keep it", withoutOfReferences{askedKeeps: true}, true},
		{"forgotten keys keep it", withoutOfReferences{forgottenKeeps: true}, true},
		{"charges that were never made free it", withoutOfReferences{failedFrees: true}, true},
		{"money that is back frees it", withoutOfReferences{returnedFrees: true}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := g
			g.out = c.out
			explore(order{graph: &g}, w, true).tell(t, c.broken)
		})
	}
}
