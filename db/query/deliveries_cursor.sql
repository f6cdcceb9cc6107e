-- How far events are queued for the endpoints that want them: one row.

-- name: DeliveriesQueue :one
-- Queues the next events for the endpoints that want them, and moves the cursor over them. The lock
-- on the cursor makes whoever queues take turns. One that had to wait may look at a snapshot that
-- is older than the turn before its own, and then finds nothing after the cursor. What a relay of
-- the release before queued is there already.
WITH here AS MATERIALIZED (
    SELECT c.position FROM deliveries_cursor c FOR UPDATE
), fresh AS MATERIALIZED (
    SELECT o.event_id, o.account_id, o.type, o.object_id, o.position FROM outbox o
    WHERE o.position IS NOT NULL AND o.position > (SELECT h.position FROM here h)
    ORDER BY o.position LIMIT @max_rows::integer
), queued AS (
    INSERT INTO deliveries (endpoint, event_id, position, object_id)
    SELECT e.number, f.event_id, f.position, f.object_id
    FROM fresh f JOIN webhook_endpoints e ON e.account_id = f.account_id
        AND e.disabled_at IS NULL AND e.enabled_events && ARRAY['*', f.type]
    ORDER BY f.position
    ON CONFLICT (endpoint, event_id) DO NOTHING
), moved AS (
    UPDATE deliveries_cursor c SET position = (SELECT max(f.position) FROM fresh f)
    WHERE EXISTS (SELECT FROM fresh)
)
SELECT count(*) AS passed FROM fresh;
