-- Events out: their order, the endpoints, the deliveries, the streams.

-- name: OutboxHasNew :one
-- Whether any committed event that was written since then has no position yet.
SELECT EXISTS (SELECT FROM outbox o WHERE o.position IS NULL AND o.created_at >= @since::timestamptz) AS has_new;

-- name: OutboxNumber :one
-- Gives positions to committed events and queues them for the endpoints that want them, all in one statement, so that nobody can stop in the middle
-- of it. The lock on the counter makes numberers take turns. One that had to wait looks at a snapshot that is older than the turn before its own: then
-- some of its rows have a position by now, which the UPDATE sees, and theirs in this turn stay unused.
WITH counter AS MATERIALIZED (
    SELECT c.last_position FROM outbox_counter c FOR UPDATE
), fresh AS MATERIALIZED (
    SELECT o.event_id, o.created_at, row_number() OVER (ORDER BY o.created_at, o.event_id) AS n
    FROM (SELECT u.event_id, u.created_at FROM outbox u WHERE u.position IS NULL AND u.created_at >= @since::timestamptz ORDER BY u.created_at, u.event_id LIMIT @most::integer) o
    WHERE EXISTS (SELECT FROM counter)
), numbered AS (
    UPDATE outbox o SET position = counter.last_position + fresh.n
    FROM fresh CROSS JOIN counter
    WHERE o.event_id = fresh.event_id AND o.position IS NULL
    RETURNING o.event_id, o.account_id, o.type, o.object_id, o.position
), moved AS (
    UPDATE outbox_counter c SET last_position = counter.last_position + (SELECT count(*) FROM fresh)
    FROM counter WHERE EXISTS (SELECT FROM fresh)
), queued AS (
    INSERT INTO deliveries (endpoint, event_id, position, object_id)
    SELECT e.number, n.event_id, n.position, n.object_id
    FROM numbered n JOIN webhook_endpoints e ON e.account_id = n.account_id AND e.disabled_at IS NULL AND e.enabled_events && ARRAY['*', n.type]
    ORDER BY n.position
    RETURNING 1
)
SELECT (SELECT count(*) FROM numbered) AS numbered, (SELECT count(*) FROM queued) AS queued,
    coalesce((SELECT max(f.created_at) FROM fresh f), @since::timestamptz)::timestamptz AS newest;

-- name: EventGet :one
SELECT * FROM outbox WHERE account_id = @account_id AND event_id = @event_id;

-- name: EventFind :one
-- For operators: of any account.
SELECT * FROM outbox WHERE event_id = @event_id;

-- name: EventList :many
-- A page in the order of positions, from the beginning or from just after a cursor. It asks for a range of account and position
-- together, which only their index has: of an equal account, statistics may say that nearly all events are its own, and then
-- all events are walked through for it.
SELECT * FROM outbox o
WHERE o.position IS NOT NULL
    AND (o.account_id, o.position) > (@account_id::text, @after::bigint) AND (o.account_id, o.position) <= (@account_id::text, 9223372036854775807)
ORDER BY o.account_id, o.position
LIMIT @most::integer;

-- name: EventListBefore :many
-- A page backwards, from the end or from just before a cursor.
SELECT * FROM outbox o
WHERE o.position IS NOT NULL
    AND (o.account_id, o.position) < (@account_id::text, @before::bigint) AND (o.account_id, o.position) > (@account_id::text, -1)
ORDER BY o.account_id DESC, o.position DESC
LIMIT @most::integer;

-- name: EventListOfType :many
-- Both again for one type.
SELECT * FROM outbox o
WHERE o.account_id = @account_id AND o.position IS NOT NULL
    AND (o.type, o.position) > (@type::text, @after::bigint) AND (o.type, o.position) <= (@type::text, 9223372036854775807)
ORDER BY o.type, o.position
LIMIT @most::integer;

-- name: EventListOfTypeBefore :many
-- Backwards.
SELECT * FROM outbox o
WHERE o.account_id = @account_id AND o.position IS NOT NULL
    AND (o.type, o.position) < (@type::text, @before::bigint) AND (o.type, o.position) > (@type::text, -1)
ORDER BY o.type DESC, o.position DESC
LIMIT @most::integer;

