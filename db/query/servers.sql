-- Servers of this installation, and the history that each vouches for.

-- name: HistoryVouch :exec
-- This server has found all that it had claimed.
INSERT INTO servers AS s (id, vouched) VALUES (@id, @history) ON CONFLICT (id)
    DO UPDATE SET vouched = excluded.vouched, seen_at = clock_timestamp();

-- name: ServerLeave :exec
DELETE FROM servers WHERE id = @id;
