package charges

import (
	"context"
	"errors"

	"paidonce/db"
	"paidonce/inbox"
	"paidonce/provider"
)

// Money that is under way at the provider for days: charges by bank debit, and refunds that it has
// not carried out yet. Their operations are finished, with an answer that says pending. The
// provider's events say how they end; if none comes, the reconciler asks.

// AskUnderWay asks the provider about up to most such charges and refunds that are due, and reports
// how many: for when no event comes. Errors: the database's; what cannot be asked for is asked for
// again later.
func (pe *ProviderEvents) AskUnderWay(ctx context.Context, most int) (int, error) {
	charges, err := pe.askCharges(ctx, most)
	if err != nil || charges >= most {
		return charges, err
	}
	refunds, err := pe.askRefunds(ctx, most-charges)
	return charges + refunds, err
}

func (pe *ProviderEvents) askCharges(ctx context.Context, most int) (int, error) {
	rows, err := db.Write(ctx, pe.store.pool, pe.store.queries.ChargeTakeUnderWay, int32(most)) //nolint:gosec // a constant of the caller's
	if err != nil {
		return 0, err
	}
	accountOf := func(row db.ChargeTakeUnderWayRow) int16 { return row.ProviderAccount }
	return askEach(pe, rows, accountOf, func(row db.ChargeTakeUnderWayRow) error {
		return untilFresh(pe.asked(), func(ev incoming) error {
			got, err := pe.provider.GetCharge(ctx, row.ProviderID)
			if err != nil || got == nil || got.Tags.Operation != row.OperationID ||
				got.Status == provider.Pending {
				return err
			}
			return pe.changeCharge(ctx, ev, got, nil)
		})
	})
}

func (pe *ProviderEvents) askRefunds(ctx context.Context, most int) (int, error) {
	rows, err := db.Write(ctx, pe.store.pool, pe.store.queries.RefundTakeUnderWay, int32(most)) //nolint:gosec // a constant of the caller's
	if err != nil {
		return 0, err
	}
	accountOf := func(row db.RefundTakeUnderWayRow) int16 { return row.ProviderAccount }
	return askEach(pe, rows, accountOf, func(row db.RefundTakeUnderWayRow) error {
		return untilFresh(pe.asked(), func(ev incoming) error {
			got, err := pe.provider.GetRefund(ctx, row.ProviderID)
			if err != nil || got == nil || string(got.Status) == row.Status {
				return err
			}
			return pe.changeRefunded(ctx, ev, got)
		})
	})
}

// askEach asks about each of the rows that a statement took because they are due, and reports how
// many there are. Those of another account at the provider are left out: the provider that we may
// ask does not know them. Errors: only those of a database that is away; after any other the row is
// asked about again later.
func askEach[R any](
	pe *ProviderEvents, rows []R, accountOf func(R) int16, ask func(R) error,
) (int, error) {
	for _, row := range rows {
		if !pe.store.own.is(accountOf(row)) {
			continue
		}
		if err := ask(row); errors.Is(err, db.ErrUnavailable) {
			return len(rows), err
		}
	}
	return len(rows), nil
}

// asked stands in for an event where the provider was asked without one: there is nothing to mark.
func (pe *ProviderEvents) asked() incoming {
	return incoming{
		Event: inbox.Event{ID: db.NewID("ask")},
		mark:  func(context.Context, db.DBTX, inbox.Result) (bool, error) { return true, nil },
	}
}

// Adopt moves a charge forward to what the provider has, as an event would, and reports whether
// that changed anything: for differences that an audit found. Errors: the provider's, the
// database's, or why nothing may change yet.
func (pe *ProviderEvents) Adopt(ctx context.Context, providerID string) (changed bool, err error) {
	ev := pe.asked()
	ev.wantsRefunds = true
	ev.mark = func(_ context.Context, _ db.DBTX, result inbox.Result) (bool, error) {
		changed = result.IsChange()
		return true, nil
	}
	err = untilFresh(ev, func(ev incoming) error {
		got, err := pe.provider.GetCharge(ctx, providerID)
		switch {
		case err != nil:
			return err
		case got == nil || got.Tags.Installation != pe.cfg.Installation:
			return errors.New("the provider has no such charge of this installation")
		}
		return pe.changeCharge(ctx, ev, got, nil)
	})
	return changed && err == nil, err
}
