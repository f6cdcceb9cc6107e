-- Charges, and the two commits of one (ChargeClaim, ChargeSettle). Those two are set-based: one
-- statement writes whatever queued up, each row fenced for itself. Captures and refunds change a
-- charge in transactions of several plain statements; in each the key comes first and the charge
-- second, so that two of them never wait for each other in a circle.

-- name: ChargeAddRefunded :one
UPDATE charges SET amount_refunded = amount_refunded + @amount::bigint WHERE id = @id RETURNING *;

-- name: ChargeByProvider :one
SELECT * FROM charges WHERE provider = 'stripe' AND provider_id = @provider_id FOR UPDATE;

-- name: ChargeByProviderID :one
SELECT id, status, captured, release, capture_operation_id FROM charges
WHERE provider = 'stripe' AND provider_id = @provider_id;

-- name: ChargeByReference :one
-- The newest live charge with a reference: it is the last of its chain of duplicates.
SELECT r.id, r.status FROM charges r
WHERE r.account_id = @account_id AND r.reference = @reference AND r.livemode = @livemode
    AND r.status <> 'failed' AND coalesce(r.release, 'pending') = 'pending'
    AND (NOT r.captured OR r.amount_refunded < r.amount_captured)
ORDER BY r.created_at DESC, r.id DESC LIMIT 1;

-- name: ChargeCapture :one
UPDATE charges SET captured = true, amount_captured = @amount_captured, capture_forgotten = false,
    details = coalesce(sqlc.narg(details)::text, details)
WHERE (account_id = @account_id) IS TRUE -- planner
    AND id = @id AND capture_operation_id = @operation_id::text
    AND (NOT captured OR capture_forgotten)
RETURNING *;

-- name: ChargeCaptureFound :one
UPDATE charges SET captured = true, amount_captured = @amount_captured, capture_forgotten = true,
    details = coalesce(sqlc.narg(details)::text, details)
WHERE id = @id AND status = 'succeeded' AND NOT captured AND capture_operation_id IS NULL
    AND coalesce(release, '') = '' -- planner
RETURNING *;

-- name: ChargeChange :exec
-- What the provider told of a settled charge; the row is locked.
UPDATE charges SET status = @status, captured = @captured, amount_captured = @amount_captured,
    amount_refunded = @amount_refunded, disputed = @disputed,
    provider_id = sqlc.narg(provider_id), failure_code = sqlc.narg(failure_code),
    failure_message = sqlc.narg(failure_message), outcome = sqlc.narg(outcome),
    release = sqlc.narg(release), details = sqlc.narg(details),
    capture_operation_id = sqlc.narg(capture_operation_id), capture_forgotten = @capture_forgotten,
    next_action = CASE WHEN @status = 'pending' THEN next_action END,
    awaits_at = CASE WHEN @status = 'pending' THEN awaits_at END
WHERE id = @id;

