package charges

import (
	"context"
	"errors"
	"fmt"

	"paidonce/db"
	"paidonce/idemkeys"
	"paidonce/outbox"
	"paidonce/problem"
	"paidonce/provider"
)

// The phases.

// captureKind is the capture as a kind of operation. The charge itself shows whether it was
// captured. The provider captures it once, too, so nothing is taken twice, whoever asks. After a
// definite refusal, or proof that it was not captured, the charge is free to be captured by another
// operation.
type captureKind struct{ *phaseDeps }

// captureStep is an operation of this kind, with its charge as it stands here.
type captureStep struct {
	*phaseDeps
	op      *idemkeys.Operation
	frozen  *captureFrozen
	row     db.Charge
	refunds *RefundsOf // of the charge, if the answer shows them
}

func (k captureKind) at(ctx context.Context, op *idemkeys.Operation) (s *captureStep, err error) {
	s = &captureStep{phaseDeps: k.phaseDeps, op: op}
	if s.frozen, err = readFrozen[captureFrozen](op.Params); err != nil {
		return s, err
	}
	if s.row, err = k.store.row(ctx, op.AccountID, s.frozen.Charge); err != nil {
		return s, rowError("the charge "+s.frozen.Charge, err)
	}
	if s.frozen.WithRefunds {
		shown := []Charge{{ID: s.row.ID}}
		if err = k.store.readRefunds(ctx, op.AccountID, shown); err != nil {
			return s, rowError("the refunds of the charge "+s.row.ID, err)
		}
		s.refunds = shown[0].Refunds
	}
	return s, nil
}

func (k captureKind) capture(ctx context.Context, op *idemkeys.Operation) (*idemkeys.Commit, error) {
	s, err := k.at(ctx, op)
	if err != nil {
		return nil, err
	}
	if s.row.Captured && !s.row.CaptureForgotten || s.row.CaptureOperationID == nil ||
		*s.row.CaptureOperationID != op.ID {
		return nil, parked(
			"the charge %s is captured already, or is another operation's to capture", s.row.ID,
		)
	}
	return attempt[captured]{
		look: func(reading) (*captured, error) {
			got, err := k.provider.GetCharge(ctx, s.frozen.Request.ChargeID)
			if err != nil { // lookedUp returns nil where the provider has no such read
				return nil, lookedUp(op, err)
			}
			return s.outcome(got)
		},
		again: s.row.Captured, // by the very operation that the database had forgotten
		send: func() (*captured, *provider.Refusal, error) {
			outcome, err := k.provider.Capture(ctx, s.frozen.Request)
			how := &captured{}
			if outcome.Charge != nil {
				how.details = outcome.Charge.Details
			}
			return how, outcome.Refusal, err
		},
		settled:   func(how *captured) (*idemkeys.Commit, error) { return s.settled(ctx, how) },
		refused:   func(no *provider.Refusal) (*idemkeys.Commit, error) { return s.refused(ctx, no) },
		neverMade: s.neverMade,
	}.run(ctx, &k.cfg, op)
}

// captured is a certain outcome of a capture: the charge is captured as requested, or it was
// released.
type captured struct {
	released *provider.Charge // as it is there; nil: it is captured
	details  provider.Details
}

// outcome returns what the provider's charge says about a capture that may have been sent, or nil
// if it was not captured.
func (s *captureStep) outcome(got *provider.Charge) (*captured, error) {
	asked := s.frozen.Request
	switch {
	case got == nil:
		return nil, parked("the provider does not know the charge %s", asked.ChargeID)
	case got.Captured && got.AmountCaptured != asked.Amount:
		return nil, parked(
			"the provider's charge %s is captured with %d, asked for were %d", got.ID,
			got.AmountCaptured, asked.Amount,
		)
	case got.Captured:
		return &captured{details: got.Details}, nil
	// nothing can be captured any more
	case got.Status == provider.Failed || got.Released():
		return &captured{released: got}, nil
	}
	return nil, nil
}

