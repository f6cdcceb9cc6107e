package idemkeys

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"paidonce/db"
)

// record is a key's row as it was read, with what the database's clock says about it.
type record struct {
	db.KeyReadRow
}

// verdict is what a caller may do about a key that is taken.
type verdict int

const (
	sayReused   verdict = iota // the key stands for another request
	sayUnsure                  // written by a newer binary: cannot be compared
	replay                     // finished: the stored answer
	forget                     // finished, and may run anew
	sayParked                  // a person has to decide
	sayInUse                   // somebody works on it
	sayNotYet                  // tried often, and just now: a little later
	takeOverNow                // nobody works on it: resume
)

const (
	// eagerAttempts is how often callers may resume an operation as soon as they like.
	eagerAttempts = 8
	// After that they may do so this long after the attempt before, so that a tight loop of a client does not become one at the provider, and a patient
	// client still gets through as soon as the provider is back.
	eagerPause = 2 * time.Second
)

// sinceAttempt is how long ago the latest attempt began.
func (k record) sinceAttempt() time.Duration { return seconds(k.AttemptAgeSeconds) }

// judge decides by stored facts alone. A different request is told so first, whatever state the key is in, and learns nothing else.
func judge(k record, f Fingerprint) verdict {
	row := k.IdempotencyKey
	finished := Status(row.Status) != InProgress
	if finished && k.Expired {
		return forget
	}
	same, known := f.Matches(row.HashVersion, row.RequestHash)
	switch {
	case !known:
		return sayUnsure
	case !same:
		return sayReused
	case Status(row.Status) == Completed:
		return replay
	case finished:
		return forget
	case row.ParkedAt != nil:
		return sayParked
	case row.LeaseToken != nil && !k.Stale:
		return sayInUse
	case row.LeaseToken == nil && row.Attempts >= eagerAttempts && k.sinceAttempt() < eagerPause:
		return sayNotYet
	default:
		return takeOverNow
	}
}

// askLimit bounds one question to the database, its retries included: a thousand times what it usually takes.
const askLimit = 5 * time.Second

// read returns the key's row, for ourselves. Errors: [ErrNotFound], or the database's.
func (e *Engine) read(ctx context.Context, account, key string) (record, error) {
	return e.readFor(ctx, account, key, "")
}

