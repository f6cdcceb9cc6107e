package api_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"paidonce/api/apitest"
	"paidonce/charges"
	"paidonce/provider/stripesim"
)

// expanded are the members of a charge or refund that can be shown in full.
type expanded struct {
	ID             string
	AmountRefunded int64 `json:"amount_refunded"`
	Customer       *string
	Charge         json.RawMessage
	Refunds        *struct {
		Object, URL string
		HasMore     bool `json:"has_more"`
		Data        []expanded
	}
}

func shownIn(t *testing.T, a apitest.Answer, code int) (o expanded) {
	t.Helper()
	if a.Code != code {
		t.Fatalf("got %d %s", a.Code, a.Body)
	}
	a.JSON(&o)
	return o
}

// showsRefunds fails unless exactly these refunds are shown, the newest first.
func showsRefunds(t *testing.T, o expanded, more bool, ids ...string) {
	t.Helper()
	r := o.Refunds
	if r == nil || r.Object != "list" || r.URL != "/v1/refunds?charge="+o.ID || r.HasMore != more || len(r.Data) != len(ids) || r.Data == nil {
		t.Fatalf("the refunds of %s are %+v; want %v, more: %t", o.ID, r, ids, more)
	}
	for i, id := range ids {
		if r.Data[i].ID != id || string(r.Data[i].Charge) != `"`+o.ID+`"` {
			t.Errorf("refund %d is %+v, want %s", i, r.Data[i], id)
		}
	}
}

// Refunds of a charge are shown where expand[] asks for them, in every answer with a charge and in
// no event; a replay shows what the first answer showed.
func TestExpandRefunds(t *testing.T) {
	t.Parallel()
	flows(t, func(t *testing.T, s *shop, _ string) {
		const members = `"amount":2000,"currency":"usd","customer":"cus_42","capture":false`
		body := `{` + members + `,"expand":["refunds","customer","balance_transaction"]}`
		first := s.Charge("K", body)
		made := shownIn(t, first, 201)
		if showsRefunds(t, made, false); made.Customer == nil || *made.Customer != "cus_42" {
			t.Errorf("the customer is %v", made.Customer)
		}
		form := "amount=2000&currency=usd&customer=cus_42&capture=false&expand[]=refunds&expand[1]=customer&expand[]=balance_transaction"
		same(t, first, s.Post("/v1/charges", "K", form, "Content-Type", asForm))
		wants(t, s.Charge("K", `{`+members+`}`), 422, "idempotency_key_reused", "")
		at := "/v1/charges/" + made.ID
		captured := s.Post(at+"/capture", "C", `{"expand":["refunds"]}`)
		showsRefunds(t, shownIn(t, captured, 200), false)
		if plain := shownIn(t, s.Get(at+"?expand[]=customer"), 200); plain.Refunds != nil {
			t.Errorf("nobody asked for %+v", plain.Refunds)
		}
		var ids []string
		for i := range 11 {
			a := s.Post("/v1/refunds", fmt.Sprint("refund ", i), `{"charge":"`+made.ID+`","amount":1}`)
			ids = append([]string{shownIn(t, a, 201).ID}, ids...)
			if i == 9 {
				showsRefunds(t, shownIn(t, s.Get(at+"?expand[0]=refunds"), 200), false, ids...)
			}
		}
		showsRefunds(t, shownIn(t, s.Get(at+"?expand[]=refunds"), 200), true, ids[:10]...)
		showsRefunds(t, shownIn(t, s.Post(at, "U", "description=x&expand[]=refunds", "Content-Type", asForm), 200), true, ids[:10]...)
		same(t, first, s.Charge("K", body))
		same(t, captured, s.Post(at+"/capture", "C", `{"expand":["refunds"]}`))

		other := s.Charge("K2", `{"amount":300,"currency":"usd","source":"tok_visa"}`).ID()
		refund := shownIn(t, s.Post("/v1/refunds", "R", `{"charge":"`+other+`"}`), 201).ID
		var page struct{ Data []expanded }
		s.Get("/v1/charges?expand[]=data.refunds&expand[]=data.customer").JSON(&page)
		if len(page.Data) != 2 {
			t.Fatalf("got %+v", page)
		}
		showsRefunds(t, page.Data[0], false, refund)
		showsRefunds(t, page.Data[1], true, ids[:10]...)
		if a := s.B.Get("/v1/charges?expand[]=data.refunds"); a.Code != 200 || strings.Contains(string(a.Body), "re_") {
			t.Errorf("another account got %d %s", a.Code, a.Body)
		}
		if a := s.Get("/v1/events?limit=100"); a.Code != 200 || strings.Contains(string(a.Body), `"refunds":`) {
			t.Errorf("events show refunds: %d %s", a.Code, a.Body)
		}
	})
}

