-- +goose NO TRANSACTION
-- +goose Up

-- Building waits for the oldest transaction; so long, and not forever.
SET lock_timeout = '5min';

-- The judge between two keys for one order. Charges without a reference are in neither index.
DROP INDEX CONCURRENTLY IF EXISTS charges_live_reference;
CREATE UNIQUE INDEX CONCURRENTLY charges_live_reference
    ON charges (account_id, reference, livemode, coalesce(duplicate_of, ''))
    WHERE reference IS NOT NULL AND NOT reference_yielded AND status <> 'failed'
        AND (NOT captured OR amount_refunded < amount_captured);

-- What an account lists by reference, and where the claim looks. Failed charges are apart: a card
-- that is tried a thousand times for one order must not make the next claim read them all.
DROP INDEX CONCURRENTLY IF EXISTS charges_of_reference;
CREATE INDEX CONCURRENTLY charges_of_reference ON charges (account_id, reference, (status <> 'failed'), created_at DESC, id DESC)
    WHERE reference IS NOT NULL;

-- +goose Down

SET lock_timeout = '5min';

DROP INDEX CONCURRENTLY IF EXISTS charges_of_reference;
DROP INDEX CONCURRENTLY IF EXISTS charges_live_reference;
