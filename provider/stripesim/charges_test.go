package stripesim_test

import (
	"fmt"
	"strings"
	"testing"

	"paidonce/provider/stripesim"
)

func TestTestCards(t *testing.T) {
	s := start(t, stripesim.Config{})
	for token, want := range map[string][3]string{ // status, code, decline code
		"tok_visa": {"200"}, "tok_mastercard": {"200"}, "tok_amex": {"200"},
		"tok_chargeDeclined":                  {"402", "card_declined", "generic_decline"},
		"tok_chargeDeclinedInsufficientFunds": {"402", "card_declined", "insufficient_funds"},
		"tok_chargeDeclinedLostCard":          {"402", "card_declined", "lost_card"},
		"tok_chargeDeclinedExpiredCard":       {"402", "expired_card", "expired_card"},
		"tok_chargeDeclinedIncorrectCvc":      {"402", "incorrect_cvc", "incorrect_cvc"},
		"tok_chargeDeclinedProcessingError":   {"402", "processing_error", "processing_error"},
		"tok_nope":                            {"400", "resource_missing", ""},
		"4242424242424242":                    {"400", "resource_missing", ""},
	} {
		r := s.do("POST", "/v1/charges", "", "amount=2000&currency=USD&source="+token)
		if got := [3]string{fmt.Sprint(r.status), r.err("code"), r.err("decline_code")}; got != want {
			t.Errorf("%s: %v, want %v", token, got, want)
			continue
		}
		if r.status != 402 {
			continue
		}
		failed := s.do("GET", "/v1/charges/"+r.err("charge"), "", "")
		if r.err("type") != "card_error" || failed.body["status"] != "failed" || failed.body["failure_code"] != want[1] ||
			failed.body["failure_message"] != r.err("message") || failed.body["paid"] != false || failed.body["captured"] != false {
			t.Errorf("%s: %s\n%s", token, r.raw, failed.raw)
		}
	}
}

func TestRefusedParameters(t *testing.T) {
	s := start(t, stripesim.Config{})
	long := strings.Repeat("x", 501)
	many := ""
	for i := range 51 {
		many += fmt.Sprintf("&metadata[k%d]=v", i)
	}
	for form, want := range map[string][2]string{ // code, param
		"currency=usd&source=tok_visa":                     {"parameter_missing", "amount"},
		"amount=2000&source=tok_visa":                      {"parameter_missing", "currency"},
		"amount=2000&currency=usd":                         {"parameter_missing", "source"},
		"amount=49&currency=usd&source=tok_visa":           {"amount_too_small", "amount"},
		"amount=29&currency=gbp&source=tok_visa":           {"amount_too_small", "amount"},
		"amount=49&currency=jpy&source=tok_visa":           {"amount_too_small", "amount"},
		"amount=0&currency=usd&source=tok_visa":            {"parameter_invalid_integer", "amount"},
		"amount=-5&currency=usd&source=tok_visa":           {"parameter_invalid_integer", "amount"},
		"amount=20.5&currency=usd&source=tok_visa":         {"parameter_invalid_integer", "amount"},
		"amount=100000000&currency=usd&source=tok_visa":    {"amount_too_large", "amount"},
		"amount=2000&currency=zzz&source=tok_visa":         {"", "currency"},
		visa + "&capture=maybe":                            {"", "capture"},
		visa + "&colour=red":                               {"parameter_unknown", "colour"},
		visa + "&amount[x]=1":                              {"parameter_unknown", "amount[x]"},
		visa + "&metadata=x":                               {"", "metadata"},
		visa + "&metadata[a[b]]=x":                         {"", "metadata"},
		visa + "&metadata[]=x":                             {"", "metadata"},
		visa + "&metadata[" + long[:41] + "]=x":            {"", "metadata"},
		visa + "&metadata[a]=" + long:                      {"", "metadata[a]"},
		visa + many:                                        {"", "metadata"},
		visa + "&statement_descriptor_suffix=" + long[:23]: {"", "statement_descriptor_suffix"},
		visa + "&receipt_email=nobody":                     {"email_invalid", "receipt_email"},
		visa + "&customer=cus_42":                          {"resource_missing", "source"},
		visa + "&description=%ff":                          {"", ""},
	} {
		r := s.do("POST", "/v1/charges", "", form)
		if r.status != 400 || r.err("type") != "invalid_request_error" || r.err("code") != want[0] || r.err("param") != want[1] {
			t.Errorf("%.80s: %d %s", form, r.status, r.raw)
		}
	}
	if n := s.Stats().Charges; n != 0 {
		t.Errorf("%d charges", n)
	}
	s.pay("", visa+"&expand[0]=balance_transaction&metadata[a]=&metadata[b]=c&metadata=")
	s.pay("", "amount=30&currency=gbp&source=tok_visa")
	s.pay("", "amount=50&currency=jpy&source=tok_visa")
}

