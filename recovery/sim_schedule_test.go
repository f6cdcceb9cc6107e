package recovery_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"paidonce/idemkeys"
)

// act draws and does one thing.
func (r *simRun) act() {
	n := r.dice.IntN(100)
	switch {
	case n < 66:
		r.letOneGo()
	case n < 80:
		r.ask()
	case n < 82:
		r.startCron("pass")
		if r.dice.IntN(4) == 0 {
			r.counts.add("duplicate cron runs")
			r.startCron("pass")
		}
	case n < 83:
		r.startCron("sweep")
	case n < 93:
		r.letTimePass()
	case n < 94:
		r.killOne()
	case n < 95:
		r.forgetKeys()
	case n < 96:
		if r.dice.IntN(3) > 0 {
			break
		}
		in := r.live[r.dice.IntN(len(r.live))]
		in.down = r.step + 5 + r.dice.IntN(20)
		r.say("instance %d does not reach the database, until step %d", in.n, in.down)
		r.counts.add("database outages")
	case n < 97:
		r.turnClocks()
	case n < 98:
		if in := r.live[r.dice.IntN(len(r.live))]; r.dice.IntN(2) == 0 {
			r.retryParked(in)
		} else {
			r.resolveParked(in)
		}
	case r.dice.Float64() < r.mix.arrive:
		r.deliver(0)
	}
	if r.dice.Float64() < r.mix.restore {
		r.copyOrPutBack()
	}
	r.hear()
}

// startCron: at most a few at once, so that they do not crowd out the clients.
func (r *simRun) startCron(kind string) {
	if r.working < 4 {
		r.cron(kind)
	}
}

// letOneGo lets one of those that have stopped go on, and decides its fate.
func (r *simRun) letOneGo() {
	var free []*simStop
	for _, s := range r.stops {
		if weight, slow := r.mix.places[s.place]; s.held <= r.step && (!slow || r.dice.Float64() < weight) {
			free = append(free, s)
		}
	}
	if len(free) == 0 {
		if len(r.stops) == 0 {
			r.ask()
		}
		return
	}
	s := free[r.dice.IntN(len(free))]
	if s.held == 0 && r.dice.Float64() < r.mix.hold {
		s.held = r.step + 20 + r.dice.IntN(100)
		r.say("%s of %s is stopped before %s, until step %d", s.who, s.about, s.place, s.held)
		r.counts.add("stopped before %s", s.place)
		return
	}
	if s.held > 0 {
		r.counts.add("zombie goes on at %s", s.place)
	}
	r.release(s, r.fate(s))
}

func (r *simRun) fate(s *simStop) simOrder {
	if r.calm {
		return simOrder{}
	}
	call := slices.Contains(simCalls, s.place) || s.place == "GetCharge"
	if s.in.down > r.step && !call {
		return simOrder{fate: refuse}
	}
	crash := r.mix.crash
	switch s.place { // the rarer a place is, the more often a process dies there
	case "KeyPark":
		crash *= 20
	case "KeyForget", "Charge", "FindCharge":
		crash *= 6
	case "KeySweep", "KeyRelease", "ChargeSettle", "KeyTakeOver":
		crash *= 4
	}
	dice := r.dice.Float64()
	switch {
	case dice < crash:
		return simOrder{fate: dieInside}
	case dice < 2*crash:
		return simOrder{fate: dieAfter}
	case call:
	case dice < 2*crash+r.mix.lost:
		return simOrder{fate: lose}
	case dice < 2*crash+2*r.mix.lost:
		return simOrder{fate: refuse}
	}
	switch {
	case s.place == "Charge" && r.dice.Float64() < r.mix.fault:
		names := r.mix.only
		if len(names) == 0 {
			names = slices.Sorted(maps.Keys(simChargeFaults))
		}
		return simOrder{fault: names[r.dice.IntN(len(names))]}
	case s.place == "FindCharge" && r.dice.Float64() < r.mix.lookupFault:
		names := slices.Sorted(maps.Keys(simLookupFaults))
		return simOrder{fault: names[r.dice.IntN(len(names))]}
	}
	return simOrder{}
}

