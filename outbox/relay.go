package outbox

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"paidonce/db"
)

const (
	// perEndpoint is how many deliveries to one endpoint a relay has under way at once.
	perEndpoint = 32
	// perFailingEndpoint is the same for one whose last delivery failed: enough to notice that it is back, too little to be in anybody's way.
	perFailingEndpoint = 2
	// inAllMax is how many deliveries a relay has under way in all. Each is a goroutine and a socket that mostly wait.
	inAllMax = 512
	// keptFree is how many of these are for endpoints that have nothing under way, one for each: however many slow ones there are, the others need not wait for them.
	keptFree = 64
	// shareOfRest is which part of what is left of the others a single endpoint can get.
	shareOfRest = 4
	// lookEvery is how long something due waits at most before a relay sees it; two looks into small indexes.
	lookEvery = 200 * time.Millisecond
	// gather is how long a relay waits after a delivery ended, so that it claims for several at once.
	gather = 2 * time.Millisecond
	// leaseLimit is how long a claimed delivery is left to its relay: an attempt of ten seconds, the writing of its result, and some more.
	leaseLimit = 45 * time.Second
	// leaseMargin is what of it must be left when an attempt begins, or another relay might begin one meanwhile.
	leaseMargin = 15 * time.Second
	// cleanEvery is how often old events are looked for: they are counted in days.
	cleanEvery = 10 * time.Minute
	// onceFailures is how often in a row an endpoint may fail before a single pass leaves it alone.
	onceFailures = 10
)

// RelayConfig is what a relay is made of.
type RelayConfig struct {
	Sender Sender
	Log    *slog.Logger
	TTL    time.Duration // how long events are kept after every endpoint and stream has them; 0: for ever
	Lease  time.Duration // of a claimed delivery; 0: 45 s
	Pause  time.Duration // after the first failure of a delivery, growing from there; 0: 5 s
	// Attempted is told of each attempt, for who measures: one of [AttemptResults]. May be nil. Called concurrently.
	Attempted func(result string, took time.Duration)
}

// AttemptResults are what an attempt can come to: delivered; failed, and tried again; dead: failed, and given up on; lost: its result could not be written down, so it is
// made again, by whoever has the lease by then.
var AttemptResults = []string{"delivered", "failed", "dead", "lost"}

// Relay delivers events. Any number of them share the work; each delivery is claimed by one, for the time of a lease. Safe for concurrent use.
type Relay struct {
	store  *Store
	cfg    RelayConfig
	settle db.Committer[tried, db.DeliverySettleRow]
	ended  chan struct{} // a delivery ended, or something is new
	going  sync.WaitGroup

	mu       sync.Mutex
	busy     map[int64]int // deliveries under way, by endpoint
	inAll    int
	failures map[int64]int // in a row, by endpoint

	counts counters
}

type counters struct{ numbered, delivered, failed, dead, disabled, cleaned atomic.Int64 }

// Counts is what a relay has done since it was made.
type Counts struct {
	Numbered  int64 // events that got their places
	Delivered int64
	Failed    int64 // attempts that are to be repeated
	Dead      int64 // deliveries that were given up on
	Disabled  int64 // endpoints that were disabled
	Cleaned   int64 // events that were forgotten after their retention
}

// NewRelay returns a relay over a store.
func NewRelay(s *Store, cfg RelayConfig) *Relay {
	if cfg.Lease == 0 {
		cfg.Lease = leaseLimit
	}
	if cfg.Pause == 0 {
		cfg.Pause = pauseFirst
	}
	if cfg.Attempted == nil {
		cfg.Attempted = func(string, time.Duration) {}
	}
	r := &Relay{store: s, cfg: cfg, ended: make(chan struct{}, 1), busy: map[int64]int{}, failures: map[int64]int{}}
	r.settle.Write, r.settle.ID = r.writeSettled, func(t tried) string { return t.key() }
	return r
}

// Counts returns what was done so far.
func (r *Relay) Counts() Counts {
	c := &r.counts
	return Counts{Numbered: c.numbered.Load(), Delivered: c.delivered.Load(), Failed: c.failed.Load(), Dead: c.dead.Load(), Disabled: c.disabled.Load(), Cleaned: c.cleaned.Load()}
}

// Work delivers until ctx ends; attempts that have begun end, with their results written.
func (r *Relay) Work(ctx context.Context) {
	var workers sync.WaitGroup
	workers.Go(func() { r.number(ctx) })
	workers.Go(func() { r.clean(ctx) })
	for ctx.Err() == nil {
		n, err := r.dispatch(ctx, false)
		if err != nil && ctx.Err() == nil {
			r.cfg.Log.WarnContext(ctx, "due deliveries cannot be read", "cause", err)
		}
		if n > 0 {
			r.waitEnded(ctx, lookEvery)
			continue
		}
		r.waitEnded(ctx, around(lookEvery))
	}
	workers.Wait()
	r.going.Wait()
}

