package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	stripewebhook "github.com/stripe/stripe-go/v76/webhook"
)

// An account of the provider that other programs use as well. Their events are answered like
// ours, and nothing of their customers is kept.
func TestNewsOfOtherPrograms(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "STRIPE_WEBHOOK_SECRET=whsec_shared", "PAIDONCE_WORKERS=inbox")
	c := w.client(w.serve())
	for range 2 {
		for n, typ := range []string{"customer.updated", "invoice.paid", "charge.succeeded",
			"payment_intent.created", "charge.dispute.created"} {
			kind := typ[:strings.LastIndex(typ, ".")]
			kind = strings.TrimPrefix(kind, "charge.")
			body := fmt.Appendf(nil,
				`{"id":"evt_%d","object":"event","type":%q,"livemode":false,"data":{"object":{"id":"obj_%d","object":%q,"metadata":{},"email":"jenny@example.com"}}}`, n, typ, n, kind)
			signed := stripewebhook.GenerateTestSignedPayload(&stripewebhook.UnsignedPayload{
				Payload: body, Secret: "whsec_shared",
			})
			if a := c.Do(c.Request(http.MethodPost, "/v1/provider/stripe/webhooks", string(body),
				"Stripe-Signature", signed.Header)); a.Code != http.StatusOK {
				t.Errorf("%s: got %d %s, want 200", typ, a.Code, a.Body)
			}
		}
	}
	eventually(t, "all are processed", func() bool {
		return querySQL[int](t, w.dbURL,
			"SELECT count(*) FROM provider_events WHERE processed_at IS NOT NULL") == 5
	})
	// A dispute carries no tags, and is one that the provider does not know: nobody can tell whose
	// it is.
	if got := querySQL[string](t, w.dbURL, "SELECT string_agg(type, ' ' ORDER BY type) FROM "+
		"provider_events WHERE payload IS NOT NULL"); got != "charge.dispute.created" {
		t.Errorf("payloads are kept of: %s", got)
	}
	if r := w.must("inbox", "show", "evt_0"); !strings.Contains(r.stdout, "not kept") ||
		!strings.Contains(r.stdout, "customer.updated") {
		t.Errorf("inbox show: %s", r.stdout)
	}
}

// What the provider sent in a year, and the logs of a year, are swept; what waits for an
// operator stays.
func TestSweepOfOldNewsAndLogs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	execSQL(t, w.dbURL,
		`INSERT INTO provider_events (id, type, object_id, livemode, payload, received_at, processed_at, result, next_run_at, parked_at)
			SELECT 'evt_' || n, 'customer.updated', 'cus', false, '{}', now() - interval '400 days', p, CASE WHEN n <= 22 THEN 'done' END, NULL, CASE WHEN n > 22 THEN now() END
			FROM (SELECT n, CASE WHEN n <= 22 THEN now() - interval '400 days' END AS p FROM generate_series(1, 24) n) x`,
		`INSERT INTO operation_log (operation_id, at, event, attempt, actor) SELECT 'op_' || n, now() - interval '400 days', 'resumed', 2, 'request' FROM generate_series(1, 2100) n`)
	left := func() int {
		return querySQL[int](t, w.dbURL, "SELECT (SELECT count(*) FROM provider_events) + "+
			"(SELECT count(*) FROM operation_log)")
	}
	long := w.run([]string{"PAIDONCE_INBOX_TTL=10000h", "PAIDONCE_LOG_TTL=10000h"}, "sweep",
		"--json")
	if want := `{"swept":0,"provider_events":0,"operation_log":0}` + "\n"; long.stdout != want ||
		long.code != 0 {
		t.Errorf("with a retention of 10000 hours: %d %q, want %q", long.code, long.stdout, want)
	}
	if got := w.must("sweep", "--json").stdout; got != `{"swept":0,"provider_events":22,"operation_log":2100}`+"\n" || left() != 2 {
		t.Errorf("%s %d rows are left, want the 2 that are parked", got, left())
	}
	if got := w.must("sweep").stdout; got != "swept 0 keys, 0 events of the provider, 0 lines of operation logs\n" {
		t.Errorf("once more: %q", got)
	}
	for setting, says := range map[string]string{"PAIDONCE_INBOX_TTL=719h": "720h",
		"PAIDONCE_LOG_TTL=23h": "PAIDONCE_KEY_TTL", "PAIDONCE_LOG_TTL=a": "8760h"} {
		name, _, _ := strings.Cut(setting, "=")
		r := w.run([]string{setting}, "sweep")
		if r.code != 1 || !strings.Contains(r.stderr, name) || !strings.Contains(r.stderr, says) {
			t.Errorf("%s: exit code %d, %s", setting, r.code, r.stderr)
		}
	}
}
