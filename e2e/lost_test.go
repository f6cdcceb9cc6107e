package e2e

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"

	"paidonce/api/apitest"
)

// lossOf is a way in which an answer of the provider gets lost.
type lossOf struct {
	name     string
	fault    fault
	code     string // of the first answer's error
	executed bool   // whether the provider carried the charge out
}

var losses = []lossOf{
	{"answer lost", fault{"type": "drop_after"}, "outcome_unknown", true},
	{"answer lost by reset", fault{"type": "drop_after", "wire": "reset"}, "outcome_unknown", true},
	{"request lost", fault{"type": "drop_before"}, "outcome_unknown", false},
	{
		"stored 500 after the charge", fault{"type": "status_after", "status": 500},
		"outcome_unknown", true,
	},
	{
		"500 before the charge", fault{"type": "status_before", "status": 500}, "outcome_unknown",
		false,
	},
	{
		"502 with a page", fault{"type": "status_before", "status": 502,
			"body": "<html>Bad Gateway</html>"}, "outcome_unknown", false,
	},
	{
		"429", fault{"type": "status_before", "status": 429, "retry_after": "1"},
		"provider_unavailable", false,
	},
	{"409 in flight", fault{"type": "status_before", "status": 409}, "outcome_unknown", false},
	{"hang", fault{"type": "hang"}, "outcome_unknown", false},
	{"hang after the charge", fault{"type": "hang_after"}, "outcome_unknown", true},
	{"half an answer", fault{"type": "truncate"}, "outcome_unknown", true},
	{"garbage", fault{"type": "garbage"}, "outcome_unknown", true},
	// JSON, but no charge.
	{"null", fault{"type": "garbage", "body": "null"}, "outcome_unknown", true},
	{"array", fault{"type": "garbage", "body": "[]"}, "outcome_unknown", true},
	{"empty object", fault{"type": "garbage", "body": "{}"}, "outcome_unknown", true},
	{
		"wrong types", fault{"type": "garbage",
			"body": `{"id":7,"object":[],"amount":"many","status":{}}`}, "outcome_unknown", true,
	},
}

func TestLostAnswers(t *testing.T) {
	t.Parallel()
	for _, loss := range losses {
		t.Run(loss.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c := w.client(w.serve())
			w.sim.arm(1, loss.fault)
			first := c.Charge("k", twenty)
			if e := first.Error(); !mayRetry(t, first) ||
				first.Code != http.StatusServiceUnavailable || e.Code != loss.code {
				t.Errorf("%d %s, want 503 %s", first.Code, first.Body, loss.code)
			}
			if n := w.sim.stats().Charges; (n == 1) != loss.executed {
				t.Errorf("the provider has %d charges after the first answer; executed: %t", n,
					loss.executed)
			}
			a := c.Charge("k", twenty) // the lease is free: this one resumes
			again := c.Charge("k", twenty)
			if a.Code != http.StatusCreated || !again.Replayed() ||
				string(again.Body) != string(a.Body) {
				t.Errorf("%d %s, then %d %s; want 201 and its replay", a.Code, a.Body, again.Code,
					again.Body)
			}
			w.sameEachTime(t)
			w.sim.mustHave(t, 1)
			w.checkBooks()
		})
	}
}

// sameEachTime checks that whatever was sent to make charges was the same, byte for byte, under one
// key.
func (w *world) sameEachTime(t *testing.T) {
	t.Helper()
	posts := w.sim.sent()
	for _, p := range posts {
		if p.Key == "" || p.Key != posts[0].Key || !maps.Equal(p.Params, posts[0].Params) {
			t.Errorf("sent were %+v and %+v, want the same", p, posts[0])
		}
	}
}

