package charges_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"paidonce/charges"
	"paidonce/db"
	"paidonce/idemkeys"
	"paidonce/internal/world"
	"paidonce/problem"
	"paidonce/provider"
	"paidonce/provider/stripesim"
)

// letGo are the ways to let go of an authorised charge.
var letGo = map[string]struct {
	do    func(i world.Instance, key, charge string) (idemkeys.Result, error)
	event string
	code  int
}{
	"cancel": {
		func(i world.Instance, key, charge string) (idemkeys.Result, error) {
			return i.Cancel(key, charge)
		},
		"charge.canceled", http.StatusOK,
	},
	"refund": {
		func(i world.Instance, key, charge string) (idemkeys.Result, error) {
			return i.Refund(key, charge, 2000)
		},
		"charge.refunded", http.StatusCreated,
	},
}

// shown is the charge as GET shows it.
func shown(w *world.World, i world.Instance, id string) charges.Charge {
	w.T.Helper()
	c, err := i.Charges.Get(context.Background(), w.Key.AccountID, id, false)
	if err != nil {
		w.T.Fatal(err)
	}
	return c
}

// wantReleased checks that a charge is shown as Stripe shows one that was let go of, that one event
// has told so, and that nothing can be done with it any more.
func wantReleased(w *world.World, i world.Instance, h held, event string) {
	w.T.Helper()
	c := shown(w, i, h.id)
	if c.Captured || !c.Refunded || c.AmountRefunded != 2000 || c.AmountCaptured != 0 ||
		c.Status != "succeeded" || !c.Paid {
		w.T.Errorf("the charge is %+v; want it let go of", c)
	}
	if got, want := told(w, h.id), "charge.succeeded "+event; got != want {
		w.T.Errorf("the events of the charge are %s, want %s", got, want)
	}
	var payload string
	w.Read(
		`SELECT convert_from(payload, 'UTF8') FROM outbox WHERE object_id = $1 AND type = $2`,
		[]any{h.id, event}, &payload,
	)
	if !strings.Contains(payload, `"refunded":true`) || !strings.Contains(payload, `"sequence":2`) {
		w.T.Errorf("the event is %s", payload)
	}
	for name, do := range map[problem.Code]func() (idemkeys.Result, error){
		problem.ChargeReleased:        func() (idemkeys.Result, error) { return i.Capture("late capture", h.id, 0) },
		problem.ChargeAlreadyRefunded: func() (idemkeys.Result, error) { return i.Refund("late refund", h.id, 0) },
	} {
		var no *problem.Error
		if _, err := do(); !errors.As(err, &no) || no.Code != name || no.Charge != h.id {
			w.T.Errorf("got %v, want %s", err, name)
		}
	}
	var no *problem.Error
	if _, err := i.Cancel("late cancel", h.id); !errors.As(err, &no) ||
		no.Code != problem.ChargeReleased {
		w.T.Errorf("another cancellation: %v", err)
	}
	if n := w.Sim.Stats().CapturesExecuted; n != 0 {
		w.T.Errorf("%d captures at the provider", n)
	}
}

// told are the types of a charge's events, in the order of their sequence.
func told(w *world.World, id string) string {
	w.T.Helper()
	var types *string
	w.Read(
		`SELECT string_agg(type, ' ' ORDER BY (convert_from(payload, 'UTF8')::jsonb->>'sequence')::int)
			FROM outbox WHERE object_id = $1`, []any{id}, &types,
	)
	return db.OrEmpty(types)
}

