-- Idempotency keys. Every write after the claim names operation, lease token and recovery point: no rows means the lease is lost.

-- name: KeyRead :one
-- What is known of a key, with everything that depends on time computed by the clock of the database. allowed: the API key that asks
-- is not revoked (an empty one asks for ourselves).
SELECT sqlc.embed(k),
    (k.lease_token IS NOT NULL AND k.locked_at <= clock_timestamp() - @stale_after::interval)::boolean AS stale,
    coalesce(k.expires_at <= clock_timestamp(), false)::boolean AS expired,
    coalesce(k.first_attempt_at > clock_timestamp() - @key_window::interval, true)::boolean AS window_open,
    coalesce(k.first_miss_at <= clock_timestamp() - @lookup_span::interval, false)::boolean AS span_over,
    coalesce(extract(epoch FROM clock_timestamp() - k.locked_at), 0)::float8 AS lease_age_seconds,
    coalesce(extract(epoch FROM clock_timestamp() - k.last_attempt_at), 0)::float8 AS attempt_age_seconds,
    (@api_key_id::text = '' OR EXISTS (
        SELECT FROM api_keys a WHERE a.id = @api_key_id::text AND a.account_id = k.account_id AND a.revoked_at IS NULL
    ))::boolean AS allowed,
    clock_timestamp()::timestamptz AS now
FROM idempotency_keys k
WHERE k.account_id = @account_id AND k.key = @key;

-- name: KeyTakeOver :one
-- Compare-and-swap on what was read: of many that saw the same stale or free lease, one wins. attempts is compared too, since a
-- free lease looks the same before and after an attempt in between. A parked operation is taken only by a person (@parked).
WITH taken AS (
    UPDATE idempotency_keys k SET
        lease_token = @lease_token::text, locked_at = clock_timestamp(), attempts = k.attempts + 1, parked_at = NULL,
        first_attempt_at = coalesce(k.first_attempt_at, clock_timestamp()), last_attempt_at = clock_timestamp(), next_run_at = NULL,
        sent_at = CASE WHEN k.server_errors < @server_errors_max::integer AND k.lookup_misses = 0
            AND coalesce(k.first_attempt_at > clock_timestamp() - @key_window::interval, true)
            THEN clock_timestamp() ELSE coalesce(k.sent_at, k.last_attempt_at) END
    WHERE k.account_id = @account_id AND k.key = @key AND k.operation_id = @operation_id
        AND k.finished_at IS NULL AND (k.parked_at IS NULL OR @parked::boolean)
        AND k.lease_token IS NOT DISTINCT FROM sqlc.narg(seen_token)::text AND k.attempts = @seen_attempts::integer
        AND (k.lease_token IS NULL OR k.locked_at <= clock_timestamp() - @stale_after::interval)
        AND EXISTS (SELECT FROM installation i WHERE i.forked_at IS NULL
            AND (i.timeline = '' OR i.timeline = substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8)))
    RETURNING k.operation_id, k.attempts, k.first_attempt_at, k.first_miss_at, k.sent_at
), logged AS (
    INSERT INTO operation_log (operation_id, event, attempt, actor, began_at, detail)
    SELECT taken.operation_id, 'resumed', taken.attempts, @actor::text, sqlc.narg(seen_locked_at)::timestamptz, @detail::text FROM taken
)
SELECT clock_timestamp()::timestamptz AS now,
    coalesce(taken.sent_at, taken.first_attempt_at)::timestamptz AS sent_at,
    (taken.first_attempt_at > clock_timestamp() - @key_window::interval)::boolean AS window_open,
    coalesce(taken.first_miss_at <= clock_timestamp() - @lookup_span::interval, false)::boolean AS span_over
FROM taken;

