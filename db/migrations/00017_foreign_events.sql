-- +goose Up
ALTER TABLE provider_events ALTER COLUMN payload DROP NOT NULL;
COMMENT ON COLUMN provider_events.payload IS 'The raw bytes whose signature was verified. NULL: the event is not about anything of ours, and only what tells a second delivery is kept.';
-- +goose Down
UPDATE provider_events SET payload = '' WHERE payload IS NULL;
ALTER TABLE provider_events ALTER COLUMN payload SET NOT NULL;
