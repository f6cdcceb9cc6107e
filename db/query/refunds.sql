-- Refunds. The charge of one is locked first.

-- name: RefundByProviderID :one
SELECT id FROM refunds WHERE provider = 'stripe' AND provider_id = @provider_id;

-- name: RefundChange :exec
UPDATE refunds SET status = @status, failure_reason = sqlc.narg(failure_reason) WHERE id = @id;

-- name: RefundCountEvent :one
UPDATE refunds SET events = events + 1 WHERE id = @id RETURNING events;

-- name: RefundCreate :one
INSERT INTO refunds (id, account_id, charge_id, operation_id, amount, currency, reason, metadata)
VALUES (@id, @account_id, @charge_id, @operation_id, @amount, @currency, sqlc.narg(reason),
    @metadata)
RETURNING created_at;

-- name: RefundFound :exec
-- A refund that was made at the provider.
INSERT INTO refunds (id, account_id, charge_id, operation_id, status, amount, currency, reason,
    failure_reason, provider_id, created_at, settled_at, made_by)
VALUES (@id, @account_id, @charge_id, @provider_id, @status, @amount, @currency, sqlc.narg(reason),
    sqlc.narg(failure_reason), @provider_id, @created_at, clock_timestamp(), 'provider');

-- name: RefundGet :one
SELECT * FROM refunds
WHERE (account_id = @account_id) IS TRUE -- planner
    AND id = @id;

-- name: RefundGetAtProvider :one
SELECT * FROM refunds
WHERE provider = 'stripe' AND provider_id = @provider_id::text
    AND (account_id = @account_id) IS TRUE; -- planner

-- name: RefundList :many
-- A page, newest first. One statement for each way through an index, as for charges.
SELECT r.* FROM refunds r
WHERE r.account_id = @account_id
    AND (r.created_at, r.id) > (@above_at::timestamptz, @above_id::text)
    AND (r.created_at, r.id) < (@below_at::timestamptz, @below_id::text)
ORDER BY r.created_at DESC, r.id DESC
LIMIT @max_rows::integer;

-- name: RefundListBefore :many
-- The same page from the other end, oldest first; the caller reverses it.
SELECT r.* FROM refunds r
WHERE r.account_id = @account_id
    AND (r.created_at, r.id) > (@above_at::timestamptz, @above_id::text)
    AND (r.created_at, r.id) < (@below_at::timestamptz, @below_id::text)
ORDER BY r.created_at, r.id
LIMIT @max_rows::integer;

-- name: RefundListOfCharge :many
-- Both again for the refunds of a charge.
SELECT r.* FROM refunds r
WHERE r.charge_id = @charge_id AND coalesce(r.account_id = @account_id, false) -- planner
    AND (r.created_at, r.id) > (@above_at::timestamptz, @above_id::text)
    AND (r.created_at, r.id) < (@below_at::timestamptz, @below_id::text)
ORDER BY r.created_at DESC, r.id DESC
LIMIT @max_rows::integer;

-- name: RefundListOfChargeBefore :many
-- Oldest first.
SELECT r.* FROM refunds r
WHERE r.charge_id = @charge_id AND coalesce(r.account_id = @account_id, false) -- planner
    AND (r.created_at, r.id) > (@above_at::timestamptz, @above_id::text)
    AND (r.created_at, r.id) < (@below_at::timestamptz, @below_id::text)
ORDER BY r.created_at, r.id
LIMIT @max_rows::integer;

-- name: RefundListOfIntent :many
-- And of all charges of a payment intent of the provider, which are few.
SELECT l.* FROM (
    SELECT c.id FROM charges c
    WHERE c.intent_id = @intent_id::text AND coalesce(c.account_id = @account_id, false) -- planner
        AND (@charge_id::text = '' OR coalesce(c.id = @charge_id::text, false)) -- planner
    OFFSET 0 -- planner
) of_intent CROSS JOIN LATERAL (
    SELECT r.* FROM refunds r
    WHERE r.charge_id = of_intent.id
        AND (r.created_at, r.id) > (@above_at::timestamptz, @above_id::text)
        AND (r.created_at, r.id) < (@below_at::timestamptz, @below_id::text)
    ORDER BY r.created_at DESC, r.id DESC
    LIMIT @max_rows::integer
) l
ORDER BY l.created_at DESC, l.id DESC
LIMIT @max_rows::integer;

