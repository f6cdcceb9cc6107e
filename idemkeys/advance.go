package idemkeys

import (
	"context"

	"paidonce/db"
)

// Advance returns the write of a commit that only moves an operation to its next recovery point,
// with what is frozen from there on.
func Advance(pool db.DBTX) Write { return advance{pool: pool, queries: db.New()} }

type advance struct {
	pool    db.DBTX
	queries *db.Queries
}

// Execute implements [Write]. The lease outlives this write. So when the fence is broken, the point
// says whether a first execution with a lost answer did it, or somebody else: under our token
// nobody else moves the point.
func (a advance) Execute(ctx context.Context, f Fence, c *Commit) (won bool, err error) {
	err = db.Retry(ctx, func(ctx context.Context) error {
		n, err := a.queries.KeyAdvance(ctx, a.pool, db.KeyAdvanceParams{
			NextPoint: string(c.Next), Params: c.Params, AccountID: f.AccountID, Key: f.Key,
			OperationID: f.OperationID, LeaseToken: f.LeaseToken, RecoveryPoint: string(f.Point),
		})
		if won = n == 1; err != nil || won {
			return err
		}
		won, err = a.queries.KeyAdvanced(ctx, a.pool, db.KeyAdvancedParams{
			AccountID: f.AccountID, Key: f.Key, OperationID: f.OperationID,
			LeaseToken: f.LeaseToken, RecoveryPoint: string(c.Next),
		})
		return err
	})
	return won, err
}
