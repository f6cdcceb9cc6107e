package charges

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"paidonce/db"
	"paidonce/history"
	"paidonce/idemkeys"
	"paidonce/provider"
)

// rebuildPage is how many objects of the provider's lists are compared with the database at a time.
const rebuildPage = 100

// batches collects what a list gives and hands it on by the page.
type batches[T any] struct {
	page []T
	work func([]T) error
}

func (b *batches[T]) add(v T) error {
	if b.page = append(b.page, v); len(b.page) < rebuildPage {
		return nil
	}
	return b.flush()
}

func (b *batches[T]) flush() error {
	page := b.page
	b.page = nil
	if len(page) == 0 {
		return nil
	}
	return b.work(page)
}

func (r *rebuild) allCharges(ctx context.Context, since time.Time) error {
	m := missing[provider.Charge]{
		rebuild: r, write: r.charge,
		about: func(c provider.Charge) (string, provider.Tags, *provider.Terms) { return c.ID, c.Tags, c.Terms },
		told:  func(n int) error { return r.told(ctx, history.Counts{Charges: n}) },
	}
	return m.all(ctx, func(take func(provider.Charge) error) error {
		return r.provider.ListCharges(ctx, since, time.Time{}, func(c provider.Charge) error {
			if c.Tags.Installation == r.cfg.Installation && c.AmountRefunded > 0 {
				r.changed[c.ID] = struct{}{}
			}
			return take(c)
		})
	})
}

// missing writes those objects of a list that this installation made and the database does not have. One
// without a note is older than notes are: the audit tells of it.
type missing[T any] struct {
	*rebuild
	about func(T) (string, provider.Tags, *provider.Terms)
	write func(context.Context, db.DBTX, T, claimNote) (bool, error)
	told  func(n int) error
	found []T
}

// all reads the whole list before it writes anything. Lists are newest first, and an object's events are
// counted as they are written: written in the list's order, of two refunds of a charge the older one would
// tell a consumer how the charge stands.
func (m *missing[T]) all(ctx context.Context, list func(take func(T) error) error) error {
	b := batches[T]{work: func(page []T) error { return m.sift(ctx, page) }}
	if err := list(b.add); err != nil {
		return err
	}
	if err := b.flush(); err != nil {
		return err
	}
	slices.Reverse(m.found)
	for page := range slices.Chunk(m.found, rebuildPage) {
		n, err := m.writeAll(ctx, page)
		if err = errors.Join(err, m.told(n)); err != nil {
			return err
		}
	}
	return nil
}

// sift keeps what of a page is not here.
func (m *missing[T]) sift(ctx context.Context, page []T) error {
	var operations []string
	for _, object := range page {
		if _, tags, terms := m.about(object); m.noted(tags, terms) {
			operations = append(operations, tags.Operation)
		}
	}
	unknown, err := m.unknown(ctx, operations)
	if err != nil {
		return err
	}
	for _, object := range page {
		if _, tags, terms := m.about(object); m.noted(tags, terms) && slices.Contains(unknown, tags.Operation) {
			m.found = append(m.found, object)
		}
	}
	return nil
}

func (m *missing[T]) noted(tags provider.Tags, terms *provider.Terms) bool {
	_, ok := m.ours(tags, terms)
	return ok
}

func (m *missing[T]) writeAll(ctx context.Context, page []T) (n int, err error) {
	for _, object := range page {
		id, tags, terms := m.about(object)
		note, _ := m.ours(tags, terms)
		fresh, err := m.each(ctx, id, tags, &note, func(ctx context.Context, tx db.DBTX) (bool, error) { return m.write(ctx, tx, object, note) })
		if err != nil {
			return n, err
		}
		if fresh {
			n++
		}
	}
	return n, nil
}

func rebuiltOperation(id string, n claimNote) idemkeys.Operation {
	op := idemkeys.Operation{AccountID: n.Account, ID: id, Kind: n.Kind, ResourceID: n.Resource, RequestID: n.RequestID, CreatedAt: n.Created}
	return op.Leased(n.Created, time.Now()) //tidy:clock what is shown of the event is the claim's time
}

func rebuiltRequest(t *provider.Terms, tags provider.Tags, n claimNote) provider.ChargeRequest {
	return provider.ChargeRequest{
		Tags: tags, Capture: n.Capture, Customer: t.Customer, Description: t.Description, ReceiptEmail: t.ReceiptEmail,
		StatementDescriptorSuffix: t.StatementDescriptorSuffix, Metadata: t.Metadata,
	}
}

