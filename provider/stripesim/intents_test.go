package stripesim_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"paidonce/provider/stripesim"
)

const (
	intents   = "/v1/payment_intents"
	visaCard  = "amount=2000&currency=usd&payment_method_types[]=card&payment_method_data[type]=card&payment_method_data[card][token]=tok_visa"
	withCheck = "amount=2000&currency=usd&payment_method_types[]=card&payment_method=pm_card_threeDSecure2Required"
)

func (r *reply) text(path ...string) string {
	at := r.body
	for _, p := range path[:len(path)-1] {
		at, _ = at[p].(map[string]any)
	}
	s, _ := at[path[len(path)-1]].(string)
	return s
}

// intent makes one that is ready to be confirmed.
func (s *sim) intent(form string) string {
	s.t.Helper()
	r := s.do("POST", intents, "", form)
	if r.status != 200 || r.text("status") != "requires_confirmation" || r.body["latest_charge"] != nil || !strings.HasPrefix(r.id(), "pi_") {
		s.t.Fatalf("%d %s", r.status, r.raw)
	}
	return r.id()
}

func (s *sim) stats(field string) string {
	s.t.Helper()
	_, after, _ := strings.Cut(s.control("GET", "/_sim/stats", ""), `"`+field+`":`)
	n, _, _ := strings.Cut(after, ",")
	return strings.Trim(n, "}\n")
}

func TestIntentPays(t *testing.T) {
	s := start(t, stripesim.Config{})
	id := s.intent(visaCard + "&metadata[order]=7&description=book&customer=cus_42")
	if n := s.stats("charges"); n != "0" {
		t.Fatalf("%s charges before the confirmation", n)
	}
	first := s.do("POST", intents+"/"+id+"/confirm", "k", "expand[]=latest_charge")
	ch := first.text("latest_charge", "id")
	if first.text("status") != "succeeded" || first.text("latest_charge", "metadata", "order") != "7" || first.text("latest_charge", "payment_intent") != id ||
		first.text("latest_charge", "status") != "succeeded" || first.body["amount_received"] != 2000.0 {
		t.Fatalf("%d %s", first.status, first.raw)
	}
	again := s.do("POST", intents+"/"+id+"/confirm", "k", "expand[]=latest_charge")
	if again.raw != first.raw || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("a replay differs: %s", again.raw)
	}
	other := s.do("POST", intents+"/"+id+"/confirm", "k2", "")
	if other.status != 400 || other.err("code") != "payment_intent_unexpected_state" || other.text("error", "payment_intent", "status") != "succeeded" {
		t.Errorf("%d %s", other.status, other.raw)
	}
	if r := s.do("GET", "/v1/charges", "", "payment_intent="+id); !slices.Equal(r.ids(), []string{ch}) {
		t.Errorf("%s", r.raw)
	}
	if r := s.do("GET", "/v1/charges", "", "payment_intent=pi_other"); len(r.ids()) != 0 {
		t.Errorf("%s", r.raw)
	}
	if r := s.do("GET", intents+"/"+id, "", "expand[0]=latest_charge"); r.text("latest_charge", "id") != ch {
		t.Errorf("%s", r.raw)
	}
	if r := s.do("GET", intents+"/"+id, "", ""); r.text("latest_charge") != ch {
		t.Errorf("%s", r.raw)
	}
	if r := s.do("POST", "/v1/refunds", "", "payment_intent="+id+"&amount=500"); r.status != 200 || r.text("charge") != ch || r.text("payment_intent") != id {
		t.Errorf("%d %s", r.status, r.raw)
	}
	if n := s.stats("charges_succeeded"); n != "1" {
		t.Errorf("%s charges", n)
	}
}

func TestIntentDeclined(t *testing.T) {
	s := start(t, stripesim.Config{})
	id := s.intent(strings.Replace(visaCard, "tok_visa", "tok_chargeDeclinedLostCard", 1))
	first := s.do("POST", intents+"/"+id+"/confirm", "k", "")
	if first.status != 402 || first.err("decline_code") != "lost_card" || first.err("charge") == "" ||
		first.text("error", "payment_intent", "status") != "requires_payment_method" {
		t.Fatalf("%d %s", first.status, first.raw)
	}
	if again := s.do("POST", intents+"/"+id+"/confirm", "k", ""); again.raw != first.raw {
		t.Errorf("a replay differs: %s", again.raw)
	}
	got := s.do("GET", intents+"/"+id, "", "")
	if got.text("status") != "requires_payment_method" || got.text("last_payment_error", "code") != "card_declined" ||
		got.text("latest_charge") != first.err("charge") || got.body["payment_method"] != nil {
		t.Errorf("%s", got.raw)
	}
	if r := s.do("POST", intents+"/"+id+"/confirm", "k2", ""); r.err("code") != "payment_intent_unexpected_state" {
		t.Errorf("%s", r.raw)
	}
	r := s.do("POST", intents+"/"+id+"/confirm", "k3", "payment_method=pm_card_visa")
	if r.text("status") != "succeeded" || r.body["last_payment_error"] != nil || r.text("latest_charge") == first.err("charge") {
		t.Errorf("another card: %s", r.raw)
	}
}

