package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/stripe/stripe-go/v76"
	"github.com/stripe/stripe-go/v76/client"
)

// wire counts what a client really sends, whatever its library says.
type wire struct {
	base http.RoundTripper
	mu   sync.Mutex
	keys []string // Idempotency-Key of each request, in order
	last *http.Response
}

func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	w.mu.Lock()
	w.keys = append(w.keys, req.Header.Get("Idempotency-Key"))
	w.mu.Unlock()
	res, err := w.base.RoundTrip(req)
	w.mu.Lock()
	w.last = res
	w.mu.Unlock()
	return res, err
}

// taken returns what was sent since the last call.
func (w *wire) taken() (keys []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	keys, w.keys = w.keys, nil
	return keys
}

// stripeGo is stripe-go with nothing changed but host and key.
func (w *world) stripeGo(p *proc, retries int64) (*client.API, *wire) {
	w.t.Helper()
	transport := &http.Transport{}
	w.t.Cleanup(transport.CloseIdleConnections)
	sent := &wire{base: transport}
	backend := stripe.GetBackendWithConfig(stripe.APIBackend, &stripe.BackendConfig{
		URL: stripe.String(p.url), MaxNetworkRetries: stripe.Int64(retries), HTTPClient: &http.Client{Transport: sent, Timeout: patience},
		LeveledLogger: &stripe.LeveledLogger{Level: stripe.LevelNull},
	})
	return client.New(w.apiKey, &stripe.Backends{API: backend, Connect: backend, Uploads: backend}), sent
}

func chargeOf(key string, amount int64, token string) *stripe.ChargeParams {
	p := &stripe.ChargeParams{Amount: stripe.Int64(amount), Currency: stripe.String("usd")}
	p.AddMetadata("order", key)
	if token != "" {
		p.Source = &stripe.PaymentSourceSourceParams{Token: stripe.String(token)}
	}
	if key != "" {
		p.SetIdempotencyKey(key)
	}
	return p
}

// asError returns Stripe's error, or an empty one.
func asError(err error) *stripe.Error {
	var e *stripe.Error
	if errors.As(err, &e) {
		return e
	}
	return &stripe.Error{Msg: fmt.Sprint(err)}
}

// compat: create, retrieve, list, idempotency keys. What docs/compatibility.md says of stripe-go comes from these tests.
func TestStripeGoCharges(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sc, _ := w.stripeGo(w.serve(), 2)
	first, err := sc.Charges.New(chargeOf("order-1", 2000, "tok_visa"))
	if err != nil {
		t.Fatal(err)
	}
	if first.Status != stripe.ChargeStatusSucceeded || !first.Paid || !first.Captured || first.Amount != 2000 || first.Currency != "usd" || first.Metadata["order"] != "order-1" {
		t.Errorf("created %+v", first)
	}
	h := first.LastResponse
	if h.StatusCode != http.StatusCreated || h.RequestID == "" || h.IdempotencyKey != "order-1" || h.Header.Get("Idempotent-Replayed") != "" {
		t.Errorf("%d, request %q, key %q", h.StatusCode, h.RequestID, h.IdempotencyKey)
	}
	again, err := sc.Charges.New(chargeOf("order-1", 2000, "tok_visa"))
	if err != nil || again.ID != first.ID || again.LastResponse.Header.Get("Idempotent-Replayed") != "true" || again.LastResponse.RequestID == h.RequestID {
		t.Errorf("again: %+v %v", again, err)
	}
	got, err := sc.Charges.Get(first.ID, nil)
	if err != nil || got.ID != first.ID || got.AmountCaptured != 2000 {
		t.Errorf("retrieved %+v %v", got, err)
	}
	// Without a key of the caller's, stripe-go makes one for each call: two calls are two charges.
	for range 2 {
		if _, err := sc.Charges.New(chargeOf("", 2000, "tok_visa")); err != nil {
			t.Error(err)
		}
	}
	w.sim.mustHave(t, 3)
	_, err = sc.Charges.Get("ch_nothing", nil)
	if e := asError(err); e.HTTPStatusCode != http.StatusNotFound || e.Code != stripe.ErrorCodeResourceMissing || e.Type != stripe.ErrorTypeInvalidRequest {
		t.Errorf("a charge that is not there: %v", err)
	}
}

func TestStripeGoPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sc, sent := w.stripeGo(w.serve(), 2)
	const charges, page = 7, 3
	for i := range charges {
		if _, err := sc.Charges.New(chargeOf(fmt.Sprint("order-", i), int64(100+i), "tok_visa")); err != nil {
			t.Fatal(err)
		}
	}
	sent.taken()
	params := &stripe.ChargeListParams{}
	params.Limit = stripe.Int64(page)
	var amounts []int64
	it := sc.Charges.List(params)
	for it.Next() {
		amounts = append(amounts, it.Charge().Amount)
	}
	if it.Err() != nil || len(amounts) != charges || amounts[0] != 106 || amounts[6] != 100 {
		t.Errorf("listed %v %v", amounts, it.Err())
	}
	if n := len(sent.taken()); n != 3 {
		t.Errorf("%d pages were asked for, want 3", n)
	}
	back := &stripe.ChargeListParams{}
	back.Limit, back.EndingBefore = stripe.Int64(page), stripe.String(firstOf(t, sc).ID)
	if it := sc.Charges.List(back); it.Next() || it.Err() != nil {
		t.Errorf("before the newest: %v %v", it.Charge(), it.Err())
	}
	since := &stripe.ChargeListParams{CreatedRange: &stripe.RangeQueryParams{GreaterThanOrEqual: 1}}
	if it := sc.Charges.List(since); !it.Next() {
		t.Errorf("created[gte]: %v", it.Err())
	}
}

func firstOf(t *testing.T, sc *client.API) *stripe.Charge {
	t.Helper()
	it := sc.Charges.List(nil)
	if !it.Next() {
		t.Fatalf("no charge: %v", it.Err())
	}
	return it.Charge()
}

func TestStripeGoCaptureAndRefund(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sc, _ := w.stripeGo(w.serve(), 2)
	held := chargeOf("held", 2000, "tok_visa")
	held.Capture = stripe.Bool(false)
	ch, err := sc.Charges.New(held)
	if err != nil || ch.Captured {
		t.Fatalf("%+v %v", ch, err)
	}
	part := &stripe.ChargeCaptureParams{Amount: stripe.Int64(1500)}
	part.SetIdempotencyKey("capture")
	taken, err := sc.Charges.Capture(ch.ID, part)
	if err != nil || !taken.Captured || taken.AmountCaptured != 1500 {
		t.Fatalf("captured %+v %v", taken, err)
	}
	for i, amount := range []int64{400, 600} {
		p := &stripe.RefundParams{Charge: stripe.String(ch.ID), Amount: stripe.Int64(amount), Reason: stripe.String("requested_by_customer")}
		p.SetIdempotencyKey(fmt.Sprint("refund-", i))
		r, err := sc.Refunds.New(p)
		if err != nil || r.Status != stripe.RefundStatusSucceeded || r.Amount != amount || r.Charge.ID != ch.ID {
			t.Fatalf("refund %+v %v", r, err)
		}
		if got, err := sc.Refunds.Get(r.ID, nil); err != nil || got.ID != r.ID {
			t.Errorf("refund retrieved: %+v %v", got, err)
		}
	}
	list := &stripe.RefundListParams{Charge: stripe.String(ch.ID)}
	list.Limit = stripe.Int64(1)
	n := 0
	it := sc.Refunds.List(list)
	for it.Next() {
		n++
	}
	if n != 2 || it.Err() != nil {
		t.Errorf("%d refunds %v", n, it.Err())
	}
	over := &stripe.RefundParams{Charge: stripe.String(ch.ID), Amount: stripe.Int64(501)}
	over.SetIdempotencyKey("over")
	_, err = sc.Refunds.New(over)
	if e := asError(err); e.HTTPStatusCode != http.StatusBadRequest || e.Type != stripe.ErrorTypeInvalidRequest {
		t.Errorf("more than is left: %v", err)
	}
}

