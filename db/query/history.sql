-- Whether the database still is the one that it was, and what to do if not.

-- name: HistoryMark :one
-- Counts the mark up, and says that this server is there.
WITH seen AS (
    INSERT INTO servers AS s (id) VALUES (@id) ON CONFLICT (id) DO UPDATE SET seen_at = clock_timestamp()
), gone AS (
    DELETE FROM servers s WHERE s.seen_at < clock_timestamp() - @gone::interval AND s.id <> @id
)
UPDATE history_mark SET mark = greatest(mark, @mark::bigint) + 1 RETURNING mark;

-- name: ServerLeave :exec
DELETE FROM servers WHERE id = @id;

-- name: HistoryVouch :exec
-- This server has found all that it had claimed.
INSERT INTO servers AS s (id, vouched) VALUES (@id, @history) ON CONFLICT (id) DO UPDATE SET vouched = excluded.vouched, seen_at = clock_timestamp();

-- name: HistoryAdopt :execrows
-- Vouches for a history, unless somebody has opened a recovery meanwhile.
UPDATE installation SET history = @history, timeline = @timeline WHERE forked_at IS NULL;

-- name: RecoveryOpen :exec
-- Notes that the history has forked, once: nothing is claimed from here on. A recovery that is open already is told what it did not know: that something is missing.
WITH closed AS (
    UPDATE installation SET forked_at = coalesce(forked_at, clock_timestamp())
), alive AS (
    SELECT max(s.seen_at) - @alive::interval AS since FROM servers s
)
INSERT INTO recoveries AS r (reason, lossy, history, alive_since, outbox_position)
SELECT @reason::text, @lossy::boolean, @history::text, (SELECT a.since FROM alive a), c.last_position FROM outbox_counter c
ON CONFLICT ((true)) WHERE finished_at IS NULL DO UPDATE SET
    lossy = r.lossy OR excluded.lossy, history = excluded.history,
    reason = CASE WHEN excluded.lossy AND NOT r.lossy THEN excluded.reason ELSE r.reason END;

-- name: RecoveryLease :one
-- Takes the open recovery, or keeps it; of several servers one reads the books.
UPDATE recoveries r SET lease_token = @token::text, leased_until = clock_timestamp() + @lease::interval
WHERE r.finished_at IS NULL AND (r.lease_token IS NULL OR r.lease_token = @token::text OR r.leased_until < clock_timestamp())
RETURNING r.n, r.reason, r.lossy, r.history, r.since, extract(epoch FROM clock_timestamp() - r.began_at)::float8 AS age_seconds,
    (SELECT count(*) FROM servers s WHERE s.seen_at >= r.alive_since AND s.vouched <> r.history) AS silent;

-- name: RecoverySince :exec
-- Keeps from when on the books are read, before anything is written.
UPDATE recoveries SET since = coalesce(since, @since::timestamptz) WHERE n = @n;

-- name: RecoveryCount :exec
UPDATE recoveries SET charges = charges + @charges::integer, refunds = refunds + @refunds::integer, captures = captures + @captures::integer WHERE n = @n;

-- name: RecoveryFail :exec
UPDATE recoveries SET last_error = @last_error::text WHERE n = @n AND lease_token = @token::text;

-- name: RecoveryFinish :one
-- Opens the way for claims again, if this still is the recovery's history and nobody has found more to be missing.
WITH done AS (
    UPDATE recoveries r SET finished_at = clock_timestamp(), lease_token = NULL, leased_until = NULL, last_error = NULL
    WHERE r.n = @n AND r.lease_token = @token::text AND r.history = @history AND r.finished_at IS NULL AND r.lossy = @lossy::boolean
    RETURNING r.charges, r.refunds, r.captures
), opened AS (
    UPDATE installation SET history = @history, timeline = @timeline, forked_at = NULL WHERE EXISTS (SELECT FROM done)
)
SELECT done.charges, done.refunds, done.captures FROM done;

