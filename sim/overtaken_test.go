package sim_test

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
	"paidonce/provider/stripesim"
)

// overtakenCase is an operation under the key k whose answer is lost, and what the key stands for
// later.
type overtakenCase struct {
	name    string
	intents bool
	path    string // of the request whose answer is lost
	older   func(r *restorable, target string) (idemkeys.Result, error)
	later   func(r *restorable, target string) (idemkeys.Result, error)
	reused  bool // these are different requests
}

func chargeUnderK(r *restorable, _ string) (idemkeys.Result, error) {
	return r.instance.Charge("k")
}

func refundUnderK(r *restorable, target string) (idemkeys.Result, error) {
	return r.instance.Refund("k", target, 300)
}

func captureUnderK(r *restorable, target string) (idemkeys.Result, error) {
	return r.instance.Capture("k", target, 2000)
}

var overtakenCases = []overtakenCase{
	{"charge", false, "/v1/charges", chargeUnderK, chargeUnderK, false},
	{"intent made", true, "/v1/payment_intents", chargeUnderK, chargeUnderK, false},
	{"intent confirmed", true, "/v1/payment_intents/", chargeUnderK, chargeUnderK, false},
	{"refund", false, "/v1/refunds", refundUnderK, refundUnderK, false},
	{"capture", false, "/v1/charges/", captureUnderK, chargeUnderK, true},
	{"charge, then a refund", false, "/v1/charges", chargeUnderK, refundUnderK, true},
}

// begin leaves the older operation without an answer, and returns its id and what it is about.
func (c overtakenCase) begin(
	t *testing.T, f stripesim.Fault,
) (r *restorable, older, target string) {
	t.Helper()
	r = newRestorable(t, c.intents)
	p := world.Twenty
	p.Capture = c.name != "capture"
	target = r.instance.MustCharge("target", p)
	r.arm(c.path, 1, f)
	_, err := c.older(r, target)
	world.WantUnknown(t, err)
	r.Sim.ClearFaults()
	return r, r.text("SELECT operation_id FROM idempotency_keys WHERE key = 'k'"), target
}

// A copy has an operation without an outcome; its outcome was told since, and when its key's time
// was over, the key was used anew. Put back, the key is the later operation's, and the older one
// ends all the same, without a word under any key and without moving money.
func TestKeyOfALaterOperation(t *testing.T) {
	t.Parallel()
	for _, c := range overtakenCases {
		for _, parked := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, parked %t", c.name, parked), func(t *testing.T) {
				t.Parallel()
				r, older, target := c.begin(t, stripesim.Fault{Type: stripesim.DropAfter})
				if parked {
					r.Exec(
						`UPDATE idempotency_keys SET parked_at = clock_timestamp(), next_run_at = NULL, last_error = 'for the test' WHERE key = 'k'`,
					)
				}
				putBack := r.copyDatabase()
				r.Exec(
					`UPDATE idempotency_keys SET parked_at = NULL, next_run_at = clock_timestamp() WHERE parked_at IS NOT NULL`,
				)
				r.passes()
				first := r.text(
					"SELECT status FROM idempotency_keys WHERE operation_id = $1", older,
				)
				r.advance(25 * time.Hour)
				told, err := c.later(r, target)
				if first != "completed" || err != nil || told.Replayed ||
					told.Answer.Code != http.StatusCreated {
					t.Fatalf(
						"the older one %q; %d %s, %v", first, told.Answer.Code, told.Answer.Body,
						err,
					)
				}
				events, moves := r.events(), r.moves()
				putBack()
				r.checkKey(t, c, target, told)
				h, err := r.instance.Engine.Show(t.Context(), older)
				if want := map[bool]idemkeys.State{
					false: idemkeys.StateWaiting, true: idemkeys.StateParked,
				}[parked]; err != nil || h.State != want {
					t.Errorf("the older one is %q, want %q; %v", h.State, want, err)
				}
				if !strings.Contains(h.LastError, told.OperationID) ||
					parked != strings.Contains(h.LastError, "for the test") || len(h.Log) == 0 {
					t.Errorf("an operator is told %q, %v", h.LastError, h.Log)
				}
				if parked {
					if err := r.instance.Engine.Retry(
						t.Context(), older, "ada", "looked at it",
					); err != nil {
						t.Fatal(err)
					}
				}
				r.passes()
				if h, err = r.instance.Engine.Show(t.Context(), older); err != nil ||
					h.Status != idemkeys.Completed {
					t.Errorf("the older one ended as %q, %s, %v", h.Status, h.LastError, err)
				}
				r.checkKey(t, c, target, told)
				r.checkUnchanged(t, events, moves)
				r.advance(25 * time.Hour)
				if n, _, err := r.instance.Engine.Sweep(t.Context(), 100); err != nil ||
					r.Count("SELECT count(*) FROM idempotency_keys") != 0 {
					t.Errorf("swept %d, %v, and something is left", n, err)
				}
			})
		}
	}
}

