-- +goose NO TRANSACTION
-- +goose Up

-- What 00018 has better. A server that was not restarted yet lists more slowly until then, and is as right as before.
DROP INDEX CONCURRENTLY IF EXISTS charges_newest;
DROP INDEX CONCURRENTLY IF EXISTS refunds_charge;

-- +goose Down

DROP INDEX CONCURRENTLY IF EXISTS refunds_charge;
CREATE INDEX CONCURRENTLY refunds_charge ON refunds (charge_id);
DROP INDEX CONCURRENTLY IF EXISTS charges_newest;
CREATE INDEX CONCURRENTLY charges_newest ON charges (account_id, created_at DESC, id DESC);
