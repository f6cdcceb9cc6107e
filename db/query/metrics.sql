-- What is measured at a scrape, never for a request.

-- name: KeyGauges :one
-- Where the unfinished operations stand, by the clock of the database: one walk over the partial index of unfinished rows, and one probe
-- of the index of expiries. overdue_seconds: how long the operation that waits longest for a driver could have had one.
SELECT count(*) AS in_progress,
    count(*) FILTER (WHERE k.parked_at IS NOT NULL) AS parked,
    count(*) FILTER (WHERE k.parked_at IS NULL AND k.created_at <= clock_timestamp() - @stale_after::interval) AS stale,
    count(*) FILTER (WHERE k.lease_token IS NOT NULL AND k.locked_at > clock_timestamp() - @stale_after::interval) AS running,
    coalesce(extract(epoch FROM clock_timestamp() - min(k.created_at) FILTER (WHERE k.parked_at IS NULL)), 0)::float8 AS oldest_seconds,
    coalesce(extract(epoch FROM clock_timestamp() - min(k.parked_at)), 0)::float8 AS oldest_parked_seconds,
    coalesce(greatest(0, extract(epoch FROM clock_timestamp() - min(
        CASE WHEN k.parked_at IS NOT NULL THEN NULL
            WHEN k.lease_token IS NULL THEN coalesce(k.next_run_at, k.last_attempt_at, k.created_at)
            ELSE k.locked_at + @stale_after::interval END))), 0)::float8 AS overdue_seconds,
    coalesce(greatest(0, extract(epoch FROM clock_timestamp() - (
        SELECT min(d.expires_at) FROM idempotency_keys d WHERE d.expires_at IS NOT NULL))), 0)::float8 AS oldest_expired_seconds
FROM idempotency_keys k
WHERE k.status = 'in_progress';

-- name: InboxGauges :one
-- Events of the provider that are not processed and not parked, by the partial index of what is due or will be.
SELECT count(*) AS unprocessed,
    coalesce(greatest(0, extract(epoch FROM clock_timestamp() - min(e.next_run_at))), 0)::float8 AS overdue_seconds,
    (SELECT count(*) FROM provider_events p WHERE p.parked_at IS NOT NULL) AS parked
FROM provider_events e
WHERE e.next_run_at IS NOT NULL;

-- name: EventGauges :one
-- How far delivery is behind, by probes of small indexes. Events without a position are looked for from shortly before the newest that has one: while
-- some transaction stays open for hours, what was numbered since would be walked over from the beginning, at each scrape. One that commits later than that is
-- left to the numberers, which look for it. pending is counted up to a limit, so that it costs no more when there is no relay. An endpoint that fails has
-- deliveries due for longer than it could be tried, so overdue tells of the others.
WITH RECURSIVE waiting (endpoint, next_run_at) AS (
    (SELECT d.endpoint, d.next_run_at FROM deliveries d WHERE d.next_run_at IS NOT NULL ORDER BY d.endpoint, d.next_run_at LIMIT 1)
    UNION ALL
    SELECT n.endpoint, n.next_run_at FROM waiting w CROSS JOIN LATERAL (
        SELECT d.endpoint, d.next_run_at FROM deliveries d WHERE d.next_run_at IS NOT NULL AND d.endpoint > w.endpoint ORDER BY d.endpoint, d.next_run_at LIMIT 1
    ) n
), newest AS MATERIALIZED (
    SELECT o.created_at FROM outbox o WHERE o.position IS NOT NULL ORDER BY o.position DESC LIMIT 1
)
SELECT coalesce(greatest(0, extract(epoch FROM clock_timestamp() - (
        SELECT o.created_at FROM outbox o
        WHERE o.position IS NULL AND o.created_at >= coalesce((SELECT n.created_at FROM newest n) - @late_commit::interval, '-infinity')
        ORDER BY o.created_at LIMIT 1))), 0)::float8 AS unnumbered_seconds,
    coalesce(greatest(0, extract(epoch FROM clock_timestamp() - (
        SELECT min(w.next_run_at) FROM waiting w JOIN webhook_endpoints e ON e.number = w.endpoint WHERE e.disabled_at IS NULL AND e.failing_since IS NULL))), 0)::float8 AS overdue_seconds,
    (SELECT count(*) FROM (
        SELECT FROM deliveries d WHERE d.next_run_at IS NOT NULL ORDER BY d.endpoint, d.next_run_at LIMIT @pending_max::integer) p) AS pending,
    count(*) FILTER (WHERE e.disabled_at IS NOT NULL) AS disabled,
    count(*) FILTER (WHERE e.disabled_at IS NULL AND e.failing_since IS NOT NULL) AS failing,
    coalesce(greatest(0, extract(epoch FROM clock_timestamp() - min(e.failing_since) FILTER (WHERE e.disabled_at IS NULL))), 0)::float8 AS failing_seconds
FROM webhook_endpoints e;

-- name: StreamGauges :many
-- Age of the oldest event that a publisher has not come to: one probe of the index for each.
SELECT c.publisher, coalesce(greatest(0, extract(epoch FROM clock_timestamp() - (
    SELECT o.created_at FROM outbox o WHERE o.position IS NOT NULL AND o.position > c.position ORDER BY o.position LIMIT 1))), 0)::float8 AS lag_seconds
FROM outbox_cursors c
ORDER BY c.publisher;

-- name: ReceiptGauge :one
-- How long what waits longest for its receipt does: an event that was not read for receipts, or a mail that is due. One that is due for so long is too old to be sent.
SELECT coalesce(greatest(0, extract(epoch FROM clock_timestamp() - least(
    (SELECT o.created_at FROM outbox o WHERE o.position IS NOT NULL AND o.position > (SELECT c.position FROM receipts_cursor c) ORDER BY o.position LIMIT 1),
    (SELECT r.next_run_at FROM receipts r WHERE r.next_run_at >= (SELECT clock_timestamp()) - @oldest::interval ORDER BY r.next_run_at LIMIT 1)))), 0)::float8 AS overdue_seconds;
