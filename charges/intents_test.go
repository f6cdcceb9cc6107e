package charges_test

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
	"paidonce/internal/world"
	"paidonce/provider"
	"paidonce/provider/stripesim"
)

// crashingIntents crashes around one of the two calls.
type crashingIntents struct {
	provider.Provider
	step    string // create or confirm
	after   bool
	crashed chan struct{}
}

func (p crashingIntents) CreateIntent(
	ctx context.Context, r *provider.ChargeRequest, url string,
) (o provider.IntentOutcome, err error) {
	p.around("create", func() { o, err = p.Provider.CreateIntent(ctx, r, url) })
	return o, err
}

func (p crashingIntents) ConfirmIntent(
	ctx context.Context, r provider.ConfirmRequest,
) (o provider.IntentOutcome, err error) {
	p.around("confirm", func() { o, err = p.Provider.ConfirmIntent(ctx, r) })
	return o, err
}

func (p crashingIntents) around(step string, call func()) {
	if p.step != step || p.after {
		call()
	}
	if p.step == step {
		close(p.crashed)
		world.Crash()
	}
}

// Both steps × before and after the call × both drivers, within the provider's key window and long
// past it: one charge.
func TestIntentCrashMatrix(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"create", "confirm"} {
		for _, place := range []string{"before", "after"} {
			for _, driver := range []string{"client", "reconciler"} {
				for _, later := range []time.Duration{90 * time.Second, 30 * 24 * time.Hour} {
					if step == "create" && later > time.Hour {
						// before there is an id, absence has to be proven: TestAbsenceOfAnIntent
						continue
					}
					t.Run(strings.Join(
						[]string{place, step, driver, later.String()}, " ",
					), func(t *testing.T) {
						t.Parallel()
						w := world.NewIntents(t)
						crashed := make(chan struct{})
						doomed := w.StartWith(
							nil, crashingIntents{w.Provider, step, place == "after", crashed},
						)
						world.UntilCrash(t, crashed, func() { _, _ = doomed.Charge("k") })
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
						res, err := second.Charge("k")
						if err != nil || res.Answer.Code != http.StatusCreated {
							t.Fatalf(
								"got %d %s, %v, want 201", res.Answer.Code, res.Answer.Body, err,
							)
						}
						if again, err := second.Charge("k"); err != nil || !again.Replayed ||
							world.Same(res.Answer, again.Answer) != nil {
							t.Errorf("replayed %v, %v", again.Replayed, err)
						}
						w.CheckRecords(1)
					})
				}
			}
		}
	}
}

// A decline at the confirmation is an answer; so is a refusal at the creation.
func TestIntentRefusals(t *testing.T) {
	t.Parallel()
	w := world.NewIntents(t)
	i := w.Start()
	declined := world.Twenty
	declined.Source = "tok_chargeDeclined"
	res, err := i.Charges.Create(context.Background(), w.Request("declined"), declined)
	if err != nil || res.Answer.Code != http.StatusPaymentRequired {
		t.Fatalf("got %d %s, %v, want 402", res.Answer.Code, res.Answer.Body, err)
	}
	none := world.Twenty
	none.Source = "tok_nobody"
	if res, err := i.Charges.Create(context.Background(), w.Request("none"), none); err != nil ||
		res.Answer.Code != http.StatusBadRequest {
		t.Errorf("got %d %s, %v, want 400", res.Answer.Code, res.Answer.Body, err)
	}
	w.CheckRecords(0)
}

// Authorise, capture in part, refund: through the intent.
func TestIntentCaptureAndRefund(t *testing.T) {
	t.Parallel()
	w := world.NewIntents(t)
	i := w.Start()
	charge := i.MustCharge("k", world.Authorised)
	if res, err := i.Capture("c", charge, 1500); err != nil || res.Answer.Code != http.StatusOK {
		t.Fatalf("got %d %s, %v, want 200", res.Answer.Code, res.Answer.Body, err)
	}
	if res, err := i.Refund("r", charge, 500); err != nil || res.Answer.Code != http.StatusCreated {
		t.Fatalf("got %d %s, %v, want 201", res.Answer.Code, res.Answer.Body, err)
	}
	if n := w.Count(
		`SELECT count(*) FROM charges WHERE amount_captured = 1500 AND amount_refunded = 500`,
	); n != 1 {
		t.Error("the charge does not say so")
	}
}

