package e2e

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// TestLogsTellNoSecrets goes through what happens in a service's life, at the most talkative level,
// and looks for what must not be told.
func TestLogsTellNoSecrets(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "PAIDONCE_LOG_LEVEL=debug", "STRIPE_API_KEY=sk_test_hushProviderKey0123456789")
	u, err := url.Parse(w.dbURL)
	if err != nil {
		t.Fatal(err)
	}
	execSQL(t, w.dbURL, "CREATE ROLE e2e_logs LOGIN SUPERUSER PASSWORD 'hushDatabasePassword'")
	u.User = url.UserPassword("e2e_logs", "hushDatabasePassword")
	w.env = append(w.env, "DATABASE_URL="+u.String())
	p := w.serve()
	c := w.client(p)
	const key = "idem-hushKey-0123456789" // a hint tells its first characters
	c.Charge(key, twenty)
	c.Charge(key, twenty)
	c.Charge(key, order(5))
	c.Charge(key+"-declined", card("tok_chargeDeclined"))
	c.Charge(key+"-refused", card("tok_hushUnknown"))
	c.Charge(key+"-wrong", `{"amount":"hushBody","source":"tok_visa"}`)
	c.ChargeForm(key+"-form", "amount=2000&currency=usd&source=tok_visa&description=hushBody")
	c.As("sk_test_hushWrongKey").Charge(key, twenty)
	c.As("").Get("/v1/charges?limit=hushQuery")
	c.Get("/v1/idempotency_keys/" + key)
	c.Get("/hushPath/" + key)
	for _, f := range []fault{{"type": "drop_after"}, {"type": "status_before", "status": 500},
		{"type": "status_before", "status": 401}, {"type": "garbage"}} {
		w.sim.arm(1, f)
		c.Charge(key+"-lost", card("tok_mastercard"))
	}
	w.sim.arm(1, fault{"type": "drop_before"})
	c.Charge(key+"-later", twenty)
	said := p.output
	var all strings.Builder
	eventually(t, "the reconciler is done", func() bool {
		r := w.must("reconcile")
		all.WriteString(r.stdout + r.stderr)
		return w.status(key+"-later") == "completed"
	})
	r := w.must("apikeys", "list")
	all.WriteString(r.stdout + r.stderr)
	all.WriteString(said())
	for _, secret := range []string{w.apiKey, key, "tok_", "hush", "postgres://", "sk_test_"} {
		for line := range strings.Lines(all.String()) {
			if strings.Contains(line, secret) {
				t.Errorf("%q is told: %s", secret, line)
			}
		}
	}
	checkRequestLines(t, said())
}

// checkRequestLines: each request has a line with its id, and those of operations name them.
func checkRequestLines(t *testing.T, said string) {
	t.Helper()
	requests, operations := 0, 0
	for line := range strings.Lines(said) {
		var l struct {
			Msg         string `json:"msg"`
			RequestID   string `json:"request_id"`
			OperationID string `json:"operation_id"`
			Status      int    `json:"status"`
			NextRunIn   string `json:"next_run_in"` // for people: no count of nanoseconds
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Errorf("not JSON: %s", line)
		}
		if l.Msg != "request" {
			continue
		}
		requests++
		if !strings.HasPrefix(l.RequestID, "req_") {
			t.Errorf("no request id: %s", line)
		}
		if strings.HasPrefix(l.OperationID, "op_") {
			operations++
		} else if l.Status == http.StatusCreated {
			t.Errorf("a charge without its operation: %s", line)
		}
	}
	if requests < 15 || operations < 3 {
		t.Errorf("%d lines of requests, %d with operations; want one for each", requests,
			operations)
	}
}
