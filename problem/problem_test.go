package problem_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"paidonce/problem"
)

// Stored answers have these very bytes, and are repeated for years.
func TestBodiesNeverChange(t *testing.T) {
	declined := &problem.Error{
		Code: problem.CardDeclined, ProviderCode: "incorrect_cvc", DeclineCode: "incorrect_cvc",
		Charge: "ch_1", Message: "Your card's <security> code & all.",
	}
	intent := *declined
	intent.PaymentIntent = map[string]string{"id": "pi_1"}
	for _, tc := range []struct {
		e    *problem.Error
		want string
	}{
		{&intent, `{"error":{"type":"card_error","code":"incorrect_cvc","message":"Your card's <security> code & all.",` +
			`"decline_code":"incorrect_cvc","charge":"ch_1","payment_intent":{"id":"pi_1"},"request_id":"req_1",` +
			`"advice":"fix_and_use_new_key"}}`},
		{declined, `{"error":{"type":"card_error","code":"incorrect_cvc","message":"Your card's <security> code & all.",` +
			`"decline_code":"incorrect_cvc","charge":"ch_1","request_id":"req_1","advice":"fix_and_use_new_key"}}`},
		{problem.CardDeclined.Of("", "No."), `{"error":{"type":"card_error","code":"card_declined","message":"No.",` +
			`"request_id":"req_1","advice":"fix_and_use_new_key"}}`},
		{problem.ProviderRefused.Of("source", "No."), `{"error":{"type":"invalid_request_error","message":"No.","param":"source",` +
			`"request_id":"req_1","advice":"fix_and_use_new_key"}}`},
		{problem.ChargeNeverMade.Because(errors.New("x")), `{"error":{"type":"api_error","code":"charge_never_made",` +
			`"message":"The payment provider never made this charge, and no money moved. The same request under the same key makes a new one.",` +
			`"request_id":"req_1","advice":"retry_same_key"}}`},
	} {
		if got := string(tc.e.Body("req_1")); got != tc.want+"\n" {
			t.Errorf("got %s\nwant %s", got, tc.want)
		}
	}
}

func TestWhatDependsOnTheRequest(t *testing.T) {
	cause := errors.New("x")
	if e := problem.Unavailable.Because(cause); !errors.Is(e, cause) ||
		e.RetryAfter != problem.Soon || e.Message == "" {
		t.Errorf("got %+v", e)
	}
	if e := problem.KeyInUse.New().After(0); e.RetryAfter != time.Second {
		t.Errorf("got %v", e.RetryAfter)
	}
	if e := problem.KeyInUse.New().After(time.Minute); e.RetryAfter != time.Minute {
		t.Errorf("got %v", e.RetryAfter)
	}
}

func TestNamesOfClientsAreMadePrintable(t *testing.T) {
	for in, want := range map[string]string{
		"metadata[order]":              "metadata[order]",
		"a\x00b\xff":                   "a\uFFFDb\uFFFD",
		strings.Repeat("x", 1000):      strings.Repeat("x", 100) + "…",
		strings.Repeat("x", 99) + "éé": strings.Repeat("x", 99) + "…",
	} {
		got := problem.ParameterUnknown.Of(in, "m").Param
		if got != want || problem.Printable(got) != want {
			t.Errorf("%.40q: got %q", in, got)
		}
	}
}
