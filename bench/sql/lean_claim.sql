WITH k AS (
    INSERT INTO idempotency_keys (account_id, key, request_hash, charge_id)
    VALUES (:account::bigint, :key::text, :request_hash::bytea, :charge_id::text)
    ON CONFLICT (account_id, key) DO NOTHING
    RETURNING charge_id
)
INSERT INTO charges (id, account_id, amount, currency, customer, description)
SELECT k.charge_id, :account::bigint, :amount::bigint, 'usd', 'cus_4242424242', :description::text
FROM k
RETURNING id, created_at
