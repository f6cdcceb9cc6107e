package model

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// explored is the graph of all reachable states, or the way to the first wrong one.
type explored struct {
	states []state
	from   []int32  // by which state it was first reached
	by     []string // and by which step
	who    []int8   // and whose
	fair   [][]int32
	wrong  string
	last   int32
}

// statesMax is where an exploration that should end does not.
const statesMax = 20_000_000

// explore goes through all states, the nearest first, so that the first wrong one has the shortest way.
func explore(w without, edges bool) *explored {
	e := &explored{}
	known := map[state]int32{}
	visit := func(s state, from int32, by string, who int) int32 {
		if at, ok := known[s]; ok {
			return at
		}
		at := int32(len(e.states))
		known[s] = at
		e.states, e.from, e.by, e.who = append(e.states, s), append(e.from, from), append(e.by, by), append(e.who, int8(who))
		if edges {
			e.fair = append(e.fair, nil)
		}
		return at
	}
	visit(state{}, -1, "", 0)
	var steps []step
	for at := int32(0); int(at) < len(e.states) && len(e.states) < statesMax; at++ {
		steps = e.states[at].next(w, steps[:0])
		for _, step := range steps {
			wrong := step.wrong
			if wrong == "" {
				wrong = step.to.wrong()
			}
			step.to.plain(w)
			to := visit(step.to, at, step.name, step.who)
			if edges && !step.fault {
				e.fair[at] = append(e.fair[at], to)
			}
			if wrong != "" {
				e.wrong, e.states = wrong, append(e.states, step.to)
				e.from, e.by, e.who = append(e.from, at), append(e.by, step.name), append(e.who, int8(step.who))
				e.last = int32(len(e.states) - 1)
				return e
			}
		}
	}
	return e
}

// stuck looks for a state from which no way of steps without faults leads to where nothing is unfinished.
func (e *explored) stuck() bool {
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

// way tells how the wrong state is reached.
func (e *explored) way() string {
	var lines []string
	for at := e.last; at > 0; at = e.from[at] {
		lines = append(lines, fmt.Sprintf("  %d %-50s %v", e.who[at], e.by[at], &e.states[at]))
	}
	slices.Reverse(lines)
	return e.wrong + ":\n" + strings.Join(lines, "\n")
}

// TestModel: with all guards in place no promise is broken in any state, and none is a dead end.
func TestModel(t *testing.T) {
	began := time.Now()
	e := explore(without{}, true)
	if e.wrong != "" || e.stuck() {
		t.Fatal(e.way())
	}
	if len(e.states) >= statesMax {
		t.Fatal("the states do not end")
	}
	t.Logf("%d states, %v", len(e.states), time.Since(began).Round(time.Millisecond))
}
