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
