package outbox_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"
	stripewebhook "github.com/stripe/stripe-go/v76/webhook"

	"paidonce/outbox"
	"paidonce/outbox/webhook"
)

// receiver is a merchant's server: it verifies and remembers what it is sent, and answers as it is
// told.
type receiver struct {
	*httptest.Server
	t testing.TB

	mu     sync.Mutex
	secret string
	// nil: 200; nth: how often this event came
	answer  func(w http.ResponseWriter, r *http.Request, nth int)
	got     []delivery
	bodies  map[string]string
	times   map[string]int
	now     map[string]int // being delivered at this moment
	doubled int            // events that came while they were being delivered
}

type delivery struct {
	id string
	at time.Time
}

func newReceiver(t testing.TB) *receiver {
	r := &receiver{t: t, bodies: map[string]string{}, times: map[string]int{}, now: map[string]int{}}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}
	id := req.Header.Get("webhook-id")
	r.mu.Lock()
	secret := r.secret
	r.mu.Unlock()
	if secret != "" {
		verify(r.t, secret, body, req.Header)
	}
	r.mu.Lock()
	if was, ok := r.bodies[id]; ok && was != string(body) {
		r.t.Errorf("%s came with other bytes than before", id)
	}
	r.bodies[id] = string(body)
	r.times[id]++
	if r.now[id]++; r.now[id] > 1 {
		r.doubled++
	}
	nth, answer := r.times[id], r.answer
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		r.now[id]--
		r.mu.Unlock()
	}()
	if answer != nil {
		answer(w, req, nth)
	}
	r.mu.Lock()
	r.got = append(r.got, delivery{id, time.Now()})
	r.mu.Unlock()
}

// verify verifies a delivery as consumers do, with both reference libraries.
func verify(t testing.TB, secret string, body []byte, h http.Header) {
	hook, err := standard.NewWebhook(secret)
	if err != nil {
		t.Error(err)
		return
	}
	if err := hook.Verify(body, h); err != nil {
		t.Errorf("Standard Webhooks: %v", err)
	}
	event, err := stripewebhook.ConstructEvent(body, h.Get("Stripe-Signature"), secret)
	if err != nil || event.ID != h.Get("webhook-id") {
		t.Errorf("Stripe's SDK: %v (%s)", err, event.ID)
	}
}

func (r *receiver) distinct() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.times)
}

func (r *receiver) seen() []delivery {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]delivery(nil), r.got...)
}

func (w *world) relay(change ...func(*outbox.RelayConfig)) *outbox.Relay {
	cfg := outbox.RelayConfig{Sender: webhook.New(webhook.Config{Guard: webhook.Guard{AllowPrivate: true}}), Log: quiet, Pause: time.Millisecond}
	for _, c := range change {
		c(&cfg)
	}
	return outbox.NewRelay(w.store, cfg)
}

// run lets relays work until the test ends or stop is called.
func (w *world) run(relays ...*outbox.Relay) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	for _, r := range relays {
		group.Go(func() { r.Work(ctx) })
	}
	stop = sync.OnceFunc(func() { cancel(); group.Wait() })
	w.T.Cleanup(stop)
	return stop
}

func eventually(t testing.TB, limit time.Duration, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", limit, what)
		}
	}
}
