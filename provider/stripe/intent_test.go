package stripe_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"paidonce/provider"
)

// goodIntent is an intent over ordinary's amount, with changes.
func goodIntent(changes ...string) string {
	s := `{"id":"pi_1","object":"payment_intent","status":"requires_confirmation","amount":2000,"currency":"usd","livemode":false,` +
		`"created":1700000000,"capture_method":"automatic","latest_charge":null,"next_action":null,"last_payment_error":null,` +
		`"metadata":{"paidonce_operation":"op_1","paidonce_installation":"in_1"}}`
	return strings.NewReplacer(changes...).Replace(s)
}

// paidIntent is one that is confirmed, with its charge in full.
func paidIntent(charge ...string) string {
	return goodIntent("requires_confirmation", "succeeded", `"latest_charge":null`,
		`"latest_charge":`+goodCharge(append([]string{`"object":"charge"`, `"object":"charge","payment_intent":"pi_1"`}, charge...)...))
}

func intentVerdict(out provider.IntentOutcome, err error) string {
	if err == nil && out.Intent != nil && out.Refusal == nil {
		return "intent"
	}
	c := provider.ChargeOutcome{Refusal: out.Refusal, RequestID: out.RequestID}
	if out.Intent != nil {
		c.Charge = &provider.Charge{}
	}
	return verdict(c, err)
}

var ordinaryConfirm = provider.ConfirmRequest{IdempotencyKey: "po_2", Tags: ordinary.Tags, IntentID: "pi_1"}

type answerCase struct {
	name   string
	status int
	body   string
	want   string // intent, charge, decline, refusal, or a kind
}

// everywhere is what holds for every call about an intent, whatever it does.
var everywhere = []answerCase{
	{"card error", 402, stripeError("card_error", `,"code":"card_declined","charge":"ch_9"`), "decline"},
	{"402 without a body", 402, "", "unknown"},
	{"invalid request", 400, stripeError("invalid_request_error", ""), "refusal"},
	{"missing", 404, stripeError("invalid_request_error", `,"code":"resource_missing"`), "refusal"},
	{"404 of a gateway", 404, "<html>", "unknown"},
	{"other parameters", 400, stripeError("idempotency_error", ""), "conflict"},
	{"key in use", 409, stripeError("invalid_request_error", `,"code":"idempotency_key_in_use"`), "in_flight"},
	{"unauthorised", 401, "", "credentials"},
	{"rate limit", 429, "", "rate_limited"},
	{"500", 500, stripeError("api_error", ""), "stored_failure"},
	{"500 that names an unexpected state", 500, stripeError("invalid_request_error", `,"code":"payment_intent_unexpected_state"`), "stored_failure"},
	{"302", 302, paidIntent(), "unknown"},
	{"200 without a body", 200, "", "unknown"},
	{"200 null", 200, "null", "unknown"},
	{"200 half", 200, paidIntent()[:150], "unknown"},
	{"200 of another object", 200, goodIntent("payment_intent", "setup_intent"), "unknown"},
	{"200 with a new status", 200, goodIntent("requires_confirmation", "simmering"), "unknown"},
	{"200 with an amount in words", 200, goodIntent(`"amount":2000`, `"amount":"2000"`), "unknown"},
	{"200 with livemode in words", 200, goodIntent("false", `"false"`), "unknown"},
	{"200 without a status", 200, goodIntent(`"status"`, `"state"`), "unknown"},
	{"200 with half a charge", 200, goodIntent(`"latest_charge":null`, `"latest_charge":{"id":"ch_1"}`), "unknown"},
	{"200 with a number for a charge", 200, goodIntent(`"latest_charge":null`, `"latest_charge":7`), "unknown"},
}

