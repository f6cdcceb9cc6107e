package stripe_test

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"paidonce/provider"
	"paidonce/provider/providertest"
	"paidonce/provider/stripe"
	"paidonce/provider/stripesim"
)

var breaks = map[providertest.Break]stripesim.Fault{
	providertest.LoseRequest:  {Type: stripesim.DropBefore},
	providertest.LoseAnswer:   {Type: stripesim.DropAfter},
	providertest.StoreFailure: {Type: stripesim.StatusAfter},
	providertest.Unavailable:  {Type: stripesim.StatusBefore, Status: 503},
	providertest.Slow:         {Type: stripesim.Delay, DelayMS: 500},
	providertest.CutAnswer:    {Type: stripesim.Truncate},
}

func newSim(t *testing.T) (*stripesim.Server, *stripe.Provider) {
	t.Helper()
	sim, err := stripesim.New(stripesim.Config{})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(sim)
	p, err := stripe.New(stripe.Config{APIKey: "sk_test_conformance", BaseURL: server.URL + "/", Timeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Close()
		if err := sim.Close(); err != nil {
			t.Error(err)
		}
		server.Close()
	})
	return sim, p
}

func TestConformance(t *testing.T) {
	providertest.Run(t, func(t *testing.T) providertest.World {
		sim, p := newSim(t)
		return providertest.World{
			Provider: p, Currency: "usd", Good: "tok_visa", Declined: "tok_chargeDeclined", Missing: "tok_nobody",
			NeedsAction: "tok_threeDSecure2Required", Customer: "cus_42",
			// an error says that the intent waits for nothing, which is the checks' to notice
			Authenticate: func(intent string, agrees bool) { _ = sim.Authenticate(intent, agrees) },
			ConfirmInBrowser: func(intent, source string) error {
				return sim.ConfirmInBrowser(intent, source, "https://shop.example/back")
			},
			Dispute: func(charge string) string {
				id, err := sim.OpenDispute(charge, stripesim.DisputeTerms{})
				must(t, err)
				return id
			},
			Inquire: func(charge string) string {
				id, err := sim.OpenDispute(charge, stripesim.DisputeTerms{Status: "warning_needs_response"})
				must(t, err)
				return id
			},
			WarnOfFraud: func(charge string) string {
				id, err := sim.WarnOfFraud(charge, "")
				must(t, err)
				return id
			},
			CloseDispute: func(dispute string, won bool) {
				must(t, sim.CloseDispute(dispute, map[bool]string{true: "won", false: "lost"}[won]))
			},
			Break: func(b providertest.Break) {
				rule := stripesim.Rule{Match: stripesim.Match{Method: "POST"}, Count: 1, Fault: breaks[b]}
				if _, err := sim.AddFault(rule); err != nil {
					t.Fatal(err)
				}
			},
			ForgetKeys: func() {
				if err := sim.ForgetKeys(""); err != nil {
					t.Fatal(err)
				}
			},
			Moved: func(operation string) int { return moved(t, sim, operation) },
		}
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func ledger(t *testing.T, sim *stripesim.Server, query string, into any) {
	t.Helper()
	w := httptest.NewRecorder()
	sim.ServeHTTP(w, httptest.NewRequest("GET", "/_sim/ledger?"+query, nil))
	if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
		t.Fatalf("%v: %s", err, w.Body)
	}
}

// moved asks the simulator's ledger, not the API under test.
func moved(t *testing.T, sim *stripesim.Server, operation string) int {
	t.Helper()
	var books struct {
		Charges []struct{ Status string }
	}
	ledger(t, sim, provider.MetadataOperation+"="+operation, &books)
	n := 0
	for _, c := range books.Charges {
		if c.Status == "succeeded" {
			n++
		}
	}
	return n
}

// post sends a charge to the simulator without a network.
func post(t testing.TB, sim *stripesim.Server, form string) []byte {
	t.Helper()
	r := httptest.NewRequest("POST", "/v1/charges", strings.NewReader(form))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Authorization", "Bearer sk_test_1")
	w := httptest.NewRecorder()
	sim.ServeHTTP(w, r)
	if w.Code != 200 {
		t.Fatalf("%d: got %s, want 200", w.Code, w.Body)
	}
	return w.Body.Bytes()
}
