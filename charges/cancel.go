package charges

import (
	"context"

	"paidonce/db"
	"paidonce/idemkeys"
	"paidonce/problem"
	"paidonce/provider"
)

// The kinds of operations that end a charge without taking its money: a cancellation, and a refund
// of what is only authorised. They do the same, and differ in what is asked for and answered.
const (
	KindCancel     = "charge.cancel"
	KindRefundHold = "refund.hold"
)

// The parameters. Those of a refund are in refund.go.

// CancelParams are a client's parameters.
type CancelParams struct {
	Charge string
}

// Validate checks what can be known without looking at the charge: nothing.
func (p CancelParams) Validate() error { return nil }

// The claim.

// Cancel lets go of an authorised charge, or ends one that waits for its payer, once. Refusals name
// the charge "id", as the path of the request does. Errors: those of [idemkeys.Runner.Do].
func (s *Service) Cancel(
	ctx context.Context, r idemkeys.Request, p CancelParams,
) (idemkeys.Result, error) {
	res, err := s.runner.Do(ctx, r, func(ctx context.Context, r idemkeys.Request, op *idemkeys.Operation) (
		idemkeys.Claimed, error,
	) {
		op.Kind, op.ResourceID = KindCancel, p.Charge
		// Not noted as a recent claim: one that was proven never made leaves no row.
		return s.store.claimOnCharge(ctx, r, op, p.Charge, "id", func(
			ctx context.Context, tx db.DBTX, charge db.Charge,
		) (any, error) {
			if err := cancelable(charge); err != nil {
				return nil, withCharge(charge, err)
			}
			return s.reserveAndFreezeCancel(ctx, tx, op, charge)
		})
	})
	return res, s.store.orReplaced(ctx, err)
}

func (s *Service) reserveAndFreezeCancel(
	ctx context.Context, tx db.DBTX, op *idemkeys.Operation, charge db.Charge,
) (f cancelFrozen, err error) {
	if err := s.store.reserveRelease(ctx, tx, op, charge, "id"); err != nil {
		return f, err
	}
	// Without a claim note: what was let go of is found by the state of the charge.
	return s.freezeCancel(charge, op, refundFrozen{
		Request: provider.RefundRequest{
			IdempotencyKey: derivedKey(s.cfg.Installation, op.ID, "cancel"),
			Tags:           provider.Tags{Operation: op.ID, Installation: s.cfg.Installation},
			ChargeID:       db.OrEmpty(charge.ProviderID), Amount: charge.Amount,
		},
		Charge: charge.ID, Account: numberOf(charge), Sender: s.store.own.senderMark(),
		Currency: charge.Currency, Livemode: charge.Livemode,
	}), nil
}

// cancelable returns why a charge cannot be cancelled, or nil.
func cancelable(c db.Charge) error {
	switch {
	case c.Status == string(provider.Pending) && (c.SettledAt == nil || c.IntentID == nil):
		return problem.ChargePending.Of(
			"id", "The outcome of the charge is not known yet; cancel it when it is.",
		)
	case c.Status == string(provider.Failed):
		return problem.ChargeNotSucceeded.Of(
			"id", "The charge failed: there is nothing to cancel.",
		)
	case c.Captured:
		return problem.ChargeAlreadyCaptured.Of(
			"id", "The charge has been captured: refund it instead.",
		)
	case released(c) && !forgottenRelease(c):
		return problem.ChargeReleased.Of("id", "The authorised money was let go of already.")
	}
	return beingEnded(c, "id")
}

// forgottenRelease reports whether a recovery found the charge let go of by an operation that the
// database had forgotten: the first request to let go of it is that one, come again.
func forgottenRelease(c db.Charge) bool {
	return released(c) && c.CaptureForgotten && c.CaptureOperationID == nil
}

// beingEnded returns the error for an operation that captures the charge, or lets go of it, and has
// no outcome yet, or nil. param is what the request calls the charge.
func beingEnded(c db.Charge, param string) error {
	switch {
	case releasing(c):
		return problem.CancelPending.Of(
			param, "The charge is being cancelled, and the outcome is not known yet.",
		)
	case c.CaptureOperationID != nil && c.Status == string(provider.Pending):
		return problem.ConfirmPending.New()
	case c.CaptureOperationID != nil:
		return problem.CapturePending.Of(
			param, "A capture of the charge is under way, and its outcome is not known yet.",
		)
	}
	return nil
}

