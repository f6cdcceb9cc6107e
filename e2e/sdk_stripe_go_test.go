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
		URL: stripe.String(p.url), MaxNetworkRetries: stripe.Int64(retries),
		HTTPClient:    &http.Client{Transport: sent, Timeout: patience},
		LeveledLogger: &stripe.LeveledLogger{Level: stripe.LevelNull},
	})
	return client.New(w.apiKey, &stripe.Backends{API: backend, Connect: backend, Uploads: backend}),
		sent
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

// compat: create, retrieve, list, idempotency keys. What docs/compatibility.md says of stripe-go
// comes from these tests.
func TestStripeGoCharges(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sc, _ := w.stripeGo(w.serve(), 2)
	first, err := sc.Charges.New(chargeOf("order-1", 2000, "tok_visa"))
	if err != nil {
		t.Fatal(err)
	}
	if first.Status != stripe.ChargeStatusSucceeded || !first.Paid || !first.Captured ||
		first.Amount != 2000 || first.Currency != "usd" || first.Metadata["order"] != "order-1" {
		t.Errorf("created %+v", first)
	}
	if d := first.PaymentMethodDetails; d == nil || d.Type != stripe.ChargePaymentMethodDetailsTypeCard ||
		d.Card == nil || d.Card.Last4 != "4242" || d.Card.Brand != "visa" || d.Card.ExpYear == 0 ||
		first.ReceiptURL == "" || first.BalanceTransaction == nil {
		t.Errorf("paid with %+v", d)
	}
	h := first.LastResponse
	if h.StatusCode != http.StatusCreated || h.RequestID == "" || h.IdempotencyKey != "order-1" ||
		h.Header.Get("Idempotent-Replayed") != "" {
		t.Errorf("%d, request %q, key %q", h.StatusCode, h.RequestID, h.IdempotencyKey)
	}
	again, err := sc.Charges.New(chargeOf("order-1", 2000, "tok_visa"))
	if err != nil || again.ID != first.ID ||
		again.LastResponse.Header.Get("Idempotent-Replayed") != "true" ||
		again.LastResponse.RequestID == h.RequestID {
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
	if e := asError(err); e.HTTPStatusCode != http.StatusNotFound ||
		e.Code != stripe.ErrorCodeResourceMissing || e.Type != stripe.ErrorTypeInvalidRequest {
		t.Errorf("a charge that is not there: %v", err)
	}
}

// What its calls can say of a charge beside who pays how much.
func TestStripeGoParameters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sc, _ := w.stripeGo(w.serve(), 0)
	unset := chargeOf("unset", 2000, "tok_visa")
	unset.Description, unset.ReceiptEmail = stripe.String(""), stripe.String("")
	unset.StatementDescriptorSuffix = stripe.String("")
	unset.AddMetadata("empty", "")
	ch, err := sc.Charges.New(unset)
	if err != nil || ch.Description != "" || ch.ReceiptEmail != "" || len(ch.Metadata) != 1 {
		t.Errorf("unset: %+v %v", ch, err)
	}
	saved := chargeOf("saved", 2000, "card_mastercard")
	saved.Customer = stripe.String("cus_42")
	if ch, err = sc.Charges.New(saved); err != nil || ch.Customer.ID != "cus_42" || !ch.Paid {
		t.Fatalf("a saved card: %+v %v", ch, err)
	}
	var own struct{ Provider struct{ ID string } }
	if err := json.Unmarshal(ch.LastResponse.RawJSON, &own); err != nil {
		t.Fatal(err)
	}
	if got, err := sc.Charges.Get(own.Provider.ID, nil); err != nil || got.ID != ch.ID {
		t.Errorf("by Stripe's id: %+v %v", got, err)
	}
	back := &stripe.RefundParams{Charge: &own.Provider.ID}
	back.SetIdempotencyKey("back")
	if r, err := sc.Refunds.New(back); err != nil || r.Charge.ID != ch.ID {
		t.Errorf("a refund by Stripe's id: %+v %v", r, err)
	}
	change := &stripe.ChargeParams{Description: stripe.String("a gift")}
	change.AddMetadata("order", "")
	change.AddMetadata("gift", "yes")
	if got, err := sc.Charges.Update(ch.ID, change); err != nil || got.Description != "a gift" ||
		len(got.Metadata) != 1 || got.Metadata["gift"] != "yes" {
		t.Errorf("updated: %+v %v", got, err)
	}
	sent := chargeOf("sent", 2000, "tok_visa")
	sent.StatementDescriptor = stripe.String("BOOKS")
	sent.Shipping = &stripe.ShippingDetailsParams{
		Name:    stripe.String("Jenny"),
		Address: &stripe.AddressParams{City: stripe.String("London")},
	}
	if ch, err = sc.Charges.New(sent); err != nil || ch.StatementDescriptor != "BOOKS" ||
		ch.Shipping.Name != "Jenny" || ch.Shipping.Address.City != "London" {
		t.Errorf("shipping: %+v %v", ch, err)
	}
	many := chargeOf("many", 2000, "tok_visa")
	for i := range 45 {
		many.AddMetadata(fmt.Sprint("k", i), "v")
	}
	_, err = sc.Charges.New(many)
	if e := asError(err); e.HTTPStatusCode != http.StatusBadRequest || e.Param != "metadata" {
		t.Errorf("46 pairs: %v", err)
	}
}

