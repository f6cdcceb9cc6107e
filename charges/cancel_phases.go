package charges

import (
	"context"
	"errors"
	"fmt"

	"paidonce/db"
	"paidonce/idemkeys"
	"paidonce/problem"
	"paidonce/provider"
)

// The phases.

// cancelKind is the cancellation as a kind of operation, and the refund of what is only authorised.
// The provider's charge, or its intent, shows whether it was let go of. Both kinds and a capture
// take turns on the charge, so one of them wins, and the others are told.
type cancelKind struct{ *phaseDeps }

// cancelStep is an operation of these kinds, with its charge as it stands here.
type cancelStep struct {
	*phaseDeps
	op     *idemkeys.Operation
	frozen *cancelFrozen
	row    db.Charge
}

func (k cancelKind) at(ctx context.Context, op *idemkeys.Operation) (s *cancelStep, err error) {
	s = &cancelStep{phaseDeps: k.phaseDeps, op: op}
	if s.frozen, err = readFrozen[cancelFrozen](op.Params); err != nil {
		return s, err
	}
	if s.row, err = k.store.row(ctx, op.AccountID, s.frozen.Charge); err != nil {
		return s, rowError("the charge "+s.frozen.Charge, err)
	}
	if s.isRefund() {
		err = k.store.checkReserved(ctx, op, &s.frozen.refundFrozen)
	}
	return s, err
}

func (s *cancelStep) isRefund() bool { return s.op.Kind == KindRefundHold }

func (k cancelKind) cancel(ctx context.Context, op *idemkeys.Operation) (*idemkeys.Commit, error) {
	s, err := k.at(ctx, op)
	if err != nil {
		return nil, err
	}
	if s.row.Captured || db.OrEmpty(s.row.CaptureOperationID) != op.ID {
		return nil, parked(
			"the charge %s is captured already, or is another operation's to end", s.row.ID,
		)
	}
	return attempt[ending]{
		look: func(reading) (*ending, error) {
			e, err := s.read(ctx)
			if err != nil { // lookedUp returns nil where the provider has no such read
				return nil, lookedUp(op, err)
			}
			return e, nil
		},
		again:     released(s.row), // by the very operation that the database had forgotten
		send:      func() (*ending, *provider.Refusal, error) { return s.send(ctx) },
		settled:   func(e *ending) (*idemkeys.Commit, error) { return s.settled(ctx, e) },
		refused:   func(no *provider.Refusal) (*idemkeys.Commit, error) { return s.refused(ctx, no) },
		neverMade: s.neverMade,
	}.run(ctx, &k.cfg, op)
}

// own is how the operation itself lets go of a charge.
func (s *cancelStep) own() string {
	if s.isRefund() {
		return releaseRefunded
	}
	return releaseCanceled
}

// read asks the provider how the charge has ended, and returns nil if it has not.
func (s *cancelStep) read(ctx context.Context) (*ending, error) {
	if s.frozen.Intent != nil {
		in, err := s.provider.GetIntent(ctx, s.frozen.Intent.IntentID)
		switch {
		case err != nil:
			return nil, err
		case in == nil:
			return nil, unknownThere("intent", s.frozen.Intent.IntentID)
		}
		return s.ofIntent(ctx, *in)
	}
	id := s.frozen.Request.ChargeID
	got, err := s.provider.GetCharge(ctx, id)
	switch {
	case err != nil:
		return nil, err
	case got == nil:
		return nil, unknownThere("charge", id)
	case !got.Released():
		return s.ofCharge(got), nil
	}
	refunds, err := s.provider.RefundsOf(ctx, id)
	if err != nil && provider.KindOf(err) != provider.Unsupported {
		return nil, err
	}
	e := ending{charge: got, how: releaseRefunded, others: err == nil}
	for _, r := range refunds {
		switch {
		case r.Tags == s.frozen.Request.Tags:
			return &ending{charge: got, how: s.own(), refund: &r}, nil
		case r.Reason == provider.ReasonLapsed:
			e.how = releaseExpired
		case r.Tags.Installation == s.cfg.Installation:
			e.how = releaseCanceled
		}
	}
	if s.row.CaptureForgotten || !e.others { // nothing tells whose doing it is
		e.how, e.others = s.own(), false
	}
	return &e, nil
}

// ofCharge is the ending of a charge of the provider, or nil.
func (s *cancelStep) ofCharge(got *provider.Charge) *ending {
	switch {
	case got.Captured:
		return &ending{charge: got}
	case got.Released():
		return &ending{charge: got, how: s.own()}
	}
	return nil
}

