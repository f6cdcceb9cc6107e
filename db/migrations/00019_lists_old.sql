-- +goose NO TRANSACTION
-- +goose Up

-- Building waits for the oldest transaction; so long, and not for ever.
SET lock_timeout = '5min';

-- What 00018 has better. A server that was not restarted yet lists more slowly until then, and is as right as before.
DROP INDEX CONCURRENTLY IF EXISTS charges_newest;
DROP INDEX CONCURRENTLY IF EXISTS refunds_charge;

-- +goose Down

SET lock_timeout = '5min';

DROP INDEX CONCURRENTLY IF EXISTS refunds_charge;
CREATE INDEX CONCURRENTLY refunds_charge ON refunds (charge_id);
DROP INDEX CONCURRENTLY IF EXISTS charges_newest;
CREATE INDEX CONCURRENTLY charges_newest ON charges (account_id, created_at DESC, id DESC);
