package charges

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"

	"paidonce/db"
	"paidonce/idemkeys"
	"paidonce/provider"
)

// creation is the charge in one call as a kind of operation.
type creation struct {
	provider provider.Provider
	store    *Store
	cfg      Config
	intentID string // of the intent through which the charge was made, if any
}

// charge finds out, or brings about, what the operation's frozen request comes to.
func (c creation) charge(ctx context.Context, op idemkeys.Operation) (idemkeys.Commit, error) {
	r, err := thaw[provider.ChargeRequest](op.Params)
	if err != nil {
		return idemkeys.Commit{}, err
	}
	if err := c.store.stillPending(ctx, op); err != nil {
		return idemkeys.Commit{}, err
	}
	return c.cfg.attempt(ctx, op, attempt{
		look: func(clocks reading) (idemkeys.Commit, bool, error) {
			found, err := c.lookUp(ctx, op, r, clocks)
			if err != nil || found == nil {
				return idemkeys.Commit{}, false, err
			}
			return noted(c.settled(op, r, *found), "found by a look-up"), true, nil
		},
		send:      func() (idemkeys.Commit, error) { return c.send(ctx, op, r) },
		neverMade: func() idemkeys.Commit { return c.neverMade(op, r) },
	})
}

func (c creation) send(ctx context.Context, op idemkeys.Operation, r provider.ChargeRequest) (idemkeys.Commit, error) {
	r.Claim = dated(r.Claim, r.ClaimedAt)
	outcome, err := c.provider.Charge(ctx, r)
	if err != nil {
		return idemkeys.Commit{}, unresolved(err)
	}
	if outcome.Refusal != nil {
		return noted(c.refused(op, r, *outcome.Refusal), "sent"), nil
	}
	return noted(c.settled(op, r, *outcome.Charge), "sent"), nil
}

func noted(c idemkeys.Commit, note string) idemkeys.Commit {
	c.Note = note
	return c
}

// lookUp asks the provider for the operation's charge. nil, nil: there is none, or the look-up was cut short and it may be sent again. Anything doubtful is for a person.
func (c creation) lookUp(ctx context.Context, op idemkeys.Operation, r provider.ChargeRequest, clocks reading) (*provider.Charge, error) {
	hits, err := c.provider.FindCharge(ctx, c.cfg.lookup(ctx, op, clocks, r.Tags, r.ProviderTime))
	if c.cfg.cutShort(op, clocks, r.ProviderTime, err) {
		err = nil
	}
	if err = lookedUp(op, err); err != nil {
		return nil, err
	}
	if len(hits) == 0 {
		return nil, c.cfg.steady(op, clocks)
	}
	return only(hits, "charge", func(got provider.Charge) error { return matches(got, r) })
}

// matches tells in what a provider's charge differs from what was asked for.
func matches(got provider.Charge, r provider.ChargeRequest) error {
	if got.Amount != r.Amount || got.Currency != r.Currency || got.Livemode != r.Livemode || got.Tags != r.Tags {
		return fmt.Errorf("the provider's charge %s is of %d %s (livemode %t, operation %q of %q), asked for were %d %s (livemode %t, operation %q of %q)",
			got.ID, got.Amount, got.Currency, got.Livemode, got.Tags.Operation, got.Tags.Installation,
			r.Amount, r.Currency, r.Livemode, r.Tags.Operation, r.Tags.Installation)
	}
	return nil
}

// derivedKey is ours to the provider. It is made of the random operation id, never of the client's key: two accounts may choose the
// same key, and a key may be used anew after its time.
func derivedKey(installation, operationID, step string) string {
	sum := sha256.Sum256([]byte(installation + "\x00" + operationID + "\x00" + step))
	return "po_" + hex.EncodeToString(sum[:20])
}

