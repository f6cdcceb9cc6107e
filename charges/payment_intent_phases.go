package charges

import (
	"context"
	"errors"
	"fmt"

	"paidonce/db"
	"paidonce/idemkeys"
	"paidonce/provider"
)

// The phases.

// intentCreateKind is the creation of a client's payment intent as a kind of operation. It ends
// with an intent that waits to be confirmed, or goes on to confirm it.
type intentCreateKind struct{ *phaseDeps }

// createStep is an operation of this kind at one of its points.
type createStep struct {
	*phaseDeps
	op     *idemkeys.Operation
	frozen *createFrozen
	end    *intentEnd
}

func (k intentCreateKind) at(
	ctx context.Context, op *idemkeys.Operation,
) (s *createStep, err error) {
	s = &createStep{phaseDeps: k.phaseDeps, op: op}
	if s.frozen, err = readFrozen[createFrozen](op.Params); err != nil {
		return s, err
	}
	row, err := k.store.row(ctx, op.AccountID, op.ResourceID)
	if err != nil {
		return s, rowError("the charge "+op.ResourceID, err)
	}
	if s.end, err = newIntentEnd(k.store, op, &s.frozen.Request, row); err == nil {
		s.end.withCharge = s.frozen.WithCharge
	}
	return s, err
}

// create makes the intent, as that of a charge is made.
func (k intentCreateKind) create(
	ctx context.Context, op *idemkeys.Operation,
) (*idemkeys.Commit, error) {
	s, err := k.at(ctx, op)
	if err != nil {
		return nil, err
	}
	if err := stillPending(op, s.end.charge); err != nil {
		return nil, err
	}
	return attempt[provider.Intent]{
		look: func(clocks reading) (*provider.Intent, error) {
			return k.findIntent(ctx, op, &s.frozen.Request, clocks)
		},
		send: func() (*provider.Intent, *provider.Refusal, error) {
			return k.sendIntent(ctx, &s.frozen.intentFrozen)
		},
		settled: func(in *provider.Intent) (*idemkeys.Commit, error) { return s.created(ctx, in) },
		refused: s.end.notMade, neverMade: s.end.neverMade,
	}.run(ctx, &k.cfg, op)
}

// created is the commit for an intent that exists at the provider: the operation's end, unless it
// is to be confirmed at once.
func (s *createStep) created(
	ctx context.Context, in *provider.Intent,
) (*idemkeys.Commit, error) {
	if !s.frozen.Confirm {
		return s.end.waiting(ctx, in)
	}
	f := *s.frozen
	f.IntentID = in.ID
	return s.store.goOn(f)
}

func (k intentCreateKind) confirm(
	ctx context.Context, op *idemkeys.Operation,
) (*idemkeys.Commit, error) {
	s, err := k.at(ctx, op)
	if err != nil {
		return nil, err
	}
	if err := stillPending(op, s.end.charge); err != nil {
		return nil, err
	}
	return s.confirmStep().run(ctx)
}

func (s *createStep) confirmStep() *confirmStep {
	r := &s.frozen.Request
	return &confirmStep{
		phaseDeps: s.phaseDeps, op: s.op, end: s.end, neverMade: s.end.neverMade,
		request: provider.ConfirmRequest{
			IdempotencyKey: s.frozen.ConfirmKey, Tags: r.Tags, IntentID: s.frozen.IntentID,
			ReturnURL: r.ReturnURL, OffSession: r.OffSession,
			ErrorOnRequiresAction: r.ErrorOnRequiresAction,
		},
	}
}

// intentConfirmKind is the confirmation of an intent as a kind of operation.
type intentConfirmKind struct{ *phaseDeps }

func (k intentConfirmKind) at(
	ctx context.Context, op *idemkeys.Operation,
) (*confirmStep, error) {
	f, err := readFrozen[confirmFrozen](op.Params)
	if err != nil {
		return nil, err
	}
	end, err := k.store.reserved(ctx, op, f.onIntent)
	return &confirmStep{
		phaseDeps: k.phaseDeps, op: op, request: f.Request, before: f.Before, end: end,
		neverMade: end.notConfirmed,
	}, err
}

func (k intentConfirmKind) confirm(
	ctx context.Context, op *idemkeys.Operation,
) (*idemkeys.Commit, error) {
	s, err := k.at(ctx, op)
	if err != nil {
		return nil, err
	}
	return s.run(ctx)
}

