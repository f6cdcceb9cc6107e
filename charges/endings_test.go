package charges_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"paidonce/idemkeys"
	"paidonce/internal/world"
	"paidonce/problem"
	"paidonce/provider/stripesim"
)

// step is a call of the provider that an operation makes.
type step struct {
	name    string
	intents bool
	rule    stripesim.Rule // which calls the answers are given to
	object  string         // what its answer is about
	on      bool           // on a charge, that is prepared
	capture bool
	ends    bool                      // it lets go of the charge
	reads   bool                      // a refusal has the provider's object read
	unpaid  bool                      // on an intent that nobody has confirmed
	moved   func(stripesim.Stats) int // how often it had its effect, of all operations so far
	do      func(i world.Instance, w *world.World, key, charge string) (idemkeys.Result, error)
}

func posts(path string) stripesim.Rule {
	return stripesim.Rule{Match: stripesim.Match{Method: http.MethodPost, Path: path}}
}

func everyStep() []step {
	create := func(i world.Instance, _ *world.World, key, _ string) (idemkeys.Result, error) { return i.Charge(key) }
	capture := func(i world.Instance, _ *world.World, key, charge string) (idemkeys.Result, error) {
		return i.Capture(key, charge, 0)
	}
	refund := func(i world.Instance, _ *world.World, key, charge string) (idemkeys.Result, error) {
		return i.Refund(key, charge, 0)
	}
	cancel := func(i world.Instance, _ *world.World, key, charge string) (idemkeys.Result, error) {
		return i.Cancel(key, charge)
	}
	pay := func(i world.Instance, _ *world.World, key, _ string) (idemkeys.Result, error) {
		return i.CreateIntent(key, world.PayingIntent("pm_card_visa"))
	}
	confirm := func(i world.Instance, _ *world.World, key, intent string) (idemkeys.Result, error) {
		return i.Confirm(key, intent, "pm_card_visa")
	}
	refunds := func(s stripesim.Stats) int { return int(s.Refunds) }
	succeeded := func(s stripesim.Stats) int { return int(s.Succeeded) }
	captured := func(s stripesim.Stats) int { return int(s.CapturesExecuted) }
	creation := posts("/v1/payment_intents")
	creation.Match.Params = map[string]string{"amount": "2000"}
	confirmation := posts("/v1/payment_intents")
	confirmation.Skip = 1 // the creation
	return []step{
		{
			name: "charge.Charges", rule: posts("/v1/charges"), object: "charge", moved: succeeded,
			do: create,
		},
		{
			name: "charge.intent created", intents: true, rule: creation, object: "payment_intent",
			moved: succeeded, do: create,
		},
		{
			name: "charge.intent confirmed", intents: true, rule: confirmation,
			object: "payment_intent", moved: succeeded, do: create,
		},
		{
			name: "charge.capture", rule: posts("/v1/charges"), object: "charge", on: true,
			capture: true, moved: captured, do: capture,
		},
		{
			name: "charge.capture of an intent", intents: true, rule: posts("/v1/payment_intents"),
			object: "payment_intent", on: true, capture: true, moved: captured, do: capture,
		},
		{
			name: "refund.Charges", rule: posts("/v1/refunds"), object: "refund", on: true,
			moved: refunds, do: refund,
		},
		{
			name: "charge.cancel", rule: posts("/v1/refunds"), object: "refund", on: true,
			ends: true, moved: refunds, do: cancel,
		},
		{
			name: "charge.cancel of an intent", intents: true, rule: posts("/v1/payment_intents"),
			object: "payment_intent", on: true, ends: true, moved: refunds, do: cancel,
		},
		{
			name: "refund.hold", rule: posts("/v1/refunds"), object: "refund", on: true,
			ends: true, moved: refunds, do: refund,
		},
		{
			name: "refund.hold of an intent", intents: true, rule: posts("/v1/payment_intents"),
			object: "payment_intent", on: true, ends: true, moved: refunds, do: refund,
		},
		{
			name: "payment_intent.create", rule: creation, object: "payment_intent",
			moved: succeeded, do: pay,
		},
		{
			name: "payment_intent.create confirmed", rule: confirmation,
			object: "payment_intent", moved: succeeded, reads: true, do: pay,
		},
		{
			name: "payment_intent.confirm", rule: posts("/v1/payment_intents"),
			object: "payment_intent", on: true, unpaid: true, moved: succeeded, reads: true,
			do: confirm,
		},
	}
}

// prepare makes what the step is about: a charge, an intent, or nothing. It returns its id.
func (s step) prepare(i world.Instance, key string) string {
	switch {
	case s.unpaid:
		return i.MustIntent(key, "requires_payment_method", world.TwentyIntent).ID
	case s.on:
		p := world.Twenty
		p.Capture = !s.capture && !s.ends
		return i.MustCharge(key, p)
	}
	return ""
}

// said is an answer that the provider gives to each call, and what operations come to by it, by
// whether it had acted before it said so.
type said struct {
	name     string
	fault    stripesim.Fault // without its type
	unstored bool            // what was not executed leaves the key free
	executed string
	not      string
	patient  bool // it may take the patience of six hours
}