// A provider that was not reached says so: nothing was charged yet.
func TestProviderDown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client(w.serve())
	address := w.sim.url
	w.sim.kill()
	a := c.Charge("k", twenty)
	if a.Code != http.StatusServiceUnavailable || a.Error().Code != "provider_unavailable" ||
		a.Error().Advice != "retry_same_key" {
		t.Errorf("%d %s, want 503 provider_unavailable", a.Code, a.Body)
	}
	if !strings.Contains(a.Error().Message, "could not be reached") {
		t.Errorf("not reached: %s", a.Body)
	}
	w.runSim(w.sim, address[len("http://"):])
	// A server that had not asked it anything before does so first.
	if a, _ := until(t, func() *apitest.Client {
		return c
	}, "k", twenty); a.Code != http.StatusCreated {
		t.Errorf("got %d %s, want 201", a.Code, a.Body)
	}
	// Reached, it may have nothing to do with us.
	for status, says := range map[int]string{401: "refuses the credentials",
		403: "refuses the credentials", 429: "takes no more requests"} {
		key := fmt.Sprint("k-", status)
		w.sim.arm(1, fault{"type": "status_before", "status": status})
		if a := c.Charge(key, twenty); a.Code != http.StatusServiceUnavailable ||
			a.Error().Code != "provider_unavailable" || !strings.Contains(a.Error().Message, says) {
			t.Errorf("%d of the provider: %d %s", status, a.Code, a.Body)
		}
		if a := c.Charge(key, twenty); a.Code != http.StatusCreated {
			t.Errorf("after a %d of the provider: %d %s", status, a.Code, a.Body)
		}
	}
	w.sim.mustHave(t, 4)
	w.checkBooks()
}

// The answer is lost, and then the provider forgets its keys: the charge is found, and none is sent
// again.
func TestForgottenKeyAfterALostAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client(w.serve())
	w.sim.arm(1, fault{"type": "drop_after"})
	c.Charge("k", twenty)
	w.sim.control(http.MethodPost, "forget_keys", map[string]string{}, nil)
	if a := c.Charge("k", twenty); a.Code != http.StatusCreated {
		t.Errorf("got %d %s, want 201", a.Code, a.Body)
	}
	if n := w.sim.stats(); n.ChargeRequests != 1 || n.Charges != 1 {
		t.Errorf("%+v, want one request and one charge", n)
	}
	w.checkBooks()
}

// The answer is lost again and again.
func TestAnswersLostThreeTimes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client(w.serve())
	w.sim.arm(3, fault{"type": "drop_after"})
	a, _ := until(t, func() *apitest.Client { return c }, "k", twenty)
	var charge struct{ Provider struct{ ID string } }
	a.JSON(&charge)
	if all := w.sim.charges(); a.Code != http.StatusCreated || len(all) != 1 ||
		all[0].ID != charge.Provider.ID {
		t.Errorf("%d %s; the provider has %+v", a.Code, a.Body, all)
	}
	w.sameEachTime(t)
	w.checkBooks()
}

// A provider stores its 500 and replays it for its key forever, and made no charge. That none was
// made is proven by look-ups, and then the same key of the client's runs anew, under another key of
// ours.
func TestStored500WithoutACharge(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "PAIDONCE_LOOKUP_MISSES=2", "PAIDONCE_LOOKUP_SPAN=500ms")
	c := w.client(w.serve())
	w.sim.arm(1, fault{"type": "status_before", "status": 500, "store": true})
	a, _ := until(t, func() *apitest.Client { return c }, "k", twenty)
	if n := w.sim.stats(); a.Code != http.StatusCreated || n.Charges != 1 || n.DistinctKeys != 2 {
		t.Errorf("%d %s, %+v; want 201, one charge, and a second key since the first is spoilt",
			a.Code, a.Body, n)
	}
	if n := querySQL[int](t, w.dbURL,
		"SELECT count(*) FROM outbox WHERE type = 'charge.succeeded'"); n != 1 {
		t.Errorf("%d events of a success, want 1", n)
	}
}

// The same for a capture: other keys wait for no more than the proof, and the money is taken once,
// whichever of them comes first.
func TestStored500WithoutACapture(t *testing.T) {
	t.Parallel()
	for _, flow := range []string{"charges", "payment_intents"} {
		t.Run(flow, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "PAIDONCE_LOOKUP_MISSES=2", "PAIDONCE_LOOKUP_SPAN=500ms",
				"STRIPE_FLOW="+flow)
			c := w.client(w.serve())
			held := c.Charge("held",
				`{"amount":500,"currency":"usd","source":"tok_visa","capture":false}`)
			path := "/v1/charges/" + held.ID() + "/capture"
			w.sim.control(http.MethodPost, "faults", map[string]any{
				"match": map[string]any{"method": "POST"}, "count": 1, "fault": fault{
					"type": "status_before", "status": 500, "store": true,
				},
			}, nil)
			if a := c.Post(path, "k", ""); a.Code != http.StatusServiceUnavailable ||
				!mayRetry(t, a) {
				t.Errorf("got %d %s, want 503", a.Code, a.Body)
			}
			if a := c.Post(path, "another", ""); a.Code != http.StatusConflict ||
				a.Error().Code != "capture_pending" {
				t.Errorf("another key: %d %s", a.Code, a.Body)
			}
			var last apitest.Answer
			eventually(t, "the capture is proven not to have been made", func() bool {
				w.must("reconcile")
				last = c.Get("/v1/idempotency_keys/k")
				return strings.Contains(string(last.Body), `"failed"`)
			})
			if a := c.Post(path, "another", ""); a.Code != http.StatusOK {
				t.Errorf("another key, now that the charge is free: %d %s", a.Code, a.Body)
			}
			if a := c.Post(path, "k", ""); a.Code != http.StatusBadRequest ||
				a.Error().Code != "charge_already_captured" {
				t.Errorf("the first key: %d %s", a.Code, a.Body)
			}
			if a := c.Post("/v1/refunds", "back", `{"charge":"`+held.ID()+`"}`); a.Code != http.StatusCreated {
				t.Errorf("giving it back: %d %s", a.Code, a.Body)
			}
			if n := w.sim.stats().CapturesExecuted; n != 1 {
				t.Errorf("%d captures", n)
			}
		})
	}
}

