-- Events out, and the order in which they are told.

-- name: EventFind :one
-- For operators: of any account.
SELECT * FROM outbox WHERE event_id = @event_id;

-- name: EventGet :one
SELECT * FROM outbox WHERE account_id = @account_id AND event_id = @event_id;

-- name: EventList :many
-- A page in the order of positions, of those between two positions. dated: only those whose own
-- created is in a range of seconds. It is read from the payload, as clients see it.
SELECT * FROM outbox o
WHERE o.position IS NOT NULL
    AND (o.account_id, o.position) > (@account_id::text, @above::bigint) -- planner
    AND (o.account_id, o.position) < (@account_id::text, @below::bigint) -- planner
    AND (NOT @dated::boolean
        OR NULLIF(rtrim(split_part(split_part(
            convert_from(o.payload, 'UTF8'), '"created":', 2), ',', 1), '}'), '')::bigint
            BETWEEN @created_from::bigint AND @created_last::bigint)
ORDER BY o.account_id, o.position
LIMIT @max_rows::integer;

-- name: EventListBefore :many
-- Backwards.
SELECT * FROM outbox o
WHERE o.position IS NOT NULL
    AND (o.account_id, o.position) > (@account_id::text, @above::bigint) -- planner
    AND (o.account_id, o.position) < (@account_id::text, @below::bigint) -- planner
    AND (NOT @dated::boolean
        OR NULLIF(rtrim(split_part(split_part(
            convert_from(o.payload, 'UTF8'), '"created":', 2), ',', 1), '}'), '')::bigint
            BETWEEN @created_from::bigint AND @created_last::bigint)
ORDER BY o.account_id DESC, o.position DESC
LIMIT @max_rows::integer;

-- name: EventListOfTypes :many
-- Both again for some types: one walk for each.
SELECT l.* FROM unnest(@types::text[]) AS t (type) CROSS JOIN LATERAL (
    SELECT * FROM outbox o
    WHERE o.account_id = @account_id AND o.position IS NOT NULL
        AND (o.type, o.position) > (t.type, @above::bigint)
        AND (o.type, o.position) < (t.type, @below::bigint)
        AND (NOT @dated::boolean
            OR NULLIF(rtrim(split_part(split_part(
            convert_from(o.payload, 'UTF8'), '"created":', 2), ',', 1), '}'), '')::bigint
                BETWEEN @created_from::bigint AND @created_last::bigint)
    ORDER BY o.type, o.position
    LIMIT @max_rows::integer
) l
ORDER BY l.position
LIMIT @max_rows::integer;

-- name: EventListOfTypesBefore :many
-- Backwards.
SELECT l.* FROM unnest(@types::text[]) AS t (type) CROSS JOIN LATERAL (
    SELECT * FROM outbox o
    WHERE o.account_id = @account_id AND o.position IS NOT NULL
        AND (o.type, o.position) > (t.type, @above::bigint)
        AND (o.type, o.position) < (t.type, @below::bigint)
        AND (NOT @dated::boolean
            OR NULLIF(rtrim(split_part(split_part(
            convert_from(o.payload, 'UTF8'), '"created":', 2), ',', 1), '}'), '')::bigint
                BETWEEN @created_from::bigint AND @created_last::bigint)
    ORDER BY o.type DESC, o.position DESC
    LIMIT @max_rows::integer
) l
ORDER BY l.position DESC
LIMIT @max_rows::integer;

-- name: EventNewest :many
-- For operators: of any account, the newest first.
SELECT o.event_id, o.account_id, o.type, o.object_id, o.operation_id,
    o.position::bigint AS position, o.created_at,
    (SELECT count(*) FROM deliveries d WHERE d.event_id = o.event_id) AS deliveries,
    (SELECT count(*) FROM deliveries d
        WHERE d.event_id = o.event_id AND d.state = 'pending') AS pending,
    (SELECT count(*) FROM deliveries d WHERE d.event_id = o.event_id AND d.state = 'dead') AS dead
FROM outbox o
WHERE o.position IS NOT NULL AND o.created_at >= @since::timestamptz
    AND (sqlc.narg(type)::text IS NULL OR o.type = sqlc.narg(type)::text)
    AND (sqlc.narg(account_id)::text IS NULL OR o.account_id = sqlc.narg(account_id)::text)
    AND (NOT @undelivered::boolean
        OR EXISTS (SELECT FROM deliveries d WHERE d.event_id = o.event_id
        AND d.state <> 'delivered'))
ORDER BY o.position DESC
LIMIT @max_rows::integer;

-- name: EventPositionAt :one
-- The position up to which all events of an account were written before a moment, by halving the
-- range of positions: some forty looks into an index. Positions are in the order of commits, which
-- is nearly that of the times at which events are written.
WITH RECURSIVE search (low, high) AS (
    SELECT 0::bigint, coalesce((SELECT o.position FROM outbox o WHERE o.position IS NOT NULL
        AND (o.account_id, o.position) <= (@account_id::text, 9223372036854775806)
        AND (o.account_id, o.position) > (@account_id::text, 0)
        ORDER BY o.account_id DESC, o.position DESC LIMIT 1), 0) + 1
    UNION ALL
    SELECT CASE WHEN e.created_at < @at::timestamptz THEN e.position ELSE s.low END,
        CASE WHEN e.created_at < @at::timestamptz THEN s.high ELSE s.low + (s.high - s.low) / 2 END
    FROM search s LEFT JOIN LATERAL (
        SELECT o.position, o.created_at FROM outbox o WHERE o.position IS NOT NULL
            AND (o.account_id, o.position) >= (@account_id::text, s.low + (s.high - s.low) / 2)
            AND (o.account_id, o.position) < (@account_id::text, s.high)
        ORDER BY o.account_id, o.position LIMIT 1
    ) e ON true
    WHERE s.high - s.low > 1
)
SELECT max(low)::bigint AS position FROM search;

