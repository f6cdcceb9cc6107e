-- Idempotency keys. Every write after the claim carries the fence: account, key and operation, the
-- lease token and the recovery point that its driver holds, and no finish yet. No row means that
-- the lease is lost. The fence, the check that the database's history is vouched for and the hash
-- of a key are the same text wherever they stand; internal/tidy compares them.

-- name: KeyAdvance :execrows
-- Moves an operation to its next recovery point under its fence; the lease stays. What is counted
-- is counted for each step: its window, errors, misses.
UPDATE idempotency_keys k SET recovery_point = @next_point, params = @params::bytea,
    first_attempt_at = clock_timestamp(), passes = 0, server_errors = 0, lookup_misses = 0,
    first_miss_at = NULL, sent_at = NULL, miss_skew = NULL
WHERE k.account_id = @account_id AND k.key = @key AND k.operation_id = @operation_id
    AND k.lease_token = @lease_token::text AND k.recovery_point = @recovery_point
    AND k.finished_at IS NULL;

-- name: KeyAdvanced :one
-- Whether a KeyAdvance whose answer was lost took place: the lease is still ours, and the operation
-- stands at the next point.
SELECT EXISTS (SELECT FROM idempotency_keys k
    WHERE k.account_id = @account_id AND k.key = @key AND k.operation_id = @operation_id
    AND k.lease_token = @lease_token::text AND k.recovery_point = @recovery_point
    AND k.finished_at IS NULL);

-- name: KeyClaim :one
-- Claims one key, for operations whose claim is a transaction of several statements. No row: the
-- key is taken, or the API key is revoked or only reads.
INSERT INTO idempotency_keys AS k (account_id, key, operation_id, kind, hash_version, request_hash,
    request_id, params, resource_id, recovery_point, lease_token, locked_at, first_attempt_at,
    last_attempt_at)
SELECT @account_id::text, @key::text, @operation_id::text, @kind::text, @hash_version::smallint,
    @request_hash::bytea, @request_id::text, @params::bytea,
    @resource_id::text, @recovery_point::text, @lease_token::text, clock_timestamp(),
    clock_timestamp(), clock_timestamp()
FROM api_keys a WHERE a.id = @api_key_id AND a.account_id = @account_id
    AND a.revoked_at IS NULL AND NOT a.read_only
    AND EXISTS (SELECT FROM installation i WHERE i.forked_at IS NULL
        AND (i.timeline = '' OR i.timeline = substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1,
            8)))
    AND NOT EXISTS (SELECT FROM recovered_keys r WHERE r.account_id = a.account_id
        AND r.key_hash = sha256(convert_to(a.account_id || ' ' || @key::text, 'UTF8'))
        OFFSET 0) -- planner
ON CONFLICT (account_id, key) DO NOTHING
RETURNING k.created_at;

