package recovery_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"paidonce/charges"
	"paidonce/provider"
	"paidonce/provider/stripesim"
)

func newIntentWorld(t *testing.T) *world {
	w := newWorld(t)
	w.intents = true
	return w
}

// crashingIntents crashes around one of the two calls.
type crashingIntents struct {
	provider.Provider
	step    string // create or confirm
	after   bool
	crashed chan struct{}
}

func (p crashingIntents) CreateIntent(ctx context.Context, r provider.ChargeRequest, url string) (o provider.IntentOutcome, err error) {
	p.around("create", func() { o, err = p.Provider.CreateIntent(ctx, r, url) })
	return o, err
}

func (p crashingIntents) ConfirmIntent(ctx context.Context, r provider.ConfirmRequest) (o provider.IntentOutcome, err error) {
	p.around("confirm", func() { o, err = p.Provider.ConfirmIntent(ctx, r) })
	return o, err
}

func (p crashingIntents) around(step string, call func()) {
	if p.step != step || p.after {
		call()
	}
	if p.step == step {
		close(p.crashed)
		crash()
	}
}

// Both steps × before and after the call × both drivers, within the provider's key window and long past it: one charge.
func TestIntentCrashMatrix(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"create", "confirm"} {
		for _, place := range []string{"before", "after"} {
			for _, driver := range []string{"client", "reconciler"} {
				for _, later := range []time.Duration{90 * time.Second, 30 * 24 * time.Hour} {
					if step == "create" && later > time.Hour {
						continue // before there is an id, absence has to be proven: TestAbsenceOfAnIntent
					}
					t.Run(strings.Join([]string{place, step, driver, later.String()}, " "), func(t *testing.T) {
						t.Parallel()
						w := newIntentWorld(t)
						crashed := make(chan struct{})
						doomed := w.start(nil, crashingIntents{w.psp, step, place == "after", crashed})
						untilCrash(t, crashed, func() { _, _ = doomed.charge(w, "k") })
						w.age(later)
						if later > time.Hour {
							if err := w.sim.ForgetKeys(""); err != nil {
								t.Fatal(err)
							}
						}
						second := w.start(nil, nil)
						if driver == "reconciler" {
							w.pass(second)
						}
						res, err := second.charge(w, "k")
						if err != nil || res.Answer.Code != http.StatusCreated {
							t.Fatalf("%d %s, %v", res.Answer.Code, res.Answer.Body, err)
						}
						if again, err := second.charge(w, "k"); err != nil || !again.Replayed || same(res.Answer, again.Answer) != nil {
							t.Errorf("replayed %v, %v", again.Replayed, err)
						}
						w.books(1)
					})
				}
			}
		}
	}
}

// A decline at the confirmation is an answer; so is a refusal at the creation.
func TestIntentRefusals(t *testing.T) {
	t.Parallel()
	w := newIntentWorld(t)
	i := w.start(nil, nil)
	declined := twenty
	declined.Source = "tok_chargeDeclined"
	res, err := i.create.Create(context.Background(), w.request("declined"), declined)
	if err != nil || res.Answer.Code != http.StatusPaymentRequired {
		t.Fatalf("%d %s, %v", res.Answer.Code, res.Answer.Body, err)
	}
	none := twenty
	none.Source = "tok_nobody"
	if res, err := i.create.Create(context.Background(), w.request("none"), none); err != nil || res.Answer.Code != http.StatusBadRequest {
		t.Errorf("%d %s, %v", res.Answer.Code, res.Answer.Body, err)
	}
	w.books(0)
}

// Authorise, capture in part, refund: through the intent.
func TestIntentCaptureAndRefund(t *testing.T) {
	t.Parallel()
	w := newIntentWorld(t)
	i := w.start(nil, nil)
	charge := i.made(w, "k", authorised)
	if res, err := i.capture(w, "c", charge, 1500); err != nil || res.Answer.Code != http.StatusOK {
		t.Fatalf("%d %s, %v", res.Answer.Code, res.Answer.Body, err)
	}
	if res, err := i.refund(w, "r", charge, 500); err != nil || res.Answer.Code != http.StatusCreated {
		t.Fatalf("%d %s, %v", res.Answer.Code, res.Answer.Body, err)
	}
	if n := w.count(`SELECT count(*) FROM charges WHERE amount_captured = 1500 AND amount_refunded = 500`); n != 1 {
		t.Error("the charge does not say so")
	}
}

