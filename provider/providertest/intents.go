package providertest

import (
	"context"
	"crypto/rand"
	"strings"
	"sync"
	"testing"
	"time"

	"paidonce/provider"
)

// create makes an intent that is ready to be confirmed.
func (w *world) create(r provider.ChargeRequest) *provider.Intent {
	w.Helper()
	out, err := w.Provider.CreateIntent(context.Background(), &r, "https://shop.example/back")
	if err != nil || out.Intent == nil || out.Refusal != nil || out.Intent.Status != provider.IntentRequiresConfirmation {
		w.Fatalf("create: got %+v, %v; want an intent that waits for its confirmation", out, err)
	}
	return out.Intent
}

func confirmOf(i *provider.Intent) provider.ConfirmRequest {
	return provider.ConfirmRequest{IdempotencyKey: "po_" + rand.Text(), Tags: i.Tags, IntentID: i.ID, ReturnURL: "https://shop.example/back"}
}

func (w *world) confirm(r provider.ConfirmRequest, status provider.IntentStatus) *provider.Intent {
	w.Helper()
	out, err := w.Provider.ConfirmIntent(context.Background(), r)
	if err != nil || out.Intent == nil || out.Refusal != nil || out.Intent.Status != status {
		w.Fatalf("confirm: got %+v, %v; want the intent %s", out, err, status)
	}
	return out.Intent
}

func (w *world) intent(id string, status provider.IntentStatus) *provider.Intent {
	w.Helper()
	i, err := w.Provider.GetIntent(context.Background(), id)
	if err != nil || i == nil || i.ID != id || i.Status != status {
		w.Fatalf("get: %+v, %v; want it %s", i, err, status)
	}
	return i
}

func (w *world) foundIntents(tags provider.Tags, n int) []provider.Intent {
	w.Helper()
	now := time.Now()
	hits, err := w.Provider.FindIntent(context.Background(), provider.Lookup{Tags: tags, From: now.Add(-time.Minute), To: now})
	if err != nil || len(hits) != n {
		w.Fatalf("look-up: %+v, %v; want %d intents", hits, err, n)
	}
	return hits
}

func intentPays(_ *testing.T, w *world) {
	r := w.request()
	i := w.create(r)
	if i.Amount != r.Amount || i.Currency != r.Currency || i.Livemode != r.Livemode || i.Tags != r.Tags || i.Created.IsZero() ||
		i.ChargeID != "" || i.Charge != nil || i.NextAction != nil || i.Failure != nil {
		w.Errorf("the intent doesn't say what was asked for: %+v", i)
	}
	if again := w.create(r); again.ID != i.ID {
		w.Errorf("the same key gave intent %s, then %s", i.ID, again.ID)
	}
	w.moved(r.Tags, 0)
	c := confirmOf(i)
	for range 2 {
		paid := w.confirm(c, provider.IntentSucceeded)
		if paid.Charge == nil || paid.ChargeID != paid.Charge.ID || paid.Charge.Status != provider.Succeeded || paid.Charge.AmountCaptured != r.Amount ||
			paid.Charge.Tags != r.Tags || paid.Charge.IntentID != i.ID {
			w.Errorf("charge %+v", paid.Charge)
		}
	}
	w.moved(r.Tags, 1)
	got := w.intent(i.ID, provider.IntentSucceeded)
	if hits := w.found(r.Tags, 1); got.Charge == nil || hits[0].ID != got.ChargeID || hits[0].IntentID != i.ID {
		w.Errorf("found %+v, the intent has %s", hits, got.ChargeID)
	}
	if hits := w.foundIntents(r.Tags, 1); hits[0].ID != i.ID || hits[0].ChargeID != got.ChargeID || hits[0].Status != provider.IntentSucceeded {
		w.Errorf("found %+v", hits)
	}
	r.Amount++
	_, err := w.Provider.CreateIntent(context.Background(), &r, "")
	w.failed(err, provider.Conflict)
	c.ReturnURL = "https://shop.example/elsewhere"
	_, err = w.Provider.ConfirmIntent(context.Background(), c)
	w.failed(err, provider.Conflict)
	w.moved(r.Tags, 1)
}

