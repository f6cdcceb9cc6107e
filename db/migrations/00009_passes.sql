-- +goose NO TRANSACTION
-- +goose Up

ALTER TABLE idempotency_keys
    ADD COLUMN IF NOT EXISTS passes integer NOT NULL DEFAULT 0,
    DROP CONSTRAINT IF EXISTS idempotency_keys_passes_check,
    ADD CONSTRAINT idempotency_keys_passes_check CHECK (passes >= 0) NOT VALID;
COMMENT ON COLUMN idempotency_keys.passes IS 'How many times the reconciler drove it. Its pauses grow with these alone: an impatient client must not make the reconciler wait.';

-- Reads the whole table, and keeps nobody waiting.
SET lock_timeout = '5min';
ALTER TABLE idempotency_keys VALIDATE CONSTRAINT idempotency_keys_passes_check;

-- +goose Down
ALTER TABLE idempotency_keys DROP COLUMN passes;
