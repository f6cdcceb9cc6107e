-- API keys: what an account proves itself with. Only hashes are stored.

-- name: APIKeyByHash :one
SELECT k.id, k.account_id, k.read_only, coalesce(a.reference_from, '')::text AS reference_from
FROM api_keys k JOIN accounts a ON a.id = k.account_id
WHERE k.key_hash = @key_hash AND k.revoked_at IS NULL;

-- name: APIKeyCreate :one
INSERT INTO api_keys (id, account_id, key_hash, key_hint, read_only)
    VALUES (@id, @account_id, @key_hash, @key_hint, @read_only)
RETURNING created_at;

-- name: APIKeyList :many
SELECT k.id, k.account_id, a.name AS account, k.key_hint, k.read_only, k.created_at,
    k.revoked_at
FROM api_keys k JOIN accounts a ON a.id = k.account_id
WHERE sqlc.narg(account)::text IS NULL OR a.name = sqlc.narg(account)::text
ORDER BY k.created_at, k.id;

-- name: APIKeyRevoke :execrows
UPDATE api_keys SET revoked_at = coalesce(revoked_at, clock_timestamp()) WHERE id = @id;
