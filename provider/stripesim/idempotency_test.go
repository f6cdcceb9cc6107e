package stripesim_test

import (
	"sync"
	"testing"
	"time"

	"paidonce/provider/stripesim"
)

func TestReplay(t *testing.T) {
	s := start(t, stripesim.Config{})
	first := s.pay("k", visa)
	if first.header.Get("Idempotent-Replayed") != "" || first.header.Get("Idempotency-Key") != "k" ||
		first.header.Get("Original-Request") != first.header.Get("Request-Id") {
		t.Errorf("headers of the first answer: %v", first.header)
	}
	// the charge changes, the stored answer doesn't
	s.do("POST", "/v1/refunds", "", "charge="+first.id())
	second := s.pay("k", "source=tok_visa&currency=usd&amount=2000")
	if second.raw != first.raw {
		t.Errorf("replay differs:\n%s\n%s", first.raw, second.raw)
	}
	if second.header.Get("Idempotent-Replayed") != "true" || second.header.Get("Original-Request") != first.header.Get("Request-Id") ||
		second.header.Get("Request-Id") == first.header.Get("Request-Id") {
		t.Errorf("headers of the replay: %v", second.header)
	}
	declined := "amount=2000&currency=usd&source=tok_chargeDeclined"
	a, b := s.do("POST", "/v1/charges", "d", declined), s.do("POST", "/v1/charges", "d", declined)
	if a.status != 402 || a.raw != b.raw || b.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("decline: %d %s, then %d %s", a.status, a.raw, b.status, b.raw)
	}
	// found out while executing, so it is remembered
	gone := "amount=2000&currency=usd&source=tok_nobody"
	s.do("POST", "/v1/charges", "m", gone)
	if r := s.do("POST", "/v1/charges", "m", gone); r.status != 400 || r.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("missing token: %d %v", r.status, r.header)
	}
	if st := s.Stats(); st.Charges != 2 || st.Succeeded != 1 || st.Replayed != 3 || st.ChargeRequests != 6 || st.DistinctKeys != 3 {
		t.Errorf("%+v", st)
	}
}

func TestOtherRequestUnderTheKey(t *testing.T) {
	s := start(t, stripesim.Config{})
	s.pay("k", visa)
	for _, c := range []struct{ path, form string }{
		{"/v1/charges", "amount=2001&currency=usd&source=tok_visa"},
		{"/v1/charges", visa + "&metadata[a]=1"},
		{"/v1/refunds", "charge=ch_1"},
	} {
		r := s.do("POST", c.path, "k", c.form)
		if r.status != 400 || r.err("type") != "idempotency_error" || r.header.Get("Idempotent-Replayed") != "" {
			t.Errorf("%s %s: %d %s", c.path, c.form, r.status, r.raw)
		}
	}
	if n := s.Stats().Charges; n != 1 {
		t.Errorf("%d charges", n)
	}
}

// What is refused before it runs leaves the key free.
func TestNotStored(t *testing.T) {
	s := start(t, stripesim.Config{})
	for _, form := range []string{"", "amount=2000", visa + "&colour=red", "amount=x&currency=usd&source=tok_visa", "amount=49&currency=usd&source=tok_visa"} {
		if r := s.do("POST", "/v1/charges", "k", form); r.status != 400 || r.err("type") != "invalid_request_error" {
			t.Errorf("%q: %d %s", form, r.status, r.raw)
		}
	}
	for _, status := range []int{401, 429, 500} {
		s.fault(stripesim.Rule{Count: 1, Fault: stripesim.Fault{Type: stripesim.StatusBefore, Status: status}})
		if r := s.do("POST", "/v1/charges", "k", visa); r.status != status {
			t.Errorf("%d %s", r.status, r.raw)
		}
	}
	if r := s.pay("k", visa); r.header.Get("Idempotent-Replayed") != "" {
		t.Error("the key was spent")
	}
}

