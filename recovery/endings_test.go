package recovery_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"paidonce/idemkeys"
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
	moved   func(stripesim.Stats) int // how often it had its effect, of all operations so far
	do      func(i instance, w *world, key, charge string) (idemkeys.Result, error)
}

func posts(path string) stripesim.Rule {
	return stripesim.Rule{Match: stripesim.Match{Method: http.MethodPost, Path: path}}
}

func everyStep() []step {
	create := func(i instance, w *world, key, _ string) (idemkeys.Result, error) { return i.charge(w, key) }
	capture := func(i instance, w *world, key, charge string) (idemkeys.Result, error) {
		return i.capture(w, key, charge, 0)
	}
	refund := func(i instance, w *world, key, charge string) (idemkeys.Result, error) {
		return i.refund(w, key, charge, 0)
	}
	succeeded := func(s stripesim.Stats) int { return int(s.Succeeded) }
	captured := func(s stripesim.Stats) int { return int(s.CapturesExecuted) }
	creation := posts("/v1/payment_intents")
	creation.Match.Params = map[string]string{"amount": "2000"}
	confirmation := posts("/v1/payment_intents")
	confirmation.Skip = 1 // the creation
	return []step{
		{name: "charge.create", rule: posts("/v1/charges"), object: "charge", moved: succeeded, do: create},
		{name: "charge.intent created", intents: true, rule: creation, object: "payment_intent", moved: succeeded, do: create},
		{name: "charge.intent confirmed", intents: true, rule: confirmation, object: "payment_intent", moved: succeeded, do: create},
		{name: "charge.capture", rule: posts("/v1/charges"), object: "charge", on: true, capture: true, moved: captured, do: capture},
		{name: "charge.capture of an intent", intents: true, rule: posts("/v1/payment_intents"), object: "payment_intent", on: true, capture: true, moved: captured, do: capture},
		{name: "refund.create", rule: posts("/v1/refunds"), object: "refund", on: true, moved: func(s stripesim.Stats) int { return int(s.Refunds) }, do: refund},
	}
}

// said is an answer that the provider gives to each call, and what operations come to by it, by whether it had acted before it said so.
type said struct {
	name     string
	fault    stripesim.Fault // without its type
	unstored bool            // what was not executed leaves the key free
	executed string
	not      string
	patient  bool // it may take the patience of six hours
}

func problem(kind, code string) string {
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
		{"key with other parameters", stripesim.Fault{Status: 400, Body: problem("idempotency_error", "")}, false, "parked", "parked", false},
		{"400", stripesim.Fault{Status: 400, Body: problem("invalid_request_error", "parameter_invalid")}, false, "refused", "refused", false},
		{"404", stripesim.Fault{Status: 404, Body: problem("invalid_request_error", "resource_missing")}, false, "refused", "refused", false},
		{"402", stripesim.Fault{Status: 402}, false, "refused", "refused", false},
		{"another object", stripesim.Fault{Status: 200, Body: other}, false, "parked", "parked", false},
		{"no JSON", stripesim.Fault{Status: 200, Body: "<html>It works!</html>"}, false, "settled", "failed", false},
		{"an empty object", stripesim.Fault{Status: 200, Body: "{}"}, false, "settled", "failed", false},
		{"no JSON, for ever", stripesim.Fault{Status: 200, Body: "<html>It works!</html>"}, true, "settled", "parked", true},
		{"redirect", stripesim.Fault{Status: 307}, false, "settled", "failed", false},
		{"204", stripesim.Fault{Status: 204}, false, "settled", "failed", false},
		{"103 and no end", stripesim.Fault{Wire: stripesim.WireEarly}, true, "settled", "parked", true},
	}
	already := said{"captured already", stripesim.Fault{Status: 400, Body: problem("invalid_request_error", "charge_already_captured")}, false, "refused", "refused", false}
	state := said{"another state", stripesim.Fault{Status: 400, Body: problem("invalid_request_error", "payment_intent_unexpected_state")}, false, "refused", "refused", false}
	if s.capture {
		already.executed, already.not = "settled", "failed"
	}
	if s.name == "charge.intent confirmed" || s.capture && s.intents {
		state.executed, state.not = "settled", "failed"
	}
	return append(list, already, state)
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
func (w *world) ended(key string) string {
	w.t.Helper()
	var status string
	var code *int
	var parked *time.Time
	var why *string
	err := w.pool.QueryRow(context.Background(), `SELECT status, response_code, parked_at, last_error FROM idempotency_keys WHERE key = $1`, key).Scan(&status, &code, &parked, &why)
	switch {
	case err != nil:
		w.t.Fatal(err)
	case parked != nil && (why == nil || *why == ""):
		w.t.Error("parked without a reason")
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
func (w *world) bringToAnEnd(i instance, key string, patient bool) string {
	w.t.Helper()
	for range soon {
		if end := w.ended(key); end != "" {
			return end
		}
		w.age(time.Minute)
		w.pass(i)
	}
	if end := w.ended(key); end != "" || !patient {
		return end
	}
	w.exec(`UPDATE idempotency_keys SET attempts = attempts + 200 WHERE key = $1`, key)
	w.age(7 * time.Hour)
	w.pass(i)
	return w.ended(key)
}

// Each call of the provider × each answer that it may give for ever × whether it had acted: the operation ends, money moves at most once, and afterwards the
// same key and another one get the answers that follow from how things stand.
func TestEveryOperationEnds(t *testing.T) {
	t.Parallel()
	for _, s := range everyStep() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.intents = s.intents
			i := w.start(nil, nil)
			for n, a := range answersOf(s) {
				for _, executed := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s, executed %t", a.name, executed), func(t *testing.T) {
						w.t = t
						w.endsBy(t, i, s, a, executed, fmt.Sprint("k", n, executed))
					})
				}
			}
		})
	}
}

