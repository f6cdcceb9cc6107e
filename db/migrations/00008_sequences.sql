-- +goose NO TRANSACTION
-- +goose Up
ALTER TABLE charges ADD COLUMN IF NOT EXISTS events integer NOT NULL DEFAULT 0;
ALTER TABLE refunds ADD COLUMN IF NOT EXISTS events integer NOT NULL DEFAULT 0;
COMMENT ON COLUMN charges.events IS 'How many events have told of it; each carries its number, so that consumers can tell their order.';
COMMENT ON COLUMN refunds.events IS 'How many events have told of it; each carries its number, so that consumers can tell their order.';
-- A thousand rows a transaction, so that nobody waits long for one. Run again it changes only what
-- is not counted yet.
-- +goose StatementBegin
DO $$
DECLARE
    upto text;
    last text;
BEGIN
    DROP TABLE IF EXISTS pg_temp.told;
    CREATE TEMP TABLE told AS SELECT o.object_id COLLATE "C" AS id, count(*)::integer AS events FROM outbox o GROUP BY 1;
    ALTER TABLE pg_temp.told ADD PRIMARY KEY (id);
    ANALYZE pg_temp.told;
    COMMIT;
    last := '';
    LOOP
        SELECT max(b.id) INTO upto FROM (SELECT t.id FROM pg_temp.told t WHERE t.id > last ORDER BY t.id LIMIT 1000) b;
        EXIT WHEN upto IS NULL;
        UPDATE charges c SET events = t.events FROM pg_temp.told t WHERE t.id > last AND t.id <= upto AND c.id = t.id AND c.events < t.events;
        UPDATE refunds r SET events = t.events FROM pg_temp.told t WHERE t.id > last AND t.id <= upto AND r.id = t.id AND r.events < t.events;
        COMMIT;
        last := upto;
    END LOOP;
    DROP TABLE pg_temp.told;
END
$$;
-- +goose StatementEnd
-- +goose Down
ALTER TABLE refunds DROP COLUMN events;
ALTER TABLE charges DROP COLUMN events;
