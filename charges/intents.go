package charges

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"paidonce/idemkeys"
	"paidonce/provider"
)

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

// intending is the charge through a payment intent as a kind of operation. It ends settled, or waiting for its payer.
type intending struct{ creation }

// create makes the intent. It moves no money, so the same may be sent again as long as the provider knows the derived key.
func (i intending) create(ctx context.Context, op idemkeys.Operation) (idemkeys.Commit, error) {
	f, err := thaw[intentFrozen](op.Params)
	if err != nil {
		return idemkeys.Commit{}, err
	}
	if err := i.store.stillPending(ctx, op); err != nil {
		return idemkeys.Commit{}, err
	}
	return i.cfg.attempt(ctx, op, attempt{
		look: func(clocks reading) (idemkeys.Commit, bool, error) {
			found, err := i.findIntent(ctx, f, op, clocks)
			if err != nil || found == nil {
				return idemkeys.Commit{}, false, err
			}
			c, err := i.keep(f, *found)
			return c, true, err
		},
		send:      func() (idemkeys.Commit, error) { return i.sendIntent(ctx, op, f) },
		neverMade: func() idemkeys.Commit { return i.neverMade(op, f.Request) },
	})
}

func (i intending) sendIntent(ctx context.Context, op idemkeys.Operation, f intentFrozen) (idemkeys.Commit, error) {
	request := f.Request
	request.Claim = dated(request.Claim, f.ClaimedAt)
	outcome, err := i.provider.CreateIntent(ctx, request, "")
	switch {
	case err != nil:
		return idemkeys.Commit{}, unresolved(err)
	case outcome.Refusal != nil:
		return noted(i.refused(op, f.Request, *outcome.Refusal), "sent"), nil
	}
	return i.keep(f, *outcome.Intent)
}

// findIntent looks for the operation's intent. nil, nil: there is none, or the look-up was cut short and it may be sent again.
func (i intending) findIntent(ctx context.Context, f intentFrozen, op idemkeys.Operation, clocks reading) (*provider.Intent, error) {
	hits, err := i.provider.FindIntent(ctx, i.cfg.lookup(ctx, op, clocks, f.Request.Tags, f.Request.ProviderTime))
	if i.cfg.cutShort(op, clocks, f.Request.ProviderTime, err) {
		err = nil
	}
	if err = lookedUp(op, err); err != nil {
		return nil, err
	}
	if len(hits) == 0 {
		return nil, i.cfg.steady(op, clocks)
	}
	return only(hits, "intent", func(got provider.Intent) error { return matchesIntent(got, f.Request) })
}

// keep is the commit that moves the operation on, with the intent's id.
func (i intending) keep(f intentFrozen, in provider.Intent) (idemkeys.Commit, error) {
	f.IntentID = in.ID
	params, err := json.Marshal(f)
	return idemkeys.Commit{Next: IntentCreated, Params: params, Write: idemkeys.Advance(i.store.pool)}, err
}

func matchesIntent(got provider.Intent, r provider.ChargeRequest) error {
	if got.Amount != r.Amount || got.Currency != r.Currency || got.Livemode != r.Livemode || got.Tags != r.Tags {
		return fmt.Errorf("the provider's intent %s is of %d %s (livemode %t, operation %q of %q), asked for were %d %s (livemode %t, operation %q of %q)",
			got.ID, got.Amount, got.Currency, got.Livemode, got.Tags.Operation, got.Tags.Installation,
			r.Amount, r.Currency, r.Livemode, r.Tags.Operation, r.Tags.Installation)
	}
	return nil
}

// confirm charges. An intent can be confirmed once, so the intent itself tells whether it was: no key window matters. But what the provider has stored under the
// key, and says again and again, sending does not get past: then the intent is only looked at, until it is proven that nothing moved.
func (i intending) confirm(ctx context.Context, op idemkeys.Operation) (idemkeys.Commit, error) {
	f, err := thaw[intentFrozen](op.Params)
	if err != nil {
		return idemkeys.Commit{}, err
	}
	if err := i.store.stillPending(ctx, op); err != nil {
		return idemkeys.Commit{}, err
	}
	op.WindowOpen = true
	return i.cfg.attempt(ctx, op, attempt{
		look:      func(reading) (idemkeys.Commit, bool, error) { return i.confirmed(ctx, op, f) },
		send:      func() (idemkeys.Commit, error) { return i.sendConfirmation(ctx, op, f) },
		neverMade: func() idemkeys.Commit { return i.through(f.IntentID).neverMade(op, f.Request) },
	})
}

func (i intending) sendConfirmation(ctx context.Context, op idemkeys.Operation, f intentFrozen) (idemkeys.Commit, error) {
	outcome, err := i.provider.ConfirmIntent(ctx, provider.ConfirmRequest{IdempotencyKey: f.ConfirmKey, Tags: f.Request.Tags, IntentID: f.IntentID})
	switch {
	case err != nil:
		return idemkeys.Commit{}, unresolved(err)
	case outcome.Refusal != nil && !outcome.Refusal.Decline && op.Reached:
		// It may be about an earlier confirmation of ours: the intent tells. If that still waits for one, this refusal is the answer: two confirmations under
		// one key are never under way at the same time.
		if c, over, err := i.confirmed(ctx, op, f); over || err != nil {
			return c, err
		}
		return noted(i.through(f.IntentID).refused(op, f.Request, *outcome.Refusal), "sent"), nil
	case outcome.Refusal != nil:
		return noted(i.through(f.IntentID).refused(op, f.Request, *outcome.Refusal), "sent"), nil
	}
	c, err := i.ended(ctx, op, f, *outcome.Intent)
	return noted(c, "sent"), err
}

