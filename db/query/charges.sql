-- Charges. The two commits of a charge are set-based: one statement writes whatever queued up, each row fenced for itself.

-- name: ChargeClaim :many
-- Commit 1: claims keys and inserts the pending charges of those that won. The API key is checked in the same statement, so a
-- revoked one never starts anything however long its identity was remembered. Nothing is claimed in a history of the database that nobody has vouched for,
-- nor a key that it had forgotten and that was found again. Rows are ordered by key, so that two servers
-- that insert the same keys never wait for each other in a circle. A process
-- whose account at the provider is no longer the current one claims nothing.
-- What is frozen gets the moment of the claim in whole seconds: it goes along to the provider, and each attempt has to send the same.
WITH x AS (
    SELECT *, clock_timestamp() AS at FROM ROWS FROM (
        unnest(@api_key_ids::text[]), unnest(@account_ids::text[]), unnest(@keys::text[]), unnest(@operation_ids::text[]),
        unnest(@kinds::text[]), unnest(@hash_versions::smallint[]), unnest(@request_hashes::bytea[]), unnest(@request_ids::text[]),
        unnest(@params::bytea[]), unnest(@recovery_points::text[]), unnest(@lease_tokens::text[]), unnest(@charge_ids::text[]),
        unnest(@amounts::bigint[]), unnest(@currencies::text[]), unnest(@captures::boolean[]), unnest(@customers::text[]),
        unnest(@descriptions::text[]), unnest(@metadata::text[]), unnest(@receipt_emails::text[]),
        unnest(@suffixes::text[]), unnest(@livemodes::boolean[]), unnest(@own_receipts::boolean[])
    ) AS x (api_key_id, account_id, key, operation_id, kind, hash_version, request_hash, request_id, params, recovery_point,
        lease_token, charge_id, amount, currency, capture, customer, description, metadata, receipt_email, suffix, livemode, own_receipt)
), won AS (
    INSERT INTO idempotency_keys AS k (account_id, key, operation_id, kind, hash_version, request_hash, request_id, params,
        resource_id, recovery_point, lease_token, locked_at, first_attempt_at, last_attempt_at, created_at)
    SELECT x.account_id, x.key, x.operation_id, x.kind, x.hash_version, x.request_hash, x.request_id,
        x.params || convert_to(',"claimed_at":' || floor(extract(epoch FROM x.at))::bigint || '}', 'UTF8'),
        x.charge_id, x.recovery_point, x.lease_token, x.at, x.at, x.at, x.at
    FROM x JOIN api_keys a ON a.id = x.api_key_id AND a.account_id = x.account_id AND a.revoked_at IS NULL
    WHERE EXISTS (SELECT FROM installation i WHERE i.forked_at IS NULL
            AND (i.timeline = '' OR i.timeline = substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8)))
        AND NOT EXISTS (SELECT FROM recovered_keys r WHERE r.account_id = x.account_id
            AND r.key_hash = sha256(convert_to(x.account_id || ' ' || x.key, 'UTF8')))
        AND (SELECT coalesce(i.provider_account, 0) FROM installation i) = @provider_account::smallint
    ORDER BY x.account_id, x.key
    ON CONFLICT (account_id, key) DO NOTHING
    RETURNING k.operation_id, k.created_at
)
INSERT INTO charges AS c (id, account_id, operation_id, amount, currency, capture, customer, description, metadata, receipt_email,
    statement_descriptor_suffix, livemode, own_receipt, provider_account, created_at)
SELECT x.charge_id, x.account_id, x.operation_id, x.amount, x.currency, x.capture, NULLIF(x.customer, ''), NULLIF(x.description, ''),
    x.metadata::jsonb, NULLIF(x.receipt_email, ''), NULLIF(x.suffix, ''), x.livemode, x.own_receipt,
    NULLIF(@provider_account::smallint, 0), won.created_at
FROM x JOIN won ON won.operation_id = x.operation_id
RETURNING c.operation_id, c.created_at;