func intentDeclined(_ *testing.T, w *world) {
	r := w.request()
	r.Source = w.Declined
	i := w.create(r)
	c := confirmOf(i)
	declined := func(about string, past bool) {
		w.Helper()
		out, err := w.Provider.ConfirmIntent(context.Background(), c)
		if err != nil || out.Intent != nil || out.Refusal == nil || !out.Refusal.Decline || out.Refusal.ChargeID == "" || out.Refusal.Code == "" {
			w.Fatalf("%s: got %+v, %v; want a decline", about, out, err)
		}
		if out.Refusal.LastAttempt != past {
			w.Fatalf("%s: told of the last attempt: %t", about, !past)
		}
		out.Refusal.LastAttempt = false
		got := w.intent(i.ID, provider.IntentRequiresPaymentMethod)
		if got.Failure == nil || *got.Failure != *out.Refusal || got.ChargeID != out.Refusal.ChargeID || got.Charge.Status != provider.Failed {
			w.Fatalf("%s: the intent has %+v, the answer was %+v", about, got.Failure, out.Refusal)
		}
	}
	w.Break(LoseAnswer)
	_, err := w.Provider.ConfirmIntent(context.Background(), c)
	w.failed(err, provider.Unknown)
	declined("same key", false)
	w.ForgetKeys()
	declined("forgotten key", true) // the card isn't asked a second time
	w.found(r.Tags, 1)
	w.moved(r.Tags, 0)
}

func intentRefused(_ *testing.T, w *world) {
	r := w.request()
	r.Source = w.Missing
	out, err := w.Provider.CreateIntent(context.Background(), &r, "")
	if err != nil || out.Refusal == nil || out.Refusal.Decline || out.Intent != nil {
		w.Fatalf("got %+v, %v; want a refusal that isn't a decline", out, err)
	}
	w.foundIntents(r.Tags, 0)
	r = w.request()
	r.Source, r.Customer = "", "cus_doesnotexist"
	if out, err = w.Provider.CreateIntent(context.Background(), &r, ""); err != nil || out.Refusal == nil || out.Refusal.Decline {
		w.Fatalf("no such customer: got %+v, %v; want a refusal", out, err)
	}
	c := confirmOf(&provider.Intent{ID: "pi_doesnotexist", Tags: r.Tags})
	if out, err = w.Provider.ConfirmIntent(context.Background(), c); err != nil || out.Refusal == nil || out.Refusal.Decline {
		w.Fatalf("no such intent: got %+v, %v; want a refusal", out, err)
	}
	if i, err := w.Provider.GetIntent(context.Background(), "pi_doesnotexist"); err != nil || i != nil {
		w.Fatalf("no such intent: got %+v, %v; want nil, nil", i, err)
	}
}

func intentCreationLost(_ *testing.T, w *world) {
	r := w.request()
	w.Break(LoseRequest)
	_, err := w.Provider.CreateIntent(context.Background(), &r, "")
	w.failed(err, provider.Unknown)
	w.foundIntents(r.Tags, 0)
	for b, kind := range map[Break]provider.Kind{LoseAnswer: provider.Unknown, CutAnswer: provider.Unknown, StoreFailure: provider.StoredFailure} {
		r := w.request()
		w.Break(b)
		_, err := w.Provider.CreateIntent(context.Background(), &r, "")
		w.failed(err, kind)
		i := w.foundIntents(r.Tags, 1)[0]
		if i.Status != provider.IntentRequiresConfirmation || i.Amount != r.Amount || i.Tags != r.Tags {
			w.Errorf("%s: found %+v", b, i)
		}
		w.confirm(confirmOf(&i), provider.IntentSucceeded)
		w.moved(r.Tags, 1)
	}
}

