package charges

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"paidonce/idemkeys"
	"paidonce/problem"
	"paidonce/provider"
)

// KindIntent is the kind of operation that makes a charge through a payment intent. Its parameters
// and its claim are those of charge.go.
const KindIntent = "charge.intent"

// IntentCreated is the point of an operation whose intent exists at the provider and whose intent
// id is stored. No money has moved. From here on one read by that id shows what became of it; the
// read is consistent and works after any key window.
const IntentCreated idemkeys.Point = "intent_created"

// intentFrozen is what is frozen of such an operation. IntentID is known from the second point on.
type intentFrozen struct {
	Request    provider.ChargeRequest `json:"request"` // with the derived key of the first step
	ConfirmKey string                 `json:"confirm_key"`
	IntentID   string                 `json:"intent_id,omitempty"`
	ClaimedAt  int64                  `json:"claimed_at,omitempty"` // of the request
}

func freezeIntent(r provider.ChargeRequest, installation string) intentFrozen {
	f := intentFrozen{Request: r, ConfirmKey: derivedKey(installation, r.Tags.Operation, "confirm")}
	f.Request.IdempotencyKey = derivedKey(installation, r.Tags.Operation, "intent")
	return f
}

// The phases.

// intentKind is the charge through a payment intent as a kind of operation. It ends settled, or
// waiting for its payer.
type intentKind struct{ *phaseDeps }

// intentStep is an operation of this kind at one of its points.
type intentStep struct {
	*phaseDeps
	op     *idemkeys.Operation
	frozen *intentFrozen
	end    *chargeEnd
}

func (k intentKind) at(op *idemkeys.Operation) (*intentStep, error) {
	f, err := readFrozen[intentFrozen](op.Params)
	return &intentStep{
		k.phaseDeps, op, f,
		&chargeEnd{store: k.store, op: op, request: &f.Request, intentID: f.IntentID},
	}, err
}

// create makes the intent. It moves no money, so the same may be sent again as long as the provider
// knows the derived key.
func (k intentKind) create(ctx context.Context, op *idemkeys.Operation) (*idemkeys.Commit, error) {
	s, err := k.at(op)
	if err != nil {
		return nil, err
	}
	if err := k.store.checkPending(ctx, op); err != nil {
		return nil, err
	}
	return attempt[provider.Intent]{
		look: func(clocks reading) (*provider.Intent, error) {
			return k.findIntent(ctx, op, &s.frozen.Request, clocks)
		},
		send: func() (*provider.Intent, *provider.Refusal, error) {
			return k.sendIntent(ctx, s.frozen)
		},
		settled: s.created, refused: infallible(s.end.refused), neverMade: s.end.neverMade,
	}.run(ctx, &k.cfg, op)
}

// findIntent looks for the intent that an earlier attempt may have made.
func (d *phaseDeps) findIntent(
	ctx context.Context, op *idemkeys.Operation, r *provider.ChargeRequest, clocks reading,
) (*provider.Intent, error) {
	at := search{&d.cfg, op, r, clocks}
	hits, err := d.provider.FindIntent(ctx, at.lookup(ctx))
	return result(
		at, hits, err, "intent",
		func(got *provider.Intent) error { return matchesIntent(got, r) },
	)
}

// sendIntent makes the intent that is frozen.
func (d *phaseDeps) sendIntent(
	ctx context.Context, f *intentFrozen,
) (*provider.Intent, *provider.Refusal, error) {
	sent := f.Request // without the moment of the claim it is frozen again
	sent.Claim = dated(sent.Claim, f.ClaimedAt)
	outcome, err := d.provider.CreateIntent(ctx, &sent, sent.ReturnURL)
	return outcome.Intent, outcome.Refusal, err
}

func matchesIntent(got *provider.Intent, r *provider.ChargeRequest) error {
	return matchesRequest(
		"intent", got.ID, r,
		&provider.ChargeRequest{
			Amount: got.Amount, Currency: got.Currency, Livemode: got.Livemode, Tags: got.Tags,
		},
	)
}

// created is the commit that moves the operation on, with the intent's id.
func (s *intentStep) created(in *provider.Intent) (*idemkeys.Commit, error) {
	f := *s.frozen
	f.IntentID = in.ID
	return s.store.goOn(f)
}

