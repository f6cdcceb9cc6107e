package idemkeys

import (
	"context"
	"fmt"
	"hash/fnv"
	"log/slog"
	"time"

	"paidonce/db"
)

const (
	// Pauses between the reconciler's attempts start at a second, double, and stop growing at five
	// minutes: an outage of a day then costs a few hundred calls an operation.
	pauseFirst = time.Second
	pauseMax   = 5 * time.Minute
	// missPauses is how many looks are spread over the span in which absence is proven: enough for
	// the default of three, with one to spare.
	missPauses = 4
)

// pauseAfter is how long an operation rests before the reconciler drives it again. Half of the
// pause is spread by the key, so that operations that failed together do not come back together.
// passes counts only the reconciler's attempts: what clients tried in vain is due at once, so an
// impatient client makes nobody wait.
func pauseAfter(passes int, key string) time.Duration {
	if passes == 0 {
		return 0
	}
	p := pauseMax
	if passes < 10 {
		p = min(pauseFirst<<(passes-1), pauseMax)
	}
	spread := fnv.New64a()
	_, _ = fmt.Fprint(spread, passes, key)
	return p/2 + time.Duration(spread.Sum64()%uint64(p/2+1)) //nolint:gosec // below p, which is five minutes at most
}

// pause is how long an operation rests after a run without an outcome.
func (l *Leases) pause(op *Operation, u *Unresolved) time.Duration {
	if u.Missed { // more frequent look-ups prove nothing sooner
		return max(l.cfg.LookupSpan/missPauses, u.RetryAfter)
	}
	return max(pauseAfter(op.Passes, op.Key), u.RetryAfter)
}

// writeGrace is how long releasing or parking an operation may take after its run is over. Both are
// fenced, so being late does no harm, and a release that is not written costs the next caller the
// rest of the lease.
const writeGrace = 3 * time.Second

// release releases the lease. When even that cannot be written, the lease goes stale by itself.
func (l *Leases) release(ctx context.Context, op *Operation, u *Unresolved) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeGrace)
	defer cancel()
	pause := l.pause(op, u)
	f := op.Fence()
	p := db.KeyReleaseParams{
		LastError: bounded(u.Reason), Actor: op.Actor, Reference: bounded(u.Reference),
		Pause: pause, Missed: u.Missed, Anew: u.Anew, Skew: u.Skew.Seconds(),
		NotReached: u.NotExecuted && !op.Reached, AccountID: f.AccountID, Key: f.Key,
		OperationID: f.OperationID, LeaseToken: f.LeaseToken, RecoveryPoint: string(f.Point),
	}
	if u.ServerError {
		p.ServerErrors = 1
	}
	_, err := db.Repeat(ctx, l.pool, l.queries.KeyRelease, p)
	log := l.logOp(op)
	if err != nil {
		log.ErrorContext(ctx, "could not release the lease; it will go stale", "cause", err)
		return
	}
	l.stats.released.Add(1)
	log.WarnContext(ctx, "no outcome yet", "reason", u.Reason, "not_executed", u.NotExecuted,
		"next_run_in", pause.Round(time.Millisecond).String())
}

// abandon releases a lease that was, or may have been, written after its owner had given up, so
// that the next caller need not wait for it to go stale. Nothing was sent under it.
func (l *Leases) abandon(op *Operation, why string) {
	if !l.running.enter(unlimited) {
		return
	}
	go func() {
		defer l.running.leave()
		l.release(context.Background(), op, &Unresolved{Reason: why, NotExecuted: true})
	}()
}

// park leaves the operation to an operator. parked is false when the lease is no longer ours; the
// stored row says what happened. Errors: the database's.
func (l *Leases) park(ctx context.Context, op *Operation, u *Unresolved) (parked bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeGrace)
	defer cancel()
	f := op.Fence()
	n, err := db.Repeat(ctx, l.pool, l.queries.KeyPark, db.KeyParkParams{
		LastError: bounded(u.Reason), Actor: op.Actor, Reference: bounded(u.Reference),
		AccountID: f.AccountID, Key: f.Key, OperationID: f.OperationID, LeaseToken: f.LeaseToken,
		RecoveryPoint: string(f.Point),
	})
	if err != nil {
		l.logOp(op).ErrorContext(
			ctx, "could not park the operation; its lease will go stale", "reason", u.Reason,
			"cause", err,
		)
	}
	return n > 0, err
}

func (c *core) logOp(op *Operation) *slog.Logger {
	return c.log.With(
		"operation_id", op.ID, "request_id", op.RequestID, "attempt", op.Attempts, "point",
		op.Point,
	)
}

// errorMax bounds what is stored of a reason, in bytes.
const errorMax = 1000

func bounded(s string) string { return db.Clean(s, errorMax) }
