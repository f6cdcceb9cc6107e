package charges_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"paidonce/internal/world"
	"paidonce/provider"
	"paidonce/provider/stripesim"
)

// reads counts what the provider is asked about single objects and look-ups.
type reads struct {
	provider.Provider
	mu   sync.Mutex
	seen []string
}

func (r *reads) note(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = append(r.seen, what)
}

func (r *reads) GetCharge(ctx context.Context, id string) (*provider.Charge, error) {
	r.note("charge")
	return r.Provider.GetCharge(ctx, id)
}

func (r *reads) GetIntent(ctx context.Context, id string) (*provider.Intent, error) {
	r.note("intent")
	return r.Provider.GetIntent(ctx, id)
}

func (r *reads) GetRefund(ctx context.Context, id string) (*provider.Refund, error) {
	r.note("refund")
	return r.Provider.GetRefund(ctx, id)
}

func (r *reads) FindRefund(ctx context.Context, l provider.Lookup) ([]provider.Refund, error) {
	r.note("refunds")
	return r.Provider.FindRefund(ctx, l)
}

// An event that settles an open operation does so by the object that was read for it: nothing is
// read twice.
func TestAnEventReadsItsObjectOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		event   string
		intents bool
		want    string
	}{
		{"charge.succeeded", false, "[charge]"},
		{"charge.succeeded", true, "[charge]"},
		{"payment_intent.succeeded", true, "[intent]"},
		{"refund.created", false, "[refund charge]"}, // the charge says how much is refunded
	} {
		w := world.New(t)
		w.Intents = c.intents
		counted := &reads{Provider: w.Provider}
		i := w.StartWith(nil, counted)
		lost := stripesim.Fault{Type: stripesim.DropAfter}
		var object string
		if c.event == "refund.created" {
			charge := i.MustCharge("k", world.Twenty)
			w.RefundFault(1, lost)
			_, err := i.Refund("r", charge, 500)
			world.WantUnknown(t, err)
			object = w.OnlyOne("/v1/refunds")
		} else {
			path := "/v1/charges"
			if c.intents {
				path = "/v1/payment_intents/" // the confirmation
			}
			if _, err := w.Sim.AddFault(
				stripesim.Rule{
					Match: stripesim.Match{Method: http.MethodPost, Path: path}, Count: 1,
					Fault: lost,
				},
			); err != nil {
				t.Fatal(err)
			}
			_, err := i.Charge("k")
			world.WantUnknown(t, err)
			object = w.OnlyOne("/v1/charges")
			if c.event == "payment_intent.succeeded" {
				object = w.OnlyOne("/v1/payment_intents")
			}
		}
		counted.seen = nil
		in := w.InboxWith(w.ProviderEvents(i, counted).Apply)
		w.Deliver(in, "evt_1", c.event, object)
		w.Process(in)
		if got := fmt.Sprint(counted.seen); got != c.want {
			t.Errorf("%s (intents %t): read %s, want %s", c.event, c.intents, got, c.want)
		}
		if n := w.Count(
			`SELECT count(*) FROM idempotency_keys WHERE status = 'in_progress'`,
		); n != 0 {
			t.Errorf("%s (intents %t): the operation is not settled", c.event, c.intents)
		}
		w.CheckRecords(1)
	}
}
