package api_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	online "paidonce/internal/shop"
	"paidonce/internal/world"
	"paidonce/provider/stripesim"
)

// flows are shops of both flows, with the path that gets a charge's parameters at the provider.
func flows(t *testing.T, run func(t *testing.T, s *shop, path string)) {
	t.Helper()
	t.Run("charges", func(t *testing.T) {
		t.Parallel()
		run(t, newShop(t), "/v1/charges")
	})
	t.Run("payment intents", func(t *testing.T) {
		t.Parallel()
		run(t, &shop{online.New(world.NewIntents(t))}, "/v1/payment_intents")
	})
}

// The provider's own limit of an amount is ours, for charges, captures and refunds, whatever the
// currency, and there is one code for what is beyond it.
func TestAmountsUpToTheCurrencysLimit(t *testing.T) {
	t.Parallel()
	flows(t, func(t *testing.T, s *shop, path string) {
		for currency, most := range map[string]int64{
			"usd": 99999999, "krw": 99999999, "inr": 999999999, "jpy": 9999999999, "huf": 9999999999, "cop": 9999999999,
			"lbp": 999999999999, "idr": 999999999999,
		} {
			body := `{"amount":%d,"currency":"` + currency + `","source":"tok_visa","capture":false}`
			wants(t, s.Charge("K", fmt.Sprintf(body, most+1)), 400, "amount_too_large", "amount")
			wants(t, s.Charge("K", strings.Replace(body, "%d", "9"+strings.Repeat("0", 30), 1)), 400, "amount_too_large", "amount")
			made := s.Charge("hold "+currency, fmt.Sprintf(body, most))
			created(t, made)
			if sent := s.Posted(path)[0]["amount"]; sent != fmt.Sprint(most) {
				t.Errorf("%s: the provider was sent %s", currency, sent)
			}
			capture := "/v1/charges/" + made.ID() + "/capture"
			wants(t, s.Post(capture, "K", fmt.Sprintf(`{"amount":%d}`, most+1)), 400, "amount_too_large", "amount")
			wants(t, s.Post(capture, "K", `{"amount":10000000000000}`), 400, "amount_too_large", "amount")
			if a := s.Post(capture, "capture "+currency, ""); a.Code != 200 {
				t.Fatalf("%s: captured %d %s", currency, a.Code, a.Body)
			}
			refund := `{"charge":"` + made.ID() + `","amount":%d}`
			wants(t, s.Post("/v1/refunds", "K", fmt.Sprintf(refund, most+1)), 400, "amount_too_large", "amount")
			wants(t, s.Post("/v1/refunds", "K", fmt.Sprintf(refund, 10000000000000)), 400, "amount_too_large", "amount")
			created(t, s.Post("/v1/refunds", "refund "+currency, fmt.Sprintf(refund, most)))
			if c := s.Show(made.ID()); !c.Refunded || c.AmountRefunded != most || c.Amount != most {
				t.Errorf("%s: got %+v", currency, c)
			}
		}
	})
}

