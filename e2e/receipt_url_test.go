package e2e

import (
	"strings"
	"testing"
)

// The address of a receipt shows it to whoever has it. So it is in the answers to the account's own
// callers and in its events, and in nothing that the program says or lists.
func TestReceiptAddressesAreNotTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "PAIDONCE_LOG_LEVEL=debug", "STRIPE_WEBHOOK_SECRET=whsec_receipts",
		"PAIDONCE_WORKERS=inbox")
	p := w.serve()
	w.sim.tellTo(p, "whsec_receipts")
	c := w.client(p)
	const address = "pay.stripe.com/receipts/"
	id := c.Charge("held", `{"amount":2000,"currency":"usd","source":"tok_visa","capture":false}`).ID()
	taken := c.Capture("taken", id, 1500)
	if !strings.Contains(string(taken.Body), address) {
		t.Fatalf("%s", taken.Body)
	}
	for _, f := range []string{"drop_after", "garbage"} {
		w.sim.arm(1, fault{"type": f})
		c.Charge(f, twenty)
		c.Charge(f, twenty)
	}
	execSQL(t, w.dbURL, "UPDATE charges SET details = NULL WHERE captured AND amount_captured = 1500")
	w.sim.send("charge.updated",
		querySQL[string](t, w.dbURL, "SELECT provider_id FROM charges WHERE id = $1", id))
	eventually(t, "the details are known again", func() bool {
		return strings.Contains(string(c.Get("/v1/charges/"+id).Body), address)
	})
	var said strings.Builder
	tell := func(env []string, args ...string) {
		r := w.run(env, args...)
		if r.code != 0 {
			t.Errorf("%v: exit code %d", args, r.code)
		}
		said.WriteString(r.stdout + r.stderr)
	}
	event := querySQL[string](t, w.dbURL,
		"SELECT id FROM provider_events WHERE type = 'charge.updated' LIMIT 1")
	for _, args := range [][]string{
		{"reconcile"}, {"audit", "--since", "1h"}, {"inbox", "list"}, {"inbox", "show", event},
		{"inbox", "show", event, "--json"}, {"ops", "list"},
		{"ops", "show", querySQL[string](t, w.dbURL, "SELECT operation_id FROM charges WHERE id = $1", id)},
	} {
		tell(nil, args...)
	}
	for _, args := range [][]string{
		{"charges", "list"}, {"charges", "get", id}, {"events", "tail", "-n", "10", "--once"},
	} {
		tell(w.asClient(p), args...)
	}
	said.WriteString(p.output())
	for line := range strings.Lines(said.String()) {
		if strings.Contains(line, "/receipts/") {
			t.Errorf("told: %s", line)
		}
	}
	if !strings.Contains(said.String(), "receipt_url") || !strings.Contains(said.String(), id) {
		t.Error("nothing was shown that has the address of a receipt")
	}
	if n := querySQL[int](t, w.dbURL, `SELECT (SELECT count(*) FROM operation_log l WHERE strpos(l::text, '/receipts/') > 0) +
		(SELECT count(*) FROM idempotency_keys WHERE strpos(last_error, '/receipts/') > 0)`); n != 0 {
		t.Errorf("%d rows of the operations' log or errors have an address", n)
	}
}