// settled is the commit for a charge that the provider has.
func (c creation) settled(op idemkeys.Operation, r provider.ChargeRequest, got provider.Charge) idemkeys.Commit {
	if got.Status == provider.Failed {
		return c.refused(op, r, provider.Refusal{Decline: true, ChargeID: got.ID, Code: got.FailureCode, DeclineCode: declineCode(got), Message: got.FailureMessage})
	}
	charge := pendingCharge(op, r)
	charge.Status = string(got.Status)
	charge.Paid = got.Status == provider.Succeeded
	charge.Captured = got.Captured && charge.Paid
	if charge.Captured {
		charge.AmountCaptured = got.AmountCaptured
	}
	charge.Disputed = got.Disputed
	charge.Outcome = outcomeOf(got.Outcome)
	charge.Provider.ID = db.OrNil(got.ID)
	answer := idemkeys.Answer{
		Code:   http.StatusCreated,
		Header: map[string]string{"Content-Type": "application/json", "Location": "/v1/charges/" + charge.ID},
		Body:   idemkeys.Render(charge),
	}
	return c.commit(op, idemkeys.Completed, answer, charge, "charge."+charge.Status)
}

// declineCode is the code that the answer to the request had: the charge itself keeps it as the reason of its outcome.
func declineCode(got provider.Charge) string {
	if got.Outcome == nil || got.Outcome.NetworkStatus != "declined_by_network" {
		return ""
	}
	return got.Outcome.Reason
}

// refused is the commit for a definitive no: a decline is 402, a request that the provider will not carry out is 400.
func (c creation) refused(op idemkeys.Operation, r provider.ChargeRequest, no provider.Refusal) idemkeys.Commit {
	problem := idemkeys.Problem{Type: "invalid_request_error", Code: no.Code, Message: no.Message, Param: no.Param,
		Charge: op.ResourceID, RequestID: op.RequestID, Advice: idemkeys.FixAndUseNewKey}
	code := http.StatusBadRequest
	if no.Decline {
		problem.Type, problem.DeclineCode, code = "card_error", no.DeclineCode, http.StatusPaymentRequired
		if problem.Code == "" {
			problem.Code = "card_declined"
		}
	}
	if problem.Message == "" {
		problem.Message = "The payment provider refused the charge."
	}
	charge := failedCharge(op, r, problem.Code, problem.Message)
	charge.Provider.ID = db.OrNil(no.ChargeID)
	return c.commit(op, idemkeys.Completed, errorAnswer(code, problem), charge, "charge.failed")
}

// neverMade is the commit for a charge that is proven not to exist at the provider: nothing moved, and the same request may run anew.
func (c creation) neverMade(op idemkeys.Operation, r provider.ChargeRequest) idemkeys.Commit {
	problem := idemkeys.Problem{Type: "api_error", Code: "charge_never_made", Charge: op.ResourceID, RequestID: op.RequestID,
		Message: "The payment provider never made this charge, and no money moved. The same request under the same key makes a new one.",
		Advice:  idemkeys.RetrySameKey}
	charge := failedCharge(op, r, problem.Code, problem.Message)
	return c.commit(op, idemkeys.Failed, errorAnswer(http.StatusServiceUnavailable, problem), charge, "charge.failed")
}

func failedCharge(op idemkeys.Operation, r provider.ChargeRequest, code, message string) Charge {
	charge := pendingCharge(op, r)
	charge.Status = string(provider.Failed)
	charge.FailureCode, charge.FailureMessage = db.OrNil(code), db.OrNil(message)
	return charge
}

func errorAnswer(code int, p idemkeys.Problem) idemkeys.Answer {
	return idemkeys.Answer{Code: code, Header: map[string]string{"Content-Type": "application/json"}, Body: p.Render()}
}

func (c creation) commit(op idemkeys.Operation, status idemkeys.Status, a idemkeys.Answer, charge Charge, eventType string) idemkeys.Commit {
	id := eventID(eventType, charge.ID, op.ID)
	charge.intentID = c.intentID
	return idemkeys.Commit{Next: idemkeys.Finished, Status: status, Answer: &a, Write: settlement{
		store: c.store, charge: charge,
		eventID: id, eventType: eventType, eventPayload: renderEvent(id, eventType, op.Now(), charge, charge.Livemode, firstEvent),
	}}
}
