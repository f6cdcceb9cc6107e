package api_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"paidonce/accounts"
	"paidonce/api"
	"paidonce/inbox"
	online "paidonce/internal/shop"
	"paidonce/internal/world"
	"paidonce/provider/stripesim"
)

// hurry is how long a hurried server waits for a body: there is none to come.
const hurry = 100 * time.Millisecond

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{shop: newShopWith(t, online.LongCallLimit), t: t, dead: map[string]given{}}
	s.limited = s.ServeWith(func(c *api.Config) { c.RateLimit = 0.001 }, whsec).URL
	s.unsigned = s.ServeWith(func(c *api.Config) { c.ProviderEvents = nil }).URL
	s.faulty = s.ServeWith(func(c *api.Config) {
		c.Accounts, c.Ready = panics{}, func(context.Context) error { panic("for the test") }
		c.ProviderEvents = inbox.New(inbox.Config{Secrets: []string{whsec}, Sift: func(string, []byte) (bool, inbox.Result) { panic("for the test") }})
	}).URL
	limits := s.API.HTTP()
	limits.ReadTimeout = hurry
	hurried := httptest.NewUnstartedServer(nil)
	hurried.Config = limits
	hurried.Start()
	t.Cleanup(hurried.Close)
	s.hurried = hurried.URL
	s.die()
	return s
}

// panics is a part of the server with a fault.
type panics struct{}

func (panics) Authenticate(context.Context, string) (accounts.Identity, error) {
	panic("for the test")
}
func (panics) Cached(context.Context, string) (accounts.Identity, error) { panic("for the test") }

// die asks a server that has lost its database for every operation, all at once: each answer takes
// a while, in case the database comes back.
func (s *stage) die() {
	dead := s.Serve(whsec)
	dead.Pool.Close()
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, p := range places(s.t) {
		if p.op.Responses.Status(http.StatusServiceUnavailable) == nil {
			continue
		}
		c := s.account()
		req := at(s.ask(p, c, bodies(p)[0]), dead.URL)
		wg.Go(func() {
			a := c.Do(req)
			mu.Lock()
			defer mu.Unlock()
			s.dead[p.op.OperationID] = given{"without a database", a}
		})
	}
	wg.Wait()
}

// at sends a request to another server.
func at(req *http.Request, server string) *http.Request {
	u, err := url.Parse(server)
	if err != nil {
		panic(err)
	}
	req.URL.Host = u.Host
	return req
}

// exampleError is what an example of an error says.
type exampleError struct{ Code, Param string }

func problemOf(t *testing.T, example any) (p exampleError) {
	t.Helper()
	var e struct{ Error exampleError }
	b, err := json.Marshal(example)
	if err == nil {
		err = json.Unmarshal(b, &e)
	}
	if err != nil || e.Error.Code == "" {
		t.Fatalf("not an example of an error: %v", example)
	}
	return e.Error
}

