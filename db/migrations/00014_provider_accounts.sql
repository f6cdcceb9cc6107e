-- +goose Up

CREATE TABLE provider_accounts (
    number        smallint    PRIMARY KEY CHECK (number > 0),
    id            text COLLATE "C" NOT NULL,
    livemode      boolean     NOT NULL,
    first_seen_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    current_since timestamptz
);
-- Of accounts whose id nobody may tell us there can be several.
CREATE UNIQUE INDEX provider_accounts_id ON provider_accounts (id, livemode) WHERE id <> '';
COMMENT ON TABLE  provider_accounts               IS 'Accounts at the provider that this installation has worked with, each in one mode. An operation is never sent to another one than its own.';
COMMENT ON COLUMN provider_accounts.number        IS 'Ours: two bytes in each charge instead of the name. The first is also that of the charges that name none.';
COMMENT ON COLUMN provider_accounts.id            IS 'The provider''s id of the account; empty while our key may not ask for it, or where the provider has no such thing.';
COMMENT ON COLUMN provider_accounts.livemode      IS 'false: its test mode, which is as good as another account.';
COMMENT ON COLUMN provider_accounts.first_seen_at IS 'When a process first found that its key is for it.';
COMMENT ON COLUMN provider_accounts.current_since IS 'When it last became the one that operations are sent to.';

ALTER TABLE installation ADD COLUMN provider_account smallint;
COMMENT ON COLUMN installation.provider_account IS 'The account at the provider that operations are sent to; NULL before the first start. Claims take effect only while it is that of the process which makes them.';

-- +goose Down
ALTER TABLE installation DROP COLUMN provider_account;
DROP TABLE provider_accounts;
