package charges

import (
	"context"
	"net/http"

	"paidonce/db"
	"paidonce/idemkeys"
	"paidonce/provider"
)

// CaptureParams is what a client asks for.
type CaptureParams struct {
	Charge string
	Amount int64 // minor units; 0: all that is authorised
}

// Validate checks what can be known without looking at the charge. The first fault is returned as a [*ParamError].
func (p CaptureParams) Validate() error {
	if p.Amount < 0 || p.Amount > AmountMax {
		return invalid("amount", "parameter_invalid_integer", "amount must be 1 to %d, in minor units; leave it out to capture all.", AmountMax)
	}
	return nil
}

// captureFrozen is what is frozen of a capture.
type captureFrozen struct {
	Request provider.CaptureRequest `json:"request"`
	Charge  string                  `json:"charge"`            // ours
	Account int16                   `json:"account,omitempty"` // the charge's, at the provider
	Sender  string                  `json:"sender,omitempty"`  // as in [provider.ChargeRequest]
}

// Capture takes the money of an authorised charge, wholly or in part, once. Errors: those of [idemkeys.Engine.Do].
func (s *Service) Capture(ctx context.Context, r idemkeys.Request, p CaptureParams) (idemkeys.Result, error) {
	return s.do(ctx, r, func(ctx context.Context, r idemkeys.Request, operationID, leaseToken string) (idemkeys.Operation, bool, error) {
		op := newOperation(r, operationID, leaseToken, KindCapture, p.Charge)
		return s.store.claimOn(ctx, r, op, p.Charge, func(ctx context.Context, tx db.DBTX, charge db.Charge) (any, error) {
			amount, err := capturable(charge, p.Amount)
			if err != nil {
				return nil, about(charge, err)
			}
			n, err := s.store.reserveCapture(ctx, tx, op, charge)
			if err == nil && n == 0 {
				err = refuse(http.StatusConflict, "capture_pending", "charge", "The charge is being captured.")
				err = about(charge, err)
			}
			return captureFrozen{Charge: charge.ID, Account: numberOf(charge), Sender: s.store.own.mark(), Request: provider.CaptureRequest{
				IdempotencyKey: derivedKey(s.cfg.Installation, op.ID, "capture"), Tags: provider.Tags{Operation: op.ID, Installation: s.cfg.Installation},
				ChargeID: db.OrEmpty(charge.ProviderID), IntentID: db.OrEmpty(charge.IntentID), Amount: amount,
			}}, err
		})
	})
}

func (s *Store) reserveCapture(ctx context.Context, tx db.DBTX, op idemkeys.Operation, charge db.Charge) (int64, error) {
	if charge.CaptureForgotten {
		return s.queries.ChargeReserveForgotten(ctx, tx, db.ChargeReserveForgottenParams{OperationID: op.ID, AccountID: op.AccountID, ID: charge.ID})
	}
	return s.queries.ChargeReserveCapture(ctx, tx, db.ChargeReserveCaptureParams{OperationID: op.ID, AccountID: op.AccountID, ID: charge.ID})
}

// capturable returns how much a capture takes: what is asked for, or all.
func capturable(c db.Charge, asked int64) (int64, error) {
	switch {
	case c.Status == string(provider.Pending):
		return 0, refuse(http.StatusConflict, "charge_pending", "charge", "The outcome of the charge is not known yet; capture it when it is.")
	case c.Status != string(provider.Succeeded):
		return 0, refuse(http.StatusBadRequest, "charge_not_succeeded", "charge", "The charge failed: there is nothing to capture.")
	case c.CaptureForgotten && c.CaptureOperationID == nil && (asked == c.AmountCaptured || asked == 0 && c.AmountCaptured == c.Amount):
		return c.AmountCaptured, nil // the capture that was forgotten, come again
	case c.Captured:
		return 0, refuse(http.StatusBadRequest, "charge_already_captured", "charge", "The charge has been captured already.")
	case c.CaptureOperationID != nil:
		return 0, refuse(http.StatusConflict, "capture_pending", "charge", "Another capture of the charge is under way, and its outcome is not known yet.")
	case c.Disputed:
		return 0, refuse(http.StatusBadRequest, "charge_disputed", "charge", "The charge is disputed.")
	case asked > c.Amount:
		return 0, refuse(http.StatusBadRequest, "amount_too_large", "amount", "amount is greater than what is authorised.")
	case asked == 0:
		return c.Amount, nil
	}
	return asked, nil
}
