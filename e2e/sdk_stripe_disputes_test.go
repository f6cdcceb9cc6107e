package e2e

import (
	"net/http"
	"testing"

	"github.com/stripe/stripe-go/v76"
)

// disputesHear are the settings of a server that hears of disputes, in events that are signed with
// disputesSecret.
var disputesHear = []string{"PAIDONCE_WORKERS=relay,inbox", "STRIPE_WEBHOOK_SECRET=" + disputesSecret}

const disputesSecret = "whsec_disputes"

// Disputes are read with stripe-go, and so is the dispute of an event.
func TestStripeGoDisputes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, disputesHear...)
	p := w.serve()
	w.sim.tellTo(p, disputesSecret)
	sc, _ := w.stripeGo(p, 0)
	ch, err := sc.Charges.New(chargeOf("order", 2000, "tok_visa"))
	if err != nil {
		t.Fatal(err)
	}
	theirs := querySQL[string](t, w.dbURL, "SELECT provider_id FROM charges WHERE id = $1", ch.ID)
	open := func(terms map[string]any) (id string) {
		t.Helper()
		var made struct{ ID string }
		terms["charge"] = theirs
		w.sim.control(http.MethodPost, "dispute", terms, &made)
		return made.ID
	}
	open(map[string]any{"status": "warning_needs_response"})
	lost := open(map[string]any{"amount": 1200, "reason": "duplicate"})
	list := func() (found []*stripe.Dispute) {
		t.Helper()
		params := &stripe.DisputeListParams{Charge: stripe.String(ch.ID)}
		params.AddExpand("data.charge")
		params.Limit = stripe.Int64(1)
		it := sc.Disputes.List(params)
		for it.Next() {
			found = append(found, it.Dispute())
			if it.Dispute().Charge.Amount != 2000 {
				t.Errorf("the charge is %+v", it.Dispute().Charge)
			}
		}
		if it.Err() != nil {
			t.Fatal(it.Err())
		}
		return found
	}
	eventually(t, "both disputes are known", func() bool { return len(list()) == 2 })
	w.sim.control(http.MethodPost, "close_dispute",
		map[string]string{"dispute": lost, "status": "lost"}, nil)
	ours := querySQL[string](t, w.dbURL, "SELECT id FROM disputes WHERE provider_id = $1", lost)
	eventually(t, "one is lost", func() bool {
		d, err := sc.Disputes.Get(ours, nil)
		if err != nil {
			t.Fatal(err)
		}
		return d.Status == stripe.DisputeStatusLost && d.Amount == 1200 &&
			d.Reason == stripe.DisputeReasonDuplicate && d.Charge.ID == ch.ID &&
			d.EvidenceDetails.DueBy > 0 && !d.IsChargeRefundable
	})
	if d, err := sc.Disputes.Get(lost, nil); err != nil || d.ID != ours {
		t.Errorf("by Stripe's id: %+v, %v", d, err)
	}
	ofTheirs := sc.Disputes.List(&stripe.DisputeListParams{Charge: stripe.String(theirs)})
	if !ofTheirs.Next() || ofTheirs.Dispute().Charge.ID != ch.ID {
		t.Errorf("of Stripe's id of the charge: %v", ofTheirs.Err())
	}
	if _, err := sc.Disputes.Get("dp_none", nil); asError(err).Code != stripe.ErrorCodeResourceMissing {
		t.Error(err)
	}
	if got, err := sc.Charges.Get(ch.ID, nil); err != nil || !got.Disputed {
		t.Errorf("%+v, %v; want it disputed: there is an inquiry", got, err)
	}
	refund := &stripe.RefundParams{Charge: stripe.String(ch.ID)}
	refund.SetIdempotencyKey("refund")
	_, err = sc.Refunds.New(refund)
	if asError(err).Code != stripe.ErrorCodeChargeDisputed {
		t.Error(err)
	}
	events := &stripe.EventListParams{Type: stripe.String("charge.dispute.closed")}
	it := sc.Events.List(events)
	if !it.Next() || it.Err() != nil {
		t.Fatal(it.Err())
	}
	told, _ := it.Event().Data.Object["dispute"].(map[string]any)
	if told["id"] != ours || told["status"] != "lost" {
		t.Errorf("the event tells %v", it.Event().Data.Object)
	}
}
