-- Idempotency keys. Every write after the claim names operation, lease token and recovery point: no rows means the lease is lost.

-- name: KeyRead :one
-- What is known of a key, with everything that depends on time computed by the clock of the database.
SELECT sqlc.embed(k),
    (k.lease_token IS NOT NULL AND k.locked_at <= clock_timestamp() - @stale_after::interval)::boolean AS stale,
    coalesce(k.expires_at <= clock_timestamp(), false)::boolean AS expired,
    coalesce(k.first_attempt_at > clock_timestamp() - @key_window::interval, true)::boolean AS window_open,
    coalesce(k.first_miss_at <= clock_timestamp() - @lookup_span::interval, false)::boolean AS span_over,
    coalesce(extract(epoch FROM clock_timestamp() - k.locked_at), 0)::float8 AS lease_age_seconds,
    coalesce(extract(epoch FROM k.next_run_at - clock_timestamp()), 0)::float8 AS pause_seconds_left,
    clock_timestamp()::timestamptz AS now
FROM idempotency_keys k
WHERE k.account_id = @account_id AND k.key = @key;

-- name: KeyTakeOver :one
-- Compare-and-swap on what was read: of many that saw the same stale or free lease, one wins. attempts is compared too, since a
-- free lease looks the same before and after an attempt in between.
UPDATE idempotency_keys SET
    lease_token = @lease_token::text, locked_at = clock_timestamp(), attempts = attempts + 1,
    first_attempt_at = coalesce(first_attempt_at, clock_timestamp()), last_attempt_at = clock_timestamp(), next_run_at = NULL
WHERE account_id = @account_id AND key = @key AND operation_id = @operation_id
    AND status = 'in_progress' AND parked_at IS NULL
    AND lease_token IS NOT DISTINCT FROM sqlc.narg(seen_token)::text AND attempts = @seen_attempts::integer
    AND (lease_token IS NULL OR locked_at <= clock_timestamp() - @stale_after::interval)
RETURNING clock_timestamp()::timestamptz AS now;

-- name: KeyLeaseDue :many
-- Leases up to @most operations that nobody works on, the longest waiting first. Rows that another reconciler is leasing are
-- skipped; rows that were driven since @pass_start are left for the next pass, so that a pass ends.
WITH due AS (
    SELECT d.account_id, d.key, d.first_attempt_at IS NOT NULL AS reached FROM idempotency_keys d
    WHERE d.status = 'in_progress' AND d.parked_at IS NULL AND coalesce(d.last_attempt_at, d.created_at) < @pass_start::timestamptz
        AND ((d.lease_token IS NULL AND coalesce(d.next_run_at <= clock_timestamp(), true))
            OR (d.lease_token IS NOT NULL AND d.locked_at <= clock_timestamp() - @stale_after::interval))
    ORDER BY d.next_run_at NULLS FIRST
    LIMIT @most::integer
    FOR UPDATE SKIP LOCKED
)
UPDATE idempotency_keys k SET
    lease_token = replace(gen_random_uuid()::text, '-', ''), locked_at = clock_timestamp(), attempts = k.attempts + 1,
    first_attempt_at = coalesce(k.first_attempt_at, clock_timestamp()), last_attempt_at = clock_timestamp(), next_run_at = NULL
FROM due
WHERE k.account_id = due.account_id AND k.key = due.key
RETURNING sqlc.embed(k), due.reached::boolean AS reached,
    coalesce(k.first_attempt_at > clock_timestamp() - @key_window::interval, true)::boolean AS window_open,
    coalesce(k.first_miss_at <= clock_timestamp() - @lookup_span::interval, false)::boolean AS span_over,
    clock_timestamp()::timestamptz AS now;

-- name: KeyListDue :many
-- What KeyLeaseDue would lease now, for --dry-run.
SELECT k.operation_id, k.kind, k.resource_id, k.recovery_point, k.attempts, k.created_at, k.last_error
FROM idempotency_keys k
WHERE k.status = 'in_progress' AND k.parked_at IS NULL
    AND ((k.lease_token IS NULL AND coalesce(k.next_run_at <= clock_timestamp(), true))
        OR (k.lease_token IS NOT NULL AND k.locked_at <= clock_timestamp() - @stale_after::interval))
ORDER BY k.next_run_at NULLS FIRST
LIMIT @most::integer;

-- name: KeyRelease :execrows
-- Gives the lease back without an outcome. The point stays; the next driver resumes there.
UPDATE idempotency_keys SET
    lease_token = NULL, locked_at = NULL, last_error = @last_error::text,
    next_run_at = clock_timestamp() + @pause::interval,
    first_attempt_at = CASE WHEN @not_reached::boolean THEN NULL ELSE first_attempt_at END,
    server_errors = server_errors + @server_errors::integer,
    lookup_misses = CASE WHEN @missed::boolean THEN lookup_misses + 1 ELSE lookup_misses END,
    first_miss_at = CASE WHEN @missed::boolean THEN coalesce(first_miss_at, clock_timestamp()) ELSE first_miss_at END
WHERE account_id = @account_id AND key = @key AND operation_id = @operation_id
    AND lease_token = @lease_token::text AND recovery_point = @recovery_point AND status = 'in_progress';

-- name: KeyPark :execrows
-- Nothing drives the operation any more until a person decides.
UPDATE idempotency_keys SET
    lease_token = NULL, locked_at = NULL, next_run_at = NULL, last_error = @last_error::text, parked_at = clock_timestamp()
WHERE account_id = @account_id AND key = @key AND operation_id = @operation_id
    AND lease_token = @lease_token::text AND recovery_point = @recovery_point AND status = 'in_progress';

-- name: KeyForget :execrows
-- Removes one key that may run anew: its time is over, or it was proven that nothing moved. Unfinished keys never match.
DELETE FROM idempotency_keys
WHERE account_id = @account_id AND key = @key AND operation_id = @operation_id
    AND (status = 'failed' OR (status = 'completed' AND expires_at <= clock_timestamp()));

-- name: KeyCountParked :one
SELECT count(*) FROM idempotency_keys WHERE status = 'in_progress' AND parked_at IS NOT NULL;

-- name: Now :one
SELECT clock_timestamp()::timestamptz AS now;

-- name: InstallationTag :one
SELECT tag FROM installation;
