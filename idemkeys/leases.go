package idemkeys

import (
	"context"
	"time"

	"paidonce/db"
)

// Leases takes and releases leases, the right to drive operations. Safe for concurrent use.
type Leases struct {
	*core
}

// Now is the database's time, by which leases are counted. Errors: the database's.
func (l *Leases) Now(ctx context.Context) (time.Time, error) {
	return db.Read0(ctx, l.pool, l.queries.Now)
}

// CountParked returns how many operations wait for an operator. Errors: the database's.
func (l *Leases) CountParked(ctx context.Context) (int, error) {
	n, err := db.Read0(ctx, l.pool, l.queries.KeyCountParked)
	return int(n), err
}

// takeOver tries to get the lease of an operation that was read as free or stale, or, for an
// operator, as parked. Of several callers one wins.
func (l *Leases) takeOver(
	ctx context.Context, k record, actor string, parked bool,
) (op *Operation, won bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	if err := l.held(); err != nil {
		return nil, false, err
	}
	row := k.IdempotencyKey
	p := db.KeyTakeOverParams{
		LeaseToken: newLeaseToken(), AccountID: row.AccountID, Key: row.Key,
		OperationID: row.OperationID, SeenToken: row.LeaseToken, SeenAttempts: row.Attempts,
		SeenLockedAt: row.LockedAt, StaleAfter: l.cfg.StaleAfter, KeyWindow: l.cfg.SendWindow,
		LookupSpan: l.cfg.LookupSpan, ServerErrorsMax: serverErrorsMax, Parked: parked,
		Actor: actor, Detail: resumeReason(row), Reached: row.FirstAttemptAt != nil,
	}
	var got []db.KeyLeaseDueRow
	asked, lost := beforeLease(), false // lost: an answer was, so the lease may be taken
	err = db.Retry(ctx, func(ctx context.Context) error {
		taken, found, err := db.Found(l.queries.KeyTakeOver(ctx, l.pool, p))
		if found {
			got = []db.KeyLeaseDueRow{db.KeyLeaseDueRow(taken)}
		}
		lost = lost || err != nil && db.Classify(err) == db.Unreachable
		return err
	})
	switch {
	case err != nil:
		if lost {
			l.abandon(possiblyLeased(row, p), "its owner did not hear that it had taken it over")
		}
		return nil, false, err
	case len(got) == 0 && !lost: // somebody else has the lease
		return nil, false, nil
	case len(got) == 0: // or we have it and the answer was lost: the token says which
		if got, err = l.leasedUnder(ctx, p.LeaseToken); err != nil || len(got) == 0 {
			// It is not ours, or not known to be: then it goes stale.
			return nil, false, nil
		}
		got[0].Reached = p.Reached
	}
	l.stats.takenOver.Add(1)
	return operation(&got[0], actor, asked), true, nil
}

// possiblyLeased is as much of an operation as it takes to release its lease.
func possiblyLeased(row db.IdempotencyKey, p db.KeyTakeOverParams) *Operation {
	return &Operation{
		AccountID: row.AccountID, Key: row.Key, ID: row.OperationID,
		Point: Point(row.RecoveryPoint), RequestID: row.RequestID, LeaseToken: p.LeaseToken,
		Actor: p.Actor, Attempts: int(row.Attempts) + 1, Passes: int(row.Passes),
		Reached: p.Reached,
	}
}

func resumeReason(row db.IdempotencyKey) string {
	switch {
	case row.ParkedAt != nil:
		return "it was parked"
	case row.LeaseToken != nil:
		return "its owner is gone"
	}
	return "it was free"
}

// reconciler is the actor of a pass, in the operation's log.
const reconciler = "reconciler"

// LeaseDue leases up to most operations that nobody works on and whose time has come, for the
// reconciler. Operations that were driven since passStart are left out, so that a pass ends. Ask
// for no more than can be driven at once: a lease's time runs from now on. Errors: [ErrHeld], or
// the database's.
func (l *Leases) LeaseDue(ctx context.Context, passStart time.Time, most int) ([]*Operation, error) {
	if err := l.held(); err != nil {
		return nil, err
	}
	p := db.KeyLeaseDueParams{
		KeyWindow: l.cfg.SendWindow, LookupSpan: l.cfg.LookupSpan, PassStart: passStart,
		StaleAfter: l.cfg.StaleAfter,
		MaxRows:    int32(most), Actor: reconciler, LeaseToken: newLeaseToken(), ServerErrorsMax: serverErrorsMax, //nolint:gosec // a handful
	}
	var rows []db.KeyLeaseDueRow
	asked, lost := beforeLease(), false
	err := db.Retry(ctx, func(ctx context.Context) (err error) {
		if lost { // an answer was lost: what that leased would wait until it is stale
			rows, err = l.leasedUnder(ctx, p.LeaseToken)
			if err != nil || len(rows) > 0 {
				return err
			}
		}
		rows, err = l.queries.KeyLeaseDue(ctx, l.pool, p)
		lost = err != nil && db.Classify(err) == db.Unreachable
		return err
	})
	if err != nil {
		return nil, err
	}
	l.stats.leasedDue.Add(int64(len(rows)))
	ops := make([]*Operation, 0, len(rows))
	for i := range rows {
		ops = append(ops, operation(&rows[i], reconciler, asked))
	}
	return ops, nil
}

// leasedUnder reads what was leased by a statement whose answer was lost.
func (l *Leases) leasedUnder(ctx context.Context, token string) ([]db.KeyLeaseDueRow, error) {
	found, err := db.Read(ctx, l.pool, l.queries.KeyLeasedDue, db.KeyLeasedDueParams{
		KeyWindow: l.cfg.SendWindow, LookupSpan: l.cfg.LookupSpan, LeaseToken: token,
	})
	rows := make([]db.KeyLeaseDueRow, 0, len(found))
	for _, f := range found {
		rows = append(rows, db.KeyLeaseDueRow(f))
	}
	return rows, err
}
