package providertest

import (
	"context"
	"crypto/rand"
	"testing"

	"paidonce/provider"
)

// payLater makes an intent whose payer has not said how to pay.
func (w *world) payLater() *provider.Intent {
	w.Helper()
	r := w.request()
	r.PayLater, r.Source, r.PaymentMethodTypes = true, "", []string{"card"}
	out, err := w.Provider.CreateIntent(context.Background(), &r, "")
	if err != nil || out.Intent == nil || out.Intent.Status != provider.IntentRequiresPaymentMethod ||
		out.Intent.ClientSecret == "" || out.Intent.PaymentMethod != "" {
		w.Fatalf("create: got %+v, %v; want an intent that waits for a means of payment", out, err)
	}
	return out.Intent
}

func confirmWith(i *provider.Intent, source string) provider.ConfirmRequest {
	c := confirmOf(i)
	c.Source = source
	return c
}

// declinedWith confirms with a source that is declined.
func (w *world) declinedWith(c provider.ConfirmRequest) *provider.Refusal {
	w.Helper()
	out, err := w.Provider.ConfirmIntent(context.Background(), c)
	if err != nil || out.Refusal == nil || !out.Refusal.Decline || out.Refusal.LastAttempt {
		w.Fatalf("got %+v, %v; want a decline", out, err)
	}
	return out.Refusal
}

// intentConfirmedAgain: each confirmation has an answer of its own, whatever the ones before it
// have left on the intent.
func intentConfirmedAgain(_ *testing.T, w *world) {
	i := w.payLater()
	first := w.declinedWith(confirmWith(i, w.Declined))
	second := w.declinedWith(confirmWith(i, w.Declined))
	if first.ChargeID == "" || second.ChargeID == "" || first.ChargeID == second.ChargeID {
		w.Fatalf("declined as %+v, then as %+v; want two charges", first, second)
	}
	out, err := w.Provider.ConfirmIntent(context.Background(), confirmWith(i, ""))
	if err != nil || out.Refusal == nil || !out.Refusal.LastAttempt || out.Refusal.ChargeID != second.ChargeID {
		w.Fatalf("without a source: got %+v, %v; want to be told of the last attempt", out, err)
	}
	c := confirmWith(i, w.NeedsAction)
	c.ErrorOnRequiresAction = true
	if no := w.declinedWith(c); no.Code != "authentication_required" || no.ChargeID != "" {
		w.Fatalf("declined as %+v; want an authentication to be required, and no charge", no)
	}
	asked := w.confirm(confirmWith(i, w.NeedsAction), provider.IntentRequiresAction)
	if asked.ChargeID != second.ChargeID || asked.Failure != nil || asked.PaymentMethod == "" {
		w.Fatalf("got %+v; want the charge of the last decline", asked)
	}
	w.moved(i.Tags, 0)
	paid := w.confirm(confirmWith(i, w.Good), provider.IntentSucceeded)
	if paid.Charge == nil || paid.ChargeID == second.ChargeID || paid.Failure != nil {
		w.Fatalf("got %+v", paid)
	}
	w.moved(i.Tags, 1)
	if hits := w.found(i.Tags, 3); hits[0].ID != paid.ChargeID {
		w.Fatalf("found %+v; want the newest first", hits)
	}
	_, err = w.Provider.ConfirmIntent(context.Background(), confirmWith(i, w.Good))
	w.failed(err, provider.StoredFailure)
	w.moved(i.Tags, 1)
}

func intentConfirmedInBrowser(_ *testing.T, w *world) {
	i := w.payLater()
	if err := w.ConfirmInBrowser(i.ID, w.Declined); err == nil {
		w.Fatal("a declined card paid")
	}
	got := w.intent(i.ID, provider.IntentRequiresPaymentMethod)
	if got.Failure == nil || got.Failure.ChargeID != got.ChargeID || got.Charge.Tags != i.Tags {
		w.Fatalf("got %+v", got)
	}
	if err := w.ConfirmInBrowser(i.ID, w.NeedsAction); err != nil {
		w.Fatal(err)
	}
	asked := w.intent(i.ID, provider.IntentRequiresAction)
	if asked.NextAction == nil || asked.NextAction.RedirectURL == "" || asked.ClientSecret != i.ClientSecret {
		w.Fatalf("got %+v", asked)
	}
	w.Authenticate(i.ID, true)
	paid := w.intent(i.ID, provider.IntentSucceeded)
	if paid.Charge == nil || paid.Charge.Tags != i.Tags || paid.Charge.IntentID != i.ID {
		w.Fatalf("got %+v", paid)
	}
	w.moved(i.Tags, 1)
	_, err := w.Provider.ConfirmIntent(context.Background(), confirmWith(i, w.Good))
	w.failed(err, provider.StoredFailure)
	w.moved(i.Tags, 1)
}

func updateOf(i *provider.Intent) provider.UpdateIntentRequest {
	return provider.UpdateIntentRequest{IdempotencyKey: "po_" + rand.Text(), Tags: i.Tags, IntentID: i.ID}
}

func (w *world) update(r provider.UpdateIntentRequest) *provider.Intent {
	w.Helper()
	out, err := w.Provider.UpdateIntent(context.Background(), r)
	if err != nil || out.Intent == nil || out.Refusal != nil || out.Intent.Tags != r.Tags {
		w.Fatalf("update: got %+v, %v; want the intent", out, err)
	}
	return out.Intent
}

func intentUpdated(_ *testing.T, w *world) {
	i := w.payLater()
	w.declinedWith(confirmWith(i, w.Declined))
	text := "A book"
	r := updateOf(i)
	r.Amount, r.Description, r.Source = i.Amount+500, &text, w.Good
	r.Metadata = map[string]string{"order": "", "gift": "yes", provider.MetadataOperation: "forged"}
	w.Break(LoseAnswer)
	_, err := w.Provider.UpdateIntent(context.Background(), r)
	w.failed(err, provider.Unknown)
	for range 2 { // the same key tells, and once it is forgotten the same is done again
		got := w.update(r)
		if got.Amount != r.Amount || got.Status != provider.IntentRequiresConfirmation || got.PaymentMethod == "" || got.Failure != nil {
			w.Fatalf("got %+v", got)
		}
		w.ForgetKeys()
	}
	paid := w.confirm(confirmOf(i), provider.IntentSucceeded)
	if paid.Charge.Amount != r.Amount {
		w.Fatalf("charged %+v", paid.Charge)
	}
	r = updateOf(i)
	r.Amount = i.Amount
	out, err := w.Provider.UpdateIntent(context.Background(), r)
	if err != nil || out.Refusal == nil || out.Refusal.Decline {
		w.Fatalf("after it was paid: got %+v, %v; want a refusal", out, err)
	}
	r = updateOf(&provider.Intent{ID: "pi_doesnotexist", Tags: i.Tags})
	r.Amount = i.Amount
	if out, err = w.Provider.UpdateIntent(context.Background(), r); err != nil || out.Refusal == nil {
		w.Fatalf("no such intent: got %+v, %v; want a refusal", out, err)
	}
	w.moved(i.Tags, 1)
	for _, change := range []func(*provider.UpdateIntentRequest){
		func(r *provider.UpdateIntentRequest) { r.IdempotencyKey = "" },
		func(r *provider.UpdateIntentRequest) { r.IntentID = "" },
		func(r *provider.UpdateIntentRequest) { r.Tags.Operation = "" },
	} {
		r := updateOf(i)
		change(&r)
		_, err := w.Provider.UpdateIntent(context.Background(), r)
		w.failed(err, provider.Conflict)
	}
}
