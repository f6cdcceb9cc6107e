package stripesim_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"paidonce/provider/stripesim"
)

// Each fault: whether the client gets an answer, whether money moved, and what the same key gives
// afterwards.
func TestFaults(t *testing.T) {
	for name, c := range map[string]struct {
		fault    string
		status   int // 0: no whole answer
		moved    int64
		replayed bool // the key is spent
		then     int
	}{
		"drop before":         {`"drop_before"`, 0, 0, false, 200},
		"drop after":          {`"drop_after"`, 0, 1, true, 200},
		"drop after, reset":   {`{"type":"drop_after","wire":"reset"}`, 0, 1, true, 200},
		"drop after, early":   {`{"type":"drop_after","wire":"early"}`, 0, 1, true, 200},
		"drop after, eof":     {`{"type":"drop_after","wire":"eof"}`, 0, 1, true, 200},
		"status before":       {`{"type":"status_before","status":503}`, 503, 0, false, 200},
		"stored before":       {`{"type":"status_before","status":500,"store":true}`, 500, 0, true, 500},
		"stored after":        {`"status_after"`, 500, 1, true, 500},
		"declined for effect": {`{"type":"status_before","status":402}`, 402, 0, false, 200},
		"truncate":            {`"truncate"`, 0, 1, true, 200},
		"garbage":             {`"garbage"`, 200, 1, true, 200},
		"delay":               {`{"type":"delay","delay_ms":5,"delay_after_ms":5}`, 200, 1, true, 200},
		"own body":            {`{"type":"status_after","status":502,"body":"<html>"}`, 502, 1, true, 502},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, stripesim.Config{})
			s.control("POST", "/_sim/faults", `{"match":{"method":"POST","path":"/v1/charges"},"count":1,"fault":`+c.fault+`}`)
			s.do("GET", "/v1/balance", "", "") // doesn't match
			r, err := s.try("POST", "/v1/charges", "k", visa)
			if (c.status == 0) != (err != nil) || err == nil && r.status != c.status {
				t.Fatalf("got %+v, %v", r, err)
			}
			if n := s.Stats().Charges; n != c.moved {
				t.Errorf("%d charges, want %d", n, c.moved)
			}
			again := s.do("POST", "/v1/charges", "k", visa)
			if again.status != c.then || (again.header.Get("Idempotent-Replayed") == "true") != c.replayed {
				t.Errorf("then %d %v %s", again.status, again.header, again.raw)
			}
			if c.then == 500 && again.err("type") != "api_error" || c.then == 502 && again.raw != "<html>" {
				t.Errorf("then %s", again.raw)
			}
			if n := s.Stats().Charges; c.then == 200 && n != 1 {
				t.Errorf("%d charges in the end", n)
			}
		})
	}
}

func TestHang(t *testing.T) {
	for kind, moved := range map[string]int64{"hang": 0, "hang_after": 1} {
		s := start(t, stripesim.Config{})
		s.control("POST", "/_sim/faults", `{"count":1,"fault":"`+kind+`"}`)
		client := &http.Client{Timeout: 100 * time.Millisecond}
		req, _ := http.NewRequest("POST", s.http.URL+"/v1/charges", strings.NewReader(visa))
		req.Header = http.Header{"Authorization": {"Bearer sk_test_1"}, "Content-Type": {"application/x-www-form-urlencoded"}}
		if resp, err := client.Do(req); err == nil {
			_ = resp.Body.Close()
			t.Errorf("%s: answered", kind)
		}
		if n := s.Stats().Charges; n != moved {
			t.Errorf("%s: %d charges", kind, n)
		}
	}
}