// intentConfirmationLost shows what intents are for: whatever became of the answer, one read by id
// tells, without a key.
func intentConfirmationLost(_ *testing.T, w *world) {
	for b, moved := range map[Break]int{LoseRequest: 0, LoseAnswer: 1, CutAnswer: 1, StoreFailure: 1} {
		i := w.create(w.request())
		c := confirmOf(i)
		w.Break(b)
		kind := provider.Unknown
		if b == StoreFailure {
			kind = provider.StoredFailure
		}
		_, err := w.Provider.ConfirmIntent(context.Background(), c)
		w.failed(err, kind)
		w.moved(i.Tags, moved)
		w.ForgetKeys()
		status := provider.IntentRequiresConfirmation
		if moved == 1 {
			status = provider.IntentSucceeded
		}
		w.intent(i.ID, status)
		if moved == 0 {
			w.confirm(c, provider.IntentSucceeded)
			w.moved(i.Tags, 1)
			w.ForgetKeys()
		}
		// Even sent again past the key's window it can't charge twice, nor is "already confirmed"
		// taken for a refusal.
		_, err = w.Provider.ConfirmIntent(context.Background(), c)
		w.failed(err, provider.StoredFailure)
		w.moved(i.Tags, 1)
	}
}

func intentsAtOnce(t *testing.T, w *world) {
	i := w.create(w.request())
	c := confirmOf(i)
	var wg sync.WaitGroup
	for n := range 32 {
		wg.Go(func() {
			c := c
			if n%4 == 3 { // even keys that differ
				c.IdempotencyKey += rand.Text()
			}
			if out, err := w.Provider.ConfirmIntent(context.Background(), c); err == nil && (out.Intent == nil || out.Intent.Status != provider.IntentSucceeded) {
				t.Errorf("got %+v", out)
			}
		})
	}
	wg.Wait()
	w.moved(i.Tags, 1)
}

