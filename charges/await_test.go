package charges_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"paidonce/charges"
	"paidonce/internal/world"
	"paidonce/provider"
	"paidonce/provider/stripesim"
)

// waits makes a charge that waits for its payer, and returns the ids of the charge and its intent.
func waits(w *world.World, i world.Instance, key string) (charge, intent string) {
	w.T.Helper()
	p := world.Twenty
	p.Source, p.ReturnURL = "tok_threeDSecure2Required", "https://shop.example/back"
	res, err := i.Charges.Create(context.Background(), w.Request(key), p)
	if err != nil || res.Answer.Code != http.StatusCreated {
		w.T.Fatalf("got %d %s, %v, want 201", res.Answer.Code, res.Answer.Body, err)
	}
	w.Read(`SELECT c.id, c.intent_id FROM charges c JOIN idempotency_keys k USING (operation_id)
		WHERE k.key = $1`, []any{key}, &charge, &intent)
	return charge, intent
}

// later makes every wait longer by d, and due.
func later(w *world.World, d time.Duration) {
	w.T.Helper()
	w.Exec(`UPDATE charges SET created_at = created_at - $1::interval,
		settled_at = settled_at - $1::interval, awaits_at = clock_timestamp()
		WHERE awaits_at IS NOT NULL`, d)
}

func await(w *world.World, events *charges.ProviderEvents) {
	w.T.Helper()
	if _, err := events.Await(context.Background(), 100); err != nil {
		w.T.Error(err)
	}
}

// waitEnded checks that a charge and its intent have ended in the same way, and that one event told
// of it after that of the wait.
func waitEnded(w *world.World, i world.Instance, charge, intent string, want provider.IntentStatus) charges.Charge {
	w.T.Helper()
	in, err := w.Provider.GetIntent(context.Background(), intent)
	if err != nil || in.Status != want {
		w.T.Errorf("the provider's intent is %+v, %v; want it %s", in, err, want)
	}
	c, err := i.Charges.Get(context.Background(), w.Key.AccountID, charge, false)
	paid := want == provider.IntentSucceeded
	if err != nil || c.Paid != paid || c.NextAction != nil || c.Status == "pending" {
		w.T.Errorf("the charge is %+v, %v; want it paid %t", c, err, paid)
	}
	var told string
	w.Read(`SELECT string_agg(type || ' ' || (convert_from(payload, 'UTF8')::jsonb ->> 'sequence'), ', '
		ORDER BY (convert_from(payload, 'UTF8')::jsonb ->> 'sequence')::int)
		FROM outbox WHERE object_id = $1`, []any{charge}, &told)
	events := "charge.pending 1, charge.failed 2"
	switch {
	case paid:
		events = "charge.pending 1, charge.succeeded 2"
	case c.FailureCode != nil && *c.FailureCode == "payment_intent_canceled": // not declined
		events += ", charge.canceled 3"
	}
	if told != events {
		w.T.Errorf("the events are %s; want %s", told, events)
	}
	return c
}

// A charge waits for its payer as long as it says, and not longer: then it is cancelled at the
// provider, and nothing that the payer does moves money.
func TestPayerWindow(t *testing.T) {
	t.Parallel()
	w := world.NewIntents(t)
	i := w.Start()
	events := w.ProviderEvents(i, nil)
	charge, intent := waits(w, i, "k")
	for _, wait := range []time.Duration{0, time.Hour, world.PayerWindow - 2*time.Hour, 59 * time.Minute} {
		later(w, wait)
		await(w, events)
		if n := w.Count(`SELECT count(*) FROM charges WHERE status = 'pending'
			AND awaits_at BETWEEN clock_timestamp() AND settled_at + $1::interval + interval '1 second'`, world.PayerWindow); n != 1 {
			t.Fatalf("after another %v the charge waits no more, or is asked for too late", wait)
		}
	}
	if sent := sentTo(w, t, "/cancel"); len(sent) != 0 {
		t.Fatalf("cancelled early: %v", sent)
	}
	later(w, time.Minute)
	await(w, events)
	c := waitEnded(w, i, charge, intent, provider.IntentCanceled)
	if c.FailureCode == nil || *c.FailureCode != "payment_intent_canceled" {
		t.Errorf("got %+v; want the failure code payment_intent_canceled", c)
	}
	if sent := sentTo(w, t, "/cancel"); len(sent) != 1 || !strings.Contains(sent[0], "cancellation_reason:abandoned") {
		t.Errorf("sent %v", sent)
	}
	if err := w.Sim.Authenticate(intent, true); err == nil {
		t.Error("a payer could authenticate late")
	}
	await(w, events)
	in := w.Inbox(i)
	w.Deliver(in, "evt_1", "payment_intent.canceled", intent)
	w.Process(in)
	waitEnded(w, i, charge, intent, provider.IntentCanceled)
	w.CheckRecords(0)
}

