package charges_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"paidonce/idemkeys"
	"paidonce/internal/world"
	"paidonce/provider"
	"paidonce/provider/stripesim"
)

func arm(w *world.World, t *testing.T, rule stripesim.Rule, count int, f stripesim.Fault) {
	t.Helper()
	rule.Count, rule.Fault = count, f
	if _, err := w.Sim.AddFault(rule); err != nil {
		t.Fatal(err)
	}
}

// Nothing can be looked up, ever: with an error, the operation is parked when patience is over.
// With no such read at all, it is parked at once when the derived key is not to be trusted any
// more.
func TestLookUpsThatNeverWork(t *testing.T) {
	t.Parallel()
	for _, s := range everyStep() {
		for _, status := range []int{500, 405} {
			t.Run(fmt.Sprint(s.name, " ", status), func(t *testing.T) {
				t.Parallel()
				w := world.New(t)
				w.Intents = s.intents
				i := w.Start()
				charge := s.prepare(i, "charge")
				arm(w, t, s.rule, 1, stripesim.Fault{Type: stripesim.DropAfter})
				arm(
					w, t, stripesim.Rule{Match: stripesim.Match{Method: http.MethodGet}}, 0,
					stripesim.Fault{Type: stripesim.StatusBefore, Status: status},
				)
				_, err := s.do(i, w, "k", charge)
				world.WantUnknown(t, err)
				w.Age(25 * time.Hour)
				// whose look-up is worth trying on: an intent is never forgotten
				patient := status == 500 || s.name == "charge.intent confirmed" || s.reads
				if end := bringToAnEnd(w, i, "k", patient); end != "parked" {
					t.Errorf("it ended %q: %s", end, w.LastError("k"))
				}
				if moved := s.moved(w.Sim.Stats()); moved > 1 {
					t.Errorf("money moved %d times", moved)
				}
			})
		}
	}
}

// A provider that knows a charge is captured and cannot be asked about it: its refusal is the
// answer if nothing had been sent before. Otherwise the operation is parked.
func TestCapturedAlreadyAndNoRead(t *testing.T) {
	t.Parallel()
	for _, before := range []bool{false, true} {
		t.Run(fmt.Sprintf("sent before %t", before), func(t *testing.T) {
			t.Parallel()
			w := world.New(t)
			i := w.Start()
			h := hold(w, t, i)
			if before {
				w.ChargeFault(1, stripesim.Fault{Type: stripesim.DropBefore})
				_, err := i.Capture("k", h.id, 0)
				world.WantUnknown(t, err)
			}
			capturedElsewhere(w, t, h, 1200)
			w.LookUpFault(0, stripesim.Fault{Type: stripesim.StatusBefore, Status: 405})
			res, err := i.Capture("k", h.id, 0)
			var parked *idemkeys.Parked
			if before && !errors.As(err, &parked) ||
				!before && (err != nil || res.Answer.Code != http.StatusBadRequest) {
				t.Errorf("got %d %s, %v, want 400", res.Answer.Code, res.Answer.Body, err)
			}
		})
	}
}

// The first confirmation is lost and the second refused: the intent tells that neither charged, and
// the refusal is the answer.
func TestConfirmationRefusedAfterALostOne(t *testing.T) {
	t.Parallel()
	w := world.NewIntents(t)
	i := w.Start()
	confirmation := posts("/v1/payment_intents")
	confirmation.Skip = 1
	arm(w, t, confirmation, 1, stripesim.Fault{Type: stripesim.DropBefore})
	_, err := i.Charge("k")
	world.WantUnknown(t, err)
	arm(
		w, t, posts("/v1/payment_intents"), 0,
		stripesim.Fault{
			Type: stripesim.StatusBefore, Status: 400, Store: true,
			Body: errorBody("invalid_request_error", "resource_missing"),
		},
	)
	res, err := i.Charge("k")
	if err != nil || res.Answer.Code != http.StatusBadRequest {
		t.Fatalf("got %d %s, %v, want 400", res.Answer.Code, res.Answer.Body, err)
	}
	w.CheckRecords(0)
}

// unconfirming says of each confirmation that it took place, and shows an intent that still waits
// for one.
type unconfirming struct{ provider.Provider }

func (p unconfirming) ConfirmIntent(
	ctx context.Context, r provider.ConfirmRequest,
) (provider.IntentOutcome, error) {
	in, err := p.GetIntent(ctx, r.IntentID)
	return provider.IntentOutcome{Intent: in}, err
}

func TestConfirmationThatConfirmsNothing(t *testing.T) {
	t.Parallel()
	w := world.NewIntents(t)
	i := w.StartWith(nil, unconfirming{w.Provider})
	_, err := i.Charge("k")
	world.WantUnknown(t, err)
	if end := bringToAnEnd(w, i, "k", false); end != "failed" {
		t.Errorf("it ended %q: %s", end, w.LastError("k"))
	}
	if res, err := w.Start().Charge("k"); err != nil || res.Answer.Code != http.StatusCreated {
		t.Errorf("got %d %s, %v, want 201", res.Answer.Code, res.Answer.Body, err)
	}
	w.CheckRecords(1)
}
