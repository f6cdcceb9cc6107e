-- +goose NO TRANSACTION
-- +goose Up

ALTER TABLE outbox ADD COLUMN IF NOT EXISTS position bigint;
COMMENT ON COLUMN outbox.position IS 'Its place in the order in which events became visible; given after the commit, so that none is ever put in before one that a reader has passed. NULL: not given yet.';

CREATE TABLE IF NOT EXISTS outbox_counter (
    only_row      boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    last_position bigint  NOT NULL
);
COMMENT ON TABLE  outbox_counter               IS 'One row, which whoever numbers events locks: so positions become visible in their order.';
COMMENT ON COLUMN outbox_counter.only_row      IS 'Always true; as the primary key it keeps the table at one row.';
COMMENT ON COLUMN outbox_counter.last_position IS 'The last position that was given. Not a sequence: it survives a dump, and a rollback takes it back.';
INSERT INTO outbox_counter (last_position) VALUES (0) ON CONFLICT DO NOTHING;

CREATE TABLE IF NOT EXISTS webhook_endpoints (
    account_id      text COLLATE "C" NOT NULL,
    id              text COLLATE "C" NOT NULL CHECK (id ~ '^[A-Za-z0-9_.-]{1,64}$'),
    number          bigint      NOT NULL GENERATED ALWAYS AS IDENTITY UNIQUE,
    url             text        NOT NULL,
    enabled_events  text[]      NOT NULL CHECK (cardinality(enabled_events) BETWEEN 1 AND 100),
    description     text        NOT NULL DEFAULT '',
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    failing_since   timestamptz,
    disabled_at     timestamptz,
    disabled_reason text,
    PRIMARY KEY (account_id, id),
    CONSTRAINT disabled_has_a_reason CHECK ((disabled_at IS NULL) = (disabled_reason IS NULL))
);
COMMENT ON TABLE  webhook_endpoints                 IS 'Where accounts want their events sent.';
COMMENT ON COLUMN webhook_endpoints.account_id      IS 'Whose it is.';
COMMENT ON COLUMN webhook_endpoints.id              IS 'Chosen by the client, so that registering it again is the same registration.';
COMMENT ON COLUMN webhook_endpoints.number          IS 'Names it among all accounts, and tells it from one of the same id that was deleted.';
COMMENT ON COLUMN webhook_endpoints.url             IS 'Where to POST. What it leads to is looked at again at each delivery.';
COMMENT ON COLUMN webhook_endpoints.enabled_events  IS 'Types of events, or * for all.';
COMMENT ON COLUMN webhook_endpoints.description     IS 'The client''s text.';
COMMENT ON COLUMN webhook_endpoints.created_at      IS 'When it was first registered.';
COMMENT ON COLUMN webhook_endpoints.updated_at      IS 'When it was last registered.';
COMMENT ON COLUMN webhook_endpoints.failing_since   IS 'When the first delivery failed since the last that succeeded; NULL: the last one succeeded, or none was tried.';
COMMENT ON COLUMN webhook_endpoints.disabled_at     IS 'From then on nothing is sent and nothing new is queued; what was queued waits. Registering it again enables it.';
COMMENT ON COLUMN webhook_endpoints.disabled_reason IS 'Why, in words.';

CREATE TABLE IF NOT EXISTS webhook_secrets (
    endpoint   bigint      NOT NULL REFERENCES webhook_endpoints (number) ON DELETE CASCADE,
    secret     text        NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz,
    PRIMARY KEY (endpoint, secret)
);
COMMENT ON TABLE  webhook_secrets            IS 'What deliveries are signed with. They must be readable, since each delivery is signed anew.';
COMMENT ON COLUMN webhook_secrets.endpoint   IS 'The endpoint''s number.';
COMMENT ON COLUMN webhook_secrets.secret     IS 'whsec_ and base64, as of Standard Webhooks.';
COMMENT ON COLUMN webhook_secrets.created_at IS 'When it was made.';
COMMENT ON COLUMN webhook_secrets.expires_at IS 'Set when it was replaced: until then both sign. NULL: the current one.';

