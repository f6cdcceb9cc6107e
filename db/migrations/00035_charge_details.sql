-- +goose Up

ALTER TABLE charges ADD COLUMN details text;
COMMENT ON COLUMN charges.details IS 'JSON of what the provider tells of the payment: the payment method, the receipt''s address, its balance transaction. Null: nothing is known.';

-- +goose Down
ALTER TABLE charges DROP COLUMN details;
