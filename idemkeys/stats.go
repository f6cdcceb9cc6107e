package idemkeys

import "sync/atomic"

// Stats counts what happened to leases since the engine was created, beyond work that just
// succeeded.
type Stats struct {
	// leases that requests and operators took over
	TakenOver int64
	LeasedDue int64 // leases that reconcilers took
	Lost      int64 // leases that were lost to somebody else before the result was written
	Released  int64 // runs that ended without an outcome, their lease given back
	Parked    int64 // operations that were left to an operator
	// results written after the caller was told that the outcome is unknown
	WroteLate int64
}

type stats struct{ takenOver, leasedDue, lost, released, parked, wroteLate atomic.Int64 }

// Stats returns the counts so far.
func (l *Leases) Stats() Stats {
	s := &l.stats
	return Stats{
		TakenOver: s.takenOver.Load(), LeasedDue: s.leasedDue.Load(), Lost: s.lost.Load(),
		Released: s.released.Load(), Parked: s.parked.Load(), WroteLate: s.wroteLate.Load(),
	}
}
