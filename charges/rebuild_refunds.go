package charges

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"paidonce/db"
	"paidonce/history"
	"paidonce/outbox"
	"paidonce/provider"
)

func (r *rebuild) allRefunds(ctx context.Context, since time.Time) error {
	m := missing[provider.Refund]{
		rebuild: r, write: r.refund,
		describe: func(f provider.Refund) (string, provider.Tags, *provider.Terms) {
			return f.ID, f.Tags, f.Terms
		},
		report: func(n int) error { return r.report(ctx, history.Counts{Refunds: n}) },
	}
	err := m.all(ctx, func(take func(provider.Refund) error) error {
		return r.provider.ListRefunds(ctx, since, time.Time{}, func(got provider.Refund) error {
			// made elsewhere, maybe of one of our charges
			if got.Tags.Installation != r.cfg.Installation && got.ChargeID != "" {
				r.changed[got.ChargeID] = struct{}{}
			}
			return take(got)
		})
	})
	if provider.KindOf(err) == provider.Unsupported {
		return nil
	}
	return err
}

// refund writes a refund that was forgotten, with its amount, its key and its events.
func (r *rebuild) refund(
	ctx context.Context, tx db.DBTX, got provider.Refund, n claimNote,
) (bool, error) {
	q := r.store.queries
	row, found, err := db.Found(q.ChargeByProvider(ctx, tx, &got.ChargeID))
	switch {
	case err != nil:
		return false, err
	case !found:
		return false, db.Final(fmt.Errorf("its charge %s is not here", got.ChargeID))
	case row.AccountID != n.Account:
		return false, db.Final(fmt.Errorf("its charge %s is of another account", got.ChargeID))
	}
	op := rebuiltOperation(got.Tags.Operation, n)
	f := &refundFrozen{
		Request: provider.RefundRequest{
			Tags: got.Tags, ChargeID: got.ChargeID, Amount: got.Amount, Reason: got.Terms.Reason,
			Metadata: got.Terms.Metadata,
		},
		Charge: row.ID, Currency: row.Currency, Livemode: row.Livemode, Created: n.Created.Unix(),
	}
	end := refundEnd{r.store, op, f}
	c := end.settled(&got)
	refund := c.Write.(refundSettlement).refund //nolint:forcetypeassert,errcheck // refundEnd makes no other
	metadata, err := json.Marshal(refund.Metadata)
	if err != nil {
		return false, db.Final(err)
	}
	written, err := q.RefundRestore(ctx, tx, db.RefundRestoreParams{
		ID: refund.ID, AccountID: op.AccountID, ChargeID: row.ID, OperationID: op.ID,
		Status: refund.Status, Amount: refund.Amount, Currency: refund.Currency,
		Reason: refund.Reason, Metadata: metadata, FailureReason: refund.FailureReason,
		ProviderID: refund.Provider.ID, CreatedAt: n.Created,
	})
	if err != nil || written == 0 {
		return false, err
	}
	if err := r.restoreKey(ctx, tx, op, n, *c.Answer); err != nil {
		return false, err
	}
	o := triggerOf(op, row.Livemode)
	if !moneyMoves(refund.Status) {
		return true, r.store.addEvent(ctx, tx, o, outbox.RefundFailed, refund)
	}
	if n.Kind == KindRefundHold {
		return true, r.refundHold(ctx, tx, o, row, refund)
	}
	now, err := q.ChargeAddRefunded(
		ctx, tx, db.ChargeAddRefundedParams{Amount: refund.Amount, ID: row.ID},
	)
	if err != nil {
		return false, err
	}
	charge, err := fromRow(now)
	if err != nil {
		return false, db.Final(err)
	}
	if err := r.store.addEvent(ctx, tx, o, outbox.RefundCreated, refund); err != nil {
		return false, err
	}
	return true, r.store.addEvent(ctx, tx, o, outbox.ChargeRefunded, charge)
}

// refundHold writes what a refund of a charge did that was only authorised: it let go of it.
func (r *rebuild) refundHold(
	ctx context.Context, tx db.DBTX, o trigger, was db.Charge, refund Refund,
) error {
	if err := r.store.addEvent(ctx, tx, o, outbox.RefundCreated, refund); err != nil {
		return err
	}
	if !isHold(was) || was.Release != nil { // an operation that lets go of it finds out
		return nil
	}
	now := was
	now.Release = db.OrNil(releaseRefunded)
	return r.store.writeChange(ctx, tx, o, was, now)
}