-- name: KeyLeaseDue :many
-- Leases up to @most operations that nobody works on, the longest waiting first. Rows that another reconciler is leasing are
-- skipped; rows that were driven since @pass_start are left for the next pass, so that a pass ends.
-- Whose time is not set comes first: their owners are gone. The two halves stand apart so that each is a range of the index, in its order: one
-- condition on both would read and sort all that is unfinished, for every lease. (SELECT clock_timestamp()) is one moment, which an index can be
-- asked for; a bare clock_timestamp() would be a new one at each row. That account and key are not empty is always so; it makes the planner expect
-- one row, for which it does not read a whole table that it believes to be small: a plan outlives that belief.
WITH ownerless AS (
    SELECT d.account_id, d.key, d.first_attempt_at IS NOT NULL AS reached, d.locked_at FROM idempotency_keys d
    WHERE d.status = 'in_progress' AND d.next_run_at IS NULL AND d.parked_at IS NULL AND coalesce(d.last_attempt_at, d.created_at) < @pass_start::timestamptz
        AND (d.lease_token IS NULL OR d.locked_at <= clock_timestamp() - @stale_after::interval)
        AND EXISTS (SELECT FROM installation i WHERE i.forked_at IS NULL
            AND (i.timeline = '' OR i.timeline = substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8)))
    ORDER BY d.next_run_at
    LIMIT @most::integer
    FOR UPDATE SKIP LOCKED
), waiting AS (
    SELECT d.account_id, d.key, d.first_attempt_at IS NOT NULL AS reached, d.locked_at FROM idempotency_keys d
    WHERE d.status = 'in_progress' AND d.next_run_at <= (SELECT clock_timestamp()) AND d.parked_at IS NULL AND coalesce(d.last_attempt_at, d.created_at) < @pass_start::timestamptz
        AND (d.lease_token IS NULL OR d.locked_at <= clock_timestamp() - @stale_after::interval)
        AND EXISTS (SELECT FROM installation i WHERE i.forked_at IS NULL
            AND (i.timeline = '' OR i.timeline = substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8)))
    ORDER BY d.next_run_at
    LIMIT sqlc.arg(most)::integer - (SELECT count(o.key) FROM ownerless o)
    FOR UPDATE SKIP LOCKED
), due AS MATERIALIZED (
    SELECT o.account_id, o.key, o.reached, o.locked_at FROM ownerless o UNION ALL SELECT w.account_id, w.key, w.reached, w.locked_at FROM waiting w
), leased AS (
    UPDATE idempotency_keys k SET
        lease_token = @lease_token::text, locked_at = clock_timestamp(), attempts = k.attempts + 1, passes = k.passes + 1,
        first_attempt_at = coalesce(k.first_attempt_at, clock_timestamp()), last_attempt_at = clock_timestamp(), next_run_at = NULL,
        sent_at = CASE WHEN k.server_errors < @server_errors_max::integer AND k.lookup_misses = 0
            AND coalesce(k.first_attempt_at > clock_timestamp() - @key_window::interval, true)
            THEN clock_timestamp() ELSE coalesce(k.sent_at, k.last_attempt_at) END
    FROM due
    WHERE k.account_id = due.account_id AND k.key = due.key AND due.account_id > '' AND due.key > ''
    RETURNING k.*, due.reached, due.locked_at AS was_locked_at
), logged AS (
    INSERT INTO operation_log (operation_id, event, attempt, actor, began_at, detail)
    SELECT leased.operation_id, 'resumed', leased.attempts, @actor::text, leased.was_locked_at,
        CASE WHEN leased.was_locked_at IS NULL THEN 'its time had come' ELSE 'its owner is gone' END
    FROM leased
)
SELECT account_id, key, operation_id, kind, params, resource_id, request_id, recovery_point, lease_token::text AS lease_token, attempts,
    created_at, first_attempt_at::timestamptz AS first_attempt_at, last_attempt_at::timestamptz AS last_attempt_at, server_errors, lookup_misses, passes,
    coalesce(sent_at, first_attempt_at)::timestamptz AS sent_at, miss_skew,
    reached::boolean AS reached,
    (first_attempt_at > clock_timestamp() - @key_window::interval)::boolean AS window_open,
    coalesce(first_miss_at <= clock_timestamp() - @lookup_span::interval, false)::boolean AS span_over,
    clock_timestamp()::timestamptz AS now
FROM leased;

-- name: KeyLeasedDue :many
-- What KeyLeaseDue leased under this token, read back when its answer was lost. Whether an earlier attempt had reached the provider is not known
-- any more, so it is said to have.
SELECT k.account_id, k.key, k.operation_id, k.kind, k.params, k.resource_id, k.request_id, k.recovery_point, k.lease_token::text AS lease_token, k.attempts,
    k.created_at, k.first_attempt_at::timestamptz AS first_attempt_at, k.last_attempt_at::timestamptz AS last_attempt_at, k.server_errors, k.lookup_misses, k.passes,
    coalesce(k.sent_at, k.first_attempt_at)::timestamptz AS sent_at, k.miss_skew,
    true::boolean AS reached,
    (k.first_attempt_at > clock_timestamp() - @key_window::interval)::boolean AS window_open,
    coalesce(k.first_miss_at <= clock_timestamp() - @lookup_span::interval, false)::boolean AS span_over,
    clock_timestamp()::timestamptz AS now
FROM idempotency_keys k
WHERE k.status = 'in_progress' AND k.next_run_at IS NULL AND k.lease_token = @lease_token::text;