-- name: RecoveryOpened :one
-- Whether claims are held, by a recovery that is open or a history that nobody has vouched for.
SELECT (i.forked_at IS NOT NULL OR i.timeline <> '' AND i.timeline <> substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::boolean AS held FROM installation i;

-- name: RecoveryList :many
SELECT * FROM recoveries ORDER BY n DESC LIMIT @most::integer;

-- name: RecoveryOfCursor :one
-- From where a reader goes on whose cursor was lost: the oldest fork after which there are such readers.
SELECT coalesce(min(r.outbox_position), 0)::bigint AS position, count(*) AS recoveries FROM recoveries r
WHERE r.lossy AND r.began_at > clock_timestamp() - @life::interval;

-- name: NewestAtProvider :many
-- Of the charges that the provider is known to have, those that were made last.
SELECT c.provider_id::text AS provider_id, c.created_at FROM charges c
WHERE c.provider_id IS NOT NULL AND c.settled_at IS NOT NULL AND (@provider_account::smallint = 0 OR coalesce(c.provider_account, 1) = @provider_account::smallint) ORDER BY c.id DESC LIMIT @most::integer;

-- name: OperationsUnknown :many
-- Which of these operations made nothing that is here.
SELECT o.id::text AS id FROM unnest(@operation_ids::text[]) AS o (id)
WHERE NOT EXISTS (SELECT FROM charges c WHERE c.operation_id = o.id) AND NOT EXISTS (SELECT FROM refunds r WHERE r.operation_id = o.id);

-- name: OperationsForgotten :many
-- Which of these operations nothing here tells of. One that could not be rebuilt is known by its key: it is found once, not at every start.
SELECT o.id::text AS id FROM unnest(@operation_ids::text[]) AS o (id)
WHERE NOT EXISTS (SELECT FROM charges c WHERE c.operation_id = o.id) AND NOT EXISTS (SELECT FROM refunds r WHERE r.operation_id = o.id)
    AND NOT EXISTS (SELECT FROM recovered_keys k WHERE k.operation_id = o.id) AND NOT EXISTS (SELECT FROM idempotency_keys k WHERE k.operation_id = o.id);

-- name: AccountRestore :exec
-- An account that was made after the moment to which the database was put back. Its API keys are gone; a person makes new ones.
INSERT INTO accounts (id, name) VALUES (@id, 'recovered ' || @id) ON CONFLICT DO NOTHING;

-- name: ChargeRestore :execrows
INSERT INTO charges (id, account_id, operation_id, status, amount, amount_captured, currency, capture, captured, customer, description, metadata,
    receipt_email, statement_descriptor_suffix, disputed, livemode, failure_code, failure_message, outcome, provider_id, created_at, settled_at, intent_id, events,
    next_action, awaits_at, capture_forgotten, provider_account)
VALUES (@id, @account_id, @operation_id, @status, @amount, @amount_captured, @currency, @capture, @captured, sqlc.narg(customer), sqlc.narg(description), @metadata,
    sqlc.narg(receipt_email), sqlc.narg(suffix), @disputed, @livemode, sqlc.narg(failure_code), sqlc.narg(failure_message), sqlc.narg(outcome),
    sqlc.narg(provider_id), @created_at, clock_timestamp(), sqlc.narg(intent_id), 1, sqlc.narg(next_action),
    CASE WHEN @status = 'pending' AND sqlc.narg(intent_id)::text IS NOT NULL THEN clock_timestamp() END, @capture_forgotten, NULLIF(@provider_account::smallint, 0))
ON CONFLICT (operation_id) DO NOTHING;

-- name: RefundRestore :execrows
INSERT INTO refunds (id, account_id, charge_id, operation_id, status, amount, currency, reason, metadata, failure_reason, provider_id, created_at, settled_at)
VALUES (@id, @account_id, @charge_id, @operation_id, @status, @amount, @currency, sqlc.narg(reason), @metadata, sqlc.narg(failure_reason), @provider_id, @created_at, clock_timestamp())
ON CONFLICT (operation_id) DO NOTHING;

-- name: KeyRestore :exec
-- Of two operations of one key, which it stood for one after the other, the later one counts.
INSERT INTO recovered_keys AS r (account_id, key_hash, operation_id, kind, hash_version, request_hash, request_id, resource_id, response_code, response_headers,
    response_body, created_at, expires_at)
VALUES (@account_id, @key_hash, @operation_id, @kind, @hash_version, @request_hash, @request_id, @resource_id, @response_code, @response_headers, @response_body,
    @created_at, clock_timestamp() + @key_ttl::interval)
ON CONFLICT (account_id, key_hash) DO UPDATE SET
    operation_id = excluded.operation_id, kind = excluded.kind, hash_version = excluded.hash_version, request_hash = excluded.request_hash,
    request_id = excluded.request_id, resource_id = excluded.resource_id, response_code = excluded.response_code, response_headers = excluded.response_headers,
    response_body = excluded.response_body, created_at = excluded.created_at, expires_at = excluded.expires_at
WHERE r.created_at < excluded.created_at;

-- name: KeyRecovered :execrows
-- The key has a name again: its row moves to where every other one is.
WITH found AS (
    DELETE FROM recovered_keys r WHERE r.account_id = @account_id AND r.key_hash = sha256(convert_to(@account_id || ' ' || @key::text, 'UTF8')) RETURNING r.*
)
INSERT INTO idempotency_keys (account_id, key, operation_id, kind, hash_version, request_hash, request_id, params, resource_id, status, recovery_point,
    response_code, response_headers, response_body, created_at, finished_at, expires_at)
SELECT f.account_id, @key::text, f.operation_id, f.kind, f.hash_version, f.request_hash, f.request_id, '\x7b7d'::bytea, f.resource_id, 'completed', 'finished',
    f.response_code, f.response_headers, f.response_body, f.created_at, clock_timestamp(), f.expires_at
FROM found f WHERE f.expires_at > clock_timestamp()
ON CONFLICT (account_id, key) DO NOTHING;

-- name: RecoveredSweep :execrows
-- There is something to sweep only in the days after a recovery, so it may read the table.
DELETE FROM recovered_keys r WHERE (r.account_id, r.key_hash) IN (
        SELECT d.account_id, d.key_hash FROM recovered_keys d WHERE d.expires_at <= (SELECT clock_timestamp())
        ORDER BY d.expires_at
        LIMIT @most::integer
        FOR UPDATE SKIP LOCKED
    )
    AND r.expires_at <= clock_timestamp();

-- name: KeysReached :execrows
-- What was unfinished at the moment to which the database was put back may have been driven, and sent, since: it is taken for sent from its claim on until now, and looked
-- up first.
UPDATE idempotency_keys SET first_attempt_at = coalesce(first_attempt_at, created_at), sent_at = clock_timestamp(), lookup_misses = 0, first_miss_at = NULL, miss_skew = NULL
WHERE status = 'in_progress';

-- name: KeyOvertaken :many
-- Unfinished keys that came to stand for another operation since, as the provider's books say: then it was proven of theirs that nothing moved. They are looked
-- up, and never sent again: two stored failures say that sending is pointless.
UPDATE idempotency_keys k SET lease_token = NULL, locked_at = NULL, next_run_at = CASE WHEN k.parked_at IS NULL THEN clock_timestamp() END,
    server_errors = greatest(k.server_errors, 2), last_error = 'the database was put back to an earlier moment; since then its key came to stand for ' || r.operation_id
FROM recovered_keys r
WHERE k.status = 'in_progress' AND r.account_id = k.account_id
    AND r.key_hash = sha256(convert_to(k.account_id || ' ' || k.key, 'UTF8')) AND r.operation_id <> k.operation_id
RETURNING k.operation_id;

-- name: ChargeAddRefunded :one
UPDATE charges SET amount_refunded = amount_refunded + @amount::bigint WHERE id = @id RETURNING *;

-- name: ChargesUncaptured :many
-- Authorisations that may have been captured since, the oldest first; none lives longer.
SELECT c.id, c.operation_id, c.provider_id::text AS provider_id, c.created_at FROM charges c
WHERE c.status = 'succeeded' AND NOT c.captured AND c.provider_id IS NOT NULL
    AND (@provider_account::smallint = 0 OR coalesce(c.provider_account, 1) = @provider_account::smallint) AND c.created_at > clock_timestamp() - @life::interval
    AND (c.created_at, c.id) > (@after_at::timestamptz, @after_id::text)
ORDER BY c.created_at, c.id LIMIT @most::integer;

-- name: ChargeCaptureFound :one
UPDATE charges SET captured = true, amount_captured = @amount_captured, capture_forgotten = true
WHERE id = @id AND status = 'succeeded' AND NOT captured AND capture_operation_id IS NULL
RETURNING *;

-- name: ChargeReserveForgotten :execrows
-- A capture that was forgotten comes again.
UPDATE charges SET capture_operation_id = @operation_id::text
WHERE id = @id AND (account_id = @account_id) IS TRUE AND capture_operation_id IS NULL AND captured AND capture_forgotten;

-- name: ChargeByProvider :one
SELECT * FROM charges WHERE provider = 'stripe' AND provider_id = @provider_id FOR UPDATE;

-- name: ReceiptsHold :execrows
-- A receipt that waits may have been mailed since the moment to which the database was put back: it is not sent again.
UPDATE receipts SET state = 'unknown', attempts = greatest(attempts, 1), last_attempt_at = coalesce(last_attempt_at, clock_timestamp()), next_run_at = NULL,
    finished_at = clock_timestamp(), last_code = NULL, last_error = 'the database was put back to an earlier moment: it may have been sent since'
WHERE state IN ('pending', 'sending') AND created_at < (SELECT max(r.began_at) FROM recoveries r WHERE r.finished_at IS NULL);
