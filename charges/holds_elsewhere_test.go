package charges_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"paidonce/charges"
	"paidonce/history"
	"paidonce/internal/world"
	"paidonce/problem"
	"paidonce/provider/stripesim"
)

func unmarshal(t *testing.T, body string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(body), into); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
}

// elsewhere is what becomes of an authorised charge without us, and what tells of it.
type elsewhere struct {
	happen func(w *world.World, h held) error
	event  map[bool]string // ours, by whether there is an intent
	news   map[bool][]string
}

var elsewheres = map[string]elsewhere{
	"it lapsed": {
		func(w *world.World, h held) error { return w.Sim.LapseHold(h.provider) },
		map[bool]string{false: "charge.expired", true: "charge.expired"},
		map[bool][]string{
			false: {"charge.expired", "charge.refunded"},
			true:  {"charge.expired", "charge.refunded", "payment_intent.canceled"},
		},
	},
	"it was released": {
		func(w *world.World, h held) error { return w.Sim.ReleaseHold(h.provider) },
		map[bool]string{false: "charge.refunded", true: "charge.canceled"},
		map[bool][]string{
			false: {"charge.refunded", "refund.created"},
			true:  {"charge.refunded", "payment_intent.canceled"},
		},
	},
	"a part was captured": {
		func(w *world.World, h held) error { return w.Sim.CaptureHold(h.provider, 700) },
		map[bool]string{false: "charge.captured", true: "charge.captured"},
		map[bool][]string{
			false: {"charge.captured"}, true: {"charge.captured", "payment_intent.succeeded"},
		},
	},
}

// wantLearnt checks that a charge has learnt what became of it, once.
func wantLearnt(w *world.World, i world.Instance, h held, e elsewhere) {
	w.T.Helper()
	event := e.event[h.intent != ""]
	if event != "charge.captured" {
		wantReleased(w, i, h, event)
	} else {
		c := shown(w, i, h.id)
		if !c.Captured || c.AmountCaptured != 700 || c.AmountRefunded != 0 || c.Refunded {
			w.T.Errorf("the charge is %+v; want 700 of it captured", c)
		}
		if got, want := told(w, h.id), "charge.succeeded "+event; got != want {
			w.T.Errorf("the events of the charge are %s, want %s", got, want)
		}
	}
	agree(w, w.T.(*testing.T), i)
}

// What becomes of a hold elsewhere is learnt from each of the provider's events alone, and from all
// of them together, once.
func TestNewsOfAHold(t *testing.T) {
	t.Parallel()
	for name, e := range elsewheres {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bothFlows(t, func(t *testing.T, w *world.World) {
				i := w.Start()
				h := hold(w, t, i)
				news := e.news[h.intent != ""]
				for n, first := range append([]string{""}, news...) {
					if n > 0 {
						h = held{id: i.MustCharge(fmt.Sprint("held", n), world.Authorised)}
						w.Read(
							`SELECT provider_id, coalesce(intent_id, '') FROM charges WHERE id = $1`,
							[]any{h.id}, &h.provider, &h.intent,
						)
					}
					if err := e.happen(w, h); err != nil {
						t.Fatal(err)
					}
					in := w.Inbox(i)
					for m, kind := range news {
						if first != "" {
							kind = first
						}
						w.Deliver(in, fmt.Sprintf("evt_%d_%d", n, m), kind, about(w, t, h, kind))
					}
					w.Process(in)
					wantLearnt(w, i, h, e)
				}
			})
		})
	}
}

// about is the id of what an event of the provider is about.
func about(w *world.World, t *testing.T, h held, kind string) string {
	t.Helper()
	switch kind[:6] {
	case "paymen":
		return h.intent
	case "refund":
		refunds, err := w.Provider.RefundsOf(t.Context(), h.provider)
		if err != nil || len(refunds) != 1 {
			t.Fatalf("%+v, %v", refunds, err)
		}
		return refunds[0].ID
	}
	return h.provider
}