func (s *sim) fault(r stripesim.Rule) {
	s.t.Helper()
	if _, err := s.AddFault(r); err != nil {
		s.t.Fatal(err)
	}
}

func TestInFlight(t *testing.T) {
	s := start(t, stripesim.Config{})
	s.fault(stripesim.Rule{Count: 1, Fault: stripesim.Fault{Type: stripesim.Delay, DelayMS: 400}})
	var wg sync.WaitGroup
	wg.Go(func() { s.pay("k", visa) })
	time.Sleep(100 * time.Millisecond)
	if r := s.do("POST", "/v1/charges", "k", visa); r.status != 409 || r.err("code") != "idempotency_key_in_use" || r.err("type") != "invalid_request_error" {
		t.Errorf("%d %s", r.status, r.raw)
	}
	if r := s.do("POST", "/v1/charges", "k", visa+"&description=x"); r.err("type") != "idempotency_error" {
		t.Errorf("other parameters: %d %s", r.status, r.raw)
	}
	if err := s.ForgetKeys(""); err != nil { // a running key can't be forgotten
		t.Fatal(err)
	}
	wg.Wait()
	if r := s.pay("k", visa); r.header.Get("Idempotent-Replayed") != "true" {
		t.Error("not replayed")
	}
	if n := s.Stats().Charges; n != 1 {
		t.Errorf("%d charges", n)
	}
}

func TestConcurrentRequestsMakeOneCharge(t *testing.T) {
	s := start(t, stripesim.Config{LedgerPath: t.TempDir() + "/ledger"})
	var wg sync.WaitGroup
	for range 40 {
		wg.Go(func() {
			if r := s.do("POST", "/v1/charges", "k", visa); r.status != 200 && r.status != 409 {
				t.Errorf("%d %s", r.status, r.raw)
			}
		})
	}
	wg.Wait()
	if n := s.Stats().Charges; n != 1 {
		t.Errorf("%d charges", n)
	}
}

func TestForgottenKeys(t *testing.T) {
	c := &clock{time.Unix(1800000000, 0)}
	s := start(t, stripesim.Config{Now: c.now})
	first := s.pay("k", visa)
	s.SetClock(24*time.Hour - time.Second)
	if r := s.pay("k", visa); r.id() != first.id() {
		t.Error("forgotten a second too early")
	}
	s.SetClock(24 * time.Hour)
	second := s.pay("k", visa)
	if second.id() == first.id() || second.body["created"].(float64) != 1800000000+86400 {
		t.Errorf("after a day: %s", second.raw)
	}
	s.control("POST", "/_sim/forget_keys", `{"key":"other"}`)
	if r := s.pay("k", visa); r.id() != second.id() {
		t.Error("another key was forgotten")
	}
	s.control("POST", "/_sim/forget_keys", `{"key":"k"}`)
	if r := s.pay("k", visa); r.id() == second.id() {
		t.Error("the key was not forgotten")
	}
	s.control("POST", "/_sim/key_window", `{"seconds":0.001}`)
	s.control("POST", "/_sim/clock", `{"offset_seconds":90000}`)
	s.pay("k", visa)
	if n := s.Stats().Charges; n != 4 {
		t.Errorf("%d charges", n)
	}
}

func TestAuthentication(t *testing.T) {
	s := start(t, stripesim.Config{})
	for key, want := range map[string]int{"": 401, "Bearer": 401, "Bearer pk_test_1": 401, "Bearer nonsense-12345": 401, "Bearer sk_test_1": 200, "Basic c2tfdGVzdF8xOg==": 200} {
		r := s.as(key, "/v1/charges")
		if r.status != want || r.header.Get("Request-Id") == "" || want == 401 && r.err("type") != "invalid_request_error" {
			t.Errorf("%q: %d %s", key, r.status, r.raw)
		}
	}
	s.pay("", visa)
	if live := s.as("Bearer sk_live_1", "/v1/charges"); len(live.ids()) != 0 {
		t.Errorf("live mode sees test charges: %s", live.raw)
	}
}
