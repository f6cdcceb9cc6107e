WITH won AS (
    INSERT INTO idempotency_keys AS k (account_id, key, operation_id, kind, hash_version, request_hash, request_id, params,
        resource_id, recovery_point, lease_token, locked_at, first_attempt_at, last_attempt_at)
    SELECT :account_id::text, :key::text, :operation_id::text, 'charge.create', 1, :request_hash::bytea, :request_id::text,
        :params::bytea, :charge_id::text, 'started', :lease_token::text, clock_timestamp(), clock_timestamp(), clock_timestamp()
    FROM api_keys a WHERE a.id = :api_key_id::text AND a.account_id = :account_id::text AND a.revoked_at IS NULL
    ON CONFLICT (account_id, key) DO NOTHING
    RETURNING k.operation_id, k.created_at
)
INSERT INTO charges AS c (id, account_id, operation_id, amount, currency, capture, customer, description, metadata, receipt_email,
    statement_descriptor_suffix, livemode, created_at)
SELECT :charge_id::text, :account_id::text, won.operation_id, :amount::bigint, 'usd', true, NULL, :description::text,
    :metadata::jsonb, NULL, NULL, false, won.created_at
FROM won
RETURNING c.operation_id, c.created_at
