-- +goose Up

ALTER TABLE idempotency_keys ADD COLUMN sent_at timestamptz, ADD COLUMN miss_skew double precision;
COMMENT ON COLUMN idempotency_keys.sent_at   IS 'When the latest attempt began that could send, those left out that only looked; null: the attempts of this step are all that is known.';
COMMENT ON COLUMN idempotency_keys.miss_skew IS 'How many seconds the provider''s clock was ahead of this one at first_miss_at. Where it is another now, a clock has jumped, and the misses begin anew.';

-- +goose Down

ALTER TABLE idempotency_keys DROP COLUMN sent_at, DROP COLUMN miss_skew;
