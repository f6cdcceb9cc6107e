package stripe_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"paidonce/provider"
	"paidonce/provider/stripe"
)

const testKey = "sk_test_51Secret0000000000000000"

func connect(t *testing.T, url string) *stripe.Provider {
	t.Helper()
	p, err := stripe.New(stripe.Config{APIKey: testKey, BaseURL: url, Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// answering is a Stripe that says one thing.
func answering(t *testing.T, status int, header map[string]string, body string) *stripe.Provider {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Request-Id", "req_1")
		for k, v := range header {
			w.Header().Set(k, v)
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(s.Close)
	return connect(t, s.URL)
}

var ordinary = provider.ChargeRequest{
	IdempotencyKey: "po_1", Tags: provider.Tags{Operation: "op_1", Installation: "in_1"}, Amount: 2000, Currency: "usd",
	Source: "tok_visa", Capture: true,
}

func stripeError(kind, rest string) string {
	return fmt.Sprintf(`{"error":{"type":%q,"message":"Because."%s}}`, kind, rest)
}

// goodCharge is the answer to ordinary, with changes.
func goodCharge(changes ...string) string {
	s := `{"id":"ch_1","object":"charge","status":"succeeded","amount":2000,"amount_captured":2000,"amount_refunded":0,` +
		`"currency":"usd","captured":true,"disputed":false,"livemode":false,"created":1700000000,` +
		`"metadata":{"paidonce_operation":"op_1","paidonce_installation":"in_1"}}`
	return strings.NewReplacer(changes...).Replace(s)
}

func TestTable(t *testing.T) {
	const html = "<html>Bad Gateway</html>"
	for _, c := range []struct {
		name   string
		status int
		body   string
		want   string // charge, decline, refusal, or a kind
	}{
		{"charge", 200, goodCharge(), "charge"},
		{"failed charge", 200, goodCharge("succeeded", "failed"), "charge"},
		{"pending charge", 200, goodCharge("succeeded", "pending"), "charge"},
		{"card error", 402, stripeError("card_error", `,"code":"card_declined","decline_code":"lost_card","charge":"ch_9"`), "decline"},
		{"402 of another type", 402, stripeError("invalid_request_error", ""), "decline"},
		{"402 of an unknown type", 402, stripeError("new_error", ""), "decline"},
		{"402 without a type", 402, `{"error":{"message":"Because."}}`, "decline"},
		{"402 without an error", 402, `{"message":"Because."}`, "unknown"},
		{"402 with an error in words", 402, `{"error":"declined"}`, "unknown"},
		{"402 without JSON", 402, html, "unknown"},
		{"402 that names a lock", 402, stripeError("card_error", `,"code":"lock_timeout"`), "rate_limited"},
		{"402 without a body", 402, "", "unknown"},
		{"card error under 400", 400, stripeError("card_error", ""), "decline"},
		{"card error under 404", 404, stripeError("card_error", ""), "unknown"},
		{"card error under 422", 422, stripeError("card_error", ""), "unknown"},
		{"card error under 500", 500, stripeError("card_error", ""), "stored_failure"},
		{"invalid request", 400, stripeError("invalid_request_error", `,"param":"source"`), "refusal"},
		{"missing", 404, stripeError("invalid_request_error", `,"code":"resource_missing"`), "refusal"},
		{"unprocessable", 422, stripeError("invalid_request_error", ""), "refusal"},
		{"400 without a type", 400, `{"error":{"message":"Because."}}`, "refusal"},
		{"404 without a type", 404, `{"error":{"message":"Because."}}`, "refusal"},
		{"422 without a type", 422, `{"error":{"type":null}}`, "refusal"},
		{"405 without a type", 405, `{"error":{"message":"Because."}}`, "unknown"},
		{"500 without a type", 500, `{"error":{"message":"Because."}}`, "stored_failure"},
		{"400 with an error in words", 400, `{"error":"bad"}`, "unknown"},
		{"400 without an error", 400, `{"message":"bad"}`, "unknown"},
		{"400 api error", 400, stripeError("api_error", ""), "unknown"},
		{"400 of an unknown type", 400, stripeError("new_error", ""), "unknown"},
		{"400 without JSON", 400, html, "unknown"},
		{"404 of a gateway", 404, html, "unknown"},
		{"405", 405, stripeError("invalid_request_error", ""), "unknown"},
		{"408", 408, stripeError("invalid_request_error", ""), "unknown"},
		{"424", 424, stripeError("api_error", ""), "unknown"},
		{"other parameters", 400, stripeError("idempotency_error", ""), "conflict"},
		{"other parameters, unprocessable", 422, stripeError("idempotency_error", ""), "conflict"},
		{"key in use", 409, stripeError("invalid_request_error", `,"code":"idempotency_key_in_use"`), "in_flight"},
		{"key in use as idempotency error", 409, stripeError("idempotency_error", ""), "in_flight"},
		{"key in use under 400", 400, stripeError("idempotency_error", `,"code":"idempotency_key_in_use"`), "in_flight"},
		{"409 without JSON", 409, html, "in_flight"},
		{"unauthorised", 401, stripeError("invalid_request_error", ""), "credentials"},
		{"401 without JSON", 401, html, "credentials"},
		{"forbidden", 403, stripeError("invalid_request_error", ""), "credentials"},
		{"rate limit", 429, stripeError("invalid_request_error", `,"code":"rate_limit"`), "rate_limited"},
		{"lock timeout", 429, stripeError("invalid_request_error", `,"code":"lock_timeout"`), "rate_limited"},
		{"500", 500, stripeError("api_error", ""), "stored_failure"},
		{"500 that names an invalid request", 500, stripeError("invalid_request_error", ""), "stored_failure"},
		{"502 without JSON", 502, html, "unknown"},
		{"503", 503, "", "unknown"},
		{"503 of Stripe's", 503, stripeError("api_error", ""), "unknown"},
		{"504", 504, html, "unknown"},
		{"302", 302, goodCharge(), "unknown"},
		{"304", 304, "", "unknown"},
		{"200 without a body", 200, "", "unknown"},
		{"200 null", 200, "null", "unknown"},
		{"200 empty object", 200, "{}", "unknown"},
		{"200 list", 200, "[]", "unknown"},
		{"200 string", 200, `"ok"`, "unknown"},
		{"200 not JSON", 200, html, "unknown"},
		{"200 half", 200, goodCharge()[:150], "unknown"},
		{"200 twice", 200, goodCharge() + goodCharge(), "unknown"},
		{"200 error", 200, stripeError("card_error", ""), "unknown"},
		{"200 of another object", 200, goodCharge(`"charge"`, `"refund"`), "unknown"},
		{"200 without an id", 200, goodCharge("ch_1", ""), "unknown"},
		{"200 without a status", 200, goodCharge(`"status"`, `"state"`), "unknown"},
		{"200 with a new status", 200, goodCharge("succeeded", "simmering"), "unknown"},
		{"200 without an amount", 200, goodCharge(`"amount":2000,`, ""), "charge"},
		{"200 with a broken amount", 200, goodCharge(`"amount":2000`, `"amount":2000.5`), "unknown"},
		{"200 with an object for an amount", 200, goodCharge(`"amount":2000`, `"amount":{}`), "unknown"},
		{"200 with captured in words", 200, goodCharge(`"captured":true`, `"captured":"true"`), "unknown"},
		{"200 with a captured amount in words", 200, goodCharge(`"amount_captured":2000`, `"amount_captured":"2000"`), "unknown"},
		{"200 with a refunded amount in words", 200, goodCharge(`"amount_refunded":0`, `"amount_refunded":"0"`), "unknown"},
		{"200 with livemode in words", 200, goodCharge(`"livemode":false`, `"livemode":"false"`), "unknown"},
		{"200 with a number for an id", 200, goodCharge(`"ch_1"`, `1`), "unknown"},
		{"200 with a number for a status", 200, goodCharge(`"succeeded"`, `1`), "unknown"},
		{"200 with a number for a currency", 200, goodCharge(`"usd"`, `1`), "conflict"},
		{"200 with an amount in words", 200, goodCharge(`"amount":2000`, `"amount":"2000"`), "unknown"},
		{"200 with names in other letters", 200, goodCharge(`"amount":2000`, `"Amount":7`), "charge"},
		{"200 over another amount", 200, goodCharge(`"amount":2000`, `"amount":2001`), "conflict"},
		{"200 in another currency", 200, goodCharge("usd", "eur"), "conflict"},
		{"200 in live mode", 200, goodCharge(`"livemode":false`, `"livemode":true`), "conflict"},
		{"200 of another operation", 200, goodCharge("op_1", "op_2"), "conflict"},
		{"200 of another installation", 200, goodCharge("in_1", "in_2"), "conflict"},
		{"200 without metadata", 200, goodCharge(`"metadata"`, `"other"`), "charge"},
		{"200 with one tag, another's", 200, goodCharge("op_1", "op_2", `,"paidonce_installation":"in_1"`, ""), "conflict"},
		{"200 with a number for a tag", 200, goodCharge(`"op_1"`, "1"), "conflict"},
		{"200 of more than 1 MiB", 200, goodCharge("{\"id\"", `{"x":"`+strings.Repeat("x", 1<<20)+`","id"`), "unknown"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := answering(t, c.status, nil, c.body)
			out, err := p.Charge(context.Background(), &ordinary)
			if got := verdict(out, err); got != c.want {
				t.Fatalf("got %s (%+v, %v), want %s", got, out, err, c.want)
			}
			var e *provider.Error
			if errors.As(err, &e) {
				if e.HTTPStatus != c.status || e.RequestID != "req_1" {
					t.Errorf("got %+v", e)
				}
				if strings.Contains(e.Message, "<html>") || strings.Contains(e.Message, "op_1") {
					t.Errorf("the message quotes the answer: %s", e.Message)
				}
			} else if out.RequestID != "req_1" {
				t.Errorf("request id %q", out.RequestID)
			}
		})
	}
}

func verdict(out provider.ChargeOutcome, err error) string {
	var e *provider.Error
	switch {
	case errors.As(err, &e) && out == (provider.ChargeOutcome{}):
		return string(e.Kind)
	case err != nil:
		return "an error beside an outcome"
	case out.Charge != nil && out.Refusal == nil:
		return "charge"
	case out.Refusal != nil && out.Charge == nil && out.Refusal.Decline:
		return "decline"
	case out.Refusal != nil && out.Charge == nil:
		return "refusal"
	}
	return "neither"
}

// Only what the key gives forever is a stored failure: the caller stops sending after two of them.
func TestStoredFailure(t *testing.T) {
	for _, c := range []struct {
		status   int
		replayed string
		stored   bool
	}{
		{500, "", true}, {500, "true", true}, {502, "", false}, {503, "", false}, {504, "", false}, {503, "true", true}, {502, "true", true},
		{503, "false", false}, {429, "true", false}, {302, "", false}, {302, "true", true}, {204, "", false}, {204, "true", true}, {409, "true", false},
	} {
		_, err := answering(t, c.status, map[string]string{"Idempotent-Replayed": c.replayed}, "").Charge(context.Background(), &ordinary)
		kind := provider.KindOf(err)
		if (kind == provider.StoredFailure) != c.stored || c.status >= 500 && !c.stored && kind != provider.Unknown {
			t.Errorf("%d, replayed %q: %+v", c.status, c.replayed, err)
		}
	}
}

// A read moves nothing, so what matters of an answer that doesn't tell is whether asking again may
// help.
func TestReadTable(t *testing.T) {
	const html = "<html>Bad Gateway</html>"
	for _, c := range []struct {
		name   string
		status int
		body   string
		want   provider.Kind // empty: there is no such charge
	}{
		{"missing", 404, stripeError("invalid_request_error", `,"code":"resource_missing"`), ""},
		{"missing in our mode", 404, `{"error":{"type":"invalid_request_error","code":"resource_missing","message":"No such charge; a similar object exists in live mode"}}`, provider.Credentials},
		{"404 of another kind", 404, stripeError("invalid_request_error", ""), provider.Unsupported},
		{"404 of a gateway", 404, html, provider.Unsupported},
		{"405", 405, "", provider.Unsupported},
		{"501", 501, html, provider.Unsupported},
		{"unauthorised", 401, html, provider.Credentials},
		{"forbidden", 403, stripeError("invalid_request_error", ""), provider.Credentials},
		{"rate limit", 429, "", provider.RateLimited},
		{"a proxy's", 407, "", provider.NotExecuted},
		{"500", 500, stripeError("api_error", ""), provider.Unknown},
		{"502", 502, html, provider.Unknown},
		{"503", 503, "", provider.Unknown},
		{"refused", 400, stripeError("invalid_request_error", ""), provider.Unreadable},
		{"302", 302, goodCharge(), provider.Unreadable},
		{"200 not JSON", 200, html, provider.Unreadable},
		{"200 of another object", 200, goodCharge(`"charge"`, `"refund"`), provider.Unreadable},
		{"200 of another charge", 200, goodCharge("ch_1", "ch_2"), provider.Conflict},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := answering(t, c.status, map[string]string{"Idempotent-Replayed": "true"}, c.body).GetCharge(context.Background(), "ch_1")
			if got != nil || provider.KindOf(err) != c.want || (err == nil) != (c.want == "") {
				t.Errorf("got %+v, %v, want %q", got, err, c.want)
			}
		})
	}
}

func TestDeclineIsToldWhole(t *testing.T) {
	p := answering(t, 402, nil, stripeError("card_error", `,"code":"card_declined","decline_code":"lost_card","charge":"ch_9","param":"number"`))
	out, err := p.Charge(context.Background(), &ordinary)
	want := provider.Refusal{Decline: true, ChargeID: "ch_9", Code: "card_declined", DeclineCode: "lost_card", Message: "Because.", Param: "number"}
	if err != nil || out.Refusal == nil || *out.Refusal != want {
		t.Fatalf("got %+v, %v", out.Refusal, err)
	}
}

func TestRetryAfter(t *testing.T) {
	for header, want := range map[string]time.Duration{"7": 7 * time.Second, "": 0, "soon": 0, "-1": 0, "99999": time.Hour} {
		_, err := answering(t, 429, map[string]string{"Retry-After": header}, "").Charge(context.Background(), &ordinary)
		var e *provider.Error
		if !errors.As(err, &e) || e.RetryAfter != want {
			t.Errorf("%q: got %v, want %v", header, e, want)
		}
	}
	// A date is one by Stripe's clock, whatever ours says.
	theirs := map[string]string{"Retry-After": "Sun, 06 Nov 1994 08:49:37 GMT", "Date": "Sun, 06 Nov 1994 08:49:07 GMT"}
	var e *provider.Error
	if _, err := answering(t, 429, theirs, "").Charge(context.Background(), &ordinary); !errors.As(err, &e) || e.RetryAfter != 30*time.Second {
		t.Errorf("a date: %v", e)
	}
}

// A text of Stripe's must not break the path that stores it, nor carry a key into a log.
func TestTextsAreCleaned(t *testing.T) {
	dirty := "a\x00b\xffc\\u0000d\\nInvalid API Key provided: sk_test_*****abcd or " + testKey + " rk_live_xyz. " + strings.Repeat("ü", 600)
	for _, status := range []int{400, 401, 402, 500} {
		kind := map[int]string{402: "card_error"}[status]
		if kind == "" {
			kind = "invalid_request_error"
		}
		body := `{"error":{"type":"` + kind + `","message":"` + strings.ReplaceAll(dirty, "\x00", `\u0000`) + `","code":"x\u0000y"}}`
		out, err := answering(t, status, nil, body).Charge(context.Background(), &ordinary)
		var text, code string
		var e *provider.Error
		if errors.As(err, &e) {
			text, code = e.Message, e.Code
		} else if out.Refusal != nil {
			text, code = out.Refusal.Message, out.Refusal.Code
		}
		if text == "" || !utf8.ValidString(text) || len(text) > 500 || strings.ContainsAny(text+code, "\x00\n") {
			t.Errorf("%d: %q %q", status, text, code)
		}
		if strings.Contains(text, "abcd") || strings.Contains(text, "Secret") || strings.Contains(text, "xyz") {
			t.Errorf("%d: a key is in %q", status, text)
		}
	}
}

func TestConfiguration(t *testing.T) {
	for name, cfg := range map[string]stripe.Config{
		"no key":          {},
		"publishable key": {APIKey: "pk_test_1"},
		"key with space":  {APIKey: "sk_test_1 "},
		"scheme":          {APIKey: "sk_test_1", BaseURL: "ftp://x"},
		"no host":         {APIKey: "sk_test_1", BaseURL: "http://"},
		"user":            {APIKey: "sk_test_1", BaseURL: "http://me:pw@x"},
		"query":           {APIKey: "sk_test_1", BaseURL: "http://x?y"},
		"timeout":         {APIKey: "sk_test_1", Timeout: -1},
	} {
		if _, err := stripe.New(cfg); err == nil {
			t.Errorf("%s: accepted", name)
		} else if strings.Contains(err.Error(), "pw") {
			t.Errorf("%s: tells %v", name, err)
		}
	}
	cfg := stripe.Config{APIKey: testKey}
	if s := fmt.Sprintf("%v %+v %#v %s", cfg, cfg, cfg, cfg.LogValue()); strings.Contains(s, "Secret") {
		t.Errorf("a printed configuration shows the key: %s", s)
	}
	if _, err := stripe.New(cfg); err != nil {
		t.Error(err)
	}
}
