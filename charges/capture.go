package charges

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/jackc/pgx/v5"

	"paidonce/db"
	"paidonce/idemkeys"
	"paidonce/provider"
)

// KindCapture is the kind of operation that takes authorised money.
const KindCapture = "charge.capture"

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
	Charge  string                  `json:"charge"` // ours
}

// Capture takes the money of an authorised charge, wholly or in part, once. Errors: those of [idemkeys.Engine.Do].
func (s *Service) Capture(ctx context.Context, r idemkeys.Request, p CaptureParams) (idemkeys.Result, error) {
	return s.engine.Do(ctx, r, func(ctx context.Context, r idemkeys.Request, operationID, leaseToken string) (idemkeys.Operation, bool, error) {
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
			return captureFrozen{Charge: charge.ID, Request: provider.CaptureRequest{
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

// capturable tells how much a capture takes: what is asked for, or all.
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

// Capturing is the capture as a kind of operation.
//
//	started    the key is claimed and the charge names the operation that captures it; the provider may have been called → look, ask, settle
//	finished   the charge is captured, or free to be captured by another operation after a definite refusal
//
// A charge is captured once at the provider too, so sending again is safe at any time: the charge itself tells whether it was.
func Capturing(p provider.Provider, s *Store) idemkeys.Kind {
	c := capturing{provider: p, store: s}
	return idemkeys.Kind{Phases: idemkeys.Phases{idemkeys.Started: c.capture}, Resolve: c.resolve}
}

type capturing struct {
	provider provider.Provider
	store    *Store
}

func (p capturing) thaw(ctx context.Context, op idemkeys.Operation) (f captureFrozen, row db.Charge, err error) {
	if err := json.Unmarshal(op.Params, &f); err != nil {
		return f, row, &idemkeys.Unresolved{Reason: "frozen parameters cannot be read: " + err.Error(), Park: true}
	}
	row, err = p.store.row(ctx, op.AccountID, f.Charge)
	if err != nil {
		err = &idemkeys.Unresolved{Reason: "the charge cannot be read: " + err.Error(), NotExecuted: true}
	}
	return f, row, err
}

func (p capturing) capture(ctx context.Context, op idemkeys.Operation) (idemkeys.Commit, error) {
	f, row, err := p.thaw(ctx, op)
	if err != nil {
		return idemkeys.Commit{}, err
	}
	if op.Plan() != idemkeys.Send || row.Captured {
		got, err := p.provider.GetCharge(ctx, f.Request.ChargeID)
		switch {
		case err != nil:
			return idemkeys.Commit{}, unresolved(err).lookUp()
		case got == nil:
			return idemkeys.Commit{}, &idemkeys.Unresolved{Park: true, Reason: "the provider does not know the charge " + f.Request.ChargeID}
		case got.Captured && got.AmountCaptured != f.Request.Amount:
			return idemkeys.Commit{}, &idemkeys.Unresolved{Park: true, Reason: fmt.Sprintf("the provider's charge %s is captured with %d, asked for were %d", got.ID, got.AmountCaptured, f.Request.Amount)}
		case got.Captured:
			return noted(p.settled(op, f, row), "found captured"), nil
		}
	}
	outcome, err := p.provider.Capture(ctx, f.Request)
	switch {
	case err != nil:
		return idemkeys.Commit{}, unresolved(err)
	case outcome.Refusal != nil && outcome.Refusal.Code == "charge_already_captured" && op.Reached:
		// It may have been an earlier attempt of ours whose key the provider forgot: the charge itself tells, at the next attempt.
		return idemkeys.Commit{}, &idemkeys.Unresolved{Reason: "the provider says that the charge is captured already"}
	case outcome.Refusal != nil:
		return noted(p.refused(op, f, *outcome.Refusal), "sent"), nil
	}
	return noted(p.settled(op, f, row), "sent"), nil
}

// settled is the commit for a charge that is captured.
func (p capturing) settled(op idemkeys.Operation, f captureFrozen, row db.Charge) idemkeys.Commit {
	known := row.Captured
	row.Captured, row.AmountCaptured = true, f.Request.Amount
	charge, err := fromRow(row)
	if err != nil {
		panic("rendering a charge of ours: " + err.Error()) // parks the operation
	}
	answer := idemkeys.Answer{Code: http.StatusOK, Header: map[string]string{"Content-Type": "application/json"}, Body: idemkeys.Render(charge)}
	return idemkeys.Commit{Next: idemkeys.Finished, Status: idemkeys.Completed, Answer: &answer, Write: captureSettlement{store: p.store, op: op, frozen: f, captured: true, known: known}}
}

// refused is the commit for a definite no.
func (p capturing) refused(op idemkeys.Operation, f captureFrozen, no provider.Refusal) idemkeys.Commit {
	problem := idemkeys.Problem{Type: "invalid_request_error", Code: no.Code, Message: no.Message, Param: no.Param, Charge: f.Charge,
		RequestID: op.RequestID, Advice: idemkeys.FixAndUseNewKey}
	if problem.Message == "" {
		problem.Message = "The payment provider refused the capture."
	}
	answer := errorAnswer(http.StatusBadRequest, problem)
	return idemkeys.Commit{Next: idemkeys.Finished, Status: idemkeys.Completed, Answer: &answer, Write: captureSettlement{store: p.store, op: op, frozen: f}}
}

// captureSettlement is the capture's half of its last commit.
type captureSettlement struct {
	store    *Store
	op       idemkeys.Operation
	frozen   captureFrozen
	captured bool
	known    bool // that it is captured was told already
}

// Execute implements [idemkeys.Write].
func (w captureSettlement) Execute(ctx context.Context, f idemkeys.Fence, c idemkeys.Commit) (bool, error) {
	s := w.store
	return s.finish(ctx, f, c, w.frozen.Request.ChargeID, func(ctx context.Context, tx db.DBTX) error {
		if !w.captured {
			_, err := s.queries.ChargeReleaseCapture(ctx, tx, db.ChargeReleaseCaptureParams{AccountID: f.AccountID, ID: w.frozen.Charge, OperationID: f.OperationID})
			return err
		}
		row, err := s.queries.ChargeCapture(ctx, tx, db.ChargeCaptureParams{
			AmountCaptured: w.frozen.Request.Amount, AccountID: f.AccountID, ID: w.frozen.Charge, OperationID: f.OperationID,
		})
		if errors.Is(err, pgx.ErrNoRows) {
			return db.Final(errors.New("the charge is captured already, or by another operation"))
		}
		if err != nil {
			return err
		}
		charge, err := fromRow(row)
		if err != nil {
			return db.Final(err)
		}
		if w.known {
			return nil
		}
		return s.tell(ctx, tx, w.op, "charge.captured", charge.ID, charge, charge.Livemode)
	})
}

// resolve checks a person's word on a capture at the provider, where the charge itself tells.
func (p capturing) resolve(ctx context.Context, op idemkeys.Operation, word idemkeys.Resolution) (idemkeys.Commit, error) {
	f, row, err := p.thaw(ctx, op)
	if err != nil {
		return idemkeys.Commit{}, err
	}
	got, err := p.provider.GetCharge(ctx, f.Request.ChargeID)
	switch {
	case err != nil:
		return idemkeys.Commit{}, fmt.Errorf("the provider could not be asked: %w", err)
	case got == nil:
		return idemkeys.Commit{}, fmt.Errorf("the provider has no charge %s", f.Request.ChargeID)
	case word.Succeeded && word.ProviderID != got.ID:
		return idemkeys.Commit{}, fmt.Errorf("the provider's charge is %s", got.ID)
	case word.Succeeded && (!got.Captured || got.AmountCaptured != f.Request.Amount):
		return idemkeys.Commit{}, fmt.Errorf("the provider's charge %s is captured with %d", got.ID, got.AmountCaptured)
	case !word.Succeeded && got.Captured:
		return idemkeys.Commit{}, fmt.Errorf("the provider's charge %s is captured", got.ID)
	case word.Succeeded:
		return p.settled(op, f, row), nil
	}
	return p.refused(op, f, provider.Refusal{Code: "capture_never_made", Message: "The charge was not captured."}), nil
}
