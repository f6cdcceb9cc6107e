-- +goose NO TRANSACTION
-- +goose Up

-- Building waits for the oldest transaction; so long, and not forever.
SET lock_timeout = '5min';

-- What is authorised and may lapse: the few that the provider is asked about.
DROP INDEX CONCURRENTLY IF EXISTS charges_held;
CREATE INDEX CONCURRENTLY charges_held ON charges (hold_at, created_at)
    WHERE status = 'succeeded' AND NOT captured AND release IS NULL;

-- A charge that was let go of gives its reference back. The judge between two keys stays in office
-- until this one is there.
DROP INDEX CONCURRENTLY IF EXISTS charges_one_live_reference;
CREATE UNIQUE INDEX CONCURRENTLY charges_one_live_reference
    ON charges (account_id, reference, livemode, coalesce(duplicate_of, ''))
    WHERE reference IS NOT NULL AND NOT reference_yielded AND status <> 'failed'
        AND coalesce(release, 'pending') = 'pending'
        AND (NOT captured OR amount_refunded < amount_captured);
DROP INDEX CONCURRENTLY IF EXISTS charges_live_reference;

ALTER TABLE charges VALIDATE CONSTRAINT released_is_not_captured;

-- +goose Down

SET lock_timeout = '5min';

DROP INDEX CONCURRENTLY IF EXISTS charges_one_live_reference;
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS charges_live_reference
    ON charges (account_id, reference, livemode, coalesce(duplicate_of, ''))
    WHERE reference IS NOT NULL AND NOT reference_yielded AND status <> 'failed'
        AND (NOT captured OR amount_refunded < amount_captured);
DROP INDEX CONCURRENTLY IF EXISTS charges_held;