-- name: ChargeClaim :many
-- Commit 1: claims keys and inserts the pending charges of those that won.
WITH x AS (
    SELECT *, clock_timestamp() AS at FROM ROWS FROM (
        unnest(@api_key_ids::text[]), unnest(@account_ids::text[]), unnest(@keys::text[]),
        unnest(@operation_ids::text[]), unnest(@kinds::text[]), unnest(@hash_versions::smallint[]),
        unnest(@request_hashes::bytea[]), unnest(@request_ids::text[]), unnest(@params::bytea[]),
        unnest(@recovery_points::text[]), unnest(@lease_tokens::text[]),
        unnest(@charge_ids::text[]), unnest(@amounts::bigint[]), unnest(@currencies::text[]),
        unnest(@captures::boolean[]), unnest(@customers::text[]), unnest(@descriptions::text[]),
        unnest(@metadata::text[]), unnest(@receipt_emails::text[]), unnest(@suffixes::text[]),
        unnest(@livemodes::boolean[]), unnest(@own_receipts::boolean[]),
        unnest(@merchant_references::text[]), unnest(@duplicates_of::text[]),
        unnest(@shippings::text[]), unnest(@descriptors::text[])
    ) AS x (api_key_id, account_id, key, operation_id, kind, hash_version, request_hash, request_id,
        params, recovery_point, lease_token, charge_id, amount, currency, capture, customer,
        description, metadata, receipt_email, suffix, livemode, own_receipt, reference,
        duplicate_of, shipping, descriptor)
), won AS (
    INSERT INTO idempotency_keys AS k (account_id, key, operation_id, kind, hash_version,
        request_hash, request_id, params, resource_id, recovery_point, lease_token, locked_at,
        first_attempt_at, last_attempt_at, created_at)
    SELECT x.account_id, x.key, x.operation_id, x.kind, x.hash_version, x.request_hash,
        x.request_id,
        -- The moment of the claim in whole seconds is frozen with the rest: it is sent to the
        -- provider, and each attempt has to send the same.
        x.params || convert_to(',"claimed_at":' || floor(extract(epoch FROM x.at))::bigint || '}',
            'UTF8'),
        x.charge_id, x.recovery_point, x.lease_token, x.at, x.at, x.at, x.at
    -- Checked here, a revoked API key starts nothing, however long its identity was remembered, and
    -- one that only reads starts nothing whoever asks.
    FROM x JOIN api_keys a ON a.id = x.api_key_id AND a.account_id = x.account_id
        AND a.revoked_at IS NULL AND NOT a.read_only
    -- Nothing is claimed in a history of the database that nobody has vouched for,
    WHERE EXISTS (SELECT FROM installation i WHERE i.forked_at IS NULL
            AND (i.timeline = ''
                OR i.timeline = substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8)))
        -- nor a key that the database had forgotten and that was found again,
        AND NOT EXISTS (SELECT FROM recovered_keys r WHERE r.account_id = x.account_id
            AND r.key_hash = sha256(convert_to(x.account_id || ' ' || x.key, 'UTF8'))
            OFFSET 0) -- planner
        -- nor by a process whose account at the provider is no longer the current one.
        AND (SELECT coalesce(i.provider_account, 0) FROM installation i)
            = @provider_account::smallint
        -- A reference that a live charge has is refused here. Whoever comes at the same moment is
        -- refused by the index charges_one_live_reference, which costs the batch a second run, row
        -- by row. A duplicate that is meant has been checked in its transaction.
        AND (x.reference = '' OR x.duplicate_of <> '' OR NOT EXISTS (SELECT FROM charges r
            WHERE r.account_id = x.account_id AND r.reference = x.reference
                AND r.livemode = x.livemode AND r.status <> 'failed'
                AND coalesce(r.release, 'pending') = 'pending'
                AND (NOT r.captured OR r.amount_refunded < r.amount_captured)
            OFFSET 0)) -- planner
    -- In order, so that two servers that insert the same keys never deadlock.
    ORDER BY x.account_id, x.key
    ON CONFLICT (account_id, key) DO NOTHING
    RETURNING k.operation_id, k.created_at
)
INSERT INTO charges AS c (id, account_id, operation_id, amount, currency, capture, customer,
    description, metadata, receipt_email, statement_descriptor_suffix, livemode, own_receipt,
    provider_account, reference, duplicate_of, shipping, statement_descriptor, created_at)
SELECT x.charge_id, x.account_id, x.operation_id, x.amount, x.currency, x.capture,
    NULLIF(x.customer, ''), NULLIF(x.description, ''),
    x.metadata::jsonb, NULLIF(x.receipt_email, ''), NULLIF(x.suffix, ''), x.livemode, x.own_receipt,
    NULLIF(@provider_account::smallint, 0), NULLIF(x.reference, ''), NULLIF(x.duplicate_of, ''),
    NULLIF(x.shipping, '')::jsonb, NULLIF(x.descriptor, ''),
    won.created_at
FROM x JOIN won ON won.operation_id = x.operation_id
RETURNING c.operation_id, c.created_at;

-- name: ChargeCountEvent :one
-- The number of the next event of a charge; its row is written in this transaction anyway.
UPDATE charges SET events = events + 1 WHERE id = @id RETURNING events;

-- name: ChargeGet :one
SELECT * FROM charges
WHERE (account_id = @account_id) IS TRUE -- planner
    AND id = @id;

-- name: ChargeGetAtProvider :one
SELECT * FROM charges
WHERE provider = 'stripe' AND provider_id = @provider_id::text
    AND (account_id = @account_id) IS TRUE; -- planner

-- name: ChargeList :many
-- A page, newest first. Failed charges and the others are read by one walk each, along the index
-- charges_listed, from one end of the span to the other: no row is read that is not shown, whatever
-- the statistics say. Only pending charges are skipped where they are not wanted; they are few.
-- Each end of the span is one place: with several bounds, a walk could begin at the wrong one.
SELECT l.* FROM unnest(@sorts::boolean[]) AS s (failed) CROSS JOIN LATERAL (
    SELECT c.* FROM charges c
    WHERE c.account_id = @account_id AND (c.status = 'failed') = s.failed -- planner
        AND (@pending::boolean OR c.status <> 'pending')
        AND (NOT c.of_intent OR c.provider_id IS NOT NULL)
        AND (c.created_at, c.id) > (@above_at::timestamptz, @above_id::text)
        AND (c.created_at, c.id) < (@below_at::timestamptz, @below_id::text)
    ORDER BY c.created_at DESC, c.id DESC
    LIMIT @max_rows::integer
) l
ORDER BY l.created_at DESC, l.id DESC
LIMIT @max_rows::integer;

-- name: ChargeListBefore :many
-- The same page from the other end, oldest first; the caller reverses it.
SELECT l.* FROM unnest(@sorts::boolean[]) AS s (failed) CROSS JOIN LATERAL (
    SELECT c.* FROM charges c
    WHERE c.account_id = @account_id AND (c.status = 'failed') = s.failed -- planner
        AND (@pending::boolean OR c.status <> 'pending')
        AND (NOT c.of_intent OR c.provider_id IS NOT NULL)
        AND (c.created_at, c.id) > (@above_at::timestamptz, @above_id::text)
        AND (c.created_at, c.id) < (@below_at::timestamptz, @below_id::text)
    ORDER BY c.created_at, c.id
    LIMIT @max_rows::integer
) l
ORDER BY l.created_at, l.id
LIMIT @max_rows::integer;