-- name: ChargeSettle :many
-- Commit 2: the stored answer, the settled charge and its event, of those rows that still hold their lease and whose charge
-- is still pending. Both guards stand in one place, so neither half is written without the other. finished_at says what
-- status = 'in_progress' would: said so, a planner cannot come to read the whole partial index of unfinished keys for it. Nor, by coalesce, all
-- of charges_provider_id for those without one, as it would for as long as it believes the table to be empty; nor, by the three that are never
-- empty and make it expect one row rather than ten, the keys from end to end.
WITH x AS (
    SELECT * FROM ROWS FROM (
        unnest(@account_ids::text[]), unnest(@keys::text[]), unnest(@operation_ids::text[]), unnest(@lease_tokens::text[]),
        unnest(@recovery_points::text[]), unnest(@key_statuses::text[]), unnest(@response_codes::smallint[]),
        unnest(@response_headers::bytea[]), unnest(@response_bodies::bytea[]), unnest(@charge_ids::text[]),
        unnest(@statuses::text[]), unnest(@amounts_captured::bigint[]), unnest(@captured::boolean[]), unnest(@disputed::boolean[]),
        unnest(@failure_codes::text[]), unnest(@failure_messages::text[]), unnest(@outcomes::text[]), unnest(@provider_ids::text[]),
        unnest(@event_ids::text[]), unnest(@event_types::text[]), unnest(@event_payloads::bytea[]),
        unnest(@log_events::text[]), unnest(@log_actors::text[]), unnest(@log_details::text[]),
        unnest(@intent_ids::text[]), unnest(@next_actions::text[])
    ) AS x (account_id, key, operation_id, lease_token, recovery_point, key_status, response_code, response_headers, response_body,
        charge_id, status, amount_captured, captured, disputed, failure_code, failure_message, outcome, provider_id,
        event_id, event_type, event_payload, log_event, log_actor, log_detail, intent_id, next_action)
    WHERE x.operation_id > '' AND x.lease_token > '' AND x.charge_id > ''
), won AS (
    UPDATE idempotency_keys k SET
        status = x.key_status, recovery_point = 'finished', lease_token = NULL, locked_at = NULL, next_run_at = NULL,
        response_code = x.response_code, response_headers = x.response_headers, response_body = x.response_body,
        finished_at = clock_timestamp(), expires_at = clock_timestamp() + @key_ttl::interval
    FROM x JOIN charges c ON c.id = x.charge_id AND c.operation_id = x.operation_id AND c.account_id = x.account_id
        AND c.status = 'pending' AND coalesce(c.provider_id, '') = ''
    WHERE k.account_id = x.account_id AND k.key = x.key AND k.operation_id = x.operation_id
        AND k.lease_token = x.lease_token AND k.recovery_point = x.recovery_point AND k.finished_at IS NULL
    RETURNING k.operation_id, k.attempts, k.last_attempt_at
), settled AS (
    UPDATE charges c SET
        status = x.status, amount_captured = x.amount_captured, captured = x.captured, disputed = x.disputed,
        failure_code = NULLIF(x.failure_code, ''), failure_message = NULLIF(x.failure_message, ''),
        outcome = NULLIF(x.outcome, '')::jsonb, provider_id = NULLIF(x.provider_id, ''), settled_at = clock_timestamp(),
        intent_id = NULLIF(x.intent_id, ''), events = 1, next_action = NULLIF(x.next_action, '')::jsonb,
        awaits_at = CASE WHEN x.status = 'pending' AND x.intent_id <> '' THEN clock_timestamp() + interval '1 minute' END
    FROM x JOIN won ON won.operation_id = x.operation_id
    WHERE c.id = x.charge_id
), told AS (
    INSERT INTO outbox (event_id, account_id, type, operation_id, object_id, payload)
    SELECT x.event_id, x.account_id, x.event_type, x.operation_id, x.charge_id, x.event_payload
    FROM x JOIN won ON won.operation_id = x.operation_id
    ON CONFLICT (event_id) DO NOTHING
), logged AS (
    INSERT INTO operation_log (operation_id, event, attempt, actor, began_at, detail, reference)
    SELECT won.operation_id, x.log_event, won.attempts, x.log_actor, won.last_attempt_at, x.log_detail, x.provider_id
    FROM x JOIN won ON won.operation_id = x.operation_id
    WHERE x.log_event <> ''
)
SELECT won.operation_id FROM won;

-- name: ChargeGet :one
-- IS TRUE, here and in other statements by id: the id alone finds the row, and no index of what the account has is walked through for it.
SELECT * FROM charges WHERE id = @id AND (account_id = @account_id) IS TRUE;

-- name: ChargeOperation :one
-- For operators: of any account.
SELECT c.operation_id FROM charges c WHERE c.id = @id;

-- name: ChargeList :many
-- A page, newest first. Failed charges and others are a walk each, along an index that has nothing else in its way, from one
-- end of a span to the other: nothing is read that is not shown, however rare or common a sort is, and whatever the statistics
-- say. Only pending charges are passed over when they are not wanted; they are few. The ends of the span are single places: with
-- several bounds, a walk could begin at the wrong one.
SELECT l.* FROM unnest(@sorts::boolean[]) AS s (failed) CROSS JOIN LATERAL (
    SELECT c.* FROM charges c
    WHERE c.account_id = @account_id AND (c.status = 'failed') = s.failed
        AND (@pending::boolean OR c.status <> 'pending')
        AND (c.created_at, c.id) > (@above_at::timestamptz, @above_id::text)
        AND (c.created_at, c.id) < (@below_at::timestamptz, @below_id::text)
    ORDER BY c.created_at DESC, c.id DESC
    LIMIT @most::integer
) l
ORDER BY l.created_at DESC, l.id DESC
LIMIT @most::integer;

