-- Receipt mails: what events ask for, who sends what, what came of it. Of all states only pending
-- is ever sent. No statement leads from another state back to it but the settlement of an attempt
-- whose owner knows that the mail server did not take the mail.

-- name: ReceiptGauge :one
-- How long what waits longest for its receipt does: an event that was not read for receipts, or a
-- mail that is due. One that is due for so long is too old to be sent.
SELECT coalesce(greatest(0, extract(epoch FROM clock_timestamp() - least(
    (SELECT o.created_at FROM outbox o
        WHERE o.position IS NOT NULL AND o.position > (SELECT c.position FROM receipts_cursor c)
        ORDER BY o.position LIMIT 1),
    (SELECT r.next_run_at FROM receipts r
        WHERE r.next_run_at >= (SELECT clock_timestamp()) - @oldest::interval -- planner
        ORDER BY r.next_run_at LIMIT 1)))), 0)::float8 AS overdue_seconds;

-- name: ReceiptSettle :one
-- What came of an attempt, by whoever made it. Run again after a lost answer, it finds its own
-- state. One that was given up as unknown meanwhile is known again. What is to be tried later ends
-- instead when it would be too old by then.
WITH x AS (
    SELECT @charge_id::text AS charge_id, @attempts::integer AS attempts, @state::text AS state,
        @code::smallint AS code, @reason::text AS reason,
        clock_timestamp() + @pause::interval AS next_run_at, @oldest::interval AS oldest
), held AS (
    SELECT r.charge_id, x.state = 'pending' AND r.taken_at >= x.next_run_at - x.oldest AS again
    FROM x JOIN receipts r ON r.charge_id = x.charge_id
    WHERE r.attempts = x.attempts AND r.state IN ('sending', 'unknown', 'expired', x.state)
    FOR UPDATE OF r
)
UPDATE receipts r SET
    state = CASE WHEN held.again OR x.state <> 'pending' THEN x.state ELSE 'expired' END,
    next_run_at = CASE WHEN held.again THEN x.next_run_at END,
    finished_at = CASE WHEN NOT held.again THEN clock_timestamp() END,
    last_code = NULLIF(x.code, 0), last_error = NULLIF(x.reason, '')
FROM held CROSS JOIN x WHERE r.charge_id = held.charge_id
RETURNING r.state;

-- name: ReceiptsAbandoned :execrows
-- What was being sent so long ago that whoever did is gone: whether the mail server has it is not
-- known.
UPDATE receipts SET state = 'unknown', finished_at = clock_timestamp(), last_code = NULL,
    last_error = 'whoever sent it did not write what came of it'
WHERE last_attempt_at < (SELECT clock_timestamp()) - @after::interval -- planner
    AND state = 'sending';

