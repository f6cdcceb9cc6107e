-- Deliveries of events to endpoints.

-- name: DeliveriesDelete :execrows
DELETE FROM deliveries WHERE endpoint = @endpoint;

-- name: DeliveriesOfNobody :execrows
-- What was queued for an endpoint that was being deleted at that moment. Queueing takes no lock
-- against that: whoever held one could stop it for all.
WITH RECURSIVE pending (endpoint) AS (
    (SELECT d.endpoint FROM deliveries d WHERE d.next_run_at IS NOT NULL
        ORDER BY d.endpoint LIMIT 1)
    UNION ALL
    SELECT n.endpoint FROM pending p CROSS JOIN LATERAL (
        SELECT d.endpoint FROM deliveries d
        WHERE d.next_run_at IS NOT NULL AND d.endpoint > p.endpoint ORDER BY d.endpoint LIMIT 1
    ) n
)
DELETE FROM deliveries d WHERE d.endpoint = ANY (ARRAY( -- planner
    SELECT p.endpoint FROM pending p
    WHERE NOT EXISTS (SELECT FROM webhook_endpoints e WHERE e.number = p.endpoint)
));

-- name: DeliveryClaim :many
-- Takes due deliveries of some endpoints, so many of each; moving them to the end of the lease is
-- the lease. One waits while an earlier event of its object is not delivered to the same endpoint,
-- unless that one failed so often that it may be the only one that does.
WITH x AS (
    SELECT * FROM ROWS FROM (unnest(@endpoints::bigint[]),
        unnest(@limits::integer[])) AS x (endpoint, max_rows)
), due AS MATERIALIZED (
    SELECT l.endpoint, l.event_id FROM x CROSS JOIN LATERAL (
        SELECT d.endpoint, d.event_id FROM deliveries d
        WHERE d.endpoint = x.endpoint AND d.next_run_at >= '-infinity' -- planner
            AND d.next_run_at <= (SELECT clock_timestamp()) -- planner
            AND NOT EXISTS (
                SELECT FROM deliveries b WHERE b.endpoint = d.endpoint AND b.object_id = d.object_id
                    AND b.position < d.position
                    AND b.next_run_at IS NOT NULL AND b.attempts < @blocking_attempts::integer
                OFFSET 0) -- planner
        ORDER BY d.next_run_at LIMIT x.max_rows
        FOR UPDATE SKIP LOCKED
    ) l
)
UPDATE deliveries d SET claims = d.claims + 1, attempts = d.attempts + 1,
    next_run_at = clock_timestamp() + @lease::interval,
    leased_until = clock_timestamp() + @lease::interval,
    first_attempt_at = coalesce(d.first_attempt_at, clock_timestamp()),
    last_attempt_at = clock_timestamp()
FROM due CROSS JOIN LATERAL (
    SELECT e.type, e.payload FROM outbox e WHERE e.event_id = due.event_id LIMIT 1 -- planner
) o
WHERE d.endpoint = due.endpoint AND d.event_id = due.event_id
RETURNING d.endpoint, d.event_id, d.claims, d.attempts, o.type, o.payload;

-- name: DeliveryDueEndpoints :many
-- Endpoints with deliveries that are due: one probe of the index for each endpoint that has any
-- pending, however many it has.
WITH RECURSIVE pending (endpoint, next_run_at) AS (
    (SELECT d.endpoint, d.next_run_at FROM deliveries d WHERE d.next_run_at IS NOT NULL
        ORDER BY d.endpoint, d.next_run_at LIMIT 1)
    UNION ALL
    SELECT n.endpoint, n.next_run_at FROM pending p CROSS JOIN LATERAL (
        SELECT d.endpoint, d.next_run_at FROM deliveries d
        WHERE d.next_run_at IS NOT NULL AND d.endpoint > p.endpoint ORDER BY d.endpoint,
            d.next_run_at LIMIT 1
    ) n
)
SELECT e.number, e.account_id, e.id, e.url, (e.failing_since IS NOT NULL)::boolean AS failing,
    (SELECT array_agg(s.secret ORDER BY s.created_at DESC) FROM webhook_secrets s
        WHERE s.endpoint = e.number AND (s.expires_at IS NULL
            OR s.expires_at > clock_timestamp()))::text[] AS secrets
FROM pending p JOIN webhook_endpoints e ON e.number = p.endpoint
WHERE p.next_run_at <= clock_timestamp() AND e.disabled_at IS NULL
ORDER BY p.next_run_at;