// ofIntent is the ending of an intent of the provider, or nil.
func (s *cancelStep) ofIntent(ctx context.Context, in provider.Intent) (*ending, error) {
	if in.Status != provider.IntentCanceled && in.Status != provider.IntentSucceeded {
		return nil, nil
	}
	var e ending
	if in.Charge != nil || in.ChargeID != "" {
		got, err := chargeOf(ctx, s.provider, &in)
		if err != nil {
			return nil, err
		}
		if got.Status == provider.Succeeded {
			e.charge = got
		}
	}
	switch {
	case in.Status == provider.IntentSucceeded:
	case in.Lapsed:
		e.how, e.others = releaseExpired, true
	default:
		e.how = s.own()
	}
	if e.how == "" || !s.isRefund() || e.charge == nil {
		return &e, nil
	}
	// What is answered as a refund is one at the provider, which the cancellation has made.
	refunds, err := s.provider.RefundsOf(ctx, e.charge.ID)
	if err != nil && provider.KindOf(err) != provider.Unsupported {
		return nil, err
	}
	if len(refunds) > 0 {
		e.refund = &refunds[0]
	}
	return &e, nil
}

func (s *cancelStep) send(ctx context.Context) (*ending, *provider.Refusal, error) {
	if s.frozen.Intent == nil {
		if e, err := s.capturedThere(ctx); e != nil || err != nil {
			return e, nil, err
		}
		out, err := s.provider.Refund(ctx, s.frozen.Request)
		if out.Refund != nil && !moneyMoves(string(out.Refund.Status)) {
			err = &provider.Error{ // under the key, forever: the charge is to tell
				Kind: provider.StoredFailure, Message: "the refund is " + string(out.Refund.Status),
			}
		}
		return &ending{how: s.own(), refund: out.Refund}, out.Refusal, err
	}
	out, err := s.provider.CancelIntent(ctx, *s.frozen.Intent)
	if err != nil || out.Refusal != nil {
		return nil, out.Refusal, err
	}
	e, err := s.ofIntent(ctx, *out.Intent)
	if err != nil { // of a read: it says nothing of the cancellation, which was carried out
		err = &provider.Error{
			Kind: provider.Unknown, Message: "look-up after the cancellation: " + err.Error(),
		}
	}
	return e, nil, err
}

// refused is the commit for a refusal. The charge may have ended already: by our own earlier
// attempt whose key the provider forgot, or by somebody else. So it is read. If it has not ended,
// the refusal is the answer.
func (s *cancelStep) refused(ctx context.Context, no *provider.Refusal) (*idemkeys.Commit, error) {
	e, err := s.read(ctx)
	unsupported := provider.KindOf(err) == provider.Unsupported
	var unresolved *idemkeys.Unresolved
	switch {
	case errors.As(err, &unresolved):
		return nil, err
	case unsupported && !s.op.Reached, err == nil && e == nil:
		answer := errorAnswer(s.op, refusal(problem.ProviderRefused, no, s.frozen.Charge, "request"))
		return s.commit(idemkeys.Completed, answer, nil, s.failed(no.Code)), nil
	case err != nil:
		return nil, &idemkeys.Unresolved{
			Reason: "look-up after a refusal: " + err.Error(), Park: unsupported,
			NotExecuted: !s.op.Reached,
		}
	}
	c, err := s.settled(ctx, e)
	return withNote(c, "sent, and found to have ended"), err
}

// The last commit.

// settled is the commit for a charge that has ended.
func (s *cancelStep) settled(ctx context.Context, e *ending) (*idemkeys.Commit, error) {
	switch {
	case e.how == "":
		p, now := ofCharge(problem.ChargeAlreadyCaptured, s.frozen.Charge), s.row
		if s.frozen.AsIntent {
			var err error
			e.end(&now, s.op.ID)
			if p, err = s.store.unfitIntent(ctx, now, "canceled", cancelableIntents...); err != nil {
				return nil, err
			}
		}
		return s.commit(idemkeys.Completed, errorAnswer(s.op, p), e, s.failed(p.Name())), nil
	case s.isRefund() && e.others:
		p := ofCharge(problem.ChargeAlreadyRefunded, s.frozen.Charge)
		return s.commit(idemkeys.Completed, errorAnswer(s.op, p), e, s.failed(p.Name())), nil
	case s.isRefund():
		r := s.frozen.refunded(s.op, e)
		shown := func(was db.Charge) (any, error) {
			shown := r
			var err error
			if s.frozen.WithCharge {
				shown.Charge.whole, err = e.charged(was, s.op.ID)
			}
			return shown, err
		}
		return s.showing(shown, createdAnswer(refundsPath+r.ID, nil), e, &r), nil
	}
	shown := func(was db.Charge) (any, error) { return e.charged(was, s.op.ID) }
	if s.frozen.AsIntent {
		of, err := s.store.showingIntent(ctx, s.row, s.frozen.WithCharge)
		if err != nil {
			return nil, err
		}
		shown = func(was db.Charge) (any, error) {
			e.end(&was, s.op.ID)
			return of(was)
		}
	}
	return s.showing(shown, okAnswer(nil), e, nil), nil
}

