package charges_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"paidonce/charges"
	"paidonce/idemkeys"
	"paidonce/internal/world"
	"paidonce/problem"
)

// toldOf are the types of all events, in their order.
func toldOf(w *world.World) string {
	w.T.Helper()
	var types string
	w.Read(`SELECT coalesce(string_agg(type, ' ' ORDER BY created_at, event_id), '') FROM (
		SELECT type, event_id, created_at FROM outbox) o`, nil, &types)
	all := strings.Fields(types)
	slices.Sort(all)
	return strings.Join(all, " ")
}

func wantTold(w *world.World, want ...string) {
	w.T.Helper()
	slices.Sort(want)
	if got := toldOf(w); got != strings.Join(want, " ") {
		w.T.Errorf("told were %s, want %s", got, strings.Join(want, " "))
	}
}

func listedCharges(t *testing.T, w *world.World, i world.Instance) int {
	t.Helper()
	page, err := i.Charges.List(t.Context(), w.Key.AccountID, charges.Filter{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	return len(page.Charges)
}

// An intent that is confirmed at once makes one charge, with three calls to the provider at most.
func TestAPaymentIntentPays(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	i := w.Start()
	p := i.MustIntent("k", "succeeded", world.PayingIntent("pm_card_visa"))
	if p.AmountReceived != 2000 || p.LatestCharge == nil || p.ClientSecret == nil ||
		!strings.HasPrefix(string(*p.ClientSecret), p.ID+"_secret_") {
		t.Errorf("got %+v", p)
	}
	if got := i.Intent(p.ID).PaymentMethodTypes; !slices.Equal(got, []string{"card"}) {
		t.Errorf("it takes %v, want what the provider has chosen", got)
	}
	c := shown(w, i, p.LatestCharge.ID)
	if c.Status != "succeeded" || c.Amount != 2000 || !c.Captured || *c.PaymentIntent != p.ID {
		t.Errorf("its charge is %+v", c)
	}
	again, err := i.CreateIntent("k", world.PayingIntent("pm_card_visa"))
	if w.WantIntent("succeeded", again, err); !again.Replayed {
		t.Error("the second answer was not stored")
	}
	if n := len(sentTo(w, t, "")); n > 2 {
		t.Errorf("%d calls", n)
	}
	wantTold(w, "payment_intent.created", "charge.succeeded", "payment_intent.succeeded")
	w.CheckRecords(1)
	leaked(t, w, string(*p.ClientSecret))
}

// An intent waits in no list of charges, and is confirmed later, also after a decline.
func TestAPaymentIntentIsConfirmedLater(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	i := w.Start()
	p := i.MustIntent("k", "requires_payment_method", world.TwentyIntent)
	if p.LatestCharge != nil || listedCharges(t, w, i) != 0 {
		t.Errorf("got %+v, and %d charges", p, listedCharges(t, w, i))
	}
	for n, key := range []string{"d1", "d2", "d1"} {
		res, err := i.Confirm(key, p.ID, "pm_card_chargeDeclined")
		if err != nil || res.Answer.Code != http.StatusPaymentRequired || res.Replayed != (n == 2) {
			t.Fatalf("got %d %s, %v", res.Answer.Code, res.Answer.Body, err)
		}
		var e struct {
			Error struct {
				Code, Charge  string
				PaymentIntent charges.PaymentIntent `json:"payment_intent"`
			}
		}
		unmarshal(t, string(res.Answer.Body), &e)
		of := e.Error.PaymentIntent
		if of.ID != p.ID || of.Status != "requires_payment_method" || of.LatestCharge == nil ||
			of.LatestCharge.ID != e.Error.Charge || of.LastPaymentError == nil ||
			of.LastPaymentError.Code != "card_declined" {
			t.Errorf("got %s", res.Answer.Body)
		}
		if c := shown(w, i, e.Error.Charge); c.Status != "failed" || *c.PaymentIntent != p.ID {
			t.Errorf("the attempt is %+v", c)
		}
	}
	if n := listedCharges(t, w, i); n != 2 {
		t.Errorf("%d charges are listed, want the two attempts", n)
	}
	res, err := i.Confirm("c", p.ID, "pm_card_visa")
	p = w.WantIntent("succeeded", res, err)
	if p.LastPaymentError != nil || listedCharges(t, w, i) != 3 {
		t.Errorf("got %+v, and %d charges", p, listedCharges(t, w, i))
	}
	_, err = i.Confirm("c2", p.ID, "pm_card_visa")
	wantRefused(t, err, problem.PaymentIntentUnexpectedState)
	wantTold(w, "payment_intent.created", "charge.failed", "payment_intent.payment_failed",
		"charge.failed", "payment_intent.payment_failed", "charge.succeeded",
		"payment_intent.succeeded")
	w.CheckRecords(1)
	wantAgreement(t, w)
}

func wantRefused(t *testing.T, err error, want problem.Code) {
	t.Helper()
	var refused *idemkeys.Refused
	var e *problem.Error
	if !errors.As(err, &refused) || !errors.As(refused.Reason, &e) || e.Code != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// wantAgreement checks that an audit finds nothing.
func wantAgreement(t *testing.T, w *world.World) {
	t.Helper()
	if found := audit(w, t); len(found) != 0 {
		t.Errorf("the audit found %v", found)
	}
}

// What an intent holds is captured, in part, or let go of, once.
func TestAPaymentIntentHolds(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	i := w.Start()
	hold := world.PayingIntent("pm_card_visa")
	hold.Capture = false
	p := i.MustIntent("h", "requires_capture", hold)
	if p.AmountCapturable != 2000 || p.AmountReceived != 0 {
		t.Errorf("got %+v", p)
	}
	res, err := i.CaptureIntent("c", p.ID, 700)
	if p = w.WantIntent("succeeded", res, err); p.AmountReceived != 700 || p.AmountCapturable != 0 {
		t.Errorf("got %+v", p)
	}
	_, err = i.CaptureIntent("c2", p.ID, 0)
	wantRefused(t, err, problem.PaymentIntentUnexpectedState)
	_, err = i.CancelIntent("x", p.ID)
	wantRefused(t, err, problem.PaymentIntentUnexpectedState)
	q := i.MustIntent("h2", "requires_capture", hold)
	res, err = i.CancelIntent("x2", q.ID)
	if q = w.WantIntent("canceled", res, err); q.CanceledAt == nil || q.CancellationReason == nil {
		t.Errorf("got %+v", q)
	}
	if got := i.Intent(q.ID); got.Status != "canceled" || got.CanceledAt == nil {
		t.Errorf("then %+v", got)
	}
	wantTold(w, "payment_intent.created", "charge.succeeded", "payment_intent.amount_capturable_updated",
		"charge.captured", "payment_intent.succeeded", "payment_intent.created", "charge.succeeded",
		"payment_intent.amount_capturable_updated", "charge.canceled", "payment_intent.canceled")
	wantAgreement(t, w)
}

// An intent that nobody confirmed is cancelled, and nothing was ever listed of it.
func TestAnUnpaidPaymentIntentIsCancelled(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	i := w.Start()
	order := world.TwentyIntent
	order.Reference = "order 7"
	p := i.MustIntent("k", "requires_payment_method", order)
	_, err := i.CreateIntent("k2", order)
	wantRefused(t, err, problem.ReferenceInProgress)
	sale := world.Twenty
	sale.Reference = order.Reference
	_, err = i.Charges.Create(t.Context(), w.Request("k3"), sale)
	wantRefused(t, err, problem.ReferenceInProgress)
	res, err := i.CancelIntent("x", p.ID)
	w.WantIntent("canceled", res, err)
	if n := listedCharges(t, w, i); n != 0 {
		t.Errorf("%d charges are listed", n)
	}
	wantTold(w, "payment_intent.created", "payment_intent.canceled")
	i.MustCharge("k4", sale)
	w.CheckRecords(1)
}

// The payer authenticates, at the provider: its news are enough, and so is asking.
func TestAPaymentIntentWaitsForItsPayer(t *testing.T) {
	t.Parallel()
	for _, news := range []bool{true, false} {
		w := world.New(t)
		i := w.Start()
		in := w.Inbox(i)
		p := i.MustIntent("k", "requires_action", world.PayingIntent("pm_card_threeDSecure2Required"))
		if p.NextAction == nil || p.NextAction.UseStripeSDK == nil || p.LatestCharge != nil {
			t.Errorf("got %+v", p)
		}
		if err := w.Sim.Authenticate(p.ID, true); err != nil {
			t.Fatal(err)
		}
		if news {
			for _, id := range []string{"evt_1", "evt_2"} {
				w.Deliver(in, id, "payment_intent.succeeded", p.ID)
			}
			w.Deliver(in, "evt_3", "charge.succeeded", w.ProviderCharge())
			w.Process(in)
		} else {
			w.Exec(`UPDATE charges SET awaits_at = clock_timestamp()`)
			if n, err := w.ProviderEvents(i, nil).Await(t.Context(), 10); n != 1 || err != nil {
				t.Fatal(n, err)
			}
		}
		if got := i.Intent(p.ID); got.Status != "succeeded" || got.LatestCharge == nil || got.NextAction != nil {
			t.Errorf("then %+v", got)
		}
		wantTold(w, "payment_intent.created", "payment_intent.requires_action", "charge.succeeded",
			"payment_intent.succeeded")
		w.CheckRecords(1)
		wantAgreement(t, w)
	}
}

// A payer who fails to authenticate leaves an intent that may be confirmed again.
func TestAPayerOfAnIntentFails(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	i := w.Start()
	in := w.Inbox(i)
	p := i.MustIntent("k", "requires_action", world.PayingIntent("pm_card_threeDSecure2Required"))
	if err := w.Sim.Authenticate(p.ID, false); err != nil {
		t.Fatal(err)
	}
	w.Deliver(in, "evt_1", "payment_intent.payment_failed", p.ID)
	w.Deliver(in, "evt_2", "payment_intent.payment_failed", p.ID)
	w.Process(in)
	got := i.Intent(p.ID)
	if got.Status != "requires_payment_method" || got.LastPaymentError == nil || got.NextAction != nil {
		t.Errorf("then %+v", got)
	}
	res, err := i.Confirm("c", p.ID, "pm_card_visa")
	w.WantIntent("succeeded", res, err)
	wantTold(w, "payment_intent.created", "payment_intent.requires_action",
		"payment_intent.payment_failed", "charge.succeeded", "payment_intent.succeeded")
	w.CheckRecords(1)
}

// An intent is changed before it is paid, at the provider too.
func TestAPaymentIntentIsChanged(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	i := w.Start()
	first := world.TwentyIntent
	first.Metadata = map[string]string{"a": "1", "b": "2"}
	p := i.MustIntent("k", "requires_payment_method", first)
	text := "three books"
	change := charges.PaymentIntentUpdateParams{
		Intent: p.ID, Amount: 3000, PaymentMethod: "pm_card_visa",
		UpdateParams: charges.UpdateParams{
			Description: &text, Metadata: map[string]string{"a": "", "c": "3"},
		},
	}
	res, err := i.Charges.UpdatePaymentIntent(t.Context(), w.Request("u"), change)
	p = w.WantIntent("requires_confirmation", res, err)
	metadata, _ := json.Marshal(p.Metadata)
	if p.Amount != 3000 || *p.Description != text || string(metadata) != `{"b":"2","c":"3"}` {
		t.Errorf("got %+v", p)
	}
	res, err = i.Confirm("c", p.ID, "")
	if p = w.WantIntent("succeeded", res, err); p.AmountReceived != 3000 {
		t.Errorf("got %+v", p)
	}
	wantAgreement(t, w)
	w.CheckRecords(1)
}

// What an intent says beside its money can be changed whatever became of it, as at Stripe.
func TestAConfirmedPaymentIntentIsDescribed(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	i := w.Start()
	held := world.PayingIntent("pm_card_visa")
	held.Capture = false
	canceled := i.MustIntent("x", "requires_payment_method", world.TwentyIntent)
	res, err := i.CancelIntent("x2", canceled.ID)
	w.WantIntent("canceled", res, err)
	for n, of := range []charges.PaymentIntent{
		i.MustIntent("k", "succeeded", world.PayingIntent("pm_card_visa")),
		i.MustIntent("h", "requires_capture", held), i.Intent(canceled.ID),
	} {
		text, mail := "three books", "jenny@example.com"
		change := charges.PaymentIntentUpdateParams{
			Intent: of.ID, WithCharge: true, UpdateParams: charges.UpdateParams{
				Description: &text, ReceiptEmail: &mail, Metadata: map[string]string{"a": "1"},
			},
		}
		calls := len(sentTo(w, t, ""))
		for range 2 {
			res, err := i.Charges.UpdatePaymentIntent(t.Context(), w.Request(fmt.Sprint("u", n)), change)
			if err != nil {
				t.Fatal(err)
			}
			var whole struct {
				Description  string
				LatestCharge struct{ Description string } `json:"latest_charge"`
			}
			unmarshal(t, string(res.Answer.Body), &whole)
			if whole.Description != text || of.LatestCharge != nil && whole.LatestCharge.Description != text {
				t.Errorf("got %s", res.Answer.Body)
			}
		}
		got := i.Intent(of.ID)
		if *got.ReceiptEmail != mail || got.Metadata["a"] != "1" || got.Status != of.Status {
			t.Errorf("then %+v", got)
		}
		if sent := sentTo(w, t, ""); len(sent) != calls {
			t.Errorf("sent were %v", sent[calls:])
		}
		change.Amount = 3000
		_, err = i.Charges.UpdatePaymentIntent(t.Context(), w.Request(fmt.Sprint("a", n)), change)
		wantRefused(t, err, problem.PaymentIntentUnexpectedState)
	}
	wantAgreement(t, w)
	w.CheckRecords(2)
}

// The whole charge is shown where a request asks for it: in the stored answer, by GET, in lists.
func TestTheLatestChargeIsShownInFull(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	i := w.Start()
	ask := world.PayingIntent("pm_card_visa")
	ask.WithCharge = true
	var whole struct {
		ID     string
		Charge struct{ ID, Status string } `json:"latest_charge"`
	}
	res, err := i.CreateIntent("k", ask)
	if err != nil {
		t.Fatal(err)
	}
	unmarshal(t, string(res.Answer.Body), &whole)
	if whole.Charge.Status != "succeeded" {
		t.Errorf("got %s", res.Answer.Body)
	}
	shown, err := i.Charges.GetPaymentIntent(t.Context(), w.Key.AccountID, whole.ID, true)
	if err != nil {
		t.Fatal(err)
	}
	page, err := i.Charges.ListPaymentIntents(t.Context(), w.Key.AccountID, charges.PaymentIntentFilter{
		Limit: 10, WithCharges: true,
	})
	if err != nil || len(page.PaymentIntents) != 1 {
		t.Fatal(page, err)
	}
	for _, p := range []charges.PaymentIntent{shown, page.PaymentIntents[0]} {
		b, err := json.Marshal(p.LatestCharge)
		if err != nil || !strings.Contains(string(b), `"id":"`+whole.Charge.ID+`"`) {
			t.Errorf("got %s, %v", b, err)
		}
	}
	held := ask
	held.Capture = false
	p := i.MustIntent("h", "requires_capture", func() charges.PaymentIntentParams { h := held; h.WithCharge = false; return h }())
	res, err = i.Charges.CapturePaymentIntent(t.Context(), w.Request("c"), charges.PaymentIntentCaptureParams{
		Intent: p.ID, WithCharge: true,
	})
	if err != nil || !strings.Contains(string(res.Answer.Body), `"latest_charge":{"id":"`) {
		t.Errorf("got %s, %v", res.Answer.Body, err)
	}
}
