package world

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"paidonce/charges"
	"paidonce/idemkeys"
	"paidonce/provider"
)

// TwentyIntent is an intent of $20 that nobody has said how to pay yet: by something that sends
// nobody away.
var TwentyIntent = charges.PaymentIntentParams{
	Params: charges.Params{Amount: 2000, Currency: "usd", Capture: true},
	PaymentTerms: charges.PaymentTerms{AutomaticMethods: &provider.AutomaticMethods{
		Enabled: true, AllowRedirects: "never",
	}},
}

// PayingIntent is one that is confirmed at once, with a card.
func PayingIntent(card string) charges.PaymentIntentParams {
	p := TwentyIntent
	p.Source, p.Confirm = card, true
	return p
}

func (w *World) intentRequest(key, path string, p any) idemkeys.Request {
	r := w.Request(key)
	r.Fingerprint = idemkeys.NewFingerprint("POST", "/v1/payment_intents"+path, "", fmt.Appendf(nil, "%+v", p))
	return r
}

// CreateIntent requests a payment intent.
func (i Instance) CreateIntent(key string, p charges.PaymentIntentParams) (idemkeys.Result, error) {
	return i.Charges.CreatePaymentIntent(context.Background(), i.world.intentRequest(key, "", p), p)
}

// MustIntent makes a payment intent that has to come to a status, and returns it.
func (i Instance) MustIntent(key, status string, p charges.PaymentIntentParams) charges.PaymentIntent {
	i.world.T.Helper()
	res, err := i.CreateIntent(key, p)
	return i.world.WantIntent(status, res, err)
}

// WantIntent checks that a result shows an intent of a status, and returns it.
func (w *World) WantIntent(status string, res idemkeys.Result, err error) (p charges.PaymentIntent) {
	w.T.Helper()
	if err == nil {
		err = json.Unmarshal(res.Answer.Body, &p)
	}
	if err != nil || p.Status != status || !strings.HasPrefix(p.ID, "pi_") {
		w.T.Fatalf("got %d %s, %v; want an intent that is %s", res.Answer.Code, res.Answer.Body, err, status)
	}
	return p
}

// Confirm requests that an intent is confirmed with a card, or with what it has.
func (i Instance) Confirm(key, intent, card string) (idemkeys.Result, error) {
	p := charges.ConfirmParams{Intent: intent, PaymentMethod: card}
	return i.Charges.ConfirmPaymentIntent(
		context.Background(), i.world.intentRequest(key, "/confirm", p), p,
	)
}

// CaptureIntent requests that what an intent holds is captured; 0 means all.
func (i Instance) CaptureIntent(key, intent string, amount int64) (idemkeys.Result, error) {
	p := charges.PaymentIntentCaptureParams{Intent: intent, Amount: amount}
	return i.Charges.CapturePaymentIntent(
		context.Background(), i.world.intentRequest(key, "/capture", p), p,
	)
}

// CancelIntent requests that an intent is cancelled.
func (i Instance) CancelIntent(key, intent string) (idemkeys.Result, error) {
	p := charges.PaymentIntentCancelParams{Intent: intent, Reason: "requested_by_customer"}
	return i.Charges.CancelPaymentIntent(
		context.Background(), i.world.intentRequest(key, "/cancel", p), p,
	)
}

// Intent returns an intent as it is now.
func (i Instance) Intent(id string) charges.PaymentIntent {
	i.world.T.Helper()
	p, err := i.Charges.GetPaymentIntent(context.Background(), i.world.Key.AccountID, id, false)
	if err != nil {
		i.world.T.Fatal(err)
	}
	return p
}
