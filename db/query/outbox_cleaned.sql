-- How far events were forgotten, for each account and type.

-- name: EventsCleanedUpTo :one
-- The highest position of an event of the account, of some types or (NULL) of any, that was
-- forgotten.
SELECT coalesce(max(c.position), 0)::bigint AS position FROM outbox_cleaned c
WHERE c.account_id = @account_id
    AND (@types::text[] IS NULL OR c.type = ANY(@types::text[]));
