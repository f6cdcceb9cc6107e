-- +goose Up

ALTER TABLE webhook_endpoints ADD COLUMN metadata jsonb NOT NULL DEFAULT '{}';
COMMENT ON COLUMN webhook_endpoints.metadata IS 'The client''s pairs; text to text.';

-- +goose Down
ALTER TABLE webhook_endpoints DROP COLUMN metadata;
