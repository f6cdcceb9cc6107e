package sim_test

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
	"paidonce/internal/world"
	"paidonce/problem"
	"paidonce/provider"
	"paidonce/recovery"
)

// run is one run: a seed, and all that follows from it.
//
// Clients, cron jobs and the product's own goroutines run in a bubble and stop at each statement
// and each call to the provider. The scheduler lets one of them go on, waits until everything
// stands still again, and draws what to do next. So one thing happens at a time, in an order that
// the seed alone decides, and a seed can be run again. What PostgreSQL does with statements at the
// same instant is not tried here.
type run struct {
	lane     *lane
	seed     uint64
	dice     *rand.Rand
	cfg      idemkeys.Config
	mutation mutation
	mix      mix
	counts   *tally

	step int
	// since the run's beginning, in everybody's time but the database's and the provider's
	elapsed     time.Duration
	skew        time.Duration  // of the database's clock
	calm        bool           // no more faults
	stops       []*stoppedCall // in an order that the seed decides
	live        []*process
	started     int  // instances so far
	crons       int  // passes and sweeps so far
	hasCopy     bool // there is a copy of the database
	clients     []*simulatedClient
	keys        []string
	reference   string                // all keys are for one order; empty: for none
	holds       bool                  // clients race for a hold
	hold        string                // its charge, once one is there
	told        map[problem.Code]bool // refusals that clients were told
	answersSeen int                   // answers so far

	mu       sync.Mutex // guards what the product's goroutines touch too
	arrived  []*stoppedCall
	ops      map[string]*trackedOp
	opOrder  []*trackedOp
	late     []lateRequest
	working  int // passes and sweeps that run
	trace    []string
	tracing  uint64 // hash of all lines so far
	failures []string
}

// trackedOp is an operation, as the outside saw it.
type trackedOp struct {
	id, name, key string
	variant       int    // which request claimed it
	sent          string // what was sent to the provider
	reached       bool   // a request for it may have been executed
	reachedAt     time.Duration
	// how often the provider was made to contradict itself: each may park the operation
	contradicted int
	resolves     int // how often an operator tried to end it: each may park it again
	answer       *idemkeys.Answer
	firstSeen    int // which of the run's answers was the first of this operation; 0: none
	lastSeen     int // and which the last
	// when its outcome was stored first, by the database's clock, if that was forgotten
	settled time.Time
}

// mix is how often what happens.
type mix struct {
	crash, fault, lookupFault, lost, hold float64
	arrive                                float64 // of late requests, when one may
	// of a copy being made of the database, or put back
	restore float64
	jump    float64 // of passing time: how often it is long
	jumps   []time.Duration
	// the faults of charges to draw from; empty: all
	only []string
	// how much more often a goroutine that stands here is let go; below 1: slow
	places map[string]float64
	steps  int
}

var usualMix = mix{crash: 0.012, fault: 0.5, lookupFault: 0.15, lost: 0.02, hold: 0.04, arrive: 0.5, restore: 0.012, jump: 0.18, steps: 320,
	jumps: []time.Duration{
		6 * time.Second, 35 * time.Second, 95 * time.Second, 95 * time.Second, 130 * time.Second,
		10 * time.Minute, 22 * time.Hour, 25 * time.Hour,
	},
}

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// ordersEvery: in one of five seeds all keys race for one order. In the others each charge is for
// itself, as most are.
const ordersEvery = 5

func newRun(l *lane, seed uint64, m mutation, counts *tally) *run {
	r := &run{
		lane: l, seed: seed, dice: rand.New(rand.NewPCG(seed, 0x9a1d0ce)), mutation: m,
		mix: usualMix, counts: counts, ops: map[string]*trackedOp{}, told: map[problem.Code]bool{},
		cfg: idemkeys.Config{
			StaleAfter: 90 * time.Second, CallLimit: 2 * time.Second, SendWindow: 23 * time.Hour,
			LookupSpan: 2 * time.Minute,
		},
	}
	if seed%ordersEvery == 0 {
		r.reference = "order 1"
	}
	if m.mix.steps > 0 {
		r.mix = m.mix
	}
	if r.holds = seed%holdsEvery == 0 || m.getCharge != nil; r.holds {
		r.mix.restore = 0
	}
	if m.cfg != nil {
		m.cfg(&r.cfg)
	}
	return r
}

// simulate makes a run and returns what was wrong.
func simulate(t *testing.T, l *lane, seed uint64, m mutation, counts *tally) *run {
	r := newRun(l, seed, m, counts)
	if err := l.clear(); err != nil {
		t.Fatal(err)
	}
	l.providerAhead.Store(0)
	synctest.Test(t, func(*testing.T) {
		r.must(l.setClock(epoch))
		for range 2 + r.dice.IntN(2) {
			r.startInstance()
		}
		r.hireClients()
		for r.step = 1; r.step <= r.mix.steps && len(r.failures) == 0; r.step++ {
			r.act()
		}
		r.finish()
		for _, in := range r.live {
			r.kill(in)
		}
		r.pass(10 * time.Minute) // callers that wait in a dead process give up
	})
	return r
}

func (r *run) must(err error) {
	if err != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.fail("the test's own statement: %v", err)
	}
}

