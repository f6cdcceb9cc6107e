-- Events from the provider.

-- name: InboxStore :many
-- Stores events in company; a row that is there already is a repeated delivery and changes nothing.
-- One that need not be processed comes with its result. The payload is kept of what is ours by its tags, or by its object; OFFSET keeps the planner from
-- reading all charges for that.
INSERT INTO provider_events (id, type, object_id, livemode, payload, processed_at, result, next_run_at)
SELECT x.id, x.type, x.object_id, x.livemode,
    CASE WHEN x.keep OR EXISTS (SELECT FROM charges c WHERE c.provider = 'stripe' AND c.provider_id = x.object_id OFFSET 0) THEN x.payload END,
    CASE WHEN x.result <> '' THEN clock_timestamp() END, NULLIF(x.result, ''), CASE WHEN x.result = '' THEN clock_timestamp() END
FROM ROWS FROM (unnest(@ids::text[]), unnest(@types::text[]), unnest(@object_ids::text[]), unnest(@livemodes::boolean[]), unnest(@payloads::bytea[]),
    unnest(@kept::boolean[]), unnest(@results::text[])) AS x (id, type, object_id, livemode, payload, keep, result)
ORDER BY x.id
ON CONFLICT (id) DO NOTHING
RETURNING id;

-- name: InboxTake :many
-- Takes due events, the longest due first; moving them into the future is the lease. Id and type are never empty: as in KeyLeaseDue.
UPDATE provider_events e SET next_run_at = clock_timestamp() + @lease::interval, attempts = e.attempts + 1
WHERE e.id IN (
    SELECT d.id FROM provider_events d WHERE d.next_run_at <= (SELECT clock_timestamp()) AND d.id > '' AND d.type > '' ORDER BY d.next_run_at LIMIT @most::integer FOR UPDATE SKIP LOCKED
)
RETURNING *;

-- name: InboxDone :execrows
-- The mark, in the transaction of the effect. It is the guard as well: an event is processed once.
UPDATE provider_events SET processed_at = clock_timestamp(), result = @result::text, next_run_at = NULL, last_error = NULL,
    payload = CASE WHEN @drop_payload::boolean THEN NULL ELSE payload END
WHERE id = @id AND processed_at IS NULL AND attempts = @attempts;

-- name: InboxFailed :execrows
UPDATE provider_events SET next_run_at = clock_timestamp() + @pause::interval, last_error = @last_error::text
WHERE id = @id AND processed_at IS NULL AND attempts = @attempts;

-- name: InboxPark :execrows
UPDATE provider_events SET next_run_at = NULL, parked_at = clock_timestamp(), last_error = @last_error::text
WHERE id = @id AND processed_at IS NULL AND attempts = @attempts;

-- name: InboxList :many
SELECT e.id, e.type, e.object_id, e.received_at, e.processed_at, e.result, e.attempts, e.next_run_at, e.last_error, e.parked_at FROM provider_events e
WHERE e.received_at >= @since::timestamptz
    AND (sqlc.narg(type)::text IS NULL OR e.type = sqlc.narg(type)::text)
    AND (NOT @unprocessed::boolean OR e.processed_at IS NULL)
ORDER BY e.received_at DESC, e.id DESC
LIMIT @most::integer;

-- name: InboxGet :one
SELECT * FROM provider_events WHERE id = @id;

-- name: InboxReplay :execrows
-- Makes events due again: the processed and the parked ones alike.
UPDATE provider_events SET processed_at = NULL, result = NULL, parked_at = NULL, attempts = 0, last_error = NULL, next_run_at = clock_timestamp()
WHERE (sqlc.narg(id)::text IS NULL OR id = sqlc.narg(id)::text)
    AND received_at >= @since::timestamptz
    AND (sqlc.narg(type)::text IS NULL OR type = sqlc.narg(type)::text);

-- name: InboxSweep :execrows
-- Forgets up to @most events that were processed so long ago, the oldest first. What is parked or not processed is not in the index. The condition stands
-- outside as well: an event that a person made due again meanwhile stays. An array, since for a list of rows the planner reads a table that is not yet large.
DELETE FROM provider_events e
WHERE e.id = ANY (ARRAY(
        SELECT d.id FROM provider_events d
        WHERE d.processed_at <= (SELECT clock_timestamp() - @ttl::interval) AND d.id > '' AND d.type > ''
        ORDER BY d.processed_at
        LIMIT @most::integer
        FOR UPDATE SKIP LOCKED
    ))
    AND e.processed_at <= clock_timestamp() - @ttl::interval;