// refused is the commit for a refusal. If the charge is captured already, that may have been our
// own earlier attempt whose key the provider forgot, or somebody else, or this product before its
// database was put back. So the charge is read. If it is captured as requested, the operation
// succeeds. If it is captured otherwise and nothing had been sent before, somebody else did it: the
// refusal is the answer, and our charge stores how much was captured, or that could never be
// refunded.
func (s *captureStep) refused(ctx context.Context, no *provider.Refusal) (*idemkeys.Commit, error) {
	answer := errorAnswer(s.op, refusal(problem.ProviderRefused, no, s.frozen.Charge, "capture"))
	if !no.AlreadyCaptured {
		return s.lapsed(ctx, answer)
	}
	got, err := s.provider.GetCharge(ctx, s.frozen.Request.ChargeID)
	unsupported := provider.KindOf(err) == provider.Unsupported
	switch {
	case unsupported && !s.op.Reached:
		return s.commit(idemkeys.Completed, answer), nil
	case err != nil:
		return nil, &idemkeys.Unresolved{
			Reason: "look-up after a refusal: " + err.Error(), Park: unsupported,
			NotExecuted: !s.op.Reached,
		}
	case !s.op.Reached && got != nil && got.Captured && got.AmountCaptured > 0 &&
		got.AmountCaptured != s.frozen.Request.Amount:
		c := s.commit(idemkeys.Completed, answer)
		c.Write = captureSettlement{
			store: s.store, op: s.op, frozen: s.frozen, captured: got.AmountCaptured,
			details: got.Details,
		}
		return withNote(c, "sent, and found captured otherwise"), nil
	}
	outcome, err := s.outcome(got)
	switch {
	case err != nil:
		return nil, err
	case outcome != nil:
		c, err := s.settled(ctx, outcome)
		return withNote(c, "found by its charge"), err
	}
	// The provider contradicts itself, and will again under this key: soon only what its charge
	// says counts.
	return nil, &idemkeys.Unresolved{
		ServerError: true,
		Reason:      "the provider refuses the capture as made already, and its charge is not captured",
	}
}

// lapsed is the commit for a refusal that is final. Its reason may be that the authorisation has
// lapsed, or was let go of: then our charge learns it. A charge that cannot be read is asked for
// later.
func (s *captureStep) lapsed(
	ctx context.Context, answer idemkeys.Answer,
) (*idemkeys.Commit, error) {
	got, err := s.provider.GetCharge(ctx, s.frozen.Request.ChargeID)
	if err == nil && got != nil && got.Released() {
		return s.settled(ctx, &captured{released: got})
	}
	return s.commit(idemkeys.Completed, answer), nil
}

// The last commit.

// settled is the commit for a certain outcome.
func (s *captureStep) settled(ctx context.Context, how *captured) (*idemkeys.Commit, error) {
	if how.released != nil {
		return s.released(ctx, how.released)
	}
	shown := func(was db.Charge) (any, error) { return s.shown(was, how) }
	if s.frozen.AsIntent {
		of, err := s.store.showingIntent(ctx, s.row, s.frozen.WithCharge)
		if err != nil {
			return nil, err
		}
		shown = func(was db.Charge) (any, error) {
			now, err := s.after(was, how)
			if err != nil {
				return nil, err
			}
			return of(now)
		}
	}
	c := s.commit(idemkeys.Completed, okAnswer(nil)) // its body is what is shown
	c.Write = captureSettlement{
		store: s.store, op: s.op, frozen: s.frozen, captured: s.frozen.Request.Amount,
		details: how.details, shown: shown, announced: s.row.Captured,
	}
	return c, nil
}

// shown is what the answer shows of a charge, once it is captured.
func (s *captureStep) shown(row db.Charge, how *captured) (Charge, error) {
	now, err := s.after(row, how)
	if err != nil {
		return Charge{}, err
	}
	charge, err := fromRow(now)
	if err != nil {
		return Charge{}, err
	}
	if charge.Refunds = s.refunds; row.Captured && s.refunds != nil {
		charge.Refunds = noRefunds(charge.ID)
	}
	return charge, nil
}

// after is a charge once it is captured.
func (s *captureStep) after(row db.Charge, how *captured) (db.Charge, error) {
	if row.Captured { // the first answer was given long ago, before any refund or dispute
		row.AmountRefunded, row.Disputed = 0, false
	}
	row.Captured, row.AmountCaptured = true, s.frozen.Request.Amount
	details, err := learn(row.Details, how.details)
	row.Details = details
	return row, err
}

// released is the commit for a charge whose money was let go of.
func (s *captureStep) released(
	ctx context.Context, got *provider.Charge,
) (*idemkeys.Commit, error) {
	c := s.commit(
		idemkeys.Completed, errorAnswer(s.op, ofCharge(problem.ChargeReleased, s.frozen.Charge)),
	)
	if !got.Released() {
		return c, nil
	}
	how, err := howReleased(ctx, s.provider, got, s.cfg.Installation)
	if err != nil {
		return nil, notLookedUp(err)
	}
	if s.frozen.AsIntent {
		now := s.row
		now.CaptureOperationID, now.Release = nil, &how
		p, err := s.store.unfitIntent(ctx, now, "captured", provider.IntentRequiresCapture)
		if err != nil {
			return nil, err
		}
		c = s.commit(idemkeys.Completed, errorAnswer(s.op, p))
	}
	c.Write = captureSettlement{store: s.store, op: s.op, frozen: s.frozen, release: how}
	return c, nil
}

// neverMade is the commit for a capture that is proven not to have been made. The charge may be
// captured again, also by the same request.
func (s *captureStep) neverMade() *idemkeys.Commit {
	return s.commit(
		idemkeys.Failed, errorAnswer(s.op, ofCharge(problem.CaptureNeverMade, s.frozen.Charge)),
	)
}

