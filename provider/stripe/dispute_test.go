package stripe_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"testing"

	"paidonce/provider"
	"paidonce/provider/stripe"
	"paidonce/provider/stripesim"
)

const wholeDispute = `{"id":"dp_1","object":"dispute","charge":"ch_1","payment_intent":"pi_1","amount":5,"currency":"usd","status":"under_review",` +
	`"reason":"general","livemode":false,"created":1700000000,"is_charge_refundable":true,` +
	`"evidence_details":{"due_by":1700600000,"has_evidence":true,"past_due":false,"submission_count":1}}`

func TestDisputeFields(t *testing.T) {
	d, err := answering(t, 200, nil, wholeDispute).GetDispute(context.Background(), "dp_1")
	if err != nil || d.IntentID != "pi_1" || !d.Refundable || d.DueBy.Unix() != 1700600000 || !d.HasEvidence || d.PastDue || d.Submissions != 1 {
		t.Fatalf("%+v, %v", d, err)
	}
	for status, refundable := range map[string]bool{"needs_response": false, "lost": false, "won": true, "warning_under_review": true} {
		body := `{"id":"dp_1","charge":"ch_1","amount":5,"currency":"usd","status":"` + status + `"}`
		if d, err := answering(t, 200, nil, body).GetDispute(context.Background(), "dp_1"); err != nil || d.Refundable != refundable || !d.DueBy.IsZero() {
			t.Errorf("%s: %+v, %v", status, d, err)
		}
	}
}

func TestEventObjects(t *testing.T) {
	p := answering(t, 200, nil, "")
	event := func(object string) provider.EventObject {
		return p.EventObject([]byte(`{"created":1700000001,"data":{"object":` + object + `}}`))
	}
	if o := event(wholeDispute); o.Dispute == nil || o.Dispute.Status != "under_review" || o.At.Unix() != 1700000001 || o.Charge != nil {
		t.Errorf("%+v", o)
	}
	warning := `{"id":"issfr_1","object":"radar.early_fraud_warning","charge":"ch_1","fraud_type":"misc","actionable":true}`
	if o := event(warning); o.Warning == nil || !o.Warning.Actionable || o.Warning.ChargeID != "ch_1" {
		t.Errorf("%+v", o)
	}
	for _, damaged := range []string{`{"object":"dispute","id":"dp_1"}`, `7`, `{"object":"radar.early_fraud_warning","id":"issfr_1"}`, `{"object":"payout","id":"po_1"}`} {
		if o := event(damaged); o.Dispute != nil || o.Warning != nil {
			t.Errorf("%s: %+v", damaged, o)
		}
	}
}

// A restricted key that may not make a call is told from one that nobody knows.
func TestDeniedCalls(t *testing.T) {
	sim, err := stripesim.New(stripesim.Config{})
	must(t, err)
	server := httptest.NewServer(sim)
	t.Cleanup(server.Close)
	sim.TakeRights("rak_dispute_read", "rak_early_fraud_warning_read")
	p, err := stripe.New(stripe.Config{APIKey: "rk_test_restricted123", BaseURL: server.URL})
	must(t, err)
	_, err = p.GetDispute(context.Background(), "dp_1")
	var e *provider.Error
	if !errors.As(err, &e) || !provider.Denied(err) || e.Kind != provider.Credentials {
		t.Errorf("%v", err)
	}
	if _, err = p.GetFraudWarning(context.Background(), "issfr_1"); !provider.Denied(err) {
		t.Errorf("%v", err)
	}
	if c, err := p.GetCharge(context.Background(), "ch_1"); c != nil || err != nil {
		t.Errorf("%v, %v", c, err)
	}
	for about, c := range map[string]struct {
		status int
		body   string
	}{"a wrong key": {401, stripeError("invalid_request_error", "")}, "a gateway": {403, "<html>"}, "not there": {404, stripeError("invalid_request_error", "")}} {
		if _, err := answering(t, c.status, nil, c.body).GetDispute(context.Background(), "dp_1"); err == nil || provider.Denied(err) {
			t.Errorf("%s: %v", about, err)
		}
	}
}
