-- What the example keeps, in a schema of its own. It is applied at each start; the lock lets
-- several start at once.
SELECT pg_advisory_xact_lock(hashtext('paidonce example consumer'));
CREATE SCHEMA IF NOT EXISTS books;

-- The ids of all events that have had their effect. A row is written in the transaction of the
-- effect: one is there exactly if the other is.
CREATE TABLE IF NOT EXISTS books.seen_events (
    id      text        PRIMARY KEY,
    seen_at timestamptz NOT NULL DEFAULT now()
);

-- The newest that is known of each charge.
CREATE TABLE IF NOT EXISTS books.charges (
    id       text   PRIMARY KEY,
    currency text   NOT NULL,
    status   text   NOT NULL DEFAULT '',
    amount   bigint NOT NULL DEFAULT 0, -- minor units, captured and not refunded
    sequence bigint NOT NULL DEFAULT 0  -- of the event that said so
);

-- The effect: a line for each event of a charge, with what it changes. Nothing in this table keeps
-- a line from being written twice.
CREATE TABLE IF NOT EXISTS books.ledger (
    line      bigint      PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    event_id  text        NOT NULL,
    charge_id text        NOT NULL,
    currency  text        NOT NULL,
    amount    bigint      NOT NULL, -- minor units
    booked_at timestamptz NOT NULL DEFAULT now()
);

-- With -pull: the last event that was read.
CREATE TABLE IF NOT EXISTS books.reading (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    event_id text    NOT NULL
);
INSERT INTO books.reading (event_id) VALUES ('') ON CONFLICT DO NOTHING;
