-- How far events were read for receipts.

-- name: ReceiptsBegin :exec
-- The first time, the cursor stands at the end: what was before is not looked at.
INSERT INTO receipts_cursor (position) SELECT c.last_position FROM outbox_counter c
    ON CONFLICT (only_row) DO NOTHING;

-- name: ReceiptsHaveNew :one
-- Whether there is an event after the cursor: one look into an index, and no lock.
SELECT coalesce((SELECT max(o.position) FROM outbox o
    WHERE o.position IS NOT NULL) > (SELECT c.position FROM receipts_cursor c),
    false)::boolean AS have_new;
