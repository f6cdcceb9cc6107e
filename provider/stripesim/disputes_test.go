package stripesim_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"paidonce/provider/stripesim"
)

func TestDisputes(t *testing.T) {
	in := newReceiver(t)
	s := start(t, stripesim.Config{Webhooks: []stripesim.Endpoint{{URL: in.URL, Secret: "whsec_a"}}})
	charges, ids := []string{}, []string{}
	for i, status := range []string{"won", "lost"} {
		ch := s.pay("", visa).id()
		s.control("POST", "/_sim/dispute", `{"charge":"`+ch+`"}`)
		list := s.do("GET", "/v1/disputes", "", "charge="+ch)
		if len(list.ids()) != 1 {
			t.Fatalf("%s", list.raw)
		}
		charges, ids = append(charges, ch), append(ids, list.ids()[0])
		if r := s.do("GET", "/v1/disputes/"+ids[i], "", ""); r.text("status") != "needs_response" || r.text("charge") != ch {
			t.Errorf("%s", r.raw)
		}
		if r := s.do("POST", "/v1/refunds", "", "charge="+ch); r.err("code") != "charge_disputed" {
			t.Errorf("%s", r.raw)
		}
		s.control("POST", "/_sim/close_dispute", `{"dispute":"`+ids[i]+`","status":"`+status+`"}`)
		if err := s.CloseDispute(ids[i], status); err == nil {
			t.Error("closed twice")
		}
		if r := s.do("GET", "/v1/disputes/"+ids[i], "", ""); r.text("status") != status {
			t.Errorf("%s", r.raw)
		}
	}
	if r := s.do("POST", "/v1/refunds", "", "charge="+charges[0]); r.status != 200 {
		t.Errorf("won: %s", r.raw)
	}
	if r := s.do("POST", "/v1/refunds", "", "charge="+charges[1]); r.err("code") != "charge_disputed" {
		t.Errorf("lost: %s", r.raw)
	}
	if r := s.do("GET", "/v1/disputes", "", "limit=1"); len(r.ids()) != 1 || r.body["has_more"] != true || r.ids()[0] != ids[1] {
		t.Errorf("%s", r.raw)
	}
	if r := s.do("GET", "/v1/disputes/dp_nobody", "", ""); r.status != 404 || r.err("code") != "resource_missing" {
		t.Errorf("%s", r.raw)
	}
	in.got(t, 2+2+2+2+2+1) // with the money that was taken, and given back
	if n := strings.Count(strings.Join(in.bodies, "\n"), `"type":"charge.dispute.closed"`); n != 2 {
		t.Errorf("%d were told closed", n)
	}
}

// A charge may have several disputes at once. Each decides for itself whether money can go back.
func TestSeveralDisputesOfACharge(t *testing.T) {
	s := start(t, stripesim.Config{})
	ch := s.pay("", visa).id()
	open := func(body string) string {
		t.Helper()
		var made struct{ ID string }
		if err := json.Unmarshal([]byte(s.control("POST", "/_sim/dispute", body)), &made); err != nil || made.ID == "" {
			t.Fatal(made, err)
		}
		return made.ID
	}
	inquiry := open(`{"charge":"` + ch + `","status":"warning_needs_response","amount":500,"reason":"general"}`)
	r := s.do("GET", "/v1/disputes/"+inquiry, "", "")
	if r.text("status") != "warning_needs_response" || r.body["is_charge_refundable"] != true || r.body["amount"] != 500.0 || r.text("reason") != "general" {
		t.Errorf("%s", r.raw)
	}
	if r := s.do("POST", "/v1/refunds", "", "amount=100&charge="+ch); r.status != 200 {
		t.Errorf("an inquiry: %s", r.raw)
	}
	chargeback := open(`{"charge":"` + ch + `"}`)
	if r := s.do("POST", "/v1/refunds", "", "amount=100&charge="+ch); r.err("code") != "charge_disputed" {
		t.Errorf("%s", r.raw)
	}
	s.control("POST", "/_sim/close_dispute", `{"dispute":"`+chargeback+`","status":"won"}`)
	s.control("POST", "/_sim/update_dispute", `{"dispute":"`+inquiry+`","status":"needs_response","is_charge_refundable":false,"submission_count":1}`)
	if r := s.do("POST", "/v1/refunds", "", "amount=100&charge="+ch); r.err("code") != "charge_disputed" {
		t.Errorf("escalated: %s", r.raw)
	}
	if n := len(s.do("GET", "/v1/disputes", "", "charge="+ch).ids()); n != 2 {
		t.Errorf("%d disputes", n)
	}
	events := s.do("GET", "/v1/events", "", "type=charge.dispute.*").raw
	for kind, want := range map[string]int{"created": 2, "updated": 1, "closed": 1, "funds_withdrawn": 2, "funds_reinstated": 1} {
		if n := strings.Count(events, `"type":"charge.dispute.`+kind+`"`); n != want {
			t.Errorf("%d events %s, want %d", n, kind, want)
		}
	}
}

func TestEarlyFraudWarnings(t *testing.T) {
	s := start(t, stripesim.Config{})
	ch := s.pay("", visa).id()
	id, err := s.WarnOfFraud(ch, "")
	if err != nil {
		t.Fatal(err)
	}
	r := s.do("GET", "/v1/radar/early_fraud_warnings/"+id, "", "")
	if r.text("charge") != ch || r.body["actionable"] != true || r.text("fraud_type") != "made_with_stolen_card" {
		t.Errorf("%s", r.raw)
	}
	if got := s.do("GET", "/v1/radar/early_fraud_warnings", "", "charge="+ch).ids(); len(got) != 1 || got[0] != id {
		t.Error(got)
	}
	if r := s.do("GET", "/v1/radar/early_fraud_warnings/issfr_x", "", ""); r.status != 404 {
		t.Errorf("%s", r.raw)
	}
	if r := s.do("GET", "/v1/events", "", "type=radar.early_fraud_warning.created"); len(r.ids()) != 1 {
		t.Errorf("%s", r.raw)
	}
}

// What a restricted key may not do is a 403 that names the right.
func TestRestrictedKeys(t *testing.T) {
	s := start(t, stripesim.Config{})
	s.control("POST", "/_sim/rights", `{"missing":["rak_dispute_read"]}`)
	ask := func(key, path string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Header.Set("Authorization", "Bearer "+key)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w
	}
	if w := ask("rk_test_1234567890ab", "/v1/disputes/dp_1"); w.Code != 403 || !strings.Contains(w.Body.String(), "rak_dispute_read") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	for _, c := range [][2]string{{"rk_test_1234567890ab", "/v1/charges"}, {"sk_test_1234567890ab", "/v1/disputes"}} {
		if w := ask(c[0], c[1]); w.Code != 200 {
			t.Errorf("%v: %d %s", c, w.Code, w.Body)
		}
	}
}
