package charges

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/jackc/pgx/v5"

	"paidonce/db"
	"paidonce/idemkeys"
	"paidonce/provider"
)

// capturing is the capture as a kind of operation. The charge itself tells whether it was captured. It is captured
// once at the provider too, so that nothing is taken twice whoever asks. After a definite refusal, or proof that it
// was not captured, the charge is free to be captured by another operation.
type capturing struct {
	provider provider.Provider
	store    *Store
	cfg      Config
}

func (p capturing) thaw(ctx context.Context, op idemkeys.Operation) (f captureFrozen, row db.Charge, err error) {
	if f, err = thaw[captureFrozen](op.Params); err != nil {
		return f, row, err
	}
	row, err = p.store.row(ctx, op.AccountID, f.Charge)
	if err != nil {
		err = unread("the charge "+f.Charge, err)
	}
	return f, row, err
}

func (p capturing) capture(ctx context.Context, op idemkeys.Operation) (idemkeys.Commit, error) {
	f, row, err := p.thaw(ctx, op)
	if err != nil {
		return idemkeys.Commit{}, err
	}
	if row.Captured && !row.CaptureForgotten || row.CaptureOperationID == nil || *row.CaptureOperationID != op.ID {
		return idemkeys.Commit{}, parked("the charge %s is captured already, or is another operation's to capture", row.ID)
	}
	return p.cfg.attempt(ctx, op, attempt{
		look: func(reading) (idemkeys.Commit, bool, error) {
			got, err := p.provider.GetCharge(ctx, f.Request.ChargeID)
			if err != nil { // lookedUp says nil where the provider has no such read
				return idemkeys.Commit{}, false, lookedUp(op, err)
			}
			return p.found(op, f, row, got)
		},
		again:     row.Captured, // by the very operation that the database had forgotten
		send:      func() (idemkeys.Commit, error) { return p.send(ctx, op, f, row) },
		neverMade: func() idemkeys.Commit { return p.neverMade(op, f) },
	})
}

func (p capturing) send(ctx context.Context, op idemkeys.Operation, f captureFrozen, row db.Charge) (idemkeys.Commit, error) {
	outcome, err := p.provider.Capture(ctx, f.Request)
	switch {
	case err != nil:
		return idemkeys.Commit{}, unresolved(err)
	case outcome.Refusal != nil && outcome.Refusal.Code == codeAlreadyCaptured:
		return p.already(ctx, op, f, row, *outcome.Refusal)
	case outcome.Refusal != nil:
		return noted(p.refused(op, f, *outcome.Refusal), "sent"), nil
	}
	return noted(p.settled(op, f, row), "sent"), nil
}

// codeAlreadyCaptured is the provider's refusal that an earlier attempt of ours may be the reason of.
const codeAlreadyCaptured = "charge_already_captured"

// found is what the charge, as the provider has it, says of a capture that may have been sent. over: the capture's outcome is certain.
func (p capturing) found(op idemkeys.Operation, f captureFrozen, row db.Charge, got *provider.Charge) (c idemkeys.Commit, over bool, err error) {
	switch {
	case got == nil:
		return c, false, parked("the provider does not know the charge %s", f.Request.ChargeID)
	case got.Captured && got.AmountCaptured != f.Request.Amount:
		return c, false, parked("the provider's charge %s is captured with %d, asked for were %d", got.ID, got.AmountCaptured, f.Request.Amount)
	case got.Captured:
		return noted(p.settled(op, f, row), "found captured"), true, nil
	case got.Status == provider.Failed || got.AmountRefunded > 0 && got.AmountRefunded >= got.Amount: // let go of: nothing can be captured any more
		return noted(p.refused(op, f, provider.Refusal{Code: "charge_released", Message: "The payment provider has let go of the authorised money: nothing was captured."}), "found released"), true, nil
	}
	return c, false, nil
}

// already deals with a refusal because the charge is captured. It may have been an earlier attempt of ours whose key the provider forgot, or somebody else, or
// ourselves before our database was set back; the charge tells. Captured as was asked for, that is how things stand, and the answer. Captured otherwise, it is not
// this operation's doing if nothing had been sent before: that is the answer, and our charge learns how much was taken, or it could never be given back.
func (p capturing) already(ctx context.Context, op idemkeys.Operation, f captureFrozen, row db.Charge, no provider.Refusal) (idemkeys.Commit, error) {
	got, err := p.provider.GetCharge(ctx, f.Request.ChargeID)
	switch {
	case err != nil && noSuchRead(err) && !op.Reached:
		return noted(p.refused(op, f, no), "sent"), nil
	case err != nil:
		return idemkeys.Commit{}, &idemkeys.Unresolved{Reason: "look-up after a refusal: " + err.Error(), Park: noSuchRead(err), NotExecuted: !op.Reached}
	case !op.Reached && got != nil && got.Captured && got.AmountCaptured > 0 && got.AmountCaptured != f.Request.Amount:
		return noted(p.commit(op, f, idemkeys.Completed, p.refusal(op, f, no), got.AmountCaptured), "sent, and found captured otherwise"), nil
	}
	if c, over, err := p.found(op, f, row, got); over || err != nil {
		return c, err
	}
	// The provider contradicts itself, and goes on to under this key: soon only what its charge says counts.
	return idemkeys.Commit{}, &idemkeys.Unresolved{ServerError: true, Reason: "the provider refuses the capture as made already, and its charge is not captured"}
}

