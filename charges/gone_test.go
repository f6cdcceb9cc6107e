package charges_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"paidonce/idemkeys"
	"paidonce/internal/world"
	"paidonce/provider/stripesim"
)

// An operation whose row cannot take its outcome any more waits for an operator, and nothing is
// sent or looked up for it.
func TestNothingIsSentForARowThatIsGone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		step string
		sql  []string
		says string
	}{
		"charge": {
			"charge.Charges", []string{`DELETE FROM charges WHERE status = 'pending'`}, "is gone",
		},
		"charge settled without an answer": {
			"charge.Charges",
			[]string{
				`UPDATE charges SET status = 'failed', failure_code = 'x', settled_at = clock_timestamp() WHERE status = 'pending'`,
			},
			"is failed already",
		},
		"charge of another operation": {
			"charge.Charges",
			[]string{`UPDATE charges SET operation_id = 'op_other' WHERE status = 'pending'`},
			"op_other",
		},
		"intent created": {
			"charge.intent created", []string{`DELETE FROM charges WHERE status = 'pending'`},
			"is gone",
		},
		"intent confirmed": {
			"charge.intent confirmed", []string{`DELETE FROM charges WHERE status = 'pending'`},
			"is gone",
		},
		"capture": {
			"charge.capture", []string{`DELETE FROM charges`}, "is gone",
		},
		"capture of an intent": {
			"charge.capture of an intent", []string{`DELETE FROM charges`}, "is gone",
		},
		"capture that nothing names": {
			"charge.capture", []string{`UPDATE charges SET capture_operation_id = NULL`},
			"another operation's",
		},
		"cancellation": {
			"charge.cancel", []string{`DELETE FROM charges`}, "is gone",
		},
		"cancellation of an intent": {
			"charge.cancel of an intent", []string{`DELETE FROM charges`}, "is gone",
		},
		"cancellation that nothing names": {
			"charge.cancel",
			[]string{`UPDATE charges SET capture_operation_id = NULL, release = NULL`},
			"another operation's",
		},
		"payment intent created": {
			"payment_intent.create", []string{`DELETE FROM charges WHERE status = 'pending'`},
			"is gone",
		},
		"payment intent created and confirmed": {
			"payment_intent.create confirmed",
			[]string{`DELETE FROM charges WHERE status = 'pending'`}, "is gone",
		},
		"payment intent confirmed": {
			"payment_intent.confirm", []string{`DELETE FROM charges`}, "is gone",
		},
		"payment intent that nothing names": {
			"payment_intent.confirm", []string{`UPDATE charges SET capture_operation_id = NULL`},
			"another operation's",
		},
		"refund of what is authorised": {
			"refund.hold", []string{`DELETE FROM refunds`}, "is gone",
		},
		"refund of what is authorised, settled without an answer": {
			"refund.hold",
			[]string{`UPDATE refunds SET status = 'failed', settled_at = clock_timestamp()`},
			"is failed already",
		},
		"refund": {
			"refund.Charges", []string{`DELETE FROM refunds`}, "is gone",
		},
		"refund's charge": {
			"refund.Charges",
			[]string{
				`ALTER TABLE refunds DROP CONSTRAINT refunds_charge_id_fkey`, `DELETE FROM charges`,
			},
			"is gone",
		},
		"refund settled without an answer": {
			"refund.Charges",
			[]string{`UPDATE refunds SET status = 'failed', settled_at = clock_timestamp()`},
			"is failed already",
		},
		"refund of another operation": {
			"refund.Charges", []string{`UPDATE refunds SET operation_id = 'op_other'`}, "op_other",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := world.New(t)
			var s step
			for _, known := range everyStep() {
				if known.name == c.step {
					s = known
				}
			}
			w.Intents = s.intents
			i := w.Start()
			var charge string
			if s.unpaid {
				charge = i.MustIntent("made", "requires_payment_method", world.TwentyIntent).ID
			} else if s.on {
				p := world.Twenty
				p.Capture = !s.capture && !s.ends
				charge = i.MustCharge("charge", p)
			}
			rule := s.rule
			rule.Count, rule.Fault = 1, stripesim.Fault{Type: stripesim.DropBefore}
			if _, err := w.Sim.AddFault(rule); err != nil {
				t.Fatal(err)
			}
			_, err := s.do(i, w, "k", charge)
			world.WantUnknown(t, err)
			for _, sql := range c.sql {
				w.Exec(sql)
			}
			asked := w.Sim.Stats().Requests
			if counts := w.Pass(i); counts.Parked != 1 {
				t.Errorf("got %+v: %s, want 1 parked", counts, w.LastError("k"))
			}
			if why := w.LastError("k"); !strings.Contains(why, c.says) {
				t.Errorf("parked because %q", why)
			}
			if now := w.Sim.Stats().Requests; now != asked {
				t.Errorf("the provider was asked %d times", now-asked)
			}
		})
	}
}

// An operation that another driver has taken meanwhile is not reported as parked by the one that
// was overtaken.
func TestOvertakenOwnerDoesNotPark(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	slow := w.Paused()
	w.ChargeFault(
		1,
		stripesim.Fault{
			Type: stripesim.StatusAfter, Status: 400, Body: errorBody("idempotency_error", ""),
		},
	)
	first := w.StartWith(nil, slow)
	type outcome struct {
		res idemkeys.Result
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		res, err := first.Charge("k")
		done <- outcome{res, err}
	}()
	<-slow.Answered
	w.Age(w.Keys.StaleAfter + time.Second)
	res, err := w.Start().Charge("k") // finds the charge
	if err != nil || res.Answer.Code != http.StatusCreated {
		t.Fatalf("got %d, %v, want 201", res.Answer.Code, err)
	}
	close(slow.Resume)
	stopped := <-done
	if stopped.err != nil || stopped.res.Status != idemkeys.Completed ||
		world.Same(stopped.res.Answer, res.Answer) != nil {
		t.Errorf("%+v, want what is stored", stopped)
	}
	w.CheckRecords(1)
}
