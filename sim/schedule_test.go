package sim_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"paidonce/idemkeys"
)

// act draws and does one thing.
func (r *run) act() {
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
		r.logf("instance %d does not reach the database, until step %d", in.number, in.down)
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
	r.deliverAnswers()
}

// startCron: at most a few at once, so that they do not crowd out the clients.
func (r *run) startCron(kind string) {
	if r.working < 4 {
		r.cron(kind)
	}
}

// letOneGo lets one of those that have stopped go on, and decides its fate.
func (r *run) letOneGo() {
	var free []*stoppedCall
	for _, s := range r.stops {
		if weight, slow := r.mix.places[s.place]; s.held <= r.step &&
			(!slow || r.dice.Float64() < weight) {
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
		r.logf("%s of %s is stopped before %s, until step %d", s.actor, s.subject, s.place, s.held)
		r.counts.add("stopped before %s", s.place)
		return
	}
	if s.held > 0 {
		r.counts.add("zombie goes on at %s", s.place)
	}
	r.release(s, r.fate(s))
}

func (r *run) fate(s *stoppedCall) instruction {
	if r.calm {
		return instruction{}
	}
	call := slices.Contains(moves, s.place) || slices.Contains(lookUps, s.place)
	if s.in.down > r.step && !call {
		return instruction{fate: refuse}
	}
	crash := r.mix.crash
	switch s.place { // the rarer a place is, the more often a process dies there
	case "KeyPark", "Capture", "Refund", "KeyFinish":
		crash *= 20
	case "KeyForget", "Charge", "FindCharge":
		crash *= 6
	case "KeySweep", "KeyRelease", "ChargeSettle", "KeyTakeOver":
		crash *= 4
	}
	dice := r.dice.Float64()
	switch {
	case dice < crash:
		return instruction{fate: dieInside}
	case dice < 2*crash:
		return instruction{fate: dieAfter}
	case call:
	case dice < 2*crash+r.mix.lost:
		return instruction{fate: lose}
	case dice < 2*crash+2*r.mix.lost:
		return instruction{fate: refuse}
	}
	switch {
	case slices.Contains(moves, s.place) && r.dice.Float64() < r.mix.fault:
		names := r.mix.only
		if len(names) == 0 {
			names = slices.Sorted(maps.Keys(moveFaults))
		}
		fault := names[r.dice.IntN(len(names))]
		if fault == "contradicted" && s.place != "Charge" {
			fault = "garbage"
		}
		return instruction{fault: fault}
	case slices.Contains(lookUps, s.place) && (r.holds || s.place == "FindCharge") && r.dice.Float64() < r.mix.lookupFault:
		names := slices.Sorted(maps.Keys(lookupFaults))
		return instruction{fault: names[r.dice.IntN(len(names))]}
	}
	return instruction{}
}

// release lets s go on and waits for what comes of it.
func (r *run) release(s *stoppedCall, o instruction) {
	r.stops = slices.DeleteFunc(slices.Clone(r.stops), func(x *stoppedCall) bool { return x == s })
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
	r.logf("instance %d, %s: %s of %s%s", s.in.number, s.actor, s.place, s.subject, what)
	if o.fault == "contradicted" {
		r.ops[s.args[0].(string)].contradicted++
	}
	// The process is dead before its goroutine can do anything else; the goroutine itself still
	// finishes what it is in the middle of.
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
		r.startInstance()
	}
}

func (r *run) killOne() {
	in := r.live[r.dice.IntN(len(r.live))]
	r.logf("instance %d is killed", in.number)
	r.counts.add("killed from outside")
	r.kill(in)
	r.startInstance()
}

// letTimePass: seconds for pauses and time-outs; minutes for leases and look-up spans; a day for
// the provider's window and for retention.
func (r *run) letTimePass() {
	d := time.Duration(100+r.dice.IntN(2500)) * time.Millisecond
	if r.dice.Float64() < r.mix.jump {
		d = r.mix.jumps[r.dice.IntN(len(r.mix.jumps))]
		r.counts.add("time jumps of %v", d)
	}
	r.logf("%v pass", d)
	r.pass(d)
}

// turnClocks: the database moves to a machine whose clock is another, and so does the provider.
// Together they stay within what the configuration's margins allow: half a minute here, a minute
// there.
func (r *run) turnClocks() {
	r.skew = time.Duration(r.dice.IntN(61)-30) * time.Second
	ahead := time.Duration(r.dice.IntN(121)-60) * time.Second
	r.lane.providerAhead.Store(ahead.Microseconds())
	r.logf("the database's clock is %v off, the provider's %v more", r.skew, ahead)
	r.counts.add("clocks turned")
	r.clock()
}

// forgetKeys: the provider loses its memory of keys before their time. It may not do so between an
// owner's look-up and its request: no client of any provider could survive that.
func (r *run) forgetKeys() {
	if len(r.late) > 0 ||
		slices.ContainsFunc(
			r.stops, func(s *stoppedCall) bool { return slices.Contains(moves, s.place) || s.place == "FindCharge" },
		) {
		return
	}
	r.logf("the provider forgets its keys")
	r.counts.add("keys forgotten")
	r.lane.carry(func() { r.must(r.lane.server.ForgetKeys("")) })
}

// parked lists what waits for an operator.
func (r *run) parked(in *process) []*trackedOp {
	list, err := in.engine.List(context.Background(), []idemkeys.State{idemkeys.StateParked}, 100)
	r.must(err)
	ops := make([]*trackedOp, len(list))
	for i, op := range list {
		ops[i] = r.ops[op.ID]
	}
	return ops
}

// retryParked lets an operator return parked operations to the drivers.
func (r *run) retryParked(in *process) {
	for _, op := range r.parked(in) {
		r.logf("a person retries %s", op.name)
		r.counts.add("parked operations retried")
		if err := in.engine.Retry(
			context.Background(), op.id, "ada", "the provider was wrong",
		); !errors.Is(err, idemkeys.ErrNotParked) && !errors.Is(err, idemkeys.ErrNoOperation) {
			r.must(err) // the two others: somebody was quicker
		}
	}
}

// resolveParked lets an operator read the provider's records and end a parked operation by them.
func (r *run) resolveParked(in *process) {
	for _, op := range r.parked(in) {
		word := idemkeys.Resolution{Reason: "seen in the provider's books", By: "ada"}
		for _, c := range r.ledger()[op.id] {
			if c.Status == "succeeded" {
				word.Succeeded, word.ProviderID = true, c.ID
			}
		}
		r.logf("a person resolves %s: succeeded %t", op.name, word.Succeeded)
		r.counts.add("parked operations resolved: succeeded %t", word.Succeeded)
		op.resolves++
		ctx := context.WithValue(context.Background(), actorKey{}, "person")
		go func() { _, _ = in.engine.Resolve(ctx, op.id, word) }()
		r.settle()
	}
}