// fail notes a violation. The caller holds mu, or is alone.
func (r *run) fail(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func (r *run) logf(format string, args ...any) {
	line := fmt.Sprintf(
		"%4d %10v  ", r.step, r.elapsed.Round(time.Millisecond),
	) + fmt.Sprintf(format, args...)
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%d%s", r.tracing, line)
	r.tracing = h.Sum64()
	r.trace = append(r.trace, line)
}

// settle waits until nothing moves, and takes in who has stopped. Those that stopped at the same
// time are put in an order of their own, since which of them was first is the machine's doing.
func (r *run) settle() {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.SortStableFunc(r.arrived, func(a, b *stoppedCall) int {
		return cmp.Or(
			cmp.Compare(a.in.number, b.in.number), cmp.Compare(a.actor, b.actor),
			cmp.Compare(a.place, b.place),
			cmp.Compare(r.subjectOf(a, false), r.subjectOf(b, false)),
		)
	})
	for _, s := range r.arrived {
		s.subject = r.subjectOf(s, true)
		r.stops = append(r.stops, s)
	}
	r.arrived = r.arrived[:0]
}

// subjectOf returns which key or operation a stop is about. Operations get their names in the order
// of their claims; without name, none gets a new one.
func (r *run) subjectOf(s *stoppedCall, name bool) string {
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
			case strings.HasPrefix(v, "key-"), strings.HasPrefix(v, "end-"):
				keys = append(keys, v)
			}
		}
	}
	if !name {
		for _, id := range ops {
			if op := r.ops[id]; op != nil {
				keys = append(keys, op.name)
			}
		}
		return strings.Join(keys, " ")
	}
	if len(ops) == 0 {
		return strings.Join(keys, " ")
	}
	for i, id := range ops {
		op := r.ops[id]
		if op == nil && s.place == "ChargeClaim" && i < len(keys) {
			op = r.track(id, keys[i], variantOf(s.args, i))
		}
		if op == nil {
			op = &trackedOp{name: "an unknown operation"}
		}
		ops[i] = op.name
	}
	return strings.Join(ops, ", ")
}

// track notes an operation that is claimed.
func (r *run) track(id, key string, variant int) *trackedOp {
	op := &trackedOp{
		id: id, name: fmt.Sprintf("op%d of %s", len(r.ops)+1, key), key: key, variant: variant,
	}
	r.ops[id] = op
	r.opOrder = append(r.opOrder, op)
	return op
}

// startInstance starts a process.
func (r *run) startInstance() *process {
	r.started++
	in := &process{run: r, number: r.started}
	misses := 3
	if r.mutation.misses > 0 {
		misses = r.mutation.misses
	}
	cfg := charges.Config{
		Installation: "sim", LookupMisses: misses,
		Clocks: charges.NewClocks(laneClock{r.lane}, world.Quiet), KeyWindow: r.cfg.SendWindow,
		RunLimit: r.cfg.RunLimit(),
	}
	store := charges.NewStore(charges.StoreConfig{Pool: simulatedPool{in}, KeyTTL: 24 * time.Hour})
	in.engine = idemkeys.NewEngine(
		simulatedPool{in}, r.cfg, world.Quiet, charges.Kinds(simulatedProvider{in: in}, store, cfg),
	)
	in.service = charges.NewService(store, in.engine.Runner, cfg)
	r.live = append(r.live, in)
	return in
}

// kill ends a process on the spot: nothing that it would have done next is done.
func (r *run) kill(in *process) {
	r.mu.Lock()
	in.dead = true
	r.mu.Unlock()
	r.live = slices.DeleteFunc(slices.Clone(r.live), func(l *process) bool { return l == in })
	rest := r.stops[:0:0]
	for _, s := range r.stops {
		if s.in == in {
			s.resume <- instruction{fate: dead}
		} else {
			rest = append(rest, s)
		}
	}
	r.stops = rest
	r.settle()
}

// pass lets time pass, for everybody. Requests that would be on their way for too long arrive
// before.
func (r *run) pass(d time.Duration) {
	r.deliver(max(networkMax-d, 0))
	time.Sleep(d)
	r.elapsed += d
	r.settle()
	r.clock()
}

func (r *run) clock() { r.must(r.lane.setClock(epoch.Add(r.elapsed + r.skew))) }

// cron starts a pass or a sweep.
func (r *run) cron(kind string) {
	in := r.live[r.dice.IntN(len(r.live))]
	r.crons++
	who := fmt.Sprintf("%s %d", kind, r.crons)
	limit := 1 + r.dice.IntN(4)
	r.logf("%s starts at instance %d", who, in.number)
	r.mu.Lock()
	r.working++
	r.mu.Unlock()
	ctx := context.WithValue(context.Background(), actorKey{}, who)
	go func() {
		defer func() {
			r.mu.Lock()
			r.working--
			r.mu.Unlock()
		}()
		if kind == "sweep" {
			_, _ = recovery.Sweep(
				ctx, world.Quiet, recovery.Kind{Name: "keys", Batch: in.engine.Sweep},
			)
			return
		}
		_, _ = recovery.Reconciler{
			Leases: in.engine.Leases, Runner: in.engine.Runner, Log: world.Quiet,
		}.Pass(ctx, limit)
	}()
	r.settle()
}

// mutation is a guard taken out. The zero value is the product as it is.
type mutation struct {
	name        string
	seed        uint64 // which noticed it when this was written; tried first
	sql         func(sql string) string
	setup       string // takes a constraint out that would hide it, in the lane's database
	misses      int
	cfg         func(*idemkeys.Config)
	request     func(provider.ChargeRequest, *run) provider.ChargeRequest
	chargeError func(error) error
	lookup      func([]provider.Charge, error) ([]provider.Charge, error)
	// changes what a hold is read as; then all runs are about a hold
	getCharge func(*provider.Charge, error) (*provider.Charge, error)
	mix       mix
	wants     string // pattern of what is noticed
	forgets   bool   // what a copy that is put back lacks is not rebuilt
	atEnd     bool   // it is to be noticed when records are compared, not earlier
}

// change puts operations that became due at the same moment in an order, so that a seed decides
// which of them is leased first; and takes out what the run's mutation takes out.
func (r *run) change(sql string) string {
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
