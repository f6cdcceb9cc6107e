package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// How much the heap may grow between two collections, in percent of what lives, stacks included. A
// quiet server has ten megabytes that live; at Go's default of 100 it collects every ten, and that
// was a sixth of the CPU time of a charge. With much alive, as with thousands of charges in flight,
// memory matters more: at 100 a third of it would be what is dead.
const (
	fewCollections  = 400
	allCollections  = 100
	manyCollections = 30
	// smallHeap is up to how many live bytes there are few collections: with them, memory grows to
	// 160 MiB, which is less than what 5,000 charges in flight take.
	smallHeap = 32 << 20
	// largeHeap is from how many live bytes on there are many: some 1,500 charges in flight have
	// them.
	largeHeap = 64 << 20
)

// collections is the percentage when so many bytes live.
func collections(live uint64) int {
	switch {
	case live <= smallHeap:
		return fewCollections
	case live <= largeHeap:
		return allCollections
	}
	return manyCollections
}

// paceCollector keeps collections few while little lives. GOGC in the environment overrides it, and
// GOMEMLIMIT holds in any case.
func paceCollector() {
	if os.Getenv("GOGC") != "" {
		return
	}
	now := fewCollections
	debug.SetGCPercent(now)
	live := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"},
	}
	afterEachCollection(func() {
		metrics.Read(live)
		percent := collections(live[0].Value.Uint64() + live[1].Value.Uint64())
		if percent != now { // setting it stops everything for a moment
			now = percent
			debug.SetGCPercent(now)
		}
	})
}

// afterEachCollection calls f, which must be short, after each collection: an object that nobody
// refers to is finalized by each, and replaced.
func afterEachCollection(f func()) {
	type sentinel struct{ _ *byte }
	var arm func()
	arm = func() {
		runtime.SetFinalizer(&sentinel{}, func(*sentinel) {
			f()
			arm()
		})
	}
	arm()
}