// release lets s go on and waits for what comes of it.
func (r *simRun) release(s *simStop, o simOrder) {
	r.stops = slices.DeleteFunc(slices.Clone(r.stops), func(x *simStop) bool { return x == s })
	what := ""
	switch o.fate {
	case dieInside:
		what = ", and the process dies inside"
		r.counts.add("crash inside %s", s.place)
	case dieAfter:
		what = ", and the process dies after it"
		r.counts.add("crash after %s", s.place)
	case refuse:
		what = ", which fails"
		r.counts.add("statement refused")
	case lose:
		what = ", and its answer is lost"
		r.counts.add("answer lost of %s", s.place)
	}
	if o.fault != "" {
		what += " (" + o.fault + ")"
		r.counts.add("fault %s", o.fault)
	}
	r.counts.add("let go: %s", s.place)
	r.say("instance %d, %s: %s of %s%s", s.in.n, s.who, s.place, s.about, what)
	if o.fault == "contradicted" {
		r.ops[s.args[0].(string)].contradicted++
	}
	// The process is dead before its goroutine can do anything else; the goroutine itself still finishes what it is in the middle of.
	dies := o.fate == dieInside || o.fate == dieAfter
	if dies {
		r.mu.Lock()
		s.in.dead = true
		r.mu.Unlock()
	}
	s.resume <- o
	r.settle()
	if dies {
		r.kill(s.in)
		r.birth()
	}
}

func (r *simRun) killOne() {
	in := r.live[r.dice.IntN(len(r.live))]
	r.say("instance %d is killed", in.n)
	r.counts.add("killed from outside")
	r.kill(in)
	r.birth()
}

// letTimePass: seconds for pauses and time-outs; minutes for leases and look-up spans; a day for the provider's window and for retention.
func (r *simRun) letTimePass() {
	d := time.Duration(100+r.dice.IntN(2500)) * time.Millisecond
	if r.dice.Float64() < r.mix.jump {
		d = r.mix.jumps[r.dice.IntN(len(r.mix.jumps))]
		r.counts.add("time jumps of %v", d)
	}
	r.say("%v pass", d)
	r.pass(d)
}

// turnClocks: the database moves to a machine whose clock is another, and so does the provider. Together they stay within what the
// configuration's margins allow: half a minute here, a minute there.
func (r *simRun) turnClocks() {
	r.skew = time.Duration(r.dice.IntN(61)-30) * time.Second
	ahead := time.Duration(r.dice.IntN(121)-60) * time.Second
	r.lane.ahead.Store(ahead.Microseconds())
	r.say("the database's clock is %v off, the provider's %v more", r.skew, ahead)
	r.counts.add("clocks turned")
	r.clock()
}

// forgetKeys: the provider loses its memory of keys before their time. It may not do so between an owner's look-up and its request: no client
// of any provider could survive that.
func (r *simRun) forgetKeys() {
	if len(r.late) > 0 || slices.ContainsFunc(r.stops, func(s *simStop) bool { return slices.Contains(simCalls, s.place) }) {
		return
	}
	r.say("the provider forgets its keys")
	r.counts.add("keys forgotten")
	r.lane.carry(func() { r.must(r.lane.server.ForgetKeys("")) })
}

// parked lists what waits for a person.
func (r *simRun) parked(in *simInstance) []*simOp {
	list, err := in.engine.List(context.Background(), []idemkeys.State{idemkeys.StateParked}, 100)
	r.must(err)
	ops := make([]*simOp, len(list))
	for i, op := range list {
		ops[i] = r.ops[op.ID]
	}
	return ops
}

// retryParked: a person gives what is parked back to the drivers.
func (r *simRun) retryParked(in *simInstance) {
	for _, op := range r.parked(in) {
		r.say("a person retries %s", op.name)
		r.counts.add("parked operations retried")
		if err := in.engine.Retry(context.Background(), op.id, "ada", "the provider was wrong"); !errors.Is(err, idemkeys.ErrNotParked) && !errors.Is(err, idemkeys.ErrNoOperation) {
			r.must(err) // the two others: somebody was quicker
		}
	}
}

// resolveParked: a person looks at the provider's books and ends a parked operation by what is there.
func (r *simRun) resolveParked(in *simInstance) {
	for _, op := range r.parked(in) {
		word := idemkeys.Resolution{Reason: "seen in the provider's books", By: "ada"}
		for _, c := range r.ledger()[op.id] {
			if c.Status == "succeeded" {
				word.Succeeded, word.ProviderID = true, c.ID
			}
		}
		r.say("a person resolves %s: succeeded %t", op.name, word.Succeeded)
		r.counts.add("parked operations resolved: succeeded %t", word.Succeeded)
		op.resolves++
		ctx := context.WithValue(context.Background(), simWho{}, "person")
		go func() { _, _ = in.engine.Resolve(ctx, op.id, word) }()
		r.settle()
	}
}
