-- +goose Up

-- An event of a charge gets its position from the commit that settles the charge. So events are
-- queued for endpoints by a cursor, and no longer by whoever gives them their positions. A relay of
-- the release before queues what it numbers, as ever; what is queued already is passed over.
CREATE TABLE deliveries_cursor (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    position bigint  NOT NULL
);
COMMENT ON TABLE  deliveries_cursor          IS 'How far events are queued for the endpoints that want them.';
COMMENT ON COLUMN deliveries_cursor.only_row IS 'Always true; as the primary key it keeps the table at one row.';
COMMENT ON COLUMN deliveries_cursor.position IS 'The position up to which every event is queued.';
INSERT INTO deliveries_cursor (position) SELECT c.last_position FROM outbox_counter c;

-- +goose Down
DROP TABLE deliveries_cursor;