func TestRules(t *testing.T) {
	s := start(t, stripesim.Config{Seed: 7})
	s.control("POST", "/_sim/faults", `{"match":{"source":"tok_amex"},"skip":1,"count":2,"fault":{"type":"status_before","status":503,"retry_after":"3"}}`)
	s.control("POST", "/_sim/faults", `{"match":{"key":"special"},"fault":{"type":"status_before","status":501}}`)
	s.control("POST", "/_sim/faults", `{"match":{"params":{"metadata[order]":"9"}},"fault":{"type":"status_before","status":504}}`)
	amex := "amount=2000&currency=usd&source=tok_amex"
	for i, want := range []int{200, 503, 503, 200} {
		if r := s.do("POST", "/v1/charges", "", amex); r.status != want || want == 503 && r.header.Get("Retry-After") != "3" {
			t.Errorf("%d: %d %v", i, r.status, r.header)
		}
	}
	for _, want := range []struct {
		key, form string
		status    int
	}{{"special", visa, 501}, {"other", visa, 200}, {"", visa + "&metadata[order]=9", 504}, {"", visa + "&metadata[order]=8", 200}} {
		if r := s.do("POST", "/v1/charges", want.key, want.form); r.status != want.status {
			t.Errorf("%+v: %d", want, r.status)
		}
	}
	var rules struct{ Data []stripesim.Rule }
	if err := json.Unmarshal([]byte(s.control("GET", "/_sim/faults", "")), &rules); err != nil || len(rules.Data) != 3 || rules.Data[0].Hits != 2 {
		t.Errorf("%+v %v", rules, err)
	}
	s.control("DELETE", "/_sim/faults", "")
	s.pay("special", visa)
	s.control("POST", "/_sim/faults", `{"probability":0.5,"fault":"drop_before"}`)
	lost := 0
	for range 60 {
		if _, err := s.try("POST", "/v1/charges", "", visa); err != nil {
			lost++
		}
	}
	if lost < 15 || lost > 45 {
		t.Errorf("%d of 60 were lost at a probability of one half", lost)
	}
	for _, bad := range []string{`{"fault":"explode"}`, `{"fault":{"type":"delay","dealy_ms":1}}`, `{"faults":"delay"}`, `{`, `{"fault":{"type":"drop_after","wire":"smoke"}}`, `{"fault":"delay","probability":2}`} {
		resp, err := http.Post(s.http.URL+"/_sim/faults", "application/json", strings.NewReader(bad))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != 400 {
			t.Errorf("%s: got %d, want 400", bad, resp.StatusCode)
		}
	}
}

func TestControlViews(t *testing.T) {
	s := start(t, stripesim.Config{})
	id := s.pay("k", visa+"&metadata[op]=1").id()
	s.pay("", visa)
	s.do("POST", "/v1/refunds", "r", "charge="+id+"&metadata[op]=1")
	var ledger struct {
		Charges []struct {
			ID     string
			Key    string `json:"idempotency_key"`
			Amount int64
			Meta   map[string]string `json:"metadata"`
		}
		Refunds []struct{ ID, Charge string }
	}
	for query, want := range map[string][2]int{"": {2, 1}, "?op=1": {1, 1}, "?key=k": {1, 0}, "?charge=" + id: {1, 1}, "?op=2": {0, 0}} {
		if err := json.Unmarshal([]byte(s.control("GET", "/_sim/ledger"+query, "")), &ledger); err != nil {
			t.Fatal(err)
		}
		if len(ledger.Charges) != want[0] || len(ledger.Refunds) != want[1] {
			t.Errorf("%s: %+v", query, ledger)
		}
	}
	var log struct {
		Data []struct {
			Method, Path string
			Key          string `json:"idempotency_key"`
			Status       int
			Params       map[string]string
		}
	}
	if err := json.Unmarshal([]byte(s.control("GET", "/_sim/requests?limit=2", "")), &log); err != nil {
		t.Fatal(err)
	}
	if len(log.Data) != 2 || log.Data[0].Path != "/v1/refunds" || log.Data[0].Key != "r" || log.Data[0].Status != 200 || log.Data[0].Params["charge"] != id {
		t.Errorf("%+v", log)
	}
	if r := s.do("GET", "/v1/nothing", "", ""); r.status != 404 || r.err("type") != "invalid_request_error" {
		t.Errorf("%d %s", r.status, r.raw)
	}
	if r := s.do("DELETE", "/v1/charges/"+id, "", ""); r.status != 404 {
		t.Errorf("%d", r.status)
	}
}