func TestIntentRefusals(t *testing.T) {
	s := start(t, stripesim.Config{})
	for form, code := range map[string]string{
		"amount=2000&currency=usd&payment_method_data[type]=card&payment_method_data[card][token]=tok_nobody":               "resource_missing",
		"amount=2000&currency=usd&payment_method=pm_card_nobody":                                                            "resource_missing",
		"amount=2000&currency=usd&payment_method=tok_visa":                                                                  "resource_missing",
		"amount=2000&currency=usd&customer=cus_nobody":                                                                      "resource_missing",
		"amount=2000&currency=usd&customer=cus_42&payment_method=card_43":                                                   "resource_missing",
		"amount=2000&currency=usd&payment_method_data[type]=card&payment_method_data[card][number]=4242":                    "parameter_unknown",
		"amount=1&currency=usd&payment_method=pm_card_visa":                                                                 "amount_too_small",
		"currency=usd&payment_method=pm_card_visa":                                                                          "parameter_missing",
		"amount=2000&currency=usd&payment_method=pm_card_visa&source=tok_visa":                                              "parameter_unknown",
		"amount=2000&currency=usd&payment_method=pm_card_visa&return_url=https://x.example":                                 "",
		"amount=2000&currency=usd&payment_method_types[]=ideal&payment_method_types[]=card":                                 "",
		"amount=2000&currency=usd&capture_method=later":                                                                     "",
		"amount=2000&currency=usd&payment_method=pm_card_visa&payment_method_data[card][token]=tok_visa":                    "",
		"amount=2000&currency=usd&confirm=true":                                                                             "payment_intent_unexpected_state",
		"amount=2000&currency=usd&confirm=true&payment_method=pm_card_visa&return_url=nowhere":                              "url_invalid",
		"amount=2000&currency=usd&payment_method_data[type]=ideal":                                                          "",
		"amount=2000&currency=usd&payment_method=pm_card_visa&confirmation_method=manual":                                   "",
		"amount=2000&currency=usd&payment_method=pm_card_visa&metadata[" + strings.Repeat("k", 41) + "]=v&description=long": "",
	} {
		if r := s.do("POST", intents, "", form); r.status != 400 || r.err("code") != code {
			t.Errorf("%s: %d %s", form, r.status, r.raw)
		}
	}
	for _, call := range []string{"/pi_nobody/confirm", "/pi_nobody/capture", "/pi_nobody/cancel"} {
		if r := s.do("POST", intents+call, "", ""); r.status != 404 || r.err("code") != "resource_missing" {
			t.Errorf("%s: %d %s", call, r.status, r.raw)
		}
	}
	if r := s.do("GET", intents+"/pi_nobody", "", ""); r.status != 404 || r.err("code") != "resource_missing" {
		t.Errorf("%d %s", r.status, r.raw)
	}
	if r := s.as("Bearer sk_live_1", intents+"/"+s.intent(visaCard)); r.status != 404 {
		t.Errorf("the other mode: %d %s", r.status, r.raw)
	}
	if n := s.stats("charges"); n != "0" {
		t.Errorf("%s charges", n)
	}
}

func TestIntentOfCustomer(t *testing.T) {
	s := start(t, stripesim.Config{})
	r := s.do("POST", intents, "", "amount=2000&currency=usd&customer=cus_42")
	if r.text("status") != "requires_payment_method" {
		t.Fatalf("%s", r.raw)
	}
	if r := s.do("POST", intents+"/"+r.id()+"/confirm", "", ""); r.err("code") != "payment_intent_unexpected_state" {
		t.Errorf("a customer's default paid by itself: %s", r.raw)
	}
	source := s.do("GET", "/v1/customers/cus_42", "", "").text("default_source")
	id := s.intent("amount=2000&currency=usd&payment_method_types[]=card&customer=cus_42&payment_method=" + source)
	if r := s.do("POST", intents+"/"+id+"/confirm", "", ""); r.text("status") != "succeeded" || r.text("payment_method") != source {
		t.Errorf("%s", r.raw)
	}
	if r := s.do("POST", intents, "", "amount=2000&currency=usd&payment_method_types[]=card&customer=cus_42&confirm=true"); r.text("status") != "succeeded" {
		t.Errorf("created and confirmed in one: %s", r.raw)
	}
	if r := s.do("GET", intents, "", "customer=cus_42&limit=2"); len(r.ids()) != 2 || r.body["has_more"] != true || r.ids()[1] != id {
		t.Errorf("%s", r.raw)
	}
	if r := s.do("GET", intents, "", "created[lt]=1"); len(r.ids()) != 0 {
		t.Errorf("%s", r.raw)
	}
}