-- name: ChargeListOfCustomer :many
-- As ChargeList, of a customer.
SELECT l.* FROM unnest(@sorts::boolean[]) AS s (failed) CROSS JOIN LATERAL (
    SELECT c.* FROM charges c
    WHERE c.account_id = @account_id AND c.customer = @customer::text
        AND (c.status <> 'failed') = NOT s.failed -- planner
        AND (@pending::boolean OR c.status <> 'pending')
        AND (NOT c.of_intent OR c.provider_id IS NOT NULL)
        AND (c.created_at, c.id) > (@above_at::timestamptz, @above_id::text)
        AND (c.created_at, c.id) < (@below_at::timestamptz, @below_id::text)
    ORDER BY c.created_at DESC, c.id DESC
    LIMIT @max_rows::integer
) l
ORDER BY l.created_at DESC, l.id DESC
LIMIT @max_rows::integer;

-- name: ChargeListOfCustomerBefore :many
-- Oldest first.
SELECT l.* FROM unnest(@sorts::boolean[]) AS s (failed) CROSS JOIN LATERAL (
    SELECT c.* FROM charges c
    WHERE c.account_id = @account_id AND c.customer = @customer::text
        AND (c.status <> 'failed') = NOT s.failed -- planner
        AND (@pending::boolean OR c.status <> 'pending')
        AND (NOT c.of_intent OR c.provider_id IS NOT NULL)
        AND (c.created_at, c.id) > (@above_at::timestamptz, @above_id::text)
        AND (c.created_at, c.id) < (@below_at::timestamptz, @below_id::text)
    ORDER BY c.created_at, c.id
    LIMIT @max_rows::integer
) l
ORDER BY l.created_at, l.id
LIMIT @max_rows::integer;

-- name: ChargeListOfIntent :many
-- The charges of one payment intent of the provider, of any customer and status or of one. An
-- intent has few charges, so those that are not wanted may be walked over.
SELECT c.* FROM charges c
WHERE c.intent_id = @intent_id::text AND coalesce(c.account_id = @account_id, false) -- planner
    AND (@customer::text = '' OR coalesce(c.customer = @customer::text, false)) -- planner
    AND (@status::text = '' OR coalesce(c.status = @status::text, false)) -- planner
    AND (NOT c.of_intent OR c.provider_id IS NOT NULL)
    AND (c.created_at, c.id) > (@above_at::timestamptz, @above_id::text)
    AND (c.created_at, c.id) < (@below_at::timestamptz, @below_id::text)
ORDER BY c.created_at DESC, c.id DESC
LIMIT @max_rows::integer;

-- name: ChargeListOfIntentBefore :many
-- Oldest first.
SELECT c.* FROM charges c
WHERE c.intent_id = @intent_id::text AND coalesce(c.account_id = @account_id, false) -- planner
    AND (@customer::text = '' OR coalesce(c.customer = @customer::text, false)) -- planner
    AND (@status::text = '' OR coalesce(c.status = @status::text, false)) -- planner
    AND (NOT c.of_intent OR c.provider_id IS NOT NULL)
    AND (c.created_at, c.id) > (@above_at::timestamptz, @above_id::text)
    AND (c.created_at, c.id) < (@below_at::timestamptz, @below_id::text)
ORDER BY c.created_at, c.id
LIMIT @max_rows::integer;

-- name: ChargeListOfReference :many
-- As ChargeList, of a reference. What else is asked for is compared row by row: an order has few
-- charges that did not fail.
SELECT l.* FROM unnest(@sorts::boolean[]) AS s (failed) CROSS JOIN LATERAL (
    SELECT c.* FROM charges c
    WHERE c.account_id = @account_id AND c.reference = @reference::text
        AND (c.status <> 'failed') = NOT s.failed -- planner
        AND (@status::text = '' OR coalesce(c.status = @status::text, false)) -- planner
        AND (@customer::text = '' OR coalesce(c.customer = @customer::text, false)) -- planner
        AND (@intent_id::text = '' OR coalesce(c.intent_id = @intent_id::text, false)) -- planner
        AND (NOT c.of_intent OR c.provider_id IS NOT NULL)
        AND (c.created_at, c.id) > (@above_at::timestamptz, @above_id::text)
        AND (c.created_at, c.id) < (@below_at::timestamptz, @below_id::text)
    ORDER BY c.created_at DESC, c.id DESC
    LIMIT @max_rows::integer
) l
ORDER BY l.created_at DESC, l.id DESC
LIMIT @max_rows::integer;