// charge writes a charge that was forgotten as it was when it was settled. What became of it since, the
// later steps find out.
func (r *rebuild) charge(ctx context.Context, tx db.DBTX, got provider.Charge, n claimNote) (bool, error) {
	op, request := rebuiltOperation(got.Tags.Operation, n), rebuiltRequest(got.Terms, got.Tags, n)
	request.Amount, request.Currency, request.Livemode = got.Amount, got.Currency, got.Livemode
	first := got
	first.Disputed = false
	if !n.Capture {
		first.Captured, first.AmountCaptured = false, 0
	}
	c := creation{store: r.store, cfg: r.cfg, intentID: got.IntentID}
	return r.restore(ctx, tx, op, n, c.settled(op, request, first), got.Disputed)
}

// restore writes a charge with the key that made it and the event that told of it.
func (r *rebuild) restore(ctx context.Context, tx db.DBTX, op idemkeys.Operation, n claimNote, c idemkeys.Commit, disputed bool) (bool, error) {
	q := r.store.queries
	w := c.Write.(settlement) //nolint:forcetypeassert,errcheck // creation makes no other
	if err := q.AccountRestore(ctx, tx, op.AccountID); err != nil {
		return false, err
	}
	metadata, errM := json.Marshal(w.charge.Metadata)
	outcome, errO := jsonOf(w.charge.Outcome)
	next, errN := jsonOf(w.charge.NextAction)
	if err := errors.Join(errM, errO, errN); err != nil {
		return false, db.Final(err)
	}
	written, err := q.ChargeRestore(ctx, tx, db.ChargeRestoreParams{
		ID: w.charge.ID, AccountID: op.AccountID, OperationID: op.ID, Status: w.charge.Status, Amount: w.charge.Amount,
		AmountCaptured: w.charge.AmountCaptured, Currency: w.charge.Currency, Capture: n.Capture, Captured: w.charge.Captured,
		Customer: w.charge.Customer, Description: w.charge.Description, Metadata: metadata, ReceiptEmail: w.charge.ReceiptEmail,
		Suffix: w.charge.StatementDescriptorSuffix, Disputed: disputed, Livemode: w.charge.Livemode, FailureCode: w.charge.FailureCode,
		FailureMessage: w.charge.FailureMessage, Outcome: bytesOrNil(outcome), ProviderID: w.charge.Provider.ID, CreatedAt: op.CreatedAt,
		IntentID: db.OrNil(w.charge.intentID), NextAction: bytesOrNil(next),
		ProviderAccount: r.store.own.account(),
	})
	if err != nil || written == 0 {
		return false, err
	}
	if err := r.key(ctx, tx, op, n, *c.Answer); err != nil {
		return false, err
	}
	err = q.OutboxAdd(ctx, tx, db.OutboxAddParams{
		EventID: w.eventID, AccountID: op.AccountID, Type: w.eventType, OperationID: op.ID, ObjectID: w.charge.ID, Payload: w.eventPayload,
	})
	return true, err
}

func bytesOrNil(s string) []byte {
	if s == "" {
		return nil
	}
	return []byte(s)
}

// key writes what the key of a rebuilt operation stands for.
func (r *rebuild) key(ctx context.Context, tx db.DBTX, op idemkeys.Operation, n claimNote, a idemkeys.Answer) error {
	headers, err := json.Marshal(a.Header)
	if err != nil {
		return db.Final(err)
	}
	return r.store.queries.KeyRestore(ctx, tx, db.KeyRestoreParams{
		AccountID: n.Account, KeyHash: n.KeyHash[:], OperationID: op.ID, Kind: n.Kind, HashVersion: n.HashVersion, RequestHash: n.RequestHash,
		RequestID: n.RequestID, ResourceID: n.Resource, ResponseCode: int16(a.Code), ResponseHeaders: headers, ResponseBody: a.Body, //nolint:gosec // an HTTP status
		CreatedAt: n.Created, KeyTtl: r.store.keyTTL,
	})
}

