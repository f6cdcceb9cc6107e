package charges

import (
	"context"
	"errors"
	"fmt"
	"time"

	"paidonce/db"
	"paidonce/idemkeys"
	"paidonce/provider"
)

// Filter selects charges of an account for a list. Times are compared at full precision: created in
// [CreatedFrom, CreatedBefore).
type Filter struct {
	Limit         int // 1-100
	StartingAfter string
	EndingBefore  string
	CreatedFrom   *time.Time
	CreatedBefore *time.Time
	Customer      string
	Status        string // "", pending, succeeded or failed
	Intent        string // the provider's payment intent
	Reference     string
	WithRefunds   bool
}

// Page is a page of charges, newest first.
type Page struct {
	Charges []Charge
	HasMore bool
}

// Get returns a charge as it is now, with its refunds if they are wanted. Errors: [ErrNotFound], or
// the database's.
func (s *Service) Get(
	ctx context.Context, accountID, id string, withRefunds bool,
) (Charge, error) {
	c, err := s.store.get(ctx, accountID, id)
	if err != nil || !withRefunds {
		return c, s.readError(err)
	}
	shown := []Charge{c}
	err = s.store.readRefunds(ctx, accountID, shown)
	return shown[0], err
}

// List returns a page of charges, newest first. Errors: [ErrNotFound] for a cursor that names no
// charge of the account, or the database's.
func (s *Service) List(ctx context.Context, accountID string, f Filter) (Page, error) {
	p, err := s.store.list(ctx, accountID, f)
	if err == nil && f.WithRefunds {
		err = s.store.readRefunds(ctx, accountID, p.Charges)
	}
	return p, s.readError(err)
}

// RefundFilter selects refunds of an account for a list.
type RefundFilter struct {
	Limit         int // 1-100
	StartingAfter string
	EndingBefore  string
	CreatedFrom   *time.Time // as in [Filter]
	CreatedBefore *time.Time
	Charge        string
	Intent        string // the provider's payment intent, of the charge
	WithCharge    bool   // the whole of it
}

// RefundPage is a page of refunds, newest first.
type RefundPage struct {
	Refunds []Refund
	HasMore bool
}

// GetRefund returns a refund as it is now, with its whole charge if that is wanted. Errors:
// [ErrNotFound], or the database's.
func (s *Service) GetRefund(
	ctx context.Context, accountID, id string, withCharge bool,
) (Refund, error) {
	row, err := s.store.refund(ctx, accountID, id)
	if err != nil {
		return Refund{}, s.readError(err)
	}
	r, err := refundFromRow(row)
	if err == nil && withCharge {
		err = s.store.readCharges(ctx, accountID, &r.Charge)
	}
	return r, err
}

// ListRefunds returns a page of refunds, newest first. Errors: [ErrNotFound] for a cursor that
// names no refund of the account, or the database's.
func (s *Service) ListRefunds(
	ctx context.Context, accountID string, f RefundFilter,
) (RefundPage, error) {
	var rows []db.Refund
	err := s.store.ownID(ctx, accountID, &f.Charge)
	if err == nil {
		rows, err = s.store.refundRows(ctx, accountID, f)
	}
	if err != nil {
		return RefundPage{}, s.readError(err)
	}
	var page RefundPage
	page.Refunds, page.HasMore, err = pageOf(rows, f.Limit, f.EndingBefore != "", refundFromRow)
	if err == nil && f.WithCharge {
		err = readChargesOf(ctx, s.store, accountID, page.Refunds,
			func(r *Refund) *ChargeRef { return &r.Charge })
	}
	return page, err
}

// readError is the error of a read. While the database may have lost rows, what is not found may
// have been forgotten, so nobody is told that it never existed.
func (s *Service) readError(err error) error {
	if held := s.runner.Held(); held != nil && errors.Is(err, ErrNotFound) {
		return fmt.Errorf("%w: %w", idemkeys.ErrUnavailable, held)
	}
	return err
}

// Operation returns the id of the operation that made a charge of any account. It is for operators.
// Errors: [ErrNotFound], or the database's.
func (s *Service) Operation(ctx context.Context, id string) (string, error) {
	return s.store.operation(ctx, id)
}

// Reference returns the reference of the charge that an operation of any account made, or "". It is
// for operators. Errors: the database's.
func (s *Service) Reference(ctx context.Context, operation string) (string, error) {
	reference, _, err := db.One(ctx, s.store.pool, s.store.queries.ChargeReferenceOf, operation)
	return reference, err
}

