-- Accounts at the provider. A charge without a number is the first account's.

-- name: ProviderAccountAdd :one
-- The caller holds the lock.
INSERT INTO provider_accounts (number, id, livemode)
SELECT coalesce(max(a.number), 0) + 1, @id::text, @livemode::boolean FROM provider_accounts a
RETURNING number;

-- name: ProviderAccountList :many
SELECT a.number, a.id, a.livemode, a.first_seen_at, a.current_since,
    (a.number = coalesce(i.provider_account, 0))::boolean AS current
FROM provider_accounts a CROSS JOIN installation i ORDER BY a.number;

-- name: ProviderAccountName :exec
-- Its id was not known so far.
UPDATE provider_accounts SET id = @id WHERE number = @number AND id = '';

-- name: ProviderAccountUse :exec
-- Makes it the current one.
WITH chosen AS (
    UPDATE installation SET provider_account = @number::smallint
)
UPDATE provider_accounts SET current_since = clock_timestamp() WHERE number = @number::smallint;
