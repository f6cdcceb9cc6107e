-- +goose Up
-- The audit walks the charges of all accounts in the order of their making. BRIN: a few pages for
-- millions of rows, and next to nothing at insert.
CREATE INDEX charges_created ON charges USING brin (created_at);
-- +goose Down
DROP INDEX charges_created;