// The payer authenticates, or fails to, while the wait ends, with every kind of news at once:
// exactly one wins, and both sides say the same.
func TestPayerWindowAndPayerAtOnce(t *testing.T) {
	t.Parallel()
	w := world.NewIntents(t)
	one, other := w.Start(), w.Start()
	paid := 0
	for n := range 12 {
		charge, intent := waits(w, one, fmt.Sprint("k", n))
		later(w, world.PayerWindow)
		in := w.Inbox(one)
		var race sync.WaitGroup
		race.Go(func() { _ = w.Sim.Authenticate(intent, n%3 != 2) })
		for _, i := range []world.Instance{one, other} {
			race.Go(func() { await(w, w.ProviderEvents(i, nil)) })
		}
		for _, kind := range []string{"succeeded", "canceled", "payment_failed"} {
			w.Deliver(in, fmt.Sprint("evt_", kind, n), "payment_intent."+kind, intent)
		}
		race.Go(func() { w.Process(in) })
		race.Wait()
		// What was too early for anything is asked for again.
		later(w, time.Minute)
		await(w, w.ProviderEvents(one, nil))
		got, err := w.Provider.GetIntent(t.Context(), intent)
		if err != nil {
			t.Fatal(err)
		}
		want := provider.IntentCanceled
		if got.Status == provider.IntentSucceeded {
			want, paid = provider.IntentSucceeded, paid+1
		}
		waitEnded(w, one, charge, intent, want)
	}
	w.CheckRecords(paid)
}

// crashingCancels crashes around the call that cancels an intent.
type crashingCancels struct {
	provider.Provider
	after   bool
	crashed chan struct{}
}

func (p crashingCancels) CancelIntent(
	ctx context.Context, r provider.CancelRequest,
) (o provider.IntentOutcome, err error) {
	if p.after {
		_, _ = p.Provider.CancelIntent(ctx, r)
	}
	close(p.crashed)
	world.Crash()
	return o, err
}

// Killed before and after the call, at the end of the wait and after a failed authentication;
// whoever comes next, the reconciler or a provider event, ends the charge.
func TestPayerWindowCrashes(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		for _, next := range []string{"reconciler", "news", "payer"} {
			for _, failed := range []bool{false, true} {
				if next == "payer" && (after || failed) || next == "news" && !after && !failed {
					continue // nothing is left for the payer; or nothing has happened yet
				}
				t.Run(fmt.Sprintf("after %t, then %s, failed %t", after, next, failed), func(t *testing.T) {
					t.Parallel()
					w := world.NewIntents(t)
					i := w.Start()
					charge, intent := waits(w, i, "k")
					later(w, world.PayerWindow)
					if failed {
						authenticate(w, t, "fail")
					}
					crashed := make(chan struct{})
					doomed := w.ProviderEvents(i, crashingCancels{w.Provider, after, crashed})
					world.UntilCrash(t, crashed, func() { _, _ = doomed.Await(context.Background(), 1) })
					want := provider.IntentCanceled
					switch next {
					case "payer":
						authenticate(w, t, "succeed")
						want = provider.IntentSucceeded
						fallthrough
					case "reconciler":
						later(w, time.Minute)
						await(w, w.ProviderEvents(i, nil))
					case "news":
						in := w.Inbox(i)
						w.Deliver(in, "evt_1", "payment_intent.payment_failed", intent)
						w.Process(in)
					}
					c := waitEnded(w, i, charge, intent, want)
					if failed && (c.FailureCode == nil ||
						*c.FailureCode != "payment_intent_authentication_failure") {
						t.Errorf("got %+v; want the failure of the authentication", c)
					}
				})
			}
		}
	}
}

