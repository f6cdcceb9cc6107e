package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stripe/stripe-go/v76"
	"github.com/stripe/stripe-go/v76/client"
)

// intentOf is a payment intent that is confirmed at once, unless the card is empty.
func intentOf(key string, amount int64, card string) *stripe.PaymentIntentParams {
	p := &stripe.PaymentIntentParams{
		Amount: stripe.Int64(amount), Currency: stripe.String("usd"),
	}
	p.AddMetadata("order", key)
	if card != "" {
		p.PaymentMethod, p.Confirm = stripe.String(card), stripe.Bool(true)
		p.PaymentMethodTypes = stripe.StringSlice([]string{"card"})
	}
	p.SetIdempotencyKey(key)
	return p
}

func TestStripeGoPaymentIntents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sc, _ := w.stripeGo(w.serve(), 2)
	first, err := sc.PaymentIntents.New(intentOf("order-1", 2000, "pm_card_visa"))
	if err != nil {
		t.Fatal(err)
	}
	if first.Status != stripe.PaymentIntentStatusSucceeded || first.AmountReceived != 2000 ||
		first.Metadata["order"] != "order-1" || first.LatestCharge == nil ||
		!strings.HasPrefix(first.ClientSecret, first.ID+"_secret_") {
		t.Errorf("created %+v", first)
	}
	again, err := sc.PaymentIntents.New(intentOf("order-1", 2000, "pm_card_visa"))
	if err != nil || again.ID != first.ID ||
		again.LastResponse.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("again: %+v %v", again, err)
	}
	ch, err := sc.Charges.Get(first.LatestCharge.ID, nil)
	if err != nil || !ch.Paid || ch.Amount != 2000 {
		t.Errorf("its charge: %+v %v", ch, err)
	}
	got, err := sc.PaymentIntents.Get(first.ID, nil)
	if err != nil || got.Status != first.Status || got.ClientSecret != first.ClientSecret {
		t.Errorf("retrieved %+v %v", got, err)
	}
	open := intentOf("open", 2000, "")
	open.AutomaticPaymentMethods = &stripe.PaymentIntentAutomaticPaymentMethodsParams{
		Enabled: stripe.Bool(true), AllowRedirects: stripe.String("never"),
	}
	later, err := sc.PaymentIntents.New(open)
	if err != nil || later.Status != stripe.PaymentIntentStatusRequiresPaymentMethod ||
		later.LatestCharge != nil || !later.AutomaticPaymentMethods.Enabled {
		t.Fatalf("open: %+v %v", later, err)
	}
	change := &stripe.PaymentIntentParams{
		Amount: stripe.Int64(2500), Description: stripe.String("a gift"),
	}
	change.AddMetadata("order", "")
	later, err = sc.PaymentIntents.Update(later.ID, change)
	if err != nil || later.Amount != 2500 || later.Description != "a gift" ||
		len(later.Metadata) != 0 {
		t.Errorf("updated: %+v %v", later, err)
	}
	confirm := &stripe.PaymentIntentConfirmParams{PaymentMethod: stripe.String("pm_card_visa")}
	confirm.SetIdempotencyKey("confirm")
	later, err = sc.PaymentIntents.Confirm(later.ID, confirm)
	if err != nil || later.Status != stripe.PaymentIntentStatusSucceeded ||
		later.AmountReceived != 2500 {
		t.Errorf("confirmed: %+v %v", later, err)
	}
	if net := w.sim.net(); net != 2000+2500 {
		t.Errorf("the provider has taken %d", net)
	}
}

func TestStripeGoPaymentIntentHolds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sc, _ := w.stripeGo(w.serve(), 2)
	hold := func(key string) *stripe.PaymentIntent {
		p := intentOf(key, 2000, "pm_card_visa")
		p.CaptureMethod = stripe.String("manual")
		held, err := sc.PaymentIntents.New(p)
		if err != nil || held.Status != stripe.PaymentIntentStatusRequiresCapture ||
			held.AmountCapturable != 2000 {
			t.Fatalf("held: %+v %v", held, err)
		}
		return held
	}
	part := &stripe.PaymentIntentCaptureParams{AmountToCapture: stripe.Int64(1500)}
	part.SetIdempotencyKey("capture")
	taken, err := sc.PaymentIntents.Capture(hold("held").ID, part)
	if err != nil || taken.Status != stripe.PaymentIntentStatusSucceeded ||
		taken.AmountReceived != 1500 {
		t.Fatalf("captured: %+v %v", taken, err)
	}
	back := &stripe.RefundParams{
		PaymentIntent: stripe.String(taken.ID), Amount: stripe.Int64(400),
	}
	back.SetIdempotencyKey("refund")
	if r, err := sc.Refunds.New(back); err != nil || r.Charge.ID != taken.LatestCharge.ID {
		t.Errorf("refunded: %+v %v", r, err)
	}
	end := &stripe.PaymentIntentCancelParams{CancellationReason: stripe.String("duplicate")}
	end.SetIdempotencyKey("cancel")
	ended, err := sc.PaymentIntents.Cancel(hold("other").ID, end)
	if err != nil || ended.Status != stripe.PaymentIntentStatusCanceled ||
		ended.CancellationReason != stripe.PaymentIntentCancellationReasonDuplicate {
		t.Errorf("cancelled: %+v %v", ended, err)
	}
	again := &stripe.PaymentIntentConfirmParams{}
	again.SetIdempotencyKey("too late")
	_, err = sc.PaymentIntents.Confirm(ended.ID, again)
	if e := asError(err); e.HTTPStatusCode != http.StatusBadRequest ||
		e.Code != stripe.ErrorCodePaymentIntentUnexpectedState || e.PaymentIntent == nil ||
		e.PaymentIntent.ID != ended.ID {
		t.Errorf("confirmed after that: %v", err)
	}
}