// goOn is the commit that moves an operation on to its confirmation, with what is frozen of it.
func (s *Store) goOn(frozen any) (*idemkeys.Commit, error) {
	params, err := json.Marshal(frozen)
	return &idemkeys.Commit{
		Next: IntentCreated, Params: params, Write: idemkeys.Advance(s.pool),
	}, err
}

// confirm charges. An intent can be confirmed once, and it shows whether it was, so no key window
// matters. But sending cannot get past an answer that the provider has stored under the key and
// replays: then the intent is only read, until it is proven that nothing moved.
func (k intentKind) confirm(ctx context.Context, op *idemkeys.Operation) (*idemkeys.Commit, error) {
	s, err := k.at(op)
	if err != nil {
		return nil, err
	}
	if err := k.store.checkPending(ctx, op); err != nil {
		return nil, err
	}
	return attempt[provider.Intent]{
		repeatable: true,
		look:       func(reading) (*provider.Intent, error) { return s.confirmed(ctx) },
		send: func() (*provider.Intent, *provider.Refusal, error) {
			outcome, err := k.provider.ConfirmIntent(ctx, provider.ConfirmRequest{
				IdempotencyKey: s.frozen.ConfirmKey, Tags: s.frozen.Request.Tags,
				IntentID:  s.frozen.IntentID,
				ReturnURL: s.frozen.Request.ReturnURL, OffSession: s.frozen.Request.OffSession,
			})
			return outcome.Intent, outcome.Refusal, err
		},
		settled:   func(in *provider.Intent) (*idemkeys.Commit, error) { return s.ended(ctx, in) },
		refused:   func(no *provider.Refusal) (*idemkeys.Commit, error) { return s.refused(ctx, no) },
		neverMade: s.end.neverMade,
	}.run(ctx, &k.cfg, op)
}

// confirmed returns the intent if it was confirmed, or nil while it waits for that.
func (s *intentStep) confirmed(ctx context.Context) (*provider.Intent, error) {
	in, err := s.read(ctx)
	if err != nil || in.Status == provider.IntentRequiresConfirmation {
		return nil, err
	}
	return in, nil
}

// read reads the operation's intent at the provider.
func (s *intentStep) read(ctx context.Context) (*provider.Intent, error) {
	return s.readIntent(ctx, s.frozen.IntentID, &s.frozen.Request)
}

// readIntent reads an intent at the provider, which has to be there and to be what was requested.
func (d *phaseDeps) readIntent(
	ctx context.Context, id string, r *provider.ChargeRequest,
) (*provider.Intent, error) {
	in, err := d.provider.GetIntent(ctx, id)
	switch {
	case err != nil:
		return nil, notLookedUp(err)
	case in == nil:
		return nil, unknownThere("intent", id)
	}
	if err := matchesIntent(in, r); err != nil {
		return nil, parked("%v", err)
	}
	return in, nil
}

// refused is the commit for a confirmation that was refused. A refusal that is no decline may be
// caused by our own earlier confirmation, so the intent is read. If it still waits to be confirmed,
// this refusal is the answer: two confirmations under one key are never under way at the same time.
func (s *intentStep) refused(ctx context.Context, no *provider.Refusal) (*idemkeys.Commit, error) {
	if !no.Decline && s.op.Reached {
		in, err := s.confirmed(ctx)
		if err != nil {
			return nil, err
		}
		if in != nil {
			c, err := s.ended(ctx, in)
			return withNote(c, "found by its intent"), err
		}
	}
	return s.end.refused(no), nil
}

// ended is the commit for an intent that was confirmed.
func (s *intentStep) ended(ctx context.Context, in *provider.Intent) (*idemkeys.Commit, error) {
	switch in.Status {
	case provider.IntentSucceeded, provider.IntentRequiresCapture:
		got, err := chargeOf(ctx, s.provider, in)
		if err != nil {
			return nil, notLookedUp(err)
		}
		return s.end.settled(got), nil
	case provider.IntentRequiresAction, provider.IntentProcessing:
		return s.end.waiting(in), nil
	case provider.IntentRequiresPaymentMethod, provider.IntentCanceled:
		return s.end.refused(intentRefusal(in)), nil
	}
	return nil, &idemkeys.Unresolved{
		Reason: fmt.Sprintf("the intent %s is %s after its confirmation", in.ID, in.Status),
		// the key replays this from now on
		ServerError: in.Status == provider.IntentRequiresConfirmation,
	}
}