func tryAnswers(t *testing.T, cases []answerCase, call func(*testing.T, answerCase) string) {
	t.Helper()
	for _, c := range append(slices.Clone(everywhere), cases...) {
		t.Run(c.name, func(t *testing.T) {
			if got := call(t, c); got != c.want {
				t.Fatalf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestCreateIntentTable(t *testing.T) {
	tryAnswers(t, []answerCase{
		{"intent", 200, goodIntent(), "intent"},
		{"without a source", 200, goodIntent("requires_confirmation", "requires_payment_method"), "intent"},
		{"with hardly anything", 200, `{"id":"pi_1","status":"requires_confirmation"}`, "intent"},
		{"over another amount", 200, goodIntent("2000", "2001"), "conflict"},
		{"in another currency", 200, goodIntent("usd", "eur"), "conflict"},
		{"in live mode", 200, goodIntent("false", "true"), "conflict"},
		{"of another operation", 200, goodIntent("op_1", "op_2"), "conflict"},
		{"of another installation", 200, goodIntent("in_1", "in_2"), "conflict"},
		{"to be captured by hand", 200, goodIntent("automatic", "manual"), "conflict"},
		{"paid already", 200, paidIntent(), "conflict"},
		{"with a charge", 200, goodIntent(`"latest_charge":null`, `"latest_charge":"ch_1"`), "conflict"},
	}, func(t *testing.T, c answerCase) string {
		return intentVerdict(answering(t, c.status, nil, c.body).CreateIntent(context.Background(), &ordinary, "https://x.example"))
	})
}

// unexpected is Stripe's error about an intent's state.
func unexpected(intent string) string {
	return stripeError("invalid_request_error", `,"code":"payment_intent_unexpected_state"`+intent)
}

func TestConfirmIntentTable(t *testing.T) {
	shown := func(status string) string { return `,"payment_intent":` + goodIntent("requires_confirmation", status) }
	failed := `,"payment_intent":` + goodIntent("requires_confirmation", "requires_payment_method", `"last_payment_error":null`,
		`"last_payment_error":{"type":"card_error","code":"card_declined","charge":"ch_9","message":"No."}`)
	tryAnswers(t, []answerCase{
		{"paid", 200, paidIntent(), "intent"},
		{"paid, charge not expanded", 200, goodIntent("requires_confirmation", "succeeded", `"latest_charge":null`, `"latest_charge":"ch_1"`), "intent"},
		{"paid, with hardly anything of the charge", 200, goodIntent("requires_confirmation", "succeeded", `"latest_charge":null`,
			`"latest_charge":{"id":"ch_1","status":"succeeded"}`), "intent"},
		{"paid, without an amount but the charge's", 200, strings.Replace(paidIntent(), `"amount":2000,`, "", 1), "intent"},
		{"paid, without an amount", 200, goodIntent("requires_confirmation", "succeeded", `"amount":2000,`, ""), "unknown"},
		{"paid, without a currency", 200, goodIntent("requires_confirmation", "succeeded", `"currency":"usd",`, ""), "unknown"},
		{"to be authenticated", 200, goodIntent("requires_confirmation", "requires_action"), "intent"},
		{"processing", 200, goodIntent("requires_confirmation", "processing"), "intent"},
		{"another intent", 200, goodIntent("pi_1", "pi_2"), "conflict"},
		{"of another operation", 200, goodIntent("op_1", "op_2"), "conflict"},
		{"charge over another amount", 200, paidIntent(`"amount":2000`, `"amount":2001`), "conflict"},
		{"charge in another currency", 200, paidIntent("usd", "eur"), "conflict"},
		{"charge of another intent", 200, strings.Replace(paidIntent(), `"payment_intent":"pi_1"`, `"payment_intent":"pi_2"`, 1), "conflict"},
		{"charge of another operation", 200, paidIntent("op_1", "op_2"), "conflict"},
		{"charge in live mode", 200, paidIntent(`"livemode":false`, `"livemode":true`), "conflict"},
		// Past the window of a key our own confirmation is refused because of what it did.
		{"unexpected: paid", 400, unexpected(shown("succeeded")), "stored_failure"},
		{"unexpected: authorised", 400, unexpected(shown("requires_capture")), "stored_failure"},
		{"unexpected: being authenticated", 400, unexpected(shown("requires_action")), "stored_failure"},
		{"unexpected: not shown", 400, unexpected(""), "stored_failure"},
		{"unexpected: another intent", 400, unexpected(strings.Replace(shown("canceled"), "pi_1", "pi_2", 1)), "stored_failure"},
		{"unexpected: canceled", 400, unexpected(shown("canceled")), "refusal"},
		{"unexpected: no source", 400, unexpected(shown("requires_payment_method")), "refusal"},
		{"unexpected: declined before", 400, unexpected(failed), "decline"},
	}, func(t *testing.T, c answerCase) string {
		return intentVerdict(answering(t, c.status, nil, c.body).ConfirmIntent(context.Background(), ordinaryConfirm))
	})
	// The charge of a decline, where only the intent names it.
	body := stripeError("card_error", `,"code":"card_declined","payment_intent":`+goodIntent(`"latest_charge":null`, `"latest_charge":"ch_9"`))
	out, err := answering(t, 402, nil, body).ConfirmIntent(context.Background(), ordinaryConfirm)
	if err != nil || out.Refusal == nil || out.Refusal.ChargeID != "ch_9" {
		t.Errorf("got %+v, %v", out.Refusal, err)
	}
}

func TestCaptureIntentTable(t *testing.T) {
	shown := func(status string) string { return `,"payment_intent":` + goodIntent("requires_confirmation", status) }
	r := provider.CaptureRequest{IdempotencyKey: "po_3", Tags: ordinary.Tags, ChargeID: "ch_1", Amount: 2000, IntentID: "pi_1"}
	tryAnswers(t, []answerCase{
		{"captured", 200, paidIntent(), "charge"},
		{"with hardly anything", 200, `{"id":"pi_1","status":"succeeded","latest_charge":{"id":"ch_1","status":"succeeded"}}`, "charge"},
		{"charge in words", 200, paidIntent(`"captured":true`, `"captured":"true"`), "unknown"},
		{"without a charge", 200, goodIntent("requires_confirmation", "succeeded"), "unknown"},
		{"charge not expanded", 200, goodIntent("requires_confirmation", "succeeded", `"latest_charge":null`, `"latest_charge":"ch_1"`), "unknown"},
		{"another intent", 200, strings.ReplaceAll(paidIntent(), "pi_1", "pi_2"), "conflict"},
		{"another charge", 200, paidIntent("ch_1", "ch_2"), "conflict"},
		{"of another amount", 200, paidIntent(`"amount_captured":2000`, `"amount_captured":1999`), "conflict"},
		{"not captured", 200, paidIntent(`"captured":true`, `"captured":false`), "conflict"},
		{"unexpected: captured", 400, unexpected(shown("succeeded")), "refusal"},
		{"unexpected: canceled", 400, unexpected(shown("canceled")), "refusal"},
		{"unexpected: processing", 400, unexpected(shown("processing")), "stored_failure"},
		{"unexpected: not shown", 400, unexpected(""), "stored_failure"},
	}, func(t *testing.T, c answerCase) string {
		out, err := answering(t, c.status, nil, c.body).Capture(context.Background(), r)
		if c.name == "unexpected: captured" && (out.Refusal == nil || out.Refusal.Code != "charge_already_captured") {
			t.Errorf("got %+v", out.Refusal)
		}
		return verdict(out, err)
	})
}

// seenRequest is one request as it was on the wire.
type seenRequest struct {
	method, path, query, key string
	form                     url.Values
}

// recording is a Stripe that answers by path, and what it was asked.
func recording(t *testing.T, answers map[string]string) (string, *[]seenRequest) {
	t.Helper()
	seen := &[]seenRequest{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		form, err := url.ParseQuery(string(body))
		if err != nil {
			t.Error(err)
		}
		*seen = append(*seen, seenRequest{r.Method, r.URL.Path, r.URL.RawQuery, strings.Join(r.Header.Values("Idempotency-Key"), "|"), form})
		if a, there := answers[r.URL.Path]; there {
			_, _ = io.WriteString(w, a)
			return
		}
		w.WriteHeader(http.StatusInternalServerError)
	}))
	t.Cleanup(s.Close)
	return s.URL, seen
}

func TestIntentsOnTheWire(t *testing.T) {
	base, seen := recording(t, map[string]string{
		"/v1/customers/cus_1": `{"id":"cus_1","object":"customer","default_source":"card_1","invoice_settings":{"default_payment_method":"pm_2"}}`,
		"/v1/customers/cus_2": `{"id":"cus_2","object":"customer","default_source":null,"invoice_settings":{"default_payment_method":"pm_2"}}`,
		"/v1/customers/cus_3": `{"id":"cus_3","object":"customer","deleted":true}`,
	})
	p, ctx := connect(t, base), context.Background()
	r := ordinary
	r.Metadata = map[string]string{"a": "1", "paidonce_operation": "forged"}
	r.Description, r.ReceiptEmail, r.StatementDescriptorSuffix = "A book", "a@example.com", "BOOK"
	r.Shipping = &provider.Shipping{Name: "Jenny", Address: provider.Address{City: "London"}}
	_, _ = p.CreateIntent(ctx, &r, "https://shop.example/back")
	r.Source, r.Capture = "pm_card_visa", false
	_, _ = p.CreateIntent(ctx, &r, "")
	for _, customer := range []string{"cus_1", "cus_2", "cus_3"} {
		r.Source, r.Customer = "", customer
		_, _ = p.CreateIntent(ctx, &r, "")
	}
	confirm := ordinaryConfirm
	const back = "https://shop.example/back?a=b&c"
	confirm.ReturnURL = back
	_, _ = p.ConfirmIntent(ctx, confirm)
	confirm.ReturnURL, confirm.OffSession = "", true
	_, _ = p.ConfirmIntent(ctx, confirm)
	_, _ = p.Capture(ctx, provider.CaptureRequest{IdempotencyKey: "po_3", Tags: ordinary.Tags, IntentID: "pi_1", ChargeID: "ch_1", Amount: 5})
	_, _ = p.GetIntent(ctx, "pi/1")

	var posts []seenRequest
	for _, s := range *seen {
		if s.method == http.MethodPost {
			posts = append(posts, s)
		}
	}
	want := []string{
		"po_1 /v1/payment_intents", "po_1 /v1/payment_intents", "po_1 /v1/payment_intents", "po_1 /v1/payment_intents", "po_1 /v1/payment_intents",
		"po_2 /v1/payment_intents/pi_1/confirm", "po_2 /v1/payment_intents/pi_1/confirm", "po_3 /v1/payment_intents/pi_1/capture",
	}
	if len(posts) != len(want) {
		t.Fatalf("%d POSTs: %+v", len(posts), posts)
	}
	for i, s := range posts {
		if s.key+" "+s.path != want[i] {
			t.Errorf("%d: %s %s", i, s.key, s.path)
		}
	}
	first := url.Values{
		"amount": {"2000"}, "currency": {"usd"}, "capture_method": {"automatic"}, "payment_method_types[]": {"card"},
		"payment_method_data[type]": {"card"}, "payment_method_data[card][token]": {"tok_visa"}, "description": {"A book"},
		"receipt_email": {"a@example.com"}, "statement_descriptor_suffix": {"BOOK"}, "shipping[name]": {"Jenny"}, "shipping[address][city]": {"London"}, "metadata[a]": {"1"},
		"metadata[paidonce_operation]": {"op_1"}, "metadata[paidonce_installation]": {"in_1"},
	}
	if got, want := posts[0].form.Encode(), first.Encode(); got != want {
		t.Errorf("sent\n%s, want\n%s", got, want)
	}
	for i, method := range map[int]string{1: "pm_card_visa", 2: "card_1", 3: "pm_2", 4: ""} {
		f := posts[i].form
		if f.Get("payment_method") != method || f.Has("payment_method_data[type]") || f.Get("capture_method") != "manual" || f.Has("customer") != (i > 1) {
			t.Errorf("%d: %v", i, f)
		}
	}
	if got := posts[5].form.Encode(); got != (url.Values{"return_url": {back}, "expand[]": {"latest_charge"}}).Encode() {
		t.Errorf("confirm: %s", got)
	}
	if got := posts[6].form.Encode(); got != (url.Values{"off_session": {"true"}, "expand[]": {"latest_charge"}}).Encode() {
		t.Errorf("confirm off session: %s", got)
	}
	if got := posts[7].form.Encode(); got != (url.Values{"amount_to_capture": {"5"}, "expand[]": {"latest_charge"}}).Encode() {
		t.Errorf("capture: %s", got)
	}
	last := (*seen)[len(*seen)-1]
	if q, _ := url.ParseQuery(last.query); last.method != http.MethodGet || last.path != "/v1/payment_intents/pi/1" || q.Get("expand[]") != "latest_charge" {
		t.Errorf("get: %+v", last)
	}
}

// A customer who can't be read has executed nothing, and is no server error of the POST's key.
func TestIntentCustomerUnreadable(t *testing.T) {
	r := ordinary
	r.Source, r.Customer = "", "cus_1"
	for status, body := range map[int]string{
		500: "", 429: "", 401: "", 302: "", 200: `{"id":"cus_2","object":"customer"}`, 203: `{"id":"cus_1","object":"account"}`, 400: stripeError("invalid_request_error", ""),
	} {
		_, err := answering(t, status, nil, body).CreateIntent(context.Background(), &r, "")
		var e *provider.Error
		want := provider.NotExecuted
		switch status {
		case 401:
			want = provider.Credentials
		case 429:
			want = provider.RateLimited
		}
		if !errors.As(err, &e) || e.Kind != want || !strings.Contains(e.Message, "customer") {
			t.Errorf("%d: %+v", status, err)
		}
	}
}

func TestCreateIntentHasOneTimeout(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(700 * time.Millisecond) // of one second
		_, _ = io.WriteString(w, `{"id":"cus_1","object":"customer","default_source":"card_1"}`)
	}))
	defer s.Close()
	r := ordinary
	r.Source, r.Customer = "", "cus_1"
	start := time.Now()
	_, err := connect(t, s.URL).CreateIntent(context.Background(), &r, "")
	if took := time.Since(start); err == nil || took > 1300*time.Millisecond {
		t.Errorf("%v after %s", err, took)
	}
}

