-- +goose Up

-- Some currencies have units so small that the provider takes more than eight digits of them.
ALTER TABLE charges DROP CONSTRAINT charges_amount_check,
    ADD CONSTRAINT charges_amount CHECK (amount BETWEEN 1 AND 999999999999) NOT VALID;

-- +goose Down
ALTER TABLE charges DROP CONSTRAINT charges_amount,
    ADD CONSTRAINT charges_amount_check CHECK (amount BETWEEN 1 AND 99999999) NOT VALID;
