package api_test

import (
	"fmt"
	"strings"
	"testing"

	"paidonce/api/apitest"
	online "paidonce/internal/shop"
	"paidonce/internal/world"
)

const (
	sentTo     = `{"address":{"city":"London","line1":"12 Mill Lane"},"name":"Jenny","phone":"1"}`
	shownAs    = `"shipping":{"address":{"city":"London","country":null,"line1":"12 Mill Lane","line2":null,"postal_code":null,"state":null},"carrier":null,"name":"Jenny","phone":"1","tracking_number":null}`
	bookCharge = `{"amount":2000,"currency":"usd","source":"tok_visa"`
)

// Where goods are sent is sent to the provider, shown, told in events, and can be changed.
func TestShipping(t *testing.T) {
	t.Parallel()
	flows(t, func(t *testing.T, s *shop, path string) {
		made := s.Charge("K", bookCharge+`,"shipping":`+sentTo+`}`)
		created(t, made)
		same(t, made, s.ChargeForm("K", "amount=2000&currency=usd&source=tok_visa&shipping[name]=Jenny&shipping[address][line1]=12+Mill+Lane"+
			"&shipping[address][city]=London&shipping[phone]=1&shipping[carrier]=&shipping[address][state]="))
		wants(t, s.Charge("K", bookCharge+`,"shipping":{"address":{"city":"Leeds"},"name":"Jenny"}}`), 422, "idempotency_key_reused", "")
		sent := s.Posted(path)[0]
		for name, text := range map[string]string{"address][city": "London", "address][line1": "12 Mill Lane", "name": "Jenny", "phone": "1", "carrier": "", "address][state": ""} {
			if got, there := sent["shipping["+name+"]"]; got != text || there != (text != "") {
				t.Errorf("%s: the provider has %q", name, got)
			}
		}
		at := "/v1/charges/" + made.ID()
		for _, where := range []string{at, "/v1/charges", "/v1/events"} {
			if a := s.Get(where); !strings.Contains(string(a.Body), shownAs) {
				t.Errorf("%s shows %s", where, a.Body)
			}
		}
		if !strings.Contains(string(made.Body), shownAs) {
			t.Errorf("answered %s", made.Body)
		}
		for range 2 { // the second changes nothing
			if a := s.Post(at, "", `{"shipping":{"address":{"country":"GB"},"name":"Max","tracking_number":"T"}}`); a.Code != 200 ||
				!strings.Contains(string(a.Body), `"country":"GB"`) || strings.Contains(string(a.Body), "London") {
				t.Errorf("changed: %d %s", a.Code, a.Body)
			}
		}
		if a := s.Post(at, "", `{"description":"d"}`); !strings.Contains(string(a.Body), `"tracking_number":"T"`) {
			t.Errorf("another change took it away: %s", a.Body)
		}
		if a := s.Post(at, "", "shipping=", "Content-Type", "application/x-www-form-urlencoded"); a.Code != 200 || strings.Contains(string(a.Body), `"shipping"`) {
			t.Errorf("taken away: %d %s", a.Code, a.Body)
		}
		var events struct{ Data []struct{ ID string } }
		if s.Get("/v1/events?type=charge.updated").JSON(&events); len(events.Data) != 3 {
			t.Errorf("%d events tell of three changes", len(events.Data))
		}
		without := s.Charge("without", bookCharge+`}`)
		if created(t, without); strings.Contains(string(without.Body), `"shipping"`) || strings.Contains(string(without.Body), `"statement_descriptor"`) {
			t.Errorf("nothing is sent, and it shows %s", without.Body)
		}
		same(t, without, s.Charge("without", bookCharge+`,"shipping":null,"statement_descriptor":""}`))
		asked := len(s.Posted(path))
		long := strings.Repeat("é", 501)
		for shipping, want := range map[string][2]string{
			`{}`:                                                         {"parameter_missing", "shipping[address]"},
			`{"name":"a"}`:                                               {"parameter_missing", "shipping[address]"},
			`{"name":"a","address":{}}`:                                  {"parameter_missing", "shipping[address]"},
			`{"name":"a","address":{"city":null}}`:                       {"parameter_missing", "shipping[address]"},
			`{"address":{"city":"a"}}`:                                   {"parameter_missing", "shipping[name]"},
			`{"name":"a","address":{"town":"a"}}`:                        {"parameter_unknown", "shipping[address][town]"},
			`{"name":"` + long + `","address":{"city":"a"}}`:             {"parameter_invalid_string_too_long", "shipping[name]"},
			`{"name":"a","address":{"postal_code":"` + long + `"}}`:      {"parameter_invalid_string_too_long", "shipping[address][postal_code]"},
			`{"name":"a","address":{"city":"a"},"phone":"` + long + `"}`: {"parameter_invalid_string_too_long", "shipping[phone]"},
		} {
			wants(t, s.Charge("K2", bookCharge+`,"shipping":`+shipping+`}`), 400, want[0], want[1])
			wants(t, s.Post(at, "", `{"shipping":`+shipping+`}`), 400, want[0], want[1])
		}
		if len(s.Posted(path)) != asked {
			t.Error("the provider was asked")
		}
		full := strings.Repeat("é", 500)
		created(t, s.Charge("full", bookCharge+`,"shipping":{"name":"`+full+`","address":{"city":"`+full+`"}}}`))
	})
}

