-- +goose NO TRANSACTION
-- +goose Up

ALTER TABLE refunds
    ADD COLUMN IF NOT EXISTS made_by text NOT NULL DEFAULT 'api',
    ADD COLUMN IF NOT EXISTS asks_at timestamptz;
COMMENT ON COLUMN refunds.made_by      IS 'api: a request to us; provider: somebody at the provider, in its dashboard or with another program.';
COMMENT ON COLUMN refunds.asks_at      IS 'When the provider is next asked how a refund ended that it has and that is under way; NULL: it was not asked yet.';
COMMENT ON COLUMN refunds.operation_id IS 'The operation that made it; also in the provider''s metadata. Of one that was made at the provider, its id there.';

ALTER TABLE charges ADD COLUMN IF NOT EXISTS asks_at timestamptz;
COMMENT ON COLUMN charges.asks_at IS 'When the provider is next asked how a charge ended that it has and whose money is under way, as a bank debit''s is for days; NULL: it was not asked yet.';

-- Building waits for the oldest transaction; so long, and not forever.
SET lock_timeout = '5min';

-- What is under way at the provider: few rows. One that was never asked for is due from its making.
DROP INDEX CONCURRENTLY IF EXISTS charges_under_way;
CREATE INDEX CONCURRENTLY charges_under_way ON charges ((coalesce(asks_at, created_at)))
    WHERE status = 'pending' AND provider_id IS NOT NULL;

DROP INDEX CONCURRENTLY IF EXISTS refunds_under_way;
CREATE INDEX CONCURRENTLY refunds_under_way ON refunds ((coalesce(asks_at, created_at)))
    WHERE status IN ('pending', 'requires_action') AND provider_id IS NOT NULL;

-- +goose Down

SET lock_timeout = '5min';

DROP INDEX CONCURRENTLY IF EXISTS refunds_under_way;
DROP INDEX CONCURRENTLY IF EXISTS charges_under_way;
ALTER TABLE charges DROP COLUMN asks_at;
ALTER TABLE refunds DROP COLUMN made_by, DROP COLUMN asks_at;