-- name: KeyListDue :many
-- What KeyLeaseDue would lease now, for --dry-run.
SELECT k.operation_id FROM idempotency_keys k
WHERE k.status = 'in_progress' AND k.parked_at IS NULL
    AND ((k.lease_token IS NULL AND coalesce(k.next_run_at <= clock_timestamp(), true))
        OR (k.lease_token IS NOT NULL AND k.locked_at <= clock_timestamp() - @stale_after::interval))
ORDER BY k.next_run_at NULLS FIRST
LIMIT @most::integer;

-- name: KeyRelease :execrows
-- Gives the lease back without an outcome. The point stays; the next driver resumes there.
WITH released AS (
    UPDATE idempotency_keys k SET
        lease_token = NULL, locked_at = NULL, last_error = @last_error::text,
        next_run_at = clock_timestamp() + @pause::interval,
        first_attempt_at = CASE WHEN @not_reached::boolean THEN NULL ELSE k.first_attempt_at END,
        server_errors = k.server_errors + @server_errors::integer,
        lookup_misses = CASE WHEN @missed::boolean AND NOT @anew::boolean THEN k.lookup_misses + 1 WHEN @missed THEN 1 ELSE k.lookup_misses END,
        first_miss_at = CASE WHEN @missed AND (@anew OR k.first_miss_at IS NULL) THEN clock_timestamp() ELSE k.first_miss_at END,
        miss_skew = CASE WHEN @missed AND (@anew OR k.first_miss_at IS NULL) THEN @skew::float8 ELSE k.miss_skew END
    WHERE k.account_id = @account_id AND k.key = @key AND k.operation_id = @operation_id
        AND k.lease_token = @lease_token::text AND k.recovery_point = @recovery_point AND k.finished_at IS NULL
    RETURNING k.operation_id, k.attempts, k.last_attempt_at
)
INSERT INTO operation_log (operation_id, event, attempt, actor, began_at, detail, reference)
SELECT released.operation_id, 'no_outcome', released.attempts, @actor::text, released.last_attempt_at, @last_error::text, @reference::text FROM released;

-- name: KeyPark :execrows
-- Nothing drives the operation any more until a person decides.
WITH parked AS (
    UPDATE idempotency_keys k SET
        lease_token = NULL, locked_at = NULL, next_run_at = NULL, last_error = @last_error::text, parked_at = clock_timestamp()
    WHERE k.account_id = @account_id AND k.key = @key AND k.operation_id = @operation_id
        AND k.lease_token = @lease_token::text AND k.recovery_point = @recovery_point AND k.finished_at IS NULL
    RETURNING k.operation_id, k.attempts, k.last_attempt_at
)
INSERT INTO operation_log (operation_id, event, attempt, actor, began_at, detail, reference)
SELECT parked.operation_id, 'parked', parked.attempts, @actor::text, parked.last_attempt_at, @last_error::text, @reference::text FROM parked;

-- name: KeyUnpark :execrows
-- A person lets the drivers try again, now and with fresh patience. What is known of the provider stays.
WITH unparked AS (
    UPDATE idempotency_keys k SET parked_at = NULL, next_run_at = clock_timestamp(), attempts = 1, passes = 0
    WHERE k.operation_id = @operation_id AND k.status = 'in_progress' AND k.parked_at IS NOT NULL
    RETURNING k.operation_id, k.attempts
)
INSERT INTO operation_log (operation_id, event, attempt, actor, detail)
SELECT unparked.operation_id, 'retried', unparked.attempts, @actor::text, @reason::text FROM unparked;

-- name: KeyForget :execrows
-- Removes one key that may run anew: its time is over, or it was proven that nothing moved. Unfinished keys never match.
DELETE FROM idempotency_keys
WHERE account_id = @account_id AND key = @key AND operation_id = @operation_id
    AND (status = 'failed' OR (status = 'completed' AND expires_at <= clock_timestamp()));

-- name: KeySweep :execrows
-- Forgets up to @most keys whose time is over, the oldest first. Rows that somebody works on are skipped, and the condition stands
-- outside as well: a row that was taken anew meanwhile stays. Unfinished rows have no expiry. (SELECT clock_timestamp()) ends the walk over the
-- index at what expires next; a bare clock_timestamp() is no bound of an index, and would have every sweep read all that is kept. That account and key
-- are not empty is always so, and makes the planner expect few rows, as in KeyLeaseDue.
DELETE FROM idempotency_keys k
WHERE (k.account_id, k.key) IN (
        SELECT d.account_id, d.key FROM idempotency_keys d
        WHERE d.expires_at <= (SELECT clock_timestamp()) AND d.status <> 'in_progress'
            AND d.account_id > '' AND d.key > ''
        ORDER BY d.expires_at
        LIMIT @most::integer
        FOR UPDATE SKIP LOCKED
    )
    AND k.expires_at <= clock_timestamp() AND k.status <> 'in_progress';