func TestNextAction(t *testing.T) {
	long := "https://hooks.stripe.com/3d?publishable_key=pk_test_123&x=" + strings.Repeat("x", 1000)
	for address, want := range map[string]string{
		long: long, "https://bank.example/a?b=c#d": "https://bank.example/a?b=c#d", "javascript:alert(1)": "", "//x.example": "", "": "",
		"https://user:pw@x.example": "", "https://x.example/\\n": "", "https://x.example/ü": "", "https://x.example/" + strings.Repeat("x", 5000): "",
	} {
		body := goodIntent("requires_confirmation", "requires_action", `"next_action":null`,
			`"next_action":{"type":"redirect_to_url","redirect_to_url":{"url":"`+address+`","return_url":null}}`)
		i, err := answering(t, 200, nil, body).GetIntent(context.Background(), "pi_1")
		if err != nil || i == nil || i.NextAction == nil || i.NextAction.Type != "redirect_to_url" || i.NextAction.RedirectURL != want {
			t.Errorf("%.60q: %+v, %v", address, i, err)
		}
	}
	body := goodIntent("requires_confirmation", "requires_action", `"next_action":null`, `"next_action":{"type":"use_stripe_sdk","use_stripe_sdk":{"x":[]}}`)
	if i, err := answering(t, 200, nil, body).GetIntent(context.Background(), "pi_1"); err != nil || *i.NextAction != (provider.NextAction{Type: "use_stripe_sdk"}) {
		t.Errorf("%+v, %v", i, err)
	}
}

