package e2e

import (
	"fmt"
	"net/http"
	"testing"
)

// The very first charge has no outcome, so that no charge tells whose account another key is for;
// and one of the two keys, at least, may not read accounts. Nothing is sent with the other one;
// with the former one the operation ends.
func TestTheFirstChargeIsNotSentWithAKeyOfWhichNothingTells(t *testing.T) {
	t.Parallel()
	for _, silence := range []struct{ a, b int }{
		{http.StatusNotFound, http.StatusNotFound}, {http.StatusForbidden, http.StatusForbidden},
		{http.StatusForbidden, 0}, {0, http.StatusNotFound},
	} {
		t.Run(fmt.Sprint(silence), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			b := w.simOf("acct_b")
			silent := func(s *sim, status int) {
				if status != 0 {
					s.control(http.MethodPost,
						"faults",
						map[string]any{"match": map[string]any{"method": "GET",
							"path": "/v1/account"},
							"fault": fault{"type": "status_before", "status": status}}, nil)
				}
			}
			silent(w.sim, silence.a)
			silent(b, silence.b)
			a := w.serve()
			w.lostAt(a, "k")
			a.kill()
			a.wait()
			for _, args := range [][]string{{"serve"}, {"reconcile"}, {"audit", "--since", "1h"}} {
				w.refused(at(b), []string{"1 operations without an outcome",
					"another STRIPE_API_KEY or STRIPE_API_BASE", "Account: read"}, args...)
			}
			if n := b.stats(); n.ChargeRequests != 0 {
				t.Errorf("the other account was sent something: %+v", n)
			}
			again := w.serve()
			eventually(t, "the former key ends the operation", func() bool {
				return w.client(again).Charge("k", twenty).Code == http.StatusCreated
			})
			w.sim.mustHave(t, 1)
			again.kill()
			again.wait()
			if silence.b == 0 { // nothing is open any more: the newest charge tells
				w.refused(at(b), []string{"acct_b (test mode)", "provider switch"}, "serve")
			}
		})
	}
}
