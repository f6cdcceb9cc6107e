package providertest

import (
	"context"
	"crypto/rand"
	"sync"
	"testing"

	"paidonce/provider"
)

func cancelOf(i *provider.Intent) provider.CancelRequest {
	return provider.CancelRequest{
		IdempotencyKey: "po_" + rand.Text(), Tags: newTags(), IntentID: i.ID, Reason: "abandoned",
	}
}

// refusedCancel wants the cancellation refused, and the intent as it was.
func (w *world) refusedCancel(r provider.CancelRequest, status provider.IntentStatus) {
	w.Helper()
	out, err := w.Provider.CancelIntent(context.Background(), r)
	if err != nil || out.Intent != nil || out.Refusal == nil || out.Refusal.Decline {
		w.Fatalf("cancel: got %+v, %v; want a refusal", out, err)
	}
	w.intent(r.IntentID, status)
}

func (w *world) cancel(r provider.CancelRequest) *provider.Intent {
	w.Helper()
	out, err := w.Provider.CancelIntent(context.Background(), r)
	if err != nil || out.Intent == nil || out.Refusal != nil ||
		out.Intent.Status != provider.IntentCanceled || out.Intent.ID != r.IntentID || out.Intent.NextAction != nil {
		w.Fatalf("cancel: got %+v, %v; want the intent canceled", out, err)
	}
	return out.Intent
}

// waiting makes an intent that waits for its payer.
func (w *world) waiting(capture bool) *provider.Intent {
	w.Helper()
	r := w.request()
	r.Source, r.Capture = w.NeedsAction, capture
	return w.confirm(confirmOf(w.create(r)), provider.IntentRequiresAction)
}

func intentCanceled(_ *testing.T, w *world) {
	// One that waits for its payer: a late authentication moves nothing.
	i := w.waiting(true)
	c := cancelOf(i)
	for range 2 {
		if got := w.cancel(c); got.Tags != i.Tags {
			w.Errorf("got %+v; want the tags of the intent", got)
		}
	}
	w.Authenticate(i.ID, true)
	w.intent(i.ID, provider.IntentCanceled)
	w.moved(i.Tags, 0)
	w.refusedCancel(cancelOf(i), provider.IntentCanceled)

	// One that was never confirmed: nor can it be after that.
	i = w.create(w.request())
	w.cancel(cancelOf(i))
	out, err := w.Provider.ConfirmIntent(context.Background(), confirmOf(i))
	if err != nil || out.Refusal == nil {
		w.Fatalf("confirm after cancel: got %+v, %v; want a refusal", out, err)
	}
	w.moved(i.Tags, 0)

	// An authorisation: what is held is let go, and counts as refunded.
	r := w.request()
	r.Capture = false
	i = w.confirm(confirmOf(w.create(r)), provider.IntentRequiresCapture)
	got := w.cancel(cancelOf(i))
	if got.Charge == nil || got.Charge.ID != i.ChargeID || got.Charge.Captured || got.Charge.AmountRefunded != r.Amount {
		w.Errorf("charge %+v; want its authorisation released", got.Charge)
	}

	// Money that has moved stays.
	i = w.confirm(confirmOf(w.create(w.request())), provider.IntentSucceeded)
	w.refusedCancel(cancelOf(i), provider.IntentSucceeded)
	w.moved(i.Tags, 1)
}

func intentCancellationLost(_ *testing.T, w *world) {
	for b, status := range map[Break]provider.IntentStatus{
		LoseRequest: provider.IntentRequiresAction, LoseAnswer: provider.IntentCanceled, CutAnswer: provider.IntentCanceled,
		StoreFailure: provider.IntentCanceled,
	} {
		i := w.waiting(true)
		c := cancelOf(i)
		w.Break(b)
		_, err := w.Provider.CancelIntent(context.Background(), c)
		kind := provider.Unknown
		if b == StoreFailure {
			kind = provider.StoredFailure
		}
		w.failed(err, kind)
		w.intent(i.ID, status)
		switch b {
		case LoseRequest, LoseAnswer, CutAnswer: // the same key tells
			w.cancel(c)
		}
		w.ForgetKeys() // and past its window, the intent
		w.refusedCancel(c, provider.IntentCanceled)
	}
}

// intentCanceledOrPaid: of a cancellation and a payer who authenticates, exactly one wins, and the
// answer to the cancellation says which.
func intentCanceledOrPaid(t *testing.T, w *world) {
	for range 16 {
		i := w.waiting(true)
		var race sync.WaitGroup
		race.Go(func() { w.Authenticate(i.ID, true) })
		out, err := w.Provider.CancelIntent(context.Background(), cancelOf(i))
		race.Wait()
		switch {
		case err != nil:
			t.Fatal(err)
		case out.Intent != nil:
			w.intent(i.ID, provider.IntentCanceled)
			w.moved(i.Tags, 0)
		default:
			w.intent(i.ID, provider.IntentSucceeded)
			w.moved(i.Tags, 1)
		}
	}
}

// intentNobodyThere: what needs a payer who isn't there is declined, and waits for nobody.
func intentNobodyThere(_ *testing.T, w *world) {
	r := w.request()
	r.Source = w.NeedsAction
	i := w.create(r)
	c := confirmOf(i)
	c.ReturnURL, c.OffSession = "", true
	out, err := w.Provider.ConfirmIntent(context.Background(), c)
	if err != nil || out.Refusal == nil || !out.Refusal.Decline || out.Refusal.Code != "authentication_required" {
		w.Fatalf("got %+v, %v; want a decline, authentication_required", out, err)
	}
	w.intent(i.ID, provider.IntentRequiresPaymentMethod)
	w.moved(r.Tags, 0)
	r = w.request()
	c = confirmOf(w.create(r))
	c.OffSession = true
	w.confirm(c, provider.IntentSucceeded)
}
