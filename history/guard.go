// Package history knows whether the database still is the one that it was. One that was put back to
// an earlier moment, read in from a dump, or promoted without its last moments has forgotten
// claims, and whoever sends such a key again would be charged again. So nothing is claimed in a
// history that nobody has vouched for, until what was forgotten is rebuilt from the provider's
// records.
//
// What shows it: the server's system identifier, the database's oid and the timeline, which the
// claim's own statement compares as well; a mark that only grows, kept in the database and in the
// memory of each server; the claims that this server made last; and, at each start, whether the
// provider's newest records are here. It cannot see a database that was put back while no server
// ran, to a moment after which the provider was never asked to move money: then nothing was
// forgotten that matters. The package knows no charge: it gets the provider's records through an
// interface.
package history

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"paidonce/db"
	"paidonce/internal/backoff"
)

const (
	// checkEvery is how often the history is checked, by one small statement. A fork of the
	// timeline is noticed by every claim in between, and a new connection is looked at before it is
	// used.
	checkEvery = time.Second
	// shortestCheckPause is the shortest pause between two checks, however many callers want one:
	// each is a read of the database.
	shortestCheckPause = 20 * time.Millisecond
	// markEvery is how often a server increments the mark and shows that it is alive. One that has
	// claimed something does so at its next check: then the others notice, too, if that is lost.
	markEvery = 10 * time.Second
	// aliveWithin: servers that were seen this long before the last one have to vouch after a
	// promotion. Six marks: one that is busy or slow has not been given up by then.
	aliveWithin = time.Minute
	// goneAfter is when a server that was not seen any more is forgotten: long after it matters.
	goneAfter = time.Hour
	// holdFor is how long a claim waits for the history to be vouched for, before its caller is
	// told to come again: a look takes milliseconds, a promotion that lost nothing a second or two.
	holdFor = 3 * time.Second
)

// failPauses are those after looks that failed: an outage of the provider is over for the callers
// as soon as they would notice.
var failPauses = backoff.Policy{First: 250 * time.Millisecond, Max: 5 * time.Second}

// ErrHeld says that nothing is claimed, because the database may have forgotten something.
var ErrHeld = errors.New("claims are held until it is known what the database has forgotten")

// Guard holds the claims of this process while the history of the database is in doubt. Make one
// with [New], give [Guard.Connected] to the pool, then [Guard.Use] the pool. Safe for concurrent
// use.
type Guard struct {
	id    string
	cfg   Config
	pool  db.DBTX
	token string

	working atomic.Bool
	open    atomic.Bool
	opened  chan struct{} // closed while open; guarded by mu
	recheck chan struct{}

	mu      sync.Mutex
	place   string // of the database as this process knows it; "" before the first look
	mark    int64
	probed  bool // the records were read since this process started
	marked  time.Time
	newest  string // of the claims that the mark counts
	reason  string // why claims are held
	cause   error  // of the last look that came to nothing, as long as nothing shows a fork
	logged  string // what was logged last, so that it is logged once
	failing int
}

// New returns a guard that holds everything until [Guard.Work] has looked for the first time.
func New() *Guard {
	return &Guard{
		id: db.NewID("srv"), token: db.NewID("rec"), opened: make(chan struct{}),
		recheck: make(chan struct{}, 1), reason: "the database was not looked at yet",
	}
}

// Use sets what is guarded.
func (g *Guard) Use(pool db.DBTX, cfg Config) { g.pool, g.cfg = pool, cfg }

// Connected looks at a new connection before it is used: it may lead to another database than the
// last one did.
func (g *Guard) Connected(ctx context.Context, conn db.DBTX) error {
	g.mu.Lock()
	place, mark := g.place, g.mark
	g.mu.Unlock()
	if place == "" {
		return nil
	}
	h, err := db.ReadHistory(ctx, conn, g.cfg.Records.Claimed())
	if err == nil && (h.Place != place || h.Mark < mark || h.Missing > 0 || h.Name() != h.Vouched) {
		g.close("a new connection leads to a database whose history nobody has vouched for")
		g.Recheck()
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
	g.Recheck() // what was in the way may have passed
	select {
	case <-opened:
		return nil
	case <-ctx.Done():
	case <-time.After(holdFor):
	}
	return g.Held()
}

// Recheck makes [Guard.Work] look at once.
func (g *Guard) Recheck() {
	select {
	case g.recheck <- struct{}{}:
	default: // a check is requested already
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
	g.failing, g.logged, g.cause = 0, "", nil
}

// Work looks again and again until ctx ends, and recovers what was forgotten.
func (g *Guard) Work(ctx context.Context) {
	g.working.Store(true)
	for ctx.Err() == nil {
		pause := checkEvery
		if err := g.check(ctx); err != nil && ctx.Err() == nil {
			pause = g.noteFailure(ctx, err)
		}
		g.rest(ctx, pause)
	}
}

// rest waits for the next look. Whoever waits for one makes it come early, but not at once: the
// provider may be asked in it.
func (g *Guard) rest(ctx context.Context, pause time.Duration) {
	least := shortestCheckPause
	if pause != checkEvery {
		least = failPauses.First
	}
	backoff.Sleep(ctx, least)
	select {
	case <-ctx.Done():
	case <-g.recheck:
	case <-time.After(pause):
	}
}

// Leave says that this server claims no more, and that nothing it has claimed is under way. Until
// then it would be waited for after a promotion.
func (g *Guard) Leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second) // a hint, no more
	defer cancel()
	_ = db.New().ServerLeave(ctx, g.pool, g.id)
}