// What no event tells is learnt by whoever asks: a capture or a cancellation that is refused,
// `audit --adopt`, and the reconciler, for holds older than a week.
func TestAskingForAHold(t *testing.T) {
	t.Parallel()
	for name, e := range elsewheres {
		for by, ask := range map[string]func(w *world.World, t *testing.T, i world.Instance, h held){
			"a refused capture": func(_ *world.World, t *testing.T, i world.Instance, h held) {
				want := problem.ChargeReleased
				if e.event[false] == "charge.captured" {
					want = problem.ChargeAlreadyCaptured
				}
				wantStored(t, want, func() (int, string, error) {
					res, err := i.Capture("capture", h.id, 0)
					return res.Answer.Code, string(res.Answer.Body), err
				})
			},
			"the audit": func(w *world.World, t *testing.T, i world.Instance, h held) {
				events, found := w.ProviderEvents(i, nil), audit(w, t)
				if found[h.provider] != charges.OtherAmount {
					t.Fatalf("the audit found %v", found)
				}
				for _, want := range []bool{true, false} {
					if changed, err := events.Adopt(t.Context(), h.provider); err != nil || changed != want {
						t.Fatalf("changed %t, %v; want %t", changed, err, want)
					}
				}
			},
			"the reconciler": func(w *world.World, t *testing.T, i world.Instance, _ held) {
				events := w.ProviderEvents(i, nil)
				for _, c := range []struct {
					old  time.Duration
					want int
				}{{6 * 24 * time.Hour, 0}, {8 * 24 * time.Hour, 1}, {9 * 24 * time.Hour, 0}} {
					w.Exec(`UPDATE charges SET created_at = clock_timestamp() - $1::interval`, c.old)
					if n, err := events.AskHeld(t.Context(), 10); err != nil || n != c.want {
						t.Fatalf("%s old: %d asked for, %v; want %d", c.old, n, err, c.want)
					}
				}
				w.Exec(`UPDATE charges SET created_at = clock_timestamp()`)
			},
		} {
			t.Run(name+", "+by, func(t *testing.T) {
				t.Parallel()
				bothFlows(t, func(t *testing.T, w *world.World) {
					i := w.Start()
					h := hold(w, t, i)
					if err := e.happen(w, h); err != nil {
						t.Fatal(err)
					}
					ask(w, t, i, h)
					wantLearnt(w, i, h, e)
				})
			})
		}
	}
}

// wantStored checks that a request has a refusal for an answer, which is stored.
func wantStored(
	t *testing.T, want problem.Code,
	do func() (int, string, error),
) {
	t.Helper()
	code, first, err := do()
	if err != nil || code != want.Status() {
		t.Fatalf("got %d %s, %v; want %s", code, first, err, want)
	}
	if _, again, err := do(); err != nil || again != first {
		t.Errorf("then %s, %v", again, err)
	}
	var e struct{ Error struct{ Code string } }
	unmarshal(t, first, &e)
	if e.Error.Code != want.String() {
		t.Errorf("got %s, want %s", first, want)
	}
}

// A hold that stands is asked for with growing pauses, and changes nothing.
func TestAHoldThatStandsIsAskedForRarely(t *testing.T) {
	t.Parallel()
	bothFlows(t, func(t *testing.T, w *world.World) {
		i := w.Start()
		h := hold(w, t, i)
		events := w.ProviderEvents(i, nil)
		var pauses []float64
		for _, days := range []int{8, 30, 300} {
			w.Exec(`UPDATE charges SET created_at = clock_timestamp() - make_interval(days => $1),
				hold_at = hold_at - make_interval(days => 365)`, days)
			if n, err := events.AskHeld(t.Context(), 10); err != nil || n != 1 {
				t.Fatalf("%d asked for, %v", n, err)
			}
			if n, err := events.AskHeld(t.Context(), 10); err != nil || n != 0 {
				t.Fatalf("%d asked for again, %v", n, err)
			}
			var pause float64
			w.Read(
				`SELECT extract(epoch FROM hold_at - clock_timestamp()) / 86400 FROM charges`, nil,
				&pause,
			)
			pauses = append(pauses, pause)
		}
		if pauses[0] < 1 || pauses[1] < 3*pauses[0] || pauses[2] < 5*pauses[1] {
			t.Errorf("the pauses are %v days", pauses)
		}
		if got := told(w, h.id); got != "charge.succeeded" {
			t.Errorf("the events are %s", got)
		}
		if res, err := i.Capture("capture", h.id, 0); err != nil || res.Answer.Code != http.StatusOK {
			t.Errorf("%d %s, %v", res.Answer.Code, res.Answer.Body, err)
		}
	})
}

// What somebody else did first is what a cancellation is told, or what it wanted anyway.
func TestCancellingWhatEndedElsewhere(t *testing.T) {
	t.Parallel()
	for name, e := range elsewheres {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bothFlows(t, func(t *testing.T, w *world.World) {
				i := w.Start()
				h := hold(w, t, i)
				if err := e.happen(w, h); err != nil {
					t.Fatal(err)
				}
				cancel := func() (int, string, error) {
					res, err := i.Cancel("k", h.id)
					return res.Answer.Code, string(res.Answer.Body), err
				}
				if e.event[false] == "charge.captured" {
					wantStored(t, problem.ChargeAlreadyCaptured, cancel)
				} else if code, body, err := cancel(); err != nil || code != http.StatusOK {
					t.Fatalf("got %d %s, %v", code, body, err)
				}
				wantLearnt(w, i, h, e)
			})
		})
	}
}

