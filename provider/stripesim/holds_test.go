package stripesim_test

import (
	"fmt"
	"testing"

	"paidonce/provider/stripesim"
)

// What happens to an authorisation without a request shows on the charge, its refunds and its
// intent as it does at Stripe, and can happen once.
func TestHolds(t *testing.T) {
	for _, through := range []string{"", "intent"} {
		for way, want := range map[string]struct {
			captured, refunded bool
			left               float64 // amount_refunded
			reason             any     // of the refund
			intent, why        any
			late               string // what a capture is told
		}{
			"lapse":   {false, true, 2000, "expired_uncaptured_charge", "canceled", "automatic", "charge_expired_for_capture"},
			"release": {false, true, 2000, nil, "canceled", "requested_by_customer", "charge_already_refunded"},
			"capture": {true, false, 1300, nil, "succeeded", nil, "charge_already_captured"},
		} {
			t.Run(way+" "+through, func(t *testing.T) {
				s := start(t, stripesim.Config{})
				var id, intent string
				if through == "" {
					id = s.do("POST", "/v1/charges", "", visa+"&capture=false").id()
				} else {
					r := s.do("POST", "/v1/payment_intents", "", visaCard+"&capture_method=manual&confirm=true")
					intent, id = r.id(), fmt.Sprint(r.body["latest_charge"])
				}
				body := fmt.Sprintf(`{"charge":%q}`, id)
				if way == "capture" {
					body = fmt.Sprintf(`{"charge":%q,"amount":700}`, id)
				}
				s.control("POST", "/_sim/"+way, body)
				c := s.do("GET", "/v1/charges/"+id, "", "")
				if c.body["captured"] != want.captured || c.body["refunded"] != want.refunded ||
					c.body["amount_refunded"] != want.left || c.body["status"] != "succeeded" {
					t.Errorf("the charge is %s", c.raw)
				}
				list := s.do("GET", "/v1/refunds?charge="+id, "", "").body["data"].([]any)
				if len(list) != 1 || list[0].(map[string]any)["reason"] != want.reason {
					t.Errorf("its refunds are %v", list)
				}
				path, late := "/v1/charges/"+id, want.late
				if intent != "" {
					in := s.do("GET", "/v1/payment_intents/"+intent, "", "")
					if in.body["status"] != want.intent || in.body["cancellation_reason"] != want.why {
						t.Errorf("the intent is %s", in.raw)
					}
					path, late = "/v1/payment_intents/"+intent, "payment_intent_unexpected_state"
				}
				if r := s.do("POST", path+"/capture", "", ""); r.status != 400 || r.err("code") != late {
					t.Errorf("a capture: %s", r.raw)
				}
				for again, err := range map[string]error{
					"lapse": s.LapseHold(id), "release": s.ReleaseHold(id), "capture": s.CaptureHold(id, 0),
				} {
					if err == nil {
						t.Errorf("%s again was possible", again)
					}
				}
			})
		}
	}
}
