package stripesim_test

import (
	"strings"
	"testing"

	"paidonce/provider/stripesim"
)

const later = "amount=2000&currency=usd&payment_method_types[]=card"

func (s *sim) update(id, form string) *reply {
	s.t.Helper()
	return s.do("POST", intents+"/"+id, "", form)
}

func TestIntentIsUpdated(t *testing.T) {
	s := start(t, stripesim.Config{})
	id := s.do("POST", intents, "", later+"&metadata[a]=1&metadata[b]=2&description=book&receipt_email=a@b.c").id()
	r := s.update(id, "amount=2500&currency=EUR&customer=cus_42&metadata[a]=&metadata[c]=3&description=&statement_descriptor_suffix=X"+
		"&setup_future_usage=off_session&payment_method_types[]=card&payment_method_types[]=link")
	if r.body["amount"] != 2500.0 || r.text("currency") != "eur" || r.text("customer") != "cus_42" || r.body["description"] != nil ||
		r.text("receipt_email") != "a@b.c" || r.text("statement_descriptor_suffix") != "X" || r.text("setup_future_usage") != "off_session" ||
		!strings.Contains(r.raw, `"metadata":{"b":"2","c":"3"}`) || !strings.Contains(r.raw, `"payment_method_types":["card","link"]`) ||
		r.text("status") != "requires_payment_method" {
		t.Fatalf("%s", r.raw)
	}
	if r := s.update(id, "metadata="); !strings.Contains(r.raw, `"metadata":{}`) {
		t.Errorf("%s", r.raw)
	}
	for form, param := range map[string]string{
		"amount=1": "amount", "currency=xxx": "currency", "customer=cus_nobody": "customer", "payment_method=pm_card_nobody": "payment_method",
		"setup_future_usage=x": "setup_future_usage", "payment_method_types[]=cheque": "payment_method_types", "receipt_email=x": "receipt_email",
		"automatic_payment_methods[enabled]=true": "automatic_payment_methods[enabled]",
	} {
		if r := s.update(id, form); r.status != 400 || r.err("param") != param {
			t.Errorf("%s: %d %s", form, r.status, r.raw)
		}
	}
	if r := s.update(id, "payment_method=pm_card_visa"); r.text("status") != "requires_confirmation" || r.body["amount"] != 2500.0 {
		t.Errorf("%s", r.raw)
	}
	r = s.do("POST", intents+"/"+id+"/confirm", "", "expand[]=latest_charge")
	if r.text("latest_charge", "currency") != "eur" || r.body["amount_received"] != 2500.0 {
		t.Errorf("%s", r.raw)
	}
	r = s.update(id, "amount=2000")
	if r.err("code") != "payment_intent_unexpected_state" || r.err("param") != "amount" || r.text("error", "payment_intent", "id") != id {
		t.Errorf("%s", r.raw)
	}
	if r := s.update(id, "metadata[d]=4&description=late"); r.text("metadata", "d") != "4" || r.text("description") != "late" {
		t.Errorf("%s", r.raw)
	}
	if r := s.update("pi_3nobody", "amount=2000"); r.status != 404 {
		t.Errorf("%s", r.raw)
	}
}

// Another price or card while the payer is being asked: the answer to the old question counts for
// nothing.
func TestIntentIsUpdatedWhileThePayerIsAsked(t *testing.T) {
	s := start(t, stripesim.Config{})
	for form, status := range map[string]string{
		"amount=2500": "requires_confirmation", "payment_method=pm_card_visa": "requires_confirmation", "metadata[a]=1": "requires_action",
	} {
		id := s.intent(withCheck)
		s.do("POST", intents+"/"+id+"/confirm", "", "")
		if r := s.update(id, form); r.text("status") != status || (r.body["next_action"] == nil) != (status == "requires_confirmation") {
			t.Errorf("%s: %s", form, r.raw)
		}
		if err := s.Authenticate(id, true); (err == nil) != (status == "requires_action") {
			t.Errorf("%s: %v", form, err)
		}
	}
}