-- name: EventNewest :many
-- For operators: of any account, the newest first.
SELECT o.event_id, o.account_id, o.type, o.object_id, o.operation_id, o.position::bigint AS position, o.created_at,
    (SELECT count(*) FROM deliveries d WHERE d.event_id = o.event_id) AS deliveries,
    (SELECT count(*) FROM deliveries d WHERE d.event_id = o.event_id AND d.state = 'pending') AS pending,
    (SELECT count(*) FROM deliveries d WHERE d.event_id = o.event_id AND d.state = 'dead') AS dead
FROM outbox o
WHERE o.position IS NOT NULL AND o.created_at >= @since::timestamptz
    AND (sqlc.narg(type)::text IS NULL OR o.type = sqlc.narg(type)::text)
    AND (sqlc.narg(account_id)::text IS NULL OR o.account_id = sqlc.narg(account_id)::text)
    AND (NOT @undelivered::boolean OR EXISTS (SELECT FROM deliveries d WHERE d.event_id = o.event_id AND d.state <> 'delivered'))
ORDER BY o.position DESC
LIMIT @most::integer;

-- name: EventDeliveries :many
SELECT sqlc.embed(d), e.id AS endpoint_id, e.url, e.disabled_at FROM deliveries d JOIN webhook_endpoints e ON e.number = d.endpoint
WHERE d.event_id = @event_id ORDER BY e.id;

-- name: EventResend :many
-- Queues an event once more. What is being sent at this moment is left alone: it is on its way.
INSERT INTO deliveries AS d (endpoint, event_id, position, object_id)
SELECT e.number, o.event_id, o.position, o.object_id
FROM outbox o JOIN webhook_endpoints e ON e.account_id = o.account_id AND e.disabled_at IS NULL
WHERE o.account_id = @account_id AND o.event_id = @event_id AND o.position IS NOT NULL
    AND (e.id = @endpoint_id::text OR (@endpoint_id::text = '' AND e.enabled_events && ARRAY['*', o.type]))
ORDER BY e.number
FOR SHARE OF e
ON CONFLICT (endpoint, event_id) DO UPDATE SET
    state = 'pending', attempts = 0, first_attempt_at = NULL, finished_at = NULL,
    next_run_at = CASE WHEN d.leased_until > clock_timestamp() THEN d.next_run_at ELSE clock_timestamp() END
RETURNING d.endpoint;

-- name: EndpointPut :one
-- Registers, or registers anew: what is given replaces what was, and what was disabled is enabled. fresh: it was not there.
INSERT INTO webhook_endpoints AS e (account_id, id, url, enabled_events, description)
VALUES (@account_id, @id, @url, @enabled_events, @description)
ON CONFLICT (account_id, id) DO UPDATE SET
    url = excluded.url, enabled_events = excluded.enabled_events, description = excluded.description, updated_at = clock_timestamp(),
    disabled_at = NULL, disabled_reason = NULL,
    failing_since = CASE WHEN e.disabled_at IS NULL AND e.url = excluded.url THEN e.failing_since END
RETURNING sqlc.embed(e), (xmax = 0)::boolean AS fresh;

-- name: EndpointsLock :exec
-- Whoever registers endpoints of an account waits for others who do, so that each counts what the one before made. Charges refer to the row and do not wait.
SELECT a.id FROM accounts a WHERE a.id = @account_id FOR NO KEY UPDATE;

-- name: EndpointCount :one
SELECT count(*) FROM webhook_endpoints WHERE account_id = @account_id;

-- name: EndpointLock :one
SELECT * FROM webhook_endpoints WHERE account_id = @account_id AND id = @id FOR UPDATE;

-- name: EndpointWake :execrows
-- What waited for an endpoint is due at once, with all patience again.
UPDATE deliveries SET next_run_at = clock_timestamp(), attempts = 0, first_attempt_at = NULL
WHERE endpoint = @endpoint AND next_run_at IS NOT NULL AND (leased_until IS NULL OR leased_until < clock_timestamp());

-- name: EndpointGet :one
SELECT sqlc.embed(e), s.secret FROM webhook_endpoints e JOIN webhook_secrets s ON s.endpoint = e.number AND s.expires_at IS NULL
WHERE e.account_id = @account_id AND e.id = @id;