// A provider that replays a 429 forever is not asked in a tight loop, however often the client
// comes, and other keys work.
func TestStored429IsNoHotLoop(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client(w.serve())
	w.sim.arm(1, fault{"type": "status_before", "status": 429, "store": true})
	for range 100 {
		if a := c.Charge("k", twenty); a.Code != http.StatusServiceUnavailable || !mayRetry(t, a) {
			t.Fatalf("got %d %s, want 503", a.Code, a.Body)
		}
	}
	if n := w.sim.stats().ChargeRequests; n > 15 {
		t.Errorf("the provider was asked %d times for 100 tries", n)
	}
	if a := c.Charge("k2", twenty); a.Code != http.StatusCreated {
		t.Errorf("another key: %d %s", a.Code, a.Body)
	}
	if n := w.sim.stats().Charges; n != 1 {
		t.Errorf("%d charges, want the other key's", n)
	}
}

// The key of a request that timed out comes again, five times at once.
func TestTimedOutKeyComesInACrowd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.serve()
	c := w.client(p)
	other := c.As(w.newKey("other").APIKey)
	w.sim.arm(1, fault{"type": "hang"})
	if a := c.Charge("k", twenty); a.Code != http.StatusServiceUnavailable {
		t.Errorf("got %d %s, want 503", a.Code, a.Body)
	}
	answers := make([]apitest.Answer, 5)
	together(len(answers), func(i int) { answers[i] = c.Charge("k", twenty) })
	oneFresh(t, answers, false)
	if a := other.Charge("k", twenty); a.Code != http.StatusCreated || a.Replayed() {
		t.Errorf("another account: %d %s", a.Code, a.Body)
	}
	if p.ended() {
		t.Error("the process ended")
	}
	w.sim.mustHave(t, 2)
	w.checkBooks()
}

// The client gave up. The error told it that the outcome is not known; the reconciler ends the
// operation once, with an event.
func TestClientGivesUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client(w.serve())
	w.sim.arm(3, fault{"type": "drop_before"})
	var a apitest.Answer
	for range 3 {
		a = c.Charge("k", twenty)
		if a.Error().Code != "outcome_unknown" {
			t.Errorf("%d %s", a.Code, a.Body)
		}
	}
	eventually(t, "the reconciler ends it", func() bool {
		w.must("reconcile")
		return w.status("k") == "completed"
	})
	if got := c.Get("/v1/charges/" + a.Error().Charge); got.Code != http.StatusOK {
		t.Errorf("the charge that the error named: %d %s", got.Code, got.Body)
	}
	if got := c.Charge("k", twenty); !got.Replayed() || got.ID() != a.Error().Charge {
		t.Errorf("%d %s, want a replay", got.Code, got.Body)
	}
	w.sim.mustHave(t, 1)
	w.checkBooks()
}

// Go sends a request again by itself when a kept connection turns out to be dead. Our key makes
// that harmless.
func TestProviderConnectionDiesSilently(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client(w.serve())
	for i, fault := range []fault{{"type": "drop_after", "wire": "eof"},
		{"type": "drop_before", "wire": "eof"}} {
		c.Charge(fmt.Sprint("before-", i), twenty) // leaves a connection behind
		w.sim.arm(1, fault)
		key := fmt.Sprint("k", i)
		if a, _ := until(t, func() *apitest.Client {
			return c
		}, key, twenty); a.Code != http.StatusCreated {
			t.Errorf("got %d %s, want 201", a.Code, a.Body)
		}
	}
	w.sim.mustHave(t, 4)
	w.checkBooks()
}
