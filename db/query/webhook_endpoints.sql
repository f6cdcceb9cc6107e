-- Endpoints that events are sent to.

-- name: EndpointChange :one
-- Whoever calls it has locked the row and says what of it stays. One that is disabled already keeps
-- since when and why.
UPDATE webhook_endpoints SET
    url = @url, enabled_events = @enabled_events, description = @description,
    metadata = @metadata, updated_at = clock_timestamp(),
    disabled_at = CASE WHEN @disabled::boolean THEN coalesce(disabled_at, clock_timestamp()) END,
    disabled_reason = CASE WHEN @disabled THEN coalesce(disabled_reason, @reason::text) END,
    failing_since = CASE WHEN @disabled OR disabled_at IS NULL AND url = @url THEN failing_since END
WHERE number = @number
RETURNING *;

-- name: EndpointCount :one
SELECT count(*) FROM webhook_endpoints WHERE account_id = @account_id;

-- name: EndpointDelete :one
DELETE FROM webhook_endpoints WHERE account_id = @account_id AND id = @id RETURNING number;

-- name: EndpointGet :one
SELECT sqlc.embed(e), s.secret
FROM webhook_endpoints e JOIN webhook_secrets s ON s.endpoint = e.number AND s.expires_at IS NULL
WHERE e.account_id = @account_id AND e.id = @id;

-- name: EndpointList :many
SELECT sqlc.embed(e), s.secret
FROM webhook_endpoints e JOIN webhook_secrets s ON s.endpoint = e.number AND s.expires_at IS NULL
WHERE e.account_id = @account_id
ORDER BY e.number DESC;

-- name: EndpointLock :one
SELECT * FROM webhook_endpoints WHERE account_id = @account_id AND id = @id FOR UPDATE;

-- name: EndpointPut :one
-- Registers, or registers anew: what is given replaces what was, and what was disabled is enabled.
-- Its metadata stays. fresh: it was not there.
INSERT INTO webhook_endpoints AS e (account_id, id, url, enabled_events, description, metadata)
VALUES (@account_id, @id, @url, @enabled_events, @description, @metadata)
ON CONFLICT (account_id, id) DO UPDATE SET
    url = excluded.url, enabled_events = excluded.enabled_events,
    description = excluded.description, updated_at = clock_timestamp(),
    disabled_at = NULL, disabled_reason = NULL,
    failing_since = CASE WHEN e.disabled_at IS NULL AND e.url = excluded.url
        THEN e.failing_since END
RETURNING sqlc.embed(e), (xmax = 0)::boolean AS fresh;

-- name: EventGauges :one
-- How far delivery is behind, by probes of small indexes. Events without a position are looked for
-- from shortly before the newest that has one: while some transaction stays open for hours, what
-- was numbered since would be walked over from the beginning, at each scrape. One that commits
-- later than that is left to the sequencers, which look for it. unnumbered_seconds is also of
-- events that have a position and are not queued. pending is counted up to a limit, so that it
-- costs no more when there is no relay. An endpoint that fails has deliveries due for longer than
-- it could be tried, so overdue is of the others.
WITH RECURSIVE waiting (endpoint, next_run_at) AS (
    (SELECT d.endpoint, d.next_run_at FROM deliveries d WHERE d.next_run_at IS NOT NULL
        ORDER BY d.endpoint, d.next_run_at LIMIT 1)
    UNION ALL
    SELECT n.endpoint, n.next_run_at FROM waiting w CROSS JOIN LATERAL (
        SELECT d.endpoint, d.next_run_at FROM deliveries d
        WHERE d.next_run_at IS NOT NULL AND d.endpoint > w.endpoint ORDER BY d.endpoint,
            d.next_run_at LIMIT 1
    ) n
), newest AS MATERIALIZED (
    SELECT o.created_at FROM outbox o WHERE o.position IS NOT NULL ORDER BY o.position DESC LIMIT 1
)
SELECT coalesce(greatest(0, extract(epoch FROM clock_timestamp() - least(
        (SELECT o.created_at FROM outbox o
        WHERE o.position IS NULL AND o.created_at >= coalesce((SELECT n.created_at
            FROM newest n) - @late_commit::interval, '-infinity')
        ORDER BY o.created_at LIMIT 1),
        (SELECT o.created_at FROM outbox o
        WHERE o.position IS NOT NULL AND o.position > (SELECT c.position FROM deliveries_cursor c)
        ORDER BY o.position LIMIT 1)))), 0)::float8 AS unnumbered_seconds,
    coalesce(greatest(0, extract(epoch FROM clock_timestamp() - (
        SELECT min(w.next_run_at) FROM waiting w JOIN webhook_endpoints e ON e.number = w.endpoint
        WHERE e.disabled_at IS NULL AND e.failing_since IS NULL))), 0)::float8 AS overdue_seconds,
    (SELECT count(*) FROM (
        SELECT FROM deliveries d WHERE d.next_run_at IS NOT NULL
        ORDER BY d.endpoint, d.next_run_at LIMIT @pending_max::integer) p) AS pending,
    count(*) FILTER (WHERE e.disabled_at IS NOT NULL) AS disabled,
    count(*) FILTER (WHERE e.disabled_at IS NULL AND e.failing_since IS NOT NULL) AS failing,
    coalesce(greatest(0, extract(epoch FROM clock_timestamp() - min(e.failing_since)
        FILTER (WHERE e.disabled_at IS NULL))), 0)::float8 AS failing_seconds
FROM webhook_endpoints e;
