package e2e

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// scraped returns what an instance tells Prometheus.
func (p *proc) scraped() string {
	p.t.Helper()
	res, err := (&http.Client{Timeout: 10 * time.Second}).Get(p.url + "/metrics")
	if err != nil {
		p.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK ||
		!strings.HasPrefix(res.Header.Get("Content-Type"), "text/plain") {
		p.t.Fatalf("scrape: %d %s, %v", res.StatusCode, res.Header.Get("Content-Type"), err)
	}
	return string(text)
}

// The binary tells Prometheus what it did, and what a process left behind that is gone.
func TestAnInstanceIsScraped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.serve()
	c := w.client(first)
	c.Charge("k", card("tok_visa"))
	c.Charge("k", card("tok_visa"))
	text := first.scraped()
	for _, line := range []string{
		`paidonce_requests_total{outcome="fresh",route="createCharge"} 1`,
		`paidonce_requests_total{outcome="replayed",route="createCharge"} 1`,
		`paidonce_provider_calls_total{call="charge",result="succeeded"} 1`,
		`paidonce_operations_in_progress 0`, `paidonce_scrape_errors_total 0`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no %s in\n%s", line, text)
		}
	}
	if strings.Contains(text, w.apiKey) || strings.Contains(text, "sk_test_e2eProviderSecret") {
		t.Error("a secret is in it")
	}
	first.kill()
	execSQL(t, w.dbURL,
		`INSERT INTO idempotency_keys (account_id, key, operation_id, kind, hash_version, request_hash, request_id, params, resource_id, recovery_point, created_at, next_run_at)
		VALUES ('a', 'left', 'op_left', 'charge.create', 1, decode(repeat('00', 32), 'hex'), 'req_left', '{}', 'ch_left', 'started', now() - interval '1 hour', now() - interval '1 hour')`)
	second := w.serve("PAIDONCE_WORKERS=sweep")
	text = second.scraped()
	for _, line := range []string{`paidonce_operations_stale 1`,
		`paidonce_worker_info{worker="sweep"} 1`,
		`paidonce_requests_total{outcome="fresh",route="createCharge"} 0`} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no %s in\n%s", line, text)
		}
	}
}
