package charges

import (
	"context"
	"encoding/json"

	"paidonce/db"
	"paidonce/idemkeys"
	"paidonce/provider"
)

// readChargeOf reads the charge of an intent that a list names by its id alone. What is no longer
// there is left out.
func (r *rebuild) readChargeOf(ctx context.Context, in *provider.Intent) error {
	n, ok := r.ours(in.Tags, in.Terms)
	if !ok || n.Kind != KindPaymentIntentCreate || in.ChargeID == "" || in.Charge != nil {
		return nil
	}
	got, err := r.provider.GetCharge(ctx, in.ChargeID)
	in.Charge = got
	return err
}

// clientIntent writes a payment intent of a client that was forgotten, with its charge, as it is at
// the provider: how often it was confirmed, and by whom, nothing there tells. What was cancelled is
// asked for again, as everything that waits is.
func (r *rebuild) clientIntent(
	ctx context.Context, tx db.DBTX, op *idemkeys.Operation, request *provider.ChargeRequest,
	got provider.Intent, n claimNote,
) (bool, error) {
	metadata, err := json.Marshal(orEmpty(request.Metadata))
	if err != nil {
		return false, db.Final(err)
	}
	account := r.store.own.get()
	end, err := newIntentEnd(r.store, op, request, db.Charge{
		ID: op.ResourceID, AccountID: op.AccountID, OperationID: op.ID, Provider: "stripe",
		Status: string(provider.Pending), Amount: request.Amount, Currency: request.Currency,
		Capture: n.Capture, Customer: db.OrNil(request.Customer),
		Description: db.OrNil(request.Description), Metadata: metadata,
		ReceiptEmail:              db.OrNil(request.ReceiptEmail),
		StatementDescriptorSuffix: db.OrNil(request.StatementDescriptorSuffix),
		Livemode:                  request.Livemode, CreatedAt: op.CreatedAt, ProviderAccount: &account,
		Reference: db.OrNil(request.Reference), DuplicateOf: db.OrNil(request.DuplicateOf),
		OfIntent: true,
	})
	if err != nil {
		return false, db.Final(err)
	}
	c, err := end.restored(ctx, got, n)
	if err != nil {
		return false, db.Final(err)
	}
	return r.restoreIntent(ctx, tx, op, n, end, c)
}

// restored is the commit for an intent as the provider has it.
func (e *intentEnd) restored(
	ctx context.Context, got provider.Intent, n claimNote,
) (*idemkeys.Commit, error) {
	if got.Charge == nil || got.Charge.Status != provider.Succeeded || got.Charge.Released() {
		return e.waiting(ctx, &got)
	}
	first := *got.Charge
	if !n.Capture {
		first.Captured, first.AmountCaptured = false, 0 // a capture is found later
	}
	first.AmountRefunded = 0
	return e.paid(ctx, &got, &first)
}

func (r *rebuild) restoreIntent(
	ctx context.Context, tx db.DBTX, op *idemkeys.Operation, n claimNote, end *intentEnd,
	commit *idemkeys.Commit,
) (bool, error) {
	s, w := r.store, commit.Write.(intentSettlement) //nolint:forcetypeassert,errcheck // intentEnd makes no other
	c := w.now.charge
	if err := s.queries.AccountRestore(ctx, tx, op.AccountID); err != nil {
		return false, err
	}
	written, err := s.queries.ChargeRestore(ctx, tx, restoreParams(c))
	if err != nil || written == 0 {
		return false, err
	}
	if err := s.queries.ChargeOfIntentMark(ctx, tx, c.ID); err != nil {
		return false, err
	}
	if err := s.putIntent(ctx, tx, w.now.intent); err != nil {
		return false, err
	}
	if err := r.restoreKey(ctx, tx, op, n, *commit.Answer); err != nil {
		return false, err
	}
	o := triggerOf(op, c.Livemode)
	if err := s.addChargeEvents(ctx, tx, o, end.charge, c); err != nil {
		return false, err
	}
	return true, s.addIntentEvents(ctx, tx, o, end.clientIntent, w.now, true)
}

// restoreParams are those of a statement that writes a charge as it is.
func restoreParams(c db.Charge) db.ChargeRestoreParams {
	return db.ChargeRestoreParams{
		ID: c.ID, AccountID: c.AccountID, OperationID: c.OperationID, Status: c.Status,
		Amount: c.Amount, AmountCaptured: c.AmountCaptured, Currency: c.Currency,
		Capture: c.Capture, Captured: c.Captured, Customer: c.Customer, Description: c.Description,
		Metadata: c.Metadata, ReceiptEmail: c.ReceiptEmail, Suffix: c.StatementDescriptorSuffix,
		Livemode: c.Livemode, FailureCode: c.FailureCode, FailureMessage: c.FailureMessage,
		Outcome: c.Outcome, ProviderID: c.ProviderID, CreatedAt: c.CreatedAt, IntentID: c.IntentID,
		NextAction: c.NextAction, ProviderAccount: numberOf(c), Reference: c.Reference,
		DuplicateOf: c.DuplicateOf, Details: c.Details, Shipping: c.Shipping,
		Descriptor: c.StatementDescriptor,
	}
}
