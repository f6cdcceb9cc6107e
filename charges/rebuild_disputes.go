package charges

import (
	"context"
	"slices"
	"time"

	"paidonce/db"
	"paidonce/provider"
)

// disputesMargin is by how much longer than charges disputes are read: Stripe tries to deliver an
// event for three days, so that long after it was opened one may have been learnt, and forgotten.
const disputesMargin = 3 * 24 * time.Hour

// allDisputes learns what was forgotten of disputes: those that were opened since, and what became
// of those that were open. One that was decided before, and decided otherwise since, is not found
// in this way.
func (r *rebuild) allDisputes(ctx context.Context, since time.Time) error {
	from := time.Unix(1, 0)
	if since.Add(-disputesMargin).After(from) {
		from = since.Add(-disputesMargin)
	}
	var opened []provider.Dispute
	err := r.provider.ListDisputes(ctx, from, time.Time{}, func(d provider.Dispute) error {
		opened = append(opened, d)
		return nil
	})
	switch {
	case provider.KindOf(err) == provider.Unsupported:
		return nil
	case provider.Denied(err):
		r.log.WarnContext(
			ctx, "disputes that the database has forgotten are not learnt again: the API key may not list them",
			"cause", err,
		)
		return nil
	case err != nil:
		return err
	}
	slices.Reverse(opened)
	for _, d := range opened {
		if err := r.learnDispute(ctx, d); err != nil {
			return err
		}
	}
	return r.openDisputes(ctx)
}

func (r *rebuild) openDisputes(ctx context.Context) error {
	page := db.DisputesOpenParams{MaxRows: rebuildPage}
	for {
		rows, err := db.Read(ctx, r.store.pool, r.store.queries.DisputesOpen, page)
		if err != nil || len(rows) == 0 {
			return err
		}
		for _, row := range rows {
			page.AfterID = row.ID
			got, err := r.provider.GetDispute(ctx, row.ProviderID)
			if err != nil {
				return err
			}
			if got == nil { // of another account of the provider
				continue
			}
			if err := r.learnDispute(ctx, *got); err != nil {
				return err
			}
		}
	}
}

// learnDispute writes a dispute of one of our charges, with the events of what is new.
func (r *rebuild) learnDispute(ctx context.Context, d provider.Dispute) error {
	asOf, _ := r.provider.Now()
	_, err := r.writeOne(ctx, d.ID, provider.Tags{}, nil, func(
		ctx context.Context, tx db.DBTX,
	) (bool, error) {
		row, found, err := db.Found(r.store.queries.ChargeByProvider(ctx, tx, &d.ChargeID))
		if err != nil || !found || row.SettledAt == nil {
			return false, err
		}
		change, err := r.store.planDispute(ctx, tx, &row, disputeState{Dispute: d, asOf: asOf})
		if err != nil {
			return false, err
		}
		err = r.store.queries.ChargeSetDisputed(
			ctx, tx, db.ChargeSetDisputedParams{Disputed: row.Disputed, ID: row.ID},
		)
		if err != nil {
			return false, err
		}
		charge, err := fromRow(row)
		if err != nil {
			return false, db.Final(err)
		}
		o := trigger{account: row.AccountID, at: time.Now(), livemode: row.Livemode} //tidy:clock shown to people
		return true, r.store.writeDispute(ctx, tx, charge, o, *change)
	})
	return err
}