// checkKey asks for the key: it stands for the later operation.
func (r *restorable) checkKey(t *testing.T, c overtakenCase, target string, told idemkeys.Result) {
	t.Helper()
	again, err := c.later(r, target)
	if err != nil || !again.Replayed || again.OperationID != told.OperationID ||
		world.Same(told.Answer, again.Answer) != nil {
		t.Errorf(
			"the key: %d %s, replayed %t, %v; told was %s", again.Answer.Code, again.Answer.Body,
			again.Replayed, err, told.Answer.Body,
		)
	}
	if _, err := c.older(r, target); c.reused != errors.Is(err, idemkeys.ErrReused) {
		t.Errorf("the older request: %v", err)
	}
	if k, err := r.instance.Engine.Lookup(t.Context(), r.Key.AccountID, "k"); err != nil ||
		k.OperationID != told.OperationID {
		t.Errorf("the key is shown as that of %q, %v", k.OperationID, err)
	}
}

// Of the older operation it had been proven that nothing moved, and the same request was made anew.
// Put back, nothing moves for it: not even what is there to be moved, such as an intent that was
// made and never confirmed.
func TestOvertakenAfterItNeverMoved(t *testing.T) {
	t.Parallel()
	for _, c := range overtakenCases {
		if c.reused {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := stripesim.Fault{Type: stripesim.DropBefore}
			if c.name == "intent made" {
				f.Type = stripesim.DropAfter
			}
			r, older, target := c.begin(t, f)
			putBack := r.copyDatabase()
			r.arm(c.path, 100, stripesim.Fault{Type: stripesim.StatusBefore, Status: 500})
			r.passes()
			r.Sim.ClearFaults()
			first := r.text("SELECT status FROM idempotency_keys WHERE operation_id = $1", older)
			told, err := c.later(r, target)
			if first != "failed" || err != nil || told.Replayed ||
				told.Answer.Code != http.StatusCreated {
				t.Fatalf(
					"the older one %q; %d %s, %v", first, told.Answer.Code, told.Answer.Body, err,
				)
			}
			moves := r.moves()
			putBack()
			r.passes()
			if h, err := r.instance.Engine.Show(t.Context(), older); err != nil ||
				h.Status != idemkeys.Failed {
				t.Errorf("the older one ended as %q, %s, %v", h.Status, h.LastError, err)
			}
			r.checkKey(t, c, target, told)
			r.checkUnchanged(t, r.events(), moves)
		})
	}
}

// The later operation's answer has its own time; after that the key is free, whatever became of the
// older one.
func TestKeyIsFreeWhileTheOlderOneIsParked(t *testing.T) {
	t.Parallel()
	c := overtakenCases[0]
	r, older, _ := c.begin(t, stripesim.Fault{Type: stripesim.DropAfter})
	r.Exec(
		`UPDATE idempotency_keys SET parked_at = clock_timestamp(), next_run_at = NULL WHERE key = 'k'`,
	)
	putBack := r.copyDatabase()
	r.Exec(
		`UPDATE idempotency_keys SET parked_at = NULL, next_run_at = clock_timestamp() WHERE key = 'k'`,
	)
	r.passes()
	r.advance(25 * time.Hour)
	if _, err := r.instance.Charge("k"); err != nil {
		t.Fatal(err)
	}
	putBack()
	r.advance(25 * time.Hour)
	if _, _, err := r.instance.Engine.Sweep(t.Context(), 100); err != nil {
		t.Fatal(err)
	}
	if res, err := r.instance.Charge("k"); err != nil || res.Replayed ||
		res.Answer.Code != http.StatusCreated {
		t.Errorf("%d %s, replayed %t, %v", res.Answer.Code, res.Answer.Body, res.Replayed, err)
	}
	id := r.text("SELECT resource_id FROM idempotency_keys WHERE operation_id = $1", older)
	if h, err := r.instance.Engine.Show(t.Context(), older); err != nil ||
		h.State != idemkeys.StateParked || h.ResourceID != id {
		t.Errorf("the older one is %q, %v", h.State, err)
	}
	for _, hit := range r.listed(older) {
		word := idemkeys.Resolution{
			Succeeded: true, ProviderID: hit, Reason: "seen there", By: "ada",
		}
		if _, err := r.instance.Engine.Resolve(t.Context(), older, word); err != nil {
			t.Error(err)
		}
	}
	if n := r.Count("SELECT count(*) FROM charges WHERE status = 'succeeded'"); n != 4 {
		t.Errorf("%d charges succeeded, want 4", n)
	}
}

