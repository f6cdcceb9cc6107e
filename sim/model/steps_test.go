package model

import "fmt"

// step is a way on from a state.
type step[S any] struct {
	name  string
	who   int    // driver or operation
	fault bool   // something goes wrong: no progress may depend on it
	tick  bool   // time passes, for everybody
	wrong string // the step itself breaks a promise
	to    S
}

// next gives every way on from s.
func (s state) next(w without, out []step[state]) []step[state] {
	add := func(who int, name string, fault bool, to state) {
		out = append(out, step[state]{name: name, who: who, fault: fault, to: to})
	}
	for i := range s.drivers {
		if i < w.idle && s.drivers[i].does == idle {
			continue // the idle come first
		}
		s.drive(i, w, &out)
		if s.drivers[i].does != idle {
			to := s
			if to.holder == uint8(i+1) {
				to.holder = gone
			}
			to.drivers[i] = driver{}
			add(i, "dies", true, to)
		}
	}
	for op := range s.operations {
		if s.operations[op].late > 0 {
			to := s
			to.operations[op].late = 0
			add(op, "late request is lost", true, to)
			to.execute(uint8(op))
			add(op, "late request arrives", false, to)
		}
	}
	if over := s.finished >= retention; s.status != absent &&
		(over && s.status != inProgress || w.sweepFinished && s.status == inProgress && s.old) {
		to := s
		to.remove()
		add(0, "sweep", false, to)
	}
	if to, ok := s.tick(); ok {
		out = append(out, step[state]{name: "a tick", tick: true, to: to})
	}
	if w.restores && !s.putBack {
		for _, to := range s.restored(w) {
			add(0, "the database is put back", true, to)
		}
	}
	return out
}

// tick lets time pass. What is on its way arrives or is lost before it is too old. Clocks stop
// where nothing depends on them any more.
func (s state) tick() (state, bool) {
	s.old = s.holder != nobody
	if s.reached {
		s.since = min(s.since+1, window)
	}
	if s.missed > 0 {
		s.missed = min(s.missed+1, span+1)
	}
	if s.status == completed || s.status == failed {
		s.finished = min(s.finished+1, retention)
	}
	for i := range s.drivers {
		s.drivers[i].old = s.drivers[i].does == sawFree || s.drivers[i].does > sawOld
	}
	for i := range s.operations {
		o := &s.operations[i]
		if o.late > networkMax {
			return s, false
		}
		if o.late > 0 {
			o.late++
		}
		if o.key != forgotten {
			if o.age++; o.age >= memory {
				o.key, o.age = forgotten, 0
			}
		}
		if o.charge == charged {
			o.settled = min(o.settled+1, retention)
		}
	}
	return s, true
}

// drive gives every next step of driver i.
func (s state) drive(i int, w without, out *[]step[state]) {
	d := s.drivers[i]
	add := func(fault bool, to state, name string) {
		*out = append(*out, step[state]{name: name, who: i, fault: fault, to: to})
	}
	release := func(to state, nothing, server, missed bool) state {
		d := to.drivers[i]
		d.does, d.nothing, d.server, d.missed = releases, nothing && (!d.f.reached || w.reachedStays), server, missed
		to.drivers[i] = d
		return to
	}
	settle := func(to state, result uint8) state {
		to.drivers[i].does, to.drivers[i].result = settles, result
		return to
	}
	rest := func(to state) state {
		to.drivers[i] = driver{}
		return to
	}
	runOver := d.old && !w.runLimit
	made := s.operations[d.op].made > 0
	switch d.does {
	case idle:
		s.begin(i, w, out)
	case sawFree:
		to := s
		if s.status == inProgress && s.op == d.op && (!d.old || w.askLimit) && (d.same || w.swap) &&
			(s.holder == nobody || s.old || w.stale) {
			to.lease(i, d.f)
			add(false, to, "takes over")
		} else {
			add(false, rest(to), "comes second")
		}
	case sawOld:
		to := rest(s)
		if s.status != absent && (s.op == d.op || w.forgetOperation) &&
			(s.status == failed || s.status == completed && s.finished >= retention || w.forgetCondition) {
			to.remove()
		}
		add(false, to, "forgets the key")
	case sends:
		if runOver {
			add(false, release(s, true, false, false), "finds its run over and sends nothing")
			return
		}
		s.send(i, settle, release, add)
	case looks, looksOnly:
		switch {
		case d.old: // its deadline holds for reads too
			add(false, release(s, false, false, false), "finds its run over")
			return
		case made && (!w.lookFirst || d.does == looksOnly):
			add(false, settle(s, charged), "finds the charge")
		default:
			add(false, s.miss(i, d, settle, release, w), "finds nothing")
		}
		if w.errorsProveNothing {
			add(true, s.miss(i, d, settle, release, w), "takes a look-up's error for a miss")
		}
		add(true, release(s, false, false, false), "looks up and gets an error")
	case settles:
		s.commit(i, w, out)
	case releases:
		to := rest(s)
		if s.status == inProgress && s.op == d.op && (d.holds || w.releaseToken) {
			to.holder, to.old = nobody, false
			to.forgetLease()
			if d.nothing {
				to.reached, to.since = false, 0
			}
			if d.server {
				to.serverErrors = min(to.serverErrors+1, errorsMax)
			}
			if d.missed {
				to.misses, to.missed = min(to.misses+1, missesMin), max(to.missed, 1)
			}
		}
		add(false, to, "releases")
	}
}

