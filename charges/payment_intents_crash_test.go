package charges_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"paidonce/charges"
	"paidonce/history"
	"paidonce/idemkeys"
	"paidonce/internal/world"
	"paidonce/problem"
)

// Each step of an intent × before and after the provider's call × both drivers, within the
// provider's key window and long past it: one charge, and one answer.
func TestPaymentIntentCrashMatrix(t *testing.T) {
	t.Parallel()
	for name, step := range map[string]struct {
		at  string // the provider's call
		ask func(w *world.World, i world.Instance) (idemkeys.Result, error)
	}{
		"create": {"create", func(_ *world.World, i world.Instance) (idemkeys.Result, error) {
			return i.CreateIntent("k", world.PayingIntent("pm_card_visa"))
		}},
		"create and confirm": {"confirm", func(_ *world.World, i world.Instance) (idemkeys.Result, error) {
			return i.CreateIntent("k", world.PayingIntent("pm_card_visa"))
		}},
		"confirm": {"confirm", func(w *world.World, i world.Instance) (idemkeys.Result, error) {
			return i.Confirm("k", waitingIntent(w), "pm_card_visa")
		}},
		"confirm after a decline": {"confirm", func(w *world.World, i world.Instance) (idemkeys.Result, error) {
			id := waitingIntent(w)
			if res, err := w.Start().Confirm("d", id, "pm_card_chargeDeclined"); err != nil ||
				res.Answer.Code != http.StatusPaymentRequired {
				w.T.Errorf("got %s, %v", res.Answer.Body, err)
			}
			return i.Confirm("k", id, "pm_card_visa")
		}},
	} {
		for _, after := range []bool{false, true} {
			for _, driver := range []string{"client", "reconciler"} {
				for _, later := range []time.Duration{90 * time.Second, 30 * 24 * time.Hour} {
					if step.at == "create" && later > time.Hour {
						continue // as TestIntentCrashMatrix
					}
					t.Run(fmt.Sprint(name, " ", after, driver, later), func(t *testing.T) {
						t.Parallel()
						w := world.New(t)
						crashed := make(chan struct{})
						doomed := w.StartWith(nil, crashingIntents{w.Provider, step.at, after, crashed})
						world.UntilCrash(t, crashed, func() { _, _ = step.ask(w, doomed) })
						w.Age(later)
						if later > time.Hour {
							if err := w.Sim.ForgetKeys(""); err != nil {
								t.Fatal(err)
							}
						}
						second := w.Start()
						if driver == "reconciler" {
							w.Pass(second)
						}
						res, err := step.ask(w, second)
						w.WantIntent("succeeded", res, err)
						again, err := step.ask(w, second)
						if err != nil || !again.Replayed || world.Same(res.Answer, again.Answer) != nil {
							t.Errorf("replayed %v, %v", again.Replayed, err)
						}
						w.CheckRecords(1)
						wantAgreement(t, w)
					})
				}
			}
		}
	}
}

// waitingIntent is the only intent of a world, made if there is none.
func waitingIntent(w *world.World) string {
	w.T.Helper()
	if w.Count(`SELECT count(*) FROM payment_intents`) == 0 {
		return w.Start().MustIntent("made", "requires_payment_method", world.TwentyIntent).ID
	}
	var id string
	w.Read(`SELECT id FROM payment_intents`, nil, &id)
	return id
}

