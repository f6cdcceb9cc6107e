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

// Local does work that takes place in our database alone, once for the request's key: claim, effect and answer are one transaction, so there is nothing to
// resume. A request without a key has its effect each time. What do returns as an error is returned as it is, with nothing written and the key not spent. do may
// be called several times and must not keep what it wrote elsewhere. kind and resource are what is told of the key.
//
// Errors: do's own, [ErrReused], [ErrNotClaimable], [ErrUnavailable].
func (e *Engine) Local(ctx context.Context, r Request, kind, resource string, do func(ctx context.Context, tx Tx) (Answer, error)) (Result, error) {
	if !e.enter() {
		return Result{}, ErrUnavailable
	}
	defer e.leave()
	for range claimTries {
		res, taken, err := e.locally(ctx, r, kind, resource, do)
		if err != nil || !taken {
			return res, err
		}
		res, err = e.follow(ctx, r, nil, time.Time{})
		if !errors.Is(err, errVanished) {
			return res, err
		}
	}
	return Result{}, ErrNotClaimable
}

// errTaken rolls a transaction back whose key is taken.
var errTaken = errors.New("the key is taken")

// locally is one try. taken: the key was, or the answer to our COMMIT was lost; what is stored tells.
func (e *Engine) locally(ctx context.Context, r Request, kind, resource string, do func(ctx context.Context, tx Tx) (Answer, error)) (res Result, taken bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, commitWait)
	defer cancel()
	op := Operation{AccountID: r.AccountID, Key: r.Key, ID: newOperationID(), Kind: kind, Point: Started, ResourceID: resource, RequestID: r.RequestID, LeaseToken: newLeaseToken()}
	var failed error // of do
	err = db.Tx(ctx, e.pool, func(ctx context.Context, tx db.DBTX) error {
		if failed = nil; r.Key != "" {
			if err := e.claimIn(ctx, tx, r, op); err != nil {
				return err
			}
		}
		res = Result{OriginalRequest: r.RequestID, Status: Completed}
		var err error
		if res.Answer, err = do(ctx, tx); err != nil {
			failed = err
			return err // a conflict is run again
		}
		if r.Key == "" {
			return nil
		}
		res.OperationID = op.ID
		return e.finishIn(ctx, tx, op, res.Answer)
	})
	switch {
	case err == nil:
		return res, false, nil
	case r.Key != "" && (errors.Is(err, errTaken) || errors.Is(err, db.ErrCommitUnknown)):
		return Result{}, true, nil
	case failed != nil && errors.Is(err, failed):
		return Result{}, false, failed
	}
	return Result{}, false, errors.Join(ErrUnavailable, err)
}

func (e *Engine) claimIn(ctx context.Context, tx db.DBTX, r Request, op Operation) error {
	version, hash := r.Fingerprint.Current()
	_, err := e.queries.KeyClaim(ctx, tx, db.KeyClaimParams{
		AccountID: r.AccountID, Key: r.Key, OperationID: op.ID, Kind: op.Kind, HashVersion: version, RequestHash: hash, RequestID: r.RequestID,
		Params: []byte("{}"), ResourceID: op.ResourceID, RecoveryPoint: string(op.Point), LeaseToken: op.LeaseToken, ApiKeyID: r.APIKeyID,
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return db.Final(errTaken)
	}
	return err
}

func (e *Engine) finishIn(ctx context.Context, tx db.DBTX, op Operation, a Answer) error {
	headers, err := json.Marshal(a.Header)
	if err != nil {
		return db.Final(err)
	}
	_, err = e.queries.KeyFinish(ctx, tx, db.KeyFinishParams{
		Status: string(Completed), ResponseCode: int16(a.Code), ResponseHeaders: headers, ResponseBody: a.Body, KeyTtl: e.cfg.KeyTTL, //nolint:gosec // an HTTP status
		AccountID: op.AccountID, Key: op.Key, OperationID: op.ID, LeaseToken: op.LeaseToken, RecoveryPoint: string(op.Point),
	})
	return err
}