-- name: ChargeListOfReferenceBefore :many
-- Oldest first.
SELECT l.* FROM unnest(@sorts::boolean[]) AS s (failed) CROSS JOIN LATERAL (
    SELECT c.* FROM charges c
    WHERE c.account_id = @account_id AND c.reference = @reference::text
        AND (c.status <> 'failed') = NOT s.failed -- planner
        AND (@status::text = '' OR coalesce(c.status = @status::text, false)) -- planner
        AND (@customer::text = '' OR coalesce(c.customer = @customer::text, false)) -- planner
        AND (@intent_id::text = '' OR coalesce(c.intent_id = @intent_id::text, false)) -- planner
        AND (NOT c.of_intent OR c.provider_id IS NOT NULL)
        AND (c.created_at, c.id) > (@above_at::timestamptz, @above_id::text)
        AND (c.created_at, c.id) < (@below_at::timestamptz, @below_id::text)
    ORDER BY c.created_at, c.id
    LIMIT @max_rows::integer
) l
ORDER BY l.created_at, l.id
LIMIT @max_rows::integer;

-- name: ChargeListPending :many
-- Pending charges alone, of one customer or of any.
SELECT c.* FROM charges c
WHERE c.account_id = @account_id AND c.status = 'pending'
    AND (@customer::text = '' OR coalesce(c.customer = @customer::text, false)) -- planner
    AND (NOT c.of_intent OR c.provider_id IS NOT NULL)
    AND (c.created_at, c.id) > (@above_at::timestamptz, @above_id::text)
    AND (c.created_at, c.id) < (@below_at::timestamptz, @below_id::text)
ORDER BY c.created_at DESC, c.id DESC
LIMIT @max_rows::integer;

-- name: ChargeListPendingBefore :many
-- Oldest first.
SELECT c.* FROM charges c
WHERE c.account_id = @account_id AND c.status = 'pending'
    AND (@customer::text = '' OR coalesce(c.customer = @customer::text, false)) -- planner
    AND (NOT c.of_intent OR c.provider_id IS NOT NULL)
    AND (c.created_at, c.id) > (@above_at::timestamptz, @above_id::text)
    AND (c.created_at, c.id) < (@below_at::timestamptz, @below_id::text)
ORDER BY c.created_at, c.id
LIMIT @max_rows::integer;

-- name: ChargeLock :one
SELECT * FROM charges
WHERE (account_id = @account_id) IS TRUE -- planner
    AND id = @id FOR UPDATE;

-- name: ChargeLockAtProvider :one
SELECT * FROM charges
WHERE provider = 'stripe' AND provider_id = @provider_id::text
    AND (account_id = @account_id) IS TRUE -- planner
FOR UPDATE;

-- name: ChargeOfIntentChange :exec
-- What a client has changed of an intent's charge, at the provider as well; the row is locked.
UPDATE charges SET amount = @amount, currency = @currency, customer = sqlc.narg(customer),
    description = sqlc.narg(description), metadata = @metadata,
    receipt_email = sqlc.narg(receipt_email), statement_descriptor_suffix = sqlc.narg(suffix)
WHERE id = @id;

-- name: ChargeOfIntentMark :exec
-- In the transaction that inserts the charge: its events are still to come.
UPDATE charges SET of_intent = true, events = 0 WHERE id = @id;

-- name: ChargeOfIntentPaid :one
-- The charge of an intent that took or holds money; an intent has one at most.
SELECT c.id FROM charges c
WHERE c.intent_id = @intent_id::text AND coalesce(c.account_id = @account_id, false) -- planner
    AND c.status = 'succeeded'
LIMIT 1;

-- name: ChargeOfIntentSettle :exec
-- What an operation on an intent has come to; the row is locked, and nobody else's to change.
UPDATE charges SET status = @status, captured = @captured, amount_captured = @amount_captured,
    provider_id = sqlc.narg(provider_id), failure_code = sqlc.narg(failure_code),
    failure_message = sqlc.narg(failure_message), outcome = sqlc.narg(outcome),
    next_action = sqlc.narg(next_action), release = sqlc.narg(release),
    details = sqlc.narg(details),
    capture_operation_id = sqlc.narg(capture_operation_id), intent_id = sqlc.narg(intent_id),
    settled_at = coalesce(settled_at, clock_timestamp()),
    awaits_at = CASE WHEN @status = 'pending' THEN clock_timestamp() + interval '1 minute' END
WHERE id = @id;

-- name: ChargeOfOperationLock :one
SELECT * FROM charges WHERE operation_id = @operation_id FOR UPDATE;

-- name: ChargeOfProviderEvent :one
-- The charge that an event of the provider speaks of, by the provider's id or by the operation that
-- made it or its refund.
SELECT c.id, coalesce(c.provider_account, 0)::smallint AS account, c.operation_id, c.status,
    c.settled_at, c.captured, c.release, c.capture_operation_id, c.intent_id FROM (
    SELECT p.id FROM charges p WHERE p.provider = 'stripe' AND p.provider_id = @provider_id::text
        AND @provider_id::text <> ''
    UNION ALL
    SELECT o.id FROM charges o WHERE o.operation_id = @operation_id::text
        AND @operation_id::text <> ''
    UNION ALL
    SELECT r.charge_id FROM refunds r
    WHERE r.operation_id = @operation_id::text AND @operation_id::text <> ''
) f CROSS JOIN LATERAL (SELECT d.* FROM charges d WHERE d.id = f.id LIMIT 1) c -- planner
LIMIT 1;

