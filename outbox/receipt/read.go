package receipt

import (
	"context"
	"time"

	"paidonce/db"
)

// Begin switches receipts on: whoever takes charges calls it before the first one. The first time, events are read from what comes after; later it changes nothing.
// Errors: the database's.
func (m *Mailer) Begin(ctx context.Context) error {
	return db.Retry(ctx, func(ctx context.Context) error { return m.queries.ReceiptsBegin(ctx, m.cfg.Pool) })
}

// read makes receipts of the next events, and tells whether there may be more.
func (m *Mailer) read(ctx context.Context) (more bool, err error) {
	// The move of the cursor and the rows are one statement, and a charge has one row: run again, it goes on from wherever it is.
	err = db.Retry(ctx, func(ctx context.Context) error {
		fresh, err := m.queries.ReceiptsHaveNew(ctx, m.cfg.Pool)
		if err != nil || !fresh {
			return err
		}
		row, err := m.queries.ReceiptsRead(context.WithoutCancel(ctx), m.cfg.Pool, db.ReceiptsReadParams{Most: readBatch, Oldest: Oldest})
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

// tidy calls by their name the mails whose sender is gone, and forgets old receipts. It tells how many of the former there were.
func (m *Mailer) tidy(ctx context.Context) (abandoned int64, err error) {
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
	// Twice the age after which nothing is sent: by then its charge cannot get another, even from an event that is read late.
	ttl := max(m.cfg.TTL, 2*Oldest)
	for ctx.Err() == nil {
		n, err := m.queries.ReceiptsClean(ctx, m.cfg.Pool, db.ReceiptsCleanParams{Ttl: ttl, Most: cleanBatch})
		if err != nil || n < cleanBatch {
			return abandoned, err
		}
	}
	return abandoned, nil
}

// tidyNow reports whether it is time to tidy.
func (m *Mailer) tidyNow() bool {
	if time.Since(m.tidied) < tidyEvery {
		return false
	}
	m.tidied = time.Now()
	return true
}
