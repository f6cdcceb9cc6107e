package history

import (
	"context"
	"time"

	"paidonce/db"
)

// Recovery is a time that the history was found to have forked, and what came of it.
type Recovery struct {
	BeganAt time.Time
	Reason  string
	// from when on the provider's records are read, in the provider's time; nil: not yet known
	Since     *time.Time
	Counts    Counts
	LastError string     // why the latest try did not end
	EndedAt   *time.Time // nil: claims are held
}

// Recoveries returns the newest recoveries, up to most. Errors: the database's.
func (g *Guard) Recoveries(ctx context.Context, most int) ([]Recovery, error) {
	rows, err := db.Read(ctx, g.pool, db.New().RecoveryList, int32(most)) //nolint:gosec // a handful
	list := make([]Recovery, 0, len(rows))
	for _, r := range rows {
		list = append(list, Recovery{
			BeganAt: r.BeganAt, Reason: r.Reason, Since: r.Since,
			LastError: db.OrEmpty(r.LastError), EndedAt: r.FinishedAt,
			Counts: Counts{
				Charges: int(r.Charges), Refunds: int(r.Refunds), Captures: int(r.Captures),
			},
		})
	}
	return list, err
}