-- name: KeyClaimable :one
-- What may be in the way of a claim: whether the key is taken, whether the API key that asks may
-- write (it is not revoked and not read-only), and whether claims are held.
SELECT (EXISTS (SELECT FROM idempotency_keys k WHERE k.account_id = @account_id AND k.key = @key)
        OR EXISTS (SELECT FROM recovered_keys r WHERE r.account_id = @account_id
            AND r.key_hash = sha256(convert_to(@account_id || ' ' || @key::text,
            'UTF8'))))::boolean AS taken,
    EXISTS (SELECT FROM api_keys a WHERE a.id = @api_key_id AND a.account_id = @account_id
        AND a.revoked_at IS NULL AND NOT a.read_only) AS allowed,
    (i.forked_at IS NOT NULL OR i.timeline <> ''
        AND i.timeline <> substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::boolean AS held
FROM installation i;

-- name: KeyCountParked :one
SELECT count(*) FROM idempotency_keys WHERE status = 'in_progress' AND parked_at IS NOT NULL;

-- name: KeyFinish :one
-- Stores the answer of an operation under its fence, for operations whose settlement is a
-- transaction of several statements.
WITH won AS (
    UPDATE idempotency_keys k SET
        status = @status, recovery_point = 'finished', lease_token = NULL, locked_at = NULL,
        next_run_at = NULL,
        response_code = @response_code::smallint, response_headers = @response_headers::bytea,
        response_body = @response_body::bytea,
        finished_at = clock_timestamp(), expires_at = clock_timestamp() + @key_ttl::interval
    WHERE k.account_id = @account_id AND k.key = @key AND k.operation_id = @operation_id
        AND k.lease_token = @lease_token::text AND k.recovery_point = @recovery_point
        AND k.finished_at IS NULL
    RETURNING k.operation_id, k.attempts, k.last_attempt_at
), logged AS (
    INSERT INTO operation_log (operation_id, event, attempt, actor, began_at, detail, reference)
    SELECT won.operation_id, @log_event::text, won.attempts, @log_actor::text, won.last_attempt_at,
        @log_detail::text, @log_reference::text
    FROM won WHERE @log_event::text <> ''
)
SELECT won.operation_id FROM won;

-- name: KeyForget :execrows
-- Removes one key that may run anew: its time is over, or it was proven that nothing moved.
-- Unfinished keys never match.
DELETE FROM idempotency_keys
WHERE account_id = @account_id AND key = @key AND operation_id = @operation_id
    AND (status = 'failed' OR (status = 'completed' AND expires_at <= clock_timestamp()));

-- name: KeyGauges :one
-- Where the unfinished operations stand, by the clock of the database: one walk over the partial
-- index of unfinished rows, and one probe of the index of expiries. overdue_seconds: how long the
-- operation that waits longest for a driver could have had one.
SELECT count(*) AS in_progress,
    count(*) FILTER (WHERE k.parked_at IS NOT NULL) AS parked,
    count(*) FILTER (WHERE k.parked_at IS NULL
        AND k.created_at <= clock_timestamp() - @stale_after::interval) AS stale,
    count(*) FILTER (WHERE k.lease_token IS NOT NULL
        AND k.locked_at > clock_timestamp() - @stale_after::interval) AS running,
    coalesce(extract(epoch FROM clock_timestamp() - min(k.created_at)
        FILTER (WHERE k.parked_at IS NULL)), 0)::float8 AS oldest_seconds,
    coalesce(extract(epoch FROM clock_timestamp() - min(k.parked_at)),
        0)::float8 AS oldest_parked_seconds,
    coalesce(greatest(0, extract(epoch FROM clock_timestamp() - min(
        CASE WHEN k.parked_at IS NOT NULL THEN NULL
            WHEN k.lease_token IS NULL THEN coalesce(k.next_run_at, k.last_attempt_at, k.created_at)
            ELSE k.locked_at + @stale_after::interval END))), 0)::float8 AS overdue_seconds,
    coalesce(greatest(0, extract(epoch FROM clock_timestamp() - (
        SELECT min(d.expires_at) FROM idempotency_keys d WHERE d.expires_at IS NOT NULL))),
            0)::float8 AS oldest_expired_seconds
FROM idempotency_keys k
WHERE k.status = 'in_progress';

-- name: KeyLeaseDue :many
-- Leases up to @max_rows operations that nobody works on, the longest waiting first. Rows that
-- another reconciler is leasing are skipped; rows that were driven since @pass_start are left for
-- the next pass, so that a pass ends.
WITH ownerless AS (
    -- Without a time for their next run: their owners are gone, so they come first.
    SELECT d.account_id, d.key, d.first_attempt_at IS NOT NULL AS reached, d.locked_at
    FROM idempotency_keys d
    WHERE d.status = 'in_progress' AND d.next_run_at IS NULL AND d.parked_at IS NULL
        AND coalesce(d.last_attempt_at, d.created_at) < @pass_start::timestamptz
        AND (d.lease_token IS NULL OR d.locked_at <= clock_timestamp() - @stale_after::interval)
        AND EXISTS (SELECT FROM installation i WHERE i.forked_at IS NULL
            AND (i.timeline = ''
                OR i.timeline = substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8)))
    ORDER BY d.next_run_at
    LIMIT @max_rows::integer
    FOR UPDATE SKIP LOCKED
), waiting AS ( -- planner
    SELECT d.account_id, d.key, d.first_attempt_at IS NOT NULL AS reached, d.locked_at
    FROM idempotency_keys d
    WHERE d.status = 'in_progress' AND d.next_run_at <= (SELECT clock_timestamp()) -- planner
        AND d.parked_at IS NULL AND coalesce(d.last_attempt_at,
        d.created_at) < @pass_start::timestamptz
        AND (d.lease_token IS NULL OR d.locked_at <= clock_timestamp() - @stale_after::interval)
        AND EXISTS (SELECT FROM installation i WHERE i.forked_at IS NULL
            AND (i.timeline = ''
                OR i.timeline = substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8)))
    ORDER BY d.next_run_at
    LIMIT sqlc.arg(max_rows)::integer - (SELECT count(o.key) FROM ownerless o)
    FOR UPDATE SKIP LOCKED
), due AS MATERIALIZED (
    SELECT o.account_id, o.key, o.reached, o.locked_at
    FROM ownerless o UNION ALL SELECT w.account_id, w.key, w.reached, w.locked_at FROM waiting w
), leased AS (
    UPDATE idempotency_keys k SET
        lease_token = @lease_token::text, locked_at = clock_timestamp(), attempts = k.attempts + 1,
        passes = k.passes + 1,
        first_attempt_at = coalesce(k.first_attempt_at, clock_timestamp()),
        last_attempt_at = clock_timestamp(), next_run_at = NULL,
        sent_at = CASE WHEN k.server_errors < @server_errors_max::integer AND k.lookup_misses = 0
            AND coalesce(k.first_attempt_at > clock_timestamp() - @key_window::interval, true)
            THEN clock_timestamp() ELSE coalesce(k.sent_at, k.last_attempt_at) END
    FROM due
    WHERE k.account_id = due.account_id AND k.key = due.key
        AND due.account_id > '' AND due.key > '' -- planner
    RETURNING k.*, due.reached, due.locked_at AS was_locked_at
), logged AS (
    INSERT INTO operation_log (operation_id, event, attempt, actor, began_at, detail)
    SELECT leased.operation_id, 'resumed', leased.attempts, @actor::text, leased.was_locked_at,
        CASE WHEN leased.was_locked_at IS NULL THEN 'its time had come' ELSE 'its owner is gone' END
    FROM leased
)
SELECT account_id, key, operation_id, kind, params, resource_id, request_id, recovery_point,
    lease_token::text AS lease_token, attempts,
    created_at, first_attempt_at::timestamptz AS first_attempt_at,
    last_attempt_at::timestamptz AS last_attempt_at, server_errors, lookup_misses, passes,
    coalesce(sent_at, first_attempt_at)::timestamptz AS sent_at, miss_skew,
    reached::boolean AS reached,
    (first_attempt_at > clock_timestamp() - @key_window::interval)::boolean AS window_open,
    coalesce(first_miss_at <= clock_timestamp() - @lookup_span::interval,
        false)::boolean AS span_over,
    clock_timestamp()::timestamptz AS now
