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
