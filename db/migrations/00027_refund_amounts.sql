-- +goose Up

-- As 00026 does for charges.
ALTER TABLE refunds DROP CONSTRAINT refunds_amount_check,
    ADD CONSTRAINT refunds_amount CHECK (amount BETWEEN 1 AND 999999999999) NOT VALID;

-- +goose Down
ALTER TABLE refunds DROP CONSTRAINT refunds_amount,
    ADD CONSTRAINT refunds_amount_check CHECK (amount BETWEEN 1 AND 99999999) NOT VALID;
