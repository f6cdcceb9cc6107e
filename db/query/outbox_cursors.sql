-- How far each publisher of the stream has come.

-- name: CursorGet :one
SELECT position FROM outbox_cursors WHERE publisher = @publisher;

-- name: CursorMove :execrows
-- Compare-and-swap: of several at the same place one moves it on.
UPDATE outbox_cursors SET position = @moved_to, updated_at = clock_timestamp()
    WHERE publisher = @publisher AND position = @moved_from;

-- name: CursorNew :exec
-- A new publisher stands at the beginning.
INSERT INTO outbox_cursors (publisher) VALUES (@publisher) ON CONFLICT (publisher) DO NOTHING;

-- name: StreamGauges :many
-- Age of the oldest event that a publisher has not come to: one probe of the index for each.
SELECT c.publisher, coalesce(greatest(0, extract(epoch FROM clock_timestamp() - (
    SELECT o.created_at FROM outbox o WHERE o.position IS NOT NULL AND o.position > c.position
    ORDER BY o.position LIMIT 1))), 0)::float8 AS lag_seconds
FROM outbox_cursors c
ORDER BY c.publisher;
