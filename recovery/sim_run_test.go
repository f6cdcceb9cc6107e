package recovery_test

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"paidonce/charges"
	"paidonce/idemkeys"
	"paidonce/provider"
	"paidonce/recovery"
)

// simRun is one run: a seed, and all that follows from it.
//
// Clients, cron jobs and the product's own goroutines run in a bubble and stop at each statement and each call to the provider. The scheduler
// lets one of them go on, waits until everything stands still again, and draws what to do next. So one thing happens at a time, in an order that
// the seed alone decides, and a seed can be run again. What PostgreSQL does with statements at the same instant is not tried here.
type simRun struct {
	lane     *simLane
	seed     uint64
	dice     *rand.Rand
	cfg      idemkeys.Config
	mutation simMutation
	mix      simMix
	counts   *simCounts

	step    int
	elapsed time.Duration // since the run's beginning, in everybody's time but the database's and the provider's
	skew    time.Duration // of the database's clock
	calm    bool          // no more faults
	stops   []*simStop    // in an order that the seed decides
	live    []*simInstance
	born    int  // instances so far
	crons   int  // passes and sweeps so far
	copied  bool // there is a copy of the database
	clients []*simClient
	keys    []string

	mu       sync.Mutex // guards what the product's goroutines touch too
	arrived  []*simStop
	ops      map[string]*simOp
	opOrder  []*simOp
	late     []simLate
	working  int // passes and sweeps that run
	trace    []string
	tracing  uint64 // hash of all lines so far
	failures []string
}

// simOp is an operation, as the outside saw it.
type simOp struct {
	id, name, key string
	variant       int    // which request claimed it
	sent          string // what was sent to the provider
	reached       bool   // a request for it may have been executed
	reachedAt     time.Duration
	contradicted  int // how often the provider was made to contradict itself: each may park the operation
	resolves      int // how often a person tried to end it: each may park it again
	answer        *idemkeys.Answer
}

// simMix is how often what happens.
type simMix struct {
	crash, fault, lookupFault, lost, hold float64
	arrive                                float64 // of late requests, when one may
	restore                               float64 // of a copy being made of the database, or put back
	jump                                  float64 // of passing time: how often it is long
	jumps                                 []time.Duration
	only                                  []string           // the faults of charges to draw from; empty: all
	places                                map[string]float64 // how much more often a goroutine that stands here is let go; below 1: slow
	steps                                 int
}

var simUsual = simMix{crash: 0.012, fault: 0.5, lookupFault: 0.15, lost: 0.02, hold: 0.04, arrive: 0.5, restore: 0.012, jump: 0.18, steps: 320,
	jumps: []time.Duration{6 * time.Second, 35 * time.Second, 95 * time.Second, 95 * time.Second, 130 * time.Second, 10 * time.Minute, 22 * time.Hour, 25 * time.Hour},
}

var simEpoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func newSimRun(l *simLane, seed uint64, m simMutation, counts *simCounts) *simRun {
	r := &simRun{
		lane: l, seed: seed, dice: rand.New(rand.NewPCG(seed, 0x9a1d0ce)), mutation: m, mix: simUsual, counts: counts, ops: map[string]*simOp{},
		cfg: idemkeys.Config{StaleAfter: 90 * time.Second, ProviderTimeout: 2 * time.Second, KeyWindow: 23 * time.Hour, LookupSpan: 2 * time.Minute},
	}
	if m.mix.steps > 0 {
		r.mix = m.mix
	}
	if m.cfg != nil {
		m.cfg(&r.cfg)
	}
	return r
}

// simulate makes a run and returns what was wrong.
func simulate(t *testing.T, l *simLane, seed uint64, m simMutation, counts *simCounts) *simRun {
	r := newSimRun(l, seed, m, counts)
	if err := l.clear(); err != nil {
		t.Fatal(err)
	}
	l.ahead.Store(0)
	synctest.Test(t, func(*testing.T) {
		r.must(l.setClock(simEpoch))
		for range 2 + r.dice.IntN(2) {
			r.birth()
		}
		r.hire()
		for r.step = 1; r.step <= r.mix.steps && len(r.failures) == 0; r.step++ {
			r.act()
		}
		r.finish()
		for _, in := range r.live {
			r.kill(in)
		}
		r.pass(10 * time.Minute) // who waits in a dead process gives up
	})
	return r
}

func (r *simRun) must(err error) {
	if err != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.fail("the test's own statement: %v", err)
	}
}

