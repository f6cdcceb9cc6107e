package stripe_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"paidonce/provider"
)

func TestCancelIntentTable(t *testing.T) {
	shown := func(status string) string { return `,"payment_intent":` + goodIntent("requires_confirmation", status) }
	r := provider.CancelRequest{IdempotencyKey: "po_4", Tags: provider.Tags{Operation: "op_9", Installation: "inst_1"}, IntentID: "pi_1"}
	tryAnswers(t, []answerCase{
		{"canceled", 200, goodIntent("requires_confirmation", "canceled"), "intent"},
		{"of an authorisation", 200, strings.Replace(paidIntent(), "succeeded", "canceled", 1), "intent"},
		{"another intent", 200, goodIntent("requires_confirmation", "canceled", "pi_1", "pi_2"), "conflict"},
		{"not canceled", 200, goodIntent("requires_confirmation", "requires_action"), "conflict"},
		{"no intent", 200, `{"id":"pi_1"}`, "unknown"},
		{"unexpected: paid", 400, unexpected(shown("succeeded")), "refusal"},
		{"unexpected: canceled", 400, unexpected(shown("canceled")), "refusal"},
		{"unexpected: not shown", 400, unexpected(""), "refusal"},
		{"stored failure", 500, stripeError("api_error", ""), "stored_failure"},
		{"in flight", 409, stripeError("idempotency_error", ""), "in_flight"},
	}, func(t *testing.T, c answerCase) string {
		return intentVerdict(answering(t, c.status, nil, c.body).CancelIntent(context.Background(), r))
	})
}

func TestCancelOnTheWire(t *testing.T) {
	base, seen := recording(t, nil)
	p := connect(t, base)
	for _, reason := range []string{"abandoned", ""} {
		_, _ = p.CancelIntent(context.Background(), provider.CancelRequest{
			IdempotencyKey: "po_4", Tags: ordinary.Tags, IntentID: "pi_1", Reason: reason,
		})
	}
	want := []url.Values{
		{"cancellation_reason": {"abandoned"}, "expand[]": {"latest_charge"}}, {"expand[]": {"latest_charge"}},
	}
	if len(*seen) != len(want) {
		t.Fatalf("%d requests: %+v", len(*seen), *seen)
	}
	for i, s := range *seen {
		if s.method != http.MethodPost || s.path != "/v1/payment_intents/pi_1/cancel" || s.key != "po_4" ||
			s.form.Encode() != want[i].Encode() {
			t.Errorf("%d: %+v", i, s)
		}
	}
}
