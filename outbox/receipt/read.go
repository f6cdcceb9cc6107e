package receipt

import (
	"context"
	"time"

	"paidonce/db"
)

// Begin switches receipts on. A server calls it before it takes charges. The first call sets the
// point from which events are read; later calls change nothing. Errors: the database's.
func (m *Mailer) Begin(ctx context.Context) error {
	return db.Retry(ctx,
		func(ctx context.Context) error { return m.queries.ReceiptsBegin(ctx, m.cfg.Pool) })
}

// read inserts receipts for the next events, and reports whether there may be more.
func (m *Mailer) read(ctx context.Context) (more bool, err error) {
	// One statement moves the cursor and inserts the rows, and a charge has one row. So run again
	// it goes on from the cursor.
	err = db.Retry(ctx, func(ctx context.Context) error {
		found, err := m.queries.ReceiptsHaveNew(ctx, m.cfg.Pool)
		if err != nil || !found {
			return err
		}
		row, err := m.queries.ReceiptsRead(context.WithoutCancel(ctx), m.cfg.Pool,
			db.ReceiptsReadParams{MaxRows: readBatch, Oldest: Oldest})
		if err != nil {
			return err
		}
		more = row.Looked == readBatch
		m.counts.made.Add(row.Made)
		for range row.Expired {
			m.count(stateExpired, 0)
		}
		return nil
	})
	return more, err
}

// cleanUp marks as unknown the receipts whose mailer is gone, and deletes old ones. It returns how
// many were marked.
func (m *Mailer) cleanUp(ctx context.Context) (abandoned int64, err error) {
	abandoned, err = m.queries.ReceiptsAbandoned(ctx, m.cfg.Pool, abandonedAfter)
	if err != nil {
		return 0, err
	}
	for range abandoned {
		m.count(stateUnknown, 0)
	}
	if m.cfg.TTL == 0 {
		return abandoned, nil
	}
	// At twice the age after which nothing is sent, the charge cannot get another receipt, even
	// from an event that is read late.
	ttl := max(m.cfg.TTL, 2*Oldest)
	for ctx.Err() == nil {
		n, err := m.queries.ReceiptsClean(ctx, m.cfg.Pool, db.ReceiptsCleanParams{
			Ttl: ttl, MaxRows: cleanBatch,
		})
		if err != nil || n < cleanBatch {
			return abandoned, err
		}
	}
	return abandoned, nil
}

// cleanUpDue reports whether it is time to clean up.
func (m *Mailer) cleanUpDue() bool {
	if time.Since(m.cleanedUp) < cleanUpEvery {
		return false
	}
	m.cleanedUp = time.Now()
	return true
}
