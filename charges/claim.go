package charges

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	"paidonce/db"
	"paidonce/idemkeys"
	"paidonce/problem"
)

// derivedKey returns our idempotency key at the provider. It is derived from the random operation
// id, never from the client's key: two accounts may choose the same key, and a key may be used
// again after it expired.
func derivedKey(installation, operationID, step string) string {
	sum := sha256.Sum256([]byte(installation + "\x00" + operationID + "\x00" + step))
	return "po_" + hex.EncodeToString(sum[:20])
}

// Captures and refunds claim and settle in transactions of several statements, which they share
// with nobody: they change a charge that others may be changing too, and are rare beside charges.

// claimOnCharge claims a key for an operation on a charge. begin sees the charge, locked, and
// either refuses, with a [*problem.Error], or reserves what the operation needs; it returns what to
// freeze, and may say of which kind the operation is. A taken key comes before a refusal: its own
// operation may be the reason for it. param is what the request calls the charge.
func (s *Store) claimOnCharge(
	ctx context.Context, r idemkeys.Request, op *idemkeys.Operation, chargeID, param string,
	begin func(ctx context.Context, tx db.DBTX, charge db.Charge) (frozen any, err error),
) (idemkeys.Claimed, error) {
	var at time.Time
	err := db.Tx(ctx, s.pool, func(ctx context.Context, tx db.DBTX) error {
		row, found, err := s.lock(ctx, tx, r.AccountID, chargeID)
		if err != nil {
			return err
		}
		if !found {
			return s.refuseUnlessTaken(
				ctx, tx, r, problem.ResourceMissing.Of(param, "There is no such charge."),
			)
		}
		if op.ResourceID == chargeID {
			op.ResourceID = row.ID // it may have been named by the provider's id
		}
		if err := s.checkCurrent(ctx, tx); err != nil {
			return err
		}
		if err := s.checkChargeAccount(row, param); err != nil {
			return s.refuseUnlessTaken(ctx, tx, r, err)
		}
		frozen, err := begin(ctx, tx, row)
		if err != nil {
			return s.refuseUnlessTaken(ctx, tx, r, err)
		}
		if op.Params, err = json.Marshal(frozen); err != nil {
			return db.Final(err)
		}
		claimedAt, got, err := idemkeys.ClaimIn(ctx, tx, r, op)
		at = claimedAt
		if err != nil {
			return err
		}
		return claimError(got)
	})
	op.SetClaimed(at)
	return claimResult(err)
}

// lock locks a charge of an account, which may be named by the provider's id of it.
func (s *Store) lock(
	ctx context.Context, tx db.DBTX, accountID, id string,
) (row db.Charge, found bool, err error) {
	row, found, err = db.Found(
		s.queries.ChargeLock(ctx, tx, db.ChargeLockParams{AccountID: accountID, ID: id}),
	)
	if err != nil || found {
		return row, found, err
	}
	return db.Found(s.queries.ChargeLockAtProvider(
		ctx, tx, db.ChargeLockAtProviderParams{AccountID: accountID, ProviderID: id},
	))
}

// Errors that roll a claim back.
var (
	errKeyTaken  = db.Final(errors.New("the key is taken"))
	errForbidden = db.Final(errors.New("the API key is revoked or may only read"))
)

// claimError is the error of a transaction that cannot claim, or nil if it can.
func claimError(got idemkeys.Claimed) error {
	switch got {
	case idemkeys.Won:
		return nil
	case idemkeys.Forbidden:
		return errForbidden
	default:
		return errKeyTaken
	}
}

// claimResult is the result of a claim whose transaction, or check, ended with err: what claimError
// said is no error any more.
func claimResult(err error) (idemkeys.Claimed, error) {
	switch {
	// in both cases the stored row says what happened
	case errors.Is(err, errKeyTaken), errors.Is(err, db.ErrCommitUnknown):
		return idemkeys.Lost, nil
	case errors.Is(err, errForbidden):
		return idemkeys.Forbidden, nil
	case err != nil:
		return idemkeys.Lost, err
	}
	return idemkeys.Won, nil
}

// refuseUnlessTaken returns the refusal, unless the key is taken: a refusal says something of the
// account's charges, and what is not there, or not as it should be, may be what the database has
// forgotten.
func (s *Store) refuseUnlessTaken(
	ctx context.Context, tx db.DBTX, r idemkeys.Request, refusal error,
) error {
	var refused *problem.Error
	if !errors.As(refusal, &refused) {
		return refusal
	}
	got, err := idemkeys.WouldClaim(ctx, tx, r)
	if err == nil {
		err = claimError(got)
	}
	if err != nil {
		return err
	}
	return db.Final(&idemkeys.Refused{Reason: refused})
}
