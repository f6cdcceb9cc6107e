package sim_test

import (
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

const (
	shortRuns = 30 // runs in make test: enough for most crash points, short enough for every commit
	traceTail = 60 // lines of a failed run's trace
)

// TestSimulation runs many seeds. docs/simulation.md says what is simulated and what is not;
// PAIDONCE_SIM_SEED runs one seed, and PAIDONCE_SIM_SEEDS so many.
func TestSimulation(t *testing.T) {
	t.Parallel()
	first, runs := uint64(1), shortRuns
	if v := os.Getenv("PAIDONCE_SIM_SEEDS"); v != "" {
		runs = must(strconv.Atoi(v))
	}
	if v := os.Getenv("PAIDONCE_SIM_SEED"); v != "" {
		first, runs = must(strconv.ParseUint(v, 10, 64)), 1
	}
	var counts tally
	var next, done atomic.Int64
	began := time.Now()
	t.Run("lanes", func(t *testing.T) {
		for lane := range min(runtime.GOMAXPROCS(0), 4) {
			t.Run(fmt.Sprint(lane+1), func(t *testing.T) {
				t.Parallel()
				l := newLane(t)
				for i := next.Add(1); i <= int64(runs) && !t.Failed(); i = next.Add(1) {
					r := simulate(t, l, first+uint64(i)-1, mutation{}, &counts)
					r.report(t)
					counts.addN(r.step, "steps")
					if n := done.Add(1); n%100 == 0 {
						t.Logf("%d of %d runs, %v", n, runs, time.Since(began).Round(time.Second))
					}
				}
			})
		}
	})
	for _, name := range slices.Sorted(maps.Keys(counts.byName)) {
		t.Logf("%8d  %s", counts.byName[name], name)
	}
	t.Logf("%d runs in %v", done.Load(), time.Since(began).Round(100*time.Millisecond))
	const all = 500 // runs in which everything happens
	if runs < all {
		return
	}
	for _, place := range slices.Concat(stopStatements, stopTransactions, moves, []string{"FindCharge"}) {
		for _, when := range []string{"inside", "after"} {
			if counts.byName["crash "+when+" "+place] == 0 {
				t.Errorf("no process ever died %s %s", when, place)
			}
		}
	}
	for name := range moveFaults {
		if counts.byName["fault "+name] == 0 {
			t.Errorf("the fault %q never struck", name)
		}
	}
	for name := range lookupFaults {
		if counts.byName["fault "+name] == 0 {
			t.Errorf("the fault %q never struck", name)
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// report fails the test when the run went wrong, and says how to run it again.
func (r *run) report(t *testing.T) {
	t.Helper()
	if len(r.failures) == 0 && os.Getenv("PAIDONCE_SIM_TRACE") == "" {
		return
	}
	tail := r.trace
	if os.Getenv("PAIDONCE_SIM_TRACE") == "" {
		tail = r.trace[max(0, len(r.trace)-traceTail):]
	}
	t.Logf(
		"seed %d, the last %d lines of %d:\n%s", r.seed, len(tail), len(r.trace),
		strings.Join(tail, "\n"),
	)
	for _, f := range r.failures {
		t.Errorf("seed %d: %s", r.seed, f)
	}
	if len(r.failures) > 0 {
		t.Errorf("to run it again: make sim SEED=%d", r.seed)
	}
}

// A seed is worth something only if it gives the same run each time.
func TestSimulationRepeats(t *testing.T) {
	t.Parallel()
	l := newLane(t)
	for _, seed := range []uint64{1, 2, 3, holdsEvery, 2 * holdsEvery} {
		var counts tally
		a, b := simulate(t, l, seed, mutation{}, &counts), simulate(t, l, seed, mutation{}, &counts)
		if a.tracing == b.tracing {
			continue
		}
		for i := range min(len(a.trace), len(b.trace)) {
			if a.trace[i] != b.trace[i] {
				t.Errorf(
					"seed %d goes two ways at line %d:\n%s\n%s", seed, i, a.trace[i], b.trace[i],
				)
				break
			}
		}
	}
}
