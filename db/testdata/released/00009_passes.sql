-- +goose Up

ALTER TABLE idempotency_keys ADD COLUMN passes integer NOT NULL DEFAULT 0 CHECK (passes >= 0);
COMMENT ON COLUMN idempotency_keys.passes IS 'How many times the reconciler drove it. Its pauses grow with these alone: an impatient client must not make the reconciler wait.';

-- +goose Down
ALTER TABLE idempotency_keys DROP COLUMN passes;