// reserved is the ending of an operation on the intent of a charge, which it has reserved.
func (s *Store) reserved(
	ctx context.Context, op *idemkeys.Operation, f onIntent,
) (*intentEnd, error) {
	e := &intentEnd{store: s, op: op, withCharge: f.WithCharge}
	row, err := s.row(ctx, op.AccountID, f.Charge)
	if err != nil {
		return e, rowError("the charge "+f.Charge, err)
	}
	if db.OrEmpty(row.CaptureOperationID) != op.ID || row.Status != string(provider.Pending) {
		return e, parked(
			"the charge %s of the intent is %s, or is another operation's to change", row.ID,
			row.Status,
		)
	}
	of, err := db.Read(ctx, s.pool, s.queries.PaymentIntentOfCharge, row.ID)
	if err != nil {
		return e, rowError("the payment intent of the charge "+f.Charge, err)
	}
	e.clientIntent = clientIntent{of, row}
	return e, nil
}

// seen is what an intent shows of its attempts: whatever is otherwise after a confirmation was
// sent, came of that, or of what the payer did meanwhile.
type seen struct {
	Status provider.IntentStatus `json:"status,omitempty"`
	Charge string                `json:"charge,omitempty"` // the provider's, of the latest attempt
}

// confirmStep is a confirmation at work. An intent can succeed once, at the provider, whoever
// confirms it and however often; so no key window matters, and what a look-up does not show as
// changed may be sent again.
type confirmStep struct {
	*phaseDeps
	op        *idemkeys.Operation
	end       *intentEnd
	request   provider.ConfirmRequest
	before    seen
	neverMade func() *idemkeys.Commit
}

func (s *confirmStep) run(ctx context.Context) (*idemkeys.Commit, error) {
	return attempt[provider.Intent]{
		repeatable: true,
		look: func(reading) (*provider.Intent, error) {
			in, err := s.read(ctx)
			if err != nil || !s.changed(in) {
				return nil, err
			}
			return in, nil
		},
		send: func() (*provider.Intent, *provider.Refusal, error) {
			outcome, err := s.provider.ConfirmIntent(ctx, s.request)
			if provider.KindOf(err) == provider.StoredFailure { // the payer may have been first
				if in, readErr := s.read(ctx); readErr == nil && s.changed(in) {
					return in, nil, nil
				}
			}
			return outcome.Intent, outcome.Refusal, err
		},
		settled:   func(in *provider.Intent) (*idemkeys.Commit, error) { return s.ended(ctx, in) },
		refused:   func(no *provider.Refusal) (*idemkeys.Commit, error) { return s.refused(ctx, no) },
		neverMade: s.neverMade,
	}.run(ctx, &s.cfg, s.op)
}

// changed reports whether an intent is not as it was before the confirmation.
func (s *confirmStep) changed(in *provider.Intent) bool {
	switch in.Status {
	case provider.IntentRequiresConfirmation:
		return false
	case provider.IntentRequiresPaymentMethod:
		return in.ChargeID != s.before.Charge
	case provider.IntentRequiresAction:
		return in.Status != s.before.Status
	}
	return true
}

// read reads the operation's intent at the provider.
func (s *confirmStep) read(ctx context.Context) (*provider.Intent, error) {
	return s.readIntent(ctx, s.request.IntentID, &provider.ChargeRequest{
		Amount: s.end.charge.Amount, Currency: s.end.charge.Currency,
		Livemode: s.end.charge.Livemode, Tags: s.request.Tags,
	})
}

// refused is the commit for a confirmation that was refused. A refusal that is no decline may be
// due to an earlier confirmation, our own or the payer's, so the intent is read. If it is as it
// was, this refusal is the answer.
func (s *confirmStep) refused(ctx context.Context, no *provider.Refusal) (*idemkeys.Commit, error) {
	in, err := s.read(ctx)
	if err != nil {
		return nil, err
	}
	waits := in.Status == provider.IntentRequiresPaymentMethod ||
		in.Status == provider.IntentRequiresConfirmation
	switch {
	case no.Decline && !no.LastAttempt && waits:
		return s.end.declined(ctx, in, no)
	case s.changed(in):
		c, err := s.ended(ctx, in)
		return withNote(c, "found by its intent"), err
	case no.LastAttempt: // it repeats why an earlier attempt failed
		return s.end.unconfirmable(ctx, in)
	}
	return s.end.refused(ctx, in, no)
}