-- name: ChargeOperation :one
-- For operators: of any account.
SELECT c.operation_id FROM charges c WHERE c.id = @id;

-- name: ChargeReferenceOf :one
-- For operators: of any account.
SELECT coalesce(c.reference, '')::text AS reference FROM charges c
WHERE c.operation_id = @operation_id;

-- name: ChargeReleaseCapture :execrows
-- The provider definitely refused: the charge may be captured, or let go of, by another operation.
UPDATE charges SET capture_operation_id = NULL, release = NULLIF(release, 'pending')
WHERE (account_id = @account_id) IS TRUE -- planner
    AND id = @id AND capture_operation_id = @operation_id::text AND NOT captured;

-- name: ChargeReserveCapture :execrows
UPDATE charges SET capture_operation_id = @operation_id::text
WHERE (account_id = @account_id) IS TRUE -- planner
    AND id = @id AND capture_operation_id IS NULL AND NOT captured AND status = 'succeeded'
    AND coalesce(release, '') = ''; -- planner

-- name: ChargeReserveConfirm :execrows
-- An operation is about to confirm the charge's intent, or to change it.
UPDATE charges SET capture_operation_id = @operation_id::text
WHERE id = @id AND capture_operation_id IS NULL AND status = 'pending' AND provider_id IS NULL
    AND settled_at IS NOT NULL AND coalesce(release, '') = ''; -- planner

-- name: ChargeReserveForgotten :execrows
-- A capture that was forgotten comes again, or what let go of the charge.
UPDATE charges SET capture_operation_id = @operation_id::text
WHERE (account_id = @account_id) IS TRUE -- planner
    AND id = @id AND capture_operation_id IS NULL AND (captured OR release <> 'pending')
    AND capture_forgotten;

-- name: ChargeReserveRefund :execrows
-- The CHECK on the table holds whatever this statement or its caller may get wrong.
UPDATE charges SET amount_refund_pending = amount_refund_pending + @amount::bigint
WHERE (account_id = @account_id) IS TRUE -- planner
    AND id = @id;

-- name: ChargeReserveRelease :execrows
-- An operation is about to let go of what is authorised, or to end what waits for its payer.
UPDATE charges SET capture_operation_id = @operation_id::text, release = 'pending'
WHERE (account_id = @account_id) IS TRUE -- planner
    AND id = @id AND capture_operation_id IS NULL AND NOT captured
    AND coalesce(release, '') = '' -- planner
    AND (status = 'succeeded' OR status = 'pending' AND settled_at IS NOT NULL
        AND intent_id IS NOT NULL);

-- name: ChargeRestore :execrows
INSERT INTO charges (id, account_id, operation_id, status, amount, amount_captured, currency,
    capture, captured, customer, description, metadata, receipt_email, statement_descriptor_suffix,
    disputed, livemode, failure_code, failure_message, outcome, provider_id, created_at, settled_at,
    intent_id, events, next_action, awaits_at, capture_forgotten, provider_account, reference,
    duplicate_of, details, shipping, statement_descriptor, reference_yielded)
VALUES (@id, @account_id, @operation_id, @status, @amount, @amount_captured, @currency, @capture,
    @captured, sqlc.narg(customer), sqlc.narg(description), @metadata, sqlc.narg(receipt_email),
    sqlc.narg(suffix), @disputed, @livemode, sqlc.narg(failure_code), sqlc.narg(failure_message),
    sqlc.narg(outcome), sqlc.narg(provider_id), @created_at, clock_timestamp(),
    sqlc.narg(intent_id), 1, sqlc.narg(next_action),
    CASE WHEN @status = 'pending' AND sqlc.narg(intent_id)::text IS NOT NULL
        THEN clock_timestamp() END, @capture_forgotten, NULLIF(@provider_account::smallint, 0),
    sqlc.narg(reference)::text, sqlc.narg(duplicate_of)::text, sqlc.narg(details),
    sqlc.narg(shipping), sqlc.narg(descriptor),
    -- what took the reference while this charge was forgotten keeps it
    @status <> 'failed' AND EXISTS (SELECT FROM charges r
        WHERE r.account_id = @account_id AND r.reference = sqlc.narg(reference)::text
            AND r.livemode = @livemode AND NOT r.reference_yielded
            AND coalesce(r.duplicate_of, '') = coalesce(sqlc.narg(duplicate_of)::text, '')
            AND r.status <> 'failed' AND coalesce(r.release, 'pending') = 'pending'
            AND (NOT r.captured OR r.amount_refunded < r.amount_captured)))
ON CONFLICT (operation_id) DO NOTHING;