// allIntents looks for intents whose charge is not in the list of charges: the payer may still bring it about.
func (r *rebuild) allIntents(ctx context.Context, since time.Time) error {
	m := missing[provider.Intent]{
		rebuild: r, write: r.intent,
		about: func(i provider.Intent) (string, provider.Tags, *provider.Terms) { return i.ID, i.Tags, i.Terms },
		told:  func(n int) error { return r.told(ctx, history.Counts{Charges: n}) },
	}
	err := m.all(ctx, func(take func(provider.Intent) error) error {
		return r.provider.ListIntents(ctx, since, time.Time{}, take)
	})
	if noSuchRead(err) {
		return nil
	}
	return err
}

func (r *rebuild) intent(ctx context.Context, tx db.DBTX, got provider.Intent, n claimNote) (bool, error) {
	op, request := rebuiltOperation(got.Tags.Operation, n), rebuiltRequest(got.Terms, got.Tags, n)
	request.Amount, request.Currency, request.Livemode = got.Amount, got.Currency, got.Livemode
	i := intending{creation{provider: r.provider, store: r.store, cfg: r.cfg}}
	switch {
	case !answered(got):
		return false, nil
	case got.Failure != nil && !waits(got):
		return r.restore(ctx, tx, op, n, i.through(got.ID).refused(op, request, *got.Failure), false)
	}
	return r.restore(ctx, tx, op, n, i.waiting(op, intentFrozen{Request: request}, got), false)
}

func waits(i provider.Intent) bool {
	return i.Status == provider.IntentRequiresAction || i.Status == provider.IntentProcessing
}

// answered reports whether a caller was told of an intent that has no charge: it waits for its payer, or
// came to nothing. One that was never confirmed moves nothing without us; the others have a charge.
func answered(i provider.Intent) bool {
	ended := i.Status == provider.IntentRequiresPaymentMethod || i.Status == provider.IntentCanceled
	return waits(i) || ended && i.Failure != nil
}

const (
	// holdLife is how long an authorisation lasts at most: a week is usual, a month the longest of Stripe's.
	holdLife = 31 * 24 * time.Hour
	// capturesAtOnce is how many charges are asked for at a time: Stripe allows 25 reads a second in test mode.
	capturesAtOnce = 6
)

// allCaptures asks for every charge that is only authorised here, whether it was captured since: Stripe
// takes no metadata with a capture, so nothing else tells.
func (r *rebuild) allCaptures(ctx context.Context, _ time.Time) error {
	var after db.ChargesUncapturedParams
	after.Life, after.Most, after.ProviderAccount = holdLife, rebuildPage, r.store.own.account()
	for {
		var rows []db.ChargesUncapturedRow
		err := db.Retry(ctx, func(ctx context.Context) (err error) {
			rows, err = r.store.queries.ChargesUncaptured(ctx, r.store.pool, after)
			return err
		})
		if err != nil || len(rows) == 0 {
			return err
		}
		found := make([]bool, len(rows))
		group, asking := errgroup.WithContext(ctx)
		group.SetLimit(capturesAtOnce)
		for i, row := range rows {
			group.Go(func() (err error) {
				found[i], err = r.capture(asking, row)
				return err
			})
		}
		err = group.Wait()
		n := 0
		for _, f := range found {
			if f {
				n++
			}
		}
		if err = errors.Join(err, r.told(ctx, history.Counts{Captures: n})); err != nil {
			return err
		}
		last := rows[len(rows)-1]
		after.AfterAt, after.AfterID = last.CreatedAt, last.ID
	}
}

func (r *rebuild) capture(ctx context.Context, row db.ChargesUncapturedRow) (bool, error) {
	got, err := r.provider.GetCharge(ctx, row.ProviderID)
	if err != nil || got == nil || !got.Captured {
		return false, err
	}
	return r.each(ctx, got.ID, got.Tags, nil, func(ctx context.Context, tx db.DBTX) (bool, error) {
		now, err := r.store.queries.ChargeCaptureFound(ctx, tx, db.ChargeCaptureFoundParams{AmountCaptured: got.AmountCaptured, ID: row.ID})
		if errors.Is(err, pgx.ErrNoRows) {
			return false, nil // a capture of ours is under way, and finds out
		}
		if err != nil {
			return false, err
		}
		charge, err := fromRow(now)
		if err != nil {
			return false, db.Final(err)
		}
		op := idemkeys.Operation{AccountID: now.AccountID, ID: now.OperationID}
		return true, r.store.tell(ctx, tx, op.Leased(time.Now(), time.Now()), "charge.captured", now.ID, charge, now.Livemode) //tidy:clock shown to people
	})
}
