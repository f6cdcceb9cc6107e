package db_test

import (
	"fmt"
	"strings"
)

const (
	// kept: of each sort that is over. A walk over it is far beyond what any statement may read.
	kept = 30_000
	// waiting: of each sort that waits, as after an outage of the provider or of an endpoint.
	waiting = 4_000
)

// done fills the database with what is over: operation fN made charge cfN and event ecfN, at
// position N.
func (p *planner) done() {
	p.Helper()
	for _, sql := range []string{
		`INSERT INTO accounts (id, name) VALUES ('a', 'a')`,
		`INSERT INTO api_keys (id, account_id, key_hash, key_hint) VALUES ('k', 'a', sha256('k'), 'k')`,
		`INSERT INTO installation (tag) VALUES ('t') ON CONFLICT DO NOTHING`,
		`INSERT INTO webhook_endpoints (account_id, id, number, url, enabled_events) OVERRIDING SYSTEM VALUE
			SELECT 'a', 'e' || n, n, 'https://x', '{*}' FROM generate_series(1, 10) n`,
		`INSERT INTO webhook_secrets (endpoint, secret) SELECT n, 's' FROM generate_series(1, 10) n`,
		`INSERT INTO servers (id) VALUES ('s')`,
		`INSERT INTO idempotency_keys (account_id, key, operation_id, kind, hash_version, request_hash, request_id, params,
				resource_id, status, recovery_point, response_code, response_headers, response_body, finished_at, expires_at)
			SELECT 'a', 'f' || n, 'f' || n, 'charge.create', 1, sha256('k'), 'r', '{}', 'cf' || n, 'completed', 'finished',
				201, '{}', '{}', now(), now() + (n - 500) * interval '1 second' FROM generate_series(1, KEPT) n`,
		`INSERT INTO charges (id, account_id, operation_id, status, amount, amount_captured, currency, capture, captured,
				customer, livemode, provider_id, created_at, settled_at, own_receipt, reference)
			SELECT 'cf' || n, 'a', 'f' || n, CASE WHEN n % 10 = 0 THEN 'failed' ELSE 'succeeded' END, 5,
				CASE WHEN n % 10 = 0 THEN 0 ELSE 5 END, 'usd', true, n % 10 <> 0, 'cus' || n % 100, false, 'ch' || n,
				now() - (KEPT - n) * interval '1 second', now(), n % 10 <> 0,
				'order' || n FROM generate_series(1, KEPT) n`,
		`INSERT INTO refunds (id, account_id, charge_id, operation_id, status, amount, currency, provider_id, created_at)
			SELECT 'rf' || n, 'a', 'cf' || 1 + n % 1000, 'rf' || n, 'succeeded', 1, 'usd', 're' || n,
				now() - (KEPT - n) * interval '1 second' FROM generate_series(1, KEPT) n`,
		`INSERT INTO disputes (id, account_id, charge_id, status, is_open, reason, amount, currency, refundable, has_evidence,
				past_due, submissions, livemode, provider_id, created_at)
			SELECT 'df' || n, 'a', 'cf' || 1 + n % 1000, CASE WHEN n % 100 = 0 THEN 'needs_response' ELSE 'lost' END, n % 100 = 0,
				'general', 1, 'usd', false, false, false, 0, false, 'dp' || n,
				now() - (KEPT - n) * interval '1 second' FROM generate_series(1, KEPT) n`,
		`INSERT INTO provider_events (id, type, object_id, livemode, payload, processed_at, result, next_run_at)
			SELECT 'f' || n, 'charge.succeeded', 'ch' || n, false, '{}', now() - (KEPT - n) * interval '1 second',
				'done', NULL FROM generate_series(1, KEPT) n`,
		`INSERT INTO operation_log (operation_id, event, attempt, actor, at)
			SELECT 'f' || n, 'resumed', 2, 'request', now() - (KEPT - n) * interval '1 second'
			FROM generate_series(1, KEPT) n`,
		`INSERT INTO outbox (event_id, account_id, type, operation_id, object_id, payload, position, created_at)
			SELECT 'ecf' || n, 'a', CASE WHEN n % 10 = 0 THEN 'charge.failed' ELSE 'charge.succeeded' END, 'f' || n,
				'cf' || n, '{}', n, now() - (KEPT - n) * interval '1 second' FROM generate_series(1, KEPT) n`,
		`INSERT INTO recovered_keys (account_id, key_hash, operation_id, kind, hash_version, request_hash, request_id,
				resource_id, response_code, response_headers, response_body, created_at, expires_at)
			SELECT 'a', sha256(convert_to('a g' || n, 'UTF8')), 'g' || n, 'charge.create', 1, sha256('k'), 'q', 'cg' || n,
				201, '{}', '{}', now(), now() + (n - 500) * interval '1 second' FROM generate_series(1, KEPT) n`,
		`INSERT INTO receipts (charge_id, account_id, event_id, taken_at, state, attempts, last_attempt_at, finished_at,
				created_at)
			SELECT 'cf' || n, 'a', 'ecf' || n, now(), 'sent', 1, now(), now(), now() - (KEPT - n) * interval '1 second'
			FROM generate_series(1, KEPT) n`,
		`INSERT INTO deliveries (endpoint, event_id, position, object_id, state, next_run_at, finished_at)
			SELECT 1 + n % 10, 'ecf' || n, n, 'cf' || n, 'delivered', NULL, now() FROM generate_series(1, KEPT) n`,
		`UPDATE outbox_counter SET last_position = KEPT`,
		`UPDATE deliveries_cursor SET position = KEPT`,
		`INSERT INTO receipts_cursor (position) VALUES (KEPT)`,
		`INSERT INTO outbox_cursors (publisher, position) VALUES ('nats', KEPT), ('kafka', KEPT)`,
	} {
		p.exec(numbered(sql))
	}
}

