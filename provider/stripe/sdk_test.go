package stripe_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"testing"
	"time"

	sdk "github.com/stripe/stripe-go/v76"
	"github.com/stripe/stripe-go/v76/client"
	"github.com/stripe/stripe-go/v76/webhook"

	"paidonce/provider"
	"paidonce/provider/stripe"
	"paidonce/provider/stripesim"
)

// TestSDKReadsSimulator has stripe-go itself, which knows every field of Stripe's objects, read the
// simulator's: the simulator may not be like Stripe only in what our adapter looks at.
func TestSDKReadsSimulator(t *testing.T) {
	sim, err := stripesim.New(stripesim.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer sim.Close()
	server := httptest.NewServer(sim)
	defer server.Close()
	quiet := &sdk.LeveledLogger{Level: sdk.LevelNull}
	backend := sdk.GetBackendWithConfig(sdk.APIBackend, &sdk.BackendConfig{URL: &server.URL, LeveledLogger: quiet, MaxNetworkRetries: sdk.Int64(0)})
	api := client.New("sk_test_1", &sdk.Backends{API: backend, Connect: backend, Uploads: backend})

	cust, err := api.Customers.New(&sdk.CustomerParams{Email: sdk.String("a@example.com"), Source: sdk.String("tok_visa")})
	if err != nil || cust.Email != "a@example.com" {
		t.Fatalf("%+v, %v", cust, err)
	}
	params := &sdk.ChargeParams{Amount: sdk.Int64(2000), Currency: sdk.String("usd"), Customer: &cust.ID, Capture: sdk.Bool(false)}
	params.AddMetadata("order", "7")
	params.AddExpand("balance_transaction")
	c, err := api.Charges.New(params)
	if err != nil || c.Status != sdk.ChargeStatusSucceeded || c.Metadata["order"] != "7" || c.Customer.ID != cust.ID || c.Captured ||
		c.PaymentMethodDetails.Card.Last4 != "4242" || c.Outcome.NetworkStatus != "approved_by_network" || c.BillingDetails == nil {
		t.Fatalf("%+v, %v", c, err)
	}
	if c, err = api.Charges.Capture(c.ID, nil); err != nil || !c.Captured || c.BalanceTransaction == nil {
		t.Fatalf("%+v, %v", c, err)
	}
	re, err := api.Refunds.New(&sdk.RefundParams{Charge: &c.ID, Amount: sdk.Int64(500), Reason: sdk.String("duplicate")})
	if err != nil || re.Status != sdk.RefundStatusSucceeded || re.Charge.ID != c.ID {
		t.Fatalf("%+v, %v", re, err)
	}
	_, err = api.Charges.New(&sdk.ChargeParams{Amount: sdk.Int64(2000), Currency: sdk.String("usd"), Source: &sdk.PaymentSourceSourceParams{Token: sdk.String("tok_chargeDeclined")}})
	var e *sdk.Error
	if !errors.As(err, &e) || e.Type != sdk.ErrorTypeCard || e.Code != sdk.ErrorCodeCardDeclined || e.ChargeID == "" || e.HTTPStatusCode != 402 || e.RequestID == "" {
		t.Fatalf("got %v, want 402", err)
	}
	n := 0
	list := api.Charges.List(&sdk.ChargeListParams{ListParams: sdk.ListParams{Limit: sdk.Int64(1)}})
	for list.Next() {
		n++
	}
	found := api.Charges.Search(&sdk.ChargeSearchParams{SearchParams: sdk.SearchParams{Query: "metadata['order']:'7'"}})
	if list.Err() != nil || n != 2 || !found.Next() || found.Charge().AmountRefunded != 500 {
		t.Fatalf("%d charges, %v, %v", n, list.Err(), found.Err())
	}
	if b, err := api.Balance.Get(nil); err != nil || len(b.Available) != 1 || b.Available[0].Amount != 1500 {
		t.Fatalf("%+v, %v", b, err)
	}
	events := api.Events.List(&sdk.EventListParams{})
	if !events.Next() || events.Event().Data.Object["object"] == nil {
		t.Fatalf("%v", events.Err())
	}
}

// TestSDKVerifiesEvents has stripe-go check the simulator's signatures and its version of the API.
func TestSDKVerifiesEvents(t *testing.T) {
	got := make(chan error, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body := make([]byte, r.ContentLength)
		for n := 0; n < len(body); {
			m, err := r.Body.Read(body[n:])
			if n += m; err != nil {
				break
			}
		}
		_, err := webhook.ConstructEvent(body, r.Header.Get("Stripe-Signature"), "whsec_test")
		got <- err
	}))
	defer receiver.Close()
	sim, err := stripesim.New(stripesim.Config{Webhooks: []stripesim.Endpoint{{URL: receiver.URL, Secret: "whsec_test"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer sim.Close()
	post(t, sim, "amount=2000&currency=usd&source=tok_visa")
	select {
	case err := <-got:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(5 * time.Second):
		t.Error("no event came")
	}
}

// stripeMock gives the address of a stripe-mock, which checks requests against Stripe's published
// description.
func stripeMock(t *testing.T) string {
	if url := os.Getenv("STRIPE_MOCK_URL"); url != "" {
		return url
	}
	path, err := exec.LookPath("stripe-mock")
	if err != nil {
		t.Skip("needs STRIPE_MOCK_URL, or stripe-mock in PATH (go install github.com/stripe/stripe-mock@v0.203.0)")
	}
	free := func() string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		return l.Addr().String()
	}
	address := free()
	// it listens for HTTPS everywhere unless told
	cmd := exec.Command(path, "-http-addr", address, "-https-addr", free())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for range 200 {
		if conn, err := net.Dial("tcp", address); err == nil {
			_ = conn.Close()
			return "http://" + address
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("stripe-mock didn't start")
	return ""
}

// TestStripeMock sends every request of the adapter to stripe-mock. It knows all parameters and
// objects of the newest API but keeps nothing: its answers are examples, over other amounts than
// asked for. So what is wanted of a call that moves money is exactly the complaint about that,
// which comes after parameters and object were found good.
func TestStripeMock(t *testing.T) {
	p, err := stripe.New(stripe.Config{APIKey: "sk_test_123", BaseURL: stripeMock(t)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, tags := context.Background(), ordinary.Tags
	r := ordinary
	r.Metadata, r.Description, r.ReceiptEmail, r.StatementDescriptorSuffix = map[string]string{"a": "b"}, "d", "a@example.com", "BOOK"
	withCustomer := r
	withCustomer.Source, withCustomer.Customer, withCustomer.Capture = "", "cus_1", false
	calls := map[string]func() error{
		"charge":          func() error { _, err := p.Charge(ctx, &r); return err },
		"customer charge": func() error { _, err := p.Charge(ctx, &withCustomer); return err },
		"capture": func() error {
			_, err := p.Capture(ctx, provider.CaptureRequest{IdempotencyKey: "k", Tags: tags, ChargeID: "ch_1", Amount: 7})
			return err
		},
		"refund": func() error {
			_, err := p.Refund(ctx, provider.RefundRequest{IdempotencyKey: "k", Tags: tags, ChargeID: "ch_1", Amount: 7, Reason: "duplicate", Metadata: r.Metadata})
			return err
		},
	}
	// Stripe takes tokens as payment_method_data[card], but its published description has it
	// nowhere.
	withMethod := r
	withMethod.Source = "pm_card_visa"
	payLater := withMethod
	payLater.PayLater, payLater.Source, payLater.SetupFutureUsage = true, "", "off_session"
	payLater.AutomaticMethods = &provider.AutomaticMethods{Enabled: true, AllowRedirects: "never"}
	for name, r := range map[string]provider.ChargeRequest{"intent": withMethod, "customer intent": withCustomer, "intent paid later": payLater} {
		calls[name] = func() error { _, err := p.CreateIntent(ctx, &r, "https://shop.example"); return err }
	}
	calls["confirm"] = func() error {
		_, err := p.ConfirmIntent(ctx, provider.ConfirmRequest{
			IdempotencyKey: "k", Tags: tags, IntentID: "pi_1", ReturnURL: "https://shop.example", Source: "pm_card_visa",
			ErrorOnRequiresAction: true, SetupFutureUsage: "on_session", ReceiptEmail: "a@example.com",
		})
		return err
	}
	calls["update"] = func() error {
		_, err := p.UpdateIntent(ctx, provider.UpdateIntentRequest{
			IdempotencyKey: "k", Tags: tags, IntentID: "pi_1", Amount: 7, Source: "pm_card_visa", SetupFutureUsage: "off_session",
			Metadata: r.Metadata, PaymentMethodTypes: []string{"card"},
		})
		return err
	}
	calls["cancel"] = func() error {
		_, err := p.CancelIntent(ctx, provider.CancelRequest{IdempotencyKey: "k", Tags: tags, IntentID: "pi_1", Reason: "abandoned"})
		return err
	}
	calls["capture of an intent"] = func() error {
		_, err := p.Capture(ctx, provider.CaptureRequest{IdempotencyKey: "k", Tags: tags, IntentID: "pi_1", ChargeID: "ch_1", Amount: 7})
		return err
	}
	for name, call := range calls {
		var e *provider.Error
		if err := call(); !errors.As(err, &e) || e.Kind != provider.Conflict || e.HTTPStatus != 200 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if c, err := p.GetCharge(ctx, "ch_1"); err != nil || c == nil {
		t.Errorf("get: %+v, %v", c, err)
	}
	if i, err := p.GetIntent(ctx, "pi_1"); err != nil || i == nil || i.Charge == nil {
		t.Errorf("get intent: %+v, %v", i, err)
	}
	if d, err := p.GetDispute(ctx, "dp_1"); err != nil || d == nil {
		t.Errorf("get dispute: %+v, %v", d, err)
	}
	if r, err := p.GetRefund(ctx, "re_1"); err != nil || r == nil {
		t.Errorf("get refund: %+v, %v", r, err)
	}
	now := time.Now()
	if hits, err := p.FindIntent(ctx, provider.Lookup{Tags: tags, From: now, To: now}); err != nil || len(hits) != 0 {
		t.Errorf("find intent: %v, %v", hits, err)
	}
	if hits, err := p.FindCharge(ctx, provider.Lookup{Tags: tags, From: now, To: now}); err != nil || len(hits) != 0 {
		t.Errorf("find charge: %v, %v", hits, err)
	}
	// The example refund belongs to another charge than asked for: the adapter must not take such a
	// list for an answer.
	if hits, err := p.FindRefund(ctx, provider.Lookup{Tags: tags, ChargeID: "ch_1"}); err == nil {
		t.Errorf("find refund: %v", hits)
	}
}

// TestSDKReadsIntents is TestSDKReadsSimulator for intents and disputes.
func TestSDKReadsIntents(t *testing.T) {
	sim, err := stripesim.New(stripesim.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer sim.Close()
	server := httptest.NewServer(sim)
	defer server.Close()
	quiet := &sdk.LeveledLogger{Level: sdk.LevelNull}
	backend := sdk.GetBackendWithConfig(sdk.APIBackend, &sdk.BackendConfig{URL: &server.URL, LeveledLogger: quiet, MaxNetworkRetries: sdk.Int64(0)})
	api := client.New("sk_test_1", &sdk.Backends{API: backend, Connect: backend, Uploads: backend})

	create := func(method string) *sdk.PaymentIntent {
		t.Helper()
		params := &sdk.PaymentIntentParams{
			Amount: sdk.Int64(2000), Currency: sdk.String("usd"), PaymentMethod: sdk.String(method), CaptureMethod: sdk.String("manual"),
			PaymentMethodTypes: sdk.StringSlice([]string{"card"}),
		}
		params.AddMetadata("order", "7")
		i, err := api.PaymentIntents.New(params)
		if err != nil || i.Status != sdk.PaymentIntentStatusRequiresConfirmation || i.Metadata["order"] != "7" || i.PaymentMethod == nil || i.ClientSecret == "" {
			t.Fatalf("%+v, %v", i, err)
		}
		return i
	}
	i := create("pm_card_createDispute")
	confirm := &sdk.PaymentIntentConfirmParams{}
	confirm.AddExpand("latest_charge")
	if i, err = api.PaymentIntents.Confirm(i.ID, confirm); err != nil || i.Status != sdk.PaymentIntentStatusRequiresCapture || i.AmountCapturable != 2000 ||
		i.LatestCharge.PaymentIntent.ID != i.ID || i.LatestCharge.Metadata["order"] != "7" || i.LatestCharge.PaymentMethodDetails.Card.Last4 != "0259" {
		t.Fatalf("%+v, %v", i, err)
	}
	if i, err = api.PaymentIntents.Capture(i.ID, nil); err != nil || i.AmountReceived != 2000 || i.LatestCharge.ID == "" {
		t.Fatalf("%+v, %v", i, err)
	}
	_, err = api.PaymentIntents.Cancel(i.ID, nil)
	var e *sdk.Error
	if !errors.As(err, &e) || e.Code != sdk.ErrorCodePaymentIntentUnexpectedState || e.PaymentIntent.Status != sdk.PaymentIntentStatusSucceeded {
		t.Fatalf("%v", err)
	}
	declined := create("pm_card_chargeDeclined")
	_, err = api.PaymentIntents.Confirm(declined.ID, nil)
	if !errors.As(err, &e) || e.Type != sdk.ErrorTypeCard || e.PaymentIntent.LastPaymentError.ChargeID != e.ChargeID || e.PaymentIntent.LatestCharge.ID != e.ChargeID {
		t.Fatalf("%v", err)
	}
	asked := create("pm_card_threeDSecure2Required")
	asked, err = api.PaymentIntents.Confirm(asked.ID, &sdk.PaymentIntentConfirmParams{ReturnURL: sdk.String("https://shop.example")})
	if err != nil || asked.NextAction.Type != sdk.PaymentIntentNextActionTypeRedirectToURL || asked.NextAction.RedirectToURL.URL == "" {
		t.Fatalf("%+v, %v", asked, err)
	}
	if canceled, err := api.PaymentIntents.Cancel(asked.ID, nil); err != nil || canceled.Status != sdk.PaymentIntentStatusCanceled || canceled.NextAction != nil {
		t.Fatalf("%+v, %v", canceled, err)
	}
	if err := sim.DisputeCharge(i.LatestCharge.ID); err != nil {
		t.Fatal(err)
	}
	disputes := api.Disputes.List(&sdk.DisputeListParams{Charge: &i.LatestCharge.ID})
	if !disputes.Next() || disputes.Dispute().Status != sdk.DisputeStatusNeedsResponse || disputes.Dispute().PaymentIntent.ID != i.ID {
		t.Fatalf("%v", disputes.Err())
	}
	n := 0
	for list := api.PaymentIntents.List(&sdk.PaymentIntentListParams{ListParams: sdk.ListParams{Limit: sdk.Int64(1)}}); list.Next(); {
		n++
	}
	if n != 3 {
		t.Fatalf("%d intents", n)
	}
}