// What somebody else captured whole could be refunded as if it were only authorised. It is not let
// go of: the money was taken, and both ways of letting go are told.
func TestLettingGoOfWhatWasCapturedElsewhere(t *testing.T) {
	t.Parallel()
	for name, way := range letGo {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bothFlows(t, func(t *testing.T, w *world.World) {
				i := w.Start()
				h := hold(w, t, i)
				if err := w.Sim.CaptureHold(h.provider, 2000); err != nil {
					t.Fatal(err)
				}
				wantStored(t, problem.ChargeAlreadyCaptured, func() (int, string, error) {
					res, err := way.do(i, "k", h.id)
					return res.Answer.Code, string(res.Answer.Body), err
				})
				c := shown(w, i, h.id)
				if !c.Captured || c.AmountCaptured != 2000 || c.AmountRefunded != 0 {
					t.Errorf("the charge is %+v; want it captured", c)
				}
				if got := told(w, h.id); got != "charge.succeeded charge.captured" {
					t.Errorf("the events of the charge are %s", got)
				}
				if n := w.Sim.Stats().Refunds; n != 0 {
					t.Errorf("%d refunds at the provider", n)
				}
				agree(w, t, i)
			})
		})
	}
}

// A refund of what somebody else let go of is told so, as at Stripe.
func TestRefundingWhatLapsed(t *testing.T) {
	t.Parallel()
	bothFlows(t, func(t *testing.T, w *world.World) {
		i := w.Start()
		h := hold(w, t, i)
		if err := w.Sim.LapseHold(h.provider); err != nil {
			t.Fatal(err)
		}
		wantStored(t, problem.ChargeAlreadyRefunded, func() (int, string, error) {
			res, err := i.Refund("k", h.id, 0)
			return res.Answer.Code, string(res.Answer.Body), err
		})
		wantReleased(w, i, h, "charge.expired")
		if n := w.Count(`SELECT count(*) FROM refunds WHERE status = 'failed'`); n != 1 {
			t.Errorf("%d refunds have failed", n)
		}
	})
}

// A database that has forgotten how a charge was let go of learns it from the provider's records,
// tells it under the same id, and answers the same request as it did.
func TestALettingGoThatWasForgotten(t *testing.T) {
	t.Parallel()
	for name, way := range letGo {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bothFlows(t, func(t *testing.T, w *world.World) {
				i := w.Start()
				h := hold(w, t, i)
				first, err := way.do(i, "k", h.id)
				if err != nil || first.Answer.Code != way.code {
					t.Fatalf("got %d %s, %v", first.Answer.Code, first.Answer.Body, err)
				}
				event := func() (id string) {
					w.Read(`SELECT event_id FROM outbox WHERE type LIKE 'charge.%' AND object_id = $1
						AND type <> 'charge.succeeded'`, []any{h.id}, &id)
					return id
				}
				before := event()
				w.Exec(`DELETE FROM outbox WHERE type <> 'charge.succeeded'`)
				w.Exec(`DELETE FROM refunds`)
				w.Exec(`DELETE FROM idempotency_keys WHERE key = 'k'`)
				w.Exec(`UPDATE charges SET release = NULL, capture_operation_id = NULL, events = 1`)
				b := charges.NewRebuilder(i.Store, w.Provider, charges.Config{
					Installation: world.Installation, Intents: w.Intents,
				}, world.Quiet)
				for range 2 { // it may be interrupted, and run again
					if err := b.Rebuild(
						t.Context(), time.Unix(1, 0),
						func(context.Context, history.Counts) error { return nil },
					); err != nil {
						t.Fatal(err)
					}
				}
				// a refund through an intent leaves no trace there but that it was cancelled
				if h.intent == "" || name == "cancel" {
					if after := event(); after != before {
						t.Errorf("the event is %s, and was %s", after, before)
					}
				}
				again, err := way.do(i, "k", h.id)
				if err != nil || again.Answer.Code != way.code {
					t.Fatalf("then %d %s, %v", again.Answer.Code, again.Answer.Body, err)
				}
				if n := w.Sim.Stats().Refunds; n != 1 {
					t.Errorf("let go of %d times", n)
				}
				want := way.event
				if h.intent != "" {
					want = "charge.canceled"
				}
				wantReleased(w, i, h, want)
			})
		})
	}
}

