// Package model is a small model of the life of one idempotency key, explored exhaustively: claim,
// lease with token, stale take-over, the provider's memory of derived keys and its end, lost and
// late requests, stored 500s, look-ups, proof of absence, release, settle, retention, sweep,
// crashes and owners that were stopped for any time; and of two keys that race for one reference.
//
// It is written from docs/architecture.md, not from the code, and knows nothing of it: what it
// shows is that the rules are enough, and which of them are needed. That the code keeps the rules
// is the simulation's part (sim). docs/simulation.md tells the bounds.
package model

import "fmt"

// The model's bounds. Time is in ticks. An owner may send only in the tick in which it got its
// lease (the run limit), and from the next tick on its lease is stale. So the longest that a
// request can take to arrive is networkMax ticks after that.
const (
	drivers     = 3 // each is any client, reconciler or zombie, one after the other
	generations = 2 // claims of the key
	window      = 3 // ticks after the first attempt in which the derived key may be sent
	memory      = 4 // ticks that the provider remembers a key
	networkMax  = 1 // a request arrives before the second tick after it was sent, or never
	missesMin   = 2
	span        = 2 // ticks between the first miss and the conclusion
	retention   = 1 // ticks that a finished key is kept
	errorsMax   = 2 // after so many 5xx nothing is sent any more
)

const (
	absent uint8 = iota
	inProgress
	completed
	failed
)

const (
	unmade  uint8 = iota // not claimed
	pending              // claimed
	charged              // settled as made
	never                // settled as never made
)

const (
	forgotten uint8 = iota // the provider does not know the derived key
	succeeded              // it replays the charge
	broken                 // it replays a 500
)

const (
	idle      uint8 = iota
	sawFree         // has read the key as free or stale: will take it over
	sawOld          // has read the key as one that may run anew: will forget it
	sends           // will send the request
	looks           // will look up, then send
	looksOnly       // will look up only
	settles         // will commit what it knows
	releases        // will give the lease back
)

const (
	nobody uint8 = 0
	gone   uint8 = 9 // who holds the lease has died
)

// state is one state of the world. It is a value: equal states are one state.
type state struct {
	status       uint8
	op           uint8 // the generation that the key stands for
	holder       uint8 // nobody, driver + 1, or gone
	old          bool  // a tick has passed since the lease was taken: it is stale
	reached      bool  // first_attempt_at is set
	since        uint8 // ticks since first_attempt_at
	serverErrors uint8
	misses       uint8
	missed       uint8 // ticks since the first miss, and one; 0: none
	finished     uint8 // ticks since it was finished
	claims       uint8 // generations claimed so far
	operations   [generations]operation
	drivers      [drivers]driver
	putBack      bool // the database was put back to an earlier moment, which happens once
	// a generation, and one, that was rebuilt and waits for whoever names its key; 0: none
	rebuilt uint8
}

type operation struct {
	charge  uint8 // our books
	made    uint8 // successful charges at the provider
	key     uint8 // what the provider knows of the derived key
	age     uint8 // ticks since the provider first saw it
	late    uint8 // a request on its way: ticks since it was sent, and one; 0: none
	settled uint8 // ticks since it was settled as made: when its key's answer may be forgotten
}

// driver is somebody who works on the key.
type driver struct {
	does  uint8
	op    uint8
	holds bool // its token is the row's
	// a tick has passed since it read, or got its lease: it takes over and sends nothing more
	old     bool
	same    bool // the row has its token and attempts of when it was read
	f       facts
	result  uint8 // of settles: charged or never
	nothing bool  // of releases: known not to have been executed
	server  bool  // of releases: a 5xx
	missed  bool  // of releases: a complete look-up found nothing
}

// facts is what a driver was told when it read or leased the row.
type facts struct {
	reached, open, over  bool
	serverErrors, misses uint8
}

// without names the guards that are taken out.
type without struct {
	settleToken, settleStatus, settleCharge bool
	releaseToken                            bool
	swap, stale                             bool // of the take-over
	takeOver                                bool // stale leases are never taken over
	window, lookFirst                       bool
	// who was stopped between reading and taking over gives up
	askLimit           bool
	runLimit           bool
	errorsProveNothing bool
	// a 429 after an earlier attempt that may have had its effect
	reachedStays                     bool
	misses, span                     bool
	sweepFinished                    bool
	forgetOperation, forgetCondition bool
	rebuild, reachedAfter, overtaken bool // of a database that was put back

	restores bool // the database may be put back, which makes too many states for the others
	idle     int  // so many drivers are never there: with all of them there are too many states
}

func (s *state) facts(w without) facts {
	return facts{
		reached: s.reached, open: s.since < window || w.window, over: s.missed > span || w.span,
		serverErrors: s.serverErrors, misses: s.misses,
	}
}

// lease gives the lease to driver i, which knows f. Whatever others have read or hold is out of
// date.
func (s *state) lease(i int, f facts) {
	s.holder, s.old = uint8(i+1), false
	if !s.reached {
		s.reached, s.since = true, 0
	}
	for j := range s.drivers {
		s.drivers[j].same = false
		if s.drivers[j].op == s.op {
			s.drivers[j].holds = false
		}
	}
	d := driver{op: s.op, holds: true, f: f}
	switch {
	case !f.reached:
		d.does = sends
	case f.open && f.serverErrors < errorsMax && f.misses == 0:
		d.does = looks
	default:
		d.does = looksOnly
	}
	s.drivers[i] = d
}

