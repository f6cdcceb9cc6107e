package stripesim_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"paidonce/provider/stripesim"
)

type receiver struct {
	*httptest.Server
	mu       sync.Mutex
	refuse   int // answer 500 this many times
	delay    time.Duration
	bodies   []string
	headers  []string
	attempts int
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		time.Sleep(r.delay)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.attempts++
		if r.refuse > 0 {
			r.refuse--
			w.WriteHeader(500)
			return
		}
		r.bodies = append(r.bodies, string(body))
		r.headers = append(r.headers, req.Header.Get("Stripe-Signature"))
	}))
	t.Cleanup(r.Close)
	return r
}

// got waits until n events came and gives their types.
func (r *receiver) got(t *testing.T, n int) (types []string) {
	t.Helper()
	for range 300 {
		r.mu.Lock()
		if len(r.bodies) >= n {
			r.mu.Unlock()
			break
		}
		r.mu.Unlock()
		time.Sleep(10 * time.Millisecond)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, b := range r.bodies {
		var e struct{ Type string }
		if err := json.Unmarshal([]byte(b), &e); err != nil {
			t.Fatal(err)
		}
		types = append(types, e.Type)
	}
	if len(types) != n {
		t.Fatalf("got %v, want %d events", types, n)
	}
	return types
}

func TestWebhooks(t *testing.T) {
	in := newReceiver(t)
	s := start(t, stripesim.Config{Webhooks: []stripesim.Endpoint{{URL: in.URL, Secret: "whsec_a,whsec_b"}}})
	in.refuse = 1 // the first attempt fails and is repeated
	id := s.pay("k", visa).id()
	in.got(t, 1)
	if strings.Count(in.headers[0], ",v1=") != 2 {
		t.Errorf("signature %q", in.headers[0])
	}
	s.pay("k", visa) // a replay is no event
	s.do("POST", "/v1/charges", "", "amount=2000&currency=usd&source=tok_chargeDeclined")
	in.got(t, 2)
	s.do("POST", "/v1/refunds", "", "charge="+id)
	in.got(t, 4)
	s.pay("", "amount=2000&currency=usd&source=tok_createDispute")
	types := strings.Join(in.got(t, 7), " ")
	for _, want := range []string{"charge.succeeded", "charge.failed", "charge.refunded", "refund.created", "charge.dispute.created"} {
		if !strings.Contains(types, want) {
			t.Errorf("no %s in %s", want, types)
		}
	}
	events := s.do("GET", "/v1/events", "", "type=charge.*")
	if n := len(events.ids()); n != 6 {
		t.Errorf("%d events listed", n)
	}
	s.control("POST", "/_sim/webhooks/send", `{"event":"`+events.ids()[0]+`"}`)
	s.control("POST", "/_sim/webhooks/send", `{"type":"charge.captured","object":"`+id+`"}`)
	in.got(t, 9)
}

func TestWebhookModes(t *testing.T) {
	in := newReceiver(t)
	s := start(t, stripesim.Config{})
	s.pay("", visa) // nobody listens
	s.control("POST", "/_sim/webhooks", `{"endpoints":[{"url":"`+in.URL+`","secret":"whsec_a"}],"mode":{"before_answer":true,"duplicates":2}}`)
	in.delay = 20 * time.Millisecond
	s.pay("", visa)
	in.mu.Lock()
	if len(in.bodies) != 3 || in.bodies[0] != in.bodies[2] {
		t.Errorf("%d events before the answer, want 3 alike", len(in.bodies))
	}
	in.mu.Unlock()
	s.control("POST", "/_sim/webhooks", `{"mode":{"off":true}}`)
	s.pay("", visa)
	s.control("POST", "/_sim/webhooks", `{"mode":{"delay_ms":50}}`)
	s.pay("", visa)
	in.got(t, 4)
	// A receiver that is slow or away holds up no answer.
	in.delay = time.Second
	s.control("POST", "/_sim/webhooks", `{"mode":{}}`)
	begin := time.Now()
	for range 30 {
		s.pay("", visa)
	}
	if took := time.Since(begin); took > 900*time.Millisecond {
		t.Errorf("answers waited for webhooks: %s", took)
	}
}