// fail notes a violation. The caller holds mu, or is alone.
func (r *simRun) fail(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func (r *simRun) say(format string, args ...any) {
	line := fmt.Sprintf("%4d %10v  ", r.step, r.elapsed.Round(time.Millisecond)) + fmt.Sprintf(format, args...)
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%d%s", r.tracing, line)
	r.tracing = h.Sum64()
	r.trace = append(r.trace, line)
}

// settle waits until nothing moves, and takes in who has stopped. Those that stopped at the same time are put in an order of their own, since
// which of them was first is the machine's doing.
func (r *simRun) settle() {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.SortStableFunc(r.arrived, func(a, b *simStop) int {
		return cmp.Or(cmp.Compare(a.in.n, b.in.n), cmp.Compare(a.who, b.who), cmp.Compare(a.place, b.place), cmp.Compare(r.concerns(a, false), r.concerns(b, false)))
	})
	for _, s := range r.arrived {
		s.about = r.concerns(s, true)
		r.stops = append(r.stops, s)
	}
	r.arrived = r.arrived[:0]
}

// concerns tells which key or operation a stop is about. Operations get their names in the order of their claims.
func (r *simRun) concerns(s *simStop, name bool) string {
	var keys, ops []string
	for _, a := range s.args {
		list, _ := a.([]string)
		if one, ok := a.(string); ok {
			list = []string{one}
		}
		for _, v := range list {
			switch {
			case strings.HasPrefix(v, "op_"):
				ops = append(ops, v)
			case strings.HasPrefix(v, "key-"):
				keys = append(keys, v)
			}
		}
	}
	if len(ops) == 0 || !name {
		return strings.Join(keys, " ")
	}
	for i, id := range ops {
		op := r.ops[id]
		if op == nil && s.place == "ChargeClaim" && i < len(keys) {
			op = &simOp{id: id, name: fmt.Sprintf("op%d of %s", len(r.ops)+1, keys[i]), key: keys[i], variant: variantOf(s.args, i)}
			r.ops[id] = op
			r.opOrder = append(r.opOrder, op)
		}
		if op == nil {
			op = &simOp{name: "an unknown operation"}
		}
		ops[i] = op.name
	}
	return strings.Join(ops, ", ")
}

// birth starts a process.
func (r *simRun) birth() *simInstance {
	r.born++
	in := &simInstance{run: r, n: r.born}
	misses := 3
	if r.mutation.misses > 0 {
		misses = r.mutation.misses
	}
	cfg := charges.Config{
		Installation: "sim", LookupMisses: misses, Clocks: charges.NewClocks(simClocks{r.lane}, quiet), KeyWindow: r.cfg.KeyWindow, RunLimit: r.cfg.RunLimit(),
	}
	store := charges.NewStore(simPool{in}, 24*time.Hour)
	in.engine = idemkeys.NewEngine(simPool{in}, r.cfg, quiet, charges.Kinds(simProvider{in: in}, store, cfg))
	in.create = charges.NewService(store, in.engine, cfg)
	r.live = append(r.live, in)
	return in
}

// kill ends a process on the spot: nothing that it would have done next is done.
func (r *simRun) kill(in *simInstance) {
	r.mu.Lock()
	in.dead = true
	r.mu.Unlock()
	r.live = slices.DeleteFunc(slices.Clone(r.live), func(l *simInstance) bool { return l == in })
	rest := r.stops[:0:0]
	for _, s := range r.stops {
		if s.in == in {
			s.resume <- simOrder{fate: dead}
		} else {
			rest = append(rest, s)
		}
	}
	r.stops = rest
	r.settle()
}

// pass lets time pass, for everybody. Requests that would be on their way for too long arrive before.
func (r *simRun) pass(d time.Duration) {
	r.deliver(max(simNetwork-d, 0))
	time.Sleep(d)
	r.elapsed += d
	r.settle()
	r.clock()
}

func (r *simRun) clock() { r.must(r.lane.setClock(simEpoch.Add(r.elapsed + r.skew))) }

// cron starts a pass or a sweep.
func (r *simRun) cron(kind string) {
	in := r.live[r.dice.IntN(len(r.live))]
	r.crons++
	who := fmt.Sprintf("%s %d", kind, r.crons)
	limit := 1 + r.dice.IntN(4)
	r.say("%s starts at instance %d", who, in.n)
	r.mu.Lock()
	r.working++
	r.mu.Unlock()
	ctx := context.WithValue(context.Background(), simWho{}, who)
	go func() {
		defer func() {
			r.mu.Lock()
			r.working--
			r.mu.Unlock()
		}()
		if kind == "sweep" {
			_, _ = sweepKeys(ctx, in.engine)
			return
		}
		_, _ = recovery.Pass(ctx, in.engine, limit, quiet)
	}()
	r.settle()
}

// simMutation is a guard taken out. The zero value is the product as it is.
type simMutation struct {
	name        string
	seed        uint64 // which noticed it when this was written; tried first
	sql         func(sql string) string
	setup       string // takes a constraint out that would hide it, in the lane's database
	misses      int
	cfg         func(*idemkeys.Config)
	request     func(provider.ChargeRequest, *simRun) provider.ChargeRequest
	chargeError func(error) error
	lookup      func([]provider.Charge, error) ([]provider.Charge, error)
	mix         simMix
	wants       string // pattern of what is noticed
	forgets     bool   // what a copy that is put back lacks is not rebuilt
	books       bool   // it is to be noticed in the books, not earlier
}

// change puts operations that became due at the same moment in an order, so that a seed decides which of them is leased first; and takes out what
// the run's mutation takes out.
func (r *simRun) change(sql string) string {
	if statementName(sql) == "KeyLeaseDue" {
		const order = "ORDER BY d.next_run_at"
		if !strings.Contains(sql, order) {
			panic("KeyLeaseDue has another order now: runs cannot be repeated")
		}
		sql = strings.ReplaceAll(sql, order, order+", d.created_at")
	}
	if r.mutation.sql == nil {
		return sql
	}
	return r.mutation.sql(sql)
}
