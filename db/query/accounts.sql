-- Accounts: whose keys, charges and events they are.

-- name: AccountEnsure :one
-- Makes the account when it does not exist; the no-op update makes RETURNING answer in both cases.
INSERT INTO accounts (id, name) VALUES (@id, @name)
ON CONFLICT (name) DO UPDATE SET name = EXCLUDED.name
RETURNING id, name, created_at;

-- name: AccountFind :one
-- By its id or its name.
SELECT id, name, created_at, reference_from FROM accounts WHERE id = @id_or_name OR name = @id_or_name
ORDER BY id = @id_or_name DESC LIMIT 1;

-- name: AccountList :many
SELECT id, name, created_at, reference_from FROM accounts ORDER BY created_at, id
LIMIT @max_rows::integer;

-- name: AccountRestore :exec
-- An account that was made after the moment to which the database was put back. Its API keys are
-- gone; an operator creates new ones.
INSERT INTO accounts (id, name) VALUES (@id, 'recovered ' || @id) ON CONFLICT DO NOTHING;

-- name: AccountSetReferenceFrom :execrows
UPDATE accounts SET reference_from = NULLIF(@reference_from::text, '') WHERE id = @id;

-- name: EndpointsLock :exec
-- Whoever registers endpoints of an account waits for others who do, so that each counts what the
-- one before made. Charges refer to the row and do not wait.
SELECT a.id FROM accounts a WHERE a.id = @account_id FOR NO KEY UPDATE;