func TestCaptureAndRefund(t *testing.T) {
	s := start(t, stripesim.Config{})
	refund := func(form string) *reply { return s.do("POST", "/v1/refunds", "", form) }
	capture := func(id, form string) *reply { return s.do("POST", "/v1/charges/"+id+"/capture", "", form) }
	a := s.pay("", visa+"&capture=false").id()
	if r := refund("charge=" + a + "&amount=5"); r.status != 400 {
		t.Errorf("part of an uncaptured charge: %s", r.raw)
	}
	if r := capture(a, "amount=2001"); r.err("code") != "amount_too_large" {
		t.Errorf("%s", r.raw)
	}
	if r := capture(a, "metadata[x]=y"); r.err("code") != "parameter_unknown" {
		t.Errorf("capture takes no metadata with Stripe: %s", r.raw)
	}
	r := capture(a, "amount=1500")
	if r.body["captured"] != true || r.body["amount_captured"] != 1500.0 || r.body["amount_refunded"] != 500.0 || r.body["amount"] != 2000.0 {
		t.Errorf("%s", r.raw)
	}
	if r := capture(a, ""); r.status != 400 || r.err("code") != "charge_already_captured" {
		t.Errorf("%s", r.raw)
	}
	if r := refund("charge=" + a + "&amount=1501"); r.status != 400 || r.err("param") != "amount" || r.err("code") != "" {
		t.Errorf("%s", r.raw)
	}
	if r := refund("charge=" + a); r.status != 200 || r.body["amount"] != 1500.0 || r.body["status"] != "succeeded" {
		t.Errorf("%s", r.raw)
	}
	if r := refund("charge=" + a); r.err("code") != "charge_already_refunded" {
		t.Errorf("%s", r.raw)
	}
	if got := s.walk("/v1/refunds", "&charge="+a, 1); len(got) != 2 {
		t.Errorf("refunds: %v", got)
	}
	if got := s.walk("/v1/charges/"+a+"/refunds", "", 1); len(got) != 2 {
		t.Errorf("refunds of the charge: %v", got)
	}
	d := s.pay("", "amount=2000&currency=usd&source=tok_createDispute")
	now := s.do("GET", "/v1/charges/"+d.id(), "", "")
	if d.body["disputed"] != false || now.body["disputed"] != true {
		t.Errorf("%s\n%s", d.raw, now.raw)
	}
	if r := refund("charge=" + d.id()); r.err("code") != "charge_disputed" {
		t.Errorf("%s", r.raw)
	}
	for form, code := range map[string]string{"": "parameter_missing", "charge=ch_x": "resource_missing", "charge=" + a + "&amount=0": "parameter_invalid_integer", "charge=" + a + "&reason=mood": ""} {
		if r := refund(form); r.status != 400 || r.err("code") != code {
			t.Errorf("%q: %d %s", form, r.status, r.raw)
		}
	}
	if r := capture("ch_x", ""); r.status != 404 {
		t.Errorf("%d %s", r.status, r.raw)
	}
	f := s.do("POST", "/v1/charges", "", "amount=2000&currency=usd&source=tok_chargeDeclined").err("charge")
	if r := refund("charge=" + f); r.status != 400 {
		t.Errorf("refund of a failed charge: %s", r.raw)
	}
	if r := capture(f, ""); r.status != 400 {
		t.Errorf("capture of a failed charge: %s", r.raw)
	}
	if r := s.do("GET", "/v1/balance", "", ""); !strings.Contains(r.raw, `"available":[{"amount":2000,`) {
		t.Errorf("%s", r.raw)
	}
}
