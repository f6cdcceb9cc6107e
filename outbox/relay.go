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
	"paidonce/internal/loop"
)

const (
	// perEndpointMax is how many deliveries to one endpoint a relay has under way at once: enough
	// to hide a slow answer, few enough for a small server.
	perEndpointMax = 32
	// perFailingEndpointMax is the same for an endpoint whose last delivery failed: enough to
	// notice that it is back, too few to delay other endpoints.
	perFailingEndpointMax = 2
	// failingAfter is how many attempts in a row have to fail before this relay takes an endpoint
	// for failing, even if the database does not say so yet. One alone may be chance.
	failingAfter = 2
	// deliveriesMax is how many deliveries a relay has under way in all. Each is a goroutine and a
	// socket that mostly wait.
	deliveriesMax = 512
	// reservedForIdle is how many of deliveriesMax are kept for endpoints that have nothing under
	// way, one for each. However many slow endpoints there are, the others need not wait for them.
	reservedForIdle = 64
	// shareDivisor bounds a single endpoint to one part in shareDivisor of the unreserved
	// deliveries that are still free.
	shareDivisor = 4
	// pollEvery is how long a due delivery waits at most before a relay sees it. A poll costs two
	// look-ups in small indexes.
	pollEvery = 200 * time.Millisecond
	// claimDelay is how long a relay waits after a delivery ended, so that one claim replaces
	// several that ended together.
	claimDelay = 2 * time.Millisecond
	// leaseLimit is how long a claimed delivery is left to its relay: an attempt of ten seconds,
	// the writing of its result, and a margin.
	leaseLimit = 45 * time.Second
	// leaseMargin is how much of the lease must be left when an attempt begins. With less, another
	// relay might begin one meanwhile.
	leaseMargin = 15 * time.Second
	// cleanEvery is how often old events are looked for. Their age is counted in days, so ten
	// minutes are soon enough.
	cleanEvery = 10 * time.Minute
	// singlePassFailuresMax is how often in a row an endpoint may fail before RunOnce leaves it for
	// later.
	singlePassFailuresMax = 10
)

// RelayConfig is what a relay is made of.
type RelayConfig struct {
	Sender Sender
	Log    *slog.Logger
	// How long events are kept after every endpoint and stream has them; 0: forever.
	TTL   time.Duration
	Lease time.Duration // of a claimed delivery; 0: 45 s
	Pause time.Duration // after the first failure of a delivery, growing from there; 0: 5 s
	// OnAttempt, unless nil, is called after each attempt, with one of [AttemptResults] and how
	// long the attempt took. Calls are concurrent.
	OnAttempt func(result string, took time.Duration)
}

// AttemptResults are the possible results of an attempt: delivered; failed, when it will be tried
// again; dead, when the delivery is given up on; lost, when the result could not be stored, so that
// the attempt is repeated by whichever relay holds the lease by then.
var AttemptResults = []string{"delivered", "failed", "dead", "lost"}

// Relay delivers events. Any number of relays share the work: each delivery is claimed by one of
// them, for the time of a lease. Safe for concurrent use.
type Relay struct {
	store   *Store
	cfg     RelayConfig
	settle  db.Committer[attempt, db.DeliverySettleRow]
	ended   chan struct{} // a delivery ended, or something is new
	running sync.WaitGroup

	mu       sync.Mutex
	busy     map[int64]int // deliveries under way, by endpoint
	total    int
	failures map[int64]int // in a row, by endpoint

	counts counters
}

type counters struct{ numbered, delivered, failed, dead, disabled, cleaned atomic.Int64 }

// Counts is what a relay has done since it was made.
type Counts struct {
	Numbered  int64 // new events that were queued for the endpoints that want them
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
	if cfg.OnAttempt == nil {
		cfg.OnAttempt = func(string, time.Duration) {}
	}
	r := &Relay{
		store: s, cfg: cfg, ended: make(chan struct{}, 1), busy: map[int64]int{},
		failures: map[int64]int{},
	}
	r.settle.Write, r.settle.ID = r.writeSettled, func(t attempt) string { return t.key() }
	return r
}

// Counts returns what was done so far. Safe for concurrent use.
func (r *Relay) Counts() Counts {
	c := &r.counts
	return Counts{
		Numbered: c.numbered.Load(), Delivered: c.delivered.Load(), Failed: c.failed.Load(),
		Dead: c.dead.Load(), Disabled: c.disabled.Load(), Cleaned: c.cleaned.Load(),
	}
}

// Work delivers until ctx ends; attempts that have begun end, with their results written.
func (r *Relay) Work(ctx context.Context) {
	dispatching := loop.Loop{
		Step: func(ctx context.Context) (bool, error) {
			time.Sleep(claimDelay) // a delivery may just have ended
			_, err := r.dispatch(ctx, false)
			return false, err
		},
		Every: pollEvery,
		Wake:  r.ended,
		Failed: func(err error, _ time.Duration) {
			r.cfg.Log.WarnContext(ctx, "due deliveries cannot be read", "cause", err)
		},
	}
	loop.All(ctx, r.number, r.clean, dispatching.Run)
	r.running.Wait()
}

