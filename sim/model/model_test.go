package model

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// world is something that takes steps: a key, or two keys of one order.
type world[S any] interface {
	comparable
	next(w without, out []step[S]) []step[S]
	wrong() string
	plain(w without) S
	done() bool
	String() string
}

// explored is the graph of all reachable states, or the way to the first wrong one.
type explored[S world[S]] struct {
	known  map[S]int32
	states []S
	from   []int32  // by which state it was first reached
	by     []string // and by which step
	who    []int8   // and whose
	fair   [][]int32
	wrong  string
	last   int32
}

// statesMax is where an exploration that should end does not.
const statesMax = 20_000_000

// explore goes through all states, the nearest first, so that the first wrong one has the shortest
// way.
func explore[S world[S]](start S, w without, edges bool) *explored[S] {
	e := &explored[S]{known: map[S]int32{}}
	add := func(s S, from int32, by string, who int) int32 {
		e.states, e.from = append(e.states, s), append(e.from, from)
		e.by, e.who = append(e.by, by), append(e.who, int8(who))
		return int32(len(e.states) - 1)
	}
	visit := func(s S, from int32, by string, who int) int32 {
		if at, ok := e.known[s]; ok {
			return at
		}
		at := add(s, from, by, who)
		e.known[s] = at
		if edges {
			e.fair = append(e.fair, nil)
		}
		return at
	}
	visit(start, -1, "", 0)
	var steps []step[S]
	for at := int32(0); int(at) < len(e.states) && len(e.states) < statesMax; at++ {
		steps = e.states[at].next(w, steps[:0])
		for _, step := range steps {
			wrong := step.wrong
			if wrong == "" {
				wrong = step.to.wrong()
			}
			to := visit(step.to.plain(w), at, step.name, step.who)
			if edges && !step.fault {
				e.fair[at] = append(e.fair[at], to)
			}
			if wrong != "" {
				e.wrong, e.last = wrong, add(step.to, at, step.name, step.who)
				return e
			}
		}
	}
	return e
}

// stuck looks for a state from which no way of steps without faults leads to where nothing is
// unfinished.
func (e *explored[S]) stuck() bool {
	back := make([][]int32, len(e.states))
	for from, all := range e.fair {
		for _, to := range all {
			back[to] = append(back[to], int32(from))
		}
	}
	ends := make([]bool, len(e.states))
	var queue []int32
	for at := range e.states {
		if e.states[at].done() {
			ends[at] = true
			queue = append(queue, int32(at))
		}
	}
	for len(queue) > 0 {
		at := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		for _, from := range back[at] {
			if !ends[from] {
				ends[from] = true
				queue = append(queue, from)
			}
		}
	}
	if at := slices.Index(ends, false); at >= 0 {
		e.wrong, e.last = "from here on nothing ever finishes it", int32(at)
		return true
	}
	return false
}

// way says how the wrong state is reached.
func (e *explored[S]) way() string {
	var lines []string
	for at := e.last; at > 0; at = e.from[at] {
		lines = append(lines, fmt.Sprintf("  %d %-50s %v", e.who[at], e.by[at], e.states[at]))
	}
	slices.Reverse(lines)
	return e.wrong + ":\n" + strings.Join(lines, "\n")
}

// tell logs what an exploration found, and compares it with what it should find.
func (e *explored[S]) tell(t *testing.T, want bool) {
	t.Helper()
	broken := e.wrong != "" || e.stuck()
	if broken {
		t.Logf("%d states, then %s", len(e.states), e.way())
	} else {
		t.Logf("%d states, no promise broken", len(e.states))
	}
	if broken != want {
		t.Errorf("broken: %t, want %t", broken, want)
	}
}

// TestModel: with all guards in place no promise is broken in any state, and none is a dead end.
func TestModel(t *testing.T) {
	began := time.Now()
	e := explore(state{}, without{}, true)
	if e.wrong != "" || e.stuck() {
		t.Fatal(e.way())
	}
	if len(e.states) >= statesMax {
		t.Fatal("the states do not end")
	}
	t.Logf("%d states, %v", len(e.states), time.Since(began).Round(time.Millisecond))
}
