-- Early fraud warnings that were told. Their charge is locked.

-- name: FraudWarningKnown :one
-- Whether an event tells of a warning.
SELECT EXISTS (SELECT FROM fraud_warnings WHERE provider_id = @provider_id);

-- name: FraudWarningTell :exec
INSERT INTO fraud_warnings (provider_id, account_id, charge_id)
VALUES (@provider_id, @account_id, @charge_id);