-- name: DeliverySettle :many
-- What came of some tries, of those whose lease is still held. pause 0: delivered. A try that used
-- up its patience disables the endpoint if that has failed all along, and is given up on if it has
-- not. disabled: this very try did it. A 410 to a try that began before the endpoint was registered
-- again disables nothing: it speaks of what was.
WITH x AS (
    SELECT * FROM ROWS FROM (
        unnest(@endpoints::bigint[]), unnest(@event_ids::text[]), unnest(@claims::bigint[]),
        unnest(@delivered::boolean[]), unnest(@gone::boolean[]), unnest(@pause_ms::bigint[]),
        unnest(@statuses::smallint[]), unnest(@bodies::bytea[]), unnest(@errors::text[])
    ) AS x (endpoint, event_id, claim, delivered, gone, pause_ms, status, body, error)
), held AS MATERIALIZED (
    SELECT x.*, (NOT x.delivered AND d.attempts >= @attempts_min::integer
        AND d.first_attempt_at < clock_timestamp() - @patience::interval) AS over,
        d.last_attempt_at AS begun_at
    FROM (SELECT * FROM x ORDER BY x.endpoint, x.event_id) x CROSS JOIN LATERAL (
        SELECT b.attempts, b.first_attempt_at, b.last_attempt_at FROM deliveries b
        WHERE b.endpoint = x.endpoint AND b.event_id = x.event_id
            AND b.claims = x.claim AND b.state = 'pending' -- planner
        LIMIT 1 -- planner
        FOR UPDATE
    ) d
), worked AS (
    SELECT held.endpoint, bool_or(held.delivered) AS delivered,
        max(held.begun_at) FILTER (WHERE held.gone) AS gone_at, bool_or(held.over) AS over FROM held
        GROUP BY held.endpoint
), ends AS (
    SELECT e.number, w.gone_at IS NOT NULL AS gone, w.delivered,
        (e.disabled_at IS NULL AND (w.gone_at >= e.updated_at
            OR (w.over AND NOT w.delivered
            AND e.failing_since < clock_timestamp() - @half_patience::interval))) IS TRUE AS disable
    FROM worked w JOIN webhook_endpoints e ON e.number = w.endpoint
    WHERE (w.delivered AND e.failing_since IS NOT NULL)
        OR (NOT w.delivered AND e.failing_since IS NULL) OR w.gone_at IS NOT NULL OR w.over
    ORDER BY e.number
    FOR UPDATE OF e
), told AS (
    UPDATE webhook_endpoints e SET
        failing_since = CASE WHEN NOT ends.delivered
            THEN coalesce(e.failing_since, clock_timestamp()) END,
        disabled_at = CASE WHEN ends.disable THEN clock_timestamp() ELSE e.disabled_at END,
        disabled_reason = CASE WHEN NOT ends.disable THEN e.disabled_reason WHEN ends.gone
            THEN 'it answered 410 Gone' ELSE 'nothing was delivered for days' END
    FROM ends WHERE e.number = ends.number
    RETURNING e.number, ends.disable
), settled AS (
    UPDATE deliveries d SET
        state = CASE WHEN held.delivered THEN 'delivered' WHEN held.over AND NOT disabling.yes
            THEN 'dead' ELSE 'pending' END,
        finished_at = CASE WHEN held.delivered OR (held.over AND NOT disabling.yes)
            THEN clock_timestamp() END,
        next_run_at = CASE WHEN held.delivered OR (held.over AND NOT disabling.yes) THEN NULL
            ELSE clock_timestamp() + make_interval(secs => held.pause_ms / 1000.0) END,
        leased_until = NULL, last_status = NULLIF(held.status, 0), last_body = held.body,
        last_error = NULLIF(held.error, '')
    FROM held CROSS JOIN LATERAL (
        SELECT EXISTS (SELECT FROM told WHERE told.number = held.endpoint AND told.disable)
            OR EXISTS (SELECT FROM webhook_endpoints e WHERE e.number = held.endpoint
                AND e.disabled_at IS NOT NULL) AS yes
    ) disabling
    WHERE d.endpoint = held.endpoint AND d.event_id = held.event_id
    RETURNING d.endpoint, d.event_id, d.state
)
SELECT s.endpoint, s.event_id, s.state,
    coalesce((SELECT told.disable FROM told WHERE told.number = s.endpoint),
    false)::boolean AS disabled
FROM settled s;

-- name: EndpointWake :execrows
-- What waited for an endpoint is due at once, with all patience again.
UPDATE deliveries SET next_run_at = clock_timestamp(), attempts = 0, first_attempt_at = NULL
WHERE endpoint = @endpoint AND next_run_at IS NOT NULL
    AND (leased_until IS NULL OR leased_until < clock_timestamp());

-- name: EventDeliveries :many
SELECT sqlc.embed(d), e.id AS endpoint_id, e.url, e.disabled_at
FROM deliveries d JOIN webhook_endpoints e ON e.number = d.endpoint
WHERE d.event_id = @event_id ORDER BY e.id;

-- name: EventResend :many
-- Queues an event once more. What is being sent at this moment is left alone: it is on its way.
INSERT INTO deliveries AS d (endpoint, event_id, position, object_id)
SELECT e.number, o.event_id, o.position, o.object_id
FROM outbox o JOIN webhook_endpoints e ON e.account_id = o.account_id AND e.disabled_at IS NULL
WHERE o.account_id = @account_id AND o.event_id = @event_id AND o.position IS NOT NULL
    AND (e.id = @endpoint_id::text
        OR (@endpoint_id::text = '' AND e.enabled_events && ARRAY['*', o.type]))
ORDER BY e.number
FOR SHARE OF e
ON CONFLICT (endpoint, event_id) DO UPDATE SET
    state = 'pending', attempts = 0, first_attempt_at = NULL, finished_at = NULL,
    next_run_at = CASE WHEN d.leased_until > clock_timestamp() THEN d.next_run_at
        ELSE clock_timestamp() END
RETURNING d.endpoint;
