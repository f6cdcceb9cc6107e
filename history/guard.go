// Package history knows whether the database still is the one that it was. One that was put back to
// an earlier moment, read in from a dump, or promoted without its last moments has forgotten claims,
// and whoever sends such a key again would be charged again. So nothing is claimed in a history that
// nobody has vouched for, until what was forgotten is rebuilt from the provider's books.
//
// What shows it: the server's system identifier, the database's oid and the timeline, which the claim's
// own statement compares as well; a mark that only grows, kept in the database and in the memory of
// each server; the claims that this server made last; and, at each start, whether the provider's books
// begin with something that is not here. It cannot see a database that was put back while no server
// ran, to a moment after which the provider was never asked to move money: then nothing was forgotten
// that matters. The package knows no charge: the books are somebody else's.
package history

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"paidonce/db"
)

// Books are the provider's, the second copy of what was done.
type Books interface {
	// Forgot looks at what was made last there, and says what of it is not here; "" for nothing.
	Forgot(ctx context.Context) (what string, err error)
	// Since returns from when on the books have to be read, in the provider's time.
	Since(ctx context.Context) (time.Time, error)
	// Rebuild writes what the books have since then and the database has not. It may be interrupted
	// anywhere and run again. told is called now and then with what was rebuilt since the last call.
	Rebuild(ctx context.Context, since time.Time, told func(context.Context, Counts) error) error
	// Now returns the provider's time; ok is false while it is not known.
	Now() (at time.Time, ok bool)
	// Claimed returns the operations that this process has claimed last.
	Claimed() []string
	// Forget makes Claimed begin anew: what is missing of them is known by now.
	Forget()
}

// Counts are what was rebuilt.
type Counts struct{ Charges, Refunds, Captures int }

// Config is what a guard needs to know.
type Config struct {
	Books Books
	Log   *slog.Logger
	// Off: a fork is told and otherwise left to a person (PAIDONCE_RECOVER=off).
	Off bool
	// CallLimit is how long one call of the provider may take: what a server that is gone has sent may
	// be carried out until then.
	CallLimit time.Duration
}

const (
	// lookEvery is how often the history is looked at: one small question. A fork of the timeline is
	// noticed by every claim in between, and a new connection is looked at before it is used.
	lookEvery = time.Second
	// lookLeast is between two looks, however many callers want one: each is a question to the database.
	lookLeast = 20 * time.Millisecond
	// markEvery is how often a server counts the mark up and says that it is there. One that has claimed
	// something does so at its next look: then the others notice, too, if that is taken back.
	markEvery = 10 * time.Second
	// aliveWithin: servers that were seen this long before the last one have to vouch after a promotion.
	// Six marks: one that is busy or slow has not been given up by then.
	aliveWithin = time.Minute
	// goneAfter is when a server that was not seen any more is forgotten: long after it matters.
	goneAfter = time.Hour
	// holdFor is how long a claim waits for the history to be vouched for, before its caller is told to
	// come again: a look takes milliseconds, a promotion that lost nothing a second or two.
	holdFor = 3 * time.Second
	// After a failure the next look waits this long, growing to the maximum: an outage of the provider
	// is over for the callers as soon as they would notice.
	failPauseFirst = 250 * time.Millisecond
	failPauseMax   = 5 * time.Second
)

// ErrHeld: nothing is claimed, because the database may have forgotten something.
var ErrHeld = errors.New("claims are held until it is known what the database has forgotten")

// Guard holds the claims of this process while the history of the database is in doubt. Make one with
// [New], give [Guard.Connected] to the pool, then [Guard.Use] the pool. Safe for concurrent use.
type Guard struct {
	id    string
	cfg   Config
	pool  *pgxpool.Pool
	token string

	working atomic.Bool
	open    atomic.Bool
	opened  chan struct{} // closed while open; guarded by mu
	kick    chan struct{}

	mu      sync.Mutex
	place   string // of the database as this process knows it; "" before the first look
	mark    int64
	probed  bool // the books were looked at since this process started
	marked  time.Time
	newest  string // of the claims that the mark counts
	reason  string // why claims are held
	cause   error  // of the last look that came to nothing, as long as nothing shows a fork
	told    string // what was logged last, so that it is logged once
	failing int
}

// New returns a guard that holds everything until [Guard.Work] has looked for the first time.
func New() *Guard {
	return &Guard{id: db.NewID("srv"), token: db.NewID("rec"), opened: make(chan struct{}), kick: make(chan struct{}, 1), reason: "the database was not looked at yet"}
}

