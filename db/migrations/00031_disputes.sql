-- +goose Up

CREATE TABLE disputes (
    id           text COLLATE "C" PRIMARY KEY,
    account_id   text COLLATE "C" NOT NULL,
    charge_id    text COLLATE "C" NOT NULL,
    status       text        NOT NULL,
    is_open      boolean     NOT NULL,
    reason       text        NOT NULL,
    amount       bigint      NOT NULL CHECK (amount >= 0),
    currency     text        NOT NULL,
    refundable   boolean     NOT NULL,
    due_by       timestamptz,
    has_evidence boolean     NOT NULL,
    past_due     boolean     NOT NULL,
    submissions  bigint      NOT NULL CHECK (submissions >= 0),
    intent_id    text,
    livemode     boolean     NOT NULL,
    provider     text        NOT NULL DEFAULT 'stripe',
    provider_id  text COLLATE "C" NOT NULL,
    created_at   timestamptz NOT NULL,
    closed_at    timestamptz,
    as_of        timestamptz,
    CONSTRAINT disputes_provider_id UNIQUE (provider, provider_id)
);
CREATE INDEX disputes_newest ON disputes (account_id, created_at DESC, id DESC);
CREATE INDEX disputes_of_charge ON disputes (charge_id, created_at DESC, id DESC);
CREATE INDEX disputes_open ON disputes (id) WHERE is_open;
COMMENT ON TABLE  disputes IS 'Disputes of charges, as the provider has them. Written while their charge is locked, which has an event for each change.';
COMMENT ON COLUMN disputes.id           IS 'dp_ and a ULID, derived from the provider''s id and time: a database that forgot it gives it the same again.';
COMMENT ON COLUMN disputes.account_id   IS 'The account that owns its charge.';
COMMENT ON COLUMN disputes.charge_id    IS 'The charge that is disputed. It may have several.';
COMMENT ON COLUMN disputes.status       IS 'The provider''s word; warning_… are inquiries, which take no money.';
COMMENT ON COLUMN disputes.is_open      IS 'Whether it is not decided yet.';
COMMENT ON COLUMN disputes.reason       IS 'The provider''s word.';
COMMENT ON COLUMN disputes.amount       IS 'Minor units; it may differ from the charge''s.';
COMMENT ON COLUMN disputes.currency     IS 'ISO 4217, lower case.';
COMMENT ON COLUMN disputes.refundable   IS 'Whether the provider still lets the charge be refunded.';
COMMENT ON COLUMN disputes.due_by       IS 'Until when evidence is accepted.';
COMMENT ON COLUMN disputes.has_evidence IS 'Whether there is evidence.';
COMMENT ON COLUMN disputes.past_due     IS 'Whether the last evidence came too late.';
COMMENT ON COLUMN disputes.submissions  IS 'How often evidence was submitted.';
COMMENT ON COLUMN disputes.intent_id    IS 'The provider''s payment intent, if one made the charge.';
COMMENT ON COLUMN disputes.livemode     IS 'Whether real money is disputed.';
COMMENT ON COLUMN disputes.provider     IS 'Which provider.';
COMMENT ON COLUMN disputes.provider_id  IS 'The provider''s id of the dispute.';
COMMENT ON COLUMN disputes.created_at   IS 'When it was opened, in the provider''s time.';
COMMENT ON COLUMN disputes.closed_at    IS 'When it was first known to be decided; it may be opened again.';
COMMENT ON COLUMN disputes.as_of        IS 'When it stood like this, in the provider''s time; what is older is not news.';

CREATE TABLE fraud_warnings (
    provider_id text COLLATE "C" PRIMARY KEY,
    account_id  text COLLATE "C" NOT NULL,
    charge_id   text COLLATE "C" NOT NULL,
    told_at     timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE  fraud_warnings IS 'Early fraud warnings of which an event was written: each is told once.';
COMMENT ON COLUMN fraud_warnings.provider_id IS 'The provider''s id.';
COMMENT ON COLUMN fraud_warnings.account_id  IS 'The account that owns its charge.';
COMMENT ON COLUMN fraud_warnings.charge_id   IS 'The charge that it warns of.';
COMMENT ON COLUMN fraud_warnings.told_at     IS 'When the event was written.';

-- +goose Down
DROP TABLE fraud_warnings;
DROP TABLE disputes;
