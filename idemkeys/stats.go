package idemkeys

import "sync/atomic"

// Stats counts what happened to leases since the engine was made, beyond work that just succeeded.
type Stats struct {
	TakenOver int64 // leases that requests and operators took of operations that were begun by others
	LeasedDue int64 // leases that reconcilers took
	Lost      int64 // leases that were lost to somebody else before the result was written
	Released  int64 // runs that ended without an outcome, their lease given back
	Parked    int64 // operations that were left to a person
	WroteLate int64 // results that were written after their caller had been told that the outcome is unknown
}

type stats struct{ takenOver, leasedDue, lost, released, parked, wroteLate atomic.Int64 }

// Stats returns the counts so far.
func (e *Engine) Stats() Stats {
	s := &e.stats
	return Stats{
		TakenOver: s.takenOver.Load(), LeasedDue: s.leasedDue.Load(), Lost: s.lost.Load(),
		Released: s.released.Load(), Parked: s.parked.Load(), WroteLate: s.wroteLate.Load(),
	}
}
