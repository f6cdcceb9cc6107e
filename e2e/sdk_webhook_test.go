package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stripe/stripe-go/v76"
	"github.com/stripe/stripe-go/v76/webhook"

	"paidonce/db"
	"paidonce/outbox"
)

// delivery is a webhook as it arrived, and the secret that its receiver knows: what the SDKs' own
// tests are given to check.
type delivery struct {
	Secret  string            `json:"secret"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
}

// delivered has an instance charge, and returns what an endpoint of the account then gets.
func delivered(t *testing.T, w *world) delivery {
	t.Helper()
	var mu sync.Mutex
	var got []delivery
	sink := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		headers := map[string]string{}
		for name := range r.Header {
			headers[strings.ToLower(name)] = r.Header.Get(name)
		}
		mu.Lock()
		defer mu.Unlock()
		got = append(got, delivery{Headers: headers, Body: string(body)})
	}))
	t.Cleanup(sink.Close)
	account := w.newKey("shop").AccountID
	pool, err := db.Open(w.dbURL, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	endpoint, _, err := outbox.New(outbox.Config{Pool: pool}).PutEndpoint(t.Context(), account,
		"hook", outbox.EndpointParams{URL: sink.URL, EnabledEvents: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	if a := w.client(w.serve()).Charge("k", twenty); a.Code != http.StatusCreated {
		t.Fatalf("got %d %s, want 201", a.Code, a.Body)
	}
	w.must("relay", "--once")
	mu.Lock()
	defer mu.Unlock()
	if len(got) != 1 {
		t.Fatalf("%d deliveries", len(got))
	}
	validEvent(t, []byte(got[0].Body))
	got[0].Secret = endpoint.Secret
	return got[0]
}

// Stripe's libraries take our deliveries for Stripe's; our SDKs check the signature of Standard
// Webhooks.
func TestWebhooksAreVerified(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "PAIDONCE_WEBHOOK_ALLOW_PRIVATE=true")
	d := delivered(t, w)
	event, err := webhook.ConstructEvent([]byte(d.Body), d.Headers["stripe-signature"], d.Secret)
	var charge stripe.Charge
	if err != nil || event.Type != "charge.succeeded" ||
		json.Unmarshal(event.Data.Raw, &charge) != nil || charge.Amount != 2000 {
		t.Errorf("stripe-go: %+v %v", event, err)
	}
	if _, err := webhook.ConstructEvent([]byte(d.Body+" "), d.Headers["stripe-signature"],
		d.Secret); err == nil {
		t.Error("stripe-go takes a changed body")
	}
	text, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "delivery.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	idle := &proc{url: "http://127.0.0.1:1"} // nothing is asked of the API
	t.Run("Go SDK", func(t *testing.T) {
		if said := w.goTool(idle, goSDK, []string{"DELIVERY=" + file}, "test", "-count=1", "-v",
			"-run", "TestLiveWebhook", "."); !strings.Contains(said, "--- PASS: TestLiveWebhook") {
			t.Error(said)
		}
	})
	t.Run("Python SDK", func(t *testing.T) {
		needsPython(t)
		out, err := w.python(pythonSDK, idle, []string{"DELIVERY=" + file}, "-m",
			"tests.delivery").CombinedOutput()
		if err != nil || strings.TrimSpace(string(out)) != "charge.succeeded 2000" {
			t.Errorf("%v\n%s", err, out)
		}
	})
	for name, script := range map[string]string{
		"stripe-newest": "stripe.webhook.mjs", "stripe-2023": "stripe.webhook.mjs",
		"TypeScript SDK": "test/delivery.mjs",
	} {
		t.Run(name, func(t *testing.T) {
			var dir string
			if name == "TypeScript SDK" {
				dir = compiled(t)
			} else {
				dir = stripeNode(t)
			}
			out, err := w.node(dir, idle, []string{"DELIVERY=" + file, "STRIPE_MODULE=" + name},
				script).CombinedOutput()
			if err != nil || strings.TrimSpace(string(out)) != "charge.succeeded 2000" {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