// waiting is a charge that waits for its payer.
func waiting(w *world.World, t *testing.T, i world.Instance, capture bool) held {
	t.Helper()
	p := world.Twenty
	p.Source, p.Capture = "tok_threeDSecure2Required", capture
	res, err := i.Charges.Create(t.Context(), w.Request("waiting"), p)
	if err != nil || res.Answer.Code != http.StatusCreated {
		t.Fatalf("%d %s, %v", res.Answer.Code, res.Answer.Body, err)
	}
	var h held
	w.Read(`SELECT id, intent_id FROM charges`, nil, &h.id, &h.intent)
	return h
}

// A charge that waits for its payer is ended by a cancellation, whatever is lost on the way, and a
// late authentication moves nothing.
func TestCancellingWhatWaitsForItsPayer(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]string{
		"": "", "the request is lost": stripesim.DropBefore, "the answer is lost": stripesim.DropAfter,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := world.NewIntents(t)
			i := w.Start()
			h := waiting(w, t, i, true)
			if fault != "" {
				rule := posts("/v1/payment_intents")
				rule.Count, rule.Fault = 1, stripesim.Fault{Type: fault}
				if _, err := w.Sim.AddFault(rule); err != nil {
					t.Fatal(err)
				}
				_, err := i.Cancel("k", h.id)
				world.WantUnknown(t, err)
				// news of it wait for the outcome
				in := w.Inbox(i)
				w.Deliver(in, "evt_1", "payment_intent.canceled", h.intent)
				if _, err := in.RunOnce(t.Context(), 5); err != nil {
					t.Fatal(err)
				}
			}
			res, err := i.Cancel("k", h.id)
			if err != nil || res.Answer.Code != http.StatusOK {
				t.Fatalf("%d %s, %v", res.Answer.Code, res.Answer.Body, err)
			}
			var c charges.Charge
			unmarshal(t, string(res.Answer.Body), &c)
			if now := shown(w, i, h.id); c.Status != "failed" || now.Status != "failed" ||
				now.NextAction != nil || now.Refunded || now.AmountRefunded != 0 ||
				now.FailureCode == nil || *now.FailureCode != "payment_intent_canceled" {
				t.Errorf("the charge is %+v, and was answered as %+v", now, c)
			}
			if got := told(w, h.id); got != "charge.pending charge.failed charge.canceled" {
				t.Errorf("the events are %s", got)
			}
			if err := w.Sim.Authenticate(h.intent, true); err == nil {
				t.Error("the payer could still authenticate")
			}
			w.Process(w.Inbox(i))
			var no *problem.Error
			if _, err := i.Cancel("other", h.id); !errors.As(err, &no) ||
				no.Code != problem.ChargeNotSucceeded {
				t.Errorf("another cancellation: %v", err)
			}
			if n := w.Count(`SELECT count(*) FROM charges WHERE awaits_at IS NOT NULL`); n != 0 {
				t.Error("the payer is still awaited")
			}
		})
	}
}

// A payer who was faster than the cancellation has paid, and the cancellation is told; what was
// only authorised is let go of.
func TestPayerFasterThanACancellation(t *testing.T) {
	t.Parallel()
	for _, capture := range []bool{true, false} {
		t.Run(fmt.Sprintf("captured %t", capture), func(t *testing.T) {
			t.Parallel()
			w := world.NewIntents(t)
			i := w.Start()
			h := waiting(w, t, i, capture)
			if err := w.Sim.Authenticate(h.intent, true); err != nil {
				t.Fatal(err)
			}
			res, err := i.Cancel("k", h.id)
			c, want := shown(w, i, h.id), "charge.pending charge.succeeded charge.canceled"
			if capture {
				want = "charge.pending charge.succeeded"
				var e struct{ Error struct{ Code string } }
				unmarshal(t, string(res.Answer.Body), &e)
				if err != nil || e.Error.Code != "charge_already_captured" || !c.Captured ||
					c.AmountCaptured != 2000 {
					t.Errorf("%s, %v: the charge is %+v", res.Answer.Body, err, c)
				}
			} else if err != nil || res.Answer.Code != http.StatusOK || !c.Refunded || c.Captured ||
				c.Status != "succeeded" {
				t.Errorf("%d %s, %v: the charge is %+v", res.Answer.Code, res.Answer.Body, err, c)
			}
			if got := told(w, h.id); got != want {
				t.Errorf("the events are %s, want %s", got, want)
			}
			agree(w, t, i)
		})
	}
}