// chargeOf returns the charge of an intent.
func chargeOf(
	ctx context.Context, p provider.Provider, in *provider.Intent,
) (*provider.Charge, error) {
	if in.Charge != nil {
		return in.Charge, nil
	}
	got, err := p.GetCharge(ctx, in.ChargeID)
	if err == nil && got == nil {
		err = &provider.Error{
			Kind:    provider.Unknown,
			Message: "the provider does not know the charge of its intent " + in.ID,
		}
	}
	return got, err
}

// intentRefusal returns why an intent came to no charge.
func intentRefusal(in *provider.Intent) *provider.Refusal {
	if in.Failure != nil {
		return in.Failure
	}
	code := problem.IntentRequiresPaymentMethod
	if in.Status == provider.IntentCanceled {
		code = problem.IntentCanceled
	}
	return &provider.Refusal{
		Decline: true, Code: code.String(), Message: code.New().Message, ChargeID: in.ChargeID,
	}
}

// The last commit: that of charge_phases.go.

// waiting is the commit for a charge that waits for its payer. The key's answer shows it pending
// and stays so; the charge itself changes with the provider's events, or when the reconciler asks.
func (e *chargeEnd) waiting(in *provider.Intent) *idemkeys.Commit {
	charge := e.pending()
	charge.NextAction = nextActionOf(in)
	// the charge of an intent that waits for its payer is that of an earlier attempt
	if in.Charge != nil && in.Status == provider.IntentProcessing {
		charge.Details = detailsOf(in.Charge.Details)
	}
	return e.created(charge)
}

// An operator's decision, or an event of the provider.

// resolve checks an operator's decision against the intent.
func (k intentKind) resolve(
	ctx context.Context, op *idemkeys.Operation, decision idemkeys.Resolution,
) (*idemkeys.Commit, error) {
	s, err := k.at(op)
	if err != nil {
		return nil, err
	}
	if s.frozen.IntentID == "" { // no money can have moved: there was no id to confirm
		if decision.Succeeded {
			return nil, errors.New(
				"the operation has no intent yet, so nothing can have succeeded",
			)
		}
		return s.end.neverMade(), nil
	}
	in, err := s.read(ctx)
	switch {
	case err != nil:
		return nil, err
	case decision.Succeeded && decision.ProviderID != in.ID && decision.ProviderID != in.ChargeID:
		return nil, fmt.Errorf(
			"the provider's intent is %s, its charge %s", in.ID, in.ChargeID,
		)
	case decision.Succeeded:
		return s.settledBy(ctx, in)
	case in.Status != provider.IntentCanceled && in.Status != provider.IntentRequiresPaymentMethod:
		return nil, fmt.Errorf(
			"the provider's intent %s is %s: cancel it there first", in.ID, in.Status,
		)
	}
	return s.ended(ctx, in)
}

// settle ends the operation by its intent, or by the charge that this came to.
func (k intentKind) settle(
	ctx context.Context, op *idemkeys.Operation, what providerObject,
) (*idemkeys.Commit, error) {
	s, err := k.at(op)
	switch {
	case err != nil:
		return nil, err
	case what.intent != nil:
		return s.settledBy(ctx, what.intent)
	case what.charge == nil:
		return nil, errOtherObject
	}
	got := what.charge
	if got.IntentID == "" || s.end.intentID != "" && got.IntentID != s.end.intentID {
		return nil, fmt.Errorf(
			"the event is about the intent %q, the operation about %q", got.IntentID,
			s.end.intentID,
		)
	}
	s.end.intentID = got.IntentID
	return s.end.settledBy(got)
}

// settledBy checks that an intent is the operation's and was paid or authorised, and returns its
// commit.
func (s *intentStep) settledBy(ctx context.Context, in *provider.Intent) (*idemkeys.Commit, error) {
	switch {
	case s.frozen.IntentID == "":
		return nil, errors.New(
			"the operation has no intent yet, so nothing can have succeeded",
		)
	case in.ID != s.frozen.IntentID:
		return nil, fmt.Errorf(
			"the provider's intent %s is not that of the operation, %s", in.ID, s.frozen.IntentID,
		)
	case !in.Paid():
		return nil, fmt.Errorf("the provider's intent %s is %s", in.ID, in.Status)
	}
	if err := matchesIntent(in, &s.frozen.Request); err != nil {
		return nil, err
	}
	return s.ended(ctx, in)
}
