package idemkeys

import (
	"context"
	"errors"
	"fmt"
	"time"

	"paidonce/db"
)

// Claim is commit 1 of an operation: it writes the key's row and the domain's rows in one
// transaction, unless the key is taken. op is the operation that the key is to stand for. The claim
// sets its kind, its resource and the frozen parameters, and, when it won, the times that
// [Operation.SetClaimed] sets. A claim is called again, with another op, when the key was removed
// meanwhile.
//
// Errors: [*Refused], or the database's.
type Claim func(ctx context.Context, r Request, op *Operation) (Claimed, error)

// Claimed is the result of a claim.
type Claimed int

// The results of a claim.
const (
	// Lost says that the key is taken, or that claims are held back; the runner finds out which.
	Lost Claimed = iota
	// Won says that the key stands for the operation.
	Won
	// Forbidden says that the caller's API key is revoked, or may only read. Nothing was claimed.
	Forbidden
)

// claimTries bounds the race with sweeps, in which a key is taken at the insert and gone at the
// read. Losing it five times in a row is no coincidence any more.
const claimTries = 5

// ErrContended says that the key was taken whenever it was claimed, and gone whenever it was read.
// Nothing was done. It wraps [ErrUnavailable].
var ErrContended = fmt.Errorf("the key came and went %d times: %w", claimTries, ErrUnavailable)

// claim runs commit 1. For a claim that lost it returns the key's row as taken, or nil when that is
// gone again. Errors: [ErrForbidden], [ErrHeld], those of claim, or the database's.
func (r *Runner) claim(
	ctx context.Context, q Request, claim Claim,
) (op *Operation, taken *record, won bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, commitWait)
	defer cancel()
	if k, err := r.passGate(ctx, q); err != nil || k != nil {
		return op, k, false, err
	}
	op = newOperation(q)
	got, err := claim(ctx, q, op)
	switch {
	case err != nil:
		if errors.Is(err, db.ErrUnavailable) && !errors.Is(err, db.ErrNotWritten) {
			r.Abandon(op, "its caller did not hear that it had claimed it")
		}
		return op, nil, false, err
	case got == Won:
		return op, nil, true, nil
	case got == Forbidden:
		return op, nil, false, ErrForbidden
	}
	k, err := r.readFor(ctx, q.AccountID, q.Key, q.APIKeyID)
	switch {
	case errors.Is(err, ErrNotFound):
		return op, nil, false, r.whyLost(ctx, q)
	case err != nil:
		return op, nil, false, err
	}
	row := k.IdempotencyKey
	if row.OperationID == op.ID && row.LeaseToken != nil && *row.LeaseToken == op.LeaseToken {
		op.Params = row.Params // the claim was ours, and its answer was lost
		op.SetClaimed(row.CreatedAt)
		return op, nil, true, nil
	}
	return op, &k, false, nil
}

// passGate returns at once while the gate is open. Otherwise it returns a key that is taken, since
// what is stored may be replayed, and lets the claim of any other key wait for the gate. Errors:
// the gate's, the database's.
func (r *Runner) passGate(ctx context.Context, q Request) (*record, error) {
	held := r.held()
	if held == nil {
		return nil, nil
	}
	k, err := r.readFor(ctx, q.AccountID, q.Key, q.APIKeyID)
	if errors.Is(err, ErrNotFound) {
		if found, err := r.moveRecovered(ctx, q.AccountID, q.Key); err != nil || found {
			return nil, err // claim: the key is taken, and is read again
		}
		if r.gate == nil || r.hold != nil && r.hold() != nil {
			return nil, held
		}
		return nil, r.gate.Wait(ctx)
	}
	if err != nil {
		return nil, err
	}
	return &k, nil
}

// whyLost finds out why a key could not be claimed although it is not there. A key that the
// database had forgotten and that was rebuilt since gets its name back: then it is there. Errors:
// [ErrForbidden], that claims are held, or the database's. After nil the claim may be tried again.
func (r *Runner) whyLost(ctx context.Context, q Request) error {
	if found, err := r.moveRecovered(ctx, q.AccountID, q.Key); err != nil || found {
		return err
	}
	why, err := db.Read(ctx, r.pool, r.queries.KeyClaimable, claimable(q))
	switch {
	case err != nil:
		return err
	case !why.Allowed:
		return ErrForbidden
	case why.Held:
		return r.recheck()
	}
	return nil
}

// ClaimIn claims the request's key for an operation, in a transaction of several statements, and
// returns the time of the claim. Errors: the database's.
func ClaimIn(ctx context.Context, tx Tx, r Request, op *Operation) (time.Time, Claimed, error) {
	version, hash := r.Fingerprint.Current()
	at, won, err := db.Found(db.New().KeyClaim(ctx, tx, db.KeyClaimParams{
		AccountID: r.AccountID, Key: r.Key, OperationID: op.ID, Kind: op.Kind, HashVersion: version,
		RequestHash: hash, RequestID: r.RequestID, Params: op.Params, ResourceID: op.ResourceID,
		RecoveryPoint: string(op.Point), LeaseToken: op.LeaseToken, ApiKeyID: r.APIKeyID,
	}))
	switch {
	case err != nil:
		return at, Lost, err
	case won:
		return at, Won, nil
	}
	got, err := WouldClaim(ctx, tx, r)
	if got == Won { // whatever was in the way is gone again
		got = Lost
	}
	return at, got, err
}

// WouldClaim returns what the result of a claim would be, for a transaction that has a reason to
// refuse: a taken key and an API key that may not write come before that reason. Errors: the
// database's.
func WouldClaim(ctx context.Context, tx Tx, r Request) (Claimed, error) {
	why, err := db.New().KeyClaimable(ctx, tx, claimable(r))
	switch {
	case err != nil:
		return Lost, err
	case !why.Allowed:
		return Forbidden, nil
	case why.Taken, why.Held:
		return Lost, nil
	}
	return Won, nil
}

func claimable(r Request) db.KeyClaimableParams {
	return db.KeyClaimableParams{AccountID: r.AccountID, Key: r.Key, ApiKeyID: r.APIKeyID}
}
