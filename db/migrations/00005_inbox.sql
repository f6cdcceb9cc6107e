-- +goose Up

CREATE TABLE provider_events (
    id           text COLLATE "C" PRIMARY KEY CHECK (octet_length(id) BETWEEN 1 AND 255),
    type         text        NOT NULL,
    object_id    text COLLATE "C" NOT NULL,
    livemode     boolean     NOT NULL,
    payload      bytea       NOT NULL,
    received_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    processed_at timestamptz,
    result       text,
    attempts     integer     NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    next_run_at  timestamptz DEFAULT clock_timestamp(),
    last_error   text,
    parked_at    timestamptz,
    CONSTRAINT processed_has_result CHECK ((processed_at IS NULL) = (result IS NULL)),
    CONSTRAINT due_or_done CHECK ((next_run_at IS NOT NULL) = (processed_at IS NULL AND parked_at IS NULL))
);
CREATE INDEX provider_events_due ON provider_events (next_run_at) WHERE next_run_at IS NOT NULL;
CREATE INDEX provider_events_received ON provider_events USING brin (received_at);
COMMENT ON TABLE  provider_events              IS 'Events from the provider: stored as they came, by the provider''s id, then processed from here. A replay is a row that is due again.';
COMMENT ON COLUMN provider_events.id           IS 'The provider''s event id: a second delivery meets it and changes nothing.';
COMMENT ON COLUMN provider_events.type         IS 'The provider''s type, such as charge.succeeded.';
COMMENT ON COLUMN provider_events.object_id    IS 'The provider''s id of the object it speaks of. Its state is always asked for, never taken from the payload.';
COMMENT ON COLUMN provider_events.livemode     IS 'false: test money.';
COMMENT ON COLUMN provider_events.payload      IS 'The raw bytes whose signature was verified.';
COMMENT ON COLUMN provider_events.received_at  IS 'When it first came.';
COMMENT ON COLUMN provider_events.processed_at IS 'When its effect was written, in the same transaction.';
COMMENT ON COLUMN provider_events.result       IS 'What came of it.';
COMMENT ON COLUMN provider_events.attempts     IS 'How many times it was tried.';
COMMENT ON COLUMN provider_events.next_run_at  IS 'When it is due; a worker that takes it moves it into the future, which is its lease.';
COMMENT ON COLUMN provider_events.last_error   IS 'Why the latest try failed; cleaned text.';
COMMENT ON COLUMN provider_events.parked_at    IS 'Set when it failed too often: it waits for `paidonce inbox replay`.';

-- +goose Down
DROP TABLE provider_events;
