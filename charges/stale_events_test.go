package charges_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"paidonce/inbox"
	"paidonce/internal/world"
	"paidonce/provider"
)

// heldAnswer holds back the provider's first answer about a charge, as a slow network does: it
// says what was true when it was asked for.
type heldAnswer struct {
	provider.Provider
	once     *sync.Once
	answered chan struct{}
	resume   chan struct{}
}

func (h heldAnswer) GetCharge(ctx context.Context, id string) (*provider.Charge, error) {
	c, err := h.Provider.GetCharge(ctx, id)
	h.once.Do(func() {
		close(h.answered)
		<-h.resume
	})
	return c, err
}

// late processes one piece of news with an answer that was overtaken by what happens in between.
func late(w *world.World, i world.Instance, typ, object string, meanwhile func()) {
	w.T.Helper()
	held := heldAnswer{w.Provider, &sync.Once{}, make(chan struct{}), make(chan struct{})}
	in := w.InboxWith(w.ProviderEvents(i, held).Apply)
	w.Deliver(in, "evt_late", typ, object)
	done := make(chan error, 1)
	go func() { _, err := in.RunOnce(context.Background(), 1); done <- err }()
	<-held.answered
	meanwhile()
	close(held.resume)
	if err := <-done; err != nil {
		w.T.Fatal(err)
	}
	w.Process(in)
	if n := w.Count(`SELECT count(*) FROM provider_events WHERE processed_at IS NULL`); n != 0 {
		w.T.Errorf("%d pieces of news are not processed", n)
	}
}

// learn delivers a piece of news and processes it, and no other.
func learn(w *world.World, in *inbox.Inbox, typ, object string) {
	w.T.Helper()
	w.Deliver(in, "evt_"+strings.ReplaceAll(typ, ".", "_"), typ, object)
	if n, err := in.RunOnce(context.Background(), 5); n != 1 || err != nil {
		w.T.Fatalf("%d, %v", n, err)
	}
}

// An answer of the provider that was overtaken does not bring back what has changed since: a refund
// that failed, a refund that was made, a dispute that was won.
func TestOvertakenAnswersChangeNothing(t *testing.T) {
	t.Parallel()
	t.Run("a refund failed meanwhile", func(t *testing.T) {
		t.Parallel()
		w := world.New(t)
		i := w.Start()
		charge := i.MustCharge("k", world.Twenty)
		id, refund := w.ProviderCharge(), i.MustRefund("r", charge, 500)
		in := w.Inbox(i)
		late(w, i, "charge.refunded", id, func() {
			if err := w.Sim.FailRefund(refund, ""); err != nil {
				t.Fatal(err)
			}
			learn(w, in, "refund.failed", refund)
		})
		holdsRefunded(w, 0, 2) // charge.refunded, charge.updated
	})
	t.Run("a refund was made meanwhile", func(t *testing.T) {
		t.Parallel()
		w := world.New(t)
		i := w.Start()
		charge := i.MustCharge("k", world.Twenty)
		refund := i.MustRefund("r", charge, 500)
		if err := w.Sim.FailRefund(refund, ""); err != nil {
			t.Fatal(err)
		}
		late(w, i, "refund.failed", refund, func() { i.MustRefund("r2", charge, 700) })
		holdsRefunded(w, 700, 3)
	})
	t.Run("a dispute was won meanwhile", func(t *testing.T) {
		t.Parallel()
		w := world.New(t)
		i := w.Start()
		i.MustCharge("k", world.Twenty)
		if err := w.Sim.DisputeCharge(w.ProviderCharge()); err != nil {
			t.Fatal(err)
		}
		dispute, in := w.Dispute(), w.Inbox(i)
		learn(w, in, "charge.dispute.created", dispute)
		late(w, i, "charge.dispute.updated", dispute, func() {
			if err := w.Sim.CloseDispute(dispute, "won"); err != nil {
				t.Fatal(err)
			}
			learn(w, in, "charge.dispute.closed", dispute)
		})
		if n := w.Count(`SELECT count(*) FROM charges WHERE disputed`); n != 0 {
			t.Error("a dispute that was won came back")
		}
	})
}

// holdsRefunded checks how much of the only charge is refunded here and at the provider, and how
// many events have told of that.
func holdsRefunded(w *world.World, amount, events int) {
	w.T.Helper()
	got, err := w.Provider.GetCharge(w.T.Context(), w.ProviderCharge())
	if err != nil {
		w.T.Fatal(err)
	}
	if n := w.Count(`SELECT amount_refunded FROM charges`); n != amount ||
		int64(n) != got.AmountRefunded {
		w.T.Errorf("refunded are %d, at the provider %d, want %d", n, got.AmountRefunded, amount)
	}
	if n := w.Count(
		`SELECT count(*) FROM outbox WHERE type IN ('charge.refunded', 'charge.updated')`,
	); n != events {
		w.T.Errorf("%d events tell of it, want %d", n, events)
	}
}