// Declines show the intent, which then takes another card; a payer who has to act comes back.
func TestStripeGoPaymentIntentPayers(t *testing.T) {
	t.Parallel()
	w, p := intentWorld(t)
	sc, _ := w.stripeGo(p, 2)
	var declined *stripe.CardError
	poor := intentOf("poor", 2000, "pm_card_chargeDeclinedInsufficientFunds")
	_, err := sc.PaymentIntents.New(poor)
	e := asError(err)
	if !errors.As(err, &declined) || e.PaymentIntent == nil || e.ChargeID == "" ||
		declined.DeclineCode != stripe.DeclineCodeInsufficientFunds ||
		e.PaymentIntent.Status != stripe.PaymentIntentStatusRequiresPaymentMethod ||
		e.PaymentIntent.LastPaymentError == nil {
		t.Fatalf("declined: %v", err)
	}
	if ch, err := sc.Charges.Get(e.ChargeID, nil); err != nil || ch.FailureCode != "card_declined" {
		t.Errorf("the attempt: %+v %v", ch, err)
	}
	secure := &stripe.PaymentIntentConfirmParams{
		PaymentMethod: stripe.String("pm_card_threeDSecure2Required"),
		ReturnURL:     stripe.String("https://shop.example/orders/7"),
	}
	secure.SetIdempotencyKey("secure")
	waits, err := sc.PaymentIntents.Confirm(e.PaymentIntent.ID, secure)
	if err != nil || waits.Status != stripe.PaymentIntentStatusRequiresAction ||
		waits.NextAction.RedirectToURL.ReturnURL != "https://shop.example/orders/7" ||
		!strings.HasPrefix(waits.NextAction.RedirectToURL.URL, w.sim.url) {
		t.Fatalf("waits: %+v %v", waits, err)
	}
	w.sim.control(http.MethodPost, "authenticate",
		map[string]any{"intent": waits.ID, "outcome": "succeed"}, nil)
	eventually(t, "the payment is known", func() bool {
		now, err := sc.PaymentIntents.Get(waits.ID, nil)
		return err == nil && now.Status == stripe.PaymentIntentStatusSucceeded &&
			now.NextAction == nil && now.AmountReceived == 2000
	})
	if net := w.sim.net(); net != 2000 {
		t.Errorf("the provider has taken %d", net)
	}
}

func TestStripeGoPaymentIntentPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sc, sent := w.stripeGo(w.serve(), 2)
	const intents = 5
	for i := range intents {
		p := intentOf(fmt.Sprint("order-", i), int64(100+i), "")
		p.Customer = stripe.String("cus_42")
		if _, err := sc.PaymentIntents.New(p); err != nil {
			t.Fatal(err)
		}
	}
	sent.taken()
	params := &stripe.PaymentIntentListParams{
		Customer: stripe.String("cus_42"), CreatedRange: &stripe.RangeQueryParams{GreaterThan: 1},
	}
	params.Limit = stripe.Int64(2)
	if got := amountsOf(t, sc, params); fmt.Sprint(got) != "[104 103 102 101 100]" {
		t.Errorf("listed %v", got)
	}
	if n := len(sent.taken()); n != 3 {
		t.Errorf("%d pages were asked for, want 3", n)
	}
	never := &stripe.PaymentIntentListParams{Created: stripe.Int64(1)}
	if got := amountsOf(t, sc, never); len(got) != 0 {
		t.Errorf("created=1: %v", got)
	}
	none := &stripe.PaymentIntentListParams{Customer: stripe.String("cus_none")}
	if got := amountsOf(t, sc, none); len(got) != 0 {
		t.Errorf("of nobody: %v", got)
	}
}

func amountsOf(
	t *testing.T, sc *client.API, p *stripe.PaymentIntentListParams,
) (amounts []int64) {
	t.Helper()
	it := sc.PaymentIntents.List(p)
	for it.Next() {
		amounts = append(amounts, it.PaymentIntent().Amount)
	}
	if it.Err() != nil {
		t.Error(it.Err())
	}
	return amounts
}