-- name: ChargeSetDisputed :exec
-- The charge is locked.
UPDATE charges SET disputed = @disputed WHERE id = @id;

-- name: ChargeSetRefunded :exec
-- A refund that had counted failed after all; the row is locked.
UPDATE charges SET amount_refunded = @amount_refunded WHERE id = @id;

-- name: ChargeSettle :many
-- Commit 2: stores the answer, the settled charge and its event with its position, for each row
-- whose lease is still held and whose charge is still pending.
WITH x AS (
    SELECT * FROM ROWS FROM (
        unnest(@account_ids::text[]), unnest(@keys::text[]), unnest(@operation_ids::text[]),
        unnest(@lease_tokens::text[]), unnest(@recovery_points::text[]),
        unnest(@key_statuses::text[]), unnest(@response_codes::smallint[]),
        unnest(@response_headers::bytea[]), unnest(@response_bodies::bytea[]),
        unnest(@charge_ids::text[]), unnest(@statuses::text[]), unnest(@amounts_captured::bigint[]),
        unnest(@captured::boolean[]), unnest(@disputed::boolean[]), unnest(@failure_codes::text[]),
        unnest(@failure_messages::text[]), unnest(@outcomes::text[]), unnest(@provider_ids::text[]),
        unnest(@event_ids::text[]), unnest(@event_types::text[]), unnest(@event_payloads::bytea[]),
        unnest(@log_events::text[]), unnest(@log_actors::text[]), unnest(@log_details::text[]),
        unnest(@intent_ids::text[]), unnest(@next_actions::text[]), unnest(@details::text[])
    ) AS x (account_id, key, operation_id, lease_token, recovery_point, key_status, response_code,
        response_headers, response_body, charge_id, status, amount_captured, captured, disputed,
        failure_code, failure_message, outcome, provider_id, event_id, event_type, event_payload,
        log_event, log_actor, log_detail, intent_id, next_action, details)
    WHERE x.operation_id > '' AND x.lease_token > '' AND x.charge_id > '' -- planner
), won AS (
    UPDATE idempotency_keys k SET
        status = x.key_status, recovery_point = 'finished', lease_token = NULL, locked_at = NULL,
        next_run_at = NULL,
        response_code = x.response_code, response_headers = x.response_headers,
        response_body = x.response_body,
        finished_at = clock_timestamp(), expires_at = clock_timestamp() + @key_ttl::interval
    -- Both guards stand here, so that neither the key nor the charge is written without the other.
    FROM x JOIN charges c ON c.id = x.charge_id AND c.operation_id = x.operation_id
        AND (c.account_id = x.account_id) IS TRUE -- planner
        AND coalesce(c.status = 'pending', false) AND c.provider_id IS NULL -- planner
    WHERE k.account_id = x.account_id AND k.key = x.key AND k.operation_id = x.operation_id
        AND k.lease_token = x.lease_token AND k.recovery_point = x.recovery_point
        AND k.finished_at IS NULL -- planner
    RETURNING k.operation_id, k.attempts, k.last_attempt_at
), settled AS (
    UPDATE charges c SET
        status = x.status, amount_captured = x.amount_captured, captured = x.captured,
        disputed = x.disputed,
        failure_code = NULLIF(x.failure_code, ''), failure_message = NULLIF(x.failure_message, ''),
        outcome = NULLIF(x.outcome, '')::jsonb, provider_id = NULLIF(x.provider_id, ''),
        settled_at = clock_timestamp(),
        intent_id = NULLIF(x.intent_id, ''), events = 1,
        next_action = NULLIF(x.next_action, '')::jsonb, details = NULLIF(x.details, ''),
        awaits_at = CASE WHEN x.status = 'pending' AND x.intent_id <> ''
            THEN clock_timestamp() + interval '1 minute' END
    FROM x JOIN won ON won.operation_id = x.operation_id
    WHERE c.id = x.charge_id
    RETURNING c.operation_id
), counter AS (
    -- Locked until the commit is durable, so positions become visible in their order. Taken last:
    -- whoever holds it waits for nothing but the disk.
    UPDATE outbox_counter o SET last_position = o.last_position + (SELECT count(*) FROM settled)
    WHERE EXISTS (SELECT FROM settled)
    RETURNING o.last_position
), told AS (
    INSERT INTO outbox (event_id, account_id, type, operation_id, object_id, payload, position)
    SELECT x.event_id, x.account_id, x.event_type, x.operation_id, x.charge_id, x.event_payload,
        counter.last_position + 1 - row_number() OVER ()
    FROM x JOIN settled ON settled.operation_id = x.operation_id CROSS JOIN counter
    ON CONFLICT (event_id) DO NOTHING
), logged AS (
    INSERT INTO operation_log (operation_id, event, attempt, actor, began_at, detail, reference)
    SELECT won.operation_id, x.log_event, won.attempts, x.log_actor, won.last_attempt_at,
        x.log_detail, x.provider_id
    FROM x JOIN won ON won.operation_id = x.operation_id
    WHERE x.log_event <> ''
)
SELECT won.operation_id FROM won;

