-- Keys that the database had forgotten and the provider's records brought back. Only their hashes
-- are known.

-- name: KeyRestore :exec
-- Of two operations of one key, which it stood for one after the other, the later one counts.
INSERT INTO recovered_keys AS r (account_id, key_hash, operation_id, kind, hash_version,
    request_hash, request_id, resource_id, response_code, response_headers, response_body,
    created_at, expires_at)
VALUES (@account_id, @key_hash, @operation_id, @kind, @hash_version, @request_hash, @request_id,
    @resource_id, @response_code, @response_headers, @response_body,
    @created_at, clock_timestamp() + @key_ttl::interval)
ON CONFLICT (account_id, key_hash) DO UPDATE SET
    operation_id = excluded.operation_id, kind = excluded.kind,
    hash_version = excluded.hash_version, request_hash = excluded.request_hash,
    request_id = excluded.request_id, resource_id = excluded.resource_id,
    response_code = excluded.response_code, response_headers = excluded.response_headers,
    response_body = excluded.response_body, created_at = excluded.created_at,
    expires_at = excluded.expires_at
WHERE r.created_at < excluded.created_at;

-- name: RecoveredSweep :execrows
-- There is something to sweep only in the days after a recovery, so it may read the table.
DELETE FROM recovered_keys r WHERE (r.account_id, r.key_hash) IN (
        SELECT d.account_id, d.key_hash FROM recovered_keys d
        WHERE d.expires_at <= (SELECT clock_timestamp()) -- planner
        ORDER BY d.expires_at
        LIMIT @max_rows::integer
        FOR UPDATE SKIP LOCKED
    )
    AND r.expires_at <= clock_timestamp();
