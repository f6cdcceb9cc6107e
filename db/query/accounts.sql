-- Accounts and API keys.

-- name: AccountEnsure :one
-- Makes the account when it does not exist; the no-op update makes RETURNING answer in both cases.
INSERT INTO accounts (id, name) VALUES (@id, @name)
ON CONFLICT (name) DO UPDATE SET name = EXCLUDED.name
RETURNING id, name, created_at;

-- name: AccountFind :one
-- By its id or its name.
SELECT id, name, created_at FROM accounts WHERE id = @id_or_name OR name = @id_or_name ORDER BY id = @id_or_name DESC LIMIT 1;

-- name: APIKeyCreate :one
INSERT INTO api_keys (id, account_id, key_hash, key_hint) VALUES (@id, @account_id, @key_hash, @key_hint)
RETURNING created_at;

-- name: APIKeyByHash :one
SELECT k.id, k.account_id FROM api_keys k WHERE k.key_hash = @key_hash AND k.revoked_at IS NULL;

-- name: APIKeyList :many
SELECT k.id, k.account_id, a.name AS account, k.key_hint, k.created_at, k.revoked_at
FROM api_keys k JOIN accounts a ON a.id = k.account_id
WHERE sqlc.narg(account)::text IS NULL OR a.name = sqlc.narg(account)::text
ORDER BY k.created_at, k.id;

-- name: APIKeyRevoke :execrows
UPDATE api_keys SET revoked_at = coalesce(revoked_at, clock_timestamp()) WHERE id = @id;