// A declined intent is confirmed with another card; an update takes its error off.
func TestIntentIsConfirmedAgain(t *testing.T) {
	s := start(t, stripesim.Config{})
	id := s.do("POST", intents, "", later).id()
	confirm := func(form string) *reply { return s.do("POST", intents+"/"+id+"/confirm", "", form) }
	if r := confirm(""); r.err("code") != "payment_intent_unexpected_state" {
		t.Errorf("%s", r.raw)
	}
	first := confirm("payment_method=pm_card_chargeDeclined")
	second := confirm("payment_method=pm_card_chargeDeclinedLostCard")
	if first.status != 402 || second.status != 402 || first.err("charge") == second.err("charge") {
		t.Errorf("%s %s", first.raw, second.raw)
	}
	// what it did not charge has no charge: the latest is an earlier one
	r := confirm("payment_method=pm_card_threeDSecure2Required&error_on_requires_action=true")
	if r.status != 402 || r.err("code") != "authentication_required" || r.err("decline_code") != "authentication_not_handled" ||
		r.err("charge") != "" || r.text("error", "payment_intent", "latest_charge") != second.err("charge") ||
		r.text("error", "payment_intent", "status") != "requires_payment_method" {
		t.Errorf("%s", r.raw)
	}
	r = s.update(id, "amount=2500")
	if r.body["last_payment_error"] != nil || r.text("latest_charge") != second.err("charge") {
		t.Errorf("%s", r.raw)
	}
	r = confirm("payment_method=pm_card_visa&setup_future_usage=on_session&expand[]=latest_charge")
	if r.text("status") != "succeeded" || r.text("setup_future_usage") != "on_session" || r.text("latest_charge", "status") != "succeeded" {
		t.Errorf("%s", r.raw)
	}
	if n := s.stats("charges"); n != "3" {
		t.Errorf("%s charges", n)
	}
	bank := s.intent(later + "&payment_method=pm_usBankAccount")
	for _, want := range []string{"processing", ""} {
		if r := s.do("POST", intents+"/"+bank+"/confirm", "", ""); r.text("status") != want {
			t.Errorf("a debit that is under way: %s", r.raw)
		}
	}
	if r := s.do("POST", intents+"/"+bank+"/cancel", "", ""); r.err("code") != "payment_intent_unexpected_state" {
		t.Errorf("cancelling a debit that is under way: %s", r.raw)
	}
}

// A method that Stripe chooses may send the payer away, and needs a way back then.
func TestWaysToPay(t *testing.T) {
	s := start(t, stripesim.Config{})
	const price, visa, back = "amount=2000&currency=usd", "&payment_method=pm_card_visa", "&return_url=https://shop.example"
	for form, want := range map[string]string{
		price: `{"allow_redirects":"always","enabled":true}`,
		price + "&automatic_payment_methods[enabled]=true":                                                                      `{"allow_redirects":"always","enabled":true}`,
		price + "&automatic_payment_methods[enabled]=true&automatic_payment_methods[allow_redirects]=never":                     `{"allow_redirects":"never","enabled":true}`,
		price + "&automatic_payment_methods[enabled]=false":                                                                     "null",
		price + "&payment_method_types[]=card":                                                                                  "null",
		price + "&payment_method_types[]=card&automatic_payment_methods[enabled]=true":                                          "400",
		price + "&automatic_payment_methods[enabled]=true&automatic_payment_methods[allow_redirects]=x":                         "400",
		price + "&automatic_payment_methods[enabled]=x":                                                                         "400",
		price + visa + "&confirm=true":                                                                                          "400",
		price + visa + "&confirm=true" + back:                                                                                   "succeeded",
		price + visa + "&confirm=true&payment_method_types[]=card":                                                              "succeeded",
		price + visa + "&confirm=true&automatic_payment_methods[enabled]=false":                                                 "succeeded",
		price + visa + "&confirm=true&automatic_payment_methods[enabled]=true&automatic_payment_methods[allow_redirects]=never": "succeeded",
		price + visa + "&confirm=true&off_session=true&setup_future_usage=off_session" + back:                                   "400",
		price + visa + "&error_on_requires_action=true":                                                                         "400",
	} {
		r := s.do("POST", intents, "", form)
		switch {
		case want == "400" && r.status == 400:
		case want == "succeeded" && r.text("status") == want:
		case strings.Contains(r.raw, `"automatic_payment_methods":`+want):
		default:
			t.Errorf("%s: %s, want %s", form, r.raw, want)
		}
	}
	id := s.do("POST", intents, "", price).id()
	if r := s.do("POST", intents+"/"+id+"/confirm", "", "payment_method=pm_card_visa"); r.status != 400 || !strings.Contains(r.err("message"), "return_url") {
		t.Errorf("%s", r.raw)
	}
	if n := s.stats("charges"); n != "4" {
		t.Errorf("%s charges", n)
	}
}
