package idemkeys

import (
	"context"
	"errors"
	"time"

	"paidonce/db"
)

// record is a key's row, with the ages that the database's clock gives it.
type record struct {
	db.KeyReadRow
}

// verdict is what a caller may do about a key that is taken.
type verdict int

const (
	verdictReused   verdict = iota // the key stands for another request
	verdictUnsure                  // written by a newer binary: cannot be compared
	verdictReplay                  // finished: the stored answer
	verdictForget                  // finished, and may run anew
	verdictParked                  // an operator has to decide
	verdictInUse                   // somebody works on it
	verdictNotYet                  // tried often, and just now: a little later
	verdictTakeOver                // nobody works on it: resume
)

const (
	// unpacedAttempts is how often callers may resume an operation as soon as they like: enough for
	// honest retries.
	unpacedAttempts = 8
	// attemptPause is how long after an attempt they may do so from then on, so that a client's
	// tight loop does not become one at the provider, and a patient client still gets through as
	// soon as the provider is back.
	attemptPause = 2 * time.Second
)

// attemptAge is how long ago the latest attempt began.
func (k record) attemptAge() time.Duration { return seconds(k.AttemptAgeSeconds) }

// judge decides by stored facts alone. A different request is recognised first, whatever state the
// key is in, and its caller learns nothing else.
func judge(k record, f Fingerprint) verdict {
	row := k.IdempotencyKey
	finished := Status(row.Status) != InProgress
	if finished && k.Expired {
		return verdictForget
	}
	same, known := f.Matches(row.HashVersion, row.RequestHash)
	switch {
	case !known:
		return verdictUnsure
	case !same:
		return verdictReused
	case Status(row.Status) == Completed:
		return verdictReplay
	case finished:
		return verdictForget
	case row.ParkedAt != nil:
		return verdictParked
	case row.LeaseToken != nil && !k.Stale:
		return verdictInUse
	case row.LeaseToken == nil && row.Attempts >= unpacedAttempts && k.attemptAge() < attemptPause:
		return verdictNotYet
	default:
		return verdictTakeOver
	}
}

// askLimit bounds one read of the database, its retries included: a thousand times what it usually
// takes.
const askLimit = 5 * time.Second

// read returns the key's row, for the engine's own use. Errors: [ErrNotFound], or the database's.
func (c *core) read(ctx context.Context, account, key string) (record, error) {
	return c.readFor(ctx, account, key, "")
}

// readFor returns the key's row to a caller with an API key. Errors: [ErrNotFound]; [ErrForbidden]
// when that API key is revoked or may only read; or the database's.
func (c *core) readFor(ctx context.Context, account, key, apiKeyID string) (record, error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	row, found, err := db.One(ctx, c.pool, c.queries.KeyRead, db.KeyReadParams{
		AccountID: account, Key: key, ApiKeyID: apiKeyID,
		StaleAfter: c.cfg.StaleAfter, KeyWindow: c.cfg.SendWindow, LookupSpan: c.cfg.LookupSpan,
	})
	switch {
	case err != nil:
		return record{}, err
	case !found:
		return record{}, ErrNotFound
	case !row.Allowed:
		return record{}, ErrForbidden
	}
	return record{row}, nil
}

// byOperation reads the key's row of an operation. Errors: [ErrNoOperation], or the database's.
func (c *core) byOperation(ctx context.Context, operationID string) (record, error) {
	at, found, err := db.One(ctx, c.pool, c.queries.OperationKey, operationID)
	switch {
	case err != nil:
		return record{}, err
	case !found:
		return record{}, ErrNoOperation
	}
	k, err := c.read(ctx, at.AccountID, at.Key)
	if errors.Is(err, ErrNotFound) || err == nil && k.IdempotencyKey.OperationID != operationID {
		return record{}, ErrNoOperation
	}
	return k, err
}

// forget removes a key that may run anew.
func (c *core) forget(ctx context.Context, row db.IdempotencyKey) error {
	_, err := db.Repeat(ctx, c.pool, c.queries.KeyForget, db.KeyForgetParams{
		AccountID: row.AccountID, Key: row.Key, OperationID: row.OperationID,
	})
	return err
}