// tryEventFilters lists three events by each of Stripe's filters.
func tryEventFilters(t *testing.T, sc *client.API) {
	t.Helper()
	var all []string
	for it := sc.Events.List(nil); it.Next(); {
		all = append(all, it.Event().ID)
	}
	back := &stripe.EventListParams{}
	back.EndingBefore = stripe.String(all[2])
	for name, c := range map[string]struct {
		params *stripe.EventListParams
		want   int
	}{
		"a pattern": {&stripe.EventListParams{Type: stripe.String("charge.*")}, 3},
		"types": {&stripe.EventListParams{
			Types: stripe.StringSlice([]string{"charge.failed", "charge.succeeded"}),
		}, 3},
		"other types": {&stripe.EventListParams{Types: stripe.StringSlice([]string{"refund.*"})}, 0},
		"since": {&stripe.EventListParams{
			CreatedRange: &stripe.RangeQueryParams{GreaterThanOrEqual: 1},
		}, 3},
		"at a time": {&stripe.EventListParams{Created: stripe.Int64(1)}, 0},
		"backwards": {back, 2},
	} {
		n := 0
		it := sc.Events.List(c.params)
		for it.Next() {
			n++
		}
		if it.Err() != nil || n != c.want {
			t.Errorf("%s: %d events, want %d (%v)", name, n, c.want, it.Err())
		}
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
	at := &stripe.ChargeListParams{Created: stripe.Int64(firstOf(t, sc).Created)}
	if it := sc.Charges.List(at); !it.Next() {
		t.Errorf("created: %v", it.Err())
	}
	never := &stripe.ChargeListParams{Created: stripe.Int64(1), Customer: stripe.String("cus_none")}
	if it := sc.Charges.List(never); it.Next() || it.Err() != nil {
		t.Errorf("created=1: %v %v", it.Charge(), it.Err())
	}
	ofIntent := &stripe.ChargeListParams{PaymentIntent: stripe.String("pi_none")}
	if it := sc.Charges.List(ofIntent); it.Next() || it.Err() != nil {
		t.Errorf("of an intent: %v %v", it.Charge(), it.Err())
	}
	refunds := &stripe.RefundListParams{
		PaymentIntent: stripe.String("pi_none"),
		CreatedRange:  &stripe.RangeQueryParams{GreaterThan: 1},
	}
	if it := sc.Refunds.List(refunds); it.Next() || it.Err() != nil {
		t.Errorf("refunds of an intent: %v %v", it.Refund(), it.Err())
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
		p := &stripe.RefundParams{
			Charge: stripe.String(ch.ID), Amount: stripe.Int64(amount),
			Reason: stripe.String("requested_by_customer"),
		}
		p.SetIdempotencyKey(fmt.Sprint("refund-", i))
		r, err := sc.Refunds.New(p)
		if err != nil || r.Status != stripe.RefundStatusSucceeded || r.Amount != amount ||
			r.Charge.ID != ch.ID {
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
	if e := asError(err); e.HTTPStatusCode != http.StatusBadRequest ||
		e.Type != stripe.ErrorTypeInvalidRequest {
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
	if e := asError(err); !errors.As(err, &declined) ||
		declined.DeclineCode != stripe.DeclineCodeInsufficientFunds ||
		e.HTTPStatusCode != http.StatusPaymentRequired || e.ChargeID == "" || e.RequestID == "" {
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
	if e := asError(err); !errors.As(err, &reused) ||
		e.HTTPStatusCode != http.StatusUnprocessableEntity || e.Code != "idempotency_key_reused" {
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
	if e := asError(err); e.HTTPStatusCode != http.StatusUnauthorized ||
		string(e.Type) != "authentication_error" {
		t.Errorf("a wrong key: %v", err)
	}
}

// What its calls can carry and we do not take is refused by name, before anything is spent.
func TestStripeGoWhatWeLack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sc, _ := w.stripeGo(w.serve(), 0)
	expand := chargeOf("expand", 2000, "tok_visa")
	expand.AddExpand("invoice")
	transfer := chargeOf("transfer", 2000, "tok_visa")
	transfer.TransferGroup = stripe.String("g")
	read := &stripe.ChargeParams{}
	read.AddExpand("invoice")
	connected := chargeOf("connected", 2000, "tok_visa")
	connected.SetStripeAccount("acct_1")
	search := &stripe.ChargeSearchParams{}
	search.Query = "metadata['order']:'1'"
	endpoint := &stripe.WebhookEndpointParams{
		URL: stripe.String("https://example.com"), EnabledEvents: stripe.StringSlice([]string{"*"}),
		APIVersion: stripe.String("2022-11-15"),
	}
	calls := []struct {
		name        string
		call        func() error
		status      int
		code, param string
	}{
		{"expand on create", func() error {
			_, err := sc.Charges.New(expand)
			return err
		}, 400, "parameter_invalid", "expand[0]"},
		{"expand on retrieve", func() error {
			_, err := sc.Charges.Get("ch_x", read)
			return err
		}, 400, "parameter_invalid", "expand[0]"},
		{"Connect", func() error {
			_, err := sc.Charges.New(transfer)
			return err
		}, 400, "parameter_unknown", "transfer_group"},
		{"an account of Connect", func() error {
			_, err := sc.Charges.New(connected)
			return err
		}, 400, "parameter_unknown", "Stripe-Account"},
		{"balance", func() error {
			_, err := sc.Balance.Get(nil)
			return err
		}, 404, "route_unknown", ""},
		{"search", func() error {
			it := sc.Charges.Search(search)
			it.Next()
			return it.Err()
		}, 400, "parameter_unknown", ""},
		{"endpoints of another version", func() error {
			_, err := sc.WebhookEndpoints.New(endpoint)
			return err
		}, 400, "parameter_invalid", "api_version"},
		{"endpoints of Connect", func() error {
			_, err := sc.WebhookEndpoints.New(&stripe.WebhookEndpointParams{
				URL: endpoint.URL, EnabledEvents: endpoint.EnabledEvents,
				Connect: stripe.Bool(true),
			})
			return err
		}, 400, "parameter_invalid", "connect"},
		{"payment intents of Connect", func() error {
			_, err := sc.PaymentIntents.New(&stripe.PaymentIntentParams{
				Amount: stripe.Int64(1), OnBehalfOf: stripe.String("acct_1"),
			})
			return err
		}, 400, "parameter_unknown", "on_behalf_of"},
	}
	for _, c := range calls {
		e := asError(c.call())
		if e.HTTPStatusCode != c.status || string(e.Code) != c.code || c.param != "" &&
			e.Param != c.param || e.Type != stripe.ErrorTypeInvalidRequest {
			t.Errorf("%s: %d %s %q %s", c.name, e.HTTPStatusCode, e.Code, e.Param, e.Msg)
		}
	}
	if n := w.sim.stats().ChargeRequests; n != 0 {
		t.Errorf("%d charges were asked for", n)
	}
}

// Events are listed, the oldest first, and retrieved.
func TestStripeGoEvents(t *testing.T) {
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
			if got, err := sc.Events.Get(it.Event().ID, nil); err != nil ||
				got.ID != it.Event().ID {
				t.Errorf("retrieved %+v %v", got, err)
			}
		}
		if it.Err() != nil || !slices.Equal(amounts, want) {
			t.Errorf("order %q: %v %v", order, amounts, it.Err())
		}
	}
	tryEventFilters(t, sc)
}