// Answers to the cancellation that are lost, broken or stored as failures.
func TestPayerWindowLostAnswers(t *testing.T) {
	t.Parallel()
	for _, fault := range []stripesim.Fault{
		{Type: stripesim.DropBefore}, {Type: stripesim.DropAfter}, {Type: stripesim.Truncate},
		{Type: stripesim.StatusAfter}, {Type: stripesim.StatusBefore, Status: 503},
		{Type: stripesim.StatusBefore, Status: 429}, {Type: stripesim.StatusBefore, Status: 500},
	} {
		t.Run(fmt.Sprint(fault.Type, fault.Status), func(t *testing.T) {
			t.Parallel()
			w := world.NewIntents(t)
			i := w.Start()
			events := w.ProviderEvents(i, nil)
			charge, intent := waits(w, i, "k")
			if _, err := w.Sim.AddFault(stripesim.Rule{
				Match: stripesim.Match{Params: map[string]string{"cancellation_reason": "abandoned"}},
				Count: 1, Fault: fault,
			}); err != nil {
				t.Fatal(err)
			}
			later(w, world.PayerWindow)
			await(w, events)
			if n := w.Count(`SELECT count(*) FROM charges WHERE status = 'pending'
				AND awaits_at <= clock_timestamp() + interval '1 minute'`); n != 1 {
				t.Error("the charge has ended without an answer, or is asked for too late")
			}
			later(w, time.Minute)
			await(w, events)
			waitEnded(w, i, charge, intent, provider.IntentCanceled)
		})
	}
}

// anotherCard confirms an intent with another card, as the payer's browser can with the client
// secret.
func anotherCard(w *world.World, intent string, want int) {
	w.T.Helper()
	r := httptest.NewRequest(http.MethodPost, "/v1/payment_intents/"+intent+"/confirm",
		strings.NewReader("payment_method_data[type]=card&payment_method_data[card][token]=tok_visa"))
	r.Header.Set("Authorization", "Bearer sk_test_x")
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	rec := httptest.NewRecorder()
	w.Sim.ServeHTTP(rec, r)
	if rec.Code != want {
		w.T.Errorf("another card: got %d %s, want %d", rec.Code, rec.Body, want)
	}
}

// A payer whose authentication failed may try another card in the browser, at Stripe. Here the
// charge has failed then, so the intent is ended before anybody is told.
func TestFailedAuthenticationEndsTheIntent(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"news", "reconciler"} {
		w := world.NewIntents(t)
		i := w.Start()
		charge, intent := waits(w, i, "k")
		authenticate(w, t, "fail")
		if by == "news" {
			in := w.Inbox(i)
			w.Deliver(in, "evt_1", "payment_intent.payment_failed", intent)
			w.Process(in)
		} else {
			later(w, 0)
			await(w, w.ProviderEvents(i, nil))
		}
		anotherCard(w, intent, http.StatusBadRequest)
		c := waitEnded(w, i, charge, intent, provider.IntentCanceled)
		if c.FailureCode == nil || *c.FailureCode != "payment_intent_authentication_failure" {
			t.Errorf("got %+v; want the failure of the authentication", c)
		}
		w.CheckRecords(0)
	}
}

// A payer who tried another card before the intent was ended has paid: the charge did not fail.
func TestAnotherCardIsQuicker(t *testing.T) {
	t.Parallel()
	w := world.NewIntents(t)
	i := w.Start()
	charge, intent := waits(w, i, "k")
	authenticate(w, t, "fail")
	quick := quickPayer{w.Provider, func() {
		anotherCard(w, intent, http.StatusOK)
	}}
	later(w, 0)
	await(w, w.ProviderEvents(i, quick))
	waitEnded(w, i, charge, intent, provider.IntentSucceeded)
	w.CheckRecords(1)
}

// quickPayer acts just before an intent is cancelled.
type quickPayer struct {
	provider.Provider
	act func()
}

func (p quickPayer) CancelIntent(
	ctx context.Context, r provider.CancelRequest,
) (provider.IntentOutcome, error) {
	p.act()
	return p.Provider.CancelIntent(ctx, r)
}
