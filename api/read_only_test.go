package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"paidonce/api/apitest"
	online "paidonce/internal/shop"
	"paidonce/internal/world"
)

// state changes when anything changes that a request could change.
func (s *stage) state() int {
	var rows []string
	for _, table := range []string{
		"idempotency_keys", "operation_log", "charges", "refunds", "payment_intents", "outbox",
		"webhook_endpoints", "webhook_secrets", "deliveries",
	} {
		rows = append(rows, fmt.Sprintf("SELECT x::text AS row FROM %s x", table))
	}
	return s.World.Count(`SELECT hashtext(string_agg(row, ',' ORDER BY row)) FROM (` +
		strings.Join(rows, " UNION ALL ") + `) AS x`)
}

// A read-only key does each GET of openapi.yaml and nothing else. Whatever else there is, the
// description's next operation too, is refused before anything is done, although it would succeed
// with another key of the account.
func TestAReadOnlyKeyOnlyReads(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	refused, read := 0, 0
	for _, p := range places(t) {
		if !p.secured() {
			continue
		}
		c := s.scene(p.op.OperationID)
		reader := s.NewReadOnlyKey(fmt.Sprint("example ", s.accounts)).Secret
		if p.method == http.MethodGet {
			req := s.ask(p, c, bodies(p)[0])
			if a := c.Do(header(req, "Authorization", "Bearer "+reader)); a.Code != http.StatusOK {
				t.Errorf("%s: got %d %s", p.op.OperationID, a.Code, a.Body)
			}
			read++
			continue
		}
		before := s.state()
		for _, b := range bodies(p) {
			a := c.Do(header(s.ask(p, c, b), "Authorization", "Bearer "+reader))
			wants(t, a, http.StatusForbidden, "api_key_read_only", "")
		}
		if s.state() != before {
			t.Errorf("%s changed the database", p.op.OperationID)
		}
		refused++
	}
	if refused < 16 || read < 10 {
		t.Errorf("%d operations were refused, %d answered", refused, read)
	}
}

// A refusal leaves the idempotency key to whoever may write; and one that stands for a request
// already tells a read-only key nothing of it.
func TestAReadOnlyKeySpendsNoIdempotencyKey(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	reader := s.As(s.NewReadOnlyKey(world.Account).Secret)
	wants(t, reader.Charge("K", b0), 403, "api_key_read_only", "")
	wants(t, reader.Charge("K", b0, "X-Http-Method-Override", "GET"), 403, "api_key_read_only", "")
	first := s.Charge("K", b0)
	created(t, first)
	wants(t, reader.Charge("K", b0), 403, "api_key_read_only", "")
	same(t, first, s.Charge("K", b0))
	if a := reader.Get("/v1/idempotency_keys/K"); a.Code != 200 {
		t.Errorf("got %d %s", a.Code, a.Body)
	}
	if a := reader.Do(reader.Request("HEAD", "/v1/charges/"+first.ID(), "")); a.Code != 200 {
		t.Errorf("HEAD: got %d", a.Code)
	}
	if s.ChargeRequests() != 1 {
		t.Errorf("the provider was asked %d times", s.ChargeRequests())
	}
}

// A read-only key sees no secret of an endpoint, and nothing with which somebody could go on with a
// payer's payment; another key of the account sees both.
func TestAReadOnlyKeySeesNoSecrets(t *testing.T) {
	t.Parallel()
	w := world.NewIntents(t)
	s := &shop{online.New(w)}
	reader := s.As(s.NewReadOnlyKey(world.Account).Secret)
	charge := s.Charge("charge", `{"amount":2001,"currency":"usd",`+
		`"source":"tok_threeDSecure2Required","return_url":"https://shop.example/back"}`)
	created(t, charge)
	inBrowser := s.Charge("in browser",
		`{"amount":2002,"currency":"usd","source":"tok_threeDSecure2Required"}`)
	created(t, inBrowser)
	intent := s.Post("/v1/payment_intents", "intent", `{"amount":2003,"currency":"usd",`+
		`"confirm":true,"payment_method":"tok_threeDSecure2Required",`+
		`"return_url":"https://shop.example/back"}`)
	created(t, intent)
	endpoint := s.Post("/v1/webhook_endpoints", "endpoint", `{"url":"https://shop.example/hook"}`)
	created(t, endpoint)
	var made struct{ Secret string }
	if endpoint.JSON(&made); !strings.HasPrefix(made.Secret, "whsec_") {
		t.Fatalf("got %s", endpoint.Body)
	}
	shows := func(a apitest.Answer) bool {
		body := string(a.Body)
		return strings.Contains(body, "_secret_") || strings.Contains(body, made.Secret) ||
			strings.Contains(body, `"redirect_to_url":{`)
	}
	for path, secret := range map[string]bool{
		"/v1/charges/" + charge.ID(): true, "/v1/charges/" + inBrowser.ID(): true,
		"/v1/charges": true, "/v1/charges?expand[]=data.refunds": true,
		"/v1/payment_intents/" + intent.ID(): true, "/v1/payment_intents": true,
		"/v1/payment_intents/" + intent.ID() + "?expand[]=latest_charge": true,
		"/v1/payment_intents?expand[]=data.latest_charge":                true,
		"/v1/webhook_endpoints/" + endpoint.ID():                         true, "/v1/webhook_endpoints": true,
		"/v1/events": false, "/v1/idempotency_keys/intent": false,
		"/v1/idempotency_keys/endpoint": false,
	} {
		full, hidden := s.Get(path), reader.Get(path)
		if full.Code != 200 || hidden.Code != 200 {
			t.Errorf("%s: got %d and %d %s", path, full.Code, hidden.Code, hidden.Body)
		}
		if shows(full) != secret || shows(hidden) {
			t.Errorf("%s shows\n%s\nand to a read-only key\n%s", path, full.Body, hidden.Body)
		}
		if strings.Contains(string(hidden.Body), "whsec_") {
			t.Errorf("%s shows a read-only key the endpoint's secret", path)
		}
	}
}
