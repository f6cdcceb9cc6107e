-- Operations as an operator sees them.

-- name: OperationList :many
-- Unfinished operations that are in the given states: parked, stuck (their lease is stale), waiting (for their next run), running.
SELECT k.operation_id, k.account_id, k.kind, k.resource_id, k.recovery_point, k.attempts, k.created_at, k.next_run_at, k.last_error,
    (CASE WHEN k.parked_at IS NOT NULL THEN 'parked'
        WHEN k.lease_token IS NULL THEN 'waiting'
        WHEN k.locked_at <= clock_timestamp() - @stale_after::interval THEN 'stuck'
        ELSE 'running' END)::text AS state
FROM idempotency_keys k
WHERE k.status = 'in_progress'
    AND (CASE WHEN k.parked_at IS NOT NULL THEN 'parked'
        WHEN k.lease_token IS NULL THEN 'waiting'
        WHEN k.locked_at <= clock_timestamp() - @stale_after::interval THEN 'stuck'
        ELSE 'running' END) = ANY (@states::text[])
ORDER BY k.created_at, k.operation_id
LIMIT @most::integer;

-- name: OperationKey :one
SELECT k.account_id, k.key FROM idempotency_keys k WHERE k.operation_id = @operation_id;

-- name: OperationLog :many
SELECT * FROM operation_log WHERE operation_id = @operation_id ORDER BY n;

-- name: OperationLogSweep :one
-- Looks at up to @most lines that are so old, from @after on, and forgets the logs that they are of, unless the operation is unfinished or has a younger line: a
-- log goes as a whole. Tells how many lines it looked at, how many it forgot, and where to go on. That texts are not empty is always so, as in KeySweep;
-- finished_at says the same as the status, of which there is an index that has all unfinished operations.
WITH looked AS MATERIALIZED (
    SELECT l.operation_id, l.at, l.n FROM operation_log l
    WHERE (l.at, l.n) > (@after_at::timestamptz, @after_n::bigint) AND l.at <= (SELECT clock_timestamp() - @ttl::interval)
        AND l.operation_id > '' AND l.actor > ''
    ORDER BY l.at, l.n
    LIMIT @most::integer
), swept AS (
    DELETE FROM operation_log l WHERE l.operation_id = ANY (ARRAY(
        SELECT x.operation_id FROM looked x
        WHERE NOT EXISTS (SELECT FROM idempotency_keys k WHERE k.operation_id = x.operation_id AND k.finished_at IS NULL OFFSET 0)
            AND NOT EXISTS (SELECT FROM operation_log y WHERE y.operation_id = x.operation_id AND y.at > clock_timestamp() - @ttl::interval OFFSET 0)
    ))
    RETURNING l.n
)
SELECT (SELECT count(*) FROM looked) AS looked, (SELECT count(*) FROM swept) AS swept,
    coalesce(max(x.at), @after_at::timestamptz)::timestamptz AS last_at, coalesce(max(x.n), @after_n::bigint)::bigint AS last_n
FROM (SELECT looked.at, looked.n FROM looked ORDER BY looked.at DESC, looked.n DESC LIMIT 1) x;