func errorBody(kind, code string) string {
	return fmt.Sprintf(`{"error":{"type":%q,"code":%q,"message":"Simulated."}}`, kind, code)
}

func answersOf(s step) []said {
	other := fmt.Sprintf(`{"id":"xx_of_somebody_else","object":%q,"amount":1,"amount_captured":1,"captured":true,"charge":"ch_other","currency":"usd","livemode":false,`+
		`"status":"succeeded","metadata":{"paidonce_operation":"op_other","paidonce_installation":"other"},"latest_charge":{"id":"ch_other","object":"charge","amount":1,`+
		`"captured":true,"amount_captured":1,"currency":"usd","status":"succeeded","payment_intent":"xx_of_somebody_else"}}`, s.object)
	list := []said{
		{"500", stripesim.Fault{Status: 500}, false, "settled", "failed", false},
		{"502, replayed", stripesim.Fault{Status: 502}, false, "settled", "failed", false},
		{"503, replayed", stripesim.Fault{Status: 503}, false, "settled", "failed", false},
		{"504, replayed", stripesim.Fault{Status: 504}, false, "settled", "failed", false},
		{"502 for ever", stripesim.Fault{Status: 502}, true, "settled", "parked", true},
		{"409 for ever", stripesim.Fault{Status: 409}, true, "settled", "parked", true},
		{"429 for ever", stripesim.Fault{Status: 429}, true, "parked", "parked", true},
		{"401 for ever", stripesim.Fault{Status: 401}, true, "parked", "parked", true},
		{
			"key with other parameters",
			stripesim.Fault{Status: 400, Body: errorBody("idempotency_error", "")}, false, "parked",
			"parked", false,
		},
		{
			"400",
			stripesim.Fault{
				Status: 400, Body: errorBody("invalid_request_error", "parameter_invalid"),
			},
			false, "refused", "refused", false,
		},
		{
			"404",
			stripesim.Fault{
				Status: 404, Body: errorBody("invalid_request_error", "resource_missing"),
			},
			false, "refused", "refused", false,
		},
		{"402", stripesim.Fault{Status: 402}, false, "refused", "refused", false},
		{
			"another object", stripesim.Fault{Status: 200, Body: other}, false, "parked", "parked",
			false,
		},
		{
			"no JSON", stripesim.Fault{Status: 200, Body: "<html>It works!</html>"}, false,
			"settled", "failed", false,
		},
		{
			"an empty object", stripesim.Fault{Status: 200, Body: "{}"}, false, "settled", "failed",
			false,
		},
		{
			"no JSON, for ever", stripesim.Fault{Status: 200, Body: "<html>It works!</html>"}, true,
			"settled", "parked", true,
		},
		{"redirect", stripesim.Fault{Status: 307}, false, "settled", "failed", false},
		{"204", stripesim.Fault{Status: 204}, false, "settled", "failed", false},
		{
			"103 and no end", stripesim.Fault{Wire: stripesim.WireEarly}, true, "settled", "parked",
			true,
		},
	}
	already := said{
		"captured already",
		stripesim.Fault{
			Status: 400, Body: errorBody("invalid_request_error", "charge_already_captured"),
		},
		false, "refused", "refused", false,
	}
	state := said{
		"another state",
		stripesim.Fault{
			Status: 400,
			Body:   errorBody("invalid_request_error", "payment_intent_unexpected_state"),
		},
		false, "refused", "refused", false,
	}
	if s.capture {
		already.executed, already.not = "settled", "failed"
	}
	if s.name == "charge.intent confirmed" || s.capture && s.intents || s.reads {
		state.executed, state.not = "settled", "failed"
	}
	list = append(list, already, state)
	if s.ends || s.reads { // a refusal has the charge read
		for n, a := range list {
			if a.executed == "refused" {
				list[n].executed = "settled"
			}
		}
	}
	return list
}

func (a said) as(executed bool) (f stripesim.Fault, want string) {
	f, want = a.fault, a.not
	switch {
	case f.Wire != "" && executed:
		f.Type = stripesim.DropAfter
	case f.Wire != "":
		f.Type = stripesim.DropBefore
	case executed:
		f.Type = stripesim.StatusAfter
	default:
		f.Type, f.Store = stripesim.StatusBefore, !a.unstored
	}
	if executed {
		want = a.executed
	}
	return f, want
}

// ended says how the operation of a key has ended; empty: it has not.
func ended(w *world.World, key string) string {
	w.T.Helper()
	var status string
	var code *int
	var parked *time.Time
	var why *string
	err := w.Pool.QueryRow(
		context.Background(),
		`SELECT status, response_code, parked_at, last_error FROM idempotency_keys WHERE key = $1`,
		key,
	).Scan(&status, &code, &parked, &why)
	switch {
	case err != nil:
		w.T.Fatal(err)
	case parked != nil && (why == nil || *why == ""):
		w.T.Error("parked without a reason")
		return "parked"
	case parked != nil:
		return "parked"
	case status == "failed":
		return "failed"
	case code != nil && *code < 300:
		return "settled"
	case code != nil:
		return "refused"
	}
	return ""
}