-- name: EndpointList :many
SELECT sqlc.embed(e), s.secret FROM webhook_endpoints e JOIN webhook_secrets s ON s.endpoint = e.number AND s.expires_at IS NULL
WHERE e.account_id = @account_id
ORDER BY e.id;

-- name: EndpointDelete :one
DELETE FROM webhook_endpoints WHERE account_id = @account_id AND id = @id RETURNING number;

-- name: DeliveriesDelete :execrows
DELETE FROM deliveries WHERE endpoint = @endpoint;

-- name: DeliveriesOfNobody :execrows
-- What a numberer queued for an endpoint that was being deleted at that moment. It takes no lock against that: whoever held one could stop all numbering.
WITH RECURSIVE pending (endpoint) AS (
    (SELECT d.endpoint FROM deliveries d WHERE d.next_run_at IS NOT NULL ORDER BY d.endpoint LIMIT 1)
    UNION ALL
    SELECT n.endpoint FROM pending p CROSS JOIN LATERAL (
        SELECT d.endpoint FROM deliveries d WHERE d.next_run_at IS NOT NULL AND d.endpoint > p.endpoint ORDER BY d.endpoint LIMIT 1
    ) n
)
DELETE FROM deliveries d USING pending p
WHERE d.endpoint = p.endpoint AND NOT EXISTS (SELECT FROM webhook_endpoints e WHERE e.number = p.endpoint);

-- name: SecretAdd :exec
INSERT INTO webhook_secrets (endpoint, secret) VALUES (@endpoint, @secret);

-- name: SecretRetire :exec
-- The current secret signs for a while longer.
UPDATE webhook_secrets SET expires_at = clock_timestamp() + @overlap::interval WHERE endpoint = @endpoint AND expires_at IS NULL;

-- name: SecretForget :exec
-- Secrets that sign no more, and the oldest when somebody rotates without end.
DELETE FROM webhook_secrets s WHERE s.endpoint = @endpoint AND s.expires_at IS NOT NULL AND (s.expires_at <= clock_timestamp() OR s.secret NOT IN (
    SELECT k.secret FROM webhook_secrets k WHERE k.endpoint = @endpoint AND k.expires_at IS NOT NULL ORDER BY k.created_at DESC LIMIT @keep::integer
));

-- name: DeliveryDueEndpoints :many
-- Endpoints with deliveries that are due: one probe of the index for each endpoint that has any pending, however many it has.
WITH RECURSIVE pending (endpoint, next_run_at) AS (
    (SELECT d.endpoint, d.next_run_at FROM deliveries d WHERE d.next_run_at IS NOT NULL ORDER BY d.endpoint, d.next_run_at LIMIT 1)
    UNION ALL
    SELECT n.endpoint, n.next_run_at FROM pending p CROSS JOIN LATERAL (
        SELECT d.endpoint, d.next_run_at FROM deliveries d WHERE d.next_run_at IS NOT NULL AND d.endpoint > p.endpoint ORDER BY d.endpoint, d.next_run_at LIMIT 1
    ) n
)
SELECT e.number, e.account_id, e.id, e.url, (e.failing_since IS NOT NULL)::boolean AS failing,
    (SELECT array_agg(s.secret ORDER BY s.created_at DESC) FROM webhook_secrets s
        WHERE s.endpoint = e.number AND (s.expires_at IS NULL OR s.expires_at > clock_timestamp()))::text[] AS secrets
FROM pending p JOIN webhook_endpoints e ON e.number = p.endpoint
WHERE p.next_run_at <= clock_timestamp() AND e.disabled_at IS NULL
ORDER BY p.next_run_at;

