package shop

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"time"

	"paidonce/api/apitest"
	"paidonce/internal/world"
)

// Webhooks is the path that the provider sends its events to.
const Webhooks = "/v1/provider/stripe/webhooks"

// Send sends a body of the provider with the signature given; header is as in
// [apitest.Client.Request].
func (s *Shop) Send(body, signature string, header ...string) apitest.Answer {
	s.World.T.Helper()
	req := s.Request("POST", Webhooks, body, append(header, "Stripe-Signature", signature)...)
	req.Header["Authorization"] = nil // the provider has no API key
	return s.Do(req)
}

// Deliver sends an event of the provider, signed.
func (s *Shop) Deliver(id, typ, object string) {
	s.World.T.Helper()
	body := world.Event(id, typ, object)
	if a := s.Send(
		string(body), world.Signed(body, world.Secret, time.Now()),
	); a.Code != http.StatusOK {
		s.World.T.Errorf("the event %s, %s, was answered %d %s, want 200", id, typ, a.Code, a.Body)
	}
}

// Process processes everything in the inbox, whatever its schedule says.
func (s *Shop) Process() {
	s.World.T.Helper()
	s.World.Process(s.Inbox)
}

// ShownCharge is a charge as the API shows it.
type ShownCharge struct {
	Status                string
	Captured, Refunded    bool
	Amount                int64
	AmountCaptured        int64 `json:"amount_captured"`
	AmountRefunded        int64 `json:"amount_refunded"`
	Currency, FailureCode string
}

// Show reads a charge.
func (s *Shop) Show(id string) (c ShownCharge) {
	s.World.T.Helper()
	a := s.Get("/v1/charges/" + id)
	if a.Code != http.StatusOK {
		s.World.T.Fatalf("the charge %s was answered %d %s, want 200", id, a.Code, a.Body)
	}
	a.JSON(&c)
	return c
}

// Ledger is the provider's own record, in the order in which it was written.
type Ledger struct {
	Charges []struct{ ID string }
	Refunds []struct {
		ID, Status string
		Amount     int64
	}
}

// Ledger reads the provider's own record.
func (s *Shop) Ledger() (l Ledger) {
	s.World.T.Helper()
	s.control("ledger", &l)
	return l
}

// ProviderID returns the provider's id of the latest charge there.
func (s *Shop) ProviderID() string {
	s.World.T.Helper()
	made := s.Ledger().Charges
	if len(made) == 0 {
		s.World.T.Fatal("the provider has no charge")
	}
	return made[len(made)-1].ID
}

// KeysSent returns the idempotency keys of the POSTs to a path among the provider's last 1,000
// requests.
func (s *Shop) KeysSent(path string) map[string]bool {
	s.World.T.Helper()
	keys := map[string]bool{}
	for _, r := range s.posts(path) {
		keys[r.Key] = true
	}
	return keys
}

// Posted returns the parameters of the POSTs to a path among the provider's last 1,000 requests,
// the latest first.
func (s *Shop) Posted(path string) (forms []map[string]string) {
	s.World.T.Helper()
	for _, r := range s.posts(path) {
		forms = append(forms, r.Params)
	}
	return forms
}

// post is a request that the provider got.
type post struct {
	Method, Path string
	Key          string `json:"idempotency_key"`
	Params       map[string]string
}

func (s *Shop) posts(path string) []post {
	s.World.T.Helper()
	var sent struct{ Data []post }
	s.control("requests?limit=1000", &sent)
	return slices.DeleteFunc(sent.Data, func(r post) bool {
		return r.Method != http.MethodPost || r.Path != path
	})
}

// control asks the simulator for one of its views.
func (s *Shop) control(view string, into any) {
	t := s.World.T
	t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet,
		s.World.SimURL+"/_sim/"+view, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err == nil {
		err = json.Unmarshal(body, into)
	}
	if err != nil {
		t.Fatalf("the simulator's %s: %v: %s", view, err, body)
	}
}