// HeldOrCheck is Held where this guard works, and Check elsewhere.
func (g *Guard) HeldOrCheck(ctx context.Context) error {
	if g.working.Load() {
		return g.Held()
	}
	return g.Check(ctx)
}

// Check returns nil when somebody has vouched for the database as it is; otherwise nothing may be
// claimed or driven. It is for commands that end by themselves.
func (g *Guard) Check(ctx context.Context) error {
	h, err := db.Read(ctx, g.pool, db.ReadHistory, nil)
	if err != nil {
		return err
	}
	if reason, _ := g.compare(h); reason != "" || h.ForkedAt != nil {
		return fmt.Errorf(
			"%w (`paidonce serve` finds out by itself; `paidonce provider recover` does it by hand)",
			ErrHeld,
		)
	}
	g.release()
	return nil
}

// noteFailure counts a check that failed, logs its error once, and returns how long to wait.
func (g *Guard) noteFailure(ctx context.Context, err error) time.Duration {
	if errors.Is(err, db.ErrUnavailable) { // every request says so already
		return failPauses.First
	}
	g.mu.Lock()
	g.failing++
	pause := failPauses.After(g.failing)
	unlogged := !g.open.Load() && g.logged != err.Error()
	g.logged = err.Error()
	g.mu.Unlock()
	if unlogged {
		g.cfg.Log.WarnContext(
			ctx,
			"claims are held: what the database may have forgotten could not be looked up; it is tried again",
			"cause", err,
		)
	}
	return pause
}

// check compares the database with what it was, and opens or holds the claims of this process.
func (g *Guard) check(ctx context.Context) error {
	var h db.History
	claimed := g.cfg.Records.Claimed()
	h, err := db.Read(ctx, g.pool, db.ReadHistory, claimed)
	if err != nil {
		return err
	}
	reason, lossy := g.compare(h)
	switch {
	case g.cfg.Off:
		return g.continueForked(ctx, h, reason)
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

// compare says how the database is not what it was, or returns "". lossy reports that something is
// surely or probably missing.
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
	mark, err := db.Write(
		ctx, g.pool, db.New().HistoryMark,
		db.HistoryMarkParams{Mark: mark, ID: g.id, Gone: goneAfter},
	)
	if err != nil {
		return err
	}
	g.mu.Lock()
	g.mark, g.marked, g.newest = max(g.mark, mark), time.Now(), newest
	g.mu.Unlock()
	return nil
}

// probe reads the newest records once a process: a copy that was put back in its own place, while
// no server ran, shows in nothing else.
func (g *Guard) probe(ctx context.Context, h db.History) error {
	if h.Vouched == "" {
		if err := g.adopt(ctx, h); err != nil {
			return err
		}
	}
	if g.probed {
		return nil
	}
	what, err := g.cfg.Records.FindForgotten(ctx)
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
	_, err := db.Write(
		ctx, g.pool, db.New().HistoryAdopt,
		db.HistoryAdoptParams{History: h.Name(), Timeline: h.Timeline},
	)
	return err
}

// continueForked is what PAIDONCE_RECOVER=off does: the fork is logged, and claims go on.
func (g *Guard) continueForked(ctx context.Context, h db.History, reason string) error {
	if reason != "" || h.ForkedAt != nil {
		g.cfg.Log.ErrorContext(
			ctx,
			"the database may have forgotten charges, and PAIDONCE_RECOVER is off: run `paidonce provider recover`",
			"reason", reason,
		)
	}
	if h.Vouched != h.Name() {
		if err := g.adopt(ctx, h); err != nil {
			return err
		}
	}
	g.mu.Lock()
	g.mark, g.place = h.Mark, h.Place // what was logged once is not logged again
	g.mu.Unlock()
	if h.ForkedAt == nil {
		g.release()
	}
	return g.remember(ctx, h, nil)
}
