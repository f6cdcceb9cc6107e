package idemkeys

import (
	"context"
	"errors"
	"time"

	"paidonce/db"
)

// Local does work that takes place in the product's database alone, once for the request's key.
// Claim, effect and answer are one transaction, so there is nothing to resume. A request without a
// key has its effect each time. What do returns as an error is returned as it is, with nothing
// written and the key not spent. do may be called several times and must not keep what it wrote
// elsewhere. kind and resource are stored with the key.
//
// Errors: do's own, [ErrReused], [ErrForbidden], [ErrUnavailable].
func (r *Runner) Local(
	ctx context.Context, q Request, kind, resource string,
	do func(ctx context.Context, tx Tx) (Answer, error),
) (Result, error) {
	if !r.running.enter(inFlightMax) {
		return Result{}, ErrUnavailable
	}
	defer r.running.leave()
	for range claimTries {
		res, taken, err := r.tryLocal(ctx, q, kind, resource, do)
		if err != nil || !taken {
			return res, err
		}
		res, err = r.follow(ctx, q, nil, time.Time{})
		if !errors.Is(err, errVanished) {
			return res, err
		}
		switch err := r.whyLost(ctx, q); {
		case errors.Is(err, ErrForbidden):
			return Result{}, err
		case err != nil:
			return Result{}, errors.Join(ErrUnavailable, err)
		}
	}
	return Result{}, ErrContended
}

// errTaken rolls a transaction back whose key is taken.
var errTaken = errors.New("the key is taken")

// tryLocal tries once. taken reports that the key was taken, or that the answer to the COMMIT was
// lost: the stored row says which.
func (r *Runner) tryLocal(
	ctx context.Context, q Request, kind, resource string,
	do func(ctx context.Context, tx Tx) (Answer, error),
) (res Result, taken bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, commitWait)
	defer cancel()
	op := newOperation(q)
	op.Kind, op.ResourceID, op.Params = kind, resource, []byte("{}")
	var failed error // of do
	err = db.Tx(ctx, r.pool, func(ctx context.Context, tx db.DBTX) error {
		if failed = nil; q.Key != "" {
			switch _, got, err := ClaimIn(ctx, tx, q, op); {
			case err != nil:
				return err
			case got == Forbidden:
				return db.Final(ErrForbidden)
			case got == Lost:
				return db.Final(errTaken)
			}
		}
		res = Result{OriginalRequest: q.RequestID, Status: Completed}
		var err error
		if res.Answer, err = do(ctx, tx); err != nil {
			failed = err
			return err // a conflict is run again
		}
		if q.Key == "" {
			return nil
		}
		res.OperationID = op.ID
		_, err = FinishIn(
			ctx, tx, op.Fence(), &Commit{Status: Completed, Answer: &res.Answer}, r.cfg.KeyTTL, "",
		)
		return err
	})
	switch {
	case err == nil:
		return res, false, nil
	case q.Key != "" && (errors.Is(err, errTaken) || errors.Is(err, db.ErrCommitUnknown)):
		return Result{}, true, nil
	case errors.Is(err, ErrForbidden):
		return Result{}, false, ErrForbidden
	case failed != nil && errors.Is(err, failed):
		return Result{}, false, failed
	}
	return Result{}, false, errors.Join(ErrUnavailable, err)
}
