package charges

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"paidonce/db"
	"paidonce/provider"
)

func (l *Learner) refund(ctx context.Context, n News, mark Mark) error {
	got, err := l.provider.GetRefund(ctx, n.ObjectID)
	switch {
	case err != nil:
		return err
	case got == nil:
		return l.note(ctx, mark, "the provider has no such refund")
	case got.Tags.Installation == l.cfg.Installation:
		if err := l.settle(ctx, got.Tags.Operation, got.ID, moneyMoves(string(got.Status))); err != nil {
			return err
		}
		// A refund that fails after all gives its amount back; how much is refunded now, the charge itself tells.
		charge, err := l.provider.GetCharge(ctx, got.ChargeID)
		if err != nil {
			return err
		}
		if charge == nil {
			return l.note(ctx, mark, "the provider has no charge of this refund")
		}
		return l.changeRefund(ctx, n, got, charge, mark)
	}
	// Not made by us; it may still be a refund of a charge of ours.
	charge, err := l.provider.GetCharge(ctx, got.ChargeID)
	switch {
	case err != nil:
		return err
	case charge == nil || charge.Tags.Installation != l.cfg.Installation:
		return l.note(ctx, mark, notOurs)
	}
	return l.changeCharge(ctx, n, charge, nil, mark)
}

// changeRefund moves a settled refund forward. One that fails after all gives its amount back to the charge.
func (l *Learner) changeRefund(ctx context.Context, n News, got *provider.Refund, theirs *provider.Charge, mark Mark) error {
	return db.Tx(ctx, l.store.pool, func(ctx context.Context, tx db.DBTX) error {
		at, err := l.store.queries.RefundOfOperation(ctx, tx, got.Tags.Operation)
		if errors.Is(err, pgx.ErrNoRows) {
			_, err := mark(ctx, tx, booksDiffer+"an orphan: the operation "+got.Tags.Operation+" is not known here; `paidonce audit` tells more")
			return err
		}
		if err != nil {
			return err
		}
		// The charge first, as everywhere.
		charge, err := l.store.queries.ChargeLock(ctx, tx, db.ChargeLockParams{AccountID: at.AccountID, ID: at.ChargeID})
		if err != nil {
			return err
		}
		row, err := l.store.queries.RefundLock(ctx, tx, at.ID)
		if err != nil {
			return err
		}
		switch {
		case row.ProviderID == nil && row.Status == string(provider.Pending):
			return db.Final(errors.New("the operation " + row.OperationID + " has no outcome yet"))
		case row.ProviderID == nil || *row.ProviderID != got.ID:
			_, err := mark(ctx, tx, booksDiffer+"another refund of the same operation than the one we know; `paidonce audit` tells more")
			return err
		case !forward(row.Status, string(got.Status)):
			_, err := mark(ctx, tx, "nothing new")
			return err
		}
		if !moneyMoves(string(got.Status)) {
			if charge.AmountRefundPending > 0 { // what the charge tells may or may not contain them
				return db.Final(errors.New("refunds of the charge " + charge.ID + " are under way; their outcome decides how much is refunded"))
			}
			if err := n.fresh(charge); err != nil {
				return err
			}
		}
		if ok, err := mark(ctx, tx, "refund "+string(got.Status)); err != nil || !ok {
			return err
		}
		return l.writeRefundChange(ctx, tx, n, charge, row, got, theirs)
	})
}

// forward: a refund goes from pending to an end, and from succeeded it can still fail. It never comes back from a failure.
func forward(was, now string) bool {
	return was != now && moneyMoves(was) && (was != string(provider.Succeeded) || !moneyMoves(now))
}

// tellRefunded tells that another sum of a charge is refunded now than was: less, or more if it was refunded elsewhere meanwhile.
func (l *Learner) tellRefunded(ctx context.Context, tx db.DBTX, n News, was db.Charge, refunded int64) error {
	if refunded == was.AmountRefunded {
		return nil
	}
	kind := "charge.updated"
	if refunded > was.AmountRefunded {
		kind = "charge.refunded"
	}
	was.AmountRefunded = refunded
	charge, err := fromRow(was)
	if err != nil {
		return db.Final(err)
	}
	return l.tell(ctx, tx, n, was.AccountID, kind, charge.ID, charge, charge.Livemode)
}

func (l *Learner) writeRefundChange(ctx context.Context, tx db.DBTX, n News, charge db.Charge, row db.Refund, got *provider.Refund, theirs *provider.Charge) error {
	row.Status, row.FailureReason = string(got.Status), db.OrNil(got.FailureReason)
	if err := l.store.queries.RefundChange(ctx, tx, db.RefundChangeParams{ID: row.ID, Status: row.Status, FailureReason: row.FailureReason}); err != nil {
		return err
	}
	refund, err := refundFromRow(row)
	if err != nil {
		return db.Final(err)
	}
	kinds := []string{"refund.updated"}
	if !moneyMoves(row.Status) {
		kinds = append(kinds, "refund.failed")
		refunded := max(charge.AmountRefunded-row.Amount, 0)
		if theirs.AmountRefunded <= charge.AmountCaptured {
			refunded = theirs.AmountRefunded
		}
		if err := l.store.queries.ChargeSetRefunded(ctx, tx, db.ChargeSetRefundedParams{AmountRefunded: refunded, ID: row.ChargeID}); err != nil {
			return err
		}
		if err := l.tellRefunded(ctx, tx, n, charge, refunded); err != nil {
			return err
		}
	}
	for _, kind := range kinds {
		if err := l.tell(ctx, tx, n, row.AccountID, kind, refund.ID, refund, charge.Livemode); err != nil {
			return err
		}
	}
	return nil
}
