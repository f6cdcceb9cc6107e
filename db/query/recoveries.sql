-- Recoveries: what is done when the database may have forgotten something.

-- name: RecoveryCount :exec
UPDATE recoveries SET charges = charges + @charges::integer, refunds = refunds + @refunds::integer,
    captures = captures + @captures::integer WHERE n = @n;

-- name: RecoveryFail :exec
UPDATE recoveries SET last_error = @last_error::text WHERE n = @n AND lease_token = @token::text;

-- name: RecoveryFinish :one
-- Opens the way for claims again, if this still is the recovery's history and nobody has found more
-- to be missing.
WITH done AS (
    UPDATE recoveries r SET finished_at = clock_timestamp(), lease_token = NULL,
        leased_until = NULL, last_error = NULL
    WHERE r.n = @n AND r.lease_token = @token::text AND r.history = @history
        AND r.finished_at IS NULL AND r.lossy = @lossy::boolean
    RETURNING r.charges, r.refunds, r.captures
), opened AS (
    UPDATE installation SET history = @history, timeline = @timeline, forked_at = NULL
        WHERE EXISTS (SELECT FROM done)
)
SELECT done.charges, done.refunds, done.captures FROM done;

-- name: RecoveryLease :one
-- Takes the open recovery, or keeps it; of several servers one reads the records.
UPDATE recoveries r SET lease_token = @token::text,
    leased_until = clock_timestamp() + @lease::interval
WHERE r.finished_at IS NULL AND (r.lease_token IS NULL OR r.lease_token = @token::text
    OR r.leased_until < clock_timestamp())
RETURNING r.n, r.reason, r.lossy, r.history, r.since,
extract(epoch FROM clock_timestamp() - r.began_at)::float8 AS age_seconds,
    (SELECT count(*) FROM servers s
        WHERE s.seen_at >= r.alive_since AND s.vouched <> r.history) AS silent;

-- name: RecoveryList :many
SELECT * FROM recoveries ORDER BY n DESC LIMIT @max_rows::integer;

-- name: RecoveryOfCursor :one
-- From where a reader goes on whose cursor was lost: the oldest fork after which there are such
-- readers.
SELECT coalesce(min(r.outbox_position), 0)::bigint AS position, count(*) AS recoveries
FROM recoveries r
WHERE r.lossy AND r.began_at > clock_timestamp() - @life::interval;

-- name: RecoveryOpen :exec
-- Notes that the history has forked, once: nothing is claimed from here on. A recovery that is open
-- already is told what it did not know: that something is missing.
WITH closed AS (
    UPDATE installation SET forked_at = coalesce(forked_at, clock_timestamp())
), alive AS (
    SELECT max(s.seen_at) - @alive::interval AS since FROM servers s
)
INSERT INTO recoveries AS r (reason, lossy, history, alive_since, outbox_position)
SELECT @reason::text, @lossy::boolean, @history::text, (SELECT a.since FROM alive a),
    c.last_position FROM outbox_counter c
ON CONFLICT ((true)) WHERE finished_at IS NULL DO UPDATE SET
    lossy = r.lossy OR excluded.lossy, history = excluded.history,
    reason = CASE WHEN excluded.lossy AND NOT r.lossy THEN excluded.reason ELSE r.reason END;

-- name: RecoverySince :exec
-- Keeps from when on the provider's records are read, before anything is written.
UPDATE recoveries SET since = coalesce(since, @since::timestamptz) WHERE n = @n;