-- name: DeliveryClaim :many
-- Takes due deliveries of some endpoints, so many of each; moving them to the end of the lease is the lease. One waits while an earlier event of its
-- object is not delivered to the same endpoint, unless that one failed so often that it may be the only one that does.
WITH x AS (
    SELECT * FROM ROWS FROM (unnest(@endpoints::bigint[]), unnest(@mosts::integer[])) AS x (endpoint, most)
), due AS MATERIALIZED (
    SELECT l.endpoint, l.event_id FROM x CROSS JOIN LATERAL (
        SELECT d.endpoint, d.event_id FROM deliveries d
        WHERE d.endpoint = x.endpoint AND d.next_run_at <= clock_timestamp()
            AND NOT EXISTS (
                SELECT FROM deliveries b WHERE b.endpoint = d.endpoint AND b.object_id = d.object_id AND b.position < d.position
                    AND b.next_run_at IS NOT NULL AND b.attempts < @blocking_attempts::integer)
        ORDER BY d.next_run_at LIMIT x.most
        FOR UPDATE SKIP LOCKED
    ) l
)
UPDATE deliveries d SET claims = d.claims + 1, attempts = d.attempts + 1, next_run_at = clock_timestamp() + @lease::interval,
    leased_until = clock_timestamp() + @lease::interval, first_attempt_at = coalesce(d.first_attempt_at, clock_timestamp()), last_attempt_at = clock_timestamp()
FROM due JOIN outbox o ON o.event_id = due.event_id
WHERE d.endpoint = due.endpoint AND d.event_id = due.event_id
RETURNING d.endpoint, d.event_id, d.claims, d.attempts, o.type, o.payload;

-- name: DeliverySettle :many
-- What came of some tries, of those whose lease is still held. pause 0: delivered. A try that used up its patience disables the endpoint if that has
-- failed all along, and is given up on if it has not. disabled: this very try did it. A 410 to a try that began before the endpoint was registered again disables
-- nothing: it speaks of what was.
WITH x AS (
    SELECT * FROM ROWS FROM (
        unnest(@endpoints::bigint[]), unnest(@event_ids::text[]), unnest(@claims::bigint[]), unnest(@delivered::boolean[]), unnest(@gone::boolean[]),
        unnest(@pause_ms::bigint[]), unnest(@statuses::smallint[]), unnest(@bodies::bytea[]), unnest(@errors::text[])
    ) AS x (endpoint, event_id, claim, delivered, gone, pause_ms, status, body, error)
), held AS MATERIALIZED (
    SELECT x.*, (NOT x.delivered AND d.attempts >= @attempts_min::integer AND d.first_attempt_at < clock_timestamp() - @patience::interval) AS over, d.last_attempt_at AS begun_at
    FROM x JOIN deliveries d ON d.endpoint = x.endpoint AND d.event_id = x.event_id AND d.claims = x.claim AND d.next_run_at IS NOT NULL
    ORDER BY x.endpoint, x.event_id
    FOR UPDATE OF d
), worked AS (
    SELECT held.endpoint, bool_or(held.delivered) AS delivered, max(held.begun_at) FILTER (WHERE held.gone) AS gone_at, bool_or(held.over) AS over FROM held GROUP BY held.endpoint
), ends AS (
    SELECT e.number, w.gone_at IS NOT NULL AS gone, w.delivered,
        (e.disabled_at IS NULL AND (w.gone_at >= e.updated_at OR (w.over AND NOT w.delivered AND e.failing_since < clock_timestamp() - @half_patience::interval))) IS TRUE AS disable
    FROM worked w JOIN webhook_endpoints e ON e.number = w.endpoint
    WHERE (w.delivered AND e.failing_since IS NOT NULL) OR (NOT w.delivered AND e.failing_since IS NULL) OR w.gone_at IS NOT NULL OR w.over
    ORDER BY e.number
    FOR UPDATE OF e
), told AS (
    UPDATE webhook_endpoints e SET
        failing_since = CASE WHEN NOT ends.delivered THEN coalesce(e.failing_since, clock_timestamp()) END,
        disabled_at = CASE WHEN ends.disable THEN clock_timestamp() ELSE e.disabled_at END,
        disabled_reason = CASE WHEN NOT ends.disable THEN e.disabled_reason WHEN ends.gone THEN 'it answered 410 Gone' ELSE 'nothing was delivered for days' END
    FROM ends WHERE e.number = ends.number
    RETURNING e.number, ends.disable
), settled AS (
    UPDATE deliveries d SET
        state = CASE WHEN held.delivered THEN 'delivered' WHEN held.over AND NOT disabling.yes THEN 'dead' ELSE 'pending' END,
        finished_at = CASE WHEN held.delivered OR (held.over AND NOT disabling.yes) THEN clock_timestamp() END,
        next_run_at = CASE WHEN held.delivered OR (held.over AND NOT disabling.yes) THEN NULL ELSE clock_timestamp() + make_interval(secs => held.pause_ms / 1000.0) END,
        leased_until = NULL, last_status = NULLIF(held.status, 0), last_body = held.body, last_error = NULLIF(held.error, '')
    FROM held CROSS JOIN LATERAL (
        SELECT EXISTS (SELECT FROM told WHERE told.number = held.endpoint AND told.disable)
            OR EXISTS (SELECT FROM webhook_endpoints e WHERE e.number = held.endpoint AND e.disabled_at IS NOT NULL) AS yes
    ) disabling
    WHERE d.endpoint = held.endpoint AND d.event_id = held.event_id
    RETURNING d.endpoint, d.event_id, d.state
)
SELECT s.endpoint, s.event_id, s.state, coalesce((SELECT told.disable FROM told WHERE told.number = s.endpoint), false)::boolean AS disabled
FROM settled s;

