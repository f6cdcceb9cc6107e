// Package providertest is the conformance suite of provider.Provider: what the code that moves
// money relies on, tried on an adapter and a faithful simulator of its provider.
package providertest

import (
	"context"
	"crypto/rand"
	"testing"
	"time"

	"paidonce/provider"
)

// Break is something that the simulator does to the next call that moves money, and only to that
// one.
type Break string

// The breaks that the suite needs.
const (
	LoseRequest Break = "lose_request" // nothing is carried out, the connection breaks
	// carried out and remembered under the key, the connection breaks
	LoseAnswer Break = "lose_answer"
	// carried out, but answered and remembered as a server error
	StoreFailure Break = "store_failure"
	// nothing is carried out nor remembered; a gateway answers 503
	Unavailable Break = "unavailable"
	Slow        Break = "slow"       // takes half a second to be carried out
	CutAnswer   Break = "cut_answer" // carried out, the answer ends in the middle
)

// World is one adapter and the simulator behind it, for one test.
type World struct {
	Provider provider.Provider
	Livemode bool
	Currency string // in which 2000 minor units are an ordinary amount
	// Sources: one that pays, one that is declined, one that doesn't exist.
	Good, Declined, Missing string
	// NeedsAction is a source whose payer has to authenticate, and Customer one who pays with what
	// is stored.
	NeedsAction, Customer string
	// Authenticate ends what an intent waits for: the payer agrees or doesn't. It does nothing to
	// an intent that waits for nobody.
	Authenticate func(intent string, agrees bool)
	// ConfirmInBrowser confirms an intent as its payer's browser does.
	ConfirmInBrowser func(intent, source string) error
	// Dispute opens a dispute over a charge and gives its id; CloseDispute ends it.
	Dispute      func(charge string) (dispute string)
	CloseDispute func(dispute string, won bool)
	// Inquire opens one that takes no money yet, and WarnOfFraud makes an early fraud warning.
	Inquire     func(charge string) (dispute string)
	WarnOfFraud func(charge string) (warning string)
	// Break arms a break for the next money call.
	Break func(Break)
	// ForgetKeys makes the provider forget every idempotency key, as it does after its window.
	ForgetKeys func()
	// Moved counts the successful charges that exist for an operation, by the simulator's own
	// records.
	Moved func(operation string) int
}

// Run tries everything. newWorld makes a fresh world for each test.
func Run(t *testing.T, newWorld func(t *testing.T) World) {
	t.Helper()
	for name, check := range map[string]func(*testing.T, *world){
		"same key, same answer":                      sameKey,
		"same key, other parameters":                 otherParameters,
		"a decline is an outcome":                    decline,
		"a refused request is an outcome":            refusedRequest,
		"lost answer, same key":                      lostAnswerSameKey,
		"lost answer, look-up":                       lostAnswerLookup,
		"answer cut off":                             cutAnswer,
		"lost request":                               lostRequest,
		"stored failure":                             storedFailure,
		"unavailable for a moment":                   unavailable,
		"forgotten keys charge again":                forgottenKeys,
		"look-up through many pages":                 manyPages,
		"look-up outside the window":                 lookupWindow,
		"look-up finds failed charges too":           lookupFailed,
		"in flight":                                  inFlight,
		"many at once, one charge":                   manyAtOnce,
		"authorise and capture":                      capture,
		"capture in part":                            captureInPart,
		"refunds":                                    refunds,
		"lost refund":                                lostRefund,
		"refund over the rest":                       refundOver,
		"get":                                        get,
		"context done before the call":               contextDone,
		"deadline during the call":                   deadline,
		"no key, no call":                            noKey,
		"metadata comes back on nobody else's terms": metadata,
		"intent: created, then confirmed":            intentPays,
		"intent: declined":                           intentDeclined,
		"intent: refused":                            intentRefused,
		"intent: creation lost":                      intentCreationLost,
		"intent: confirmation lost":                  intentConfirmationLost,
		"intent: confirmed by many at once":          intentsAtOnce,
		"intent: look-up through many pages":         intentPages,
		"intent: authorise and capture":              intentCapture,
		"intent: a customer pays":                    intentCustomer,
		"intent: the payer authenticates":            intentAction,
		"intent: cancelled":                          intentCanceled,
		"intent: cancellation lost":                  intentCancellationLost,
		"intent: cancelled or authenticated":         intentCanceledOrPaid,
		"intent: nobody is there to authenticate":    intentNobodyThere,
		"intent: no key, no call":                    intentNoKey,
		"intent: confirmed again after a decline":    intentConfirmedAgain,
		"intent: confirmed by the payer's browser":   intentConfirmedInBrowser,
		"intent: updated":                            intentUpdated,
		"get a refund":                               getRefund,
		"disputes":                                   disputes,
		"disputes: several of a charge":              severalDisputes,
		"early fraud warnings":                       fraudWarnings,
	} {
		t.Run(name, func(t *testing.T) { check(t, &world{World: newWorld(t), T: t}) })
	}
}

type world struct {
	World
	*testing.T
}

func newTags() provider.Tags {
	return provider.Tags{Operation: "op_" + rand.Text(), Installation: "inst_conformance"}
}

func (w *world) request() provider.ChargeRequest {
	return provider.ChargeRequest{
		IdempotencyKey: "po_" + rand.Text(), Tags: newTags(), Livemode: w.Livemode, Amount: 2000, Currency: w.Currency,
		Source: w.Good, Capture: true, Metadata: map[string]string{"order": "7"},
	}
}

func (w *world) charge(r provider.ChargeRequest) (provider.ChargeOutcome, error) {
	return w.Provider.Charge(context.Background(), &r)
}

// paid makes a charge that has to succeed.
func (w *world) paid(r provider.ChargeRequest) *provider.Charge {
	w.Helper()
	out, err := w.charge(r)
	if err != nil || out.Charge == nil || out.Refusal != nil || out.Charge.Status != provider.Succeeded {
		w.Fatalf("charge: got %+v, %v; want a successful charge", out, err)
	}
	return out.Charge
}

// found looks the operation up and wants n hits.
func (w *world) found(tags provider.Tags, n int) []provider.Charge {
	w.Helper()
	now := time.Now()
	hits, err := w.Provider.FindCharge(context.Background(), provider.Lookup{Tags: tags, From: now.Add(-time.Minute), To: now})
	if err != nil {
		w.Fatalf("look-up: %v", err)
	}
	if len(hits) != n {
		w.Fatalf("look-up found %d charges, want %d: %+v", len(hits), n, hits)
	}
	return hits
}

func (w *world) moved(tags provider.Tags, n int) {
	w.Helper()
	if got := w.Moved(tags.Operation); got != n {
		w.Fatalf("money moved %d times, want %d", got, n)
	}
}

// failed wants an error of a kind.
func (w *world) failed(err error, kind provider.Kind) {
	w.Helper()
	if got := provider.KindOf(err); got != kind {
		w.Fatalf("got %v, of the kind %q; want %s", err, got, kind)
	}
}
