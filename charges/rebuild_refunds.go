package charges

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"paidonce/db"
	"paidonce/history"
	"paidonce/idemkeys"
	"paidonce/provider"
)

func (r *rebuild) allRefunds(ctx context.Context, since time.Time) error {
	m := missing[provider.Refund]{
		rebuild: r, write: r.refund,
		about: func(f provider.Refund) (string, provider.Tags, *provider.Terms) { return f.ID, f.Tags, f.Terms },
		told:  func(n int) error { return r.told(ctx, history.Counts{Refunds: n}) },
	}
	err := m.all(ctx, func(take func(provider.Refund) error) error {
		return r.provider.ListRefunds(ctx, since, time.Time{}, func(got provider.Refund) error {
			if got.Tags.Installation != r.cfg.Installation && got.ChargeID != "" { // made elsewhere, maybe of a charge of ours
				r.changed[got.ChargeID] = struct{}{}
			}
			return take(got)
		})
	})
	if noSuchRead(err) {
		return nil
	}
	return err
}

// refund writes a refund that was forgotten, with its amount, its key and its events.
func (r *rebuild) refund(ctx context.Context, tx db.DBTX, got provider.Refund, n claimNote) (bool, error) {
	q := r.store.queries
	row, err := q.ChargeByProvider(ctx, tx, &got.ChargeID)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return false, db.Final(fmt.Errorf("its charge %s is not here", got.ChargeID))
	case err != nil:
		return false, err
	case row.AccountID != n.Account:
		return false, db.Final(fmt.Errorf("its charge %s is of another account", got.ChargeID))
	}
	op := rebuiltOperation(got.Tags.Operation, n)
	f := refundFrozen{
		Request: provider.RefundRequest{Tags: got.Tags, ChargeID: got.ChargeID, Amount: got.Amount, Reason: got.Terms.Reason, Metadata: got.Terms.Metadata},
		Charge:  row.ID, Currency: row.Currency, Livemode: row.Livemode, Created: n.Created.Unix(),
	}
	c := refunding{store: r.store, cfg: r.cfg}.settled(op, f, got)
	refund := c.Write.(refundSettlement).refund //nolint:forcetypeassert,errcheck // refunding makes no other
	metadata, err := json.Marshal(refund.Metadata)
	if err != nil {
		return false, db.Final(err)
	}
	written, err := q.RefundRestore(ctx, tx, db.RefundRestoreParams{
		ID: refund.ID, AccountID: op.AccountID, ChargeID: row.ID, OperationID: op.ID, Status: refund.Status, Amount: refund.Amount, Currency: refund.Currency,
		Reason: refund.Reason, Metadata: metadata, FailureReason: refund.FailureReason, ProviderID: refund.Provider.ID, CreatedAt: n.Created,
	})
	if err != nil || written == 0 {
		return false, err
	}
	if err := r.key(ctx, tx, op, n, *c.Answer); err != nil {
		return false, err
	}
	if !moneyMoves(refund.Status) {
		return true, r.store.tell(ctx, tx, op, "refund.failed", refund.ID, refund, row.Livemode)
	}
	now, err := q.ChargeAddRefunded(ctx, tx, db.ChargeAddRefundedParams{Amount: refund.Amount, ID: row.ID})
	if err != nil {
		return false, err
	}
	charge, err := fromRow(now)
	if err != nil {
		return false, db.Final(err)
	}
	if err := r.store.tell(ctx, tx, op, "refund.created", refund.ID, refund, row.Livemode); err != nil {
		return false, err
	}
	return true, r.store.tell(ctx, tx, op, "charge.refunded", row.ID, charge, row.Livemode)
}

// allChanged asks for the charges of which more may be refunded than by the refunds that are known.
func (r *rebuild) allChanged(ctx context.Context, _ time.Time) error {
	for id := range r.changed {
		got, err := r.provider.GetCharge(ctx, id)
		if err != nil {
			return err
		}
		if got == nil || got.Tags.Installation != r.cfg.Installation {
			continue
		}
		if _, err := r.each(ctx, id, got.Tags, nil, func(ctx context.Context, tx db.DBTX) (bool, error) { return r.change(ctx, tx, got) }); err != nil {
			return err
		}
	}
	return nil
}

func (r *rebuild) change(ctx context.Context, tx db.DBTX, got *provider.Charge) (bool, error) {
	row, err := r.store.queries.ChargeByProvider(ctx, tx, &got.ID)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return false, nil
	case err != nil:
		return false, err
	case row.AmountRefunded == got.AmountRefunded || row.AmountRefundPending > 0: // of a pending one its own outcome decides
		return false, nil
	}
	kind := "charge.refunded"
	if got.AmountRefunded < row.AmountRefunded {
		kind = "charge.updated"
	}
	if err := r.store.queries.ChargeSetRefunded(ctx, tx, db.ChargeSetRefundedParams{AmountRefunded: got.AmountRefunded, ID: row.ID}); err != nil {
		return false, err
	}
	cause := fmt.Sprintf("%s refunded %d, event %d", got.ID, got.AmountRefunded, row.Events+1)
	row.AmountRefunded = got.AmountRefunded
	charge, err := fromRow(row)
	if err != nil {
		return false, db.Final(err)
	}
	op := idemkeys.Operation{AccountID: row.AccountID, ID: cause}
	return true, r.store.tell(ctx, tx, op.Leased(time.Now(), time.Now()), kind, row.ID, charge, row.Livemode) //tidy:clock shown to people
}
