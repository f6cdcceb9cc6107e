-- Payment intents that clients make. What is about money is in their charge.

-- name: PaymentIntentCancelReason :exec
UPDATE payment_intents SET cancellation_reason = sqlc.narg(reason) WHERE charge_id = @charge_id;

-- name: PaymentIntentCharge :one
SELECT i.charge_id FROM payment_intents i WHERE i.id = @id AND i.account_id = @account_id;

-- name: PaymentIntentCountEvent :one
UPDATE payment_intents SET events = events + 1 WHERE id = @id RETURNING events;

-- name: PaymentIntentGet :one
SELECT sqlc.embed(i), sqlc.embed(c) FROM payment_intents i JOIN charges c ON c.id = i.charge_id
WHERE i.id = @id AND i.account_id = @account_id;

-- name: PaymentIntentList :many
-- A page, newest first.
SELECT sqlc.embed(i), sqlc.embed(c) FROM payment_intents i JOIN charges c ON c.id = i.charge_id
WHERE i.account_id = @account_id
    AND (i.created_at, i.id) > (@above_at::timestamptz, @above_id::text)
    AND (i.created_at, i.id) < (@below_at::timestamptz, @below_id::text)
ORDER BY i.created_at DESC, i.id DESC
LIMIT @max_rows::integer;

-- name: PaymentIntentListBefore :many
-- The same page from the other end, oldest first; the caller reverses it.
SELECT sqlc.embed(i), sqlc.embed(c) FROM payment_intents i JOIN charges c ON c.id = i.charge_id
WHERE i.account_id = @account_id
    AND (i.created_at, i.id) > (@above_at::timestamptz, @above_id::text)
    AND (i.created_at, i.id) < (@below_at::timestamptz, @below_id::text)
ORDER BY i.created_at, i.id
LIMIT @max_rows::integer;

-- name: PaymentIntentListOfCustomer :many
-- As PaymentIntentList, of a customer.
SELECT sqlc.embed(i), sqlc.embed(c) FROM payment_intents i JOIN charges c ON c.id = i.charge_id
WHERE i.account_id = @account_id AND i.customer = @customer::text
    AND (i.created_at, i.id) > (@above_at::timestamptz, @above_id::text)
    AND (i.created_at, i.id) < (@below_at::timestamptz, @below_id::text)
ORDER BY i.created_at DESC, i.id DESC
LIMIT @max_rows::integer;

-- name: PaymentIntentListOfCustomerBefore :many
-- Oldest first.
SELECT sqlc.embed(i), sqlc.embed(c) FROM payment_intents i JOIN charges c ON c.id = i.charge_id
WHERE i.account_id = @account_id AND i.customer = @customer::text
    AND (i.created_at, i.id) > (@above_at::timestamptz, @above_id::text)
    AND (i.created_at, i.id) < (@below_at::timestamptz, @below_id::text)
ORDER BY i.created_at, i.id
LIMIT @max_rows::integer;

-- name: PaymentIntentOfCharge :one
SELECT * FROM payment_intents WHERE charge_id = @charge_id;

-- name: PaymentIntentOfChargeLock :one
-- The charge is locked, or was written by this transaction.
SELECT * FROM payment_intents WHERE charge_id = @charge_id FOR UPDATE;

-- name: PaymentIntentPut :exec
-- Writes an intent as it is now; whether it is new, the charge that is locked decides.
INSERT INTO payment_intents (id, account_id, charge_id, customer, created_at, client_secret,
    provider_status, payment_method, terms, return_url, latest_charge, last_payment_error,
    canceled_at, cancellation_reason)
VALUES (@id, @account_id, @charge_id, sqlc.narg(customer), @created_at, sqlc.narg(client_secret),
    @provider_status, sqlc.narg(payment_method), @terms, sqlc.narg(return_url),
    sqlc.narg(latest_charge), sqlc.narg(last_payment_error), sqlc.narg(canceled_at),
    sqlc.narg(cancellation_reason))
ON CONFLICT (id) DO UPDATE SET
    customer = excluded.customer, client_secret = excluded.client_secret,
    provider_status = excluded.provider_status, payment_method = excluded.payment_method,
    terms = excluded.terms, return_url = excluded.return_url,
    latest_charge = excluded.latest_charge, last_payment_error = excluded.last_payment_error,
    canceled_at = excluded.canceled_at, cancellation_reason = excluded.cancellation_reason;