// Use sets what is guarded.
func (g *Guard) Use(pool *pgxpool.Pool, cfg Config) { g.pool, g.cfg = pool, cfg }

// Connected looks at a new connection before it is used: it may lead to another database than the last
// one did.
func (g *Guard) Connected(ctx context.Context, c *pgx.Conn) error {
	g.mu.Lock()
	place, mark := g.place, g.mark
	g.mu.Unlock()
	if place == "" {
		return nil
	}
	h, err := db.ReadHistory(ctx, c, g.cfg.Books.Claimed())
	if err == nil && (h.Place != place || h.Mark < mark || h.Missing > 0 || h.Name() != h.Vouched) {
		g.close("a new connection leads to a database whose history nobody has vouched for")
		g.Kick()
	}
	return nil // a standby, or a schema that is being changed: its statements fail by themselves
}

// Held reports whether claims are held at this moment, and why.
func (g *Guard) Held() error {
	if g.open.Load() {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return errors.Join(ErrHeld, errors.New(g.reason), g.cause)
}

// Wait returns nil as soon as claims may go on, or, after a few seconds, why they may not.
func (g *Guard) Wait(ctx context.Context) error {
	if g.open.Load() {
		return nil
	}
	g.mu.Lock()
	opened := g.opened
	g.mu.Unlock()
	g.Kick() // what was in the way may have passed
	select {
	case <-opened:
		return nil
	case <-ctx.Done():
	case <-time.After(holdFor):
	}
	return g.Held()
}

// Kick makes [Guard.Work] look at once.
func (g *Guard) Kick() {
	select {
	case g.kick <- struct{}{}:
	default: // it will
	}
}

func (g *Guard) close(reason string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.reason, g.cause = reason, nil
	if g.open.Swap(false) {
		g.opened = make(chan struct{})
	}
}

func (g *Guard) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.open.Swap(true) {
		close(g.opened)
	}
	g.failing, g.told, g.cause = 0, "", nil
}

// Work looks again and again until ctx ends, and recovers what was forgotten.
func (g *Guard) Work(ctx context.Context) {
	g.working.Store(true)
	for ctx.Err() == nil {
		pause := lookEvery
		if err := g.look(ctx); err != nil && ctx.Err() == nil {
			pause = g.failed(ctx, err)
		}
		g.rest(ctx, pause)
	}
}

// rest waits for the next look. Whoever waits for one makes it come early, but not at once: the provider
// may be asked in it.
func (g *Guard) rest(ctx context.Context, pause time.Duration) {
	least := lookLeast
	if pause != lookEvery {
		least = failPauseFirst
	}
	select {
	case <-ctx.Done():
	case <-time.After(least):
	}
	select {
	case <-ctx.Done():
	case <-g.kick:
	case <-time.After(pause):
	}
}

// Leave says that this server claims no more, and that nothing it has claimed is under way. Until then it
// would be waited for after a promotion.
func (g *Guard) Leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second) // a hint, no more
	defer cancel()
	_ = db.New().ServerLeave(ctx, g.pool, g.id)
}

// Doubt is Held where this guard works, and Check elsewhere.
func (g *Guard) Doubt(ctx context.Context) error {
	if g.working.Load() {
		return g.Held()
	}
	return g.Check(ctx)
}

// Check returns nil when somebody has vouched for the database as it is; otherwise nothing may be claimed
// or driven. It is for commands that end by themselves.
func (g *Guard) Check(ctx context.Context) error {
	var h db.History
	err := db.Retry(ctx, func(ctx context.Context) (err error) {
		h, err = db.ReadHistory(ctx, g.pool, nil)
		return err
	})
	if err != nil {
		return err
	}
	if reason, _ := g.compare(h); reason != "" || h.ForkedAt != nil {
		return fmt.Errorf("%w (`paidonce serve` finds out by itself; `paidonce provider recover` does it by hand)", ErrHeld)
	}
	g.release()
	return nil
}

// failed notes a look that came to nothing, tells it once, and returns how long to wait.
func (g *Guard) failed(ctx context.Context, err error) time.Duration {
	if errors.Is(err, db.ErrUnavailable) { // every request says so already
		return failPauseFirst
	}
	g.mu.Lock()
	pause := min(failPauseFirst<<min(g.failing, 10), failPauseMax)
	g.failing++
	news := !g.open.Load() && g.told != err.Error()
	g.told = err.Error()
	g.mu.Unlock()
	if news {
		g.cfg.Log.WarnContext(ctx, "claims are held: what the database may have forgotten could not be looked up; it is tried again", "cause", err)
	}
	return pause
}

