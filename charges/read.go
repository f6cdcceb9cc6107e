package charges

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"paidonce/db"
	"paidonce/provider"
)

func (s *Store) row(ctx context.Context, accountID, id string) (row db.Charge, err error) {
	err = db.Retry(ctx, func(ctx context.Context) (err error) {
		row, err = s.queries.ChargeGet(ctx, s.pool, db.ChargeGetParams{AccountID: accountID, ID: id})
		return err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return row, ErrNotFound
	}
	return row, err
}

func (s *Store) operation(ctx context.Context, id string) (string, error) {
	var op string
	err := db.Retry(ctx, func(ctx context.Context) (err error) {
		op, err = s.queries.ChargeOperation(ctx, s.pool, id)
		return err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return "", ErrNotFound
	}
	return op, err
}

func (s *Store) get(ctx context.Context, accountID, id string) (Charge, error) {
	row, err := s.row(ctx, accountID, id)
	if err != nil {
		return Charge{}, err
	}
	return fromRow(row)
}

// list reads one row more than asked for, to know whether there are more.
func (s *Store) list(ctx context.Context, accountID string, f Filter) (Page, error) {
	within := wholeTime
	if f.CreatedFrom != nil {
		within.above.at = *f.CreatedFrom
	}
	if f.CreatedBefore != nil {
		within.below.at = *f.CreatedBefore
	}
	if f.EndingBefore != "" {
		cursor, err := s.row(ctx, accountID, f.EndingBefore)
		if err != nil {
			return Page{}, fmt.Errorf("ending_before: %w", err)
		}
		within.startAbove(place{cursor.CreatedAt, cursor.ID})
	}
	if f.StartingAfter != "" {
		cursor, err := s.row(ctx, accountID, f.StartingAfter)
		if err != nil {
			return Page{}, fmt.Errorf("starting_after: %w", err)
		}
		within.startBelow(place{cursor.CreatedAt, cursor.ID})
	}
	var rows []db.Charge
	err := db.Retry(ctx, func(ctx context.Context) (err error) {
		rows, err = s.listRows(ctx, accountID, f, within)
		return err
	})
	if err != nil {
		return Page{}, err
	}
	page := Page{HasMore: len(rows) > f.Limit, Charges: make([]Charge, 0, len(rows))}
	if page.HasMore {
		rows = rows[:f.Limit]
	}
	if f.EndingBefore != "" {
		slices.Reverse(rows)
	}
	for _, row := range rows {
		c, err := fromRow(row)
		if err != nil {
			return Page{}, err
		}
		page.Charges = append(page.Charges, c)
	}
	return page, nil
}

// listRows asks the statement that fits the filter: each has one index to go by.
func (s *Store) listRows(ctx context.Context, accountID string, f Filter, in span) ([]db.Charge, error) {
	ctx = db.OnlyReads(ctx)
	most := int32(f.Limit + 1) //nolint:gosec // 101 at most
	sorts := []bool{false, true}
	switch provider.Status(f.Status) {
	case provider.Pending:
		p := db.ChargeListPendingParams{
			AccountID: accountID, Customer: f.Customer, Most: most,
			AboveAt: in.above.at, AboveID: in.above.id, BelowAt: in.below.at, BelowID: in.below.id,
		}
		if f.EndingBefore != "" {
			return s.queries.ChargeListPendingBefore(ctx, s.pool, db.ChargeListPendingBeforeParams(p))
		}
		return s.queries.ChargeListPending(ctx, s.pool, p)
	case provider.Succeeded:
		sorts = []bool{false}
	case provider.Failed:
		sorts = []bool{true}
	}
	if f.Customer != "" {
		p := db.ChargeListOfCustomerParams{
			AccountID: accountID, Customer: f.Customer, Sorts: sorts, Pending: f.Status == "", Most: most,
			AboveAt: in.above.at, AboveID: in.above.id, BelowAt: in.below.at, BelowID: in.below.id,
		}
		if f.EndingBefore != "" {
			return s.queries.ChargeListOfCustomerBefore(ctx, s.pool, db.ChargeListOfCustomerBeforeParams(p))
		}
		return s.queries.ChargeListOfCustomer(ctx, s.pool, p)
	}
	p := db.ChargeListParams{
		AccountID: accountID, Sorts: sorts, Pending: f.Status == "", Most: most,
		AboveAt: in.above.at, AboveID: in.above.id, BelowAt: in.below.at, BelowID: in.below.id,
	}
	if f.EndingBefore != "" {
		return s.queries.ChargeListBefore(ctx, s.pool, db.ChargeListBeforeParams(p))
	}
	return s.queries.ChargeList(ctx, s.pool, p)
}
