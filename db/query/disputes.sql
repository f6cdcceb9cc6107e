-- Disputes. The charge of one is locked first.

-- name: DisputeBlocksRefund :one
-- Whether the provider would refuse a refund of a charge. A dispute that was won, or an inquiry
-- that led to nothing, is over: then the money is there.
SELECT EXISTS (SELECT FROM disputes d WHERE d.charge_id = @charge_id AND NOT d.refundable
    AND d.status NOT IN ('won', 'warning_closed'));

-- name: DisputeGet :one
SELECT * FROM disputes
WHERE (account_id = @account_id) IS TRUE -- planner
    AND id = @id;

-- name: DisputeGetAtProvider :one
SELECT * FROM disputes
WHERE provider = 'stripe' AND provider_id = @provider_id::text
    AND (account_id = @account_id) IS TRUE; -- planner

-- name: DisputeList :many
-- A page, newest first, within a span of places. One statement for each way through an index, as
-- for charges.
SELECT d.* FROM disputes d
WHERE d.account_id = @account_id
    AND (d.created_at, d.id) < (@below_at::timestamptz, @below_id::text)
    AND (d.created_at, d.id) > (@above_at::timestamptz, @above_id::text)
ORDER BY d.created_at DESC, d.id DESC
LIMIT @max_rows::integer;

-- name: DisputeListBefore :many
-- The page just before a cursor, oldest first; the caller turns it round.
SELECT d.* FROM disputes d
WHERE d.account_id = @account_id
    AND (d.created_at, d.id) < (@below_at::timestamptz, @below_id::text)
    AND (d.created_at, d.id) > (@above_at::timestamptz, @above_id::text)
ORDER BY d.created_at, d.id
LIMIT @max_rows::integer;

-- name: DisputeListOfCharge :many
-- Both again for the disputes of a charge.
SELECT d.* FROM disputes d
WHERE d.charge_id = @charge_id AND coalesce(d.account_id = @account_id, false) -- planner
    AND (d.created_at, d.id) < (@below_at::timestamptz, @below_id::text)
    AND (d.created_at, d.id) > (@above_at::timestamptz, @above_id::text)
ORDER BY d.created_at DESC, d.id DESC
LIMIT @max_rows::integer;

-- name: DisputeListOfChargeBefore :many
-- Oldest first.
SELECT d.* FROM disputes d
WHERE d.charge_id = @charge_id AND coalesce(d.account_id = @account_id, false) -- planner
    AND (d.created_at, d.id) < (@below_at::timestamptz, @below_id::text)
    AND (d.created_at, d.id) > (@above_at::timestamptz, @above_id::text)
ORDER BY d.created_at, d.id
LIMIT @max_rows::integer;

-- name: DisputeWrite :exec
-- Of a dispute that is known only what can change is written.
INSERT INTO disputes AS d (id, account_id, charge_id, status, is_open, reason, amount, currency,
    refundable, due_by, has_evidence, past_due, submissions, intent_id, livemode, provider_id,
    created_at, closed_at, as_of)
VALUES (@id, @account_id, @charge_id, @status, @is_open, @reason, @amount, @currency, @refundable,
    sqlc.narg(due_by), @has_evidence, @past_due, @submissions, sqlc.narg(intent_id), @livemode,
    @provider_id, @created_at, sqlc.narg(closed_at), sqlc.narg(as_of))
ON CONFLICT (provider, provider_id) DO UPDATE SET status = excluded.status,
    is_open = excluded.is_open, reason = excluded.reason, amount = excluded.amount,
    currency = excluded.currency, refundable = excluded.refundable, due_by = excluded.due_by,
    has_evidence = excluded.has_evidence, past_due = excluded.past_due,
    submissions = excluded.submissions, closed_at = excluded.closed_at, as_of = excluded.as_of;

-- name: DisputesOfCharge :many
-- All of a charge, which is locked.
SELECT * FROM disputes WHERE charge_id = @charge_id ORDER BY created_at, id;

-- name: DisputesOpen :many
-- A page of those that are not decided, of all accounts, in the order of their ids.
SELECT d.id, d.provider_id FROM disputes d
WHERE d.is_open AND d.id > @after_id
ORDER BY d.id
LIMIT @max_rows::integer;