// The charge of a refund is shown as the refund leaves it, in full, where expand[] asks for it.
func TestExpandCharge(t *testing.T) {
	t.Parallel()
	flows(t, func(t *testing.T, s *shop, _ string) {
		charge := s.Charge("K", `{"amount":2000,"currency":"usd","source":"tok_visa","description":"<a & b>"}`).ID()
		whole := func(o expanded, refunded int64) {
			t.Helper()
			var c expanded
			if err := json.Unmarshal(o.Charge, &c); err != nil || c.ID != charge || c.AmountRefunded != refunded || c.Refunds != nil {
				t.Errorf("got the charge %s, %v; want %d refunded", o.Charge, err, refunded)
			}
		}
		body := `{"charge":"` + charge + `","amount":500,"expand":["charge","payment_method"]}`
		first := s.Post("/v1/refunds", "R", body)
		refund := shownIn(t, first, 201)
		whole(refund, 500)
		if !strings.Contains(string(first.Body), "<a & b>") {
			t.Errorf("the texts are not what they are elsewhere: %s", first.Body)
		}
		second := shownIn(t, s.Post("/v1/refunds", "R2", "charge="+charge+"&amount=700&expand[0]=charge", "Content-Type", asForm), 201)
		whole(second, 1200)
		same(t, first, s.Post("/v1/refunds", "R", body))
		wants(t, s.Post("/v1/refunds", "R", `{"charge":"`+charge+`","amount":500}`), 422, "idempotency_key_reused", "")
		whole(shownIn(t, s.Get("/v1/refunds/"+refund.ID+"?expand[]=charge"), 200), 1200)
		if o := shownIn(t, s.Get("/v1/refunds/"+refund.ID), 200); string(o.Charge) != `"`+charge+`"` {
			t.Errorf("nobody asked for %s", o.Charge)
		}
		hold := s.Charge("hold", `{"amount":300,"currency":"usd","source":"tok_visa","capture":false}`).ID()
		let := shownIn(t, s.Post("/v1/refunds", "let go", `{"charge":"`+hold+`","expand":["charge"]}`), 201)
		var c, now map[string]any
		s.Get("/v1/charges/" + hold).JSON(&now)
		if err := json.Unmarshal(let.Charge, &c); err != nil || !reflect.DeepEqual(c, now) {
			t.Errorf("what was let go of is shown as %s, %v; it is %v", let.Charge, err, now)
		}
		var page struct{ Data []expanded }
		s.Get("/v1/refunds?expand[]=data.charge").JSON(&page)
		if len(page.Data) != 3 {
			t.Fatalf("got %+v", page)
		}
		whole(page.Data[1], 1200)
		whole(page.Data[2], 1200)
		if a := s.B.Get("/v1/refunds?expand[]=data.charge"); a.Code != 200 || strings.Contains(string(a.Body), charge) {
			t.Errorf("another account got %d %s", a.Code, a.Body)
		}
		if a := s.Get("/v1/events?type=refund.created"); !strings.Contains(string(a.Body), `"charge":"`+charge+`"`) {
			t.Errorf("the events of the refunds are %s", a.Body)
		}
	})
}

// The charge of a dispute is shown in full where expand[] asks for it.
func TestExpandChargeOfDispute(t *testing.T) {
	t.Parallel()
	flows(t, func(t *testing.T, s *shop, _ string) {
		charge := s.Charge("K", `{"amount":2000,"currency":"usd","source":"tok_visa"}`)
		var c charges.Charge
		charge.JSON(&c)
		id, err := s.World.Sim.OpenDispute(*c.Provider.ID, stripesim.DisputeTerms{})
		if err != nil {
			t.Fatal(err)
		}
		s.Deliver("evt_"+id, "charge.dispute.created", id)
		s.Process()
		var now any
		s.Get("/v1/charges/" + c.ID).JSON(&now)
		whole := func(o expanded) {
			t.Helper()
			var got any
			if err := json.Unmarshal(o.Charge, &got); err != nil || !reflect.DeepEqual(got, now) {
				t.Errorf("got the charge %s, %v; want %v", o.Charge, err, now)
			}
		}
		var page struct{ Data []expanded }
		s.Get("/v1/disputes?expand[]=data.charge&expand[]=data.payment_method").JSON(&page)
		if len(page.Data) != 1 {
			t.Fatalf("got %+v", page)
		}
		whole(page.Data[0])
		dispute := "/v1/disputes/" + page.Data[0].ID
		whole(shownIn(t, s.Get(dispute+"?expand[0]=charge"), 200))
		if o := shownIn(t, s.Get(dispute), 200); string(o.Charge) != `"`+c.ID+`"` {
			t.Errorf("nobody asked for %s", o.Charge)
		}
	})
}

// What cannot be expanded is refused by name, and spends nothing.
func TestExpandNothingElse(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	charge := s.Charge("K", `{"amount":2000,"currency":"usd","source":"tok_visa","capture":false}`).ID()
	refused := func(a apitest.Answer, entry int) {
		t.Helper()
		wants(t, a, 400, "parameter_invalid", fmt.Sprintf("expand[%d]", entry))
	}
	for _, name := range []string{"invoice", "charge", "latest_charge", "data.refunds", "refunds.data", "Refunds", "customer.default_source"} {
		refused(s.Charge("N", `{"amount":2000,"currency":"usd","source":"tok_visa","expand":["refunds","`+name+`"]}`), 1)
		refused(s.Post("/v1/charges/"+charge, "N", `{"expand":["`+name+`"]}`), 0)
		refused(s.Post("/v1/charges/"+charge+"/capture", "N", `{"expand":["`+name+`"]}`), 0)
		refused(s.Get("/v1/charges/"+charge+"?expand[]=refunds&expand[]="+name), 1)
	}
	for _, name := range []string{"refunds", "data.charge", "charge.refunds", "balance"} {
		refused(s.Post("/v1/refunds", "N", `{"charge":"`+charge+`","expand":["`+name+`"]}`), 0)
		refused(s.Get("/v1/refunds/re_x?expand[]="+name), 0)
		refused(s.Get("/v1/disputes/dp_x?expand[]="+name), 0)
	}
	for path, name := range map[string]string{"/v1/charges": "refunds", "/v1/refunds": "charge", "/v1/disputes": "charge"} {
		refused(s.Get(path+"?expand[]="+name), 0)
		refused(s.Get(path+"?expand[]=data.latest_charge"), 0)
		wants(t, s.Get(path+"?expand[]="+strings.Repeat("data.customer&expand[]=", 20)+"data.customer"), 400, "parameter_invalid", "expand")
	}
	created(t, s.Charge("N", `{"amount":2000,"currency":"usd","source":"tok_visa"}`))
}