// allReleases writes what let go of charges and left no other trace: a cancellation, or something
// at the provider. The refunds that did are written already.
func (r *rebuild) allReleases(ctx context.Context, _ time.Time) error {
	for _, got := range r.released {
		how, err := howReleased(ctx, r.provider, &got, r.cfg.Installation)
		if err != nil {
			return err
		}
		if _, err := r.writeOne(
			ctx, got.ID, got.Tags, nil,
			func(ctx context.Context, tx db.DBTX) (bool, error) {
				return r.release(ctx, tx, got.ID, how)
			},
		); err != nil {
			return err
		}
	}
	return nil
}

func (r *rebuild) release(
	ctx context.Context, tx db.DBTX, providerID, how string,
) (bool, error) {
	was, found, err := db.Found(r.store.queries.ChargeByProvider(ctx, tx, &providerID))
	switch {
	case err != nil || !found:
		return false, err
	case !isHold(was) || was.Release != nil || was.CaptureOperationID != nil:
		return false, nil // an operation on it finds out
	}
	now := was
	now.Release, now.CaptureForgotten = &how, true
	o := trigger{account: was.AccountID, cause: was.OperationID, at: time.Now(), livemode: was.Livemode} //tidy:clock shown to people
	return true, r.store.writeChange(ctx, tx, o, was, now)
}

// allChanged reads the charges with refunds that were made at the provider.
func (r *rebuild) allChanged(ctx context.Context, _ time.Time) error {
	for id := range r.changed {
		got, err := r.provider.GetCharge(ctx, id)
		if err != nil {
			return err
		}
		if got == nil || got.Tags.Installation != r.cfg.Installation {
			continue
		}
		refunds, err := r.provider.RefundsOf(ctx, id)
		if err != nil && provider.KindOf(err) != provider.Unsupported {
			return err
		}
		if _, err := r.writeOne(
			ctx, id, got.Tags, nil, func(ctx context.Context, tx db.DBTX) (bool, error) {
				return r.change(ctx, tx, got, refunds)
			},
		); err != nil {
			return err
		}
	}
	return nil
}

func (r *rebuild) change(
	ctx context.Context, tx db.DBTX, got *provider.Charge, refunds []provider.Refund,
) (bool, error) {
	row, found, err := db.Found(r.store.queries.ChargeByProvider(ctx, tx, &got.ID))
	switch {
	case err != nil || !found:
		return false, err
	// its own outcome decides; what was let go of is written already
	case row.AmountRefundPending > 0 || got.Released():
		return false, nil
	}
	cause := fmt.Sprintf("%s refunded %d, event %d", got.ID, got.AmountRefunded, row.Events+1)
	o := trigger{account: row.AccountID, cause: cause, at: time.Now(), livemode: row.Livemode} //tidy:clock shown to people
	news, err := r.store.foundRefunds(ctx, tx, row, got, refunds, r.cfg.Installation)
	if err != nil {
		return false, err
	}
	if err := r.store.writeFound(ctx, tx, o, news); err != nil {
		return false, err
	}
	if row.AmountRefunded == got.AmountRefunded || got.AmountRefunded > row.AmountCaptured {
		return len(news) > 0, nil
	}
	kind, was := outbox.ChargeRefunded, row
	if got.AmountRefunded < row.AmountRefunded {
		kind = outbox.ChargeUpdated
	}
	row.AmountRefunded = got.AmountRefunded
	if err := r.store.yieldReference(ctx, tx, was, row); err != nil {
		return false, err
	}
	if err := r.store.queries.ChargeSetRefunded(
		ctx, tx, db.ChargeSetRefundedParams{AmountRefunded: got.AmountRefunded, ID: row.ID},
	); err != nil {
		return false, err
	}
	charge, err := fromRow(row)
	if err != nil {
		return false, db.Final(err)
	}
	return true, r.store.addEvent(ctx, tx, o, kind, charge)
}
