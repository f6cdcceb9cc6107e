package stripe_test

import (
	"context"
	"encoding/json"
	"maps"
	"net/url"
	"strings"
	"testing"

	"paidonce/provider"
)

var ordinaryUpdate = provider.UpdateIntentRequest{IdempotencyKey: "po_5", Tags: ordinary.Tags, IntentID: "pi_1", Amount: 2500}

func TestUpdateIntentTable(t *testing.T) {
	const failed = `"latest_charge":{"id":"ch_0","object":"charge","status":"failed","amount":2000,"currency":"usd","livemode":false,"metadata":{}}`
	tryAnswers(t, []answerCase{
		{"updated", 200, goodIntent("2000", "2500"), "intent"},
		{"without a source", 200, goodIntent("2000", "2500", "requires_confirmation", "requires_payment_method"), "intent"},
		{"declined at another price before", 200, goodIntent("2000", "2500", `"latest_charge":null`, failed), "intent"},
		{"another amount", 200, goodIntent(), "conflict"},
		{"another intent", 200, goodIntent("2000", "2500", "pi_1", "pi_2"), "conflict"},
		{"of another operation", 200, goodIntent("2000", "2500", "op_1", "op_2"), "conflict"},
		{"without an amount", 200, goodIntent(`"amount":2000,`, ""), "unknown"},
		{"unexpected: paid", 400, unexpected(`,"payment_intent":` + paidIntent()), "refusal"},
		{"unexpected: not shown", 400, unexpected(""), "refusal"},
	}, func(t *testing.T, c answerCase) string {
		return intentVerdict(answering(t, c.status, nil, c.body).UpdateIntent(context.Background(), ordinaryUpdate))
	})
	euros := ordinaryUpdate
	euros.Amount, euros.Currency = 0, "eur"
	for currency, want := range map[string]string{"usd": "conflict", "EUR": "intent"} {
		body := goodIntent("usd", currency)
		if got := intentVerdict(answering(t, 200, nil, body).UpdateIntent(context.Background(), euros)); got != want {
			t.Errorf("%s: %s, want %s", currency, got, want)
		}
	}
}

// forms gives what the calls post.
func forms(t *testing.T, calls func(provider.Provider)) []string {
	t.Helper()
	base, seen := recording(t, nil)
	calls(connect(t, base))
	var out []string
	for _, s := range *seen {
		out = append(out, s.method+" "+s.path+" "+s.form.Encode())
	}
	return out
}