-- name: RefundListOfIntentBefore :many
-- Oldest first.
SELECT l.* FROM (
    SELECT c.id FROM charges c
    WHERE c.intent_id = @intent_id::text AND coalesce(c.account_id = @account_id, false) -- planner
        AND (@charge_id::text = '' OR coalesce(c.id = @charge_id::text, false)) -- planner
    OFFSET 0 -- planner
) of_intent CROSS JOIN LATERAL (
    SELECT r.* FROM refunds r
    WHERE r.charge_id = of_intent.id
        AND (r.created_at, r.id) > (@above_at::timestamptz, @above_id::text)
        AND (r.created_at, r.id) < (@below_at::timestamptz, @below_id::text)
    ORDER BY r.created_at, r.id
    LIMIT @max_rows::integer
) l
ORDER BY l.created_at, l.id
LIMIT @max_rows::integer;

-- name: RefundLock :one
SELECT * FROM refunds WHERE id = @id FOR UPDATE;

-- name: RefundOfOperation :one
SELECT id, account_id, charge_id FROM refunds WHERE operation_id = @operation_id;

-- name: RefundRestore :execrows
INSERT INTO refunds (id, account_id, charge_id, operation_id, status, amount, currency, reason,
    metadata, failure_reason, provider_id, created_at, settled_at)
VALUES (@id, @account_id, @charge_id, @operation_id, @status, @amount, @currency, sqlc.narg(reason),
    @metadata, sqlc.narg(failure_reason), @provider_id, @created_at, clock_timestamp())
ON CONFLICT (operation_id) DO NOTHING;

-- name: RefundSettle :execrows
-- The guard of the domain row: a refund is settled once.
UPDATE refunds SET status = @status, provider_id = sqlc.narg(provider_id),
    failure_reason = sqlc.narg(failure_reason), settled_at = clock_timestamp()
WHERE id = @id AND operation_id = @operation_id AND status = 'pending' AND provider_id IS NULL;

-- name: RefundTakeUnderWay :many
-- Takes refunds that the provider has as pending and that are due to be asked for, as
-- ChargeTakeUnderWay does charges.
UPDATE refunds r SET asks_at = clock_timestamp()
    + least(greatest(clock_timestamp() - r.created_at, interval '1 minute'), interval '6 hours')
FROM charges c
WHERE r.id IN (
    SELECT d.id FROM refunds d
    WHERE d.status IN ('pending', 'requires_action') AND d.provider_id IS NOT NULL
        AND coalesce(d.asks_at, d.created_at) <= (SELECT clock_timestamp()) -- planner
        AND d.id > '' AND d.operation_id > '' -- planner
    ORDER BY coalesce(d.asks_at, d.created_at) LIMIT @max_rows::integer FOR UPDATE SKIP LOCKED
) AND c.id = r.charge_id
RETURNING r.provider_id::text AS provider_id, r.status,
coalesce(c.provider_account, 0)::smallint AS provider_account;

-- name: RefundsOfCharge :many
-- Those that the provider has. The charge is locked, so none of them changes meanwhile.
SELECT * FROM refunds r WHERE r.charge_id = @charge_id AND r.provider_id IS NOT NULL
ORDER BY r.created_at, r.id;

-- name: RefundsOfCharges :many
-- The newest refunds of each of some charges.
SELECT l.* FROM unnest(@charge_ids::text[]) AS c (id) CROSS JOIN LATERAL (
    SELECT r.* FROM refunds r
    WHERE r.charge_id = c.id AND coalesce(r.account_id = @account_id, false) -- planner
    ORDER BY r.created_at DESC, r.id DESC
    LIMIT @max_rows::integer
) l
ORDER BY l.charge_id, l.created_at DESC, l.id DESC;
