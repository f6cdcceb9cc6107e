-- +goose Up

ALTER TABLE charges ADD COLUMN shipping jsonb,
    ADD COLUMN statement_descriptor text;
COMMENT ON COLUMN charges.shipping             IS 'Where and to whom goods are sent, without what was not given; null: nothing was.';
COMMENT ON COLUMN charges.statement_descriptor IS 'What the payer''s statement shows, as it was given.';

-- +goose Down
ALTER TABLE charges DROP COLUMN statement_descriptor, DROP COLUMN shipping;