// A hold is let go of once for the key, in both flows and both ways, and says so as at Stripe.
func TestLettingGo(t *testing.T) {
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
				again, err := way.do(i, "k", h.id)
				if err != nil || !again.Replayed {
					t.Fatalf("replayed %t, %v", again.Replayed, err)
				}
				if err := world.Same(first.Answer, again.Answer); err != nil {
					t.Error(err)
				}
				wantReleased(w, i, h, way.event)
				if n := w.Sim.Stats().Refunds; n != 1 {
					t.Errorf("let go of %d times", n)
				}
				var answer struct {
					Object         string
					Status         string
					Amount         int64
					AmountRefunded int64 `json:"amount_refunded"`
					Provider       struct{ ID string }
				}
				if err := json.Unmarshal(first.Answer.Body, &answer); err != nil {
					t.Fatal(err)
				}
				if answer.Status != "succeeded" || answer.Amount != 2000 ||
					answer.Object == "charge" && answer.AmountRefunded != 2000 ||
					answer.Object == "refund" && !strings.HasPrefix(answer.Provider.ID, "re_") {
					t.Errorf("the answer is %s", first.Answer.Body)
				}
				// what Stripe tells of it is known
				in := w.Inbox(i)
				w.Deliver(in, "evt_1", "charge.refunded", h.provider)
				w.Deliver(in, "evt_2", "refund.created", w.OnlyOne("/v1/refunds"))
				if h.intent != "" {
					w.Deliver(in, "evt_3", "payment_intent.canceled", h.intent)
				}
				w.Process(in)
				if got, want := told(w, h.id), "charge.succeeded "+way.event; got != want {
					t.Errorf("the events are now %s, want %s", got, want)
				}
				if n := w.Count(`SELECT count(*) FROM provider_events WHERE processed_at IS NULL
					OR result <> 'nothing new'`); n != 0 {
					t.Errorf("%d of the provider's events were new", n)
				}
				agree(w, t, i)
			})
		})
	}
}