// Of a client's metadata nothing is lost on the way to the provider, or it is refused.
func TestMetadataReachesTheProviderWhole(t *testing.T) {
	t.Parallel()
	flows(t, func(t *testing.T, s *shop, path string) {
		pairs := map[string]string{strings.Repeat("\U0001F600", 40): strings.Repeat("é", 500)}
		for i := range 44 {
			pairs[fmt.Sprint("key ", i)] = fmt.Sprint(i)
		}
		body := func(of map[string]string) string {
			b, err := json.Marshal(of)
			if err != nil {
				t.Fatal(err)
			}
			return `"metadata":` + string(b) + `}`
		}
		const charge = `{"amount":2000,"currency":"usd","source":"tok_visa",`
		made := s.Charge("K", charge+body(pairs))
		created(t, made)
		refund := s.Post("/v1/refunds", "R", `{"charge":"`+made.ID()+`","amount":1,`+body(pairs))
		created(t, refund)
		for at, shown := range map[string]string{path: "/v1/charges/" + made.ID(), "/v1/refunds": "/v1/refunds/" + refund.ID()} {
			var got struct{ Metadata map[string]string }
			s.Get(shown).JSON(&got)
			if !maps.Equal(got.Metadata, pairs) {
				t.Errorf("%s: shown are %d pairs", shown, len(got.Metadata))
			}
			sent := s.Posted(at)[0]
			for k, v := range pairs {
				if sent["metadata["+k+"]"] != v {
					t.Errorf("%s: the provider has %q for %q", at, sent["metadata["+k+"]"], k)
				}
			}
		}
		asked := len(s.Posted(path))
		pairs["one more"] = "x"
		for _, a := range []string{charge + body(pairs), charge + `"metadata":{"":"x"}}`, charge + `"metadata":{"a[b]":"x"}}`} {
			wants(t, s.Charge("K2", a), 400, "parameter_invalid", "metadata")
		}
		long := strings.Repeat("\U0001F600", 41)
		wants(t, s.Charge("K2", charge+`"metadata":{"`+long+`":"x"}}`), 400, "parameter_invalid", "metadata")
		wants(t, s.Charge("K2", charge+`"metadata":{"a":"`+strings.Repeat("é", 501)+`"}}`), 400, "parameter_invalid_string_too_long", "metadata[a]")
		wants(t, s.Post("/v1/refunds", "R2", `{"charge":"`+made.ID()+`","amount":1,`+body(pairs)), 400, "parameter_invalid", "metadata")
		if len(s.Posted(path)) != asked {
			t.Error("the provider was asked")
		}
	})
}

// What is unset is not sent, not shown, and no other request than one that leaves it out.
func TestUnsetParametersAreNotSent(t *testing.T) {
	t.Parallel()
	flows(t, func(t *testing.T, s *shop, path string) {
		unset := `{"amount":2000,"currency":"usd","source":"tok_visa","description":null,"receipt_email":"","statement_descriptor_suffix":null,"metadata":{"a":"b","empty":"","none":null,"n":12}}`
		made := s.Charge("K", unset)
		created(t, made)
		same(t, made, s.ChargeForm("K", "amount=2000&currency=usd&source=tok_visa&description=&receipt_email=&statement_descriptor_suffix=&metadata[a]=b&metadata[empty]=&metadata[none]=&metadata[n]=12"))
		same(t, made, s.Charge("K", `{"amount":2000,"currency":"usd","source":"tok_visa","metadata":{"a":"b","empty":"","none":null,"n":12}}`))
		var got struct {
			Description, ReceiptEmail *string
			Metadata                  map[string]string
		}
		if made.JSON(&got); got.Description != nil || !maps.Equal(got.Metadata, map[string]string{"a": "b", "n": "12"}) {
			t.Errorf("got %+v", got)
		}
		for name := range s.Posted(path)[0] {
			if slices.Contains([]string{"description", "receipt_email", "statement_descriptor_suffix", "metadata[empty]", "metadata[none]"}, name) {
				t.Errorf("%s was sent", name)
			}
		}
		wants(t, s.ChargeForm("K2", "amount=2000&currency=usd&customer=&source=tok_visa"), 400, "parameter_invalid_empty", "customer")
		wants(t, s.ChargeForm("K2", "amount=2000&currency=usd&customer=cus_42&source="), 400, "parameter_invalid_empty", "source")
		wants(t, s.ChargeForm("K2", "amount=2000&currency=usd&customer=cus_42&capture="), 400, "parameter_invalid", "capture")
		wants(t, s.ChargeForm("K2", "amount=&currency=usd&customer=cus_42"), 400, "parameter_invalid_integer", "amount")
	})
}

