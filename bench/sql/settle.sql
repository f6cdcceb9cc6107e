WITH won AS (
    UPDATE idempotency_keys k SET
        status = 'completed', recovery_point = 'finished', lease_token = NULL, locked_at = NULL, next_run_at = NULL,
        response_code = 201, response_headers = :headers::bytea, response_body = :body::bytea,
        finished_at = clock_timestamp(), expires_at = clock_timestamp() + interval '24 hours'
    FROM charges c
    WHERE c.id = :charge_id::text AND c.operation_id = :operation_id::text AND c.account_id = :account_id::text
        AND c.status = 'pending' AND c.provider_id IS NULL
        AND k.account_id = :account_id::text AND k.key = :key::text AND k.operation_id = :operation_id::text
        AND k.lease_token = :lease_token::text AND k.recovery_point = 'started'
    RETURNING k.operation_id
), settled AS (
    UPDATE charges c SET
        status = 'succeeded', amount_captured = :amount::bigint, captured = true, disputed = false,
        failure_code = NULL, failure_message = NULL, outcome = :outcome::jsonb, provider_id = :provider_id::text,
        settled_at = clock_timestamp()
    FROM won
    WHERE c.id = :charge_id::text
), told AS (
    INSERT INTO outbox (event_id, account_id, type, operation_id, object_id, payload)
    SELECT :event_id::text, :account_id::text, 'charge.succeeded', won.operation_id, :charge_id::text, :payload::bytea
    FROM won
)
SELECT won.operation_id FROM won