FROM leased;

-- name: KeyLeasedDue :many
-- What KeyLeaseDue or KeyTakeOver leased under this token, read back when its answer was lost.
-- Whether an earlier attempt had reached the provider is not known any more, so it is said to have.
SELECT k.account_id, k.key, k.operation_id, k.kind, k.params, k.resource_id, k.request_id,
    k.recovery_point, k.lease_token::text AS lease_token, k.attempts,
    k.created_at, k.first_attempt_at::timestamptz AS first_attempt_at,
    k.last_attempt_at::timestamptz AS last_attempt_at, k.server_errors, k.lookup_misses, k.passes,
    coalesce(k.sent_at, k.first_attempt_at)::timestamptz AS sent_at, k.miss_skew,
    true::boolean AS reached,
    (k.first_attempt_at > clock_timestamp() - @key_window::interval)::boolean AS window_open,
    coalesce(k.first_miss_at <= clock_timestamp() - @lookup_span::interval,
        false)::boolean AS span_over,
    clock_timestamp()::timestamptz AS now
FROM idempotency_keys k
WHERE k.status = 'in_progress' AND k.next_run_at IS NULL AND k.lease_token = @lease_token::text;

-- name: KeyListDue :many
-- What KeyLeaseDue would lease now, for --dry-run.
SELECT k.operation_id FROM idempotency_keys k
WHERE k.status = 'in_progress' AND k.parked_at IS NULL
    AND ((k.lease_token IS NULL AND coalesce(k.next_run_at <= clock_timestamp(), true))
        OR (k.lease_token IS NOT NULL
            AND k.locked_at <= clock_timestamp() - @stale_after::interval))
ORDER BY k.next_run_at NULLS FIRST
LIMIT @max_rows::integer;