// A failure is told only where no money can have moved since.
func TestIntentFailure(t *testing.T) {
	const last = `"last_payment_error":{"type":"invalid_request_error","code":"payment_intent_authentication_failure","message":"No.\u0000 sk_live_abc"}`
	for status, told := range map[string]bool{"requires_payment_method": true, "canceled": true, "succeeded": false, "processing": false, "requires_action": false} {
		i, err := answering(t, 200, nil, goodIntent("requires_confirmation", status, `"last_payment_error":null`, last)).GetIntent(context.Background(), "pi_1")
		if err != nil || (i.Failure != nil) != told || told && (!i.Failure.Decline || strings.ContainsAny(i.Failure.Message, "\x00") || strings.Contains(i.Failure.Message, "abc")) {
			t.Errorf("%s: %+v, %v", status, i, err)
		}
	}
}

// What is in the list and isn't an intent may be the one that was looked for.
func TestFindIntentIsInconclusive(t *testing.T) {
	for body, hits := range map[string]int{
		goodIntent(): 1, goodIntent("op_1", "op_2"): 0, goodCharge(): -1, "{}": -1, goodIntent("requires_confirmation", "simmering"): -1,
		goodIntent("op_1", "op_2", "requires_confirmation", "simmering"): 0, goodCharge("in_1", "in_2"): 0, goodIntent("usd", ""): -1,
	} {
		p := answering(t, 200, nil, `{"object":"list","has_more":false,"data":[`+body+`]}`)
		got, err := p.FindIntent(context.Background(), provider.Lookup{Tags: ordinary.Tags})
		if (err != nil) != (hits < 0) || err == nil && len(got) != hits {
			t.Errorf("%s: %+v, %v", body, got, err)
		}
	}
}

