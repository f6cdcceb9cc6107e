package stripesim_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"paidonce/provider/stripesim"
)

// browse sends a request as Stripe.js does: with the key and the secret in the form.
func (s *sim) browse(method, path, form string) *reply {
	s.t.Helper()
	address, body := s.http.URL+path, io.Reader(nil)
	if method == http.MethodPost {
		body = strings.NewReader(form)
	} else {
		address += "?" + form
	}
	req, err := http.NewRequestWithContext(s.t.Context(), method, address, body)
	if err != nil {
		s.t.Fatal(err)
	}
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, _ := io.ReadAll(resp.Body)
	r := &reply{status: resp.StatusCode, header: resp.Header, raw: string(raw)}
	_ = json.Unmarshal(raw, &r.body)
	return r
}

func TestBrowserConfirms(t *testing.T) {
	s := start(t, stripesim.Config{})
	made := s.do("POST", intents, "", "amount=2000&currency=usd&customer=cus_42&metadata[order]=7&description=book")
	id, secret := made.id(), made.text("client_secret")
	path, own := intents+"/"+id, "key=pk_test_1&client_secret="+secret
	const back = "&return_url=https://shop.example/back"
	hidden := func(r *reply, in map[string]any) {
		t.Helper()
		for _, name := range []string{"metadata", "customer", "latest_charge", "amount_received", "payment_method_options"} {
			if _, shown := in[name]; shown {
				t.Errorf("%s is shown: %s", name, r.raw)
			}
		}
		if in["client_secret"] != secret || in["description"] != "book" || in["id"] != id {
			t.Errorf("%s", r.raw)
		}
	}
	r := s.browse("GET", path, own)
	hidden(r, r.body)
	for about, c := range map[string]struct {
		method, path, form string
		status             int
	}{
		"no key":               {"GET", path, "client_secret=" + secret, 401},
		"a key of no kind":     {"GET", path, "key=x&client_secret=" + secret, 401},
		"no secret":            {"GET", path, "key=pk_test_1", 400},
		"another secret":       {"GET", path, "key=pk_test_1&client_secret=x", 400},
		"live mode":            {"GET", path, "key=pk_live_1&client_secret=" + secret, 404},
		"no such intent":       {"GET", intents + "/pi_3nobody", own, 404},
		"another's confirm":    {"POST", path + "/confirm", "key=pk_test_1&client_secret=x&payment_method=pm_card_visa" + back, 400},
		"confirm, no secret":   {"POST", path + "/confirm", "key=pk_test_1&payment_method=pm_card_visa" + back, 400},
		"off session":          {"POST", path + "/confirm", own + "&off_session=true&payment_method=pm_card_visa" + back, 400},
		"no way back":          {"POST", path + "/confirm", own + "&payment_method=pm_card_visa", 400},
		"an update":            {"POST", path, own + "&amount=1000", 401},
		"a cancellation":       {"POST", path + "/cancel", own, 401},
		"the list":             {"GET", intents, "key=pk_test_1", 401},
		"a charge":             {"POST", "/v1/charges", "key=pk_test_1&" + visa, 401},
		"a charge, secret key": {"POST", "/v1/charges", "key=sk_test_1&" + visa, 401},
	} {
		if r := s.browse(c.method, c.path, c.form); r.status != c.status {
			t.Errorf("%s: %d %s", about, r.status, r.raw)
		}
	}
	if r := s.as("Bearer pk_test_1", intents); r.status != 401 || r.err("code") != "secret_key_required" {
		t.Errorf("%s", r.raw)
	}
	r = s.browse("POST", path+"/confirm", own+back+"&payment_method_data[type]=card&payment_method_data[card][token]=tok_chargeDeclined"+
		"&expected_payment_method_type=card&use_stripe_sdk=true")
	if r.status != 402 || r.err("code") != "card_declined" || r.text("error", "payment_intent", "status") != "requires_payment_method" {
		t.Fatalf("%s", r.raw)
	}
	hidden(r, r.body["error"].(map[string]any)["payment_intent"].(map[string]any))
	r = s.browse("POST", path+"/confirm", own+back+"&payment_method=pm_card_threeDSecure2Required")
	if r.text("status") != "requires_action" || !strings.HasPrefix(r.text("next_action", "redirect_to_url", "url"), s.http.URL+"/bank/"+id) {
		t.Fatalf("%s", r.raw)
	}
	hidden(r, r.body)
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	page, query, _ := strings.Cut(r.text("next_action", "redirect_to_url", "url"), "?")
	form, _ := url.ParseQuery(query)
	form.Set("outcome", "authorise")
	resp, err := client.PostForm(page, form)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if to := resp.Header.Get("Location"); !strings.HasPrefix(to, "https://shop.example/back?payment_intent="+id) || !strings.HasSuffix(to, "=succeeded") {
		t.Errorf("back to %s", to)
	}
	if r := s.as("Bearer pk_test_1", path+"?client_secret="+secret); r.text("status") != "succeeded" {
		t.Errorf("%s", r.raw)
	}
	if r := s.do("GET", path, "", ""); r.text("metadata", "order") != "7" || r.text("latest_charge") == "" {
		t.Errorf("%s", r.raw)
	}
	if s.stats("charges_succeeded") != "1" || s.stats("charges_failed") != "1" {
		t.Error(s.control("GET", "/_sim/stats", ""))
	}
}

