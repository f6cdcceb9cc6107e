-- +goose Up

ALTER TABLE charges ADD COLUMN own_receipt boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN charges.own_receipt IS 'Whether we mail the receipt to receipt_email, rather than the provider. Decided at the claim, with what the provider is told, so that never both do.';

CREATE TABLE receipts (
    charge_id       text COLLATE "C" PRIMARY KEY,
    account_id      text COLLATE "C" NOT NULL,
    event_id        text COLLATE "C" NOT NULL,
    taken_at        timestamptz NOT NULL,
    state           text        NOT NULL CHECK (state IN ('pending', 'sending', 'sent', 'refused', 'unknown', 'expired')),
    attempts        integer     NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    next_run_at     timestamptz,
    last_attempt_at timestamptz,
    last_code       smallint,
    last_error      text,
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    finished_at     timestamptz,
    CONSTRAINT pending_is_due_some_time CHECK ((state = 'pending') = (next_run_at IS NOT NULL)),
    CONSTRAINT finished_has_a_time CHECK ((state IN ('pending', 'sending')) = (finished_at IS NULL)),
    CONSTRAINT attempts_have_a_time CHECK ((attempts > 0) = (last_attempt_at IS NOT NULL)),
    CONSTRAINT sent_in_an_attempt CHECK (attempts > 0 OR state IN ('pending', 'expired'))
);
-- What is due. What is sent, or was, is not in it.
CREATE INDEX receipts_due ON receipts (next_run_at) WHERE next_run_at IS NOT NULL;
-- What is being sent at this moment, or was when its process ended.
CREATE INDEX receipts_sending ON receipts (last_attempt_at) WHERE state = 'sending';
-- What operators list, and what is old.
CREATE INDEX receipts_created ON receipts (created_at);
COMMENT ON TABLE  receipts                 IS 'Receipt mails, at most one of a charge, ever: the row is there before the mail, and sending is committed before the mail server is called.';
COMMENT ON COLUMN receipts.charge_id       IS 'The charge. As the primary key it keeps it at one mail.';
COMMENT ON COLUMN receipts.account_id      IS 'Whose charge it is.';
COMMENT ON COLUMN receipts.event_id        IS 'The event that told that the money was taken.';
COMMENT ON COLUMN receipts.taken_at        IS 'When that was. A receipt that could not be sent a day after it is not sent any more.';
COMMENT ON COLUMN receipts.state           IS 'pending; sending: the mail server may have been called, and nobody else calls it; sent: it has the mail; refused: it wants none of it; unknown: whether it has it is not known, and it is not sent again; expired: too old. Of these only pending is ever sent.';
COMMENT ON COLUMN receipts.attempts        IS 'How many times it was tried. Counts up at each claim: whoever cannot name it writes no result.';
COMMENT ON COLUMN receipts.next_run_at     IS 'When it is due; NULL unless pending.';
COMMENT ON COLUMN receipts.last_attempt_at IS 'When it was last tried: committed before the mail server was called.';
COMMENT ON COLUMN receipts.last_code       IS 'The mail server''s last reply, three digits; NULL: there was none.';
COMMENT ON COLUMN receipts.last_error      IS 'Why the last try did not end as sent; cleaned text.';
COMMENT ON COLUMN receipts.created_at      IS 'When the event was read.';
COMMENT ON COLUMN receipts.finished_at     IS 'When it came to its last state.';

CREATE TABLE receipts_cursor (
    only_row   boolean     PRIMARY KEY DEFAULT true CHECK (only_row),
    position   bigint      NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE  receipts_cursor            IS 'One row, once receipts were switched on: how far events were read for them. Not in outbox_cursors: what is too old for a receipt need not be kept for one.';
COMMENT ON COLUMN receipts_cursor.only_row   IS 'Always true; as the primary key it keeps the table at one row.';
COMMENT ON COLUMN receipts_cursor.position   IS 'The position of the last event that was looked at. Moves in the transaction that inserts the receipts.';
COMMENT ON COLUMN receipts_cursor.updated_at IS 'When it last moved.';

-- +goose Down
DROP TABLE receipts_cursor, receipts;
ALTER TABLE charges DROP COLUMN own_receipt;
