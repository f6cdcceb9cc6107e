package history

import (
	"context"
	"errors"
	"strings"
	"time"

	"paidonce/db"
	"paidonce/internal/backoff"
)

const (
	// leaseFor is how long a server reads the records before another one may, unless it says that
	// it goes on: a killed one keeps nobody waiting for long.
	leaseFor = 15 * time.Second
	// renewEvery leaves room for two lost renewals.
	renewEvery = leaseFor / 3
	// callSlack is what a call of the provider may take beyond its limit, until what it made is in
	// its lists.
	callSlack = 2 * time.Second
	// overlap is by how much the second walk through the records overlaps with the first: an object
	// may carry the time at which its request arrived, a call's length before it was made.
	overlap = 5 * time.Minute
)

func cutTimeline(name string) (place, timeline string) {
	i := strings.LastIndexByte(name, '/')
	if i < 0 {
		return name, ""
	}
	return name[:i], name[i+1:]
}

// fork notes that the history has forked: from here on no server claims anything.
func (g *Guard) fork(ctx context.Context, h db.History, reason string, lossy bool) error {
	g.cfg.Log.WarnContext(
		ctx,
		"the database's history has forked: claims are held until it is known that nothing is missing",
		"reason", reason,
	)
	err := db.Retry(ctx, func(ctx context.Context) error {
		return db.New().RecoveryOpen(
			ctx, g.pool,
			db.RecoveryOpenParams{
				Reason: reason, Lossy: lossy, History: h.Name(), Alive: aliveWithin,
			},
		)
	})
	if err != nil {
		return err
	}
	g.mu.Lock()
	g.place, g.mark = h.Place, h.Mark // from here on this is the database
	g.mu.Unlock()
	if lossy {
		g.cfg.Records.ClearClaimed()
	}
	g.Recheck()
	return nil
}

// recover continues the open recovery: it stores what this server knows and, if no other server
// does, reads the provider's records.
func (g *Guard) recover(ctx context.Context, h db.History) error {
	g.close("the database may have forgotten charges; what the provider has is being looked up")
	g.mu.Lock()
	g.place, g.mark = h.Place, max(g.mark, h.Mark)
	g.mu.Unlock()
	q := db.New()
	err := db.Retry(ctx, func(ctx context.Context) error {
		return q.HistoryVouch(ctx, g.pool, db.HistoryVouchParams{ID: g.id, History: h.Name()})
	})
	if err != nil {
		return err
	}
	row, held, err := g.lease(ctx)
	if err != nil || !held {
		return err
	}
	if row.History != h.Name() { // it forked again
		return g.fork(ctx, h, "the database is on yet another timeline", row.Lossy)
	}
	waited := time.Duration(row.AgeSeconds * float64(time.Second))
	settled := g.cfg.CallLimit + callSlack
	switch {
	case row.Lossy:
		return g.rebuild(ctx, h, row, max(settled-waited, 0))
	case row.Silent == 0:
		return g.finish(ctx, h, row)
	case waited > settled:
		return g.fork(
			ctx, h, "a server that claimed keys is gone, and cannot say whether they are here",
			true,
		)
	}
	return nil
}

func (g *Guard) lease(ctx context.Context) (row db.RecoveryLeaseRow, held bool, err error) {
	return db.Found(
		db.Repeat(
			ctx, g.pool, db.New().RecoveryLease,
			db.RecoveryLeaseParams{Token: g.token, Lease: leaseFor},
		),
	)
}

// rebuild reads the records twice: at once, and again when all that was sent before the fork has
// ended.
func (g *Guard) rebuild(
	ctx context.Context, h db.History, row db.RecoveryLeaseRow, settle time.Duration,
) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go g.renew(ctx, stop)
	settled := time.After(settle)
	again, err := g.walk(ctx, row)
	if err == nil {
		// a provider that tells no time is read from the same moment again
		if now, ok := g.cfg.Records.Now(); ok {
			again = now.Add(-overlap)
		}
		select {
		case <-settled:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if settle > 0 {
			err = g.read(ctx, row.N, again)
		}
	}
	if err == nil {
		err = g.finish(ctx, h, row)
	}
	if err != nil {
		_ = db.New().RecoveryFail(
			context.WithoutCancel(ctx), g.pool,
			db.RecoveryFailParams{
				LastError: db.Clean(err.Error(), errorMax), N: row.N, Token: g.token,
			},
		)
	}
	return err
}

// errorMax bounds what is stored of a reason, in bytes.
const errorMax = 1000

// renew keeps the lease while the records are read; losing it stops the reading.
func (g *Guard) renew(ctx context.Context, stop context.CancelCauseFunc) {
	for backoff.Sleep(ctx, renewEvery) {
		if _, held, err := g.lease(ctx); err == nil && !held {
			stop(errors.New("another server reads the records"))
			return
		}
	}
}

// walk reads the records from where the recovery begins, which is decided once, and returns that
// moment.
func (g *Guard) walk(ctx context.Context, row db.RecoveryLeaseRow) (time.Time, error) {
	since := row.Since
	if since == nil {
		from, err := g.cfg.Records.RebuildFrom(ctx)
		if err != nil {
			return from, err
		}
		since = &from
		err = db.Retry(ctx, func(ctx context.Context) error {
			return db.New().RecoverySince(
				ctx, g.pool, db.RecoverySinceParams{N: row.N, Since: from},
			)
		})
		if err != nil {
			return from, err
		}
	}
	g.cfg.Log.InfoContext(
		ctx, "rebuilding what the database has forgotten from the provider's records", "since",
		*since, "reason", row.Reason,
	)
	return *since, g.read(ctx, row.N, *since)
}

func (g *Guard) read(ctx context.Context, n int64, since time.Time) error {
	return g.cfg.Records.Rebuild(ctx, since, func(ctx context.Context, c Counts) error {
		g.cfg.Log.InfoContext(
			ctx, "rebuilt from the provider's records", "charges", c.Charges, "refunds", c.Refunds,
			"captures", c.Captures,
		)
		return db.RetryConflict(ctx, func(ctx context.Context) error {
			return db.New().RecoveryCount(ctx, g.pool, db.RecoveryCountParams{
				Charges: int32(c.Charges), Refunds: int32(c.Refunds), Captures: int32(c.Captures), N: n, //nolint:gosec // of one page
			})
		})
	})
}

// finish vouches for the history and lets claims go on.
func (g *Guard) finish(ctx context.Context, h db.History, row db.RecoveryLeaseRow) error {
	done, found, err := db.Found(db.Repeat(ctx, g.pool, db.New().RecoveryFinish, db.RecoveryFinishParams{
		N: row.N, Token: g.token, History: h.Name(), Timeline: h.Timeline, Lossy: row.Lossy,
	}))
	if err != nil {
		return err
	}
	if !found {
		g.Recheck() // something was learnt meanwhile: look again
		return nil
	}
	g.cfg.Log.WarnContext(ctx, "the database's history is vouched for: claims go on", "reason", row.Reason, "complete", !row.Lossy,
		"charges", done.Charges, "refunds", done.Refunds, "captures", done.Captures)
	g.mu.Lock()
	g.probed = true
	g.mu.Unlock()
	g.Recheck()
	return nil
}