-- name: KeyOutlived :execrows
-- Answers whose time was over when their key was used anew, as the provider's records say, and is
-- not over yet by a clock that was set back since. What was claimed is known in whole seconds.
DELETE FROM idempotency_keys k USING recovered_keys r
-- While no clock was set back there is nothing between these two bounds, so the index of what
-- expires is read in vain.
WHERE k.expires_at > (SELECT clock_timestamp()) -- planner
    AND k.expires_at < (SELECT max(x.created_at) + interval '1 second' FROM recovered_keys x)
    AND k.expires_at < r.created_at + interval '1 second' AND k.status <> 'in_progress'
    AND r.account_id = k.account_id
    AND r.key_hash = sha256(convert_to(k.account_id || ' ' || k.key, 'UTF8'))
    AND r.operation_id <> k.operation_id;

-- name: KeyOvertaken :many
-- Unfinished operations whose key came to stand for another one since, as the provider's records
-- say: their outcome was told, and its time over, or it was proven that nothing of theirs moved;
-- the records do not show which. So they are only looked up from here on, and end like all others,
-- under a key that no client can send. Theirs is the other operation's, even where claims went on
-- before the records were read and they are the later one: its answer was given, theirs was not.
WITH overtaken AS (
    UPDATE idempotency_keys k SET
        key = @prefix::text || k.operation_id, lease_token = NULL, locked_at = NULL,
        next_run_at = CASE WHEN k.parked_at IS NULL THEN clock_timestamp() END,
        -- Two stored failures keep the time in which look-ups search from growing.
        server_errors = greatest(k.server_errors, 2),
        last_error = 'the database was put back to an earlier moment; '
            || 'since then its key came to stand for ' || r.operation_id
            || CASE WHEN k.parked_at IS NOT NULL
                THEN coalesce('; parked because: ' || k.last_error, '') ELSE '' END
    FROM recovered_keys r
    WHERE k.status = 'in_progress' AND r.account_id = k.account_id
        AND r.key_hash = sha256(convert_to(k.account_id || ' ' || k.key, 'UTF8'))
        AND r.operation_id <> k.operation_id
    RETURNING k.operation_id, k.attempts, k.last_attempt_at, k.last_error
), logged AS (
    INSERT INTO operation_log (operation_id, event, attempt, actor, began_at, detail)
    SELECT o.operation_id, 'no_outcome', o.attempts, 'recovery', o.last_attempt_at, o.last_error
    FROM overtaken o
)
SELECT o.operation_id FROM overtaken o;

-- name: KeyPark :execrows
-- Nothing drives the operation any more until an operator decides.
WITH parked AS (
    UPDATE idempotency_keys k SET
        lease_token = NULL, locked_at = NULL, next_run_at = NULL, last_error = @last_error::text,
        parked_at = clock_timestamp()
    WHERE k.account_id = @account_id AND k.key = @key AND k.operation_id = @operation_id
        AND k.lease_token = @lease_token::text AND k.recovery_point = @recovery_point
        AND k.finished_at IS NULL
    RETURNING k.operation_id, k.attempts, k.last_attempt_at
)
INSERT INTO operation_log (operation_id, event, attempt, actor, began_at, detail, reference)
SELECT parked.operation_id, 'parked', parked.attempts, @actor::text, parked.last_attempt_at,
    @last_error::text, @reference::text FROM parked;

-- name: KeyRead :one
-- What is known of a key, with everything that depends on time computed by the clock of the
-- database. allowed: the API key that asks may write: it is not revoked and not read-only (an
-- empty one asks for ourselves).
SELECT sqlc.embed(k),
    (k.lease_token IS NOT NULL
        AND k.locked_at <= clock_timestamp() - @stale_after::interval)::boolean AS stale,
    coalesce(k.expires_at <= clock_timestamp(), false)::boolean AS expired,
    coalesce(k.first_attempt_at > clock_timestamp() - @key_window::interval,
        true)::boolean AS window_open,
    coalesce(k.first_miss_at <= clock_timestamp() - @lookup_span::interval,
        false)::boolean AS span_over,
    coalesce(extract(epoch FROM clock_timestamp() - k.locked_at), 0)::float8 AS lease_age_seconds,
    coalesce(extract(epoch FROM clock_timestamp() - k.last_attempt_at),
        0)::float8 AS attempt_age_seconds,
    (@api_key_id::text = '' OR EXISTS (
        SELECT FROM api_keys a WHERE a.id = @api_key_id::text AND a.account_id = k.account_id
            AND a.revoked_at IS NULL AND NOT a.read_only
    ))::boolean AS allowed,
    clock_timestamp()::timestamptz AS now
FROM idempotency_keys k
WHERE k.account_id = @account_id AND k.key = @key;

