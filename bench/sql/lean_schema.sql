-- What a charge could cost: a schema with what it needs to be safe, and nothing more. Text ids, as
-- clients see them.
CREATE TABLE idempotency_keys (
    account_id    bigint      NOT NULL,
    key           text        COLLATE "C" NOT NULL,
    request_hash  bytea       NOT NULL,
    status        text        NOT NULL DEFAULT 'in_progress' CHECK (status IN ('in_progress', 'completed', 'failed')),
    charge_id     text        COLLATE "C" NOT NULL,
    response_code integer,
    response_body bytea,
    locked_at     timestamptz NOT NULL DEFAULT now(),
    expires_at    timestamptz NOT NULL DEFAULT now() + interval '24 hours',
    PRIMARY KEY (account_id, key)
);
CREATE INDEX idempotency_keys_stale ON idempotency_keys (locked_at) WHERE status = 'in_progress';
CREATE INDEX idempotency_keys_expires ON idempotency_keys (expires_at) WHERE status <> 'in_progress';
CREATE TABLE charges (
    id           text        COLLATE "C" PRIMARY KEY,
    account_id   bigint      NOT NULL,
    amount       bigint      NOT NULL CHECK (amount > 0),
    currency     text        NOT NULL,
    customer     text        NOT NULL,
    description  text        NOT NULL,
    status       text        NOT NULL DEFAULT 'pending',
    provider_ref text,
    created_at   timestamptz NOT NULL DEFAULT now(),
    updated_at   timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX charges_account_created ON charges (account_id, created_at);
CREATE TABLE outbox (
    id           bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    topic        text        NOT NULL,
    aggregate_id text        NOT NULL,
    payload      jsonb       NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT now(),
    published_at timestamptz
);
CREATE INDEX outbox_unpublished ON outbox (id) WHERE published_at IS NULL;