func TestConfirmInBrowser(t *testing.T) {
	in := newReceiver(t)
	s := start(t, stripesim.Config{Webhooks: []stripesim.Endpoint{{URL: in.URL, Secret: "whsec_a"}}})
	id := s.do("POST", intents, "", "amount=2000&currency=usd").id()
	const back = "https://shop.example/back"
	for _, c := range []struct{ id, method, back, refused string }{
		{"pi_3nobody", "pm_card_visa", back, "no such"},
		{id, "pm_card_visa", "", "return_url"},
		{id, "", back, "missing a payment method"},
		{id, "tok_chargeDeclined", back, "card_declined: "},
		{id, "pm_card_threeDSecure2Required", back, ""},
	} {
		if err := s.ConfirmInBrowser(c.id, c.method, c.back); (err == nil) != (c.refused == "") || err != nil && !strings.Contains(err.Error(), c.refused) {
			t.Errorf("%v: %v", c, err)
		}
	}
	if r := s.do("GET", intents+"/"+id, "", ""); r.text("next_action", "redirect_to_url", "url") == "" ||
		!strings.HasPrefix(r.text("next_action", "redirect_to_url", "url"), s.http.URL) {
		t.Errorf("%s", r.raw)
	}
	if err := s.Authenticate(id, true); err != nil {
		t.Error(err)
	}
	if err := s.ConfirmInBrowser(id, "pm_card_visa", back); err == nil || !strings.Contains(err.Error(), "payment_intent_unexpected_state") {
		t.Errorf("confirmed twice: %v", err)
	}
	in.got(t, 1+2+1+2) // created, declined, requires_action, paid
}

// Whoever confirms, updates, authenticates and cancels at once: an intent makes at most one charge
// that succeeds, it is the latest, and over the intent's amount.
func TestIntentChargesAtMostOnce(t *testing.T) {
	s := start(t, stripesim.Config{})
	const back = "https://shop.example/back"
	var ids []string
	for i := range 24 {
		ids = append(ids, s.do("POST", intents, "", later+[]string{"", "&capture_method=manual"}[i%2]).id())
	}
	methods := []string{"pm_card_visa", "pm_card_chargeDeclined", "pm_card_threeDSecure2Required"}
	var wg sync.WaitGroup
	for i, id := range ids {
		for n, method := range methods {
			wg.Go(func() { _ = s.ConfirmInBrowser(id, method, back) })
			wg.Go(func() {
				_, _ = s.try("POST", intents+"/"+id+"/confirm", fmt.Sprint(i, n), "payment_method="+method+"&return_url="+back)
				_ = s.Authenticate(id, n != 1)
			})
		}
		wg.Go(func() { _, _ = s.try("POST", intents+"/"+id, "", "amount=2500") })
		wg.Go(func() { _ = s.Authenticate(id, true) })
		if i%6 == 0 {
			wg.Go(func() { _, _ = s.try("POST", intents+"/"+id+"/cancel", "", "") })
		}
	}
	wg.Wait()
	var books struct {
		Intents []struct {
			ID, Status string
			Amount     int64
			Latest     string `json:"latest_charge"`
		}
		Charges []struct {
			ID, Status string
			Amount     int64
			Refunded   int64  `json:"amount_refunded"`
			Intent     string `json:"payment_intent"`
		}
	}
	if err := json.Unmarshal([]byte(s.control("GET", "/_sim/ledger", "")), &books); err != nil {
		t.Fatal(err)
	}
	paid := 0
	for _, in := range books.Intents {
		good := 0
		for _, c := range books.Charges {
			if c.Intent != in.ID || c.Status != "succeeded" || c.Refunded > 0 {
				continue
			}
			if good++; c.ID != in.Latest || c.Amount != in.Amount {
				t.Errorf("%+v has %+v", in, c)
			}
		}
		want := map[string]int{"succeeded": 1, "requires_capture": 1}[in.Status]
		if paid += good; good != want {
			t.Errorf("%+v has %d charges", in, good)
		}
	}
	if paid == 0 {
		t.Error("nobody paid")
	}
}