// showing is the commit for an answer that is complete once the charge is locked.
func (s *cancelStep) showing(
	shown showing, a idemkeys.Answer, e *ending, r *Refund,
) *idemkeys.Commit {
	c := s.commit(idemkeys.Completed, a, e, r)
	c.Write = cancelSettlement{s.store, s.op, s.frozen, e, r, shown}
	return c
}

// neverMade is the commit for proof that the charge was not let go of. It may be captured, or
// cancelled, also by the same request.
func (s *cancelStep) neverMade() *idemkeys.Commit {
	code := problem.CancelNeverMade
	if s.isRefund() {
		code = problem.RefundNeverMade
	}
	p := ofCharge(code, s.frozen.Charge)
	return s.commit(idemkeys.Failed, errorAnswer(s.op, p), nil, s.failed(p.Name()))
}

// failed is the refund that was asked for, as one that came to nothing; nil if none was.
func (s *cancelStep) failed(reason string) *Refund {
	if !s.isRefund() {
		return nil
	}
	r := s.frozen.render(s.op)
	r.Status, r.FailureReason = string(provider.Failed), &reason
	return &r
}

// commit ends the operation with an answer. e is how the charge has ended; nil means that it has
// not, and another operation may end it.
func (s *cancelStep) commit(
	status idemkeys.Status, a idemkeys.Answer, e *ending, r *Refund,
) *idemkeys.Commit {
	return &idemkeys.Commit{
		Next: idemkeys.Finished, Status: status, Answer: &a,
		Write: cancelSettlement{s.store, s.op, s.frozen, e, r, nil},
	}
}

// cancelSettlement writes the rows of the last commit: the charge, the refund if one was asked for,
// and their events, with the stored answer.
type cancelSettlement struct {
	store  *Store
	op     *idemkeys.Operation
	frozen *cancelFrozen
	ending *ending
	refund *Refund
	shown  showing
}

// Execute implements [idemkeys.Write].
func (w cancelSettlement) Execute(
	ctx context.Context, f idemkeys.Fence, c *idemkeys.Commit,
) (bool, error) {
	s := w.store
	won, err := s.finishCharge(ctx, f, c, w.frozen.Charge, w.frozen.Request.ChargeID, w.shown, func(
		ctx context.Context, tx db.DBTX, was db.Charge,
	) error {
		if db.OrEmpty(was.CaptureOperationID) != f.OperationID {
			return db.Final(errors.New("the charge is another operation's to end"))
		}
		o := triggerOf(w.op, was.Livemode)
		if w.refund != nil {
			if err := s.settleHold(ctx, tx, o, f.OperationID, *w.refund); err != nil {
				return err
			}
		}
		now := was
		w.ending.end(&now, f.OperationID)
		return s.writeChange(ctx, tx, o, was, now)
	})
	if w.refund != nil {
		err = s.whoseRefund(ctx, *w.refund, err)
	}
	return won, err
}

// An operator's decision, or an event of the provider.

// resolve checks an operator's decision against the provider's charge or intent.
func (k cancelKind) resolve(
	ctx context.Context, op *idemkeys.Operation, decision idemkeys.Resolution,
) (*idemkeys.Commit, error) {
	s, err := k.at(ctx, op)
	if err != nil {
		return nil, err
	}
	id := s.frozen.Request.ChargeID
	if s.frozen.Intent != nil {
		id = s.frozen.Intent.IntentID
	}
	e, err := s.read(ctx)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the provider could not be asked: %w", err)
	case decision.Succeeded && decision.ProviderID != id &&
		decision.ProviderID != s.frozen.Request.ChargeID:
		return nil, fmt.Errorf("the provider's id of what is to be let go of is %s", id)
	case decision.Succeeded && (e == nil || e.how == ""):
		return nil, fmt.Errorf("the provider has not let go of %s", id)
	case !decision.Succeeded && e == nil:
		return s.neverMade(), nil
	case !decision.Succeeded && e.how != "":
		return nil, fmt.Errorf("the provider has let go of %s", id)
	}
	return s.settled(ctx, e)
}

// settle ends the operation by the refund that let go of the charge, or by the charge itself.
func (k cancelKind) settle(
	ctx context.Context, op *idemkeys.Operation, what providerObject,
) (*idemkeys.Commit, error) {
	s, err := k.at(ctx, op)
	switch {
	case err != nil:
		return nil, err
	case what.refund != nil:
		if err := matchesRefund(what.refund, &s.frozen.refundFrozen); err != nil {
			return nil, err
		}
		return s.settled(ctx, &ending{how: s.own(), refund: what.refund})
	case what.charge == nil:
		return nil, errOtherObject
	}
	e := s.ofCharge(what.charge)
	if e == nil || what.charge.ID != s.frozen.Request.ChargeID {
		return nil, fmt.Errorf(
			"the provider's charge %s is not let go of", what.charge.ID,
		)
	}
	return s.settled(ctx, e)
}
