WITH k AS (
    UPDATE idempotency_keys SET status = 'completed', response_code = 201, response_body = :body::bytea
    WHERE account_id = :account::bigint AND key = :key::text AND status = 'in_progress'
    RETURNING charge_id
), c AS (
    UPDATE charges SET status = 'succeeded', provider_ref = :provider_id::text, updated_at = now()
    WHERE id = :charge_id::text AND EXISTS (SELECT FROM k)
    RETURNING id
)
INSERT INTO outbox (topic, aggregate_id, payload)
SELECT 'charge.succeeded', c.id, convert_from(:payload::bytea, 'UTF8')::jsonb FROM c
RETURNING aggregate_id