// agree checks that the provider's records agree with ours.
func agree(w *world.World, t *testing.T, i world.Instance) {
	t.Helper()
	_, err := charges.Audit(t.Context(), i.Store, w.Provider, charges.AuditConfig{
		Installation: world.Installation, StaleAfter: time.Minute,
		Since: time.Now().Add(-time.Hour), Until: time.Now().Add(time.Hour),
		Report: func(d charges.Difference) error {
			t.Errorf("the audit found %+v", d)
			return nil
		},
		Progress: func(time.Time, charges.AuditCounts) {},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Nothing less than the whole of a hold can be given back, and nothing but a hold, or what waits
// for its payer, can be cancelled. The key is not spent.
func TestLettingGoIsRefused(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	i := w.Start()
	h := hold(w, t, i)
	for amount, want := range map[int64]problem.Code{
		1999: problem.ChargeNotCaptured, 2001: problem.AmountTooLarge,
	} {
		var no *problem.Error
		if _, err := i.Refund("part", h.id, amount); !errors.As(err, &no) || no.Code != want ||
			no.Param != "amount" {
			t.Errorf("a refund of %d: %v, want %s", amount, err, want)
		}
	}
	declined := world.Twenty
	declined.Source = "tok_chargeDeclined"
	res, err := i.Charges.Create(t.Context(), w.Request("declined"), declined)
	if err != nil {
		t.Fatal(err)
	}
	var failed struct{ Error struct{ Charge string } }
	if err := json.Unmarshal(res.Answer.Body, &failed); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]problem.Code{
		"ch_none": problem.ResourceMissing, failed.Error.Charge: problem.ChargeNotSucceeded,
		i.MustCharge("captured", world.Twenty): problem.ChargeAlreadyCaptured,
	} {
		var no *problem.Error
		if _, err := i.Cancel("c", id); !errors.As(err, &no) || no.Code != want ||
			no.Param != "id" {
			t.Errorf("cancelling %s: %v, want %s", id, err, want)
		}
	}
	if n := w.Count(`SELECT count(*) FROM idempotency_keys WHERE key IN ('part', 'c')`); n != 0 {
		t.Error("a key is spent")
	}
	if n := w.Sim.Stats().Refunds; n != 0 {
		t.Errorf("%d refunds at the provider", n)
	}
}

// Whatever is asked for at once of a hold, one wins. The others are told, and the provider did one
// thing.
func TestOneOfManyEndsAHold(t *testing.T) {
	t.Parallel()
	bothFlows(t, func(t *testing.T, w *world.World) {
		if _, err := w.Sim.AddFault(stripesim.Rule{
			Match: stripesim.Match{Method: http.MethodPost},
			Fault: stripesim.Fault{Type: stripesim.Delay, DelayMS: 50},
		}); err != nil {
			t.Fatal(err)
		}
		instances := []world.Instance{w.Start(), w.Start()}
		for round := range 6 {
			h := held{id: instances[0].MustCharge(fmt.Sprint("held", round), world.Authorised)}
			before := w.Sim.Stats()
			var won atomic.Int64
			var group sync.WaitGroup
			for n, do := range []func(i world.Instance, key string) (idemkeys.Result, error){
				func(i world.Instance, key string) (idemkeys.Result, error) { return i.Capture(key, h.id, 0) },
				func(i world.Instance, key string) (idemkeys.Result, error) { return i.Cancel(key, h.id) },
				func(i world.Instance, key string) (idemkeys.Result, error) { return i.Refund(key, h.id, 2000) },
				func(i world.Instance, key string) (idemkeys.Result, error) { return i.Capture(key, h.id, 700) },
				func(i world.Instance, key string) (idemkeys.Result, error) { return i.Cancel(key, h.id) },
			} {
				group.Go(func() {
					key := fmt.Sprint("k", round, n)
					for {
						res, err := do(instances[(n+round)%2], key)
						var no *problem.Error
						switch {
						case err == nil && res.Answer.Code < 300:
							won.Add(1)
						case errors.As(err, &no) && no.Code.Status() == http.StatusConflict:
							continue // what is under way has no outcome yet
						case errors.As(err, &no) && no.Code.Status() == http.StatusBadRequest:
						case n == 2 && err == nil && res.Answer.Code == http.StatusCreated:
						default:
							t.Errorf("%d: %d %s, %v", n, res.Answer.Code, res.Answer.Body, err)
						}
						return
					}
				})
			}
			group.Wait()
			c := shown(w, instances[0], h.id)
			// a refund of what was captured is another thing, and possible
			if n := won.Load(); n != 1 && (!c.Captured || c.AmountRefunded <= 0 || n != 2) {
				t.Errorf("round %d: %d have won: %+v", round, won.Load(), c)
			}
			now := w.Sim.Stats()
			captured := now.CapturesExecuted - before.CapturesExecuted
			if c.Captured != (captured == 1) || captured > 1 || c.Captured == (c.AmountCaptured == 0) {
				t.Errorf("round %d: %d captures at the provider, here %+v", round, captured, c)
			}
			if got := told(w, h.id); strings.Contains(got, "captured") == strings.Contains(got, "canceled") &&
				!strings.Contains(got, "charge.refunded") {
				t.Errorf("round %d: the events are %s", round, got)
			}
		}
		agree(w, t, instances[0])
	})
}

// A charge whose cancellation has no outcome yet is captured, refunded and cancelled by nobody
// else; when it has one, the others are told.
func TestWhileAHoldIsBeingLetGoOf(t *testing.T) {
	t.Parallel()
	for name, way := range letGo {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bothFlows(t, func(t *testing.T, w *world.World) {
				i := w.Start()
				h := hold(w, t, i)
				if _, err := w.Sim.AddFault(stripesim.Rule{
					Match: stripesim.Match{Method: http.MethodPost}, Count: 1,
					Fault: stripesim.Fault{Type: stripesim.DropAfter},
				}); err != nil {
					t.Fatal(err)
				}
				_, err := way.do(i, "k", h.id)
				world.WantUnknown(t, err)
				for what, do := range map[string]func() (idemkeys.Result, error){
					"capture": func() (idemkeys.Result, error) { return i.Capture("other", h.id, 0) },
					"cancel":  func() (idemkeys.Result, error) { return i.Cancel("other", h.id) },
					"refund":  func() (idemkeys.Result, error) { return i.Refund("other", h.id, 0) },
				} {
					var no *problem.Error
					if _, err := do(); !errors.As(err, &no) || no.Code != problem.CancelPending {
						t.Errorf("%s: %v, want cancel_pending", what, err)
					}
				}
				// provider events wait for the outcome
				in := w.Inbox(i)
				w.Deliver(in, "evt_1", "charge.refunded", h.provider)
				if _, err := in.RunOnce(t.Context(), 5); err != nil {
					t.Fatal(err)
				}
				if got := told(w, h.id); got != "charge.succeeded" {
					t.Errorf("the events are %s", got)
				}
				res, err := way.do(i, "k", h.id)
				if err != nil || res.Answer.Code != way.code {
					t.Fatalf("got %d %s, %v", res.Answer.Code, res.Answer.Body, err)
				}
				w.Process(in)
				wantReleased(w, i, h, way.event)
			})
		})
	}
}