// Stripe takes a whole descriptor for charges, and none for payment intents with cards.
func TestStatementDescriptors(t *testing.T) {
	t.Parallel()
	flows(t, func(t *testing.T, s *shop, path string) {
		for _, bad := range []string{"<aaaa>", `aaaa"`, "aaaa*b", "é1aaaa", strings.Repeat("a", 23)} {
			for _, name := range []string{"statement_descriptor", "statement_descriptor_suffix"} {
				wants(t, s.Charge("S", fmt.Sprintf(`%s,%q:%q}`, bookCharge, name, bad)), 400, "parameter_invalid", name)
			}
		}
		for _, bad := range []string{"BOOK", "12345"} { // too short, and without a letter
			wants(t, s.Charge("S", fmt.Sprintf(`%s,"statement_descriptor":%q}`, bookCharge, bad)), 400, "parameter_invalid", "statement_descriptor")
		}
		if len(s.Posted(path)) != 0 {
			t.Error("the provider was asked")
		}
		// not refused here: keys may have the provider's refusal as their answer
		wants(t, s.Charge("no letter", bookCharge+`,"statement_descriptor_suffix":"6735"}`), 400, "", "statement_descriptor_suffix")
		created(t, s.Charge("one letter", bookCharge+`,"statement_descriptor_suffix":"6735a"}`))
		a := s.Charge("D", bookCharge+`,"statement_descriptor":"BOOKS","statement_descriptor_suffix":"6735A"}`)
		if path != "/v1/charges" {
			wants(t, a, 400, "parameter_invalid", "statement_descriptor")
			if !strings.Contains(string(a.Body), "statement_descriptor_suffix") {
				t.Errorf("it does not say what to use: %s", a.Body)
			}
			return
		}
		created(t, a)
		if sent := s.Posted(path)[0]; sent["statement_descriptor"] != "BOOKS" || sent["statement_descriptor_suffix"] != "6735A" {
			t.Errorf("the provider was sent %v", sent)
		}
		for _, where := range []string{"/v1/charges/" + a.ID(), "/v1/events"} {
			if shown := s.Get(where); !strings.Contains(string(shown.Body), `"statement_descriptor":"BOOKS"`) {
				t.Errorf("%s shows %s", where, shown.Body)
			}
		}
	})
}

// A server that goes over to payment intents answers a key from before as before.
func TestStatementDescriptorsOfAFlowThatEnds(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	s := &shop{online.New(w)}
	const body = bookCharge + `,"statement_descriptor":"BOOKS"}`
	first := s.Charge("k", body)
	created(t, first)
	w.Intents = true
	c := apitest.NewClient(t, s.Serve(whsec).URL, w.Key.Secret)
	same(t, first, c.Charge("k", body))
	wants(t, c.Charge("new", body), 400, "parameter_invalid", "statement_descriptor")
}
