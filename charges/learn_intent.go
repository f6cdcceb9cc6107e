package charges

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"paidonce/db"
	"paidonce/provider"
)

func (l *Learner) intent(ctx context.Context, n News, mark Mark) error {
	in, err := l.provider.GetIntent(ctx, n.ObjectID)
	switch {
	case err != nil:
		return err
	case in == nil:
		return l.note(ctx, mark, "the provider has no such intent")
	case in.Tags.Installation != l.cfg.Installation:
		return l.note(ctx, mark, notOurs)
	}
	return l.changeIntent(ctx, n, in, mark)
}

// changeIntent moves a charge forward to what its intent has come to.
func (l *Learner) changeIntent(ctx context.Context, n News, in *provider.Intent, mark Mark) error {
	switch in.Status {
	case provider.IntentSucceeded, provider.IntentRequiresCapture:
		if err := l.settle(ctx, in.Tags.Operation, in.ID, true); err != nil {
			return err
		}
		got, err := chargeOf(ctx, l.provider, *in)
		if err != nil {
			return err
		}
		got.Tags = in.Tags // Stripe copies them; it is the intent that proves them
		return l.changeCharge(ctx, n, got, nil, mark)
	case provider.IntentRequiresPaymentMethod, provider.IntentCanceled:
		return l.failIntent(ctx, n, in, mark)
	}
	return l.note(ctx, mark, "nothing new")
}

// failIntent ends a charge whose payer did not go through with it. An operation that is still open ends by itself.
func (l *Learner) failIntent(ctx context.Context, n News, in *provider.Intent, mark Mark) error {
	return db.Tx(ctx, l.store.pool, func(ctx context.Context, tx db.DBTX) error {
		row, err := l.store.queries.ChargeOfOperationLock(ctx, tx, in.Tags.Operation)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			_, err := mark(ctx, tx, booksDiffer+"an orphan: the operation "+in.Tags.Operation+" is not known here")
			return err
		case err != nil:
			return err
		case row.SettledAt == nil:
			return db.Final(fmt.Errorf("the operation %s has no outcome yet", row.OperationID))
		case row.Status != string(provider.Pending) || row.IntentID == nil || *row.IntentID != in.ID:
			_, err := mark(ctx, tx, "nothing new")
			return err
		}
		was, no := row, whyNot(*in)
		row.Status, row.FailureCode, row.FailureMessage, row.NextAction = string(provider.Failed), db.OrNil(no.Code), db.OrNil(no.Message), nil
		row.ProviderID = db.OrNil(no.ChargeID)
		return l.writeChange(ctx, tx, n, was, row, mark)
	})
}

// Await asks the provider about up to most charges that wait for their payer and are due, and tells how many: for when no news comes. Errors: the database's; a
// charge that cannot be asked for is asked for again later.
func (l *Learner) Await(ctx context.Context, most int) (int, error) {
	var rows []db.ChargeTakeAwaitingRow
	err := db.RetryConflict(ctx, func(ctx context.Context) (err error) {
		rows, err = l.store.queries.ChargeTakeAwaiting(ctx, l.store.pool, int32(most)) //nolint:gosec // a constant of the caller's
		return err
	})
	if err != nil {
		return 0, err
	}
	for _, row := range rows {
		if !l.store.own.mine(row.ProviderAccount) { // the provider that we may ask does not know it
			continue
		}
		in, err := l.provider.GetIntent(ctx, row.IntentID)
		if err != nil || in == nil || in.Tags.Operation != row.OperationID {
			continue
		}
		// Asked for by ourselves: nothing is to be marked.
		err = l.changeIntent(ctx, News{ID: db.NewID("ask")}, in, func(context.Context, db.DBTX, string) (bool, error) { return true, nil })
		if errors.Is(err, db.ErrUnavailable) {
			return len(rows), err
		}
	}
	return len(rows), nil
}
