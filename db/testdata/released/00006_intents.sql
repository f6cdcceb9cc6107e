-- +goose Up

ALTER TABLE charges
    ADD COLUMN intent_id   text COLLATE "C",
    ADD COLUMN next_action jsonb,
    ADD COLUMN awaits_at   timestamptz;
CREATE INDEX charges_awaiting ON charges (awaits_at) WHERE awaits_at IS NOT NULL;
COMMENT ON COLUMN charges.intent_id   IS 'The provider''s payment intent, when the charge was made through one (STRIPE_FLOW=payment_intents).';
COMMENT ON COLUMN charges.next_action IS 'What the payer has to do before the charge can go on; only while it is pending.';
COMMENT ON COLUMN charges.awaits_at   IS 'When the provider is next asked how a charge ended that waits for its payer; NULL for all others. News of the provider usually comes first.';

-- +goose Down
ALTER TABLE charges DROP COLUMN intent_id, DROP COLUMN next_action, DROP COLUMN awaits_at;
