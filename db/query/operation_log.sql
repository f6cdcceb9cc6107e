-- What happened to an operation, line by line.

-- name: OperationLog :many
SELECT * FROM operation_log WHERE operation_id = @operation_id ORDER BY n;

-- name: OperationLogSweep :one
-- Looks at up to @max_rows lines that are so old, from @after on, and forgets the logs that they
-- are of, unless the operation is unfinished or has a younger line: a log goes as a whole. Returns
-- how many lines it looked at, how many it forgot, and where to go on.
WITH looked AS MATERIALIZED (
    SELECT l.operation_id, l.at, l.n FROM operation_log l
    WHERE (l.at, l.n) > (@after_at::timestamptz, @after_n::bigint)
        AND l.at <= (SELECT clock_timestamp() - @ttl::interval) -- planner
        AND l.operation_id > '' AND l.actor > '' -- planner
    ORDER BY l.at, l.n
    LIMIT @max_rows::integer
), swept AS (
    DELETE FROM operation_log l WHERE l.operation_id = ANY (ARRAY( -- planner
        SELECT x.operation_id FROM looked x
        WHERE NOT EXISTS (SELECT FROM idempotency_keys k WHERE k.operation_id = x.operation_id
            AND k.finished_at IS NULL OFFSET 0) -- planner
            AND NOT EXISTS (SELECT FROM operation_log y WHERE y.operation_id = x.operation_id
                AND y.at > clock_timestamp() - @ttl::interval OFFSET 0) -- planner
    ))
    RETURNING l.n
)
SELECT (SELECT count(*) FROM looked) AS looked, (SELECT count(*) FROM swept) AS swept,
    coalesce(max(x.at), @after_at::timestamptz)::timestamptz AS last_at,
    coalesce(max(x.n), @after_n::bigint)::bigint AS last_n
FROM (SELECT looked.at, looked.n FROM looked ORDER BY looked.at DESC, looked.n DESC LIMIT 1) x;
