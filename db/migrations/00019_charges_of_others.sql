-- +goose Up

ALTER TABLE charges ADD COLUMN provider_account smallint, ADD COLUMN capture_forgotten boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN charges.provider_account  IS 'The account at the provider that it was sent to, and its captures and refunds are; NULL: claimed before there were numbers, so it is the first one''s.';
COMMENT ON COLUMN charges.capture_forgotten IS 'Whether a recovery found it captured by an operation that the database had forgotten: the first request to capture just that amount is that one, come again.';

-- +goose Down
ALTER TABLE charges DROP COLUMN provider_account, DROP COLUMN capture_forgotten;