// provoke brings about the error that an example shows, in the ways that an operation has for it.
func (s *stage) provoke(p *place, example any) (answers []given) {
	s.t.Helper()
	e := problemOf(s.t, example)
	do := func(c scene, what string, req *http.Request) {
		answers = append(answers, given{what, c.Do(req)})
	}
	first := func(c scene) *http.Request { return s.ask(p, c, bodies(p)[len(bodies(p))-1]) }
	c := s.scene(p.op.OperationID)
	switch e.Code {
	case "api_key_invalid":
		do(c, "another API key", header(first(c), "Authorization", "Bearer sk_wrong"))
	case "api_key_read_only":
		do(c, "an API key that may only read", header(first(c), "Authorization", "Bearer "+s.NewReadOnlyKey(world.Account).Secret))
	case "method_not_allowed":
		req := first(c)
		req.Method = http.MethodPatch
		do(c, "PATCH", req)
	case "resource_missing":
		c.ids = nil
		if p.op.OperationID == "createCharge" || p.op.OperationID == "createPaymentIntent" {
			o := object{{"amount", 2000}, {"currency", "usd"}, {"reference", "order-6735"}, {"duplicate_of", exampleCharge}}
			if p.op.OperationID == "createCharge" {
				o = append(o, member{"source", "tok_visa"})
			}
			do(c, "a duplicate of nothing", s.ask(p, c, bodyExample{"duplicate", mediaJSON, o}))
			break
		}
		if p.op.OperationID == "deleteWebhookEndpoint" || strings.Contains(p.path, "webhook_endpoints/") || strings.Contains(p.path, "idempotency_keys") {
			c = s.account()
		}
		for _, b := range bodies(p) {
			do(c, "nothing is there, "+b.name, s.ask(p, c, b))
		}
	case "rate_limited":
		for range 2 {
			do(c, "too many", at(first(c), s.limited))
		}
	case "internal_error":
		do(c, "a fault", at(first(c), s.faulty))
	case "unavailable":
		return []given{s.dead[p.op.OperationID]}
	case "parameter_unknown":
		return s.unknownParameter(p, c, e.Param)
	case "request_timeout":
		body, hold := io.Pipe()
		defer func() { _ = hold.Close() }()
		req := header(at(first(c), s.hurried), "Content-Type", mediaJSON)
		req.Body, req.ContentLength = body, 100
		do(c, "half a body", req)
	case "body_too_large":
		req := first(c)
		req.Body, req.ContentLength = io.NopCloser(strings.NewReader(strings.Repeat(" ", api.DefaultMaxBody+1))), -1
		do(c, "a large body", req)
	case "media_type_unsupported":
		do(c, "XML", header(s.ask(p, c, bodyExample{"XML", "text/xml", "<charge/>"}), "Content-Type", "text/xml"))
	case "content_encoding_unsupported":
		do(c, "compressed", header(first(c), "Content-Encoding", "gzip"))
	case "signature_invalid":
		do(c, "another signature", header(first(c), "Stripe-Signature", world.Signed([]byte("{}"), whsec, time.Now())))
	case "webhooks_not_configured":
		do(c, "no secret", at(first(c), s.unsigned))
	case "parameter_invalid":
		if e.Param == "url" {
			do(c, "a private address", s.ask(p, c, bodyExample{"", mediaJSON, map[string]any{"url": "http://10.0.0.7/events"}}))
		}
	default:
		return s.provokeKeyed(p, c, e)
	}
	return answers
}

// paidIntent is the request for the payment intent that examples show.
const paidIntent = `{"amount":2000,"currency":"usd","payment_method":"pm_card_visa","payment_method_types":["card"],"confirm":true,"description":"Order 6735","metadata":{"order":"6735"}}`

// poorCard is a means of payment that is declined.
const poorCard = "pm_card_chargeDeclinedInsufficientFunds"

func header(req *http.Request, name, value string) *http.Request {
	req.Header.Set(name, value)
	return req
}

func (s *stage) unknownParameter(p *place, c scene, name string) (answers []given) {
	if p.querySchema().Properties[name] == nil && !p.keyed() && p.secured() {
		req := s.ask(p, c, bodies(p)[0])
		req.URL.RawQuery = url.QueryEscape(name) + "=customer"
		answers = append(answers, given{"in the query", c.Do(req)})
	}
	for _, b := range bodies(p) {
		if b.medium == mediaJSON {
			more := plain(ordered(b.value)).(map[string]any)
			more[name] = "x"
			answers = append(answers, given{"in the body", c.Do(s.ask(p, c, bodyExample{b.name, b.medium, more}))})
		}
	}
	return answers
}