// plain brings states together that differ in nothing that matters any more: what a driver knows
// and will not use, what the provider remembers of an operation that nobody can send again, and
// which driver is which.
func (s state) plain(w without) state {
	var sendable [generations]bool
	for i := range s.drivers {
		s.drivers[i].plain(w)
		if d := s.drivers[i]; d.does == sawFree || d.does == sends || d.does == looks ||
			d.does == looksOnly {
			sendable[d.op] = true
		}
	}
	for i := range s.operations {
		if o := &s.operations[i]; !sendable[i] && o.late == 0 && o.charge != pending {
			o.key, o.age = forgotten, 0
		}
	}
	for i := range s.drivers {
		for j := i; j > 0 && s.drivers[j].number() < s.drivers[j-1].number(); j-- {
			s.drivers[j], s.drivers[j-1] = s.drivers[j-1], s.drivers[j]
			switch s.holder {
			case uint8(j):
				s.holder++
			case uint8(j + 1):
				s.holder--
			}
		}
	}
	return s
}

func (d *driver) plain(w without) {
	// What it writes is fenced off.
	settlesNothing, releasesNothing := !d.holds && !w.settleToken, !d.holds && !w.releaseToken
	powerless := settlesNothing && releasesNothing
	switch d.does {
	case sawFree:
		if !d.same && !w.swap || d.old && !w.askLimit {
			*d = driver{}
		}
	case sends:
		d.f = facts{reached: d.f.reached}
		if powerless && d.old && !w.runLimit {
			*d = driver{}
		}
	case looks:
		d.f = facts{reached: true}
		if powerless && d.old {
			*d = driver{}
		}
	case looksOnly:
		d.f = facts{reached: true, misses: d.f.misses, over: d.f.over}
		if powerless {
			*d = driver{}
		}
	case settles, releases:
		d.f, d.old = facts{}, false
		if d.does == settles && settlesNothing || d.does == releases && releasesNothing {
			*d = driver{}
		}
	}
}

// number puts drivers in an order, no matter which.
func (d driver) number() uint32 {
	n := uint32(d.does)<<8 | uint32(d.op)<<7 | uint32(d.result)<<12 | uint32(d.f.serverErrors)<<16 | uint32(d.f.misses)<<18
	for i, b := range []bool{d.holds, d.old, d.same, d.f.reached, d.f.open, d.f.over, d.nothing} {
		if b {
			n |= 1 << i
		}
	}
	if d.server {
		n |= 1 << 20
	}
	if d.missed {
		n |= 1 << 21
	}
	return n
}

// remove takes the key's row away.
func (s *state) remove() {
	s.status, s.op, s.holder, s.old, s.reached, s.since = absent, 0, nobody, false, false, 0
	s.serverErrors, s.misses, s.missed, s.finished = 0, 0, 0, 0
	for j := range s.drivers {
		s.drivers[j].same, s.drivers[j].holds = false, false
	}
}

// execute is what the provider does with a request for op. ok: the answer is a charge; else a 500.
func (s *state) execute(op uint8) (ok bool) {
	o := &s.operations[op]
	if o.key == forgotten {
		o.key, o.age = succeeded, 0
		o.made++
	}
	return o.key == succeeded
}

// wrong says what must never be.
func (s state) wrong() string {
	for i, o := range s.operations {
		switch {
		case o.made > 1:
			return fmt.Sprintf("the provider made two charges of operation %d", i)
		case o.charge == never && o.made > 0:
			return fmt.Sprintf("operation %d was never made, we say, and the provider made it", i)
		case o.charge == pending && (s.status == absent || s.op != uint8(i)):
			return fmt.Sprintf("operation %d is unfinished, and its key is gone", i)
		}
	}
	alive := 0
	for _, o := range s.operations {
		if o.made > 0 && o.settled < retention {
			alive++
		}
	}
	if alive > 1 {
		return "one key, and two charges within its time"
	}
	return ""
}

// done: nothing is unfinished.
func (s state) done() bool { return s.status != inProgress }

func (d driver) String() string {
	names := []string{
		"idle", "saw it free", "saw it finished", "will send", "will look, then send",
		"will look only", "will settle", "will release",
	}
	return names[d.does]
}

func (s state) String() string {
	out := fmt.Sprintf("key %s of operation %d, lease of %d (stale %t), reached %t, %d ticks ago, %d errors, %d misses",
		[]string{
			"absent", "in progress", "completed", "failed",
		}[s.status], s.op, s.holder, s.old, s.reached, s.since, s.serverErrors, s.misses)
	for i, d := range s.drivers {
		out += fmt.Sprintf("; driver %d %v (token %t)", i, d, d.holds)
	}
	for i, o := range s.operations {
		if o.charge != unmade {
			out += fmt.Sprintf(
				"; operation %d: %s, made %d times, key %s", i,
				[]string{"", "pending", "charged", "never made"}[o.charge], o.made,
				[]string{"unknown", "replays", "broken"}[o.key],
			)
		}
	}
	return out
}