-- name: KeyCountParked :one
SELECT count(*) FROM idempotency_keys WHERE status = 'in_progress' AND parked_at IS NOT NULL;

-- name: Now :one
SELECT clock_timestamp()::timestamptz AS now;

-- name: InstallationTag :one
SELECT tag FROM installation;

-- name: KeyClaim :one
-- Claims one key, for operations whose claim is a transaction of several statements. No row: the key is taken, or the API key is revoked.
INSERT INTO idempotency_keys AS k (account_id, key, operation_id, kind, hash_version, request_hash, request_id, params,
    resource_id, recovery_point, lease_token, locked_at, first_attempt_at, last_attempt_at)
SELECT @account_id::text, @key::text, @operation_id::text, @kind::text, @hash_version::smallint, @request_hash::bytea, @request_id::text, @params::bytea,
    @resource_id::text, @recovery_point::text, @lease_token::text, clock_timestamp(), clock_timestamp(), clock_timestamp()
FROM api_keys a WHERE a.id = @api_key_id AND a.account_id = @account_id AND a.revoked_at IS NULL
    AND EXISTS (SELECT FROM installation i WHERE i.forked_at IS NULL
        AND (i.timeline = '' OR i.timeline = substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8)))
    AND NOT EXISTS (SELECT FROM recovered_keys r WHERE r.account_id = a.account_id
        AND r.key_hash = sha256(convert_to(a.account_id || ' ' || @key::text, 'UTF8')))
ON CONFLICT (account_id, key) DO NOTHING
RETURNING k.created_at;

-- name: KeyFinish :one
-- Stores the answer of an operation under its fence, for operations whose settlement is a transaction of several statements.
WITH won AS (
    UPDATE idempotency_keys k SET
        status = @status, recovery_point = 'finished', lease_token = NULL, locked_at = NULL, next_run_at = NULL,
        response_code = @response_code::smallint, response_headers = @response_headers::bytea, response_body = @response_body::bytea,
        finished_at = clock_timestamp(), expires_at = clock_timestamp() + @key_ttl::interval
    WHERE k.account_id = @account_id AND k.key = @key AND k.operation_id = @operation_id
        AND k.lease_token = @lease_token::text AND k.recovery_point = @recovery_point AND k.finished_at IS NULL
    RETURNING k.operation_id, k.attempts, k.last_attempt_at
), logged AS (
    INSERT INTO operation_log (operation_id, event, attempt, actor, began_at, detail, reference)
    SELECT won.operation_id, @log_event::text, won.attempts, @log_actor::text, won.last_attempt_at, @log_detail::text, @log_reference::text
    FROM won WHERE @log_event::text <> ''
)
SELECT won.operation_id FROM won;

-- name: KeyAdvanced :one
-- Whether a KeyAdvance whose answer was lost took place: the lease is still ours, and the operation stands at the next point.
SELECT EXISTS (SELECT FROM idempotency_keys k WHERE k.account_id = @account_id AND k.key = @key AND k.operation_id = @operation_id
    AND k.lease_token = @lease_token::text AND k.recovery_point = @next_point AND k.finished_at IS NULL);

-- name: KeyAdvance :execrows
-- Moves an operation to its next recovery point under its fence; the lease stays. What is counted is counted for each step: its window, errors, misses.
UPDATE idempotency_keys k SET recovery_point = @next_point, params = @params::bytea,
    first_attempt_at = clock_timestamp(), passes = 0, server_errors = 0, lookup_misses = 0, first_miss_at = NULL, sent_at = NULL, miss_skew = NULL
WHERE k.account_id = @account_id AND k.key = @key AND k.operation_id = @operation_id
    AND k.lease_token = @lease_token::text AND k.recovery_point = @recovery_point AND k.finished_at IS NULL;

-- name: KeyTaken :one
-- Whether a key is taken, and whether the API key that asks is not revoked.
SELECT (EXISTS (SELECT FROM idempotency_keys k WHERE k.account_id = @account_id AND k.key = @key)
        OR EXISTS (SELECT FROM recovered_keys r WHERE r.account_id = @account_id AND r.key_hash = sha256(convert_to(@account_id || ' ' || @key::text, 'UTF8'))))::boolean AS taken,
    EXISTS (SELECT FROM api_keys a WHERE a.id = @api_key_id AND a.account_id = @account_id AND a.revoked_at IS NULL) AS allowed;