// authenticate lets the payer of the only intent finish, or fail.
func authenticate(w *world.World, t *testing.T, outcome string) string {
	t.Helper()
	var intent string
	if err := w.Pool.QueryRow(
		t.Context(), `SELECT intent_id FROM charges`,
	).Scan(&intent); err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(
		http.MethodPost, "/_sim/authenticate",
		strings.NewReader(`{"intent":"`+intent+`","outcome":"`+outcome+`"}`),
	)
	r.Header.Set("Content-Type", "application/json")
	rec := httptest.NewRecorder()
	w.Sim.ServeHTTP(rec, r)
	if rec.Code != http.StatusOK {
		t.Fatalf("got %d %s, want 200", rec.Code, rec.Body)
	}
	return intent
}

// A charge that needs its payer stays pending with next_action; news or the reconciler sees the
// end, once; the key's answer stays what it was.
func TestPayerHasToAct(t *testing.T) {
	t.Parallel()
	for _, outcome := range []string{"succeed", "fail"} {
		for _, by := range []string{"news", "reconciler", "both"} {
			t.Run(outcome+" by "+by, func(t *testing.T) {
				t.Parallel()
				w := world.NewIntents(t)
				i := w.Start()
				secure := world.Twenty
				secure.Source = "tok_threeDSecure2Required"
				first, err := i.Charges.Create(context.Background(), w.Request("k"), secure)
				if err != nil || first.Answer.Code != http.StatusCreated {
					t.Fatalf("got %d %s, %v, want 201", first.Answer.Code, first.Answer.Body, err)
				}
				var c charges.Charge
				if err := json.Unmarshal(first.Answer.Body, &c); err != nil ||
					c.Status != "pending" || c.NextAction == nil {
					t.Fatalf("%s, %v", first.Answer.Body, err)
				}
				events := w.ProviderEvents(i, nil)
				w.Exec(`UPDATE charges SET awaits_at = clock_timestamp()`)
				// the payer has not acted yet: nothing changes
				if _, err := events.Await(t.Context(), 10); err != nil {
					t.Fatal(err)
				}
				intent := authenticate(w, t, outcome)
				in := w.Inbox(i)
				var group sync.WaitGroup
				if by != "reconciler" {
					w.Deliver(in, "evt_1", "payment_intent.succeeded", intent)
					w.Deliver(in, "evt_2", "payment_intent.payment_failed", intent)
					group.Go(func() { w.Process(in) })
				}
				if by != "news" {
					w.Exec(
						`UPDATE charges SET awaits_at = clock_timestamp() WHERE awaits_at IS NOT NULL`,
					)
					group.Go(func() {
						if _, err := events.Await(t.Context(), 10); err != nil {
							t.Error(err)
						}
					})
				}
				group.Wait()
				want := map[string]string{"succeed": "succeeded", "fail": "failed"}[outcome]
				now, err := i.Charges.Get(t.Context(), w.Key.AccountID, c.ID, false)
				if err != nil || now.Status != want || now.NextAction != nil {
					t.Errorf("%+v, %v", now, err)
				}
				if n := w.Count(
					`SELECT count(*) FROM outbox WHERE type = $1`, "charge."+want,
				); n != 1 {
					t.Errorf("%d events charge.%s", n, want)
				}
				if n := w.Count(
					`SELECT count(*) FROM charges WHERE awaits_at IS NOT NULL`,
				); n != 0 {
					t.Error("the charge is still awaited")
				}
				if again, err := i.Charges.Create(
					context.Background(), w.Request("k"), secure,
				); err != nil || !again.Replayed || world.Same(first.Answer, again.Answer) != nil {
					t.Errorf("replayed %v, %v", again.Replayed, err)
				}
			})
		}
	}
}

// The answer to the creation was lost and the provider's key window is over: absence of the intent
// is proven like a charge's, and the key runs anew.
func TestAbsenceOfAnIntent(t *testing.T) {
	t.Parallel()
	w := world.NewIntents(t)
	i := w.Start()
	if _, err := w.Sim.AddFault(
		stripesim.Rule{
			Match: stripesim.Match{Method: http.MethodPost, Path: "/v1/payment_intents"}, Count: 1,
			Fault: stripesim.Fault{Type: stripesim.DropBefore},
		},
	); err != nil {
		t.Fatal(err)
	}
	_, err := i.Charge("k")
	world.WantUnknown(t, err)
	w.Age(25 * time.Hour)
	for range 3 {
		w.Pass(i)
	}
	w.Exec(`UPDATE idempotency_keys SET first_miss_at = first_miss_at - interval '3 minutes'`)
	if c := w.Pass(i); c.Finished != 1 {
		t.Fatalf("got %+v, want 1 finished", c)
	}
	if res, err := i.Charge("k"); err != nil || res.Answer.Code != http.StatusCreated {
		t.Fatalf("got %d, %v, want 201", res.Answer.Code, err)
	}
	w.CheckRecords(1)
}