-- name: ReceiptsClaim :many
-- Takes receipts that are due: from here on only the caller sends them, and only this once. What is
-- too old meanwhile ends instead.
WITH due AS MATERIALIZED (
    SELECT r.charge_id, r.taken_at < clock_timestamp() - @oldest::interval AS is_old FROM receipts r
    WHERE r.next_run_at <= (SELECT clock_timestamp()) -- planner
        AND r.charge_id > '' AND r.account_id > '' AND r.event_id > '' -- planner
    ORDER BY r.next_run_at LIMIT @max_rows::integer
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
SELECT t.charge_id, t.event_id, t.state, t.attempts, t.taken_at, a.name AS account_name,
    c.amount_captured, c.currency, c.description, c.suffix, c.address, c.livemode
FROM taken t CROSS JOIN LATERAL (
    SELECT d.amount_captured, d.currency, coalesce(d.description, '')::text AS description,
        coalesce(d.statement_descriptor_suffix, '')::text AS suffix,
        coalesce(d.receipt_email, '')::text AS address, d.livemode
    FROM charges d WHERE d.id = t.charge_id LIMIT 1 -- planner
) c CROSS JOIN LATERAL (
    SELECT b.name FROM accounts b WHERE b.id = t.account_id LIMIT 1 -- planner
) a;

-- name: ReceiptsClean :execrows
-- Forgets receipts that are old, some at a time. None of their charges can get another: it is too
-- old, and its events are read.
DELETE FROM receipts r WHERE r.charge_id IN (
    SELECT d.charge_id FROM receipts d
    WHERE d.created_at < (SELECT clock_timestamp()) - @ttl::interval -- planner
        AND d.finished_at IS NOT NULL
        AND d.charge_id > '' AND d.account_id > '' AND d.event_id > '' -- planner
    ORDER BY d.created_at LIMIT @max_rows::integer
    FOR UPDATE SKIP LOCKED
) AND r.finished_at IS NOT NULL;

-- name: ReceiptsHold :execrows
-- A receipt that waits may have been mailed since the moment to which the database was put back: it
-- is not sent again.
UPDATE receipts SET state = 'unknown', attempts = greatest(attempts, 1),
    last_attempt_at = coalesce(last_attempt_at, clock_timestamp()), next_run_at = NULL,
    finished_at = clock_timestamp(), last_code = NULL,
    last_error = 'the database was put back to an earlier moment: it may have been sent since'
WHERE state IN ('pending', 'sending')
    AND created_at < (SELECT max(r.began_at) FROM recoveries r WHERE r.finished_at IS NULL);

-- name: ReceiptsNewest :many
-- For operators: of any account, the newest first.
SELECT sqlc.embed(r), coalesce(c.receipt_email, '')::text AS address
FROM receipts r JOIN charges c ON c.id = r.charge_id
WHERE r.created_at >= @since::timestamptz
    AND (sqlc.narg(state)::text IS NULL OR r.state = sqlc.narg(state)::text)
    AND (sqlc.narg(account_id)::text IS NULL OR r.account_id = sqlc.narg(account_id)::text)
ORDER BY r.created_at DESC
LIMIT @max_rows::integer;

-- name: ReceiptsRead :one
-- Moves the cursor over the next events, and makes a receipt of each charge whose money was taken,
-- that wants one, and that has none. A charge that is captured by now has its receipt for either
-- event; what it says is what the charge is.
WITH here AS MATERIALIZED (
    -- The lock makes readers take turns. One that had to wait may look at a snapshot that is older
    -- than the turn before its own; then it finds nothing after the cursor.
    SELECT c.position FROM receipts_cursor c FOR UPDATE
), looked AS MATERIALIZED (
    SELECT o.event_id, o.account_id, o.object_id, o.type, o.position, o.created_at FROM outbox o
    WHERE o.position IS NOT NULL AND o.position > (SELECT h.position FROM here h)
    ORDER BY o.position LIMIT @max_rows::integer
), moved AS (
    UPDATE receipts_cursor c SET position = (SELECT max(l.position) FROM looked l),
        updated_at = clock_timestamp() WHERE EXISTS (SELECT FROM looked)
), made AS (
    INSERT INTO receipts (charge_id, account_id, event_id, taken_at, state, next_run_at,
        finished_at)
    SELECT c.id, c.account_id, l.event_id, l.created_at,
        CASE WHEN old.yes THEN 'expired' ELSE 'pending' END,
        CASE WHEN NOT old.yes THEN clock_timestamp() END,
        CASE WHEN old.yes THEN clock_timestamp() END
    FROM looked l
        CROSS JOIN LATERAL (SELECT d.id, d.account_id, d.own_receipt, d.captured FROM charges d
            WHERE d.id = l.object_id AND (d.account_id = l.account_id) IS TRUE LIMIT 1) c -- planner
        -- What was told before the database was put back may have been mailed since: it is too old.
        CROSS JOIN LATERAL (SELECT l.created_at < clock_timestamp() - @oldest::interval
            OR l.created_at < (SELECT max(r.began_at) FROM recoveries r
                WHERE r.lossy) IS TRUE AS yes) old
    WHERE l.type IN ('charge.succeeded', 'charge.captured') AND c.own_receipt AND c.captured
    ORDER BY l.position
    ON CONFLICT (charge_id) DO NOTHING
    RETURNING state
)
SELECT (SELECT count(*) FROM looked) AS looked, (SELECT count(*) FROM made) AS made,
    (SELECT count(*) FROM made WHERE state = 'expired') AS expired;
