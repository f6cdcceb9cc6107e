package charges

import (
	"context"
	"fmt"
	"time"

	"paidonce/db"
)

// PaymentIntentFilter selects payment intents of an account for a list, as [Filter] does charges.
type PaymentIntentFilter struct {
	Limit         int // 1-100
	StartingAfter string
	EndingBefore  string
	CreatedFrom   *time.Time
	CreatedBefore *time.Time
	Customer      string
	WithCharges   bool // shows the latest charges in full
}

// PaymentIntentPage is a page of payment intents, newest first.
type PaymentIntentPage struct {
	PaymentIntents []PaymentIntent
	HasMore        bool
}

// GetPaymentIntent returns an intent as it is now. Errors: [ErrNotFound], or the database's.
func (s *Service) GetPaymentIntent(
	ctx context.Context, accountID, id string, inFull bool,
) (PaymentIntent, error) {
	i, err := s.store.clientIntent(ctx, accountID, id)
	if err != nil {
		return PaymentIntent{}, s.readError(err)
	}
	shown, err := i.render()
	if err == nil && inFull {
		err = s.store.showLatest(ctx, i, &shown)
	}
	return shown, err
}

// ListPaymentIntents returns a page of intents, newest first. Errors: [ErrNotFound] for a cursor
// that names no intent of the account, or the database's.
func (s *Service) ListPaymentIntents(
	ctx context.Context, accountID string, f PaymentIntentFilter,
) (PaymentIntentPage, error) {
	rows, err := s.store.clientIntents(ctx, accountID, f)
	if err != nil {
		return PaymentIntentPage{}, s.readError(err)
	}
	var page PaymentIntentPage
	page.PaymentIntents, page.HasMore, err = pageOf(rows, f.Limit, f.EndingBefore != "",
		func(row db.PaymentIntentListRow) (PaymentIntent, error) {
			return clientIntent{row.PaymentIntent, row.Charge}.render()
		})
	if err == nil && f.WithCharges {
		err = readChargesOf(ctx, s.store, accountID, page.PaymentIntents,
			func(p *PaymentIntent) *ChargeRef { return p.LatestCharge })
	}
	return page, err
}

func (s *Store) clientIntent(ctx context.Context, accountID, id string) (clientIntent, error) {
	row, found, err := db.One(
		ctx, s.pool, s.queries.PaymentIntentGet,
		db.PaymentIntentGetParams{ID: id, AccountID: accountID},
	)
	if err == nil && !found {
		err = ErrNotFound
	}
	return clientIntent{row.PaymentIntent, row.Charge}, err
}

// clientIntents reads one row more than asked for, as list does, by the statement that fits the
// filter.
func (s *Store) clientIntents(
	ctx context.Context, accountID string, f PaymentIntentFilter,
) ([]db.PaymentIntentListRow, error) {
	ctx = db.OnlyReads(ctx)
	within, backwards := spanOf(f.CreatedFrom, f.CreatedBefore), f.EndingBefore != ""
	if id := f.StartingAfter + f.EndingBefore; id != "" { // one of them at most
		cursor, err := s.clientIntent(ctx, accountID, id)
		if err != nil {
			return nil, fmt.Errorf("cursor: %w", err)
		}
		if at := (position{cursor.intent.CreatedAt, id}); backwards {
			within.startAbove(at)
		} else {
			within.startBelow(at)
		}
	}
	p := db.PaymentIntentListOfCustomerParams{
		AccountID: accountID, Customer: f.Customer, AboveAt: within.above.at,
		AboveID: within.above.id, BelowAt: within.below.at, BelowID: within.below.id,
		MaxRows: int32(f.Limit + 1), //nolint:gosec // 101 at most
	}
	all := db.PaymentIntentListParams{
		AccountID: accountID, AboveAt: p.AboveAt, AboveID: p.AboveID, BelowAt: p.BelowAt,
		BelowID: p.BelowID, MaxRows: p.MaxRows,
	}
	return db.Read0(ctx, s.pool, func(
		ctx context.Context, conn db.DBTX,
	) ([]db.PaymentIntentListRow, error) {
		switch {
		case f.Customer != "" && backwards:
			return listed(s.queries.PaymentIntentListOfCustomerBefore(
				ctx, conn, db.PaymentIntentListOfCustomerBeforeParams(p),
			))
		case f.Customer != "":
			return listed(s.queries.PaymentIntentListOfCustomer(ctx, conn, p))
		case backwards:
			return listed(s.queries.PaymentIntentListBefore(
				ctx, conn, db.PaymentIntentListBeforeParams(all),
			))
		}
		return s.queries.PaymentIntentList(ctx, conn, all)
	})
}

// listed gives the rows of all four statements one type.
func listed[R ~struct {
	PaymentIntent db.PaymentIntent
	Charge        db.Charge
}](rows []R, err error) ([]db.PaymentIntentListRow, error) {
	out := make([]db.PaymentIntentListRow, len(rows))
	for i, row := range rows {
		out[i] = db.PaymentIntentListRow(row)
	}
	return out, err
}