func (s *Store) row(ctx context.Context, accountID, id string) (db.Charge, error) {
	row, found, err := db.One(
		ctx, s.pool, s.queries.ChargeGet, db.ChargeGetParams{AccountID: accountID, ID: id},
	)
	if err == nil && !found {
		return s.rowAtProvider(ctx, accountID, id)
	}
	return row, err
}

// rowAtProvider finds a charge by the provider's id of it, which looks like ours. Ours comes first.
func (s *Store) rowAtProvider(ctx context.Context, accountID, id string) (db.Charge, error) {
	row, found, err := db.One(
		ctx, s.pool, s.queries.ChargeGetAtProvider,
		db.ChargeGetAtProviderParams{AccountID: accountID, ProviderID: id},
	)
	if err == nil && !found {
		err = ErrNotFound
	}
	return row, err
}

// ownID replaces the provider's id of a charge that a filter names by ours. One that is unknown, or
// empty, stays as it is. Errors: the database's.
func (s *Store) ownID(ctx context.Context, accountID string, id *string) error {
	if *id == "" {
		return nil
	}
	row, err := s.row(ctx, accountID, *id)
	switch {
	case errors.Is(err, ErrNotFound):
		return nil
	case err == nil:
		*id = row.ID
	}
	return err
}

func (s *Store) operation(ctx context.Context, id string) (string, error) {
	op, found, err := db.One(ctx, s.pool, s.queries.ChargeOperation, id)
	if err == nil && !found {
		err = ErrNotFound
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
	within := spanOf(f.CreatedFrom, f.CreatedBefore)
	if f.EndingBefore != "" {
		cursor, err := s.row(ctx, accountID, f.EndingBefore)
		if err != nil {
			return Page{}, fmt.Errorf("ending_before: %w", err)
		}
		within.startAbove(position{cursor.CreatedAt, cursor.ID})
	}
	if f.StartingAfter != "" {
		cursor, err := s.row(ctx, accountID, f.StartingAfter)
		if err != nil {
			return Page{}, fmt.Errorf("starting_after: %w", err)
		}
		within.startBelow(position{cursor.CreatedAt, cursor.ID})
	}
	rows, err := db.Read0(ctx, s.pool, func(
		ctx context.Context, conn db.DBTX,
	) ([]db.Charge, error) {
		return s.listRows(ctx, conn, accountID, f, within)
	})
	if err != nil {
		return Page{}, err
	}
	var page Page
	page.Charges, page.HasMore, err = pageOf(rows, f.Limit, f.EndingBefore != "", fromRow)
	return page, err
}

// listRows runs the statement that fits the filter: each uses one index.
func (s *Store) listRows(
	ctx context.Context, conn db.DBTX, accountID string, f Filter, in span,
) ([]db.Charge, error) {
	ctx = db.OnlyReads(ctx)
	most := int32(f.Limit + 1) //nolint:gosec // 101 at most
	if f.Reference != "" {
		return s.listOfReference(ctx, conn, accountID, f, in, most)
	}
	if f.Intent != "" {
		p := db.ChargeListOfIntentParams{
			AccountID: accountID, IntentID: f.Intent, Customer: f.Customer, Status: f.Status,
			MaxRows: most, AboveAt: in.above.at, AboveID: in.above.id, BelowAt: in.below.at,
			BelowID: in.below.id,
		}
		if f.EndingBefore != "" {
			return s.queries.ChargeListOfIntentBefore(
				ctx, conn, db.ChargeListOfIntentBeforeParams(p),
			)
		}
		return s.queries.ChargeListOfIntent(ctx, conn, p)
	}
	sorts := []bool{false, true}
	switch provider.Status(f.Status) {
	case provider.Pending:
		p := db.ChargeListPendingParams{
			AccountID: accountID, Customer: f.Customer, MaxRows: most,
			AboveAt: in.above.at, AboveID: in.above.id, BelowAt: in.below.at, BelowID: in.below.id,
		}
		if f.EndingBefore != "" {
			return s.queries.ChargeListPendingBefore(ctx, conn, db.ChargeListPendingBeforeParams(p))
		}
		return s.queries.ChargeListPending(ctx, conn, p)
	case provider.Succeeded:
		sorts = []bool{false}
	case provider.Failed:
		sorts = []bool{true}
	}
	if f.Customer != "" {
		p := db.ChargeListOfCustomerParams{
			AccountID: accountID, Customer: f.Customer, Sorts: sorts, Pending: f.Status == "",
			MaxRows: most, AboveAt: in.above.at, AboveID: in.above.id, BelowAt: in.below.at,
			BelowID: in.below.id,
		}
		if f.EndingBefore != "" {
			return s.queries.ChargeListOfCustomerBefore(
				ctx, conn, db.ChargeListOfCustomerBeforeParams(p),
			)
		}
		return s.queries.ChargeListOfCustomer(ctx, conn, p)
	}
	p := db.ChargeListParams{
		AccountID: accountID, Sorts: sorts, Pending: f.Status == "", MaxRows: most,
		AboveAt: in.above.at, AboveID: in.above.id, BelowAt: in.below.at, BelowID: in.below.id,
	}
	if f.EndingBefore != "" {
		return s.queries.ChargeListBefore(ctx, conn, db.ChargeListBeforeParams(p))
	}
	return s.queries.ChargeList(ctx, conn, p)
}

func (s *Store) listOfReference(
	ctx context.Context, conn db.DBTX, accountID string, f Filter, in span, most int32,
) ([]db.Charge, error) {
	p := db.ChargeListOfReferenceParams{
		AccountID: accountID, Reference: f.Reference, Sorts: []bool{false, true}, Status: f.Status,
		Customer: f.Customer, IntentID: f.Intent, MaxRows: most,
		AboveAt: in.above.at, AboveID: in.above.id, BelowAt: in.below.at, BelowID: in.below.id,
	}
	if f.Status != "" {
		p.Sorts = []bool{f.Status == string(provider.Failed)}
	}
	if f.EndingBefore != "" {
		return s.queries.ChargeListOfReferenceBefore(
			ctx, conn, db.ChargeListOfReferenceBeforeParams(p),
		)
	}
	return s.queries.ChargeListOfReference(ctx, conn, p)
}

func (s *Store) refund(ctx context.Context, accountID, id string) (db.Refund, error) {
	row, found, err := db.One(
		ctx, s.pool, s.queries.RefundGet, db.RefundGetParams{AccountID: accountID, ID: id},
	)
	if err == nil && !found {
		row, found, err = db.One(
			ctx, s.pool, s.queries.RefundGetAtProvider,
			db.RefundGetAtProviderParams{AccountID: accountID, ProviderID: id},
		)
	}
	if err == nil && !found {
		err = ErrNotFound
	}
	return row, err
}

// refundRows reads one row more than asked for, as list does, by the statement that fits the
// filter.
func (s *Store) refundRows(
	ctx context.Context, accountID string, f RefundFilter,
) ([]db.Refund, error) {
	ctx = db.OnlyReads(ctx)
	within := spanOf(f.CreatedFrom, f.CreatedBefore)
	backwards := f.EndingBefore != ""
	if id := f.StartingAfter + f.EndingBefore; id != "" { // one of them at most
		cursor, err := s.refund(ctx, accountID, id)
		if err != nil {
			return nil, err
		}
		if at := (position{cursor.CreatedAt, cursor.ID}); backwards {
			within.startAbove(at)
		} else {
			within.startBelow(at)
		}
	}
	p := db.RefundListOfIntentParams{
		AccountID: accountID, IntentID: f.Intent, ChargeID: f.Charge,
		AboveAt: within.above.at, AboveID: within.above.id, BelowAt: within.below.at,
		BelowID: within.below.id, MaxRows: int32(f.Limit + 1), //nolint:gosec // 101 at most
	}
	ofCharge := db.RefundListOfChargeParams{
		AccountID: accountID, ChargeID: f.Charge, AboveAt: p.AboveAt, AboveID: p.AboveID,
		BelowAt: p.BelowAt, BelowID: p.BelowID, MaxRows: p.MaxRows,
	}
	all := db.RefundListParams{
		AccountID: accountID, AboveAt: p.AboveAt, AboveID: p.AboveID, BelowAt: p.BelowAt,
		BelowID: p.BelowID, MaxRows: p.MaxRows,
	}
	return db.Read0(ctx, s.pool, func(ctx context.Context, conn db.DBTX) ([]db.Refund, error) {
		switch {
		case f.Intent != "" && backwards:
			return s.queries.RefundListOfIntentBefore(
				ctx, conn, db.RefundListOfIntentBeforeParams(p),
			)
		case f.Intent != "":
			return s.queries.RefundListOfIntent(ctx, conn, p)
		case f.Charge != "" && backwards:
			return s.queries.RefundListOfChargeBefore(
				ctx, conn, db.RefundListOfChargeBeforeParams(ofCharge),
			)
		case f.Charge != "":
			return s.queries.RefundListOfCharge(ctx, conn, ofCharge)
		case backwards:
			return s.queries.RefundListBefore(ctx, conn, db.RefundListBeforeParams(all))
		}
		return s.queries.RefundList(ctx, conn, all)
	})
}
