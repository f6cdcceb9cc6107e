-- +goose Up

CREATE TABLE outbox_cleaned (
    account_id text COLLATE "C" NOT NULL,
    type       text COLLATE "C" NOT NULL,
    position   bigint NOT NULL,
    PRIMARY KEY (account_id, type)
);
COMMENT ON TABLE  outbox_cleaned            IS 'How far events were forgotten after their retention: a reader whose cursor is before that has missed some, and is told so.';
COMMENT ON COLUMN outbox_cleaned.account_id IS 'Whose events.';
COMMENT ON COLUMN outbox_cleaned.type       IS 'Of which type.';
COMMENT ON COLUMN outbox_cleaned.position   IS 'The highest position of one that was forgotten. Some before it may still be there.';

-- +goose Down

DROP TABLE outbox_cleaned;