-- name: KeyRecovered :execrows
-- The key has a name again: its row moves to where every other one is.
WITH found AS (
    DELETE FROM recovered_keys r WHERE r.account_id = @account_id
        AND r.key_hash = sha256(convert_to(@account_id || ' ' || @key::text, 'UTF8')) RETURNING r.*
)
INSERT INTO idempotency_keys (account_id, key, operation_id, kind, hash_version, request_hash,
    request_id, params, resource_id, status, recovery_point, response_code, response_headers,
    response_body, created_at, finished_at, expires_at)
SELECT f.account_id, @key::text, f.operation_id, f.kind, f.hash_version, f.request_hash,
    f.request_id, '\x7b7d'::bytea, f.resource_id, 'completed', 'finished',
    f.response_code, f.response_headers, f.response_body, f.created_at, clock_timestamp(),
    f.expires_at
FROM found f WHERE f.expires_at > clock_timestamp()
ON CONFLICT (account_id, key) DO NOTHING;

-- name: KeyRelease :execrows
-- Gives the lease back without an outcome. The point stays; the next driver resumes there.
WITH released AS (
    UPDATE idempotency_keys k SET
        lease_token = NULL, locked_at = NULL, last_error = @last_error::text,
        next_run_at = clock_timestamp() + @pause::interval,
        first_attempt_at = CASE WHEN @not_reached::boolean THEN NULL ELSE k.first_attempt_at END,
        server_errors = k.server_errors + @server_errors::integer,
        lookup_misses = CASE WHEN @missed::boolean AND NOT @anew::boolean THEN k.lookup_misses + 1
            WHEN @missed THEN 1 ELSE k.lookup_misses END,
        first_miss_at = CASE WHEN @missed AND (@anew OR k.first_miss_at IS NULL)
            THEN clock_timestamp() ELSE k.first_miss_at END,
        miss_skew = CASE WHEN @missed AND (@anew OR k.first_miss_at IS NULL) THEN @skew::float8
            ELSE k.miss_skew END
    WHERE k.account_id = @account_id AND k.key = @key AND k.operation_id = @operation_id
        AND k.lease_token = @lease_token::text AND k.recovery_point = @recovery_point
        AND k.finished_at IS NULL
    RETURNING k.operation_id, k.attempts, k.last_attempt_at
)
INSERT INTO operation_log (operation_id, event, attempt, actor, began_at, detail, reference)
SELECT released.operation_id, 'no_outcome', released.attempts, @actor::text,
    released.last_attempt_at, @last_error::text, @reference::text FROM released;

-- name: KeySweep :execrows
-- Forgets up to @max_rows keys whose time is over, the oldest first. Unfinished keys have no
-- expiry. Rows that somebody works on are skipped.
DELETE FROM idempotency_keys k
WHERE k.operation_id = ANY (ARRAY( -- planner
        SELECT d.operation_id FROM idempotency_keys d
        WHERE d.expires_at <= (SELECT clock_timestamp()) AND d.status <> 'in_progress' -- planner
        ORDER BY d.expires_at
        LIMIT @max_rows::integer
        FOR UPDATE SKIP LOCKED
    ))
    -- Again outside: a row that was taken anew meanwhile stays.
    AND k.expires_at <= clock_timestamp() AND k.status <> 'in_progress';

