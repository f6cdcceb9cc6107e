package providertest

import (
	"context"
	"crypto/rand"
	"testing"

	"paidonce/provider"
)

func (w *world) authorised() *provider.Charge {
	w.Helper()
	r := w.request()
	r.Capture = false
	c := w.paid(r)
	if c.Captured || c.AmountCaptured != 0 {
		w.Fatalf("authorised charge is captured: %+v", c)
	}
	return c
}

func captureOf(c *provider.Charge, amount int64) provider.CaptureRequest {
	return provider.CaptureRequest{IdempotencyKey: "po_" + rand.Text(), Tags: newTags(), ChargeID: c.ID, Amount: amount}
}

func refundOf(c *provider.Charge, amount int64) provider.RefundRequest {
	return provider.RefundRequest{
		IdempotencyKey: "po_" + rand.Text(), Tags: newTags(), ChargeID: c.ID, Amount: amount, Reason: "requested_by_customer",
		Metadata: map[string]string{"why": "too small"},
	}
}

func capture(_ *testing.T, w *world) {
	c := w.authorised()
	r := captureOf(c, c.Amount)
	w.Break(LoseAnswer)
	_, err := w.Provider.Capture(context.Background(), r)
	w.failed(err, provider.Unknown)
	out, err := w.Provider.Capture(context.Background(), r)
	if err != nil || out.Charge == nil || !out.Charge.Captured || out.Charge.AmountCaptured != c.Amount || out.Charge.ID != c.ID {
		w.Fatalf("got %+v, %v; want the captured charge", out, err)
	}
	out, err = w.Provider.Capture(context.Background(), captureOf(c, c.Amount))
	if err != nil || out.Refusal == nil || out.Refusal.Decline {
		w.Fatalf("second capture: got %+v, %v; want a refusal", out, err)
	}
}

func captureInPart(_ *testing.T, w *world) {
	c := w.authorised()
	out, err := w.Provider.Capture(context.Background(), captureOf(c, c.Amount+1))
	if err != nil || out.Refusal == nil {
		w.Fatalf("capture over the amount: got %+v, %v; want a refusal", out, err)
	}
	out, err = w.Provider.Capture(context.Background(), captureOf(c, 1500))
	if err != nil || out.Charge == nil || out.Charge.AmountCaptured != 1500 || out.Charge.AmountRefunded != 0 {
		w.Fatalf("got %+v, %v; want 1500 captured and nothing given back", out, err)
	}
	back, err := w.Provider.Refund(context.Background(), refundOf(c, 1500))
	if err != nil || back.Refund == nil {
		w.Fatalf("refund of the captured part: %+v, %v", back, err)
	}
	got, err := w.Provider.GetCharge(context.Background(), c.ID)
	if err != nil || got == nil || got.AmountCaptured != 1500 || got.AmountRefunded != 1500 {
		w.Fatalf("got %+v, %v; want 1500 captured and refunded", got, err)
	}
}

func refunds(_ *testing.T, w *world) {
	c := w.paid(w.request())
	r := refundOf(c, 500)
	first, err := w.Provider.Refund(context.Background(), r)
	if err != nil || first.Refund == nil || first.Refund.Amount != 500 || first.Refund.ChargeID != c.ID || first.Refund.Tags != r.Tags ||
		first.Refund.Reason != r.Reason || first.Refund.Status != provider.Succeeded {
		w.Fatalf("got %+v, %v; want a refund over 500", first, err)
	}
	again, err := w.Provider.Refund(context.Background(), r)
	if err != nil || again.Refund == nil || again.Refund.ID != first.Refund.ID {
		w.Fatalf("same key: got %+v, %v", again, err)
	}
	got, err := w.Provider.GetCharge(context.Background(), c.ID)
	if err != nil || got == nil || got.AmountRefunded != 500 {
		w.Fatalf("got %+v, %v; want 500 refunded", got, err)
	}
	hits, err := w.Provider.FindRefund(context.Background(), provider.Lookup{Tags: r.Tags, ChargeID: c.ID})
	if err != nil || len(hits) != 1 || hits[0].ID != first.Refund.ID {
		w.Fatalf("look-up: %+v, %v", hits, err)
	}
}

func lostRefund(_ *testing.T, w *world) {
	c := w.paid(w.request())
	find := func(r provider.RefundRequest, n int) {
		w.Helper()
		hits, err := w.Provider.FindRefund(context.Background(), provider.Lookup{Tags: r.Tags, ChargeID: c.ID})
		if err != nil || len(hits) != n {
			w.Fatalf("look-up: %+v, %v; want %d", hits, err, n)
		}
	}
	lost := refundOf(c, 100)
	w.Break(LoseRequest)
	_, err := w.Provider.Refund(context.Background(), lost)
	w.failed(err, provider.Unknown)
	find(lost, 0)
	done := refundOf(c, 200)
	w.Break(LoseAnswer)
	_, err = w.Provider.Refund(context.Background(), done)
	w.failed(err, provider.Unknown)
	find(done, 1)
	for range 105 { // a second page
		if _, err := w.Provider.Refund(context.Background(), refundOf(c, 1)); err != nil {
			w.Fatal(err)
		}
	}
	find(done, 1)
	find(lost, 0)
}

func refundOver(_ *testing.T, w *world) {
	c := w.paid(w.request())
	for _, step := range []struct {
		amount  int64
		refused bool
	}{{1500, false}, {501, true}, {500, false}, {1, true}} {
		out, err := w.Provider.Refund(context.Background(), refundOf(c, step.amount))
		if err != nil || (out.Refusal != nil) != step.refused {
			w.Fatalf("refund of %d: %+v, %v; refused should be %t", step.amount, out, err, step.refused)
		}
	}
}

func get(_ *testing.T, w *world) {
	c := w.paid(w.request())
	got, err := w.Provider.GetCharge(context.Background(), c.ID)
	if err != nil || got == nil || got.ID != c.ID || got.Tags != c.Tags || got.Outcome == nil {
		w.Fatalf("got %+v, %v", got, err)
	}
	if got, err := w.Provider.GetCharge(context.Background(), "ch_doesnotexist"); err != nil || got != nil {
		w.Fatalf("missing charge: got %+v, %v; want nil, nil", got, err)
	}
	if got, err := w.Provider.GetCharge(context.Background(), ""); err == nil {
		w.Fatalf("no id: got %+v", got)
	}
}