func TestUpdateOnTheWire(t *testing.T) {
	nothing, text := "", "A book"
	whole := provider.UpdateIntentRequest{
		IdempotencyKey: "po_5", Tags: ordinary.Tags, IntentID: "pi_1", Amount: 2500, Currency: "eur", Customer: "cus_1", Source: "pm_1",
		SetupFutureUsage: "off_session", StatementDescriptorSuffix: "BOOK", Description: &text, ReceiptEmail: &nothing,
		Metadata: map[string]string{"a": "1", "b": "", "paidonce_operation": "forged"}, PaymentMethodTypes: []string{"card", "link"},
	}
	got := forms(t, func(p provider.Provider) {
		_, _ = p.UpdateIntent(context.Background(), whole)
		_, _ = p.UpdateIntent(context.Background(), provider.UpdateIntentRequest{
			IdempotencyKey: "po_5", Tags: ordinary.Tags, IntentID: "pi/1", Source: "tok_visa",
		})
		_, _ = p.UpdateIntent(context.Background(), provider.UpdateIntentRequest{IdempotencyKey: "po_5", Tags: ordinary.Tags})
	})
	want := []string{
		"POST /v1/payment_intents/pi_1 " + url.Values{
			"amount": {"2500"}, "currency": {"eur"}, "customer": {"cus_1"}, "payment_method": {"pm_1"}, "setup_future_usage": {"off_session"},
			"statement_descriptor_suffix": {"BOOK"}, "description": {"A book"}, "receipt_email": {""}, "metadata[a]": {"1"}, "metadata[b]": {""},
			"payment_method_types[]": {"card", "link"}, "expand[]": {"latest_charge"},
		}.Encode(),
		"POST /v1/payment_intents/pi/1 " + url.Values{
			"payment_method_data[type]": {"card"}, "payment_method_data[card][token]": {"tok_visa"}, "expand[]": {"latest_charge"},
		}.Encode(),
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("sent\n%s, want\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// An intent that is paid later is created without a means of payment, and confirmed with one.
func TestPayLaterOnTheWire(t *testing.T) {
	later := ordinary
	later.PayLater, later.Source, later.Customer = true, "", "cus_1"
	later.SetupFutureUsage, later.ErrorOnRequiresAction, later.ReturnURL = "off_session", true, "https://shop.example"
	automatic, typed, named, token := later, later, later, later
	automatic.AutomaticMethods = &provider.AutomaticMethods{Enabled: true, AllowRedirects: "never"}
	typed.PaymentMethodTypes = []string{"card", "link"}
	named.Source, token.Source = "pm_1", "tok_visa"
	got := forms(t, func(p provider.Provider) {
		for _, r := range []provider.ChargeRequest{later, automatic, typed, named, token} {
			_, _ = p.CreateIntent(context.Background(), &r, "")
		}
		confirm := ordinaryConfirm
		confirm.Source, confirm.SetupFutureUsage, confirm.ErrorOnRequiresAction, confirm.ReceiptEmail = "pm_2", "on_session", true, "a@example.com"
		_, _ = p.ConfirmIntent(context.Background(), confirm)
	})
	create := func(more url.Values) string {
		v := url.Values{
			"amount": {"2000"}, "currency": {"usd"}, "capture_method": {"automatic"}, "customer": {"cus_1"}, "setup_future_usage": {"off_session"},
			"metadata[paidonce_operation]": {"op_1"}, "metadata[paidonce_installation]": {"in_1"},
		}
		maps.Copy(v, more)
		return "POST /v1/payment_intents " + v.Encode()
	}
	want := []string{
		create(nil),
		create(url.Values{"automatic_payment_methods[enabled]": {"true"}, "automatic_payment_methods[allow_redirects]": {"never"}}),
		create(url.Values{"payment_method_types[]": {"card", "link"}}),
		create(url.Values{"payment_method": {"pm_1"}}),
		create(url.Values{"payment_method_data[type]": {"card"}, "payment_method_data[card][token]": {"tok_visa"}}),
		"POST /v1/payment_intents/pi_1/confirm " + url.Values{
			"payment_method": {"pm_2"}, "setup_future_usage": {"on_session"}, "error_on_requires_action": {"true"},
			"receipt_email": {"a@example.com"}, "expand[]": {"latest_charge"},
		}.Encode(),
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("sent\n%s, want\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// What an intent shows of an earlier decline is not taken for the answer to a later confirmation.
func TestConfirmedAgain(t *testing.T) {
	const earlier = `"latest_charge":{"id":"ch_0","object":"charge","status":"failed","amount":1000,"currency":"eur","livemode":false,` +
		`"payment_intent":"pi_1","metadata":{}}`
	ctx := context.Background()
	body := goodIntent("requires_confirmation", "requires_action", `"latest_charge":null`, earlier)
	out, err := answering(t, 200, nil, body).ConfirmIntent(ctx, ordinaryConfirm)
	if err != nil || out.Intent == nil || out.Intent.ChargeID != "ch_0" || out.Intent.Amount != 2000 {
		t.Errorf("to be authenticated: %+v, %v", out, err)
	}
	const last = `"last_payment_error":{"type":"card_error","code":"authentication_required","message":"No."`
	shown := func(last string) string {
		return `,"payment_intent":` + goodIntent("requires_confirmation", "requires_payment_method", `"last_payment_error":null`, last,
			`"latest_charge":null`, `"latest_charge":"ch_0"`)
	}
	for name, c := range map[string]struct {
		status      int
		body        string
		charge      string
		lastAttempt bool
	}{
		"declined without a charge":  {402, stripeError("card_error", shown(last+"}")), "", false},
		"declined":                   {402, stripeError("card_error", `,"charge":"ch_9"`+shown(last+`,"charge":"ch_9"}`)), "ch_9", false},
		"no card, declined before":   {400, unexpected(shown(last + `,"charge":"ch_0"}`)), "ch_0", true},
		"no card, refused elsewhere": {400, unexpected(shown(last + "}")), "", true},
	} {
		out, err := answering(t, c.status, nil, c.body).ConfirmIntent(ctx, ordinaryConfirm)
		if err != nil || out.Refusal == nil || !out.Refusal.Decline || out.Refusal.ChargeID != c.charge || out.Refusal.LastAttempt != c.lastAttempt {
			t.Errorf("%s: %+v, %v", name, out.Refusal, err)
		}
	}
}

func TestIntentFields(t *testing.T) {
	body := goodIntent("requires_confirmation", "canceled", `"id":"pi_1"`,
		`"id":"pi_1","client_secret":"pi_1_secret_k_x","payment_method":{"id":"pm_1","object":"payment_method"},"cancellation_reason":"abandoned"`)
	i, err := answering(t, 200, nil, body).GetIntent(context.Background(), "pi_1")
	if err != nil || i.PaymentMethod != "pm_1" || i.ClientSecret != "pi_1_secret_k_x" || i.CancellationReason != "abandoned" || i.Lapsed {
		t.Errorf("%+v, %v", i, err)
	}
}

// What was frozen before there were payment intents of our own is frozen as it was.
func TestFrozenAsBefore(t *testing.T) {
	for want, r := range map[string]any{
		`{"idempotency_key":"po_1","tags":{"operation":"op_1","installation":"in_1"},"livemode":false,"amount":2000,"currency":"usd",` +
			`"source":"tok_visa","capture":true}`: ordinary,
		`{"idempotency_key":"po_2","tags":{"operation":"op_1","installation":"in_1"},"intent_id":"pi_1"}`: ordinaryConfirm,
	} {
		if got, err := json.Marshal(r); err != nil || string(got) != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
