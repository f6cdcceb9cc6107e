package charges_test

import (
	"fmt"
	"net/http"
	"testing"

	"paidonce/charges"
	"paidonce/idemkeys"
	"paidonce/internal/world"
	"paidonce/problem"
	"paidonce/provider"
)

// The payer confirms in the browser with the client secret, perhaps with a card that is declined
// first. Whoever tells of it, there is one charge and one event of each thing.
func TestThePayersBrowserConfirms(t *testing.T) {
	t.Parallel()
	for _, declined := range []bool{false, true} {
		for _, by := range []string{"news of the intent", "news of the charge", "both", "the reconciler", "a retry"} {
			t.Run(fmt.Sprint(by, declined), func(t *testing.T) {
				t.Parallel()
				w := world.New(t)
				i := w.Start()
				in := w.Inbox(i)
				p := i.MustIntent("k", "requires_payment_method", world.TwentyIntent)
				want := []string{"payment_intent.created", "charge.succeeded", "payment_intent.succeeded"}
				event := 0
				deliver := func(kind, object string) {
					for range 2 { // each twice
						event++
						w.Deliver(in, fmt.Sprint("evt_", event), kind, object)
					}
					w.Process(in)
				}
				if declined {
					want = append(want, "charge.failed", "payment_intent.payment_failed")
					if err := w.Sim.ConfirmInBrowser(p.ID, "pm_card_chargeDeclined", ""); err == nil {
						t.Fatal("not declined")
					}
					deliver("payment_intent.payment_failed", p.ID)
					deliver("charge.failed", w.OnlyOne("/v1/charges"))
					if got := i.Intent(p.ID); got.Status != "requires_payment_method" ||
						got.LastPaymentError == nil || got.LatestCharge == nil ||
						shown(w, i, got.LatestCharge.ID).Status != "failed" {
						t.Errorf("after the decline: %+v", got)
					}
				}
				if err := w.Sim.ConfirmInBrowser(p.ID, "pm_card_visa", ""); err != nil {
					t.Fatal(err)
				}
				at, err := w.Provider.GetIntent(t.Context(), p.ID)
				if err != nil {
					t.Fatal(err)
				}
				switch by {
				case "news of the intent":
					deliver("payment_intent.succeeded", p.ID)
				case "news of the charge":
					deliver("charge.succeeded", at.ChargeID)
				case "both":
					deliver("charge.succeeded", at.ChargeID)
					deliver("payment_intent.succeeded", p.ID)
				case "the reconciler":
					w.Exec(`UPDATE charges SET awaits_at = clock_timestamp() WHERE awaits_at IS NOT NULL`)
					if _, err := w.ProviderEvents(i, nil).Await(t.Context(), 10); err != nil {
						t.Fatal(err)
					}
				case "a retry":
					res, err := i.Confirm("c", p.ID, "pm_card_visa")
					w.WantIntent("succeeded", res, err)
					deliver("payment_intent.succeeded", p.ID)
				}
				if got := i.Intent(p.ID); got.Status != "succeeded" || got.LastPaymentError != nil {
					t.Errorf("then %+v", got)
				}
				wantTold(w, want...)
				w.CheckRecords(1)
				wantAgreement(t, w)
				leaked(t, w, string(*p.ClientSecret))
			})
		}
	}
}

// Money by bank debit is under way for days. If the bank refuses it, that is one attempt, and the
// intent lives on.
func TestABankDebitOfAPaymentIntent(t *testing.T) {
	t.Parallel()
	for _, decline := range []string{"", "insufficient_funds"} {
		for _, news := range []bool{false, true} {
			t.Run(fmt.Sprint(decline, news), func(t *testing.T) {
				t.Parallel()
				w := world.New(t)
				i := w.Start()
				events, in := w.ProviderEvents(i, nil), w.Inbox(i)
				p := i.MustIntent("k", "processing", world.PayingIntent("pm_usBankAccount"))
				if p.LatestCharge == nil || shown(w, i, p.LatestCharge.ID).Status != "pending" {
					t.Fatalf("got %+v", p)
				}
				_, err := i.Confirm("c", p.ID, "pm_card_visa")
				wantRefused(t, err, problem.PaymentIntentUnexpectedState)
				id := w.OnlyOne("/v1/charges")
				if err := w.Sim.EndDebit(id, decline); err != nil {
					t.Fatal(err)
				}
				kind := "charge.succeeded"
				if decline != "" {
					kind = "charge.failed"
				}
				if news {
					w.Deliver(in, "evt_1", kind, id)
					w.Deliver(in, "evt_2", kind, id)
					w.Process(in)
				}
				ask(w, events)
				w.Exec(`UPDATE charges SET awaits_at = clock_timestamp() WHERE awaits_at IS NOT NULL`)
				if _, err := events.Await(t.Context(), 10); err != nil {
					t.Fatal(err)
				}
				want := []string{"payment_intent.created", "charge.pending", "payment_intent.processing"}
				if decline == "" {
					want = append(want, "charge.succeeded", "payment_intent.succeeded")
				} else {
					want = append(want, "charge.failed", "payment_intent.payment_failed")
					if got := i.Intent(p.ID); got.Status != "requires_payment_method" {
						t.Errorf("then %+v", got)
					}
					res, err := i.Confirm("c", p.ID, "pm_card_visa")
					w.WantIntent("succeeded", res, err)
					want = append(want, "charge.succeeded", "payment_intent.succeeded")
				}
				wantTold(w, want...)
				w.CheckRecords(1)
				wantAgreement(t, w)
			})
		}
	}
}