// The older operation has its answer in the copy, and the database's clock was set back: by it the
// answer's time is not over, as it was when the key was used anew.
func TestClockSetBackAfterARestore(t *testing.T) {
	t.Parallel()
	for name, back := range map[string]time.Duration{"not set": 0, "set back": -time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRestorable(t, false)
			r.instance.MustCharge("target", world.Twenty)
			older := r.instance.MustCharge("k", world.Twenty)
			putBack := r.copyDatabase()
			r.advance(24*time.Hour + 2*time.Second)
			told, err := r.instance.Charge("k")
			if err != nil || told.Replayed {
				t.Fatalf("replayed %t, %v", told.Replayed, err)
			}
			events, moves := r.events(), r.moves()
			r.advance(back)
			putBack()
			if k, err := r.instance.Engine.Lookup(t.Context(), r.Key.AccountID, "k"); err != nil ||
				k.OperationID != told.OperationID {
				t.Errorf("the key is shown as that of %q, %v", k.OperationID, err)
			}
			r.checkKey(t, overtakenCases[0], "", told)
			r.checkUnchanged(t, events, moves)
			if n := r.Count(
				"SELECT count(*) FROM charges WHERE id = $1 AND status = 'succeeded'", older,
			); n != 1 {
				t.Error("the older charge is gone")
			}
			if res, err := r.instance.Charge("target"); err != nil || res.Replayed != (back < 0) {
				t.Errorf("a key that nobody used anew: replayed %t, %v", res.Replayed, err)
			}
		})
	}
}

// An intent that was confirmed since the copy was made, longer ago than the provider remembers
// keys: it says what came of it.
func TestIntentConfirmedAfterTheCopy(t *testing.T) {
	t.Parallel()
	for _, source := range []string{"tok_visa", "tok_chargeDeclined"} {
		t.Run(source, func(t *testing.T) {
			t.Parallel()
			r := newRestorable(t, true)
			r.instance.MustCharge("target", world.Twenty)
			p := world.Twenty
			p.Source = source
			charge := func() (idemkeys.Result, error) {
				return r.instance.Charges.Create(context.Background(), r.Request("k"), p)
			}
			r.arm("/v1/payment_intents", 1, stripesim.Fault{Type: stripesim.DropAfter})
			_, err := charge()
			world.WantUnknown(t, err)
			putBack := r.copyDatabase()
			r.passes()
			told, err := charge()
			if err != nil {
				t.Fatal(err)
			}
			r.advance(30 * time.Hour)
			if err := r.Sim.ForgetKeys(""); err != nil {
				t.Fatal(err)
			}
			events := r.events()
			putBack()
			r.passes()
			if again, err := charge(); err != nil || world.Same(told.Answer, again.Answer) != nil ||
				again.OperationID != told.OperationID {
				t.Errorf(
					"%d %s, %v\ntold was %d %s", again.Answer.Code, again.Answer.Body, err,
					told.Answer.Code, told.Answer.Body,
				)
			}
			r.checkUnchanged(t, events, r.moves())
		})
	}
}

// Whoever drove the older operation when the copy was made was stopped then, and goes on: its lease
// is gone, and its answer is nobody's.
func TestOwnerOfAnOvertakenOperationGoesOn(t *testing.T) {
	t.Parallel()
	r := newRestorable(t, false)
	r.instance.MustCharge("target", world.Twenty)
	slow := r.Paused()
	owner := r.StartWith(nil, slow)
	ended := make(chan error, 1)
	go func() {
		_, err := owner.Charge("k")
		ended <- err
	}()
	<-slow.Answered
	older := r.text("SELECT operation_id FROM idempotency_keys WHERE key = 'k'")
	putBack := r.copyDatabase()
	r.advance(2 * time.Minute) // its lease is stale
	r.passes()
	r.advance(25 * time.Hour)
	told, err := r.instance.Charge("k")
	if err != nil || told.Replayed {
		t.Fatalf("replayed %t, %v", told.Replayed, err)
	}
	events, moves := r.events(), r.moves()
	putBack()
	close(slow.Resume)
	if err := <-ended; err == nil {
		t.Error("the owner was told an answer")
	}
	if h, err := r.instance.Engine.Show(t.Context(), older); err != nil ||
		h.Status != idemkeys.InProgress {
		t.Errorf("the owner ended the operation as %q, %v", h.Status, err)
	}
	r.checkKey(t, overtakenCases[0], "", told)
	r.passes()
	r.checkKey(t, overtakenCases[0], "", told)
	r.checkUnchanged(t, events, moves)
}
