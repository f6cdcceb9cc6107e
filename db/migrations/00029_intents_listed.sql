-- +goose NO TRANSACTION
-- +goose Up

SET lock_timeout = '5min';

-- The charges of a payment intent of the provider; a charge that was made in one call is not in it.
DROP INDEX CONCURRENTLY IF EXISTS charges_of_intent;
CREATE INDEX CONCURRENTLY charges_of_intent ON charges (intent_id, created_at DESC, id DESC)
    WHERE intent_id IS NOT NULL;

-- +goose Down

SET lock_timeout = '5min';

DROP INDEX CONCURRENTLY IF EXISTS charges_of_intent;