// ended is the commit for what the intent has come to.
func (s *confirmStep) ended(ctx context.Context, in *provider.Intent) (*idemkeys.Commit, error) {
	switch in.Status {
	case provider.IntentSucceeded, provider.IntentRequiresCapture:
		got, err := chargeOf(ctx, s.provider, in)
		if err != nil {
			return nil, notLookedUp(err)
		}
		return s.end.paid(ctx, in, got)
	case provider.IntentRequiresAction, provider.IntentProcessing:
		s.end.intent.ReturnUrl = db.OrNil(s.request.ReturnURL)
		return s.end.waiting(ctx, in)
	case provider.IntentRequiresPaymentMethod:
		return s.end.declined(ctx, in, intentRefusal(in))
	case provider.IntentCanceled:
		return s.end.canceled(ctx, in)
	}
	return nil, &idemkeys.Unresolved{
		Reason:      fmt.Sprintf("the intent %s is %s after its confirmation", in.ID, in.Status),
		ServerError: true, // the key replays this from now on
	}
}

// An operator's decision, or an event of the provider.

func (k intentCreateKind) resolve(
	ctx context.Context, op *idemkeys.Operation, decision idemkeys.Resolution,
) (*idemkeys.Commit, error) {
	s, err := k.at(ctx, op)
	switch {
	case err != nil:
		return nil, err
	case s.frozen.IntentID != "":
		return s.confirmStep().resolve(ctx, decision)
	case decision.Succeeded: // no money can have moved: there was no id to confirm
		return nil, errors.New("the operation has no intent yet, so nothing can have succeeded")
	}
	return s.end.neverMade(), nil
}

func (k intentConfirmKind) resolve(
	ctx context.Context, op *idemkeys.Operation, decision idemkeys.Resolution,
) (*idemkeys.Commit, error) {
	s, err := k.at(ctx, op)
	if err != nil {
		return nil, err
	}
	return s.resolve(ctx, decision)
}

// resolve checks an operator's decision against the intent.
func (s *confirmStep) resolve(
	ctx context.Context, decision idemkeys.Resolution,
) (*idemkeys.Commit, error) {
	in, err := s.read(ctx)
	if err != nil {
		return nil, err
	}
	switch {
	case decision.Succeeded && decision.ProviderID != in.ID && decision.ProviderID != in.ChargeID:
		return nil, fmt.Errorf("the provider's intent is %s, its charge %s", in.ID, in.ChargeID)
	case decision.Succeeded != in.Paid(), in.Status == provider.IntentProcessing:
		return nil, fmt.Errorf("the provider's intent %s is %s", in.ID, in.Status)
	case in.Paid():
		return s.ended(ctx, in)
	}
	return s.neverMade(), nil
}

// settle ends a creation that confirms by its intent, or by the charge that this came to.
func (k intentCreateKind) settle(
	ctx context.Context, op *idemkeys.Operation, what providerObject,
) (*idemkeys.Commit, error) {
	s, err := k.at(ctx, op)
	switch {
	case err != nil:
		return nil, err
	case what.refund != nil:
		return nil, errOtherObject
	case s.frozen.IntentID == "":
		return nil, errors.New("the operation has no intent yet, so nothing can have succeeded")
	}
	return s.confirmStep().settle(ctx)
}

func (k intentConfirmKind) settle(
	ctx context.Context, op *idemkeys.Operation, _ providerObject,
) (*idemkeys.Commit, error) {
	s, err := k.at(ctx, op)
	if err != nil {
		return nil, err
	}
	return s.settle(ctx)
}

func (s *confirmStep) settle(ctx context.Context) (*idemkeys.Commit, error) {
	in, err := s.read(ctx)
	if err != nil {
		return nil, err
	}
	if !in.Paid() {
		return nil, fmt.Errorf("the provider's intent %s is %s", in.ID, in.Status)
	}
	return s.ended(ctx, in)
}

func seenOf(i clientIntent) seen {
	return seen{
		Status: provider.IntentStatus(i.intent.ProviderStatus), Charge: lastErrorOf(i).ProviderCharge,
	}
}
