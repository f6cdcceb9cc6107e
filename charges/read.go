package charges

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"paidonce/db"
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

// list reads one row more than asked for, to know whether there are more. Cursors are compared by time and id, so that charges of
// the same moment are neither skipped nor repeated.
func (s *Store) list(ctx context.Context, accountID string, f Filter) (Page, error) {
	var rows []db.Charge
	most := int32(f.Limit + 1) //nolint:gosec // 101 at most
	var run func(context.Context) error
	if f.EndingBefore != "" {
		cursor, err := s.row(ctx, accountID, f.EndingBefore)
		if err != nil {
			return Page{}, fmt.Errorf("ending_before: %w", err)
		}
		run = func(ctx context.Context) (err error) {
			rows, err = s.queries.ChargeListBefore(ctx, s.pool, db.ChargeListBeforeParams{
				AccountID: accountID, CreatedGte: f.CreatedFrom, CreatedLt: f.CreatedBefore, Customer: db.OrNil(f.Customer), Status: db.OrNil(f.Status),
				BeforeAt: cursor.CreatedAt, BeforeID: cursor.ID, Most: most,
			})
			return err
		}
	} else {
		p := db.ChargeListParams{
			AccountID: accountID, CreatedGte: f.CreatedFrom, CreatedLt: f.CreatedBefore, Customer: db.OrNil(f.Customer), Status: db.OrNil(f.Status), Most: most,
		}
		if f.StartingAfter != "" {
			cursor, err := s.row(ctx, accountID, f.StartingAfter)
			if err != nil {
				return Page{}, fmt.Errorf("starting_after: %w", err)
			}
			p.AfterAt, p.AfterID = &cursor.CreatedAt, &cursor.ID
		}
		run = func(ctx context.Context) (err error) {
			rows, err = s.queries.ChargeList(ctx, s.pool, p)
			return err
		}
	}
	if err := db.Retry(ctx, run); err != nil {
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