// RunOnce delivers all that is due, forgets old events, and returns when nothing is left to do. An
// endpoint that fails again and again is left for later. Errors: the database's.
func (r *Relay) RunOnce(ctx context.Context) error {
	defer r.running.Wait()
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
			_, err := r.cleanOnce(ctx)
			return err
		}
		r.waitEnded(ctx)
	}
	return nil
}

func (r *Relay) idle() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.total == 0
}

// waitEnded waits until a delivery has ended, or until there may be something new.
func (r *Relay) waitEnded(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(pollEvery):
	case <-r.ended:
		time.Sleep(claimDelay)
	}
}

// wake ends the pause of the loop that dispatches.
func (r *Relay) wake() {
	select {
	case r.ended <- struct{}{}:
	default: // a wake-up is pending already
	}
}

// number gives new events their positions and queues them until ctx ends.
func (r *Relay) number(ctx context.Context) {
	sequence := sequencer{store: r.store}
	loop.Loop{
		Step: func(ctx context.Context) (bool, error) {
			b, err := sequence.next(ctx)
			r.counts.numbered.Add(int64(b.queued))
			if b.queued > 0 {
				r.wake()
			}
			return b.full(), err
		},
		Every: pollEvery,
		Failed: func(err error, _ time.Duration) {
			r.cfg.Log.WarnContext(ctx, "events cannot be put in order", "cause", err)
		},
	}.Run(ctx)
}

// dispatch claims as many due deliveries as may be under way, begins to deliver them, and returns
// how many it began.
func (r *Relay) dispatch(ctx context.Context, singlePass bool) (int, error) {
	due, err := db.Read0(ctx, r.store.pool, r.store.queries.DeliveryDueEndpoints)
	if err != nil {
		return 0, err
	}
	p := db.DeliveryClaimParams{Lease: r.cfg.Lease, BlockingAttempts: blockingAttempts}
	p.Endpoints, p.Limits = r.reserve(due, singlePass)
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
		// Read before the claim, so that the lease as counted here never outlasts the database's.
		claimed = time.Now()
		rows, err = r.store.queries.DeliveryClaim(context.WithoutCancel(ctx), r.store.pool, p)
		return err
	})
	r.releaseUnfilled(rows, p)
	if err != nil {
		return 0, err
	}
	for _, row := range rows {
		r.running.Go(func() {
			defer r.finish(row.Endpoint)
			r.deliver(context.WithoutCancel(ctx), endpoints[row.Endpoint], row, claimed)
		})
	}
	return len(rows), nil
}

// reserve reserves deliveries for each endpoint that has something due, as many as it may have.
// Endpoints with the fewest deliveries under way come first, and of these the longest due.
func (r *Relay) reserve(
	due []db.DeliveryDueEndpointsRow, singlePass bool,
) (endpoints []int64, limits []int32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.SortStableFunc(due,
		func(a, b db.DeliveryDueEndpointsRow) int { return cmp.Compare(r.busy[a.Number], r.busy[b.Number]) })
	for _, e := range due {
		limit := perEndpointMax
		if e.Failing || r.failures[e.Number] >= failingAfter {
			limit = perFailingEndpointMax
		}
		if singlePass && r.failures[e.Number] >= singlePassFailuresMax {
			continue
		}
		rest := deliveriesMax - r.total
		n := min(limit-r.busy[e.Number], (rest-reservedForIdle)/shareDivisor)
		if n <= 0 && r.busy[e.Number] == 0 {
			n = min(1, rest)
		}
		if n <= 0 {
			continue
		}
		endpoints, limits = append(endpoints, e.Number), append(limits, int32(n))
		r.busy[e.Number] += n
		r.total += n
	}
	return endpoints, limits
}

// releaseUnfilled gives back the reserved deliveries that the claim did not fill.
func (r *Relay) releaseUnfilled(rows []db.DeliveryClaimRow, p db.DeliveryClaimParams) {
	filled := map[int64]int{}
	for _, row := range rows {
		filled[row.Endpoint]++
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, number := range p.Endpoints {
		r.unreserve(number, int(p.Limits[i])-filled[number])
	}
}

// finish gives back the reserved delivery of an attempt that has ended.
func (r *Relay) finish(endpoint int64) {
	r.mu.Lock()
	r.unreserve(endpoint, 1)
	r.mu.Unlock()
	r.wake()
}

// unreserve gives back n reserved deliveries. The caller holds the mutex.
func (r *Relay) unreserve(endpoint int64, n int) {
	r.total -= n
	if r.busy[endpoint] -= n; r.busy[endpoint] == 0 {
		delete(r.busy, endpoint)
	}
}

// noteResult counts failures in a row, and reports whether this is the first.
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