-- name: KeyTakeOver :one
-- Compare-and-swap on what was read: of many that saw the same stale or free lease, one wins.
-- attempts is compared too, since a free lease looks the same before and after an attempt in
-- between. A parked operation is taken only by an operator (@parked).
WITH taken AS (
    UPDATE idempotency_keys k SET
        lease_token = @lease_token::text, locked_at = clock_timestamp(), attempts = k.attempts + 1,
        parked_at = NULL,
        first_attempt_at = coalesce(k.first_attempt_at, clock_timestamp()),
        last_attempt_at = clock_timestamp(), next_run_at = NULL,
        sent_at = CASE WHEN k.server_errors < @server_errors_max::integer AND k.lookup_misses = 0
            AND coalesce(k.first_attempt_at > clock_timestamp() - @key_window::interval, true)
            THEN clock_timestamp() ELSE coalesce(k.sent_at, k.last_attempt_at) END
    WHERE k.account_id = @account_id AND k.key = @key AND k.operation_id = @operation_id
        AND k.finished_at IS NULL AND (k.parked_at IS NULL OR @parked::boolean)
        AND k.lease_token IS NOT DISTINCT FROM sqlc.narg(seen_token)::text
        AND k.attempts = @seen_attempts::integer
        AND (k.lease_token IS NULL OR k.locked_at <= clock_timestamp() - @stale_after::interval)
        AND EXISTS (SELECT FROM installation i WHERE i.forked_at IS NULL
            AND (i.timeline = ''
                OR i.timeline = substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8)))
    RETURNING k.*
), logged AS (
    INSERT INTO operation_log (operation_id, event, attempt, actor, began_at, detail)
    SELECT taken.operation_id, 'resumed', taken.attempts, @actor::text,
        sqlc.narg(seen_locked_at)::timestamptz, @detail::text FROM taken
)
SELECT account_id, key, operation_id, kind, params, resource_id, request_id, recovery_point,
    lease_token::text AS lease_token, attempts,
    created_at, first_attempt_at::timestamptz AS first_attempt_at,
    last_attempt_at::timestamptz AS last_attempt_at, server_errors, lookup_misses, passes,
    coalesce(sent_at, first_attempt_at)::timestamptz AS sent_at, miss_skew,
    @reached::boolean AS reached,
    (first_attempt_at > clock_timestamp() - @key_window::interval)::boolean AS window_open,
    coalesce(first_miss_at <= clock_timestamp() - @lookup_span::interval,
        false)::boolean AS span_over,
    clock_timestamp()::timestamptz AS now
FROM taken;

-- name: KeyUnpark :execrows
-- An operator lets the drivers try again, now and with fresh patience. What is known of the
-- provider stays.
WITH unparked AS (
    UPDATE idempotency_keys k SET parked_at = NULL, next_run_at = clock_timestamp(), attempts = 1,
        passes = 0
    WHERE k.operation_id = @operation_id AND k.finished_at IS NULL AND k.parked_at IS NOT NULL
    RETURNING k.operation_id, k.attempts
)
INSERT INTO operation_log (operation_id, event, attempt, actor, detail)
SELECT unparked.operation_id, 'retried', unparked.attempts, @actor::text, @reason::text
FROM unparked;

-- name: KeysReached :execrows
-- What was unfinished at the moment to which the database was put back may have been driven, and
-- sent, since: it is taken for sent from its claim on until now, and looked up first.
UPDATE idempotency_keys SET first_attempt_at = coalesce(first_attempt_at, created_at),
    sent_at = clock_timestamp(), lookup_misses = 0, first_miss_at = NULL, miss_skew = NULL
WHERE status = 'in_progress';

-- name: OperationKey :one
SELECT k.account_id, k.key FROM idempotency_keys k WHERE k.operation_id = @operation_id;

-- name: OperationList :many
-- Unfinished operations that are in the given states: parked, stuck (their lease is stale), waiting
-- (for their next run), running.
SELECT k.operation_id, k.account_id, k.kind, k.resource_id, k.recovery_point, k.attempts,
    k.created_at, k.next_run_at, k.last_error,
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
LIMIT @max_rows::integer;

-- name: ProviderAccountSentByOthers :one
-- Operations of an account that may have been carried out and have no outcome, and were not sent by
-- this sender. It has no short mark, so that nothing else in their parameters passes for it. Asked
-- while no charge of the account has the provider's id: then there are few.
SELECT count(*)::bigint AS sent
FROM idempotency_keys k LEFT JOIN refunds r ON r.id = k.resource_id
    JOIN charges c ON c.id = coalesce(r.charge_id, k.resource_id)
WHERE k.status = 'in_progress' AND k.first_attempt_at IS NOT NULL
    AND coalesce(c.provider_account, 1) = @number::smallint
    AND position(convert_to(@sender::text, 'UTF8') IN k.params) = 0;

-- name: ProviderAccountUnfinished :many
-- Operations without an outcome, by the account of their charge: 0 is the first one's. The second
-- number: charges that wait for their payer.
SELECT coalesce(c.provider_account, 0)::smallint AS number,
    count(*) FILTER (WHERE NOT u.awaits)::bigint AS unfinished,
    count(*) FILTER (WHERE u.awaits)::bigint AS awaiting
FROM (
    SELECT coalesce(r.charge_id, k.resource_id) AS charge_id, false AS awaits
    FROM idempotency_keys k LEFT JOIN refunds r ON r.id = k.resource_id
    WHERE k.status = 'in_progress'
    UNION ALL
    SELECT d.id, true FROM charges d WHERE d.awaits_at IS NOT NULL AND d.status = 'pending'
) u JOIN charges c ON c.id = u.charge_id
GROUP BY 1;
