-- +goose Up

ALTER TABLE api_keys ADD COLUMN read_only boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN api_keys.read_only IS 'Whether it may only read: it is refused with every method but GET, and no claim takes it. Such keys begin with rk_, which servers from before this column refuse unseen.';

-- +goose Down
ALTER TABLE api_keys DROP COLUMN read_only;