-- name: ChargeSettleRefund :one
-- Moves a reserved amount to what was refunded (@refunded), or gives it back.
UPDATE charges SET amount_refund_pending = amount_refund_pending - @amount::bigint,
    amount_refunded = amount_refunded + @refunded::bigint
WHERE (account_id = @account_id) IS TRUE -- planner
    AND id = @id
RETURNING *;

-- name: ChargeTakeAwaiting :many
-- Takes charges that wait for their payer and are due to be asked for; moving the time on, ever
-- further, is the lease. Each is due when its wait is over, and from then on, if it cannot be
-- ended, soon and ever later again. A client's intent waits for as long as the client lets it.
UPDATE charges c SET awaits_at = clock_timestamp() + least(
    CASE WHEN c.of_intent THEN interval '30 days' ELSE interval '6 hours' END,
    greatest(w.since, interval '1 minute'), w.rest)
FROM (
    SELECT e.id, clock_timestamp() >= e.ends AS over,
        clock_timestamp() - CASE WHEN clock_timestamp() < e.ends THEN e.created_at ELSE e.ends END
            AS since,
        CASE WHEN clock_timestamp() < e.ends THEN e.ends - clock_timestamp() END AS rest
    FROM (
        SELECT d.id, d.created_at, d.settled_at + sqlc.arg(payer_window)::interval AS ends
        FROM charges d
        WHERE d.awaits_at <= (SELECT clock_timestamp()) AND d.id > '' AND d.operation_id > '' -- planner
        ORDER BY d.awaits_at LIMIT @max_rows::integer FOR UPDATE SKIP LOCKED
    ) e
) w
WHERE c.id = w.id
RETURNING c.id, c.operation_id, c.intent_id::text AS intent_id,
coalesce(c.provider_account, 0)::smallint AS provider_account,
(coalesce(w.over, false) AND NOT c.of_intent)::boolean AS over;

-- name: ChargeTakeHeld :many
-- Takes authorisations that may have lapsed and are due to be asked for: a week after they were
-- made, and then ever more rarely. Moving the time on is the lease.
WITH again AS (
    SELECT d.id FROM charges d
    WHERE d.hold_at <= (SELECT clock_timestamp()) -- planner
        AND d.status = 'succeeded' AND NOT d.captured AND d.release IS NULL
        AND d.id > '' AND d.operation_id > '' -- planner
    ORDER BY d.hold_at, d.created_at LIMIT @max_rows::integer FOR UPDATE SKIP LOCKED
), first AS (
    SELECT d.id FROM charges d
    WHERE d.hold_at IS NULL
        AND d.created_at <= (SELECT clock_timestamp() - interval '7 days') -- planner
        AND d.status = 'succeeded' AND NOT d.captured AND d.release IS NULL
        AND d.id > '' AND d.operation_id > '' -- planner
    ORDER BY d.hold_at, d.created_at LIMIT @max_rows::integer FOR UPDATE SKIP LOCKED
)
UPDATE charges c SET hold_at = clock_timestamp()
    + greatest((clock_timestamp() - c.created_at) / 7, interval '1 day')
WHERE c.id IN (SELECT again.id FROM again UNION ALL SELECT first.id FROM first)
RETURNING c.id, c.operation_id, c.provider_id::text AS provider_id,
coalesce(c.provider_account, 0)::smallint AS provider_account;

-- name: ChargeTakeUnderWay :many
-- Takes charges that the provider has as pending and that are due to be asked for; moving the time
-- on, ever further, is the lease.
UPDATE charges c SET asks_at = clock_timestamp()
    + least(greatest(clock_timestamp() - c.created_at, interval '1 minute'), interval '6 hours')
WHERE c.id IN (
    SELECT d.id FROM charges d
    WHERE d.status = 'pending' AND d.provider_id IS NOT NULL
        AND coalesce(d.asks_at, d.created_at) <= (SELECT clock_timestamp()) -- planner
        AND d.id > '' AND d.operation_id > '' -- planner
    ORDER BY coalesce(d.asks_at, d.created_at) LIMIT @max_rows::integer FOR UPDATE SKIP LOCKED
)
RETURNING c.operation_id, c.provider_id::text AS provider_id,
coalesce(c.provider_account, 0)::smallint AS provider_account;

-- name: ChargeUpdate :exec
-- What a client says of a charge; the row is locked.
UPDATE charges SET description = sqlc.narg(description), metadata = @metadata,
    receipt_email = sqlc.narg(receipt_email), shipping = sqlc.narg(shipping)
WHERE id = @id;

-- name: ChargeWaits :exec
-- What the payer of an intent's charge has to do now; the row is locked.
UPDATE charges SET next_action = sqlc.narg(next_action) WHERE id = @id AND status = 'pending';

