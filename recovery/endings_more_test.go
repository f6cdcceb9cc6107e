package recovery_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"paidonce/idemkeys"
	"paidonce/provider"
	"paidonce/provider/stripesim"
)

func (w *world) arm(t *testing.T, rule stripesim.Rule, count int, f stripesim.Fault) {
	t.Helper()
	rule.Count, rule.Fault = count, f
	if _, err := w.sim.AddFault(rule); err != nil {
		t.Fatal(err)
	}
}

// Nothing can be looked up, ever: with an error, that is for a person when patience is over. With no such read at all, it is for a person at once when the derived
// key is not to be trusted any more.
func TestLookUpsThatNeverWork(t *testing.T) {
	t.Parallel()
	for _, s := range everyStep() {
		for _, status := range []int{500, 405} {
			t.Run(fmt.Sprint(s.name, " ", status), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.intents = s.intents
				i := w.start(nil, nil)
				var charge string
				if s.on {
					p := twenty
					p.Capture = !s.capture
					charge = i.made(w, "charge", p)
				}
				w.arm(t, s.rule, 1, stripesim.Fault{Type: stripesim.DropAfter})
				w.arm(t, stripesim.Rule{Match: stripesim.Match{Method: http.MethodGet}}, 0, stripesim.Fault{Type: stripesim.StatusBefore, Status: status})
				_, err := s.do(i, w, "k", charge)
				wantUnknown(t, err)
				w.age(25 * time.Hour)
				patient := status == 500 || s.name == "charge.intent confirmed" // whose look-up is worth trying on: an intent is never forgotten
				if end := w.bringToAnEnd(i, "k", patient); end != "parked" {
					t.Errorf("it ended %q: %s", end, w.lastError("k"))
				}
				if moved := s.moved(w.sim.Stats()); moved > 1 {
					t.Errorf("money moved %d times", moved)
				}
			})
		}
	}
}

// A provider that knows a charge is captured and cannot be asked about it: its refusal is the answer to who had sent nothing before, and for a person else.
func TestCapturedAlreadyAndNoRead(t *testing.T) {
	t.Parallel()
	for _, before := range []bool{false, true} {
		t.Run(fmt.Sprintf("sent before %t", before), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			i := w.start(nil, nil)
			h := w.held(t, i)
			if before {
				w.fault(1, stripesim.Fault{Type: stripesim.DropBefore})
				_, err := i.capture(w, "k", h.id, 0)
				wantUnknown(t, err)
			}
			w.capturedElsewhere(t, h, 1200)
			w.lookupFault(0, stripesim.Fault{Type: stripesim.StatusBefore, Status: 405})
			res, err := i.capture(w, "k", h.id, 0)
			var parked *idemkeys.Parked
			if before && !errors.As(err, &parked) || !before && (err != nil || res.Answer.Code != http.StatusBadRequest) {
				t.Errorf("%d %s, %v", res.Answer.Code, res.Answer.Body, err)
			}
		})
	}
}

// The first confirmation is lost and the second refused: the intent tells that neither charged, and the refusal is the answer.
func TestConfirmationRefusedAfterALostOne(t *testing.T) {
	t.Parallel()
	w := newIntentWorld(t)
	i := w.start(nil, nil)
	confirmation := posts("/v1/payment_intents")
	confirmation.Skip = 1
	w.arm(t, confirmation, 1, stripesim.Fault{Type: stripesim.DropBefore})
	_, err := i.charge(w, "k")
	wantUnknown(t, err)
	w.arm(t, posts("/v1/payment_intents"), 0, stripesim.Fault{Type: stripesim.StatusBefore, Status: 400, Store: true, Body: problem("invalid_request_error", "resource_missing")})
	res, err := i.charge(w, "k")
	if err != nil || res.Answer.Code != http.StatusBadRequest {
		t.Fatalf("%d %s, %v", res.Answer.Code, res.Answer.Body, err)
	}
	w.books(0)
}

// unconfirming says of each confirmation that it took place, and shows an intent that still waits for one.
type unconfirming struct{ provider.Provider }

func (p unconfirming) ConfirmIntent(ctx context.Context, r provider.ConfirmRequest) (provider.IntentOutcome, error) {
	in, err := p.GetIntent(ctx, r.IntentID)
	return provider.IntentOutcome{Intent: in}, err
}

func TestConfirmationThatConfirmsNothing(t *testing.T) {
	t.Parallel()
	w := newIntentWorld(t)
	i := w.start(nil, unconfirming{w.psp})
	_, err := i.charge(w, "k")
	wantUnknown(t, err)
	if end := w.bringToAnEnd(i, "k", false); end != "failed" {
		t.Errorf("it ended %q: %s", end, w.lastError("k"))
	}
	if res, err := w.start(nil, nil).charge(w, "k"); err != nil || res.Answer.Code != http.StatusCreated {
		t.Errorf("%d %s, %v", res.Answer.Code, res.Answer.Body, err)
	}
	w.books(1)
}
