package recovery_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"paidonce/charges"
	"paidonce/inbox"
	"paidonce/provider"
)

// heldAnswer holds back the provider's first answer about a charge, as a slow network does: it tells what was true when it was asked for.
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
func (w *world) late(i instance, typ, object string, meanwhile func()) {
	w.t.Helper()
	held := heldAnswer{w.psp, &sync.Once{}, make(chan struct{}), make(chan struct{})}
	learner := charges.NewLearner(i.store, i.engine, held, charges.Config{Installation: "test", LookupMisses: 3})
	in := w.inboxOf(i, func(ctx context.Context, e inbox.Event, mark inbox.Mark) error {
		return learner.Learn(ctx, charges.News{ID: e.ID, Type: e.Type, ObjectID: e.ObjectID, Livemode: e.Livemode, Payload: e.Payload}, charges.Mark(mark))
	})
	w.deliver(in, "evt_late", typ, object)
	done := make(chan error, 1)
	go func() { _, err := in.RunOnce(context.Background(), 1); done <- err }()
	<-held.answered
	meanwhile()
	close(held.resume)
	if err := <-done; err != nil {
		w.t.Fatal(err)
	}
	w.process(in)
	if n := w.count(`SELECT count(*) FROM provider_events WHERE processed_at IS NULL`); n != 0 {
		w.t.Errorf("%d pieces of news are not processed", n)
	}
}

// learn delivers a piece of news and processes it, and no other.
func (w *world) learn(in *inbox.Inbox, typ, object string) {
	w.t.Helper()
	w.deliver(in, "evt_"+strings.ReplaceAll(typ, ".", "_"), typ, object)
	if n, err := in.RunOnce(context.Background(), 5); n != 1 || err != nil {
		w.t.Fatalf("%d, %v", n, err)
	}
}

func (i instance) refunded(w *world, key, charge string, amount int64) (providerID string) {
	w.t.Helper()
	res, err := i.refund(w, key, charge, amount)
	if err != nil {
		w.t.Fatal(err)
	}
	var refund charges.Refund
	if err := json.Unmarshal(res.Answer.Body, &refund); err != nil || refund.Provider.ID == nil {
		w.t.Fatalf("%s, %v", res.Answer.Body, err)
	}
	return *refund.Provider.ID
}

// An answer of the provider that was overtaken does not bring back what has changed since: a refund that failed, a refund that was made, a dispute that was won.
func TestOvertakenAnswersChangeNothing(t *testing.T) {
	t.Parallel()
	t.Run("a refund failed meanwhile", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		i := w.start(nil, nil)
		charge := i.made(w, "k", twenty)
		id, refund := w.providerCharge(), i.refunded(w, "r", charge, 500)
		in := w.inboxOf(i, nil)
		w.late(i, "charge.refunded", id, func() {
			if err := w.sim.FailRefund(refund, ""); err != nil {
				t.Fatal(err)
			}
			w.learn(in, "refund.failed", refund)
		})
		w.holdsRefunded(0, 2) // charge.refunded, charge.updated
	})
	t.Run("a refund was made meanwhile", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		i := w.start(nil, nil)
		charge := i.made(w, "k", twenty)
		refund := i.refunded(w, "r", charge, 500)
		if err := w.sim.FailRefund(refund, ""); err != nil {
			t.Fatal(err)
		}
		w.late(i, "refund.failed", refund, func() { i.refunded(w, "r2", charge, 700) })
		w.holdsRefunded(700, 3)
	})
	t.Run("a dispute was won meanwhile", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		i := w.start(nil, nil)
		i.made(w, "k", twenty)
		if err := w.sim.DisputeCharge(w.providerCharge()); err != nil {
			t.Fatal(err)
		}
		dispute, in := w.dispute(), w.inboxOf(i, nil)
		w.learn(in, "charge.dispute.created", dispute)
		w.late(i, "charge.dispute.updated", dispute, func() {
			if err := w.sim.CloseDispute(dispute, "won"); err != nil {
				t.Fatal(err)
			}
			w.learn(in, "charge.dispute.closed", dispute)
		})
		if n := w.count(`SELECT count(*) FROM charges WHERE disputed`); n != 0 {
			t.Error("a dispute that was won came back")
		}
	})
}

// holdsRefunded checks how much of the only charge is refunded here and at the provider, and how many events have told of that.
func (w *world) holdsRefunded(amount, events int) {
	w.t.Helper()
	got, err := w.psp.GetCharge(w.t.Context(), w.providerCharge())
	if err != nil {
		w.t.Fatal(err)
	}
	if n := w.count(`SELECT amount_refunded FROM charges`); n != amount || int64(n) != got.AmountRefunded {
		w.t.Errorf("refunded are %d, at the provider %d, want %d", n, got.AmountRefunded, amount)
	}
	if n := w.count(`SELECT count(*) FROM outbox WHERE type IN ('charge.refunded', 'charge.updated')`); n != events {
		w.t.Errorf("%d events tell of it, want %d", n, events)
	}
}