func TestStripeGoErrors(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.serve()
	sc, sent := w.stripeGo(p, 2)
	var declined *stripe.CardError
	_, err := sc.Charges.New(chargeOf("declined", 2000, "tok_chargeDeclinedInsufficientFunds"))
	if e := asError(err); !errors.As(err, &declined) || declined.DeclineCode != stripe.DeclineCodeInsufficientFunds || e.HTTPStatusCode != http.StatusPaymentRequired || e.ChargeID == "" || e.RequestID == "" {
		t.Errorf("declined: %v", err)
	}
	if keys := sent.taken(); len(keys) != 1 {
		t.Errorf("a decline was sent %d times", len(keys))
	}
	if _, err := sc.Charges.New(chargeOf("k", 2000, "tok_visa")); err != nil {
		t.Fatal(err)
	}
	sent.taken()
	var reused *stripe.IdempotencyError
	_, err = sc.Charges.New(chargeOf("k", 2001, "tok_visa"))
	if e := asError(err); !errors.As(err, &reused) || e.HTTPStatusCode != http.StatusUnprocessableEntity || e.Code != "idempotency_key_reused" {
		t.Errorf("another request: %v", err)
	}
	if keys := sent.taken(); len(keys) != 1 {
		t.Errorf("a reused key was sent %d times", len(keys))
	}
	var invalid *stripe.InvalidRequestError
	_, err = sc.Charges.New(chargeOf("none", 2000, ""))
	if !errors.As(err, &invalid) || asError(err).HTTPStatusCode != http.StatusBadRequest {
		t.Errorf("no source: %v", err)
	}
	foreign := &world{t: t, apiKey: "sk_test_wrong"}
	other, _ := foreign.stripeGo(p, 2)
	_, err = other.Charges.New(chargeOf("k3", 2000, "tok_visa"))
	if e := asError(err); e.HTTPStatusCode != http.StatusUnauthorized || string(e.Type) != "authentication_error" {
		t.Errorf("a wrong key: %v", err)
	}
}

// What its calls can carry and we do not take is refused by name, before anything is spent.
func TestStripeGoWhatWeLack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sc, _ := w.stripeGo(w.serve(), 0)
	expand := chargeOf("expand", 2000, "tok_visa")
	expand.AddExpand("customer")
	transfer := chargeOf("transfer", 2000, "tok_visa")
	transfer.TransferGroup = stripe.String("g")
	read := &stripe.ChargeParams{}
	read.AddExpand("customer")
	connected := chargeOf("connected", 2000, "tok_visa")
	connected.SetStripeAccount("acct_1")
	search := &stripe.ChargeSearchParams{}
	search.Query = "metadata['order']:'1'"
	types := &stripe.EventListParams{Types: stripe.StringSlice([]string{"charge.succeeded"})}
	since := &stripe.EventListParams{CreatedRange: &stripe.RangeQueryParams{GreaterThanOrEqual: 1}}
	back := &stripe.EventListParams{}
	back.EndingBefore = stripe.String("evt_x")
	events := func(params *stripe.EventListParams) error { it := sc.Events.List(params); it.Next(); return it.Err() }
	endpoint := &stripe.WebhookEndpointParams{URL: stripe.String("https://example.com"), EnabledEvents: stripe.StringSlice([]string{"*"})}
	calls := []struct {
		name        string
		call        func() error
		status      int
		code, param string
	}{
		{"expand on create", func() error { _, err := sc.Charges.New(expand); return err }, 400, "parameter_unknown", "expand[0]"},
		{"expand on retrieve", func() error { _, err := sc.Charges.Get("ch_x", read); return err }, 400, "parameter_unknown", "expand[0]"},
		{"Connect", func() error { _, err := sc.Charges.New(transfer); return err }, 400, "parameter_unknown", "transfer_group"},
		{"an account of Connect", func() error { _, err := sc.Charges.New(connected); return err }, 400, "parameter_unknown", "Stripe-Account"},
		{"balance", func() error { _, err := sc.Balance.Get(nil); return err }, 404, "route_unknown", ""},
		{"search", func() error { it := sc.Charges.Search(search); it.Next(); return it.Err() }, 400, "parameter_unknown", ""},
		{"update", func() error {
			_, err := sc.Charges.Update("ch_x", &stripe.ChargeParams{Description: stripe.String("x")})
			return err
		}, 405, "method_not_allowed", ""},
		{"events by types", func() error { return events(types) }, 400, "parameter_unknown", "types[0]"},
		{"events by time", func() error { return events(since) }, 400, "parameter_unknown", "created[gte]"},
		{"events backwards", func() error { return events(back) }, 400, "parameter_unknown", "ending_before"},
		{"endpoints made", func() error { _, err := sc.WebhookEndpoints.New(endpoint); return err }, 405, "method_not_allowed", ""},
		{"endpoints changed", func() error { _, err := sc.WebhookEndpoints.Update("x", endpoint); return err }, 405, "method_not_allowed", ""},
		{"payment intents", func() error {
			_, err := sc.PaymentIntents.New(&stripe.PaymentIntentParams{Amount: stripe.Int64(1)})
			return err
		}, 404, "route_unknown", ""},
	}
	for _, c := range calls {
		e := asError(c.call())
		if e.HTTPStatusCode != c.status || string(e.Code) != c.code || c.param != "" && e.Param != c.param || e.Type != stripe.ErrorTypeInvalidRequest {
			t.Errorf("%s: %d %s %q %s", c.name, e.HTTPStatusCode, e.Code, e.Param, e.Msg)
		}
	}
	if n := w.sim.stats().ChargeRequests; n != 0 {
		t.Errorf("%d charges were asked for", n)
	}
}