func TestIntentCaptureAndCancel(t *testing.T) {
	s := start(t, stripesim.Config{})
	id := s.intent(visaCard + "&capture_method=manual")
	r := s.do("POST", intents+"/"+id+"/confirm", "", "expand[]=latest_charge")
	ch := r.text("latest_charge", "id")
	if r.text("status") != "requires_capture" || r.body["amount_capturable"] != 2000.0 {
		t.Fatalf("%s", r.raw)
	}
	if r := s.do("POST", "/v1/charges/"+ch+"/capture", "", ""); r.status != 400 {
		t.Errorf("captured past the intent: %s", r.raw)
	}
	if r := s.do("POST", "/v1/refunds", "", "charge="+ch); r.status != 400 {
		t.Errorf("refunded past the intent: %s", r.raw)
	}
	if r := s.do("POST", intents+"/"+id+"/capture", "", "amount_to_capture=2001"); r.err("code") != "amount_too_large" {
		t.Errorf("%s", r.raw)
	}
	r = s.do("POST", intents+"/"+id+"/capture", "k", "amount_to_capture=1500&expand[]=latest_charge")
	charge, _ := r.body["latest_charge"].(map[string]any)
	if r.text("status") != "succeeded" || r.body["amount_received"] != 1500.0 || charge["amount_captured"] != 1500.0 || charge["amount_refunded"] != 500.0 {
		t.Errorf("%s", r.raw)
	}
	for call, status := range map[string]string{"capture": "succeeded", "cancel": "succeeded"} {
		if r := s.do("POST", intents+"/"+id+"/"+call, "", ""); r.err("code") != "payment_intent_unexpected_state" || r.text("error", "payment_intent", "status") != status {
			t.Errorf("%s: %s", call, r.raw)
		}
	}
	id = s.intent(visaCard + "&capture_method=manual")
	ch = s.do("POST", intents+"/"+id+"/confirm", "", "").text("latest_charge")
	r = s.do("POST", intents+"/"+id+"/cancel", "", "cancellation_reason=abandoned&expand[]=latest_charge")
	if charge, _ = r.body["latest_charge"].(map[string]any); r.text("status") != "canceled" || charge["refunded"] != true || charge["captured"] != false || charge["id"] != ch {
		t.Errorf("%s", r.raw)
	}
	for _, call := range []string{"confirm", "capture"} {
		if r := s.do("POST", intents+"/"+id+"/"+call, "", ""); r.err("code") != "payment_intent_unexpected_state" {
			t.Errorf("%s: %s", call, r.raw)
		}
	}
	if r := s.do("GET", "/v1/refunds", "", "payment_intent="+id); len(r.ids()) != 1 {
		t.Errorf("%s", r.raw)
	}
	if !strings.Contains(s.do("GET", "/v1/balance", "", "").raw, `"amount":1500,`) {
		t.Error("the balance isn't what was captured")
	}
}

