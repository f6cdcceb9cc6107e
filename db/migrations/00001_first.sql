-- +goose Up

-- Ids and keys are compared byte by byte: COLLATE "C" says so, and is faster.

CREATE TABLE installation (
    only_row   boolean     PRIMARY KEY DEFAULT true CHECK (only_row),
    tag        text        NOT NULL CHECK (tag ~ '^[A-Za-z0-9_.-]{1,64}$'),
    created_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE  installation     IS 'One row: who this installation is.';
COMMENT ON COLUMN installation.only_row IS 'Always true; as the primary key it keeps the table at one row.';
COMMENT ON COLUMN installation.tag IS 'Goes into provider metadata and derived keys, so that two installations on one provider account never meet. PAIDONCE_INSTANCE overrides it.';
COMMENT ON COLUMN installation.created_at IS 'When the schema was first migrated.';
INSERT INTO installation (tag) VALUES (replace(gen_random_uuid()::text, '-', ''));

CREATE TABLE accounts (
    id         text COLLATE "C" PRIMARY KEY,
    name       text        NOT NULL UNIQUE CHECK (name <> '' AND length(name) <= 100),
    created_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE  accounts            IS 'Who owns charges and idempotency keys. Nothing of one account is visible to another.';
COMMENT ON COLUMN accounts.id         IS 'acct_ and a ULID.';
COMMENT ON COLUMN accounts.name       IS 'The operator''s name for it; `apikeys create --account NAME` makes it when it does not exist.';
COMMENT ON COLUMN accounts.created_at IS 'When it was made.';

CREATE TABLE api_keys (
    id         text COLLATE "C" PRIMARY KEY,
    account_id text COLLATE "C" NOT NULL REFERENCES accounts (id),
    key_hash   bytea       NOT NULL UNIQUE CHECK (octet_length(key_hash) = 32),
    key_hint   text        NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    revoked_at timestamptz
);
CREATE INDEX api_keys_account ON api_keys (account_id);
COMMENT ON TABLE  api_keys            IS 'API keys. All keys of one account share its idempotency keys, so a retry after a rotation replays.';
COMMENT ON COLUMN api_keys.id         IS 'key_ and a ULID; names the key to operators without showing it.';
COMMENT ON COLUMN api_keys.account_id IS 'The account it speaks for.';
COMMENT ON COLUMN api_keys.key_hash   IS 'SHA-256 of the key. The key itself is shown once and never stored.';
COMMENT ON COLUMN api_keys.key_hint   IS 'The last four characters, to tell keys apart in a list.';
COMMENT ON COLUMN api_keys.created_at IS 'When it was made.';
COMMENT ON COLUMN api_keys.revoked_at IS 'From then on it is refused; the row stays.';

CREATE TABLE idempotency_keys (
    account_id       text COLLATE "C" NOT NULL,
    key              text COLLATE "C" NOT NULL CHECK (octet_length(key) BETWEEN 1 AND 255),
    operation_id     text COLLATE "C" NOT NULL,
    kind             text        NOT NULL,
    hash_version     smallint    NOT NULL,
    request_hash     bytea       NOT NULL CHECK (octet_length(request_hash) = 32),
    request_id       text        NOT NULL,
    params           bytea       NOT NULL,
    resource_id      text COLLATE "C" NOT NULL,
    status           text        NOT NULL DEFAULT 'in_progress' CHECK (status IN ('in_progress', 'completed', 'failed')),
    recovery_point   text        NOT NULL,
    lease_token      text COLLATE "C",
    locked_at        timestamptz,
    attempts         integer     NOT NULL DEFAULT 1 CHECK (attempts >= 1),
    first_attempt_at timestamptz,
    last_attempt_at  timestamptz,
    next_run_at      timestamptz,
    server_errors    integer     NOT NULL DEFAULT 0 CHECK (server_errors >= 0),
    lookup_misses    integer     NOT NULL DEFAULT 0 CHECK (lookup_misses >= 0),
    first_miss_at    timestamptz,
    last_error       text,
    parked_at        timestamptz,
    response_code    smallint,
    response_headers bytea,
    response_body    bytea,
    created_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    finished_at      timestamptz,
    expires_at       timestamptz,
    PRIMARY KEY (account_id, key),
    CONSTRAINT idempotency_keys_operation UNIQUE (operation_id),
    CONSTRAINT finished_has_response CHECK ((status <> 'in_progress') = (response_code IS NOT NULL AND response_headers IS NOT NULL
        AND response_body IS NOT NULL AND finished_at IS NOT NULL AND expires_at IS NOT NULL)),
    CONSTRAINT finished_point CHECK ((status <> 'in_progress') = (recovery_point = 'finished')),
    CONSTRAINT finished_has_no_lease CHECK (status = 'in_progress' OR (lease_token IS NULL AND parked_at IS NULL AND next_run_at IS NULL)),
    CONSTRAINT lease_is_whole CHECK ((lease_token IS NULL) = (locked_at IS NULL)),
    CONSTRAINT parked_has_no_lease CHECK (parked_at IS NULL OR lease_token IS NULL),
    CONSTRAINT misses_have_a_start CHECK ((lookup_misses = 0) = (first_miss_at IS NULL))
);
-- What the reconciler reads. Finished rows are not in it, so it stays as small as the work that is
-- under way.
CREATE INDEX idempotency_keys_unfinished ON idempotency_keys (next_run_at) WHERE status = 'in_progress';
-- What the sweep reads. Unfinished rows are not in it: they never expire.
CREATE INDEX idempotency_keys_expiry ON idempotency_keys (expires_at) WHERE expires_at IS NOT NULL;
COMMENT ON TABLE  idempotency_keys IS 'The life of an idempotency key, from claim to expiry. Every write after the claim names lease_token and recovery_point.';
COMMENT ON COLUMN idempotency_keys.account_id       IS 'The account in whose scope the key lives: two accounts may choose the same key. No foreign key: it would lock the account''s row in every claim; the claim joins api_keys instead.';
COMMENT ON COLUMN idempotency_keys.key              IS 'The client''s key, 1-255 printable ASCII characters, case-sensitive.';
COMMENT ON COLUMN idempotency_keys.operation_id     IS 'op_ and a ULID, new and random for every claim generation. Derived keys and provider metadata are made of it, never of the client''s key.';
COMMENT ON COLUMN idempotency_keys.kind             IS 'Which table of phases drives it, such as charge.create. An unknown one is parked.';
COMMENT ON COLUMN idempotency_keys.hash_version     IS 'By which rule request_hash was made, so that a deployment that changes the rule still recognises older requests.';
COMMENT ON COLUMN idempotency_keys.request_hash     IS 'SHA-256 of the canonical request: method, path, query, parameters.';
COMMENT ON COLUMN idempotency_keys.request_id       IS 'Request-Id of the request that claimed the key; replays name it as Original-Request.';
COMMENT ON COLUMN idempotency_keys.params           IS 'What is sent to the provider, frozen at the claim (JSON), so that every attempt sends the same.';
COMMENT ON COLUMN idempotency_keys.resource_id      IS 'The object that the operation makes or changes. Outlives this row.';
COMMENT ON COLUMN idempotency_keys.status           IS 'in_progress; completed: the stored answer is replayed; failed: proven that nothing moved, the same request under the same key runs anew.';
COMMENT ON COLUMN idempotency_keys.recovery_point   IS 'Where to resume: named for what is true when the operation stands there.';
COMMENT ON COLUMN idempotency_keys.lease_token      IS 'Random, new at each claim and take-over. Whoever cannot name it has lost the lease. NULL: nobody works on it.';
COMMENT ON COLUMN idempotency_keys.locked_at        IS 'When the lease was taken; older than PAIDONCE_STALE_AFTER: its owner is presumed gone.';
COMMENT ON COLUMN idempotency_keys.attempts         IS 'How many times the operation was driven, the claim included.';
COMMENT ON COLUMN idempotency_keys.first_attempt_at IS 'From when on the provider may have been called. The provider''s key window counts from here. NULL again when a call is known not to have been executed.';
COMMENT ON COLUMN idempotency_keys.last_attempt_at  IS 'When the latest attempt began; look-ups search between the first and this.';
COMMENT ON COLUMN idempotency_keys.next_run_at      IS 'Not before then does the reconciler drive it again. NULL while the first owner runs.';
COMMENT ON COLUMN idempotency_keys.server_errors    IS 'How many times the provider answered 5xx to a send: it replays those for ever, so after the second only look-ups follow.';
COMMENT ON COLUMN idempotency_keys.lookup_misses    IS 'How many complete look-ups in a row found nothing since sending became pointless or unsafe.';
COMMENT ON COLUMN idempotency_keys.first_miss_at    IS 'When the first of these misses was; absence is proven by enough misses over enough time.';
COMMENT ON COLUMN idempotency_keys.last_error       IS 'Why the latest attempt had no outcome, or why it was parked. Cleaned text, for operators only.';
COMMENT ON COLUMN idempotency_keys.parked_at        IS 'Set when a person has to decide; nothing drives the operation until then.';
COMMENT ON COLUMN idempotency_keys.response_code    IS 'HTTP status of the stored answer.';
COMMENT ON COLUMN idempotency_keys.response_headers IS 'The headers that a replay repeats (JSON object).';
COMMENT ON COLUMN idempotency_keys.response_body    IS 'The bytes of the stored answer, replayed as they are.';
COMMENT ON COLUMN idempotency_keys.created_at       IS 'When the key was claimed.';
COMMENT ON COLUMN idempotency_keys.finished_at      IS 'When the answer was stored.';
COMMENT ON COLUMN idempotency_keys.expires_at       IS 'When the answer may be forgotten: finished_at and PAIDONCE_KEY_TTL.';

CREATE TABLE charges (
    id                          text COLLATE "C" PRIMARY KEY,
    account_id                  text COLLATE "C" NOT NULL,
    operation_id                text COLLATE "C" NOT NULL,
    status                      text        NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'succeeded', 'failed')),
    amount                      bigint      NOT NULL CHECK (amount BETWEEN 1 AND 99999999),
    amount_captured             bigint      NOT NULL DEFAULT 0,
    amount_refunded             bigint      NOT NULL DEFAULT 0,
    amount_refund_pending       bigint      NOT NULL DEFAULT 0,
    currency                    text        NOT NULL CHECK (currency ~ '^[a-z]{3}$'),
    capture                     boolean     NOT NULL,
    captured                    boolean     NOT NULL DEFAULT false,
    customer                    text,
    description                 text,
    metadata                    jsonb       NOT NULL DEFAULT '{}',
    receipt_email               text,
    statement_descriptor_suffix text,
    disputed                    boolean     NOT NULL DEFAULT false,
    livemode                    boolean     NOT NULL,
    failure_code                text,
    failure_message             text,
    outcome                     jsonb,
    provider                    text        NOT NULL DEFAULT 'stripe',
    provider_id                 text COLLATE "C",
    created_at                  timestamptz NOT NULL DEFAULT clock_timestamp(),
    settled_at                  timestamptz,
    CONSTRAINT charges_operation UNIQUE (operation_id),
    CONSTRAINT charges_provider_id UNIQUE (provider, provider_id),
    CONSTRAINT money_back_within_money_taken CHECK (amount_refunded >= 0 AND amount_refund_pending >= 0
        AND amount_refunded + amount_refund_pending <= amount_captured AND amount_captured <= amount),
    CONSTRAINT succeeded_has_provider_id CHECK (status <> 'succeeded' OR provider_id IS NOT NULL),
    CONSTRAINT only_success_captures CHECK (status = 'succeeded' OR (amount_captured = 0 AND NOT captured))
);
CREATE INDEX charges_newest ON charges (account_id, created_at DESC, id DESC);
COMMENT ON TABLE  charges IS 'Charges. Inserted pending with the claim, settled with the stored answer, kept for ever; no foreign key to idempotency_keys, so a swept key breaks nothing.';
COMMENT ON COLUMN charges.id                          IS 'ch_ and a ULID.';
COMMENT ON COLUMN charges.account_id                  IS 'The account that owns it.';
COMMENT ON COLUMN charges.operation_id                IS 'The operation that made it; also in the provider''s metadata.';
COMMENT ON COLUMN charges.status                      IS 'pending: no outcome known yet, or the provider itself says pending; succeeded; failed.';
COMMENT ON COLUMN charges.amount                      IS 'Minor units.';
COMMENT ON COLUMN charges.amount_captured             IS 'Minor units captured.';
COMMENT ON COLUMN charges.amount_refunded             IS 'Minor units given back.';
COMMENT ON COLUMN charges.amount_refund_pending       IS 'Minor units reserved for refunds whose outcome is not known yet.';
COMMENT ON COLUMN charges.currency                    IS 'ISO 4217, lower case.';
COMMENT ON COLUMN charges.capture                     IS 'false: authorise only.';
COMMENT ON COLUMN charges.captured                    IS 'Whether the money was taken (rather than authorised).';
COMMENT ON COLUMN charges.customer                    IS 'The provider''s customer.';
COMMENT ON COLUMN charges.description                 IS 'The client''s text.';
COMMENT ON COLUMN charges.metadata                    IS 'The client''s pairs; text to text.';
COMMENT ON COLUMN charges.receipt_email               IS 'Where a receipt goes.';
COMMENT ON COLUMN charges.statement_descriptor_suffix IS 'What the card''s statement shows.';
COMMENT ON COLUMN charges.disputed                    IS 'Whether the card''s holder disputes it.';
COMMENT ON COLUMN charges.livemode                    IS 'false: test money.';
COMMENT ON COLUMN charges.failure_code                IS 'Why it failed, for programs.';
COMMENT ON COLUMN charges.failure_message             IS 'Why it failed, for people.';
COMMENT ON COLUMN charges.outcome                     IS 'The provider''s assessment, with Stripe''s names.';
COMMENT ON COLUMN charges.provider                    IS 'Which provider.';
COMMENT ON COLUMN charges.provider_id                 IS 'The provider''s id of the charge.';
COMMENT ON COLUMN charges.created_at                  IS 'When it was claimed; lists are ordered by it.';
COMMENT ON COLUMN charges.settled_at                  IS 'When its outcome was written.';

CREATE TABLE outbox (
    event_id     text COLLATE "C" PRIMARY KEY,
    account_id   text COLLATE "C" NOT NULL,
    type         text        NOT NULL,
    operation_id text COLLATE "C" NOT NULL,
    object_id    text COLLATE "C" NOT NULL,
    payload      bytea       NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT outbox_once UNIQUE (operation_id, type)
);
COMMENT ON TABLE  outbox              IS 'Events, written in the transaction that makes them true. Delivery reads them from here.';
COMMENT ON COLUMN outbox.event_id     IS 'evt_ and a ULID, made at the insert; consumers dedupe by it.';
COMMENT ON COLUMN outbox.account_id   IS 'Whose event it is.';
COMMENT ON COLUMN outbox.type         IS 'Such as charge.succeeded.';
COMMENT ON COLUMN outbox.operation_id IS 'The operation that made it true: one event of a type each.';
COMMENT ON COLUMN outbox.object_id    IS 'The object it speaks of.';
COMMENT ON COLUMN outbox.payload      IS 'The bytes to send, at each try the same.';
COMMENT ON COLUMN outbox.created_at   IS 'When it became true.';

-- +goose Down
DROP TABLE outbox, charges, idempotency_keys, api_keys, accounts, installation;