// settled is the commit for a charge that is captured.
func (p capturing) settled(op idemkeys.Operation, f captureFrozen, row db.Charge) idemkeys.Commit {
	told := row.Captured
	row.Captured, row.AmountCaptured = true, f.Request.Amount
	if told { // that was long ago: since then it may have been refunded or disputed, which the first answer did not have
		row.AmountRefunded, row.Disputed = 0, false
	}
	charge, err := fromRow(row)
	if err != nil {
		panic("rendering a charge of ours: " + err.Error()) // parks the operation
	}
	answer := idemkeys.Answer{Code: http.StatusOK, Header: map[string]string{"Content-Type": "application/json"}, Body: idemkeys.Render(charge)}
	c := p.commit(op, f, idemkeys.Completed, answer, f.Request.Amount)
	c.Write = captureSettlement{store: p.store, op: op, frozen: f, captured: f.Request.Amount, told: told}
	return c
}

// refused is the commit for a definite no.
func (p capturing) refused(op idemkeys.Operation, f captureFrozen, no provider.Refusal) idemkeys.Commit {
	return p.commit(op, f, idemkeys.Completed, p.refusal(op, f, no), 0)
}

func (p capturing) refusal(op idemkeys.Operation, f captureFrozen, no provider.Refusal) idemkeys.Answer {
	problem := idemkeys.Problem{Type: "invalid_request_error", Code: no.Code, Message: no.Message, Param: no.Param, Charge: f.Charge,
		RequestID: op.RequestID, Advice: idemkeys.FixAndUseNewKey}
	if problem.Message == "" {
		problem.Message = "The payment provider refused the capture."
	}
	return errorAnswer(http.StatusBadRequest, problem)
}

// neverMade is the commit for a capture that is proven not to have been made: the charge is free to be captured, by the same request too.
func (p capturing) neverMade(op idemkeys.Operation, f captureFrozen) idemkeys.Commit {
	problem := idemkeys.Problem{Type: "api_error", Code: "capture_never_made", Charge: f.Charge, RequestID: op.RequestID, Advice: idemkeys.RetrySameKey,
		Message: "The payment provider never made this capture, and no money moved. The same request under the same key makes a new one."}
	return p.commit(op, f, idemkeys.Failed, errorAnswer(http.StatusServiceUnavailable, problem), 0)
}

// commit ends the operation with an answer. captured is how much of the charge is captured now; 0: nothing, and another operation may capture it.
func (p capturing) commit(op idemkeys.Operation, f captureFrozen, status idemkeys.Status, a idemkeys.Answer, captured int64) idemkeys.Commit {
	return idemkeys.Commit{Next: idemkeys.Finished, Status: status, Answer: &a, Write: captureSettlement{store: p.store, op: op, frozen: f, captured: captured}}
}

// captureSettlement is the capture's half of its last commit.
type captureSettlement struct {
	store    *Store
	op       idemkeys.Operation
	frozen   captureFrozen
	captured int64
	told     bool // that it is captured was told already, when the capture was found to have been forgotten
}

// Execute implements [idemkeys.Write].
func (w captureSettlement) Execute(ctx context.Context, f idemkeys.Fence, c idemkeys.Commit) (bool, error) {
	s := w.store
	return s.finish(ctx, f, c, w.frozen.Request.ChargeID, func(ctx context.Context, tx db.DBTX) error {
		if w.captured == 0 {
			_, err := s.queries.ChargeReleaseCapture(ctx, tx, db.ChargeReleaseCaptureParams{AccountID: f.AccountID, ID: w.frozen.Charge, OperationID: f.OperationID})
			return err
		}
		row, err := s.queries.ChargeCapture(ctx, tx, db.ChargeCaptureParams{
			AmountCaptured: w.captured, AccountID: f.AccountID, ID: w.frozen.Charge, OperationID: f.OperationID,
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
		if w.told {
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
	got, err := p.chargeFor(ctx, f, word)
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
	return p.neverMade(op, f), nil
}
