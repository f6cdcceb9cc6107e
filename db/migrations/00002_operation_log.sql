-- +goose Up

CREATE TABLE operation_log (
    operation_id text COLLATE "C" NOT NULL,
    at           timestamptz NOT NULL DEFAULT clock_timestamp(),
    n            bigint      GENERATED ALWAYS AS IDENTITY,
    event        text        NOT NULL CHECK (event IN ('resumed', 'no_outcome', 'parked', 'settled', 'retried', 'resolved', 'adopted')),
    attempt      integer     NOT NULL,
    actor        text        NOT NULL,
    began_at     timestamptz,
    detail       text        NOT NULL DEFAULT '',
    reference    text        NOT NULL DEFAULT '',
    PRIMARY KEY (operation_id, n)
);
COMMENT ON TABLE  operation_log              IS 'What happened to operations that did not finish at their first attempt; append-only, written in the transactions it tells of. A charge that just works leaves nothing here.';
COMMENT ON COLUMN operation_log.operation_id IS 'The operation. Stays when its key is swept.';
COMMENT ON COLUMN operation_log.at           IS 'When it was written.';
COMMENT ON COLUMN operation_log.n            IS 'Order of writing within an operation; gaps mean nothing.';
COMMENT ON COLUMN operation_log.event        IS 'resumed: a driver took the lease; no_outcome: an attempt ended without one; parked; settled: after more than one attempt; retried, resolved, adopted: by a person.';
COMMENT ON COLUMN operation_log.attempt      IS 'Number of the attempt.';
COMMENT ON COLUMN operation_log.actor        IS 'Who: request, reconciler, or operator and the person''s name.';
COMMENT ON COLUMN operation_log.began_at     IS 'When the attempt began, or, for resumed, when the lease that was taken over had been taken.';
COMMENT ON COLUMN operation_log.detail       IS 'Why, in words; cleaned text.';
COMMENT ON COLUMN operation_log.reference    IS 'The provider''s request id or object id.';

-- +goose Down
DROP TABLE operation_log;