// look compares the database with what it was, and opens or holds the claims of this process.
func (g *Guard) look(ctx context.Context) error {
	var h db.History
	claimed := g.cfg.Books.Claimed()
	err := db.Retry(ctx, func(ctx context.Context) (err error) {
		h, err = db.ReadHistory(ctx, g.pool, claimed)
		return err
	})
	if err != nil {
		return err
	}
	reason, lossy := g.compare(h)
	switch {
	case g.cfg.Off:
		return g.leave(ctx, h, reason)
	case h.ForkedAt != nil && reason == "":
		return g.recover(ctx, h)
	case h.ForkedAt != nil, reason != "":
		g.close(reason)
		return g.fork(ctx, h, reason, lossy)
	}
	if err := g.probe(ctx, h); err != nil {
		g.mu.Lock()
		g.cause = err
		g.mu.Unlock()
		return err
	}
	if err := g.remember(ctx, h, claimed); err != nil || !g.probed {
		return err
	}
	g.release()
	return nil
}

// compare says in what the database is not what it was; "" for nothing. lossy: something is surely or
// probably missing.
func (g *Guard) compare(h db.History) (reason string, lossy bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case h.Missing > 0:
		return "operations that this server has claimed are not in the database any more", true
	case h.Mark < g.mark, g.place != "" && h.Place != g.place:
		return "the database was replaced by an older or another one while this server ran", true
	case h.Vouched == "" || h.Vouched == h.Name():
		return "", false
	case h.ForkedAt != nil: // noticed already
		return "", false
	}
	if place, _ := cutTimeline(h.Vouched); place == h.Place {
		return "the database is on another timeline: it was promoted, or restored", false
	}
	return "the database is another one than was vouched for: a copy, or a dump read in", true
}

// remember keeps what this process knows of the database, and counts the mark up now and then.
func (g *Guard) remember(ctx context.Context, h db.History, claimed []string) error {
	newest := slices.Max(append(claimed, "")) // they are in order of time
	g.mu.Lock()
	due := time.Since(g.marked) >= markEvery || newest > g.newest
	g.place, g.mark = h.Place, max(g.mark, h.Mark)
	mark := g.mark
	g.mu.Unlock()
	if !due {
		return nil
	}
	err := db.RetryConflict(ctx, func(ctx context.Context) (err error) {
		mark, err = db.New().HistoryMark(ctx, g.pool, db.HistoryMarkParams{Mark: mark, ID: g.id, Gone: goneAfter})
		return err
	})
	if err != nil {
		return err
	}
	g.mu.Lock()
	g.mark, g.marked, g.newest = max(g.mark, mark), time.Now(), newest
	g.mu.Unlock()
	return nil
}

// probe looks at the books once a process: a copy that was put back in its own place, while no server
// ran, shows in nothing else.
func (g *Guard) probe(ctx context.Context, h db.History) error {
	if h.Vouched == "" {
		if err := g.adopt(ctx, h); err != nil {
			return err
		}
	}
	if g.probed {
		return nil
	}
	what, err := g.cfg.Books.Forgot(ctx)
	if err != nil {
		return err
	}
	g.probed = true
	if what == "" {
		return nil
	}
	g.probed = false // what is found there now is found again after the recovery, or not
	reason := "the provider has what the database has not: " + what
	g.close(reason)
	return g.fork(ctx, h, reason, true)
}

func (g *Guard) adopt(ctx context.Context, h db.History) error {
	return db.RetryConflict(ctx, func(ctx context.Context) error {
		_, err := db.New().HistoryAdopt(ctx, g.pool, db.HistoryAdoptParams{History: h.Name(), Timeline: h.Timeline})
		return err
	})
}

// leave is what PAIDONCE_RECOVER=off comes to: the fork is told, and claims go on.
func (g *Guard) leave(ctx context.Context, h db.History, reason string) error {
	if reason != "" || h.ForkedAt != nil {
		g.cfg.Log.ErrorContext(ctx, "the database may have forgotten charges, and PAIDONCE_RECOVER is off: run `paidonce provider recover`", "reason", reason)
	}
	if h.Vouched != h.Name() {
		if err := g.adopt(ctx, h); err != nil {
			return err
		}
	}
	g.mu.Lock()
	g.mark, g.place = h.Mark, h.Place // what was told once is not told again
	g.mu.Unlock()
	if h.ForkedAt == nil {
		g.release()
	}
	return g.remember(ctx, h, nil)
}