// Once delivers all that is due, forgets old events, and returns when nothing is left to do. An endpoint that fails again and again is left for later. Errors: the
// database's.
func (r *Relay) Once(ctx context.Context) error {
	defer r.going.Wait()
	r.mu.Lock()
	clear(r.failures)
	r.mu.Unlock()
	for ctx.Err() == nil {
		n, err := r.store.Number(ctx)
		r.counts.numbered.Add(int64(n))
		if err != nil {
			return err
		}
		begun, err := r.dispatch(ctx, true)
		if err != nil {
			return err
		}
		if n == 0 && begun == 0 && r.idle() {
			return r.cleanOnce(ctx)
		}
		r.waitEnded(ctx, lookEvery)
	}
	return nil
}

func (r *Relay) idle() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.inAll == 0
}

// waitEnded waits until a delivery has ended, or until there may be something new.
func (r *Relay) waitEnded(ctx context.Context, most time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(most):
	case <-r.ended:
		time.Sleep(gather)
	}
}

func (r *Relay) poke() {
	select {
	case r.ended <- struct{}{}:
	default: // it is known already
	}
}

// number gives new events their places until ctx ends.
func (r *Relay) number(ctx context.Context) {
	orders := numberer{store: r.store}
	for ctx.Err() == nil {
		n, err := orders.some(ctx)
		r.counts.numbered.Add(int64(n))
		switch {
		case err != nil && ctx.Err() == nil:
			r.cfg.Log.WarnContext(ctx, "events cannot be put in order", "cause", err)
		case n > 0:
			r.poke()
		}
		if n == numberBatch {
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(around(lookEvery)):
		}
	}
}

// dispatch claims what is due and there is room for, and begins to deliver it. It tells how many it began.
func (r *Relay) dispatch(ctx context.Context, once bool) (int, error) {
	due, err := ask(ctx, func(ctx context.Context) ([]db.DeliveryDueEndpointsRow, error) {
		return r.store.queries.DeliveryDueEndpoints(ctx, r.store.pool)
	})
	if err != nil {
		return 0, err
	}
	p := db.DeliveryClaimParams{Lease: r.cfg.Lease, BlockingAttempts: blockingAttempts}
	p.Endpoints, p.Mosts = r.room(due, once)
	if len(p.Endpoints) == 0 {
		return 0, nil
	}
	endpoints := make(map[int64]db.DeliveryDueEndpointsRow, len(due))
	for _, e := range due {
		endpoints[e.Number] = e
	}
	var rows []db.DeliveryClaimRow
	var claimed time.Time
	err = db.RetryConflict(ctx, func(ctx context.Context) (err error) {
		claimed = time.Now() // before the claim, so that the lease that we count is never longer than the database's
		rows, err = r.store.queries.DeliveryClaim(context.WithoutCancel(ctx), r.store.pool, p)
		return err
	})
	r.give(rows, p)
	if err != nil {
		return 0, err
	}
	for _, row := range rows {
		r.going.Go(func() {
			defer r.release(row.Endpoint)
			r.deliver(context.WithoutCancel(ctx), endpoints[row.Endpoint], row, claimed)
		})
	}
	return len(rows), nil
}

// room reserves places among what is under way: for each endpoint that has something due, those with the least under way first and of these the longest due, as many as
// it may have.
func (r *Relay) room(due []db.DeliveryDueEndpointsRow, once bool) (endpoints []int64, mosts []int32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.SortStableFunc(due, func(a, b db.DeliveryDueEndpointsRow) int { return cmp.Compare(r.busy[a.Number], r.busy[b.Number]) })
	for _, e := range due {
		most := perEndpoint
		if e.Failing || r.failures[e.Number] >= perFailingEndpoint {
			most = perFailingEndpoint
		}
		if once && r.failures[e.Number] >= onceFailures {
			continue
		}
		rest := inAllMax - r.inAll
		n := min(most-r.busy[e.Number], (rest-keptFree)/shareOfRest)
		if n <= 0 && r.busy[e.Number] == 0 {
			n = min(1, rest)
		}
		if n <= 0 {
			continue
		}
		endpoints, mosts = append(endpoints, e.Number), append(mosts, int32(n))
		r.busy[e.Number] += n
		r.inAll += n
	}
	return endpoints, mosts
}

// give gives back the reserved places that the claim did not fill.
func (r *Relay) give(rows []db.DeliveryClaimRow, p db.DeliveryClaimParams) {
	filled := map[int64]int{}
	for _, row := range rows {
		filled[row.Endpoint]++
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, number := range p.Endpoints {
		r.free(number, int(p.Mosts[i])-filled[number])
	}
}

func (r *Relay) release(endpoint int64) {
	r.mu.Lock()
	r.free(endpoint, 1)
	r.mu.Unlock()
	r.poke()
}

func (r *Relay) free(endpoint int64, n int) {
	r.inAll -= n
	if r.busy[endpoint] -= n; r.busy[endpoint] == 0 {
		delete(r.busy, endpoint)
	}
}

// noteResult counts failures in a row, and tells whether this is the first.
func (r *Relay) noteResult(endpoint int64, delivered bool) (first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if delivered {
		delete(r.failures, endpoint)
		return false
	}
	r.failures[endpoint]++
	return r.failures[endpoint] == 1
}
