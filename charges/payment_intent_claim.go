package charges

import (
	"context"
	"errors"
	"slices"

	"paidonce/db"
	"paidonce/idemkeys"
	"paidonce/problem"
	"paidonce/provider"
)

// The claims.

// CreatePaymentIntent makes a payment intent, and confirms it if that is asked for, once for the
// request's key. Errors: those of [idemkeys.Runner.Do].
func (s *Service) CreatePaymentIntent(
	ctx context.Context, r idemkeys.Request, p PaymentIntentParams,
) (idemkeys.Result, error) {
	res, err := s.runner.Do(ctx, r, func(
		ctx context.Context, r idemkeys.Request, op *idemkeys.Operation,
	) (idemkeys.Claimed, error) {
		op.Kind, op.ResourceID = KindPaymentIntentCreate, db.NewID("ch")
		if e := p.checkReference(); e != nil {
			return claimResult(s.store.refuseUnlessTaken(ctx, s.store.pool, r, e))
		}
		request := s.chargeRequest(r, op, &p.Params)
		request.PayLater = true
		request.PaymentMethodTypes = p.PaymentMethodTypes
		request.AutomaticMethods = p.AutomaticMethods
		request.SetupFutureUsage = p.SetupFutureUsage
		request.ErrorOnRequiresAction = p.ErrorOnRequiresAction
		row, err := newClaimRow(r, op, request, createFrozen{
			intentFrozen: freezeIntent(*request, s.cfg.Installation), Confirm: p.Confirm,
			WithCharge: p.WithCharge,
		})
		if err != nil {
			return idemkeys.Lost, err
		}
		row.ofIntent = true
		return s.claimFor(ctx, r, row)
	})
	return res, s.store.orReplaced(ctx, err)
}

// createFrozen is what is frozen of an intent's creation.
type createFrozen struct {
	intentFrozen
	Confirm    bool `json:"confirm,omitempty"`
	WithCharge bool `json:"with_charge,omitempty"`
}

// ConfirmPaymentIntent charges what an intent was made for, once for the request's key. Refusals
// name the intent "id". Errors: those of [idemkeys.Runner.Do].
func (s *Service) ConfirmPaymentIntent(
	ctx context.Context, r idemkeys.Request, p ConfirmParams,
) (idemkeys.Result, error) {
	return s.onPaymentIntent(ctx, r, KindPaymentIntentConfirm, p.Intent, func(
		ctx context.Context, tx db.DBTX, op *idemkeys.Operation, i clientIntent,
	) (any, error) {
		if err := s.store.reserveConfirm(ctx, tx, op, i); err != nil {
			return nil, err
		}
		return confirmFrozen{
			onIntent: s.ofIntent(i, p.WithCharge),
			Request: provider.ConfirmRequest{
				IdempotencyKey: derivedKey(s.cfg.Installation, op.ID, "confirm"),
				Tags: provider.Tags{
					Operation: i.charge.OperationID, Installation: s.cfg.Installation,
				},
				IntentID: i.intent.ID, Source: p.PaymentMethod, ReturnURL: p.ReturnURL,
				OffSession:            p.OffSession != nil && *p.OffSession,
				ErrorOnRequiresAction: p.ErrorOnRequiresAction,
				SetupFutureUsage:      p.SetupFutureUsage, ReceiptEmail: p.ReceiptEmail,
			},
			Before: seenOf(i),
		}, nil
	})
}

// CapturePaymentIntent takes what an intent holds, wholly or in part, once for the request's key.
// Errors: those of [idemkeys.Runner.Do].
func (s *Service) CapturePaymentIntent(
	ctx context.Context, r idemkeys.Request, p PaymentIntentCaptureParams,
) (idemkeys.Result, error) {
	return s.onPaymentIntent(ctx, r, KindCapture, p.Intent, func(
		ctx context.Context, tx db.DBTX, op *idemkeys.Operation, i clientIntent,
	) (any, error) {
		amount, err := capturable(i.charge, p.Amount)
		if err != nil {
			return nil, i.unfit(err, "captured", provider.IntentRequiresCapture)
		}
		f, err := s.reserveAndFreezeCapture(ctx, tx, op, i.charge, amount)
		f.AsIntent, f.WithCharge = true, p.WithCharge
		return f, err
	})
}

// CancelPaymentIntent ends an intent that was not paid, or lets go of what it holds, once for the
// request's key. Errors: those of [idemkeys.Runner.Do].
func (s *Service) CancelPaymentIntent(
	ctx context.Context, r idemkeys.Request, p PaymentIntentCancelParams,
) (idemkeys.Result, error) {
	return s.onPaymentIntent(ctx, r, KindCancel, p.Intent, func(
		ctx context.Context, tx db.DBTX, op *idemkeys.Operation, i clientIntent,
	) (any, error) {
		if err := cancelable(i.charge); err != nil {
			return nil, i.unfit(err, "canceled", cancelableIntents...)
		}
		f, err := s.reserveAndFreezeCancel(ctx, tx, op, i.charge)
		if err != nil {
			return nil, err
		}
		f.AsIntent, f.WithCharge, f.Intent.Reason = true, p.WithCharge, p.Reason
		return f, s.store.queries.PaymentIntentCancelReason(
			ctx, tx, db.PaymentIntentCancelReasonParams{
				Reason: db.OrNil(p.Reason), ChargeID: i.charge.ID,
			},
		)
	})
}

