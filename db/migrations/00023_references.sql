-- +goose Up

ALTER TABLE charges ADD COLUMN reference text COLLATE "C",
    ADD COLUMN duplicate_of text COLLATE "C",
    ADD COLUMN reference_yielded boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN charges.reference         IS 'The merchant''s name of what is paid for. At most one live charge has it, or one for each charge that is meant to be doubled.';
COMMENT ON COLUMN charges.duplicate_of      IS 'The charge of the same reference beside which this one is meant.';
COMMENT ON COLUMN charges.reference_yielded IS 'Its money came back, another charge took the reference, and then the money went again: it is live, and the other keeps the reference.';

-- +goose Down
ALTER TABLE charges DROP COLUMN reference_yielded, DROP COLUMN duplicate_of, DROP COLUMN reference;
