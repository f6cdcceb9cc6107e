-- Receipt mails: what events ask for, who sends what, what came of it. Of every state only pending is ever sent; no statement leads from another one back to it but
-- the settlement of an attempt of which its owner knows that the mail server did not take the mail.

-- name: ReceiptsBegin :exec
-- The first time, the cursor stands at the end: what was before is not looked at.
INSERT INTO receipts_cursor (position) SELECT c.last_position FROM outbox_counter c ON CONFLICT (only_row) DO NOTHING;

-- name: ReceiptsHaveNew :one
-- Whether there is an event after the cursor: one look into an index, and no lock.
SELECT coalesce((SELECT max(o.position) FROM outbox o WHERE o.position IS NOT NULL) > (SELECT c.position FROM receipts_cursor c), false)::boolean AS have_new;

-- name: ReceiptsRead :one
-- Moves the cursor over the next events, and makes a receipt of each charge whose money was taken, that wants one, and that has none. The lock on the cursor makes
-- readers take turns; what was told before the database was put back may have been mailed since, and counts as too old; one that had to wait may look at a snapshot that is older than the turn before its own, and then finds nothing after the cursor. A charge that is
-- captured by now has its receipt for either event; what it says is what the charge is. LATERAL and LIMIT, here and below: charges are found one by one by their ids,
-- also by a plan of the day when the table was empty.
WITH here AS MATERIALIZED (
    SELECT c.position FROM receipts_cursor c FOR UPDATE
), looked AS MATERIALIZED (
    SELECT o.event_id, o.account_id, o.object_id, o.type, o.position, o.created_at FROM outbox o
    WHERE o.position IS NOT NULL AND o.position > (SELECT h.position FROM here h)
    ORDER BY o.position LIMIT @most::integer
), moved AS (
    UPDATE receipts_cursor c SET position = (SELECT max(l.position) FROM looked l), updated_at = clock_timestamp() WHERE EXISTS (SELECT FROM looked)
), made AS (
    INSERT INTO receipts (charge_id, account_id, event_id, taken_at, state, next_run_at, finished_at)
    SELECT c.id, c.account_id, l.event_id, l.created_at, CASE WHEN old.yes THEN 'expired' ELSE 'pending' END,
        CASE WHEN NOT old.yes THEN clock_timestamp() END, CASE WHEN old.yes THEN clock_timestamp() END
    FROM looked l
        CROSS JOIN LATERAL (SELECT d.id, d.account_id, d.own_receipt, d.captured FROM charges d WHERE d.id = l.object_id AND (d.account_id = l.account_id) IS TRUE LIMIT 1) c
        CROSS JOIN LATERAL (SELECT l.created_at < clock_timestamp() - @oldest::interval
            OR l.created_at < (SELECT max(r.began_at) FROM recoveries r WHERE r.lossy) IS TRUE AS yes) old
    WHERE l.type IN ('charge.succeeded', 'charge.captured') AND c.own_receipt AND c.captured
    ORDER BY l.position
    ON CONFLICT (charge_id) DO NOTHING
    RETURNING state
)
SELECT (SELECT count(*) FROM looked) AS looked, (SELECT count(*) FROM made) AS made, (SELECT count(*) FROM made WHERE state = 'expired') AS expired;