// A customer pays with the card that is named, or with the default.
func TestCustomersPayWithACertainCard(t *testing.T) {
	t.Parallel()
	flows(t, func(t *testing.T, s *shop, path string) {
		for i, card := range []string{"card_mastercard", "src_amex", "pm_visa"} {
			body := `{"amount":2000,"currency":"usd","customer":"cus_42","source":"` + card + `"}`
			made := s.Charge(card, body)
			created(t, made)
			same(t, made, s.Charge(card, body))
			sent := s.Posted(path)
			if got := sent[0]; len(sent) != i+1 || got["customer"] != "cus_42" || got["source"]+got["payment_method"] != card {
				t.Errorf("%s: the provider was sent %v", card, got)
			}
		}
		missing := s.Charge("missing", `{"amount":2000,"currency":"usd","customer":"cus_42","source":"card_1ABCdef"}`)
		if p := missing.Error(); missing.Code != 400 || p.Code != "resource_missing" || p.Charge == "" {
			t.Errorf("a card of somebody else: %d %s", missing.Code, missing.Body)
		}
		created(t, s.Charge("default", `{"amount":2000,"currency":"usd","customer":"cus_42"}`))
		wants(t, s.Charge("none", `{"amount":2000,"currency":"usd"}`), 400, "parameter_missing", "source")
		wants(t, s.Charge("number", `{"amount":2000,"currency":"usd","customer":"cus_42","source":"4242424242424242"}`), 400, "parameter_invalid", "source")
	})
}

// The provider's ids name charges and refunds as well as ours do, and only those of the account.
func TestTheProvidersIDsAreKnown(t *testing.T) {
	t.Parallel()
	flows(t, func(t *testing.T, s *shop, _ string) {
		made := s.Charge("K", `{"amount":2000,"currency":"usd","source":"tok_visa","capture":false}`)
		created(t, made)
		theirs := s.ProviderID()
		if got := s.Get("/v1/charges/" + theirs); got.Code != 200 || got.ID() != made.ID() {
			t.Errorf("got %d %s", got.Code, got.Body)
		}
		capture := s.Post("/v1/charges/"+theirs+"/capture", "C", "")
		if capture.Code != 200 || capture.ID() != made.ID() {
			t.Fatalf("captured: %d %s", capture.Code, capture.Body)
		}
		same(t, capture, s.Post("/v1/charges/"+theirs+"/capture", "C", ""))
		if n := s.World.Count("SELECT count(*) FROM idempotency_keys WHERE resource_id = $1", made.ID()); n != 2 {
			t.Errorf("%d keys stand for the charge, want 2", n)
		}
		refund := s.Post("/v1/refunds", "R", `{"charge":"`+theirs+`","amount":500}`)
		created(t, refund)
		var back struct {
			Charge   string
			Provider struct{ ID string }
		}
		if refund.JSON(&back); back.Charge != made.ID() {
			t.Errorf("refunded %s", back.Charge)
		}
		if got := s.Get("/v1/refunds/" + back.Provider.ID); got.Code != 200 || got.ID() != refund.ID() {
			t.Errorf("got %d %s", got.Code, got.Body)
		}
		if list := s.Get("/v1/refunds?charge=" + theirs); !strings.Contains(string(list.Body), refund.ID()) {
			t.Errorf("listed %s", list.Body)
		}
		wants(t, s.B.Get("/v1/charges/"+theirs), 404, "resource_missing", "id")
		wants(t, s.B.Get("/v1/refunds/"+back.Provider.ID), 404, "resource_missing", "id")
		wants(t, s.B.Post("/v1/charges/"+theirs+"/capture", "C", ""), 404, "resource_missing", "id")
		wants(t, s.B.Post("/v1/refunds", "R", `{"charge":"`+theirs+`"}`), 404, "resource_missing", "charge")
		if list := s.B.Get("/v1/refunds?charge=" + theirs); !strings.Contains(string(list.Body), `"data":[]`) {
			t.Errorf("another account is shown %s", list.Body)
		}
	})
}

