-- +goose Up

ALTER TABLE charges ADD COLUMN capture_operation_id text COLLATE "C";
COMMENT ON COLUMN charges.capture_operation_id IS 'The operation that captures it, from its claim on; NULL again when the provider definitely refused. So a charge is captured once.';

CREATE TABLE refunds (
    id             text COLLATE "C" PRIMARY KEY,
    account_id     text COLLATE "C" NOT NULL,
    charge_id      text COLLATE "C" NOT NULL REFERENCES charges (id),
    operation_id   text COLLATE "C" NOT NULL,
    status         text        NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'succeeded', 'failed', 'canceled', 'requires_action')),
    amount         bigint      NOT NULL CHECK (amount BETWEEN 1 AND 99999999),
    currency       text        NOT NULL CHECK (currency ~ '^[a-z]{3}$'),
    reason         text        CHECK (reason IN ('duplicate', 'fraudulent', 'requested_by_customer')),
    metadata       jsonb       NOT NULL DEFAULT '{}',
    failure_reason text,
    provider       text        NOT NULL DEFAULT 'stripe',
    provider_id    text COLLATE "C",
    created_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    settled_at     timestamptz,
    CONSTRAINT refunds_operation UNIQUE (operation_id),
    CONSTRAINT refunds_provider_id UNIQUE (provider, provider_id),
    CONSTRAINT refund_succeeded_has_provider_id CHECK (status <> 'succeeded' OR provider_id IS NOT NULL)
);
CREATE INDEX refunds_newest ON refunds (account_id, created_at DESC, id DESC);
CREATE INDEX refunds_charge ON refunds (charge_id);
COMMENT ON TABLE  refunds IS 'Refunds. Inserted pending with the claim, when their amount is reserved on the charge; settled with the stored answer.';
COMMENT ON COLUMN refunds.id             IS 're_ and a ULID.';
COMMENT ON COLUMN refunds.account_id     IS 'The account that owns it.';
COMMENT ON COLUMN refunds.charge_id      IS 'The charge whose money goes back.';
COMMENT ON COLUMN refunds.operation_id   IS 'The operation that made it; also in the provider''s metadata.';
COMMENT ON COLUMN refunds.status         IS 'pending: no outcome known yet, or the provider says so; succeeded (it can still fail days later); failed; canceled; requires_action.';
COMMENT ON COLUMN refunds.amount         IS 'Minor units.';
COMMENT ON COLUMN refunds.currency       IS 'The charge''s.';
COMMENT ON COLUMN refunds.reason         IS 'The client''s, one of Stripe''s.';
COMMENT ON COLUMN refunds.metadata       IS 'The client''s pairs; text to text.';
COMMENT ON COLUMN refunds.failure_reason IS 'Why it failed.';
COMMENT ON COLUMN refunds.provider       IS 'Which provider.';
COMMENT ON COLUMN refunds.provider_id    IS 'The provider''s id of the refund; once set, the amount is in the charge''s amount_refunded, before that in amount_refund_pending.';
COMMENT ON COLUMN refunds.created_at     IS 'When it was claimed.';
COMMENT ON COLUMN refunds.settled_at     IS 'When its outcome was written.';

-- +goose Down
DROP TABLE refunds;
ALTER TABLE charges DROP COLUMN capture_operation_id;
