package charges_test

import (
	"context"
	"testing"

	"paidonce/internal/world"
	"paidonce/provider"
)

// fickle is a provider whose customer has another default card each time an intent is created, and
// whose look-ups of intents may find nothing.
type fickle struct {
	provider.Provider
	sent  *int
	blind *bool
}

func (p fickle) CreateIntent(
	ctx context.Context, r *provider.ChargeRequest, returnURL string,
) (provider.IntentOutcome, error) {
	sent := *r
	sent.Source = []string{"pm_card_visa", "pm_card_mastercard", "pm_card_amex"}[*p.sent]
	*p.sent++
	return p.Provider.CreateIntent(ctx, &sent, returnURL)
}

func (p fickle) FindIntent(ctx context.Context, l provider.Lookup) ([]provider.Intent, error) {
	if *p.blind {
		return nil, nil
	}
	return p.Provider.FindIntent(ctx, l)
}

// What a customer pays with by default is read when the intent is created, and is not frozen. If it
// changes before an attempt after one whose answer was lost, that finds the first intent and goes
// on with it. If it finds nothing, the provider refuses the other parameters under the same key: no
// second intent is made, and the operation is parked until a look-up sees the first.
func TestDefaultMethodChangesBetweenAttempts(t *testing.T) {
	t.Parallel()
	for name, blinded := range map[string]bool{"found": false, "not found": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := world.NewIntents(t)
			sent, blind := 0, blinded
			i := w.StartWith(nil, fickle{w.Provider, &sent, &blind})
			p := world.Twenty
			p.Source, p.Customer = "", "cus_42"
			loseAnswer(w, "intent")
			charge := func() int {
				res, err := i.Charges.Create(t.Context(), w.Request("k"), p)
				if err != nil {
					return 503
				}
				return res.Answer.Code
			}
			if code := charge(); code != 503 {
				t.Fatalf("got %d, want no outcome", code)
			}
			if blinded {
				if code := charge(); code == 201 {
					t.Fatal("it was charged")
				}
				var id string
				w.Read(`SELECT operation_id FROM idempotency_keys WHERE parked_at IS NOT NULL`, nil, &id)
				blind = false
				if err := i.Engine.Retry(t.Context(), id, "olga", "the list is whole"); err != nil {
					t.Fatal(err)
				}
			}
			if code := charge(); code != 201 {
				t.Errorf("got %d", code)
			}
			s := w.Sim.Stats()
			if s.ChargesExecuted != 1 || s.Charges != 1 {
				t.Errorf("%d charges", s.Charges)
			}
			var network string
			w.Read(`SELECT details::jsonb->>'brand' FROM charges`, nil, &network)
			if network != "visa" {
				t.Errorf("paid with %s, not with the default of the first attempt", network)
			}
		})
	}
}
