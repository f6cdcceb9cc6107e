-- The mark that only grows: one that is smaller than a server remembers belongs to an older copy of
-- the database.

-- name: HistoryMark :one
-- Counts the mark up, and says that this server is there.
WITH seen AS (
    INSERT INTO servers AS s (id) VALUES (@id) ON CONFLICT (id)
        DO UPDATE SET seen_at = clock_timestamp()
), gone AS (
    DELETE FROM servers s WHERE s.seen_at < clock_timestamp() - @gone::interval AND s.id <> @id
)
UPDATE history_mark SET mark = greatest(mark, @mark::bigint) + 1 RETURNING mark;