-- name: EventsClean :one
-- Looks at the next events after a position and forgets, with their deliveries, those that are old,
-- that every endpoint has or was given up on, and that every stream has: exactly the rows that were
-- looked at. young: the last of them is not old, so nothing after it is. The newest of each type of
-- an account stays: there stands the cursor of a reader who has seen all, and it must be there when
-- something comes after it, however long that takes.
WITH looked AS MATERIALIZED (
    SELECT o.event_id, o.position, o.account_id, o.type,
        o.created_at < clock_timestamp() - @ttl::interval AS is_old FROM outbox o
    WHERE o.position IS NOT NULL AND o.position > @after::bigint
    ORDER BY o.position LIMIT @max_rows::integer
), old AS MATERIALIZED (
    SELECT l.event_id, l.account_id, l.type, l.position FROM looked l
    WHERE l.is_old AND EXISTS (SELECT FROM outbox n WHERE n.account_id = l.account_id
        AND n.type = l.type AND n.position > l.position)
        AND l.position <= (SELECT coalesce(min(c.position), 9223372036854775807)
            FROM outbox_cursors c)
        AND l.position <= (SELECT c.position FROM deliveries_cursor c)
        AND NOT EXISTS (SELECT FROM deliveries d WHERE d.event_id = l.event_id
            AND d.state = 'pending' OFFSET 0) -- planner
), gone AS (
    DELETE FROM deliveries d USING old WHERE d.event_id = old.event_id AND d.next_run_at IS NULL
), cleaned AS (
    DELETE FROM outbox o USING old WHERE o.event_id = old.event_id RETURNING o.event_id
), told AS (
    INSERT INTO outbox_cleaned AS c (account_id, type, position)
    SELECT old.account_id, old.type, max(old.position) FROM old GROUP BY old.account_id, old.type
    ORDER BY old.account_id, old.type
    ON CONFLICT (account_id, type) DO UPDATE SET position = greatest(c.position, excluded.position)
)
SELECT (SELECT count(*) FROM looked) AS looked, (SELECT count(*) FROM cleaned) AS cleaned,
    coalesce((SELECT max(l.position) FROM looked l), 0)::bigint AS last_position,
    coalesce((SELECT NOT l.is_old FROM looked l ORDER BY l.position DESC LIMIT 1),
        true)::boolean AS young;

-- name: OutboxAdd :exec
INSERT INTO outbox (event_id, account_id, type, operation_id, object_id, payload)
VALUES (@event_id, @account_id, @type, @operation_id, @object_id, @payload)
ON CONFLICT (event_id) DO NOTHING;

-- name: OutboxHasNew :one
-- Whether any committed event that was written since then has no position yet, and whether any that
-- has one is not queued for endpoints: two looks into indexes, and no lock.
SELECT coalesce((SELECT true FROM outbox o
        WHERE o.position IS NULL AND o.created_at >= @since::timestamptz
        ORDER BY o.created_at LIMIT 1), false)::boolean AS unnumbered, -- planner
    coalesce((SELECT max(o.position) FROM outbox o WHERE o.position IS NOT NULL)
        > (SELECT c.position FROM deliveries_cursor c), false)::boolean AS unqueued;

-- name: OutboxNumber :one
-- Gives positions to committed events that have none: all but those of settled charges, which get
-- theirs with their commit. The lock on the counter makes whoever gives positions take turns. One
-- that had to wait looks at a snapshot that is older than the turn before its own: then some of its
-- rows have a position by now, which the UPDATE sees, and theirs in this turn stay unused.
WITH counter AS MATERIALIZED (
    SELECT c.last_position FROM outbox_counter c FOR UPDATE
), fresh AS MATERIALIZED (
    SELECT o.event_id, o.created_at, row_number() OVER (ORDER BY o.created_at, o.event_id) AS n
    FROM (SELECT u.event_id, u.created_at FROM outbox u WHERE u.position IS NULL
        AND u.created_at >= @since::timestamptz ORDER BY u.created_at, u.event_id
        LIMIT @max_rows::integer) o
    WHERE EXISTS (SELECT FROM counter)
), numbered AS (
    UPDATE outbox o SET position = counter.last_position + fresh.n
    FROM fresh CROSS JOIN counter
    WHERE o.event_id = fresh.event_id AND coalesce(o.position, 0) = 0 -- planner
    RETURNING o.event_id
), moved AS (
    UPDATE outbox_counter c SET last_position = counter.last_position + (SELECT count(*) FROM fresh)
    FROM counter WHERE EXISTS (SELECT FROM fresh)
)
SELECT (SELECT count(*) FROM numbered) AS numbered,
    coalesce((SELECT max(f.created_at) FROM fresh f), @since::timestamptz)::timestamptz AS newest;

-- name: StreamEvents :many
SELECT o.event_id, o.account_id, o.type, o.object_id, o.payload, o.position::bigint AS position
FROM outbox o
WHERE o.position IS NOT NULL AND o.position > @after::bigint
ORDER BY o.position
LIMIT @max_rows::integer;
