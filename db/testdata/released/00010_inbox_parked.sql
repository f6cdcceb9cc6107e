-- +goose Up
-- What monitoring counts. Nothing else is in it, so it stays as small as the trouble is.
CREATE INDEX provider_events_parked ON provider_events (parked_at) WHERE parked_at IS NOT NULL;
-- +goose Down
DROP INDEX provider_events_parked;