func (w *world) endsBy(t *testing.T, i instance, s step, a said, executed bool, key string) {
	var charge string
	if s.on {
		p := twenty
		p.Capture = !s.capture
		charge = i.made(w, "for "+key, p)
	}
	before := s.moved(w.sim.Stats())
	rule := s.rule
	fault, want := a.as(executed)
	rule.Fault = fault
	if _, err := w.sim.AddFault(rule); err != nil {
		t.Fatal(err)
	}
	_, _ = s.do(i, w, key, charge)
	if got := w.bringToAnEnd(i, key, a.patient); got != want {
		t.Errorf("it ended %q, want %q: %s", got, want, w.lastError(key))
	}
	w.sim.ClearFaults()
	res, err := s.do(i, w, key, charge)
	var parked *idemkeys.Parked
	switch {
	case want == "parked" && !errors.As(err, &parked):
		t.Errorf("parked, and the same key was answered %d, %v", res.Answer.Code, err)
	case want == "failed" && (err != nil || res.Replayed || res.Answer.Code >= 300):
		t.Errorf("it may run anew, and the same key was answered %d %s, replayed %t, %v", res.Answer.Code, res.Answer.Body, res.Replayed, err)
	case (want == "settled" || want == "refused") && (err != nil || !res.Replayed):
		t.Errorf("the same key was answered %d, replayed %t, %v", res.Answer.Code, res.Replayed, err)
	}
	moves := s.moved(w.sim.Stats()) - before
	if moves > 1 || moves == 0 && (want == "settled" || want == "failed") {
		t.Errorf("money moved %d times, by an operation that ended %q and its key, tried again", moves, want)
	}
	w.another(t, i, s, key, charge, want, moves)
}

func (w *world) lastError(key string) string {
	var why *string
	if err := w.pool.QueryRow(context.Background(), `SELECT last_error FROM idempotency_keys WHERE key = $1`, key).Scan(&why); err != nil || why == nil {
		return fmt.Sprint(err)
	}
	return *why
}

// another tries another key for the same: on a charge it gets what is left to do there, and money has not moved again.
func (w *world) another(t *testing.T, i instance, s step, key, charge, ended string, moves int) {
	res, err := s.do(i, w, "another "+key, charge)
	var no *idemkeys.Refused
	if !errors.As(err, &no) {
		no = &idemkeys.Refused{}
	}
	total := s.moved(w.sim.Stats())
	switch {
	case !s.on:
		if err != nil || res.Answer.Code != http.StatusCreated {
			t.Errorf("another key got %d %s, %v", res.Answer.Code, res.Answer.Body, err)
		}
	case ended == "parked":
		if no.Code != http.StatusConflict || !strings.HasSuffix(no.Problem.Code, "_pending") {
			t.Errorf("another key got %d %s, %v; want 409", res.Answer.Code, res.Answer.Body, err)
		}
	case ended == "refused" && moves == 0:
		if err != nil || res.Answer.Code >= 300 {
			t.Errorf("another key got %d %s, %v", res.Answer.Code, res.Answer.Body, err)
		}
	case ended == "refused" && s.capture: // the provider had captured it all the same
		if err != nil || res.Answer.Code != http.StatusOK {
			t.Errorf("another key got %d %s, %v; want how things stand", res.Answer.Code, res.Answer.Body, err)
		}
	case ended == "refused":
		if err != nil || res.Answer.Code != http.StatusBadRequest {
			t.Errorf("another key got %d %s, %v; want the provider's refusal", res.Answer.Code, res.Answer.Body, err)
		}
	default:
		if no.Code != http.StatusBadRequest || !strings.HasPrefix(no.Problem.Code, "charge_already_") {
			t.Errorf("another key got %d %s, %v; want 400", res.Answer.Code, res.Answer.Body, err)
		}
	}
	if s.on && moves == 1 && total != s.moved(w.sim.Stats()) {
		t.Error("money moved again")
	}
}
