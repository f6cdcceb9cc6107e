-- +goose Up

ALTER TABLE installation
    ADD COLUMN history    text        NOT NULL DEFAULT '',
    ADD COLUMN timeline   text        NOT NULL DEFAULT '',
    ADD COLUMN forked_at  timestamptz;
COMMENT ON COLUMN installation.history   IS 'Which history of the database was vouched for: system identifier, database and timeline. Empty: no server has looked yet.';
COMMENT ON COLUMN installation.timeline  IS 'The timeline of history, which every claim compares with the server''s. Empty: it is not compared.';
COMMENT ON COLUMN installation.forked_at IS 'When it was noticed that the database may have forgotten something. Until that was looked up in the provider''s books, nothing is claimed. NULL: all is well.';

-- Not in installation, which every claim reads: serializable transactions would be in conflict with
-- it.
CREATE TABLE history_mark (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    mark     bigint  NOT NULL
);
COMMENT ON TABLE  history_mark          IS 'One row. Only ever grows: servers count it up and remember it, so a database that was put back under them is noticed.';
COMMENT ON COLUMN history_mark.only_row IS 'Always true; as the primary key it keeps the table at one row.';
COMMENT ON COLUMN history_mark.mark     IS 'How often it was counted up.';
INSERT INTO history_mark (mark) VALUES (0);

CREATE TABLE servers (
    id         text COLLATE "C" PRIMARY KEY,
    seen_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    vouched    text        NOT NULL DEFAULT ''
);
COMMENT ON TABLE  servers         IS 'Servers that claim keys. After a promotion each says whether what it claimed last is still there.';
COMMENT ON COLUMN servers.id      IS 'srv_ and a ULID, new at each start.';
COMMENT ON COLUMN servers.seen_at IS 'When it last said that it is there.';
COMMENT ON COLUMN servers.vouched IS 'The history in which it has found all that it had claimed.';

CREATE TABLE recoveries (
    n               bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    began_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    reason          text        NOT NULL,
    lossy           boolean     NOT NULL,
    history         text        NOT NULL,
    alive_since     timestamptz,
    outbox_position bigint      NOT NULL,
    since           timestamptz,
    lease_token     text COLLATE "C",
    leased_until    timestamptz,
    charges         integer     NOT NULL DEFAULT 0,
    refunds         integer     NOT NULL DEFAULT 0,
    captures        integer     NOT NULL DEFAULT 0,
    last_error      text,
    finished_at     timestamptz
);
CREATE UNIQUE INDEX recoveries_open ON recoveries ((true)) WHERE finished_at IS NULL;
COMMENT ON TABLE  recoveries                 IS 'Each time that the database''s history was found to have forked, and what the provider''s books gave back. Kept for ever: there are few.';
COMMENT ON COLUMN recoveries.n               IS 'Counts them.';
COMMENT ON COLUMN recoveries.began_at        IS 'When it was noticed.';
COMMENT ON COLUMN recoveries.reason          IS 'How it was noticed, in words.';
COMMENT ON COLUMN recoveries.lossy           IS 'Whether something is known or likely to be missing. false: the database was promoted, and may be whole.';
COMMENT ON COLUMN recoveries.history         IS 'The history that is to be vouched for.';
COMMENT ON COLUMN recoveries.alive_since     IS 'Servers that were seen since then have to vouch; NULL: none was.';
COMMENT ON COLUMN recoveries.outbox_position IS 'The last position of an event at that moment: a reader that stood further has lost its cursor, and goes on from here.';
COMMENT ON COLUMN recoveries.since           IS 'From when on the provider''s books are read, in its time. Kept before anything is written, so that an interrupted recovery begins there again.';
COMMENT ON COLUMN recoveries.lease_token     IS 'Who reads the books.';
COMMENT ON COLUMN recoveries.leased_until    IS 'Until then nobody else does.';
COMMENT ON COLUMN recoveries.charges         IS 'Charges that were rebuilt.';
COMMENT ON COLUMN recoveries.refunds         IS 'Refunds that were rebuilt.';
COMMENT ON COLUMN recoveries.captures        IS 'Charges that were found captured.';
COMMENT ON COLUMN recoveries.last_error      IS 'Why the latest try did not end; cleaned text.';
COMMENT ON COLUMN recoveries.finished_at     IS 'When claims went on; NULL while they wait. At most one is open.';

CREATE TABLE recovered_keys (
    account_id       text COLLATE "C" NOT NULL,
    key_hash         bytea       NOT NULL CHECK (octet_length(key_hash) = 32),
    operation_id     text COLLATE "C" NOT NULL,
    kind             text        NOT NULL,
    hash_version     smallint    NOT NULL,
    request_hash     bytea       NOT NULL CHECK (octet_length(request_hash) = 32),
    request_id       text        NOT NULL,
    resource_id      text COLLATE "C" NOT NULL,
    response_code    smallint    NOT NULL,
    response_headers bytea       NOT NULL,
    response_body    bytea       NOT NULL,
    created_at       timestamptz NOT NULL,
    expires_at       timestamptz NOT NULL,
    PRIMARY KEY (account_id, key_hash)
);
CREATE INDEX recovered_keys_expiry ON recovered_keys (expires_at);
COMMENT ON TABLE  recovered_keys                  IS 'Keys that the database had forgotten, rebuilt from the provider''s books. Only their hash is known there; the first caller who names the key moves its row to idempotency_keys.';
COMMENT ON COLUMN recovered_keys.account_id       IS 'The account in whose scope the key lives.';
COMMENT ON COLUMN recovered_keys.key_hash         IS 'SHA-256 of account, a space, and key.';
COMMENT ON COLUMN recovered_keys.operation_id     IS 'As in idempotency_keys, and so are the columns below.';
COMMENT ON COLUMN recovered_keys.kind             IS 'Which table of phases drove it.';
COMMENT ON COLUMN recovered_keys.hash_version     IS 'By which rule request_hash was made.';
COMMENT ON COLUMN recovered_keys.request_hash     IS 'SHA-256 of the canonical request.';
COMMENT ON COLUMN recovered_keys.request_id       IS 'Request-Id of the request that claimed the key.';
COMMENT ON COLUMN recovered_keys.resource_id      IS 'The object that the operation made.';
COMMENT ON COLUMN recovered_keys.response_code    IS 'HTTP status of the answer, rendered from the provider''s object.';
COMMENT ON COLUMN recovered_keys.response_headers IS 'The headers that a replay repeats (JSON object).';
COMMENT ON COLUMN recovered_keys.response_body    IS 'The bytes of the answer.';
COMMENT ON COLUMN recovered_keys.created_at       IS 'When the key was claimed, in whole seconds.';
COMMENT ON COLUMN recovered_keys.expires_at       IS 'When the answer may be forgotten.';

-- +goose Down
DROP TABLE recovered_keys, recoveries, servers, history_mark;
ALTER TABLE installation DROP COLUMN history, DROP COLUMN timeline, DROP COLUMN forked_at;