func TestIntentAuthentication(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	in := newReceiver(t)
	s := start(t, stripesim.Config{LedgerPath: path, Webhooks: []stripesim.Endpoint{{URL: in.URL, Secret: "whsec_a"}}})
	ids := []string{}
	for range 4 {
		ids = append(ids, s.intent(withCheck))
	}
	ids[2] = s.intent(strings.Replace(withCheck, "threeDSecure2Required", "threeDSecureRequiredChargeDeclined", 1))
	for i, id := range ids[:3] {
		r := s.do("POST", intents+"/"+id+"/confirm", "", []string{"return_url=https://shop.example/back", "", ""}[i])
		if r.text("status") != "requires_action" || r.body["latest_charge"] != nil ||
			i == 0 && !strings.HasPrefix(r.text("next_action", "redirect_to_url", "url"), "http://") || i > 0 && r.text("next_action", "type") != "use_stripe_sdk" {
			t.Fatalf("%s", r.raw)
		}
	}
	if r := s.do("POST", intents+"/"+ids[3]+"/confirm", "", "off_session=true"); r.status != 402 || r.err("code") != "authentication_required" {
		t.Errorf("%s", r.raw)
	}
	if r := s.do("POST", "/v1/charges", "", strings.Replace(visa, "tok_visa", "tok_threeDSecure2Required", 1)); r.status != 402 {
		t.Errorf("a plain charge: %s", r.raw)
	}
	s.control("POST", "/_sim/authenticate", `{"intent":"`+ids[0]+`","outcome":"succeed"}`)
	s.control("POST", "/_sim/authenticate", `{"intent":"`+ids[1]+`","outcome":"fail"}`)
	s.control("POST", "/_sim/authenticate", `{"intent":"`+ids[2]+`","outcome":"succeed"}`)
	if err := s.Authenticate(ids[0], true); err == nil {
		t.Error("authenticated twice")
	}
	// created; requires_action; off session; the plain charge; and what each authentication led to
	in.got(t, 5+3+2+1+2+1+2)
	events := strings.Join(in.bodies, "\n")
	for kind, n := range map[string]int{
		"payment_intent.created": 5, "payment_intent.requires_action": 3, "payment_intent.succeeded": 1, "payment_intent.payment_failed": 3,
		"charge.succeeded": 1, "charge.failed": 3,
	} {
		if got := strings.Count(events, `"type":"`+kind+`"`); got != n {
			t.Errorf("%d %s, want %d", got, kind, n)
		}
	}
	check := func(s *sim) {
		t.Helper()
		for i, want := range []string{"succeeded", "requires_payment_method", "requires_payment_method", "requires_payment_method"} {
			r := s.do("GET", intents+"/"+ids[i], "", "")
			code := []string{"", "payment_intent_authentication_failure", "card_declined", "authentication_required"}[i]
			if r.text("status") != want || r.text("last_payment_error", "code") != code || (r.body["latest_charge"] == nil) != (i == 1) || r.body["next_action"] != nil {
				t.Errorf("%d: %s", i, r.raw)
			}
		}
	}
	check(s)
	books := s.control("GET", "/_sim/ledger", "")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = start(t, stripesim.Config{LedgerPath: path})
	check(s)
	if again := s.control("GET", "/_sim/ledger", ""); again != books {
		t.Errorf("the books differ after a restart:\n%s\n%s", books, again)
	}
}

// What was stored under keys is replayed byte for byte from the ledger, whatever became of intent
// and charge meanwhile.
func TestIntentReplaysSurvive(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	s := start(t, stripesim.Config{LedgerPath: path})
	calls := [][3]string{{intents, "create", strings.Replace(visaCard, "tok_visa", "tok_createDispute", 1) + "&expand[]=latest_charge"}}
	bodies := []string{s.do("POST", calls[0][0], calls[0][1], calls[0][2]).raw}
	id := s.do("GET", intents, "", "").ids()[0]
	for _, c := range [][3]string{
		{intents + "/" + id + "/confirm", "confirm", "expand[]=latest_charge"},
		{intents + "/" + id + "/confirm", "again", "expand[]=latest_charge"},
		{intents, "declined", "amount=2000&currency=usd&payment_method_types[]=card&confirm=true&payment_method=pm_card_chargeDeclined"},
	} {
		calls, bodies = append(calls, c), append(bodies, s.do("POST", c[0], c[1], c[2]).raw)
	}
	if !strings.Contains(bodies[1], `"disputed":false`) || !strings.Contains(s.do("GET", "/v1/charges", "", "payment_intent="+id).raw, `"disputed":true`) {
		t.Errorf("the dispute comes after the answer: %s", bodies[1])
	}
	for range 2 {
		for i, c := range calls {
			if r := s.do("POST", c[0], c[1], c[2]); r.raw != bodies[i] || r.header.Get("Idempotent-Replayed") != "true" {
				t.Errorf("%s differs:\n%s\n%s", c[1], bodies[i], r.raw)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = start(t, stripesim.Config{LedgerPath: path})
	}
}

func TestFaultsOnIntents(t *testing.T) {
	s := start(t, stripesim.Config{})
	id := s.intent(visaCard)
	s.control("POST", "/_sim/faults", `{"match":{"path":"`+intents+"/"+id+`/confirm"},"count":1,"fault":"drop_after"}`)
	if _, err := s.try("POST", intents+"/"+id+"/confirm", "k", ""); err == nil {
		t.Fatal("the answer came")
	}
	if r := s.do("GET", intents+"/"+id, "", ""); r.text("status") != "succeeded" {
		t.Errorf("%s", r.raw)
	}
	if r := s.do("POST", intents+"/"+id+"/confirm", "k", ""); r.text("status") != "succeeded" {
		t.Errorf("%s", r.raw)
	}
	s.control("POST", "/_sim/faults", `{"match":{"path":"`+intents+`","source":"tok_visa"},"count":1,"fault":"status_after"}`)
	for range 2 {
		if r := s.do("POST", intents, "k2", visaCard); r.status != 500 {
			t.Errorf("%d %s", r.status, r.raw)
		}
	}
	if n := s.stats("intents"); n != "2" {
		t.Errorf("%s intents", n)
	}
	if s.stats("charges_succeeded") != "1" || s.stats("confirm_requests") != "2" || s.stats("intent_requests") != "3" {
		t.Error(s.control("GET", "/_sim/stats", ""))
	}
}