func TestReads(t *testing.T) {
	refund := `{"id":"x_1","object":"refund","charge":"ch_1","amount":5,"currency":"usd","status":"failed","failure_reason":"lost_or_stolen_card","created":1700000000,"metadata":{}}`
	dispute := `{"id":"x_1","object":"dispute","charge":"ch_1","amount":5,"currency":"usd","status":"warning_needs_response","reason":"general","livemode":false,"created":1700000000}`
	for name, get := range map[string]func(*testing.T, int, string) (bool, error){
		"refund": func(t *testing.T, status int, body string) (bool, error) {
			r, err := answering(t, status, nil, body).GetRefund(context.Background(), "x_1")
			return r != nil, err
		},
		"dispute": func(t *testing.T, status int, body string) (bool, error) {
			d, err := answering(t, status, nil, body).GetDispute(context.Background(), "x_1")
			return d != nil, err
		},
		"intent": func(t *testing.T, status int, body string) (bool, error) {
			i, err := answering(t, status, nil, body).GetIntent(context.Background(), "x_1")
			return i != nil, err
		},
	} {
		good := map[string]string{"refund": refund, "dispute": dispute, "intent": goodIntent("pi_1", "x_1")}[name]
		for about, c := range map[string]struct {
			status int
			body   string
			fine   bool
		}{
			"there":        {200, good, true},
			"another":      {200, strings.Replace(good, "x_1", "x_2", 1), false},
			"no amount":    {200, strings.Replace(good, `"amount"`, `"Amount"`, 1), false},
			"no currency":  {200, strings.Replace(good, `"currency"`, `"Currency"`, 1), false},
			"no object":    {200, strings.Replace(good, `"object"`, `"Object"`, 1), true},
			"no livemode":  {200, strings.Replace(good, `"livemode"`, `"Livemode"`, 1), true},
			"other object": {200, goodCharge("ch_1", "x_1"), false},
			"missing":      {404, stripeError("invalid_request_error", `,"code":"resource_missing"`), true},
			"gateway":      {404, "<html>", false},
			"other mode":   {404, `{"error":{"type":"invalid_request_error","code":"resource_missing","message":"No such thing; a similar object exists in live mode"}}`, false},
			"server error": {500, "", false},
		} {
			there, err := get(t, c.status, c.body)
			if (err == nil) != c.fine || there != (c.fine && c.status == 200) {
				t.Errorf("%s, %s: %t, %v", name, about, there, err)
			}
		}
	}
}
