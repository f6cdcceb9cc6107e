-- +goose Up

ALTER TABLE charges ADD COLUMN of_intent boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN charges.of_intent IS 'Whether it is the charge of a payment intent that a client made: pending from the intent''s creation on, and in no list before the provider has a charge for it. Attempts that were declined are charges of their own, without this mark.';

CREATE TABLE payment_intents (
    id                   text COLLATE "C" PRIMARY KEY,
    account_id           text COLLATE "C" NOT NULL,
    charge_id            text COLLATE "C" NOT NULL UNIQUE,
    customer             text COLLATE "C",
    created_at           timestamptz NOT NULL,
    client_secret        text,
    provider_status      text NOT NULL,
    payment_method       text,
    terms                jsonb NOT NULL DEFAULT '{}',
    return_url           text,
    latest_charge        text COLLATE "C",
    last_payment_error   jsonb,
    canceled_at          timestamptz,
    cancellation_reason  text,
    events               integer NOT NULL DEFAULT 0
);
COMMENT ON TABLE payment_intents IS 'The payment intents that clients make. Amount, metadata and what became of the money are those of the charge.';
COMMENT ON COLUMN payment_intents.id IS 'The provider''s: the client secret begins with it.';
COMMENT ON COLUMN payment_intents.charge_id IS 'The charge that it has from its creation on, and comes to.';
COMMENT ON COLUMN payment_intents.account_id IS 'Whose it is.';
COMMENT ON COLUMN payment_intents.customer IS 'The provider''s customer, as that of the charge.';
COMMENT ON COLUMN payment_intents.created_at IS 'When its creation was claimed.';
COMMENT ON COLUMN payment_intents.client_secret IS 'Lets the payer''s browser confirm at the provider. In no event and no log.';
COMMENT ON COLUMN payment_intents.provider_status IS 'What the provider said last; only of meaning while the charge is pending.';
COMMENT ON COLUMN payment_intents.payment_method IS 'The provider''s id of what it is to be paid with.';
COMMENT ON COLUMN payment_intents.terms IS 'Which means of payment it takes, and what for.';
COMMENT ON COLUMN payment_intents.return_url IS 'Where the payer comes back to from the authentication that is under way.';
COMMENT ON COLUMN payment_intents.latest_charge IS 'Our charge of the latest attempt; NULL before the first.';
COMMENT ON COLUMN payment_intents.last_payment_error IS 'Why the latest attempt failed.';
COMMENT ON COLUMN payment_intents.canceled_at IS 'When it was cancelled, here or at the provider.';
COMMENT ON COLUMN payment_intents.cancellation_reason IS 'What the cancellation that came last said; shown once the intent is cancelled.';
COMMENT ON COLUMN payment_intents.events IS 'How many events it has had.';

CREATE INDEX payment_intents_listed ON payment_intents (account_id, created_at DESC, id DESC);
CREATE INDEX payment_intents_of_customer ON payment_intents (account_id, customer, created_at DESC, id DESC)
    WHERE customer IS NOT NULL;

-- +goose Down
DROP TABLE payment_intents;
ALTER TABLE charges DROP COLUMN of_intent;