// provokeKeyed brings about errors of what moves money.
func (s *stage) provokeKeyed(p *place, c scene, e exampleError) (answers []given) {
	s.t.Helper()
	all := bodies(p)
	do := func(what string, req *http.Request) {
		answers = append(answers, given{what, c.Do(req)})
	}
	last := func() *http.Request { return s.ask(p, c, all[len(all)-1]) }
	atProvider := map[string]string{
		"createCharge": "/v1/charges", "captureCharge": "/v1/charges/", "cancelCharge": "/v1/refunds", "createRefund": "/v1/refunds",
		"createPaymentIntent": "/v1/payment_intents", "confirmPaymentIntent": "/v1/payment_intents/", "updatePaymentIntent": "/v1/payment_intents/", "capturePaymentIntent": "/v1/payment_intents/",
		"cancelPaymentIntent": "/v1/payment_intents/",
	}[p.op.OperationID]
	switch e.Code {
	case "idempotency_key_missing":
		req := last()
		delete(req.Header, "Idempotency-Key")
		do("no key", req)
	case "card_declined":
		poor := map[string]any{"amount": 2000, "currency": "usd", "source": "tok_chargeDeclinedInsufficientFunds"}
		switch p.op.OperationID {
		case "createPaymentIntent":
			poor = map[string]any{"amount": 2000, "currency": "usd", "payment_method": poorCard, "payment_method_types": []any{"card"}, "confirm": true}
		case "confirmPaymentIntent":
			poor = map[string]any{"payment_method": poorCard}
		}
		do("a card without money", s.ask(p, c, bodyExample{"", mediaJSON, poor}))
	case "payment_intent_unexpected_state":
		c.ids[exampleIntent] = c.Post("/v1/payment_intents", "paid", paidIntent).ID()
		do("paid already", last())
	case "confirm_pending":
		c.ids[exampleIntent] = c.Post("/v1/payment_intents", "open", `{"amount":2000,"currency":"usd","payment_method":"pm_card_visa","payment_method_types":["card"]}`).ID()
		s.PostFault(1, "/v1/payment_intents/", stripesim.Fault{Type: stripesim.DropAfter})
		if a := c.Post("/v1/payment_intents/"+c.ids[exampleIntent]+"/confirm", "lost", ""); a.Code != http.StatusServiceUnavailable {
			s.t.Errorf("got %d %s", a.Code, a.Body)
		}
		do("while it is being confirmed", last())
	case "charge_already_refunded":
		at := slices.IndexFunc(all, func(b bodyExample) bool { return b.name == "whole" })
		if at < 0 {
			break // nothing is refunded here
		}
		whole := all[at]
		if a := c.Do(header(s.ask(p, c, whole), "Idempotency-Key", "before")); a.Code != http.StatusCreated {
			s.t.Errorf("got %d %s", a.Code, a.Body)
		}
		do("refunded already", s.ask(p, c, whole))
	case "charge_pending":
		s.PostFault(1, "/v1/charges", stripesim.Fault{Type: stripesim.DropAfter})
		lost := c.Charge("lost", b0)
		c.ids[exampleCharge] = lost.Error().Charge
		do("of a charge without an outcome", last())
	case "idempotency_key_reused":
		if a := c.Charge(exampleKey, `{"amount":50,"currency":"usd","source":"tok_visa"}`); a.Code != http.StatusCreated {
			s.t.Errorf("got %d %s", a.Code, a.Body)
		}
		do("after another request", last())
	case "idempotency_key_in_use":
		s.leave(c, last(), atProvider, "lease_token = 'another', locked_at = clock_timestamp()")
		req := last()
		delete(req.Header, "Prefer") // nothing is waited for
		do("while another has it", req)
	case "outcome_unknown":
		s.PostFault(1, atProvider, stripesim.Fault{Type: stripesim.DropAfter})
		do("the provider's answer is lost", last())
	case "operation_parked":
		s.leave(c, last(), atProvider, "parked_at = clock_timestamp(), next_run_at = NULL, last_error = 'for the test'")
		do("parked", last())
	default:
		s.t.Errorf("there is no way known to an error %s", e.Code)
	}
	return answers
}

// leave begins an operation whose answer the provider loses, and then has its row say more.
func (s *stage) leave(c scene, req *http.Request, atProvider, set string) {
	s.t.Helper()
	s.PostFault(1, atProvider, stripesim.Fault{Type: stripesim.DropAfter})
	if a := c.Do(req); a.Code != http.StatusServiceUnavailable {
		s.t.Errorf("got %d %s", a.Code, a.Body)
	}
	tag, err := s.Pool.Exec(s.t.Context(), "UPDATE idempotency_keys SET "+set+" WHERE status = 'in_progress' AND lease_token IS NULL AND parked_at IS NULL")
	if err != nil || tag.RowsAffected() == 0 {
		s.t.Fatalf("%v: %v", tag, err)
	}
}