-- name: ReceiptsClaim :many
-- Takes receipts that are due: from here on only the caller sends them, and only this once. What is too old meanwhile ends instead. Ids are never empty: as in KeyLeaseDue.
WITH due AS MATERIALIZED (
    SELECT r.charge_id, r.taken_at < clock_timestamp() - @oldest::interval AS is_old FROM receipts r
    WHERE r.next_run_at <= (SELECT clock_timestamp()) AND r.charge_id > '' AND r.account_id > '' AND r.event_id > ''
    ORDER BY r.next_run_at LIMIT @most::integer
    FOR UPDATE SKIP LOCKED
), taken AS (
    UPDATE receipts r SET next_run_at = NULL,
        state = CASE WHEN due.is_old THEN 'expired' ELSE 'sending' END,
        finished_at = CASE WHEN due.is_old THEN clock_timestamp() END,
        attempts = CASE WHEN due.is_old THEN r.attempts ELSE r.attempts + 1 END,
        last_attempt_at = CASE WHEN due.is_old THEN r.last_attempt_at ELSE clock_timestamp() END
    FROM due WHERE r.charge_id = due.charge_id
    RETURNING r.charge_id, r.account_id, r.event_id, r.state, r.attempts, r.taken_at
)
SELECT t.charge_id, t.event_id, t.state, t.attempts, t.taken_at, a.name AS account_name, c.amount_captured, c.currency, c.description, c.suffix, c.address, c.livemode
FROM taken t CROSS JOIN LATERAL (
    SELECT d.amount_captured, d.currency, coalesce(d.description, '')::text AS description, coalesce(d.statement_descriptor_suffix, '')::text AS suffix,
        coalesce(d.receipt_email, '')::text AS address, d.livemode
    FROM charges d WHERE d.id = t.charge_id LIMIT 1
) c CROSS JOIN LATERAL (SELECT b.name FROM accounts b WHERE b.id = t.account_id LIMIT 1) a;

-- name: ReceiptSettle :one
-- What came of an attempt, by whoever made it. Run again after a lost answer, it finds its own state. One that was given up as unknown meanwhile is known again. What is
-- to be tried later ends instead when it would be too old by then.
WITH x AS (
    SELECT @charge_id::text AS charge_id, @attempts::integer AS attempts, @state::text AS state, @code::smallint AS code, @reason::text AS reason,
        clock_timestamp() + @pause::interval AS next_run_at, @oldest::interval AS oldest
), held AS (
    SELECT r.charge_id, x.state = 'pending' AND r.taken_at >= x.next_run_at - x.oldest AS again FROM x JOIN receipts r ON r.charge_id = x.charge_id
    WHERE r.attempts = x.attempts AND r.state IN ('sending', 'unknown', 'expired', x.state)
    FOR UPDATE OF r
)
UPDATE receipts r SET state = CASE WHEN held.again OR x.state <> 'pending' THEN x.state ELSE 'expired' END,
    next_run_at = CASE WHEN held.again THEN x.next_run_at END, finished_at = CASE WHEN NOT held.again THEN clock_timestamp() END,
    last_code = NULLIF(x.code, 0), last_error = NULLIF(x.reason, '')
FROM held CROSS JOIN x WHERE r.charge_id = held.charge_id
RETURNING r.state;

-- name: ReceiptsAbandoned :execrows
-- What was being sent so long ago that whoever did is gone: whether the mail server has it is not known.
UPDATE receipts SET state = 'unknown', finished_at = clock_timestamp(), last_code = NULL, last_error = 'whoever sent it did not write what came of it'
WHERE state = 'sending' AND last_attempt_at < (SELECT clock_timestamp()) - @after::interval;

-- name: ReceiptsClean :execrows
-- Forgets receipts that are old, some at a time. None of their charges can get another: it is too old, and its events are read. Ids are never empty: as in KeyLeaseDue.
DELETE FROM receipts r WHERE r.charge_id IN (
    SELECT d.charge_id FROM receipts d
    WHERE d.created_at < (SELECT clock_timestamp()) - @ttl::interval AND d.finished_at IS NOT NULL
        AND d.charge_id > '' AND d.account_id > '' AND d.event_id > ''
    ORDER BY d.created_at LIMIT @most::integer
    FOR UPDATE SKIP LOCKED
) AND r.finished_at IS NOT NULL;

-- name: ReceiptsNewest :many
-- For operators: of any account, the newest first.
SELECT sqlc.embed(r), coalesce(c.receipt_email, '')::text AS address FROM receipts r JOIN charges c ON c.id = r.charge_id
WHERE r.created_at >= @since::timestamptz
    AND (sqlc.narg(state)::text IS NULL OR r.state = sqlc.narg(state)::text)
    AND (sqlc.narg(account_id)::text IS NULL OR r.account_id = sqlc.narg(account_id)::text)
ORDER BY r.created_at DESC
LIMIT @most::integer;
