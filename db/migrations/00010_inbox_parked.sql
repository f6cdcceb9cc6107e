-- +goose NO TRANSACTION
-- +goose Up
-- What monitoring counts. Nothing else is in it, so it stays as small as the trouble is.
SET lock_timeout = '5min';
DROP INDEX CONCURRENTLY IF EXISTS provider_events_parked;
CREATE INDEX CONCURRENTLY provider_events_parked ON provider_events (parked_at) WHERE parked_at IS NOT NULL;
-- +goose Down
DROP INDEX provider_events_parked;