func intentPages(t *testing.T, w *world) {
	i := w.create(w.request())
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 26 {
				r := w.request()
				if _, err := w.Provider.CreateIntent(context.Background(), &r, ""); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if hits := w.foundIntents(i.Tags, 1); hits[0].ID != i.ID {
		t.Errorf("found %+v", hits)
	}
	w.foundIntents(newTags(), 0)
	if _, err := w.Provider.FindIntent(context.Background(), provider.Lookup{}); err == nil {
		t.Error("a look-up without tags")
	}
}

func intentCapture(_ *testing.T, w *world) {
	r := w.request()
	r.Capture = false
	i := w.confirm(confirmOf(w.create(r)), provider.IntentRequiresCapture)
	if i.Charge == nil || i.Charge.Captured || i.Charge.AmountCaptured != 0 {
		w.Fatalf("authorised charge %+v", i.Charge)
	}
	over := captureOf(i.Charge, r.Amount+1)
	over.IntentID = i.ID
	if out, err := w.Provider.Capture(context.Background(), over); err != nil || out.Refusal == nil || out.Refusal.Decline {
		w.Fatalf("capture over the amount: got %+v, %v; want a refusal", out, err)
	}
	part := captureOf(i.Charge, 1500)
	part.IntentID = i.ID
	w.Break(LoseAnswer)
	_, err := w.Provider.Capture(context.Background(), part)
	w.failed(err, provider.Unknown)
	out, err := w.Provider.Capture(context.Background(), part)
	if err != nil || out.Charge == nil || out.Charge.ID != i.ChargeID || !out.Charge.Captured || out.Charge.AmountCaptured != 1500 || out.Charge.AmountRefunded != 0 {
		w.Fatalf("got %+v, %v; want 1500 captured", out, err)
	}
	w.ForgetKeys()
	out, err = w.Provider.Capture(context.Background(), part)
	if err != nil || out.Refusal == nil || !out.Refusal.AlreadyCaptured {
		w.Fatalf("second capture: got %+v, %v; want a refusal", out, err)
	}
	w.intent(i.ID, provider.IntentSucceeded)
	back, err := w.Provider.Refund(context.Background(), refundOf(i.Charge, 1500))
	if err != nil || back.Refund == nil {
		w.Fatalf("refund of an intent's charge: %+v, %v", back, err)
	}
	got, err := w.Provider.GetCharge(context.Background(), i.ChargeID)
	if err != nil || got == nil || got.AmountRefunded != 1500 {
		w.Fatalf("got %+v, %v; want 1500 refunded", got, err)
	}
}

func intentCustomer(_ *testing.T, w *world) {
	r := w.request()
	r.Source, r.Customer = "", w.Customer
	w.confirm(confirmOf(w.create(r)), provider.IntentSucceeded)
	w.moved(r.Tags, 1)
}

func intentAction(_ *testing.T, w *world) {
	for _, agrees := range []bool{true, false} {
		r := w.request()
		r.Source = w.NeedsAction
		i := w.create(r)
		c := confirmOf(i)
		w.Break(LoseAnswer)
		_, err := w.Provider.ConfirmIntent(context.Background(), c)
		w.failed(err, provider.Unknown)
		for _, i := range []*provider.Intent{w.confirm(c, provider.IntentRequiresAction), w.intent(i.ID, provider.IntentRequiresAction)} {
			if i.NextAction == nil || i.NextAction.Type != "redirect_to_url" || !strings.HasPrefix(i.NextAction.RedirectURL, "http") ||
				strings.Contains(i.NextAction.RedirectURL, "…") || i.NextAction.ClientSecret == "" || i.ChargeID != "" {
				w.Errorf("got %+v, %+v; want to be told where to send the payer", i, i.NextAction)
			}
		}
		w.moved(r.Tags, 0)
		w.Authenticate(i.ID, agrees)
		if agrees {
			if got := w.intent(i.ID, provider.IntentSucceeded); got.Charge == nil || got.NextAction != nil || got.Charge.Tags != r.Tags {
				w.Errorf("got %+v", got)
			}
			w.moved(r.Tags, 1)
			continue
		}
		got := w.intent(i.ID, provider.IntentRequiresPaymentMethod)
		if got.Failure == nil || !got.Failure.Decline || got.Failure.Code == "" || got.NextAction != nil {
			w.Errorf("got %+v, %+v; want it declined", got, got.Failure)
		}
		w.moved(r.Tags, 0)
	}
}

func intentNoKey(_ *testing.T, w *world) {
	r := w.request()
	r.IdempotencyKey = ""
	_, err := w.Provider.CreateIntent(context.Background(), &r, "")
	w.failed(err, provider.Conflict)
	i := w.create(w.request())
	for _, change := range []func(*provider.ConfirmRequest){
		func(c *provider.ConfirmRequest) { c.IdempotencyKey = "" },
		func(c *provider.ConfirmRequest) { c.IntentID = "" },
		func(c *provider.ConfirmRequest) { c.Tags.Operation = "" },
	} {
		c := confirmOf(i)
		change(&c)
		_, err := w.Provider.ConfirmIntent(context.Background(), c)
		w.failed(err, provider.Conflict)
	}
	for _, change := range []func(*provider.CancelRequest){
		func(c *provider.CancelRequest) { c.IdempotencyKey = "" },
		func(c *provider.CancelRequest) { c.IntentID = "" },
		func(c *provider.CancelRequest) { c.Tags.Operation = "" },
	} {
		c := cancelOf(i)
		change(&c)
		_, err := w.Provider.CancelIntent(context.Background(), c)
		w.failed(err, provider.Conflict)
	}
	w.moved(i.Tags, 0)
	_, err = w.Provider.GetIntent(context.Background(), "")
	w.failed(err, provider.Conflict)
}

func getRefund(_ *testing.T, w *world) {
	r := refundOf(w.paid(w.request()), 500)
	out, err := w.Provider.Refund(context.Background(), r)
	if err != nil || out.Refund == nil {
		w.Fatalf("got %+v, %v", out, err)
	}
	got, err := w.Provider.GetRefund(context.Background(), out.Refund.ID)
	if err != nil || got == nil || *got != *out.Refund {
		w.Fatalf("got %+v, %v; want %+v", got, err, out.Refund)
	}
	if got, err := w.Provider.GetRefund(context.Background(), "re_doesnotexist"); err != nil || got != nil {
		w.Fatalf("missing refund: got %+v, %v; want nil, nil", got, err)
	}
	if got, err := w.Provider.GetRefund(context.Background(), ""); err == nil {
		w.Fatalf("no id: got %+v", got)
	}
}
