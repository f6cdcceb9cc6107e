-- Accounts at the provider. A charge without a number is the first account's.

-- name: ProviderAccountLock :one
-- One at a time decides which account is the current one. Claims only read the row, and do not wait.
SELECT coalesce(i.provider_account, 0)::smallint AS current FROM installation i FOR UPDATE;

-- name: ProviderAccountCurrent :one
SELECT coalesce(i.provider_account, 0)::smallint AS current FROM installation i;

-- name: ProviderAccountList :many
SELECT a.number, a.id, a.livemode, a.first_seen_at, a.current_since, (a.number = coalesce(i.provider_account, 0))::boolean AS current
FROM provider_accounts a CROSS JOIN installation i ORDER BY a.number;

-- name: ProviderAccountAdd :one
-- The caller holds the lock.
INSERT INTO provider_accounts (number, id, livemode)
SELECT coalesce(max(a.number), 0) + 1, @id::text, @livemode::boolean FROM provider_accounts a
RETURNING number;

-- name: ProviderAccountName :exec
-- Its id was not known so far.
UPDATE provider_accounts SET id = @id WHERE number = @number AND id = '';

-- name: ProviderAccountUse :exec
-- Makes it the current one.
WITH chosen AS (
    UPDATE installation SET provider_account = @number::smallint
)
UPDATE provider_accounts SET current_since = clock_timestamp() WHERE number = @number::smallint;

-- name: ProviderAccountUsed :one
-- Whether any operation was ever sent, to whichever account: each is about a charge.
SELECT EXISTS (SELECT FROM charges)::boolean AS used;

-- name: ProviderAccountNewest :one
-- The newest charge of an account that the provider has named. Ids are in the order of time.
SELECT c.provider_id::text AS provider_id, c.livemode FROM charges c
WHERE c.provider_id IS NOT NULL AND (c.provider_account = @number::smallint OR (c.provider_account IS NULL AND @first::boolean))
ORDER BY c.id DESC LIMIT 1;

-- name: ProviderAccountUnfinished :many
-- Operations without an outcome, by the account of their charge: 0 is the first one's. The second number: charges that wait for their payer.
SELECT coalesce(c.provider_account, 0)::smallint AS number, count(*) FILTER (WHERE NOT u.awaits)::bigint AS unfinished, count(*) FILTER (WHERE u.awaits)::bigint AS awaiting
FROM (
    SELECT coalesce(r.charge_id, k.resource_id) AS charge_id, false AS awaits
    FROM idempotency_keys k LEFT JOIN refunds r ON r.id = k.resource_id
    WHERE k.status = 'in_progress'
    UNION ALL
    SELECT d.id, true FROM charges d WHERE d.awaits_at IS NOT NULL AND d.status = 'pending'
) u JOIN charges c ON c.id = u.charge_id
GROUP BY 1;

-- name: ProviderAccountOfOperation :one
-- The account of an operation, by its charge: 0 is the first one's.
SELECT coalesce(c.provider_account, 0)::smallint AS number FROM charges c WHERE c.id = (
    SELECT coalesce((SELECT r.charge_id FROM refunds r WHERE r.id = k.resource_id), k.resource_id) FROM idempotency_keys k WHERE k.operation_id = @operation_id
);

-- name: ChargeOfNews :one
-- The charge that an event of the provider speaks of, by the provider's id or by the operation that made it or its refund.
SELECT c.id, coalesce(c.provider_account, 0)::smallint AS account, c.operation_id, c.status, c.settled_at, c.captured, c.capture_operation_id, c.intent_id FROM (
    SELECT p.id FROM charges p WHERE p.provider = 'stripe' AND p.provider_id = @provider_id::text AND @provider_id::text <> ''
    UNION ALL
    SELECT o.id FROM charges o WHERE o.operation_id = @operation_id::text AND @operation_id::text <> ''
    UNION ALL
    SELECT r.charge_id FROM refunds r WHERE r.operation_id = @operation_id::text AND @operation_id::text <> ''
) f JOIN charges c ON c.id = f.id
LIMIT 1;

-- name: ProviderAccountSentByOthers :one
-- Operations of an account that may have been carried out and have no outcome, and were not sent by this sender. It has no short mark, so that nothing else in their
-- parameters passes for it. Asked while no charge of the account has the provider's id: then there are few.
SELECT count(*)::bigint AS sent
FROM idempotency_keys k LEFT JOIN refunds r ON r.id = k.resource_id JOIN charges c ON c.id = coalesce(r.charge_id, k.resource_id)
WHERE k.status = 'in_progress' AND k.first_attempt_at IS NOT NULL AND coalesce(c.provider_account, 1) = @number::smallint
    AND position(convert_to(@sender::text, 'UTF8') IN k.params) = 0;