// commit ends the operation with an answer. Nothing is captured, and another operation may capture
// the charge, unless the caller says otherwise in Write.
func (s *captureStep) commit(status idemkeys.Status, a idemkeys.Answer) *idemkeys.Commit {
	return &idemkeys.Commit{
		Next: idemkeys.Finished, Status: status, Answer: &a,
		Write: captureSettlement{store: s.store, op: s.op, frozen: s.frozen},
	}
}

// captureSettlement writes the rows of the last commit of a capture: the charge and its event, with
// the stored answer.
type captureSettlement struct {
	store    *Store
	op       *idemkeys.Operation
	frozen   *captureFrozen
	captured int64
	details  provider.Details // as the provider told them with the capture
	release  string           // how the charge was let go of, if it was
	shown    showing
	// there is an event of it already, since the capture was found to have been forgotten
	announced bool
}

// Execute implements [idemkeys.Write].
func (w captureSettlement) Execute(
	ctx context.Context, f idemkeys.Fence, c *idemkeys.Commit,
) (bool, error) {
	s := w.store
	return s.finishCharge(ctx, f, c, w.frozen.Charge, w.frozen.Request.ChargeID, w.shown, func(
		ctx context.Context, tx db.DBTX, was db.Charge,
	) error {
		if w.release != "" {
			return s.learnReleased(ctx, tx, w.op, was, w.release)
		}
		if w.captured == 0 {
			_, err := s.queries.ChargeReleaseCapture(
				ctx, tx,
				db.ChargeReleaseCaptureParams{
					AccountID: f.AccountID, ID: w.frozen.Charge, OperationID: f.OperationID,
				},
			)
			return err
		}
		details, err := learn(was.Details, w.details)
		if err != nil {
			return db.Final(err)
		}
		row, found, err := db.Found(s.queries.ChargeCapture(ctx, tx, db.ChargeCaptureParams{
			AmountCaptured: w.captured, AccountID: f.AccountID, ID: w.frozen.Charge,
			OperationID: f.OperationID, Details: details,
		}))
		if err != nil {
			return err
		}
		if !found {
			return db.Final(errors.New("the charge is captured already, or by another operation"))
		}
		charge, err := fromRow(row)
		if err != nil {
			return db.Final(err)
		}
		if w.announced {
			return nil
		}
		o, was := triggerOf(w.op, charge.Livemode), row
		if err := s.addEvent(ctx, tx, o, outbox.ChargeCaptured, charge); err != nil {
			return err
		}
		was.Captured = false
		return s.followCharge(ctx, tx, o, was, row)
	})
}

// An operator's decision, or an event of the provider.

// resolve checks an operator's decision on a capture against the provider's charge.
func (k captureKind) resolve(
	ctx context.Context, op *idemkeys.Operation, decision idemkeys.Resolution,
) (*idemkeys.Commit, error) {
	s, err := k.at(ctx, op)
	if err != nil {
		return nil, err
	}
	got, err := k.provider.GetCharge(ctx, s.frozen.Request.ChargeID)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the provider could not be asked: %w", err)
	case got == nil:
		return nil, fmt.Errorf(
			"the provider has no charge %s", s.frozen.Request.ChargeID,
		)
	case decision.Succeeded && decision.ProviderID != got.ID:
		return nil, fmt.Errorf("the provider's charge is %s", got.ID)
	case decision.Succeeded:
		return s.settledBy(ctx, *got)
	case got.Captured:
		return nil, fmt.Errorf("the provider's charge %s is captured", got.ID)
	}
	return s.neverMade(), nil
}

// settle ends the operation by the charge that was to be captured.
func (k captureKind) settle(
	ctx context.Context, op *idemkeys.Operation, what providerObject,
) (*idemkeys.Commit, error) {
	s, err := k.at(ctx, op)
	switch {
	case err != nil:
		return nil, err
	case what.charge == nil:
		return nil, errOtherObject
	}
	return s.settledBy(ctx, *what.charge)
}

// settledBy checks that a charge is captured as requested, and returns the capture's commit.
func (s *captureStep) settledBy(
	ctx context.Context, got provider.Charge,
) (*idemkeys.Commit, error) {
	switch {
	case got.ID != s.frozen.Request.ChargeID:
		return nil, fmt.Errorf(
			"the provider's charge %s is not the one that was to be captured, %s", got.ID,
			s.frozen.Request.ChargeID,
		)
	case !got.Captured || got.AmountCaptured != s.frozen.Request.Amount:
		return nil, fmt.Errorf(
			"the provider's charge %s is captured with %d", got.ID, got.AmountCaptured,
		)
	}
	return s.settled(ctx, &captured{details: got.Details})
}