// forgetLease: nobody's token or reading is the row's any more.
func (s *state) forgetLease() {
	for j := range s.drivers {
		s.drivers[j].same = false
		if s.drivers[j].op == s.op {
			s.drivers[j].holds = false
		}
	}
}

// begin: a client claims, or reads; a reconciler leases in one statement.
func (s state) begin(i int, w without, out *[]step[state]) {
	add := func(to state, name, wrong string) {
		*out = append(*out, step[state]{name: name, who: i, to: to, wrong: wrong})
	}
	free := s.holder == nobody || s.old && !w.takeOver
	switch {
	case s.status == absent && s.rebuilt != 0:
		to := s
		to.status, to.op, to.rebuilt, to.finished = completed, s.rebuilt-1, 0, s.operations[s.rebuilt-1].settled
		add(to, "names a key that was rebuilt", "")
	case s.status == absent && int(s.claims) < generations:
		to, wrong := s, ""
		for op := range s.claims {
			if o := s.operations[op]; o.charge == charged && o.settled < retention {
				wrong = fmt.Sprintf(
					"operation %d answered the key, its time is not over, and the key is claimed anew",
					op,
				)
			}
		}
		to.status, to.op, to.claims = inProgress, s.claims, s.claims+1
		to.operations[to.op].charge = pending
		to.lease(i, facts{open: true})
		add(to, "claims", wrong)
	case s.status == failed, s.status == completed && s.finished >= retention:
		to := s
		to.drivers[i] = driver{does: sawOld, op: s.op}
		add(to, "reads", "")
	case s.status == inProgress && free:
		to := s
		to.drivers[i] = driver{does: sawFree, op: s.op, same: true, f: s.facts(w)}
		add(to, "reads", "")
		to = s
		to.lease(i, s.facts(w))
		add(to, "leases it in a pass", "")
	}
}

// miss is a complete look-up that found nothing.
func (s state) miss(
	_ int, d driver, settle func(state, uint8) state, release func(state, bool, bool, bool) state,
	w without,
) state {
	switch {
	case d.does == looks:
		for j := range s.drivers {
			if s.drivers[j] == d {
				s.drivers[j].does = sends
				break
			}
		}
		return s
	case (d.f.misses+1 >= missesMin || w.misses) && d.f.over:
		return settle(s, never)
	}
	return release(s, false, false, true)
}

// send gives all that can become of a request.
func (s state) send(
	i int, settle func(state, uint8) state, release func(state, bool, bool, bool) state,
	add func(bool, state, string),
) {
	op := s.drivers[i].op
	to := s
	if to.execute(op) {
		add(false, settle(to, charged), "sends and is answered")
	} else {
		add(false, release(to, false, true, false), "sends and gets the stored 500")
	}
	add(true, release(to, false, false, false), "sends and the answer is lost")
	add(true, release(s, false, false, false), "sends and the request is lost")
	add(true, release(s, true, false, false), "sends and gets a 429")
	add(true, release(s, false, true, false), "sends and gets a 503 that is not stored")
	if s.operations[op].late == 0 {
		to = s
		to.operations[op].late = 1
		add(true, release(to, false, false, false), "sends and the request is late")
	}
	if s.operations[op].key == forgotten {
		to = s
		to.operations[op].key, to.operations[op].age = broken, 0
		add(true, release(to, false, true, false), "sends and gets a 500, stored, without effect")
		to.operations[op].made++
		add(true, release(to, false, true, false), "sends and gets a 500, stored, with effect")
	}
}

// commit is commit 2: fenced.
func (s state) commit(i int, w without, out *[]step[state]) {
	d, to, wrong := s.drivers[i], s, ""
	to.drivers[i] = driver{}
	o := &to.operations[d.op]
	if s.status != absent && s.op == d.op && (d.holds || w.settleToken) &&
		(s.status == inProgress || w.settleStatus) && (o.charge == pending || w.settleCharge) {
		if o.charge != pending {
			wrong = fmt.Sprintf(
				"operation %d is settled twice: an answer changes, an event is told again", d.op,
			)
		}
		to.holder, to.old, to.finished = nobody, false, 0
		to.forgetLease()
		o.charge = d.result
		if !s.putBack { // else it may be settled a second time, and its first answer counts
			o.settled = 0
		}
		if to.status = completed; d.result == never {
			to.status = failed
		}
		to.reached, to.since, to.serverErrors, to.misses, to.missed = false, 0, 0, 0, 0
	}
	*out = append(*out, step[state]{name: "settles", who: i, to: to, wrong: wrong})
}