// authenticate lets the payer of the only intent finish, or fail.
func (w *world) authenticate(t *testing.T, outcome string) string {
	t.Helper()
	var intent string
	if err := w.pool.QueryRow(t.Context(), `SELECT intent_id FROM charges`).Scan(&intent); err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, "/_sim/authenticate", strings.NewReader(`{"intent":"`+intent+`","outcome":"`+outcome+`"}`))
	r.Header.Set("Content-Type", "application/json")
	rec := httptest.NewRecorder()
	w.sim.ServeHTTP(rec, r)
	if rec.Code != http.StatusOK {
		t.Fatalf("%d %s", rec.Code, rec.Body)
	}
	return intent
}

// A charge that needs its payer stays pending with next_action; news or the reconciler sees the end, once; the key's answer stays what it was.
func TestPayerHasToAct(t *testing.T) {
	t.Parallel()
	for _, outcome := range []string{"succeed", "fail"} {
		for _, by := range []string{"news", "reconciler", "both"} {
			t.Run(outcome+" by "+by, func(t *testing.T) {
				t.Parallel()
				w := newIntentWorld(t)
				i := w.start(nil, nil)
				secure := twenty
				secure.Source = "tok_threeDSecure2Required"
				first, err := i.create.Create(context.Background(), w.request("k"), secure)
				if err != nil || first.Answer.Code != http.StatusCreated {
					t.Fatalf("%d %s, %v", first.Answer.Code, first.Answer.Body, err)
				}
				var c charges.Charge
				if err := json.Unmarshal(first.Answer.Body, &c); err != nil || c.Status != "pending" || c.NextAction == nil {
					t.Fatalf("%s, %v", first.Answer.Body, err)
				}
				l := charges.NewLearner(i.store, i.engine, w.psp, charges.Config{Installation: "test", LookupMisses: 3})
				w.exec(`UPDATE charges SET awaits_at = clock_timestamp()`)
				if _, err := l.Await(t.Context(), 10); err != nil { // the payer has not acted yet: nothing changes
					t.Fatal(err)
				}
				intent := w.authenticate(t, outcome)
				in := w.inboxOf(i, nil)
				var group sync.WaitGroup
				if by != "reconciler" {
					w.deliver(in, "evt_1", "payment_intent.succeeded", intent)
					w.deliver(in, "evt_2", "payment_intent.payment_failed", intent)
					group.Go(func() { w.process(in) })
				}
				if by != "news" {
					w.exec(`UPDATE charges SET awaits_at = clock_timestamp() WHERE awaits_at IS NOT NULL`)
					group.Go(func() {
						if _, err := l.Await(t.Context(), 10); err != nil {
							t.Error(err)
						}
					})
				}
				group.Wait()
				want := map[string]string{"succeed": "succeeded", "fail": "failed"}[outcome]
				now, err := i.create.Get(t.Context(), w.key.AccountID, c.ID)
				if err != nil || now.Status != want || now.NextAction != nil {
					t.Errorf("%+v, %v", now, err)
				}
				if n := w.count(`SELECT count(*) FROM outbox WHERE type = $1`, "charge."+want); n != 1 {
					t.Errorf("%d events charge.%s", n, want)
				}
				if n := w.count(`SELECT count(*) FROM charges WHERE awaits_at IS NOT NULL`); n != 0 {
					t.Error("the charge is still awaited")
				}
				if again, err := i.create.Create(context.Background(), w.request("k"), secure); err != nil || !again.Replayed || same(first.Answer, again.Answer) != nil {
					t.Errorf("replayed %v, %v", again.Replayed, err)
				}
			})
		}
	}
}

// The answer to the creation was lost and the provider's key window is over: absence of the intent is proven like a charge's, and the key runs anew.
func TestAbsenceOfAnIntent(t *testing.T) {
	t.Parallel()
	w := newIntentWorld(t)
	i := w.start(nil, nil)
	if _, err := w.sim.AddFault(stripesim.Rule{Match: stripesim.Match{Method: http.MethodPost, Path: "/v1/payment_intents"}, Count: 1, Fault: stripesim.Fault{Type: stripesim.DropBefore}}); err != nil {
		t.Fatal(err)
	}
	_, err := i.charge(w, "k")
	wantUnknown(t, err)
	w.age(25 * time.Hour)
	for range 3 {
		w.pass(i)
	}
	w.exec(`UPDATE idempotency_keys SET first_miss_at = first_miss_at - interval '3 minutes'`)
	if c := w.pass(i); c.Finished != 1 {
		t.Fatalf("%+v", c)
	}
	if res, err := i.charge(w, "k"); err != nil || res.Answer.Code != http.StatusCreated {
		t.Fatalf("%d, %v", res.Answer.Code, err)
	}
	w.books(1)
}