// Whoever races for an intent, it is paid or cancelled once, and both sides say the same.
func TestPaymentIntentRaces(t *testing.T) {
	t.Parallel()
	type ask = func(w *world.World, i world.Instance, id string)
	confirm := func(key string) ask {
		return func(_ *world.World, i world.Instance, id string) { _, _ = i.Confirm(key, id, "pm_card_visa") }
	}
	cancel := func(_ *world.World, i world.Instance, id string) { _, _ = i.CancelIntent("x", id) }
	news := func(w *world.World, i world.Instance, id string) {
		in := w.Inbox(i)
		w.Deliver(in, "evt_1", "payment_intent.succeeded", id)
		w.Process(in)
	}
	ends := func(w *world.World, _ world.Instance, id string) { _ = w.Sim.Authenticate(id, true) }
	for name, race := range map[string][]ask{
		"two confirmations":            {confirm("a"), confirm("b")},
		"one key twice":                {confirm("a"), confirm("a")},
		"confirmation and cancelling":  {confirm("a"), cancel},
		"confirmation and news":        {confirm("a"), news},
		"the payer and cancelling":     {ends, cancel},
		"the payer, news, cancelling":  {ends, news, cancel},
		"the payer and a confirmation": {ends, confirm("a"), news},
	} {
		for n := range 3 {
			t.Run(fmt.Sprint(name, n), func(t *testing.T) {
				t.Parallel()
				w := world.New(t)
				i, other := w.Start(), w.Start()
				p := world.TwentyIntent
				status := "requires_payment_method"
				if strings.Contains(name, "payer") {
					p, status = world.PayingIntent("pm_card_threeDSecure2Required"), "requires_action"
				}
				id := i.MustIntent("k", status, p).ID
				var wg sync.WaitGroup
				for m, do := range race {
					wg.Go(func() { do(w, []world.Instance{i, other}[m%2], id) })
				}
				wg.Wait()
				// Whatever was left to the news is asked for.
				w.Age(90 * time.Second)
				w.Pass(i)
				w.Exec(`UPDATE charges SET awaits_at = clock_timestamp() WHERE awaits_at IS NOT NULL`)
				if _, err := w.ProviderEvents(i, nil).Await(t.Context(), 10); err != nil {
					t.Fatal(err)
				}
				paid := int(w.Sim.Stats().Succeeded)
				want := map[int]string{0: "canceled", 1: "succeeded"}[paid]
				got := i.Intent(id).Status
				if got != want && (paid != 0 || got != "requires_action") {
					t.Errorf("the intent is %s, and the provider made %d charges", got, paid)
				}
				w.CheckRecords(paid)
				wantAgreement(t, w)
			})
		}
	}
}

// An intent that the database has forgotten is rebuilt: with its charge, its key and its events,
// and its order stays taken.
func TestPaymentIntentsAreRebuilt(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	i := w.Start()
	order := world.PayingIntent("pm_card_visa")
	order.Reference = "order 7"
	open := world.TwentyIntent
	open.Reference = "order 8"
	paid := i.MustIntent("paid", "succeeded", order)
	waits := i.MustIntent("waits", "requires_payment_method", open)
	events := ids(t, w)
	for _, table := range []string{"outbox", "payment_intents", "charges", "idempotency_keys"} {
		w.Exec(`DELETE FROM ` + table)
	}
	r := charges.NewRebuilder(i.Store, w.Provider, charges.Config{Installation: world.Installation}, world.Quiet)
	if what, err := r.FindForgotten(t.Context()); err != nil || what == "" {
		t.Errorf("forgotten: %q, %v", what, err)
	}
	for range 2 {
		err := r.Rebuild(t.Context(), time.Unix(1, 0), func(context.Context, history.Counts) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
	}
	if got := ids(t, w); got != events {
		t.Errorf("told are %s, want %s", got, events)
	}
	if got := i.Intent(paid.ID); got.Status != "succeeded" || got.LatestCharge.ID != paid.LatestCharge.ID {
		t.Errorf("then %+v, want %+v", got, paid)
	}
	res, err := i.CreateIntent("paid", order)
	if p := w.WantIntent("succeeded", res, err); p.ID != paid.ID {
		t.Errorf("the key makes %s again", p.ID)
	}
	_, err = i.CreateIntent("other", open)
	wantRefused(t, err, problem.ReferenceInProgress)
	res, err = i.Confirm("c", waits.ID, "pm_card_visa")
	w.WantIntent("succeeded", res, err)
	w.CheckRecords(2)
	wantAgreement(t, w)
}

// ids are those of all events.
func ids(t *testing.T, w *world.World) (all string) {
	t.Helper()
	w.Read(`SELECT coalesce(string_agg(type || ' ' || event_id, ', ' ORDER BY event_id), '') FROM outbox`, nil, &all)
	return all
}
