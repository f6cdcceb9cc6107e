package idemkeys

import (
	"context"
	"errors"
	"time"

	"paidonce/db"
)

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
		if err := e.whyNot(ctx, r); err != nil {
			return Result{}, errors.Join(ErrUnavailable, err)
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
	op := Operation{AccountID: r.AccountID, Key: r.Key, ID: newOperationID(), Kind: kind, Point: Started, ResourceID: resource, RequestID: r.RequestID, LeaseToken: newLeaseToken(), Params: []byte("{}")}
	var failed error // of do
	err = db.Tx(ctx, e.pool, func(ctx context.Context, tx db.DBTX) error {
		if failed = nil; r.Key != "" {
			switch _, won, err := ClaimIn(ctx, tx, r, op); {
			case err != nil:
				return err
			case !won:
				return db.Final(errTaken)
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
		_, err = FinishIn(ctx, tx, op.Fence(), Commit{Status: Completed, Answer: &res.Answer}, e.cfg.KeyTTL, "")
		return err
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
