-- Events from the provider.

-- name: InboxDone :execrows
-- The mark, in the transaction of the effect. It is the guard as well: an event is processed once.
UPDATE provider_events SET processed_at = clock_timestamp(), result = @result::text,
    next_run_at = NULL, last_error = NULL,
    payload = CASE WHEN @drop_payload::boolean THEN NULL ELSE payload END
WHERE id = @id AND processed_at IS NULL AND attempts = @attempts;

-- name: InboxFailed :execrows
UPDATE provider_events SET next_run_at = clock_timestamp() + @pause::interval,
    last_error = @last_error::text
WHERE id = @id AND processed_at IS NULL AND attempts = @attempts;

-- name: InboxGauges :one
-- Events of the provider that are not processed and not parked, by the partial index of what is due
-- or will be.
SELECT count(*) AS unprocessed,
    coalesce(greatest(0, extract(epoch FROM clock_timestamp() - min(e.next_run_at))),
        0)::float8 AS overdue_seconds,
    (SELECT count(*) FROM provider_events p WHERE p.parked_at IS NOT NULL) AS parked
FROM provider_events e
WHERE e.next_run_at IS NOT NULL;

-- name: InboxGet :one
SELECT * FROM provider_events WHERE id = @id;

-- name: InboxList :many
SELECT e.id, e.type, e.object_id, e.received_at, e.processed_at, e.result, e.attempts,
    e.next_run_at, e.last_error, e.parked_at FROM provider_events e
WHERE e.received_at >= @since::timestamptz
    AND (sqlc.narg(type)::text IS NULL OR e.type = sqlc.narg(type)::text)
    AND (NOT @unprocessed::boolean OR e.processed_at IS NULL)
ORDER BY e.received_at DESC, e.id DESC
LIMIT @max_rows::integer;

-- name: InboxPark :execrows
UPDATE provider_events SET next_run_at = NULL, parked_at = clock_timestamp(),
    last_error = @last_error::text
WHERE id = @id AND processed_at IS NULL AND attempts = @attempts;

-- name: InboxReplay :execrows
-- Makes events due again: the processed and the parked ones alike.
UPDATE provider_events SET processed_at = NULL, result = NULL, parked_at = NULL, attempts = 0,
    last_error = NULL, next_run_at = clock_timestamp()
WHERE (sqlc.narg(id)::text IS NULL OR id = sqlc.narg(id)::text)
    AND received_at >= @since::timestamptz
    AND (sqlc.narg(type)::text IS NULL OR type = sqlc.narg(type)::text);

-- name: InboxStore :many
-- Stores a batch of events. A row that is there already is a repeated delivery and changes nothing.
-- One that need not be processed comes with its result; one that cannot be read is parked.
INSERT INTO provider_events (id, type, object_id, livemode, payload, processed_at, result,
    last_error, parked_at, next_run_at)
SELECT x.id, x.type, x.object_id, x.livemode,
    -- The payload is kept of what is ours by its tags, or by its object.
    CASE WHEN x.keep OR EXISTS (SELECT FROM charges c
        WHERE c.provider = 'stripe' AND c.provider_id = x.object_id OFFSET 0) -- planner
        THEN x.payload END,
    CASE WHEN x.result <> '' THEN clock_timestamp() END, NULLIF(x.result, ''),
    NULLIF(x.unreadable, ''), CASE WHEN x.unreadable <> '' THEN clock_timestamp() END,
    CASE WHEN x.result = '' AND x.unreadable = '' THEN clock_timestamp() END
FROM ROWS FROM (unnest(@ids::text[]), unnest(@types::text[]), unnest(@object_ids::text[]),
    unnest(@livemodes::boolean[]), unnest(@payloads::bytea[]),
    unnest(@kept::boolean[]), unnest(@results::text[]), unnest(@unreadable::text[])) AS x (id,
    type, object_id, livemode, payload, keep, result, unreadable)
ORDER BY x.id
ON CONFLICT (id) DO NOTHING
RETURNING id;

-- name: InboxSweep :execrows
-- Forgets up to @max_rows events that were processed so long ago, the oldest first. What is parked
-- or not processed is not in the index.
DELETE FROM provider_events e
WHERE e.id = ANY (ARRAY( -- planner
        SELECT d.id FROM provider_events d
        WHERE d.processed_at <= (SELECT clock_timestamp() - @ttl::interval) -- planner
            AND d.id > '' AND d.type > '' -- planner
        ORDER BY d.processed_at
        LIMIT @max_rows::integer
        FOR UPDATE SKIP LOCKED
    ))
    -- Again outside: an event that an operator made due again meanwhile stays.
    AND e.processed_at <= clock_timestamp() - @ttl::interval;

-- name: InboxTake :many
-- Takes due events, the longest due first; moving them into the future is the lease.
UPDATE provider_events e SET next_run_at = clock_timestamp() + @lease::interval,
    attempts = e.attempts + 1
WHERE e.id IN (
    SELECT d.id FROM provider_events d
    WHERE d.next_run_at <= (SELECT clock_timestamp()) AND d.id > '' AND d.type > '' -- planner
        ORDER BY d.next_run_at LIMIT @max_rows::integer FOR UPDATE SKIP LOCKED
)
RETURNING *;
