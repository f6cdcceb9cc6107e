package providertest

import (
	"context"
	"slices"
	"testing"
	"time"

	"paidonce/provider"
)

func disputes(_ *testing.T, w *world) {
	for _, won := range []bool{true, false} {
		c := w.paid(w.request())
		id := w.Dispute(c.ID)
		d, err := w.Provider.GetDispute(context.Background(), id)
		if err != nil || d == nil || d.ID != id || d.ChargeID != c.ID || d.Status != "needs_response" || d.Reason == "" || d.Amount != c.Amount ||
			d.Currency != c.Currency || d.Livemode != c.Livemode || d.Created.IsZero() {
			w.Fatalf("got %+v, %v", d, err)
		}
		if got, err := w.Provider.GetCharge(context.Background(), c.ID); err != nil || !got.Disputed {
			w.Fatalf("got %+v, %v; want it disputed", got, err)
		}
		out, err := w.Provider.Refund(context.Background(), refundOf(c, 1))
		if err != nil || out.Refusal == nil || out.Refusal.Decline {
			w.Fatalf("refund of a disputed charge: %+v, %v; want a refusal", out, err)
		}
		w.CloseDispute(id, won)
		status := map[bool]string{true: "won", false: "lost"}[won]
		if d, err = w.Provider.GetDispute(context.Background(), id); err != nil || d == nil || d.Status != status {
			w.Fatalf("got %+v, %v; want it %s", d, err, status)
		}
		if out, err = w.Provider.Refund(context.Background(), refundOf(c, 1)); err != nil || (out.Refund != nil) != won {
			w.Fatalf("refund after a dispute that was %s: %+v, %v", status, out, err)
		}
	}
	if d, err := w.Provider.GetDispute(context.Background(), "dp_doesnotexist"); err != nil || d != nil {
		w.Fatalf("missing dispute: got %+v, %v; want nil, nil", d, err)
	}
}

// A charge may have several disputes. Each is read and listed by itself, and an inquiry lets money
// go back.
func severalDisputes(_ *testing.T, w *world) {
	ctx, c := context.Background(), w.paid(w.request())
	inquiry := w.Inquire(c.ID)
	d, err := w.Provider.GetDispute(ctx, inquiry)
	if err != nil || d.Status != "warning_needs_response" || !d.Refundable || d.DueBy.IsZero() {
		w.Fatalf("got %+v, %v; want an inquiry", d, err)
	}
	if out, err := w.Provider.Refund(ctx, refundOf(c, 1)); err != nil || out.Refund == nil {
		w.Fatalf("refund while there is an inquiry: %+v, %v", out, err)
	}
	second := w.Dispute(c.ID)
	if d, err = w.Provider.GetDispute(ctx, second); err != nil || d.Refundable || d.ChargeID != c.ID {
		w.Fatalf("got %+v, %v", d, err)
	}
	var listed []string
	err = w.Provider.ListDisputes(ctx, time.Now().Add(-time.Hour), time.Time{}, func(d provider.Dispute) error {
		listed = append(listed, d.ID)
		return nil
	})
	if err != nil || !slices.Equal(listed, []string{second, inquiry}) {
		w.Fatalf("listed %v, %v; want %s and %s", listed, err, second, inquiry)
	}
	w.CloseDispute(second, true)
	if d, err = w.Provider.GetDispute(ctx, inquiry); err != nil || d.Status != "warning_needs_response" {
		w.Fatalf("got %+v, %v; want it open", d, err)
	}
}

func fraudWarnings(_ *testing.T, w *world) {
	ctx, c := context.Background(), w.paid(w.request())
	id := w.WarnOfFraud(c.ID)
	got, err := w.Provider.GetFraudWarning(ctx, id)
	if err != nil || got == nil || got.ID != id || got.ChargeID != c.ID || got.FraudType == "" || !got.Actionable ||
		got.Livemode != c.Livemode || got.Created.IsZero() {
		w.Fatalf("got %+v, %v", got, err)
	}
	if got, err := w.Provider.GetFraudWarning(ctx, "issfr_doesnotexist"); err != nil || got != nil {
		w.Fatalf("got %+v, %v; want nil, nil", got, err)
	}
}
