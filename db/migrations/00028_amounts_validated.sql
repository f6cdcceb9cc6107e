-- +goose NO TRANSACTION
-- +goose Up

-- What 00026 and 00027 left unread. Nobody waits for it.
SET lock_timeout = '5min';
ALTER TABLE charges VALIDATE CONSTRAINT charges_amount;
ALTER TABLE refunds VALIDATE CONSTRAINT refunds_amount;

-- +goose Down
