package idemkeys

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"paidonce/db"
)

// Tx is a transaction that somebody else commits.
type Tx = db.DBTX

// ClaimIn claims the request's key for an operation, in a transaction of several statements, and tells when that was. won is false when the key is taken or the
// API key is revoked. Errors: the database's.
func ClaimIn(ctx context.Context, tx Tx, r Request, op Operation) (at time.Time, won bool, err error) {
	version, hash := r.Fingerprint.Current()
	at, err = db.New().KeyClaim(ctx, tx, db.KeyClaimParams{
		AccountID: r.AccountID, Key: r.Key, OperationID: op.ID, Kind: op.Kind, HashVersion: version, RequestHash: hash, RequestID: r.RequestID,
		Params: op.Params, ResourceID: op.ResourceID, RecoveryPoint: string(op.Point), LeaseToken: op.LeaseToken, ApiKeyID: r.APIKeyID,
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return at, false, nil
	}
	return at, err == nil, err
}

// FinishIn stores the answer of a commit under its fence, in a transaction of several statements; it is kept for ttl. reference is what the operation's log
// should name. won is false when the fence did not hold. Errors: the database's.
func FinishIn(ctx context.Context, tx Tx, f Fence, c Commit, ttl time.Duration, reference string) (won bool, err error) {
	headers, err := json.Marshal(c.Answer.Header)
	if err != nil {
		return false, db.Final(err)
	}
	p := db.KeyFinishParams{
		Status: string(c.Status), ResponseCode: int16(c.Answer.Code), ResponseHeaders: headers, ResponseBody: c.Answer.Body, KeyTtl: ttl, //nolint:gosec // an HTTP status
		AccountID: f.AccountID, Key: f.Key, OperationID: f.OperationID, LeaseToken: f.LeaseToken, RecoveryPoint: string(f.Point), LogReference: reference,
	}
	if c.Log != nil {
		p.LogEvent, p.LogActor, p.LogDetail = c.Log.Event, c.Log.Actor, c.Log.Detail
	}
	_, err = db.New().KeyFinish(ctx, tx, p)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}