-- name: EventsClean :one
-- Looks at the next events after a position and forgets, with their deliveries, those that are old, that every endpoint has or was given up on, and that
-- every stream has: exactly the rows that were looked at. young: the last of them is not old, so nothing after it is. The newest of each type of an account
-- stays: there stands the cursor of a reader who has seen all, and it must be there when something comes after it, however long that takes.
WITH looked AS MATERIALIZED (
    SELECT o.event_id, o.position, o.account_id, o.type, o.created_at < clock_timestamp() - @ttl::interval AS is_old FROM outbox o
    WHERE o.position IS NOT NULL AND o.position > @after::bigint
    ORDER BY o.position LIMIT @most::integer
), old AS MATERIALIZED (
    SELECT l.event_id, l.account_id, l.type, l.position FROM looked l
    WHERE l.is_old AND EXISTS (SELECT FROM outbox n WHERE n.account_id = l.account_id AND n.type = l.type AND n.position > l.position)
        AND l.position <= (SELECT coalesce(min(c.position), 9223372036854775807) FROM outbox_cursors c)
        AND NOT EXISTS (SELECT FROM deliveries d WHERE d.event_id = l.event_id AND d.next_run_at IS NOT NULL)
), gone AS (
    DELETE FROM deliveries d USING old WHERE d.event_id = old.event_id AND d.next_run_at IS NULL
), cleaned AS (
    DELETE FROM outbox o USING old WHERE o.event_id = old.event_id RETURNING o.event_id
), told AS (
    INSERT INTO outbox_cleaned AS c (account_id, type, position)
    SELECT old.account_id, old.type, max(old.position) FROM old GROUP BY old.account_id, old.type ORDER BY old.account_id, old.type
    ON CONFLICT (account_id, type) DO UPDATE SET position = greatest(c.position, excluded.position)
)
SELECT (SELECT count(*) FROM looked) AS looked, (SELECT count(*) FROM cleaned) AS cleaned,
    coalesce((SELECT max(l.position) FROM looked l), 0)::bigint AS last_position,
    coalesce((SELECT NOT l.is_old FROM looked l ORDER BY l.position DESC LIMIT 1), true)::boolean AS young;

-- name: EventsCleanedUpTo :one
-- The highest position of an event of the account, of one type or of any, that was forgotten.
SELECT coalesce(max(c.position), 0)::bigint AS position FROM outbox_cleaned c
WHERE c.account_id = @account_id AND (sqlc.narg(type)::text IS NULL OR c.type = sqlc.narg(type)::text);

-- name: CursorNew :exec
-- A new publisher stands at the beginning.
INSERT INTO outbox_cursors (publisher) VALUES (@publisher) ON CONFLICT (publisher) DO NOTHING;

-- name: CursorGet :one
SELECT position FROM outbox_cursors WHERE publisher = @publisher;

-- name: CursorMove :execrows
-- Compare-and-swap: of several at the same place one moves it on.
UPDATE outbox_cursors SET position = @moved_to, updated_at = clock_timestamp() WHERE publisher = @publisher AND position = @moved_from;

-- name: StreamEvents :many
SELECT o.event_id, o.account_id, o.type, o.object_id, o.payload, o.position::bigint AS position FROM outbox o
WHERE o.position IS NOT NULL AND o.position > @after::bigint
ORDER BY o.position
LIMIT @most::integer;
