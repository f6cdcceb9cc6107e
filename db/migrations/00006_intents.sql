-- +goose NO TRANSACTION
-- +goose Up

ALTER TABLE charges
    ADD COLUMN IF NOT EXISTS intent_id   text COLLATE "C",
    ADD COLUMN IF NOT EXISTS next_action jsonb,
    ADD COLUMN IF NOT EXISTS awaits_at   timestamptz;
COMMENT ON COLUMN charges.intent_id   IS 'The provider''s payment intent, when the charge was made through one (STRIPE_FLOW=payment_intents).';
COMMENT ON COLUMN charges.next_action IS 'What the payer has to do before the charge can go on; only while it is pending.';
COMMENT ON COLUMN charges.awaits_at   IS 'When the provider is next asked how a charge ended that waits for its payer; NULL for all others. News of the provider usually comes first.';

SET lock_timeout = '5min';
DROP INDEX CONCURRENTLY IF EXISTS charges_awaiting;
CREATE INDEX CONCURRENTLY charges_awaiting ON charges (awaits_at) WHERE awaits_at IS NOT NULL;

-- +goose Down
ALTER TABLE charges DROP COLUMN intent_id, DROP COLUMN next_action, DROP COLUMN awaits_at;
