-- Captures and refunds of charges. They are rare beside charges, so their commits are transactions of several plain statements; in each the key comes
-- first and the charge second, so that two of them never wait for each other in a circle.

-- name: ChargeLock :one
SELECT * FROM charges WHERE id = @id AND (account_id = @account_id) IS TRUE FOR UPDATE;

-- name: ChargeReserveCapture :execrows
UPDATE charges SET capture_operation_id = @operation_id::text
WHERE id = @id AND (account_id = @account_id) IS TRUE AND capture_operation_id IS NULL AND NOT captured AND status = 'succeeded';

-- name: ChargeCapture :one
UPDATE charges SET captured = true, amount_captured = @amount_captured, capture_forgotten = false
WHERE id = @id AND (account_id = @account_id) IS TRUE AND capture_operation_id = @operation_id::text AND (NOT captured OR capture_forgotten)
RETURNING *;

-- name: ChargeReleaseCapture :execrows
-- The provider definitely refused: the charge may be captured by another operation.
UPDATE charges SET capture_operation_id = NULL
WHERE id = @id AND (account_id = @account_id) IS TRUE AND capture_operation_id = @operation_id::text AND NOT captured;

-- name: ChargeReserveRefund :execrows
-- The CHECK on the table holds whatever this statement or its caller may get wrong.
UPDATE charges SET amount_refund_pending = amount_refund_pending + @amount::bigint
WHERE id = @id AND (account_id = @account_id) IS TRUE;

-- name: RefundCreate :one
INSERT INTO refunds (id, account_id, charge_id, operation_id, amount, currency, reason, metadata)
VALUES (@id, @account_id, @charge_id, @operation_id, @amount, @currency, sqlc.narg(reason), @metadata)
RETURNING created_at;

-- name: ChargeSettleRefund :one
-- Moves a reserved amount to what was refunded (@refunded), or gives it back.
UPDATE charges SET amount_refund_pending = amount_refund_pending - @amount::bigint, amount_refunded = amount_refunded + @refunded::bigint
WHERE id = @id AND (account_id = @account_id) IS TRUE
RETURNING *;

-- name: RefundSettle :execrows
-- The guard of the domain row: a refund is settled once.
UPDATE refunds SET status = @status, provider_id = sqlc.narg(provider_id), failure_reason = sqlc.narg(failure_reason), settled_at = clock_timestamp()
WHERE id = @id AND operation_id = @operation_id AND status = 'pending' AND provider_id IS NULL;

-- name: RefundGet :one
SELECT * FROM refunds WHERE id = @id AND (account_id = @account_id) IS TRUE;

-- name: RefundList :many
-- A page, newest first, from just after a place on. One statement for each way through an index, as for charges.
SELECT r.* FROM refunds r
WHERE r.account_id = @account_id
    AND (r.created_at, r.id) < (@below_at::timestamptz, @below_id::text)
ORDER BY r.created_at DESC, r.id DESC
LIMIT @most::integer;

-- name: RefundListBefore :many
-- The page just before a cursor, oldest first; the caller turns it round.
SELECT r.* FROM refunds r
WHERE r.account_id = @account_id
    AND (r.created_at, r.id) > (@above_at::timestamptz, @above_id::text)
ORDER BY r.created_at, r.id
LIMIT @most::integer;

-- name: RefundListOfCharge :many
-- Both again for the refunds of a charge. No index sees through coalesce, and no statistics: of IS TRUE they say that hardly
-- any row is left, for which all would be read and sorted.
SELECT r.* FROM refunds r
WHERE r.charge_id = @charge_id AND coalesce(r.account_id = @account_id, false)
    AND (r.created_at, r.id) < (@below_at::timestamptz, @below_id::text)
ORDER BY r.created_at DESC, r.id DESC
LIMIT @most::integer;

-- name: RefundListOfChargeBefore :many
-- Oldest first.
SELECT r.* FROM refunds r
WHERE r.charge_id = @charge_id AND coalesce(r.account_id = @account_id, false)
    AND (r.created_at, r.id) > (@above_at::timestamptz, @above_id::text)
ORDER BY r.created_at, r.id
LIMIT @most::integer;

-- name: OutboxAdd :exec
INSERT INTO outbox (event_id, account_id, type, operation_id, object_id, payload)
VALUES (@event_id, @account_id, @type, @operation_id, @object_id, @payload)
ON CONFLICT (event_id) DO NOTHING;

-- name: ChargeCountEvent :one
-- The number of the next event of a charge; its row is written in this transaction anyway.
UPDATE charges SET events = events + 1 WHERE id = @id RETURNING events;

-- name: RefundCountEvent :one
UPDATE refunds SET events = events + 1 WHERE id = @id RETURNING events;

-- name: ChargeOfOperationLock :one
SELECT * FROM charges WHERE operation_id = @operation_id FOR UPDATE;

-- name: ChargeChange :exec
-- What the provider told of a settled charge; the row is locked by ChargeOfOperationLock.
UPDATE charges SET status = @status, captured = @captured, amount_captured = @amount_captured, amount_refunded = @amount_refunded, disputed = @disputed,
    provider_id = sqlc.narg(provider_id), failure_code = sqlc.narg(failure_code), failure_message = sqlc.narg(failure_message), outcome = sqlc.narg(outcome),
    next_action = CASE WHEN @status = 'pending' THEN next_action END, awaits_at = CASE WHEN @status = 'pending' THEN awaits_at END
WHERE id = @id;

-- name: RefundOfOperation :one
SELECT id, account_id, charge_id FROM refunds WHERE operation_id = @operation_id;

-- name: RefundLock :one
SELECT * FROM refunds WHERE id = @id FOR UPDATE;

-- name: RefundChange :exec
UPDATE refunds SET status = @status, failure_reason = sqlc.narg(failure_reason) WHERE id = @id;

-- name: ChargeSetRefunded :exec
-- A refund that had counted failed after all; the row is locked.
UPDATE charges SET amount_refunded = @amount_refunded WHERE id = @id;

-- name: ChargeByProviderID :one
SELECT id, status, captured FROM charges WHERE provider = 'stripe' AND provider_id = @provider_id;

-- name: RefundByProviderID :one
SELECT id FROM refunds WHERE provider = 'stripe' AND provider_id = @provider_id;