// readFor returns the key's row to who asks with an API key. Errors: [ErrNotFound]; [ErrNotClaimable] when that API key is revoked; or the database's.
func (e *Engine) readFor(ctx context.Context, account, key, apiKeyID string) (record, error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	var row db.KeyReadRow
	err := db.Retry(ctx, func(ctx context.Context) (err error) {
		row, err = e.queries.KeyRead(ctx, e.pool, db.KeyReadParams{
			AccountID: account, Key: key, ApiKeyID: apiKeyID,
			StaleAfter: e.cfg.StaleAfter, KeyWindow: e.cfg.KeyWindow, LookupSpan: e.cfg.LookupSpan,
		})
		return err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return record{}, ErrNotFound
	}
	if err == nil && !row.Allowed {
		return record{}, ErrNotClaimable
	}
	return record{row}, err
}

// takeOver tries to get the lease of an operation that was read as free or stale, or, for a person, as parked. One of many that try wins.
func (e *Engine) takeOver(ctx context.Context, k record, actor string, parked bool) (op Operation, won bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	if err := e.Held(); err != nil {
		return Operation{}, false, err
	}
	row := k.IdempotencyKey
	token := newLeaseToken()
	asked := beforeLease()
	var got db.KeyTakeOverRow
	lost := false // an answer: the lease may be taken
	err = db.Retry(ctx, func(ctx context.Context) (err error) {
		got, err = e.queries.KeyTakeOver(ctx, e.pool, db.KeyTakeOverParams{
			LeaseToken: token, AccountID: row.AccountID, Key: row.Key, OperationID: row.OperationID,
			SeenToken: row.LeaseToken, SeenAttempts: row.Attempts, StaleAfter: e.cfg.StaleAfter, KeyWindow: e.cfg.KeyWindow, LookupSpan: e.cfg.LookupSpan,
			ServerErrorsMax: serverErrorsMax, Parked: parked, Actor: actor, SeenLockedAt: row.LockedAt, Detail: resumedBecause(row),
		})
		lost = lost || err != nil && db.Classify(err) == db.Unreachable
		return err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		// Somebody else won; or we did, and the answer was lost: the token tells.
		if got, err = e.ownLease(ctx, row, token); err != nil {
			return Operation{}, false, nil // not ours, or not known to be: then it goes stale
		}
	}
	op = operation(row, facts{reached: row.FirstAttemptAt != nil, windowOpen: got.WindowOpen, spanOver: got.SpanOver, now: got.Now, asked: asked})
	op.LeaseToken, op.Actor = token, actor
	op.Attempts++
	op.LastAttemptAt, op.SentAt = got.Now, got.SentAt
	if row.FirstAttemptAt == nil {
		op.FirstAttemptAt = got.Now
	}
	if err != nil {
		if lost {
			e.Abandon(op, "its owner did not hear that it had taken it over")
		}
		return Operation{}, false, err
	}
	e.stats.takenOver.Add(1)
	return op, true, nil
}

// errNotOurs: the lease is somebody else's.
var errNotOurs = errors.New("the lease is not ours")

// ownLease reads back whether a take-over whose answer was lost took place.
func (e *Engine) ownLease(ctx context.Context, was db.IdempotencyKey, token string) (db.KeyTakeOverRow, error) {
	k, err := e.read(ctx, was.AccountID, was.Key)
	if err != nil {
		return db.KeyTakeOverRow{}, err
	}
	row := k.IdempotencyKey
	if row.OperationID != was.OperationID || row.LeaseToken == nil || *row.LeaseToken != token {
		return db.KeyTakeOverRow{}, errNotOurs
	}
	got := db.KeyTakeOverRow{Now: k.Now, WindowOpen: k.WindowOpen, SpanOver: k.SpanOver}
	if row.SentAt != nil {
		got.SentAt = *row.SentAt
	}
	return got, nil
}

func resumedBecause(row db.IdempotencyKey) string {
	switch {
	case row.ParkedAt != nil:
		return "it was parked"
	case row.LeaseToken != nil:
		return "its owner is gone"
	}
	return "it was free"
}

// reconciler is the actor of a pass, in the operation's log.
const reconciler = "reconciler"

// LeaseDue leases up to most operations that nobody works on and whose time has come, for the reconciler. Operations that were driven since
// passStart are left out, so that a pass ends. Ask for no more than is worked on at once: a lease's time runs from now on. Errors: the database's.
func (e *Engine) LeaseDue(ctx context.Context, passStart time.Time, most int) ([]Operation, error) {
	if err := e.Held(); err != nil {
		return nil, err
	}
	p := db.KeyLeaseDueParams{
		KeyWindow: e.cfg.KeyWindow, LookupSpan: e.cfg.LookupSpan, PassStart: passStart, StaleAfter: e.cfg.StaleAfter,
		Most: int32(most), Actor: reconciler, LeaseToken: newLeaseToken(), ServerErrorsMax: serverErrorsMax, //nolint:gosec // a handful
	}
	var rows []db.KeyLeaseDueRow
	asked, lost := beforeLease(), false
	err := db.Retry(ctx, func(ctx context.Context) (err error) {
		if lost { // an answer was lost: what it leased would lie there until it is stale
			rows, err = e.leasedDue(ctx, p)
			if err != nil || len(rows) > 0 {
				return err
			}
		}
		rows, err = e.queries.KeyLeaseDue(ctx, e.pool, p)
		lost = err != nil && db.Classify(err) == db.Unreachable
		return err
	})
	if err != nil {
		return nil, err
	}
	e.stats.leasedDue.Add(int64(len(rows)))
	ops := make([]Operation, 0, len(rows))
	for _, r := range rows {
		op := Operation{
			AccountID: r.AccountID, Key: r.Key, ID: r.OperationID, Kind: r.Kind, Point: Point(r.RecoveryPoint), Params: r.Params,
			ResourceID: r.ResourceID, RequestID: r.RequestID, LeaseToken: r.LeaseToken, Actor: reconciler, Attempts: int(r.Attempts), Passes: int(r.Passes),
			CreatedAt: r.CreatedAt, FirstAttemptAt: r.FirstAttemptAt, LastAttemptAt: r.LastAttemptAt,
			Reached: r.Reached, WindowOpen: r.WindowOpen, SpanOver: r.SpanOver, ServerErrors: int(r.ServerErrors), Misses: int(r.LookupMisses),
			SentAt: r.SentAt, MissSkew: duration(r.MissSkew),
		}
		ops = append(ops, op.Leased(r.Now, asked))
	}
	return ops, nil
}

// leasedDue reads back what a statement has leased whose answer was lost.
func (e *Engine) leasedDue(ctx context.Context, p db.KeyLeaseDueParams) ([]db.KeyLeaseDueRow, error) {
	found, err := e.queries.KeyLeasedDue(ctx, e.pool, db.KeyLeasedDueParams{KeyWindow: p.KeyWindow, LookupSpan: p.LookupSpan, LeaseToken: p.LeaseToken})
	rows := make([]db.KeyLeaseDueRow, 0, len(found))
	for _, f := range found {
		rows = append(rows, db.KeyLeaseDueRow(f))
	}
	return rows, err
}

type facts struct {
	reached, windowOpen, spanOver bool
	now, asked                    time.Time
}

func operation(row db.IdempotencyKey, f facts) Operation {
	op := Operation{
		AccountID: row.AccountID, Key: row.Key, ID: row.OperationID, Kind: row.Kind, Point: Point(row.RecoveryPoint),
		Params: row.Params, ResourceID: row.ResourceID, RequestID: row.RequestID, Attempts: int(row.Attempts), Passes: int(row.Passes), CreatedAt: row.CreatedAt,
		Reached: f.reached, WindowOpen: f.windowOpen, SpanOver: f.spanOver,
		ServerErrors: int(row.ServerErrors), Misses: int(row.LookupMisses), MissSkew: duration(row.MissSkew),
	}
	if row.SentAt != nil {
		op.SentAt = *row.SentAt
	}
	if row.LeaseToken != nil {
		op.LeaseToken = *row.LeaseToken
	}
	if row.FirstAttemptAt != nil {
		op.FirstAttemptAt = *row.FirstAttemptAt
	}
	if row.LastAttemptAt != nil {
		op.LastAttemptAt = *row.LastAttemptAt
	}
	return op.Leased(f.now, f.asked)
}

func duration(s *float64) *time.Duration {
	if s == nil {
		return nil
	}
	d := seconds(*s)
	return &d
}

// Leased notes the database's time at the moment of the lease, and this machine's from before the lease was asked for: the run counts from there, so
// it ends before anybody presumes its owner gone, however late the answer came.
func (op Operation) Leased(now, asked time.Time) Operation {
	op.now, op.leased = now, asked
	return op
}

// beforeLease is this machine's time before a lease is asked for; only its monotonic reading is used.
func beforeLease() time.Time { return time.Now() } //tidy:clock to measure how long a run takes

// Now is the database's time, carried on since the lease by this machine's monotonic clock. For what is shown, not for what is decided.
func (op Operation) Now() time.Time {
	return op.now.Add(time.Since(op.leased)) //tidy:clock monotonic: how long ago the lease was taken
}

// Fence names the operation's lease and point.
func (op Operation) Fence() Fence {
	return Fence{AccountID: op.AccountID, Key: op.Key, OperationID: op.ID, LeaseToken: op.LeaseToken, Point: op.Point}
}