// reserveRelease gives the charge to an operation that is about to let go of it: nobody else may
// capture it, or let go of it, until that has an outcome.
func (s *Store) reserveRelease(
	ctx context.Context, tx db.DBTX, op *idemkeys.Operation, charge db.Charge, param string,
) error {
	reserve := s.queries.ChargeReserveRelease
	if forgottenRelease(charge) {
		reserve = func(
			ctx context.Context, tx db.DBTX, p db.ChargeReserveReleaseParams,
		) (int64, error) {
			return s.queries.ChargeReserveForgotten(ctx, tx, db.ChargeReserveForgottenParams(p))
		}
	}
	n, err := reserve(ctx, tx, db.ChargeReserveReleaseParams{
		OperationID: op.ID, AccountID: op.AccountID, ID: charge.ID,
	})
	if err == nil && n == 0 {
		err = withCharge(charge, problem.CancelPending.Of(param, "The charge is being ended."))
	}
	return err
}

// isHold reports whether the charge is authorised, and was not captured.
func isHold(c db.Charge) bool { return c.Status == string(provider.Succeeded) && !c.Captured }

// reserveHold is the claim of a refund of a charge that is only authorised: that lets go of all of
// it.
func (s *Service) reserveHold(
	ctx context.Context, tx db.DBTX, r idemkeys.Request, op *idemkeys.Operation, charge db.Charge,
	p RefundParams,
) (any, error) {
	if err := wholeHold(charge, p.Amount); err != nil {
		return nil, withCharge(charge, err)
	}
	if err := s.store.reserveRelease(ctx, tx, op, charge, "charge"); err != nil {
		return nil, err
	}
	f, err := s.freezeRefund(ctx, tx, r, op, charge, p, charge.Amount)
	if err != nil {
		return nil, err
	}
	return s.freezeCancel(charge, op, f), nil
}

// wholeHold returns why a refund of this amount cannot let go of a charge, or nil.
func wholeHold(c db.Charge, asked int64) error {
	switch {
	case released(c) && !forgottenRelease(c):
		return problem.ChargeAlreadyRefunded.Of(
			"charge", "The authorised money was let go of already.",
		)
	case asked > c.Amount:
		return problem.AmountTooLarge.Of("amount", "amount is greater than what is authorised.")
	case asked != 0 && asked < c.Amount:
		return problem.ChargeNotCaptured.Of(
			"amount", "The charge is authorised and not captured: refund all of it, which lets "+
				"go of it, or capture a part.",
		)
	}
	return beingEnded(c, "charge")
}

// freezeCancel returns what is frozen. f is the refund that is asked for, or that a cancellation is
// at the provider.
func (s *Service) freezeCancel(
	charge db.Charge, op *idemkeys.Operation, f refundFrozen,
) cancelFrozen {
	frozen := cancelFrozen{refundFrozen: f}
	if charge.IntentID != nil {
		frozen.Intent = &provider.CancelRequest{
			IdempotencyKey: derivedKey(s.cfg.Installation, op.ID, "cancel"),
			Tags:           f.Request.Tags, IntentID: *charge.IntentID,
		}
	}
	return frozen
}

// cancelFrozen is what is frozen of a cancellation, or of a refund of what is only authorised.
type cancelFrozen struct {
	refundFrozen
	// what is sent for a charge that an intent made; without one the refund is sent
	Intent *provider.CancelRequest `json:"intent,omitempty"`
	// as in captureFrozen
	AsIntent bool `json:"as_intent,omitempty"`
}

// refunded is the refund that was asked for, once the charge has ended.
func (f *cancelFrozen) refunded(op *idemkeys.Operation, e *ending) Refund {
	r := f.render(op)
	r.Status, r.Provider.ID = string(provider.Succeeded), &f.Request.ChargeID
	if f.Intent != nil {
		r.Provider.ID = &f.Intent.IntentID
	}
	if e.refund != nil {
		r.Status, r.Provider.ID = string(e.refund.Status), &e.refund.ID
		r.FailureReason = db.OrNil(e.refund.FailureReason)
	}
	return r
}
