-- +goose NO TRANSACTION
-- +goose Up

-- The next version of a row fits on the page of the one before, so the log has the difference only.
ALTER TABLE idempotency_keys SET (fillfactor = 45);
ALTER TABLE charges SET (fillfactor = 55);

-- An event's id is derived from its type, its object and its operation: the primary key says the
-- same.
ALTER TABLE outbox DROP CONSTRAINT IF EXISTS outbox_once;

-- Building waits for the oldest transaction; so long, and not forever.
SET lock_timeout = '5min';

-- 00018 replaced them.
DROP INDEX CONCURRENTLY IF EXISTS charges_newest;
DROP INDEX CONCURRENTLY IF EXISTS refunds_charge;

-- A charge that the provider does not know yet has no entry.
DROP INDEX CONCURRENTLY IF EXISTS charges_at_provider;
CREATE UNIQUE INDEX CONCURRENTLY charges_at_provider ON charges (provider, provider_id) WHERE provider_id IS NOT NULL;

-- +goose Down
SET lock_timeout = '5min';
DROP INDEX CONCURRENTLY IF EXISTS charges_at_provider;
CREATE INDEX CONCURRENTLY IF NOT EXISTS refunds_charge ON refunds (charge_id);
CREATE INDEX CONCURRENTLY IF NOT EXISTS charges_newest ON charges (account_id, created_at DESC, id DESC);
ALTER TABLE outbox ADD CONSTRAINT outbox_once UNIQUE (operation_id, type);
ALTER TABLE charges RESET (fillfactor);
ALTER TABLE idempotency_keys RESET (fillfactor);