-- name: ChargeListBefore :many
-- The same from the other end, oldest first; the caller turns it round.
SELECT l.* FROM unnest(@sorts::boolean[]) AS s (failed) CROSS JOIN LATERAL (
    SELECT c.* FROM charges c
    WHERE c.account_id = @account_id AND (c.status = 'failed') = s.failed
        AND (@pending::boolean OR c.status <> 'pending')
        AND (c.created_at, c.id) > (@above_at::timestamptz, @above_id::text)
        AND (c.created_at, c.id) < (@below_at::timestamptz, @below_id::text)
    ORDER BY c.created_at, c.id
    LIMIT @most::integer
) l
ORDER BY l.created_at, l.id
LIMIT @most::integer;

-- name: ChargeListPending :many
-- Pending ones alone, of one customer or of any. No index sees through coalesce, so what a customer ever had is not read.
SELECT c.* FROM charges c
WHERE c.account_id = @account_id AND c.status = 'pending'
    AND (@customer::text = '' OR coalesce(c.customer = @customer::text, false))
    AND (c.created_at, c.id) > (@above_at::timestamptz, @above_id::text)
    AND (c.created_at, c.id) < (@below_at::timestamptz, @below_id::text)
ORDER BY c.created_at DESC, c.id DESC
LIMIT @most::integer;

-- name: ChargeListPendingBefore :many
-- Oldest first.
SELECT c.* FROM charges c
WHERE c.account_id = @account_id AND c.status = 'pending'
    AND (@customer::text = '' OR coalesce(c.customer = @customer::text, false))
    AND (c.created_at, c.id) > (@above_at::timestamptz, @above_id::text)
    AND (c.created_at, c.id) < (@below_at::timestamptz, @below_id::text)
ORDER BY c.created_at, c.id
LIMIT @most::integer;

-- name: ChargeListOfCustomer :many
-- As ChargeList, of a customer.
SELECT l.* FROM unnest(@sorts::boolean[]) AS s (failed) CROSS JOIN LATERAL (
    SELECT c.* FROM charges c
    WHERE c.account_id = @account_id AND c.customer = @customer::text AND (c.status <> 'failed') = NOT s.failed
        AND (@pending::boolean OR c.status <> 'pending')
        AND (c.created_at, c.id) > (@above_at::timestamptz, @above_id::text)
        AND (c.created_at, c.id) < (@below_at::timestamptz, @below_id::text)
    ORDER BY c.created_at DESC, c.id DESC
    LIMIT @most::integer
) l
ORDER BY l.created_at DESC, l.id DESC
LIMIT @most::integer;

-- name: ChargeListOfCustomerBefore :many
-- Oldest first.
SELECT l.* FROM unnest(@sorts::boolean[]) AS s (failed) CROSS JOIN LATERAL (
    SELECT c.* FROM charges c
    WHERE c.account_id = @account_id AND c.customer = @customer::text AND (c.status <> 'failed') = NOT s.failed
        AND (@pending::boolean OR c.status <> 'pending')
        AND (c.created_at, c.id) > (@above_at::timestamptz, @above_id::text)
        AND (c.created_at, c.id) < (@below_at::timestamptz, @below_id::text)
    ORDER BY c.created_at, c.id
    LIMIT @most::integer
) l
ORDER BY l.created_at, l.id
LIMIT @most::integer;

-- name: ChargesOfOperations :many
-- For the audit: of any account. running: somebody works on its operation at this moment.
SELECT sqlc.embed(c), EXISTS (
        SELECT FROM idempotency_keys k
        WHERE k.operation_id = c.operation_id AND k.lease_token IS NOT NULL AND k.locked_at > clock_timestamp() - @stale_after::interval
    ) AS running
FROM charges c WHERE c.operation_id = ANY (@operation_ids::text[]);

-- name: ChargesCreated :many
-- For the audit: a page of the charges of any account that a provider has, in the order of their making.
SELECT c.id, c.operation_id, c.status, c.provider_id::text AS provider_id, c.created_at, coalesce(c.provider_account, 0)::smallint AS provider_account FROM charges c
WHERE c.provider_id IS NOT NULL AND c.created_at < @before::timestamptz AND (c.created_at, c.id) > (@after_at::timestamptz, @after_id::text)
ORDER BY c.created_at, c.id
LIMIT @most::integer;

-- name: ChargeTakeAwaiting :many
-- Takes charges that wait for their payer and are due to be asked for; moving the time on, ever further, is the lease.
UPDATE charges c SET awaits_at = clock_timestamp() + least(greatest(clock_timestamp() - c.created_at, interval '1 minute'), interval '6 hours')
WHERE c.id IN (
    SELECT d.id FROM charges d WHERE d.awaits_at <= (SELECT clock_timestamp()) AND d.id > '' AND d.operation_id > '' ORDER BY d.awaits_at LIMIT @most::integer FOR UPDATE SKIP LOCKED
)
RETURNING c.id, c.operation_id, c.intent_id::text AS intent_id, coalesce(c.provider_account, 0)::smallint AS provider_account;
