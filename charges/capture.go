package charges

import (
	"context"

	"paidonce/db"
	"paidonce/idemkeys"
	"paidonce/problem"
	"paidonce/provider"
)

// KindCapture is the kind of operation that takes what was authorised.
const KindCapture = "charge.capture"

// The parameters.

// CaptureParams are a client's parameters.
type CaptureParams struct {
	Charge string
	Amount int64 // minor units; 0: all that is authorised

	WithRefunds bool // the answer shows the charge's refunds
}

// Validate checks what can be known without looking at the charge. The first fault is returned as a
// [*problem.Error].
func (p CaptureParams) Validate() error {
	return checkPart(p.Amount, "capture all")
}

// The claim.

// Capture takes the money of an authorised charge, wholly or in part, once. Refusals name the
// charge "id", as the path of the request does. Errors: those of
// [idemkeys.Runner.Do].
func (s *Service) Capture(
	ctx context.Context, r idemkeys.Request, p CaptureParams,
) (idemkeys.Result, error) {
	res, err := s.runner.Do(ctx, r, func(ctx context.Context, r idemkeys.Request, op *idemkeys.Operation) (
		idemkeys.Claimed, error,
	) {
		op.Kind, op.ResourceID = KindCapture, p.Charge
		// Not noted as a recent claim: a capture that was proven never made leaves no row.
		return s.store.claimOnCharge(ctx, r, op, p.Charge, "id", func(
			ctx context.Context, tx db.DBTX, charge db.Charge,
		) (any, error) {
			amount, err := capturable(charge, p.Amount)
			if err != nil {
				return nil, withCharge(charge, err)
			}
			f, err := s.reserveAndFreezeCapture(ctx, tx, op, charge, amount)
			f.WithRefunds = p.WithRefunds
			return f, err
		})
	})
	return res, s.store.orReplaced(ctx, err)
}

// capturable returns how much a capture takes: the amount asked for, or all.
func capturable(c db.Charge, asked int64) (int64, error) {
	switch {
	case c.Status == string(provider.Pending):
		return 0, problem.ChargePending.Of(
			"id", "The outcome of the charge is not known yet; capture it when it is.",
		)
	case c.Status != string(provider.Succeeded):
		return 0, problem.ChargeNotSucceeded.Of(
			"id", "The charge failed: there is nothing to capture.",
		)
	case releasing(c):
		return 0, problem.CancelPending.Of(
			"id", "The charge is being cancelled, and the outcome is not known yet.",
		)
	case released(c):
		return 0, problem.ChargeReleased.Of(
			"id", "The authorised money was let go of: there is nothing to capture.",
		)
	case c.CaptureForgotten && c.CaptureOperationID == nil &&
		(asked == c.AmountCaptured || asked == 0 && c.AmountCaptured == c.Amount):
		return c.AmountCaptured, nil // the capture that was forgotten is requested again
	case c.Captured:
		return 0, problem.ChargeAlreadyCaptured.Of(
			"id", "The charge has been captured already.",
		)
	case c.CaptureOperationID != nil:
		return 0, problem.CapturePending.Of(
			"id",
			"Another capture of the charge is under way, and its outcome is not known yet.",
		)
	case c.Disputed:
		return 0, problem.ChargeDisputed.Of("id", "The charge is disputed.")
	case asked > c.Amount:
		return 0, problem.AmountTooLarge.Of("amount", "amount is greater than what is authorised.")
	case asked == 0:
		return c.Amount, nil
	}
	return asked, nil
}

func (s *Store) reserveCapture(
	ctx context.Context, tx db.DBTX, op *idemkeys.Operation, charge db.Charge,
) (int64, error) {
	if charge.CaptureForgotten {
		return s.queries.ChargeReserveForgotten(
			ctx, tx,
			db.ChargeReserveForgottenParams{
				OperationID: op.ID, AccountID: op.AccountID, ID: charge.ID,
			},
		)
	}
	return s.queries.ChargeReserveCapture(
		ctx, tx,
		db.ChargeReserveCaptureParams{OperationID: op.ID, AccountID: op.AccountID, ID: charge.ID},
	)
}

func (s *Service) reserveAndFreezeCapture(
	ctx context.Context, tx db.DBTX, op *idemkeys.Operation, charge db.Charge, amount int64,
) (captureFrozen, error) {
	n, err := s.store.reserveCapture(ctx, tx, op, charge)
	if err == nil && n == 0 {
		err = problem.CapturePending.Of("id", "The charge is being captured.")
		err = withCharge(charge, err)
	}
	return captureFrozen{
		Charge: charge.ID, Account: numberOf(charge), Sender: s.store.own.senderMark(),
		Request: provider.CaptureRequest{
			IdempotencyKey: derivedKey(s.cfg.Installation, op.ID, "capture"),
			Tags:           provider.Tags{Operation: op.ID, Installation: s.cfg.Installation},
			ChargeID:       db.OrEmpty(charge.ProviderID), IntentID: db.OrEmpty(charge.IntentID),
			Amount: amount,
		},
	}, err
}

// captureFrozen is what is frozen of a capture.
type captureFrozen struct {
	Request provider.CaptureRequest `json:"request"`
	Charge  string                  `json:"charge"`            // ours
	Account int16                   `json:"account,omitempty"` // the charge's, at the provider
	Sender  string                  `json:"sender,omitempty"`  // as in [provider.ChargeRequest]
	// it was asked for as the capture of a payment intent, and is answered as one
	AsIntent   bool `json:"as_intent,omitempty"`
	WithCharge bool `json:"with_charge,omitempty"` // of such a capture

	WithRefunds bool `json:"with_refunds,omitempty"`
}