// Events and endpoints are read; endpoints are made with a PUT, which no library of Stripe's has.
func TestStripeGoEventsAndEndpoints(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.serve()
	sc, _ := w.stripeGo(p, 0)
	for i := range 3 {
		if _, err := sc.Charges.New(chargeOf(fmt.Sprint("order-", i), int64(100+i), "tok_visa")); err != nil {
			t.Fatal(err)
		}
	}
	for order, want := range map[string][]int64{"": {100, 101, 102}, "desc": {102, 101, 100}} {
		params := &stripe.EventListParams{Type: stripe.String("charge.succeeded")}
		params.Limit = stripe.Int64(2)
		if order != "" {
			params.Filters.AddFilter("order", "", order)
		}
		var amounts []int64
		it := sc.Events.List(params)
		for it.Next() {
			var ch stripe.Charge
			if err := json.Unmarshal(it.Event().Data.Raw, &ch); err != nil {
				t.Fatal(err)
			}
			amounts = append(amounts, ch.Amount)
			if got, err := sc.Events.Get(it.Event().ID, nil); err != nil || got.ID != it.Event().ID {
				t.Errorf("retrieved %+v %v", got, err)
			}
		}
		if it.Err() != nil || !slices.Equal(amounts, want) {
			t.Errorf("order %q: %v %v", order, amounts, it.Err())
		}
	}
	c := w.client(p)
	if a := c.Do(c.Request(http.MethodPut, "/v1/webhook_endpoints/hook", `{"url":"https://warehouse.example.com/events"}`, "Content-Type", "application/json")); a.Code != http.StatusCreated {
		t.Fatalf("%d %s", a.Code, a.Body)
	}
	if got, err := sc.WebhookEndpoints.Get("hook", nil); err != nil || got.Status != "enabled" {
		t.Errorf("retrieved %+v %v", got, err)
	}
	if it := sc.WebhookEndpoints.List(nil); !it.Next() || it.WebhookEndpoint().ID != "hook" || it.Next() || it.Err() != nil {
		t.Errorf("listed: %v", it.Err())
	}
	if got, err := sc.WebhookEndpoints.Del("hook", nil); err != nil || !got.Deleted {
		t.Errorf("deleted %+v %v", got, err)
	}
}