// While a capture has no outcome, nothing lets go of the charge.
func TestWhileAHoldIsBeingCaptured(t *testing.T) {
	t.Parallel()
	bothFlows(t, func(t *testing.T, w *world.World) {
		i := w.Start()
		h := hold(w, t, i)
		if _, err := w.Sim.AddFault(stripesim.Rule{
			Match: stripesim.Match{Method: http.MethodPost}, Count: 1,
			Fault: stripesim.Fault{Type: stripesim.DropAfter},
		}); err != nil {
			t.Fatal(err)
		}
		_, err := i.Capture("k", h.id, 0)
		world.WantUnknown(t, err)
		for name, way := range letGo {
			var no *problem.Error
			if _, err := way.do(i, "other", h.id); !errors.As(err, &no) ||
				no.Code != problem.CapturePending {
				t.Errorf("%s: %v, want capture_pending", name, err)
			}
		}
		if res, err := i.Capture("k", h.id, 0); err != nil || res.Answer.Code != http.StatusOK {
			t.Fatalf("got %d %s, %v", res.Answer.Code, res.Answer.Body, err)
		}
		var no *problem.Error
		if _, err := i.Cancel("other", h.id); !errors.As(err, &no) ||
			no.Code != problem.ChargeAlreadyCaptured {
			t.Errorf("%v, want charge_already_captured", err)
		}
	})
}

// crashingRelease crashes around the provider's call that lets go of a charge.
type crashingRelease struct {
	crashingMoney
}

func (p crashingRelease) CancelIntent(
	ctx context.Context, r provider.CancelRequest,
) (o provider.IntentOutcome, err error) {
	p.around(func() { o, err = p.Provider.CancelIntent(ctx, r) })
	return o, err
}

// Letting go × every step boundary × both drivers × both flows: once, one event, one answer.
func TestLettingGoCrashMatrix(t *testing.T) {
	t.Parallel()
	type dies func(*world.World, chan struct{}) (db.Pool, provider.Provider)
	tx := func(nth int64, rollback bool) dies {
		return func(w *world.World, c chan struct{}) (db.Pool, provider.Provider) {
			return crashingTx{w.Pool, nth, rollback, c, &atomic.Int64{}}, nil
		}
	}
	call := func(after bool) dies {
		return func(w *world.World, c chan struct{}) (db.Pool, provider.Provider) {
			return nil, crashingRelease{crashingMoney{w.Provider, after, c}}
		}
	}
	for place, dies := range map[string]dies{
		"inside commit 1": tx(1, true), "after commit 1": tx(1, false),
		"before the call": call(false), "after the call": call(true),
		"inside commit 2": tx(2, true), "after commit 2": tx(2, false),
	} {
		for name, way := range letGo {
			for _, driver := range []string{"client", "reconciler"} {
				t.Run(name+", "+place+", then "+driver, func(t *testing.T) {
					t.Parallel()
					bothFlows(t, func(t *testing.T, w *world.World) {
						second := w.Start()
						h := hold(w, t, second)
						crashed := make(chan struct{})
						doomed := w.StartWith(dies(w, crashed))
						world.UntilCrash(t, crashed, func() { _, _ = way.do(doomed, "k", h.id) })
						w.Age(w.Keys.StaleAfter)
						if driver == "reconciler" {
							w.Pass(second)
						}
						first, err := way.do(second, "k", h.id)
						if err != nil || first.Answer.Code != way.code {
							t.Fatalf("%d %s, %v", first.Answer.Code, first.Answer.Body, err)
						}
						if n := w.Sim.Stats().Refunds; n != 1 {
							t.Errorf("let go of %d times", n)
						}
						wantReleased(w, second, h, way.event)
					})
				})
			}
		}
	}
}

// A charge that was let go of gives its reference back; until then nobody else has it.
func TestLettingGoFreesTheReference(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	i := w.Start()
	p := world.Authorised
	p.Reference = "order 7"
	id := i.MustCharge("first", p)
	var no *problem.Error
	if _, err := i.Charges.Create(t.Context(), w.Request("second"), p); !errors.As(err, &no) ||
		no.Code != problem.ReferenceAlreadyPaid {
		t.Fatalf("%v, want reference_already_paid", err)
	}
	if res, err := i.Cancel("cancel", id); err != nil || res.Answer.Code != http.StatusOK {
		t.Fatalf("%d %s, %v", res.Answer.Code, res.Answer.Body, err)
	}
	i.MustCharge("second", p)
}