-- name: ChargeYieldReference :exec
-- Before a charge that was not live any more becomes live again: a reference that another charge
-- took meanwhile stays with that.
UPDATE charges c SET reference_yielded = true
WHERE c.id = @id AND c.reference IS NOT NULL AND NOT c.reference_yielded
    AND EXISTS (SELECT FROM charges r
        WHERE r.account_id = c.account_id AND r.reference = c.reference
            AND r.livemode = c.livemode AND r.id <> c.id AND NOT r.reference_yielded
            AND coalesce(r.duplicate_of, '') = coalesce(c.duplicate_of, '')
            AND r.status <> 'failed' AND coalesce(r.release, 'pending') = 'pending'
            AND (NOT r.captured OR r.amount_refunded < r.amount_captured));

-- name: ChargesCreated :many
-- For the audit: a page of the charges of any account that a provider has, in the order of their
-- making.
SELECT c.id, c.operation_id, c.status, c.provider_id::text AS provider_id, c.created_at,
    coalesce(c.provider_account, 0)::smallint AS provider_account FROM charges c
WHERE c.provider_id IS NOT NULL AND c.created_at < @before::timestamptz
    AND (c.created_at, c.id) > (@after_at::timestamptz, @after_id::text)
ORDER BY c.created_at, c.id
LIMIT @max_rows::integer;

-- name: ChargesOfIDs :many
SELECT * FROM charges
WHERE id = ANY(@ids::text[]) AND (account_id = @account_id) IS TRUE; -- planner

-- name: ChargesOfOperations :many
-- For the audit: of any account. running: somebody works on its operation at this moment.
-- refunds_sum: what its refunds add up to.
SELECT sqlc.embed(c), EXISTS (
        SELECT FROM idempotency_keys k
        WHERE k.operation_id = c.operation_id AND k.lease_token IS NOT NULL
            AND k.locked_at > clock_timestamp() - @stale_after::interval
    ) AS running, (
        SELECT coalesce(sum(r.amount), 0)::bigint FROM refunds r
        WHERE r.charge_id = c.id AND r.provider_id IS NOT NULL
            AND r.status NOT IN ('failed', 'canceled')
    ) AS refunds_sum
FROM charges c WHERE c.operation_id = ANY (@operation_ids::text[]);

-- name: ChargesUncaptured :many
-- Authorisations that may have been captured since, the oldest first; none lives longer.
SELECT c.id, c.operation_id, c.provider_id::text AS provider_id, c.created_at FROM charges c
WHERE c.status = 'succeeded' AND NOT c.captured AND c.release IS NULL
    AND c.provider_id IS NOT NULL
    AND (@provider_account::smallint = 0
        OR coalesce(c.provider_account, 1) = @provider_account::smallint)
        AND c.created_at > clock_timestamp() - @life::interval
    AND (c.created_at, c.id) > (@after_at::timestamptz, @after_id::text)
ORDER BY c.created_at, c.id LIMIT @max_rows::integer;

-- name: NewestAtProvider :many
-- Of the charges that the provider is known to have, those that were made last; of all its accounts
-- (0) or of one. Ids are in the order of time.
SELECT c.provider_id::text AS provider_id, c.created_at, c.livemode FROM charges c
WHERE c.provider_id IS NOT NULL AND c.settled_at IS NOT NULL
    AND (@provider_account::smallint = 0
    OR coalesce(c.provider_account, 1) = @provider_account::smallint) ORDER BY c.id DESC
    LIMIT @max_rows::integer;

-- name: OperationsForgotten :many
-- Which of these operations nothing here tells of. One that could not be rebuilt is known by its
-- key: it is found once, not at every start.
SELECT o.id::text AS id FROM unnest(@operation_ids::text[]) AS o (id)
WHERE NOT EXISTS (SELECT FROM charges c WHERE c.operation_id = o.id OFFSET 0) -- planner
    AND NOT EXISTS (SELECT FROM refunds r WHERE r.operation_id = o.id OFFSET 0) -- planner
    AND NOT EXISTS (SELECT FROM recovered_keys k WHERE k.operation_id = o.id)
    AND NOT EXISTS (SELECT FROM idempotency_keys k
        WHERE k.operation_id = o.id OFFSET 0); -- planner

-- name: OperationsUnknown :many
-- Which of these operations made nothing that is here.
SELECT o.id::text AS id FROM unnest(@operation_ids::text[]) AS o (id)
WHERE NOT EXISTS (SELECT FROM charges c WHERE c.operation_id = o.id OFFSET 0) -- planner
    AND NOT EXISTS (SELECT FROM refunds r WHERE r.operation_id = o.id OFFSET 0); -- planner

-- name: ProviderAccountOfOperation :one
-- The account of an operation, by its charge: 0 is the first one's.
SELECT coalesce(c.provider_account, 0)::smallint AS number FROM charges c WHERE c.id = (
    SELECT coalesce((SELECT r.charge_id FROM refunds r WHERE r.id = k.resource_id), k.resource_id)
    FROM idempotency_keys k WHERE k.operation_id = @operation_id
);

-- name: ProviderAccountUsed :one
-- Whether any operation was ever sent, to whichever account: each is about a charge.
SELECT EXISTS (SELECT FROM charges)::boolean AS used;
