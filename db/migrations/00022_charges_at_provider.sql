-- +goose Up

-- The index charges_at_provider says the same.
ALTER TABLE charges DROP CONSTRAINT charges_provider_id;

-- +goose Down
ALTER TABLE charges ADD CONSTRAINT charges_provider_id UNIQUE (provider, provider_id);
