-- +goose Up

ALTER TABLE charges ADD COLUMN release text, ADD COLUMN hold_at timestamptz;
COMMENT ON COLUMN charges.release IS 'How the charge ended without its money being taken: canceled or refunded (let go of), expired (it lapsed at the provider); pending: an operation is about to let go of it. A charge that waited for its payer and was cancelled is canceled and failed.';
COMMENT ON COLUMN charges.hold_at IS 'When the provider is next asked whether it still holds the money; NULL: a week after the charge was made. Only of charges that are authorised and neither captured nor let go of.';
COMMENT ON COLUMN charges.capture_operation_id IS 'The operation that captures it, lets go of it or ends it, from its claim on; NULL again when the provider definitely refused. So one of them wins.';

ALTER TABLE charges ADD CONSTRAINT released_is_not_captured CHECK (release IS NULL
    OR release IN ('pending', 'canceled', 'refunded', 'expired') AND NOT captured) NOT VALID;

-- +goose Down
ALTER TABLE charges DROP CONSTRAINT released_is_not_captured;
ALTER TABLE charges DROP COLUMN hold_at, DROP COLUMN release;