// onPaymentIntent runs an operation on an intent of the request's account. begin sees the intent
// and its charge, locked, and reserves and freezes what the operation needs.
func (s *Service) onPaymentIntent(
	ctx context.Context, r idemkeys.Request, kind, intent string,
	begin func(
		ctx context.Context, tx db.DBTX, op *idemkeys.Operation, i clientIntent,
	) (frozen any, err error),
) (idemkeys.Result, error) {
	res, err := s.runner.Do(ctx, r, func(
		ctx context.Context, r idemkeys.Request, op *idemkeys.Operation,
	) (idemkeys.Claimed, error) {
		charge, found, err := db.One(ctx, s.store.pool, s.store.queries.PaymentIntentCharge,
			db.PaymentIntentChargeParams{ID: intent, AccountID: r.AccountID})
		if err == nil && !found {
			err = s.store.refuseUnlessTaken(ctx, s.store.pool, r, problem.ResourceMissing.Of(
				"id", "There is no such payment intent.",
			))
		}
		if err != nil {
			return claimResult(err)
		}
		op.Kind, op.ResourceID = kind, charge
		return s.store.claimOnCharge(ctx, r, op, charge, "id", func(
			ctx context.Context, tx db.DBTX, row db.Charge,
		) (any, error) {
			of, err := s.store.queries.PaymentIntentOfChargeLock(ctx, tx, row.ID)
			if err != nil {
				return nil, err
			}
			return begin(ctx, tx, op, clientIntent{of, row})
		})
	})
	return res, s.store.orReplaced(ctx, err)
}

// reserveConfirm gives an intent to an operation that is about to confirm it, or to change it:
// meanwhile nobody else may, nor cancel it, and the provider's events wait.
func (s *Store) reserveConfirm(
	ctx context.Context, tx db.DBTX, op *idemkeys.Operation, i clientIntent,
) error {
	if isEnding(i.charge) {
		return beingEnded(i.charge, "id")
	}
	n, err := s.queries.ChargeReserveConfirm(
		ctx, tx, db.ChargeReserveConfirmParams{OperationID: op.ID, ID: i.charge.ID},
	)
	if err == nil && n == 0 {
		err = i.unexpected("confirmed or changed", provider.IntentRequiresPaymentMethod,
			provider.IntentRequiresConfirmation, provider.IntentRequiresAction)
	}
	return err
}

// unexpected is the refusal of what an intent's status does not allow.
func (i clientIntent) unexpected(what string, in ...provider.IntentStatus) *problem.Error {
	names := ""
	for n, status := range in {
		switch {
		case n > 0 && n == len(in)-1:
			names += " or "
		case n > 0:
			names += ", "
		}
		names += string(status)
	}
	e := problem.PaymentIntentUnexpectedState.Of("id",
		"The payment intent is %s: it can be %s only while it is %s.", i.status(), what, names)
	e.Charge = db.OrEmpty(i.intent.LatestCharge)
	if shown, err := i.render(); err == nil {
		e.PaymentIntent = shown
	}
	return e
}

// stateCodes are the refusals of a charge that say of an intent that it is in another state.
var stateCodes = []problem.Code{
	problem.ChargePending, problem.ChargeNotSucceeded, problem.ChargeAlreadyCaptured,
	problem.ChargeReleased,
}

// cancelableIntents are the states in which an intent can be cancelled.
var cancelableIntents = []provider.IntentStatus{
	provider.IntentRequiresPaymentMethod, provider.IntentRequiresConfirmation,
	provider.IntentRequiresAction, provider.IntentRequiresCapture,
}

// unfitIntent is the refusal of what the state of an intent did not allow at the provider. Its
// charge is as the provider's is by now.
func (s *Store) unfitIntent(
	ctx context.Context, now db.Charge, what string, in ...provider.IntentStatus,
) (*problem.Error, error) {
	of, err := db.Read(ctx, s.pool, s.queries.PaymentIntentOfCharge, now.ID)
	if err != nil {
		return nil, rowError("the payment intent of the charge "+now.ID, err)
	}
	i := clientIntent{of, now}
	i.settle()
	return i.unexpected(what, in...), nil
}

// unfit turns the refusal of an intent's charge into that of the intent.
func (i clientIntent) unfit(err error, what string, in ...provider.IntentStatus) error {
	var e *problem.Error
	switch {
	case !errors.As(err, &e):
	case slices.Contains(stateCodes, e.Code):
		return i.unexpected(what, in...)
	case e.Param == "amount":
		e.Param = "amount_to_capture"
	}
	return err
}

// onIntent is what is frozen of every operation on an intent.
type onIntent struct {
	Charge  string `json:"charge"`            // ours, of the intent
	Account int16  `json:"account,omitempty"` // the charge's, at the provider
	Sender  string `json:"sender,omitempty"`  // as in [provider.ChargeRequest]

	WithCharge bool `json:"with_charge,omitempty"`
}

func (s *Service) ofIntent(i clientIntent, withCharge bool) onIntent {
	return onIntent{
		Charge: i.charge.ID, Account: numberOf(i.charge), Sender: s.store.own.senderMark(),
		WithCharge: withCharge,
	}
}

// confirmFrozen is what is frozen of a confirmation.
type confirmFrozen struct {
	onIntent
	Request provider.ConfirmRequest `json:"request"`
	Before  seen                    `json:"before"`
}