// soon is how many passes, a minute apart, an operation may take, with a span of two minutes.
const soon = 8

// bringToAnEnd drives a key's operation until it has ended.
func bringToAnEnd(w *world.World, i world.Instance, key string, patient bool) string {
	w.T.Helper()
	for range soon {
		if end := ended(w, key); end != "" {
			return end
		}
		w.Age(time.Minute)
		w.Pass(i)
	}
	if end := ended(w, key); end != "" || !patient {
		return end
	}
	w.Exec(`UPDATE idempotency_keys SET attempts = attempts + 200 WHERE key = $1`, key)
	w.Age(7 * time.Hour)
	w.Pass(i)
	return ended(w, key)
}

// Each call of the provider × each answer that it may give forever × whether it had acted: the
// operation ends, money moves at most once, and afterwards the same key and another one get the
// answers that follow from how things stand.
func TestEveryOperationEnds(t *testing.T) {
	t.Parallel()
	for _, s := range everyStep() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			w := world.New(t)
			w.Intents = s.intents
			i := w.Start()
			for n, a := range answersOf(s) {
				for _, executed := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s, executed %t", a.name, executed), func(t *testing.T) {
						w.T = t
						endsBy(w, t, i, s, a, executed, fmt.Sprint("k", n, executed))
					})
				}
			}
		})
	}
}

func endsBy(
	w *world.World, t *testing.T, i world.Instance, s step, a said, executed bool, key string,
) {
	charge := s.prepare(i, "for "+key)
	before := s.moved(w.Sim.Stats())
	rule := s.rule
	fault, want := a.as(executed)
	rule.Fault = fault
	if _, err := w.Sim.AddFault(rule); err != nil {
		t.Fatal(err)
	}
	_, _ = s.do(i, w, key, charge)
	if got := bringToAnEnd(w, i, key, a.patient); got != want {
		t.Errorf("it ended %q, want %q: %s", got, want, w.LastError(key))
	}
	w.Sim.ClearFaults()
	res, err := s.do(i, w, key, charge)
	var parked *idemkeys.Parked
	switch {
	case want == "parked" && !errors.As(err, &parked):
		t.Errorf("parked, and the same key was answered %d, %v", res.Answer.Code, err)
	case want == "failed" && (err != nil || res.Replayed || res.Answer.Code >= 300):
		t.Errorf(
			"it may run anew, and the same key was answered %d %s, replayed %t, %v",
			res.Answer.Code, res.Answer.Body, res.Replayed, err,
		)
	case (want == "settled" || want == "refused") && (err != nil || !res.Replayed):
		t.Errorf(
			"the same key was answered %d, replayed %t, %v", res.Answer.Code, res.Replayed, err,
		)
	}
	moves := s.moved(w.Sim.Stats()) - before
	if moves > 1 || moves == 0 && (want == "settled" || want == "failed") {
		t.Errorf(
			"money moved %d times, by an operation that ended %q and its key, tried again", moves,
			want,
		)
	}
	another(w, t, i, s, key, charge, want, moves)
}

// another tries another key for the same: on a charge it gets what is left to do there, and money
// has not moved again.
func another(
	w *world.World, t *testing.T, i world.Instance, s step, key, charge, ended string, moves int,
) {
	res, err := s.do(i, w, "another "+key, charge)
	var no *problem.Error
	if !errors.As(err, &no) {
		no = &problem.Error{}
	}
	total := s.moved(w.Sim.Stats())
	switch {
	case !s.on:
		if err != nil || res.Answer.Code != http.StatusCreated {
			t.Errorf("another key got %d %s, %v", res.Answer.Code, res.Answer.Body, err)
		}
	case ended == "parked":
		if no.Code.Status() != http.StatusConflict || !strings.HasSuffix(no.Name(), "_pending") {
			t.Errorf("another key got %d %s, %v; want 409", res.Answer.Code, res.Answer.Body, err)
		}
	case ended == "refused" && moves == 0:
		if err != nil || res.Answer.Code >= 300 {
			t.Errorf("another key got %d %s, %v", res.Answer.Code, res.Answer.Body, err)
		}
	case ended == "refused" && s.capture: // the provider had captured it all the same
		if err != nil || res.Answer.Code != http.StatusOK {
			t.Errorf(
				"another key got %d %s, %v; want how things stand", res.Answer.Code,
				res.Answer.Body, err,
			)
		}
	case ended == "refused":
		if err != nil || res.Answer.Code != http.StatusBadRequest {
			t.Errorf(
				"another key got %d %s, %v; want the provider's refusal", res.Answer.Code,
				res.Answer.Body, err,
			)
		}
	default:
		if no.Code.Status() != http.StatusBadRequest || no.Code != problem.ChargeReleased &&
			no.Code != problem.PaymentIntentUnexpectedState &&
			!strings.HasPrefix(no.Name(), "charge_already_") {
			t.Errorf("another key got %d %s, %v; want 400", res.Answer.Code, res.Answer.Body, err)
		}
	}
	if s.on && moves == 1 && total != s.moved(w.Sim.Stats()) {
		t.Error("money moved again")
	}
}
