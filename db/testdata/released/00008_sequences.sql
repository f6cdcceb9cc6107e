-- +goose Up
ALTER TABLE charges ADD COLUMN events integer NOT NULL DEFAULT 0;
ALTER TABLE refunds ADD COLUMN events integer NOT NULL DEFAULT 0;
COMMENT ON COLUMN charges.events IS 'How many events have told of it; each carries its number, so that consumers can tell their order.';
COMMENT ON COLUMN refunds.events IS 'How many events have told of it; each carries its number, so that consumers can tell their order.';
UPDATE charges c SET events = n.events FROM (SELECT o.object_id, count(*) AS events FROM outbox o GROUP BY o.object_id) n WHERE n.object_id = c.id;
UPDATE refunds r SET events = n.events FROM (SELECT o.object_id, count(*) AS events FROM outbox o GROUP BY o.object_id) n WHERE n.object_id = r.id;
-- +goose Down
ALTER TABLE refunds DROP COLUMN events;
ALTER TABLE charges DROP COLUMN events;
