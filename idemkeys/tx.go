package idemkeys

import (
	"context"
	"encoding/json"
	"time"

	"paidonce/db"
)

// Tx is a transaction that somebody else commits.
type Tx = db.DBTX

// FinishIn stores the answer of a commit under its fence, in a transaction of several statements;
// the answer is kept for ttl. reference is the provider's id or request for the operation's log.
// won is false when the fence did not hold. Errors: the database's.
func FinishIn(
	ctx context.Context, tx Tx, f Fence, c *Commit, ttl time.Duration, reference string,
) (won bool, err error) {
	headers, err := json.Marshal(c.Answer.Header)
	if err != nil {
		return false, db.Final(err)
	}
	p := db.KeyFinishParams{
		Status: string(c.Status), ResponseCode: int16(c.Answer.Code), ResponseHeaders: headers, ResponseBody: c.Answer.Body, //nolint:gosec // an HTTP status
		KeyTtl: ttl, AccountID: f.AccountID, Key: f.Key, OperationID: f.OperationID,
		LeaseToken: f.LeaseToken, RecoveryPoint: string(f.Point), LogReference: reference,
	}
	if c.Log != nil {
		p.LogEvent, p.LogActor, p.LogDetail = c.Log.Event, c.Log.Actor, c.Log.Detail
	}
	_, won, err = db.Found(db.New().KeyFinish(ctx, tx, p))
	return won, err
}
