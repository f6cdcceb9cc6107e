package charges

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"paidonce/db"
	"paidonce/idemkeys"
)

// Captures and refunds claim and settle in transactions of several statements: they change a charge that others may be changing too. They are
// rare beside charges, so they do without company.

// claimOn claims a key for an operation on a charge. begin sees the charge, locked, and either refuses, with an [*idemkeys.Refused], or reserves what the
// operation needs; it returns what to freeze. A key that is taken is looked at before a refusal: its own operation may be what now stands in the way.
func (s *Store) claimOn(ctx context.Context, r idemkeys.Request, op idemkeys.Operation, chargeID string,
	begin func(ctx context.Context, tx db.DBTX, charge db.Charge) (frozen any, err error),
) (idemkeys.Operation, bool, error) {
	won, asked := false, time.Now() //tidy:clock the run counts from before its claim
	err := db.Tx(ctx, s.pool, func(ctx context.Context, tx db.DBTX) error {
		won = false
		row, err := s.queries.ChargeLock(ctx, tx, db.ChargeLockParams{AccountID: r.AccountID, ID: chargeID})
		if errors.Is(err, pgx.ErrNoRows) {
			return s.unlessTaken(ctx, tx, r, refuse(http.StatusNotFound, "resource_missing", "charge", "There is no such charge."))
		}
		if err != nil {
			return err
		}
		if err := s.stillCurrent(ctx, tx); err != nil {
			return err
		}
		if err := s.atOurAccount(row); err != nil {
			return s.unlessTaken(ctx, tx, r, err)
		}
		frozen, err := begin(ctx, tx, row)
		if err != nil {
			return s.unlessTaken(ctx, tx, r, err)
		}
		if op.Params, err = json.Marshal(frozen); err != nil {
			return db.Final(err)
		}
		op.CreatedAt, won, err = idemkeys.ClaimIn(ctx, tx, r, op)
		if err == nil && !won {
			return errTaken
		}
		return err
	})
	if errors.Is(err, errTaken) || errors.Is(err, db.ErrCommitUnknown) { // in both cases what is stored tells
		return op, false, nil
	}
	if won && err == nil && op.Kind == KindRefund { // of a capture that was proven never made, nothing stays
		s.recent.add(op.ID)
	}
	op.FirstAttemptAt, op.LastAttemptAt, op.SentAt = op.CreatedAt, op.CreatedAt, op.CreatedAt
	return op.Leased(op.CreatedAt, asked), won && err == nil, err
}

// errTaken rolls a claim back whose key is taken.
var errTaken = db.Final(errors.New("the key is taken"))

// unlessTaken returns the refusal, unless the key is taken.
func (s *Store) unlessTaken(ctx context.Context, tx db.DBTX, r idemkeys.Request, refusal error) error {
	var refused *idemkeys.Refused
	if !errors.As(refusal, &refused) {
		return refusal
	}
	key, err := s.queries.KeyTaken(ctx, tx, db.KeyTakenParams{AccountID: r.AccountID, Key: r.Key, ApiKeyID: r.APIKeyID})
	switch {
	case err != nil:
		return err
	case !key.Allowed: // a refusal tells of the account's charges
		return db.Final(idemkeys.ErrNotClaimable)
	case key.Taken:
		return errTaken
	}
	// What is not there, or not as it should be, may be what the database has forgotten.
	held, err := s.queries.RecoveryOpened(ctx, tx)
	switch {
	case err != nil:
		return err
	case held:
		return errTaken // which it is not: the engine finds out why it could not be claimed
	}
	return db.Final(refusal)
}

func refuse(code int, problem, param, message string) error {
	advice := idemkeys.FixAndUseNewKey
	if code == http.StatusConflict {
		advice = idemkeys.RetrySameKey
	}
	return &idemkeys.Refused{Code: code, Problem: idemkeys.Problem{Type: "invalid_request_error", Code: problem, Param: param, Message: message, Advice: advice}}
}

// finish stores an operation's answer under its fence and, if the fence held, does the rest in the same transaction.
func (s *Store) finish(ctx context.Context, f idemkeys.Fence, c idemkeys.Commit, reference string, rest func(ctx context.Context, tx db.DBTX) error) (won bool, err error) {
	err = db.Tx(ctx, s.pool, func(ctx context.Context, tx db.DBTX) (err error) {
		if won, err = idemkeys.FinishIn(ctx, tx, f, c, s.keyTTL, reference); err != nil || !won {
			return err
		}
		return rest(ctx, tx)
	})
	return won && err == nil, err
}

// tell writes an event in the transaction that makes it true.
func (s *Store) tell(ctx context.Context, tx db.DBTX, op idemkeys.Operation, kind, objectID string, object any, livemode bool) error {
	sequence, err := s.countEvent(ctx, tx, object, objectID)
	if err != nil {
		return err
	}
	id := eventID(kind, objectID, op.ID)
	return s.queries.OutboxAdd(ctx, tx, db.OutboxAddParams{
		EventID: id, AccountID: op.AccountID, Type: kind, OperationID: op.ID, ObjectID: objectID, Payload: renderEvent(id, kind, op.Now(), object, livemode, sequence),
	})
}

// countEvent returns the sequence of an object's next event. The object's row is locked or written by this transaction already.
func (s *Store) countEvent(ctx context.Context, tx db.DBTX, object any, objectID string) (int32, error) {
	if _, ok := object.(Refund); ok {
		return s.queries.RefundCountEvent(ctx, tx, objectID)
	}
	return s.queries.ChargeCountEvent(ctx, tx, objectID)
}