// confirmed looks at an intent that may have been confirmed. over: it was, and this is how it ended.
func (i intending) confirmed(ctx context.Context, op idemkeys.Operation, f intentFrozen) (c idemkeys.Commit, over bool, err error) {
	in, err := i.look(ctx, f)
	if err != nil || in.Status == provider.IntentRequiresConfirmation {
		return c, false, err
	}
	c, err = i.ended(ctx, op, f, *in)
	return noted(c, "found by its intent"), err == nil, err
}

// look reads the operation's intent.
func (i intending) look(ctx context.Context, f intentFrozen) (*provider.Intent, error) {
	in, err := i.provider.GetIntent(ctx, f.IntentID)
	switch {
	case err != nil:
		return nil, unresolved(err).lookUp()
	case in == nil:
		return nil, parked("the provider does not know the intent %s", f.IntentID)
	}
	if err := matchesIntent(*in, f.Request); err != nil {
		return nil, parked("%v", err)
	}
	return in, nil
}

// ended is the commit for an intent that was confirmed.
func (i intending) ended(ctx context.Context, op idemkeys.Operation, f intentFrozen, in provider.Intent) (idemkeys.Commit, error) {
	switch in.Status {
	case provider.IntentSucceeded, provider.IntentRequiresCapture:
		got, err := chargeOf(ctx, i.provider, in)
		if err != nil {
			return idemkeys.Commit{}, unresolved(err).lookUp()
		}
		return i.through(in.ID).settled(op, f.Request, *got), nil
	case provider.IntentRequiresAction, provider.IntentProcessing:
		return i.waiting(op, f, in), nil
	case provider.IntentRequiresPaymentMethod, provider.IntentCanceled:
		return i.through(in.ID).refused(op, f.Request, whyNot(in)), nil
	}
	return idemkeys.Commit{}, &idemkeys.Unresolved{
		Reason:      fmt.Sprintf("the intent %s is %s after its confirmation", in.ID, in.Status),
		ServerError: in.Status == provider.IntentRequiresConfirmation, // what the key answers from now on
	}
}

// chargeOf is the charge that an intent came to.
func chargeOf(ctx context.Context, p provider.Provider, in provider.Intent) (*provider.Charge, error) {
	if in.Charge != nil {
		return in.Charge, nil
	}
	got, err := p.GetCharge(ctx, in.ChargeID)
	if err == nil && got == nil {
		err = &provider.Error{Kind: provider.Unknown, Message: "the provider does not know the charge of its intent " + in.ID}
	}
	return got, err
}

func whyNot(in provider.Intent) provider.Refusal {
	if in.Failure != nil {
		return *in.Failure
	}
	return provider.Refusal{Decline: true, Code: "payment_intent_" + string(in.Status), Message: "The payment was not completed.", ChargeID: in.ChargeID}
}

// waiting is the commit for a charge that goes on without us: the key's answer says so and stays; the charge moves on with the provider's news, or when the
// reconciler asks.
func (i intending) waiting(op idemkeys.Operation, f intentFrozen, in provider.Intent) idemkeys.Commit {
	charge := pendingCharge(op, f.Request)
	charge.NextAction = nextActionOf(in.NextAction)
	answer := idemkeys.Answer{
		Code: http.StatusCreated, Header: map[string]string{"Content-Type": "application/json", "Location": "/v1/charges/" + charge.ID}, Body: idemkeys.Render(charge),
	}
	return i.through(in.ID).commit(op, idemkeys.Completed, answer, charge, "charge.pending")
}

// through is a creation whose charge names the intent.
func (i intending) through(id string) creation {
	c := i.creation
	c.intentID = id
	return c
}

// resolve checks a person's word, or the provider's news, at the intent.
func (i intending) resolve(ctx context.Context, op idemkeys.Operation, word idemkeys.Resolution) (idemkeys.Commit, error) {
	f, err := thaw[intentFrozen](op.Params)
	if err != nil {
		return idemkeys.Commit{}, err
	}
	if word.Evidence != nil {
		return i.byEvidence(op, f, word)
	}
	if f.IntentID == "" { // no money can have moved: there was no id to confirm
		if word.Succeeded {
			return idemkeys.Commit{}, errors.New("the operation has no intent yet, so nothing can have succeeded")
		}
		return i.neverMade(op, f.Request), nil
	}
	in, err := i.look(ctx, f)
	if err != nil {
		return idemkeys.Commit{}, err
	}
	succeeded := in.Status == provider.IntentSucceeded || in.Status == provider.IntentRequiresCapture
	switch {
	case word.Succeeded && !succeeded:
		return idemkeys.Commit{}, fmt.Errorf("the provider's intent %s is %s", in.ID, in.Status)
	case word.Succeeded && word.ProviderID != in.ID && word.ProviderID != in.ChargeID:
		return idemkeys.Commit{}, fmt.Errorf("the provider's intent is %s, its charge %s", in.ID, in.ChargeID)
	case !word.Succeeded && in.Status != provider.IntentCanceled && in.Status != provider.IntentRequiresPaymentMethod:
		return idemkeys.Commit{}, fmt.Errorf("the provider's intent %s is %s: cancel it there first", in.ID, in.Status)
	}
	return i.ended(ctx, op, f, *in)
}
