package charges

import (
	"context"
	"time"

	"paidonce/db"
	"paidonce/idemkeys"
	"paidonce/problem"
)

// Store writes and reads charges. Safe for concurrent use.
type Store struct {
	pool    db.Pool
	hot     db.DBTX
	queries *db.Queries
	keyTTL  time.Duration
	own     ownAccount
	// commit 2 of whoever settles at the same moment
	settlements db.Committer[settlementRow, struct{}]
	recent      recentClaims
}

// StoreConfig is what a store is made of.
type StoreConfig struct {
	Pool db.Pool
	// what the two commits of a charge are made on, in connections of their own; nil: on Pool
	Hot    db.DBTX
	KeyTTL time.Duration // how long finished keys are kept
	// Sender marks our credentials at the provider, and the place where they are sent; it is no
	// secret. With it nothing is sent, and nobody is asked, before [Store.Recognise] has found out
	// whose account they are for. Empty: there is no provider, or its account does not matter.
	Sender string
}

// NewStore returns a store.
func NewStore(cfg StoreConfig) *Store {
	s := &Store{pool: cfg.Pool, hot: cfg.Hot, queries: db.New(), keyTTL: cfg.KeyTTL}
	if s.hot == nil {
		s.hot = cfg.Pool
	}
	if cfg.Sender != "" {
		s.own.sender = cfg.Sender
		s.own.number.Store(unknownAccount)
	}
	s.settlements.Write, s.settlements.ID = s.writeSettlements, func(r settlementRow) string {
		return r.fence.OperationID
	}
	return s
}

// finish stores an operation's answer under its fence and, if the fence held, does the rest in the
// same transaction. Before that, first locks what the answer shows, since others may be changing
// it, and completes the answer.
func (s *Store) finish(
	ctx context.Context, f idemkeys.Fence, c *idemkeys.Commit, reference string,
	first func(ctx context.Context, tx db.DBTX, f idemkeys.Fence, c *idemkeys.Commit) error,
	rest func(ctx context.Context, tx db.DBTX) error,
) (won bool, err error) {
	err = db.Tx(ctx, s.pool, func(ctx context.Context, tx db.DBTX) (err error) {
		if err = first(ctx, tx, f, c); err != nil {
			return err
		}
		if won, err = idemkeys.FinishIn(ctx, tx, f, c, s.keyTTL, reference); err != nil || !won {
			return err
		}
		return rest(ctx, tx)
	})
	return won && err == nil, err
}

// showing is what an answer shows, of the charge as it was before.
type showing func(was db.Charge) (any, error)

// finishCharge is finish for an operation that captures or ends a charge. The answer shows the
// charge as it is once that is stored, with what its caller may have changed since the phase read
// it. shown is nil for an answer that does not show it.
func (s *Store) finishCharge(
	ctx context.Context, f idemkeys.Fence, c *idemkeys.Commit, chargeID, reference string,
	shown showing, rest func(ctx context.Context, tx db.DBTX, was db.Charge) error,
) (won bool, err error) {
	var was db.Charge
	first := func(
		ctx context.Context, tx db.DBTX, f idemkeys.Fence, c *idemkeys.Commit,
	) (err error) {
		was, err = s.queries.ChargeLock(
			ctx, tx, db.ChargeLockParams{AccountID: f.AccountID, ID: chargeID},
		)
		if err != nil || shown == nil {
			return err
		}
		object, err := shown(was)
		if err != nil {
			return db.Final(err)
		}
		c.Answer.Body = problem.Render(object)
		return nil
	}
	return s.finish(ctx, f, c, reference, first, func(ctx context.Context, tx db.DBTX) error {
		return rest(ctx, tx, was)
	})
}

// commitRows runs a committer's statement of so many rows: in the form for one row if there is but
// one, and on a connection of the pool if the committers' own are gone and no new one can be had.
func commitRows[P, T any](ctx context.Context, s *Store, rows int, q db.Query[P, T], p P) (T, error) {
	form := func(conn db.DBTX) db.DBTX { return conn }
	if rows == 1 {
		form = db.ForOne
	}
	out, err := q(ctx, form(s.hot), p)
	if db.NotConnected(err) {
		out, err = q(ctx, form(s.pool), p)
	}
	return out, err
}