CREATE TABLE IF NOT EXISTS deliveries (
    endpoint         bigint      NOT NULL,
    event_id         text COLLATE "C" NOT NULL,
    position         bigint      NOT NULL,
    object_id        text COLLATE "C" NOT NULL,
    state            text        NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'delivered', 'dead')),
    claims           bigint      NOT NULL DEFAULT 0,
    attempts         integer     NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    next_run_at      timestamptz DEFAULT clock_timestamp(),
    leased_until     timestamptz,
    first_attempt_at timestamptz,
    last_attempt_at  timestamptz,
    last_status      smallint,
    last_body        bytea       CHECK (octet_length(last_body) <= 8192),
    last_error       text,
    created_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    finished_at      timestamptz,
    PRIMARY KEY (endpoint, event_id),
    CONSTRAINT pending_is_due_some_time CHECK ((state = 'pending') = (next_run_at IS NOT NULL)),
    CONSTRAINT finished_has_a_time CHECK ((state = 'pending') = (finished_at IS NULL))
);
-- What is due, by endpoint. What is delivered is not in it.
CREATE INDEX IF NOT EXISTS deliveries_due ON deliveries (endpoint, next_run_at) WHERE next_run_at IS NOT NULL;
-- What an earlier event of the same object holds back.
CREATE INDEX IF NOT EXISTS deliveries_order ON deliveries (endpoint, object_id, position) WHERE next_run_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS deliveries_event ON deliveries (event_id);
COMMENT ON TABLE  deliveries                  IS 'Each event to each endpoint that wants it, with a schedule of its own. No foreign keys: they would make the numberer wait for whoever changes an endpoint.';
COMMENT ON COLUMN deliveries.endpoint         IS 'The endpoint''s number.';
COMMENT ON COLUMN deliveries.event_id         IS 'The event; its payload is what is sent.';
COMMENT ON COLUMN deliveries.position         IS 'The event''s.';
COMMENT ON COLUMN deliveries.object_id        IS 'The event''s: events of one object are sent one after the other.';
COMMENT ON COLUMN deliveries.state            IS 'pending; delivered: answered 2xx; dead: given up on, although the endpoint takes others. Both of the latter can be sent again.';
COMMENT ON COLUMN deliveries.claims           IS 'Counts up at each claim and is never reset: whoever cannot name it has lost the lease.';
COMMENT ON COLUMN deliveries.attempts         IS 'How many times it was tried since it was queued, or queued again.';
COMMENT ON COLUMN deliveries.next_run_at      IS 'When it is due; a relay that takes it moves it to the end of its lease.';
COMMENT ON COLUMN deliveries.leased_until     IS 'Until then a relay is sending it. NULL: nobody is.';
COMMENT ON COLUMN deliveries.first_attempt_at IS 'When it was first tried since it was queued, or queued again: patience counts from here.';
COMMENT ON COLUMN deliveries.last_attempt_at  IS 'When it was last tried.';
COMMENT ON COLUMN deliveries.last_status      IS 'HTTP status of the last answer; NULL: there was none.';
COMMENT ON COLUMN deliveries.last_body        IS 'The beginning of the last answer''s body, for operators.';
COMMENT ON COLUMN deliveries.last_error       IS 'Why the last try failed; cleaned text.';
COMMENT ON COLUMN deliveries.created_at       IS 'When it was queued.';
COMMENT ON COLUMN deliveries.finished_at      IS 'When it was delivered or given up on.';

CREATE TABLE IF NOT EXISTS outbox_cursors (
    publisher  text COLLATE "C" PRIMARY KEY,
    position   bigint      NOT NULL DEFAULT 0,
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE  outbox_cursors            IS 'How far each publisher to a stream has come. Events after the last of them are not cleaned away.';
COMMENT ON COLUMN outbox_cursors.publisher  IS 'Its name, such as nats or kafka.';
COMMENT ON COLUMN outbox_cursors.position   IS 'The position up to which every event was acknowledged by the stream.';
COMMENT ON COLUMN outbox_cursors.updated_at IS 'When that was.';

SET lock_timeout = '5min';
-- What the numberer reads. Rows leave it within moments, so it stays as small as what is new: the
-- only thing that a charge pays for the order.
DROP INDEX CONCURRENTLY IF EXISTS outbox_unnumbered;
CREATE INDEX CONCURRENTLY outbox_unnumbered ON outbox (created_at, event_id) WHERE position IS NULL;
DROP INDEX CONCURRENTLY IF EXISTS outbox_position;
CREATE UNIQUE INDEX CONCURRENTLY outbox_position ON outbox (position) WHERE position IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS outbox_listed;
CREATE INDEX CONCURRENTLY outbox_listed ON outbox (account_id, position) WHERE position IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS outbox_listed_by_type;
CREATE INDEX CONCURRENTLY outbox_listed_by_type ON outbox (account_id, type, position) WHERE position IS NOT NULL;

-- +goose Down
DROP TABLE outbox_cursors, deliveries, webhook_secrets, webhook_endpoints, outbox_counter;
DROP INDEX outbox_listed_by_type, outbox_listed, outbox_position, outbox_unnumbered;
ALTER TABLE outbox DROP COLUMN position;
