-- +goose NO TRANSACTION
-- +goose Up
SET lock_timeout = '5min';
-- What the sweep of the provider's events reads. What is parked or not processed is not in it: that
-- never expires.
DROP INDEX CONCURRENTLY IF EXISTS provider_events_processed;
CREATE INDEX CONCURRENTLY provider_events_processed ON provider_events (processed_at) WHERE processed_at IS NOT NULL;
-- What the sweep of operation logs reads.
DROP INDEX CONCURRENTLY IF EXISTS operation_log_at;
CREATE INDEX CONCURRENTLY operation_log_at ON operation_log (at, n);
-- +goose Down
DROP INDEX operation_log_at, provider_events_processed;
