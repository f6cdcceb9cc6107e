package recovery_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"paidonce/idemkeys"
	"paidonce/provider/stripesim"
)

// An operation whose row cannot take its outcome any more waits for a person, and nothing is sent or looked up for it.
func TestNothingIsSentForARowThatIsGone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		step string
		sql  []string
		says string
	}{
		"charge": {"charge.create", []string{`DELETE FROM charges WHERE status = 'pending'`}, "is gone"},
		"charge settled without an answer": {
			"charge.create", []string{`UPDATE charges SET status = 'failed', failure_code = 'x', settled_at = clock_timestamp() WHERE status = 'pending'`}, "is failed already",
		},
		"charge of another operation": {"charge.create", []string{`UPDATE charges SET operation_id = 'op_other' WHERE status = 'pending'`}, "op_other"},
		"intent created":              {"charge.intent created", []string{`DELETE FROM charges WHERE status = 'pending'`}, "is gone"},
		"intent confirmed":            {"charge.intent confirmed", []string{`DELETE FROM charges WHERE status = 'pending'`}, "is gone"},
		"capture":                     {"charge.capture", []string{`DELETE FROM charges`}, "is gone"},
		"capture of an intent":        {"charge.capture of an intent", []string{`DELETE FROM charges`}, "is gone"},
		"capture that nothing names":  {"charge.capture", []string{`UPDATE charges SET capture_operation_id = NULL`}, "another operation's"},
		"refund":                      {"refund.create", []string{`DELETE FROM refunds`}, "is gone"},
		"refund's charge": {
			"refund.create", []string{`ALTER TABLE refunds DROP CONSTRAINT refunds_charge_id_fkey`, `DELETE FROM charges`}, "is gone",
		},
		"refund settled without an answer": {
			"refund.create", []string{`UPDATE refunds SET status = 'failed', settled_at = clock_timestamp()`}, "is failed already",
		},
		"refund of another operation": {"refund.create", []string{`UPDATE refunds SET operation_id = 'op_other'`}, "op_other"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			var s step
			for _, known := range everyStep() {
				if known.name == c.step {
					s = known
				}
			}
			w.intents = s.intents
			i := w.start(nil, nil)
			var charge string
			if s.on {
				p := twenty
				p.Capture = !s.capture
				charge = i.made(w, "charge", p)
			}
			rule := s.rule
			rule.Count, rule.Fault = 1, stripesim.Fault{Type: stripesim.DropBefore}
			if _, err := w.sim.AddFault(rule); err != nil {
				t.Fatal(err)
			}
			_, err := s.do(i, w, "k", charge)
			wantUnknown(t, err)
			for _, sql := range c.sql {
				w.exec(sql)
			}
			asked := w.sim.Stats().Requests
			if counts := w.pass(i); counts.Parked != 1 {
				t.Errorf("%+v: %s", counts, w.lastError("k"))
			}
			if why := w.lastError("k"); !strings.Contains(why, c.says) {
				t.Errorf("parked because %q", why)
			}
			if now := w.sim.Stats().Requests; now != asked {
				t.Errorf("the provider was asked %d times", now-asked)
			}
		})
	}
}

// An operation that another driver has taken meanwhile is not reported as parked by the one that was overtaken.
func TestOvertakenOwnerDoesNotPark(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	slow := pausedProvider{Provider: w.psp, answered: make(chan struct{}), resume: make(chan struct{})}
	w.fault(1, stripesim.Fault{Type: stripesim.StatusAfter, Status: 400, Body: problem("idempotency_error", "")})
	first := w.start(nil, slow)
	done := make(chan outcome, 1)
	go func() {
		res, err := first.charge(w, "k")
		done <- outcome{res, err}
	}()
	<-slow.answered
	w.age(w.cfg.StaleAfter + time.Second)
	res, err := w.start(nil, nil).charge(w, "k") // finds the charge
	if err != nil || res.Answer.Code != http.StatusCreated {
		t.Fatalf("%d, %v", res.Answer.Code, err)
	}
	close(slow.resume)
	stopped := <-done
	if stopped.err != nil || stopped.res.Status != idemkeys.Completed || same(stopped.res.Answer, res.Answer) != nil {
		t.Errorf("%+v, want what is stored", stopped)
	}
	w.books(1)
}
