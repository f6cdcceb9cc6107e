-- Secrets that sign what endpoints get.

-- name: SecretAdd :exec
INSERT INTO webhook_secrets (endpoint, secret) VALUES (@endpoint, @secret);

-- name: SecretForget :exec
-- Secrets that sign no more, and the oldest when somebody rotates without end.
DELETE FROM webhook_secrets s WHERE s.endpoint = @endpoint AND s.expires_at IS NOT NULL
    AND (s.expires_at <= clock_timestamp() OR s.secret NOT IN (
    SELECT k.secret FROM webhook_secrets k WHERE k.endpoint = @endpoint AND k.expires_at IS NOT NULL
    ORDER BY k.created_at DESC LIMIT @keep::integer
));

-- name: SecretRetire :exec
-- The current secret signs for a while longer.
UPDATE webhook_secrets SET expires_at = clock_timestamp() + @overlap::interval
    WHERE endpoint = @endpoint AND expires_at IS NULL;
