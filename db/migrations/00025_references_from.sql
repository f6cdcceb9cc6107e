-- +goose Up

ALTER TABLE accounts ADD COLUMN reference_from text;
COMMENT ON COLUMN accounts.reference_from IS 'The key of metadata that is a charge''s reference when the request names none; null: none.';

-- +goose Down
ALTER TABLE accounts DROP COLUMN reference_from;