// burst adds what waits: operation uN has charge cuN and refund ruN, and event ecuN without a
// position. Event vN has position KEPT+N and is not queued. Events ecfN wait for endpoint 1, the
// last of them, and for endpoint 2, which fails.
func (p *planner) burst() {
	p.Helper()
	for _, sql := range []string{
		`INSERT INTO idempotency_keys (account_id, key, operation_id, kind, hash_version, request_hash, request_id, params,
				resource_id, recovery_point, lease_token, locked_at, next_run_at, first_attempt_at, last_attempt_at, created_at)
			SELECT 'a', 'u' || n, 'u' || n, 'charge.create', 1, sha256('k'), 'r', '{}', 'cu' || n, 'started',
				CASE WHEN n % 2 = 0 THEN 't' || n END, CASE WHEN n % 2 = 0 THEN now() END,
				CASE WHEN n % 4 = 1 THEN now() - n * interval '1 millisecond' END, now(), now() - interval '1 hour', now()
			FROM generate_series(1, WAITING) n`,
		`INSERT INTO charges (id, account_id, operation_id, amount, currency, capture, customer, livemode, awaits_at, intent_id,
				created_at)
			SELECT 'cu' || n, 'a', 'u' || n, 5, 'usd', true, 'cus' || n % 100, false, now(), 'pi' || n,
				now() + n * interval '1 millisecond' FROM generate_series(1, WAITING) n`,
		`INSERT INTO charges (id, account_id, operation_id, status, amount, currency, capture, livemode, provider_id, created_at,
				settled_at)
			SELECT 'ch' || n, 'a', 'h' || n, 'succeeded', 5, 'usd', false, false, 'hd' || n,
				now() - interval '30 days' + n * interval '1 millisecond', now() FROM generate_series(1, WAITING) n`,
		`INSERT INTO refunds (id, account_id, charge_id, operation_id, amount, currency)
			SELECT 'ru' || n, 'a', 'cf' || 1 + n % 1000, 'ru' || n, 1, 'usd' FROM generate_series(1, WAITING) n`,
		`INSERT INTO provider_events (id, type, object_id, livemode, payload)
			SELECT 'u' || n, 'charge.succeeded', 'ch' || n, false, '{}' FROM generate_series(1, WAITING) n`,
		`INSERT INTO outbox (event_id, account_id, type, operation_id, object_id, payload)
			SELECT 'ecu' || n, 'a', 'charge.refunded', 'u' || n, 'cf' || n, '{}' FROM generate_series(1, WAITING) n`,
		`INSERT INTO outbox (event_id, account_id, type, operation_id, object_id, payload, position)
			SELECT 'v' || n, 'a', 'charge.succeeded', 'v' || n, 'cf' || n, '{}', KEPT + n FROM generate_series(1, WAITING) n`,
		`UPDATE outbox_counter SET last_position = KEPT + WAITING`,
		`INSERT INTO receipts (charge_id, account_id, event_id, taken_at, state, attempts, next_run_at, last_attempt_at)
			SELECT 'cu' || n, 'a', 'ecu' || n, now(), CASE WHEN n <= 50 THEN 'sending' ELSE 'pending' END,
				CASE WHEN n <= 50 THEN 1 ELSE 0 END, CASE WHEN n > 50 THEN now() END,
				CASE WHEN n <= 50 THEN now() - interval '1 hour' END FROM generate_series(1, WAITING) n`,
		`INSERT INTO deliveries (endpoint, event_id, position, object_id, next_run_at)
			SELECT e, 'ecf' || n, n, 'cf' || n, now() + CASE e WHEN 1 THEN -1 ELSE 1 END * n * interval '1 millisecond'
			FROM generate_series(1, WAITING) n, generate_series(1, 2) e
			ON CONFLICT (endpoint, event_id) DO UPDATE SET state = 'pending', next_run_at = now(), finished_at = NULL`,
	} {
		p.exec(numbered(sql))
	}
}

// numbered puts the numbers of rows into a statement.
func numbered(sql string) string {
	return strings.NewReplacer("KEPT", fmt.Sprint(kept), "WAITING", fmt.Sprint(waiting)).Replace(sql)
}