// A bank that does not pay is followed by another: each money under way is told of.
func TestBankDebitsOfOnePaymentIntent(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	i := w.Start()
	events := w.ProviderEvents(i, nil)
	p := i.MustIntent("k", "processing", world.PayingIntent("pm_usBankAccount"))
	if err := w.Sim.EndDebit(w.OnlyOne("/v1/charges"), "insufficient_funds"); err != nil {
		t.Fatal(err)
	}
	ask(w, events)
	res, err := i.Confirm("c", p.ID, "pm_usBankAccount")
	w.WantIntent("processing", res, err)
	if got := i.Intent(p.ID).LatestCharge; got == nil || *got != *p.LatestCharge {
		t.Errorf("the latest charge: %+v, want %+v", got, p.LatestCharge)
	}
	wantTold(w,
		"payment_intent.created", "charge.pending", "payment_intent.processing",
		"charge.failed", "payment_intent.payment_failed",
		"charge.pending", "payment_intent.processing",
	)
	w.CheckRecords(0)
	wantAgreement(t, w)
}

// What somebody cancels at the provider is learnt, and frees the order.
func TestAPaymentIntentCancelledElsewhere(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	i := w.Start()
	in := w.Inbox(i)
	order := world.TwentyIntent
	order.Reference = "order 7"
	p := i.MustIntent("k", "requires_payment_method", order)
	there, err := w.Provider.GetIntent(t.Context(), p.ID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Provider.CancelIntent(t.Context(), provider.CancelRequest{
		IdempotencyKey: "dashboard", Tags: there.Tags, IntentID: p.ID, Reason: "abandoned",
	}); err != nil {
		t.Fatal(err)
	}
	w.Deliver(in, "evt_1", "payment_intent.canceled", p.ID)
	w.Deliver(in, "evt_2", "payment_intent.canceled", p.ID)
	w.Process(in)
	if got := i.Intent(p.ID); got.Status != "canceled" || got.CanceledAt == nil ||
		*got.CancellationReason != "abandoned" {
		t.Errorf("then %+v", got)
	}
	wantTold(w, "payment_intent.created", "payment_intent.canceled")
	i.MustIntent("k2", "requires_payment_method", order)
}

// A refund may name the payment intent.
func TestRefundOfAPaymentIntent(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	i := w.Start()
	p := i.MustIntent("k", "succeeded", world.PayingIntent("pm_card_visa"))
	res, err := i.Charges.Refund(t.Context(), w.Request("r"), charges.RefundParams{PaymentIntent: p.ID})
	if err != nil || res.Answer.Code != http.StatusCreated {
		t.Fatalf("got %s, %v", res.Answer.Body, err)
	}
	if c := shown(w, i, p.LatestCharge.ID); !c.Refunded {
		t.Errorf("the charge is %+v", c)
	}
	again, err := i.Charges.Refund(t.Context(), w.Request("r"), charges.RefundParams{PaymentIntent: p.ID})
	if err != nil || !again.Replayed {
		t.Errorf("got %+v, %v", again, err)
	}
	unpaid := i.MustIntent("k2", "requires_payment_method", world.TwentyIntent)
	_, err = i.Charges.Refund(t.Context(), w.Request("r2"), charges.RefundParams{PaymentIntent: unpaid.ID})
	wantRefused(t, err, problem.ResourceMissing)
}

// What the payer, or somebody at the provider, did first is told as the state of the intent, also
// where no news has come.
func TestIntentsThatEndedElsewhereAreInAnotherState(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	i := w.Start()
	paid := i.MustIntent("p", "requires_action", world.PayingIntent("pm_card_threeDSecure2Required"))
	if err := w.Sim.Authenticate(paid.ID, true); err != nil {
		t.Fatal(err)
	}
	hold := world.PayingIntent("pm_card_visa")
	hold.Capture = false
	held := i.MustIntent("h", "requires_capture", hold)
	var operation string
	w.Read(`SELECT operation_id FROM charges WHERE id = $1`, []any{held.LatestCharge.ID}, &operation)
	if _, err := w.Provider.CancelIntent(t.Context(), provider.CancelRequest{
		IdempotencyKey: "elsewhere", IntentID: held.ID,
		Tags: provider.Tags{Operation: operation, Installation: world.Installation},
	}); err != nil {
		t.Fatal(err)
	}
	for intent, do := range map[string]func(key, intent string) (idemkeys.Result, error){
		paid.ID: i.CancelIntent,
		held.ID: func(key, intent string) (idemkeys.Result, error) {
			return i.CaptureIntent(key, intent, 0)
		},
	} {
		res, err := do("late "+intent, intent)
		if err != nil {
			t.Fatal(err)
		}
		var e struct {
			Error struct {
				Code          string
				PaymentIntent charges.PaymentIntent `json:"payment_intent"`
			}
		}
		unmarshal(t, string(res.Answer.Body), &e)
		if is := i.Intent(intent); e.Error.Code != "payment_intent_unexpected_state" ||
			e.Error.PaymentIntent.ID != intent || e.Error.PaymentIntent.Status != is.Status {
			t.Errorf("got %s; it is %s", res.Answer.Body, is.Status)
		}
	}
}