// A charge's texts can be changed, once for a key, with one event for each change, and nothing is
// lost of what the provider was told.
func TestChargesAreUpdated(t *testing.T) {
	t.Parallel()
	flows(t, func(t *testing.T, s *shop, path string) {
		made := s.Charge("K", `{"amount":2000,"currency":"usd","source":"tok_visa","description":"a","receipt_email":"a@example.com","metadata":{"a":"1","b":"2"}}`)
		created(t, made)
		at := "/v1/charges/" + made.ID()
		type shown struct {
			Description  *string
			ReceiptEmail *string `json:"receipt_email"`
			Metadata     map[string]string
			Amount       int64
			Status       string
		}
		read := func(path string) (c shown) { s.Get(path).JSON(&c); return c }
		first := s.Post(at, "U", `{"description":"b","metadata":{"a":"","c":3}}`)
		if c := read(at); first.Code != 200 || *c.Description != "b" || !maps.Equal(c.Metadata, map[string]string{"b": "2", "c": "3"}) || *c.ReceiptEmail != "a@example.com" || c.Amount != 2000 || c.Status != "succeeded" {
			t.Fatalf("got %d %s, and the charge is %+v", first.Code, first.Body, c)
		}
		form := []string{"Content-Type", "application/x-www-form-urlencoded"}
		if a := s.Post(at, "", "description=&receipt_email=&metadata=", form...); a.Code != 200 {
			t.Fatalf("got %d %s", a.Code, a.Body)
		}
		if c := read(at); c.Description != nil || c.ReceiptEmail != nil || len(c.Metadata) != 0 {
			t.Errorf("everything was taken away, and it is %+v", c)
		}
		same(t, first, s.Post(at, "U", "description=b&metadata[a]=&metadata[c]=3", form...))
		wants(t, s.Post(at, "U", `{"description":"c"}`), 422, "idempotency_key_reused", "")
		if c := read(at); c.Description != nil {
			t.Errorf("a replay changed it to %+v", c)
		}
		for range 2 { // the second changes nothing, and is no event
			if a := s.Post("/v1/charges/"+s.ProviderID(), "", `{"metadata":{"d":"4"}}`); a.Code != 200 || a.ID() != made.ID() {
				t.Errorf("by the provider's id: %d %s", a.Code, a.Body)
			}
		}
		if a := s.Post(at, "", `{}`); a.Code != 200 {
			t.Errorf("nothing: %d %s", a.Code, a.Body)
		}
		var events struct {
			Data []struct {
				Sequence int
				Data     struct{ Object shown }
			}
		}
		s.Get("/v1/events?type=charge.updated").JSON(&events)
		if len(events.Data) != 3 || events.Data[0].Sequence != 2 || *events.Data[0].Data.Object.Description != "b" || events.Data[2].Data.Object.Metadata["d"] != "4" {
			t.Errorf("got the events %+v", events.Data)
		}
		full := map[string]string{}
		for i := range 45 {
			full[fmt.Sprint("k", i)] = "v"
		}
		b, _ := json.Marshal(map[string]any{"metadata": full})
		for body, param := range map[string]string{
			string(b): "metadata", `{"metadata":{"paidonce_x":"1"}}`: "metadata[paidonce_x]", `{"amount":1}`: "amount", `{"receipt_email":"x"}`: "receipt_email",
			`{"description":"` + strings.Repeat("x", 1001) + `"}`: "description",
		} {
			if a := s.Post(at, "new", body); a.Code != 400 || a.Error().Param != param {
				t.Errorf("%.40s: %d %s", body, a.Code, a.Body)
			}
		}
		wants(t, s.B.Post(at, "U", `{"description":"c"}`), 404, "resource_missing", "id")
		wants(t, s.Post("/v1/charges/ch_none", "", `{"description":"c"}`), 404, "resource_missing", "id")
		if n := len(s.Posted(path)); n != 1 {
			t.Errorf("the provider was asked %d times", n)
		}
	})
}

// What has no outcome yet is not changed: its event is still to come.
func TestAChargeWithoutAnOutcomeIsNotUpdated(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.World.ChargeFault(1, stripesim.Fault{Type: stripesim.DropAfter})
	body := `{"amount":2000,"currency":"usd","source":"tok_visa"}`
	at := "/v1/charges/" + s.Charge("K", body).Error().Charge
	wants(t, s.Post(at, "U", `{"description":"b"}`), 409, "charge_pending", "id")
	created(t, s.Charge("K", body))
	if a := s.Post(at, "U", `{"description":"b"}`); a.Code != 200 || a.Replayed() {
		t.Errorf("got %d %s", a.Code, a.Body)
	}
}
