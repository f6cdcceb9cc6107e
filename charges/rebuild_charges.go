package charges

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"paidonce/db"
	"paidonce/history"
	"paidonce/idemkeys"
	"paidonce/outbox"
	"paidonce/provider"
)

// rebuildPage is how many objects of the provider's lists are compared with the database at a time.
const rebuildPage = 100

// batches collects the objects of a list and passes them on in pages.
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
		describe: func(c provider.Charge) (string, provider.Tags, *provider.Terms) {
			if n, ok := r.ours(c.Tags, c.Terms); ok && n.Kind == KindPaymentIntentCreate {
				return c.ID, c.Tags, nil // its intent tells more
			}
			return c.ID, c.Tags, c.Terms
		},
		report: func(n int) error { return r.report(ctx, history.Counts{Charges: n}) },
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

// missing writes those objects of a list that this installation made and the database does not
// have. One without a note is older than notes are: the audit reports it.
type missing[T any] struct {
	*rebuild
	describe func(T) (string, provider.Tags, *provider.Terms)
	write    func(context.Context, db.DBTX, T, claimNote) (bool, error)
	report   func(n int) error
	// prepare asks the provider for what else of an object is needed; nil: nothing is
	prepare func(context.Context, *T) error
	found   []T
}

// all reads the whole list before it writes anything. Lists are newest first, and an object's
// events are counted as they are written: written in the list's order, the older of two refunds of
// a charge would have the last event.
func (m *missing[T]) all(ctx context.Context, list func(take func(T) error) error) error {
	b := batches[T]{work: func(page []T) error { return m.collectUnknown(ctx, page) }}
	if err := list(b.add); err != nil {
		return err
	}
	if err := b.flush(); err != nil {
		return err
	}
	slices.Reverse(m.found)
	for page := range slices.Chunk(m.found, rebuildPage) {
		n, err := m.writeAll(ctx, page)
		if err = errors.Join(err, m.report(n)); err != nil {
			return err
		}
	}
	return nil
}

// collectUnknown keeps the objects of a page that are not here.
func (m *missing[T]) collectUnknown(ctx context.Context, page []T) error {
	var operations []string
	for _, object := range page {
		if _, tags, terms := m.describe(object); m.hasNote(tags, terms) {
			operations = append(operations, tags.Operation)
		}
	}
	unknown, err := m.unknown(ctx, operations)
	if err != nil {
		return err
	}
	for _, object := range page {
		if _, tags, terms := m.describe(object); m.hasNote(tags, terms) &&
			slices.Contains(unknown, tags.Operation) {
			m.found = append(m.found, object)
		}
	}
	return nil
}

func (m *missing[T]) hasNote(tags provider.Tags, terms *provider.Terms) bool {
	_, ok := m.ours(tags, terms)
	return ok
}

func (m *missing[T]) writeAll(ctx context.Context, page []T) (n int, err error) {
	for _, object := range page {
		id, tags, terms := m.describe(object)
		note, _ := m.ours(tags, terms)
		if m.prepare != nil {
			if err := m.prepare(ctx, &object); err != nil {
				return n, err
			}
		}
		created, err := m.writeOne(
			ctx, id, tags, &note,
			func(ctx context.Context, tx db.DBTX) (bool, error) {
				return m.write(ctx, tx, object, note)
			},
		)
		if err != nil {
			return n, err
		}
		if created {
			n++
		}
	}
	return n, nil
}

func rebuiltOperation(id string, n claimNote) *idemkeys.Operation {
	op := &idemkeys.Operation{
		AccountID: n.Account, ID: id, Kind: n.Kind, ResourceID: n.Resource, RequestID: n.RequestID,
		CreatedAt: n.Created,
	}
	op.SetLeased(n.Created, time.Now()) //tidy:clock what is shown of the event is the claim's time
	return op
}

func rebuiltRequest(t *provider.Terms, tags provider.Tags, n claimNote) *provider.ChargeRequest {
	return &provider.ChargeRequest{
		Tags: tags, Capture: n.Capture, Customer: t.Customer, Description: t.Description,
		ReceiptEmail: t.ReceiptEmail, StatementDescriptorSuffix: t.StatementDescriptorSuffix,
		Metadata: t.Metadata, Reference: t.Reference, DuplicateOf: t.DuplicateOf,
		StatementDescriptor: t.StatementDescriptor, Shipping: t.Shipping,
	}
}

// charge writes a charge that was forgotten as it was when it was settled. Later steps find out
// what became of it since.
func (r *rebuild) charge(
	ctx context.Context, tx db.DBTX, got provider.Charge, n claimNote,
) (bool, error) {
	op, request := rebuiltOperation(got.Tags.Operation, n), rebuiltRequest(got.Terms, got.Tags, n)
	request.Amount, request.Currency, request.Livemode = got.Amount, got.Currency, got.Livemode
	first := got
	if !n.Capture {
		first.Captured, first.AmountCaptured = false, 0
		first.Details.BalanceTransaction = "" // of its capture
	}
	end := &chargeEnd{store: r.store, op: op, request: request, intentID: got.IntentID}
	return r.restore(ctx, tx, op, n, end.settled(&first))
}

// restore writes a charge with its key and its event.
func (r *rebuild) restore(
	ctx context.Context, tx db.DBTX, op *idemkeys.Operation, n claimNote, c *idemkeys.Commit,
) (bool, error) {
	q := r.store.queries
	w := c.Write.(settlement) //nolint:forcetypeassert,errcheck // chargeEnd makes no other
	if err := q.AccountRestore(ctx, tx, op.AccountID); err != nil {
		return false, err
	}
	metadata, errM := json.Marshal(w.charge.Metadata)
	outcome, errO := jsonOf(w.charge.Outcome)
	next, errN := jsonOf(w.charge.NextAction)
	details, errD := storedDetails(w.charge.Known)
	shipping, errS := shippingColumn(w.charge.Shipping)
	if err := errors.Join(errM, errO, errN, errD, errS); err != nil {
		return false, db.Final(err)
	}
	written, err := q.ChargeRestore(ctx, tx, db.ChargeRestoreParams{
		ID: w.charge.ID, AccountID: op.AccountID, OperationID: op.ID, Status: w.charge.Status,
		Amount: w.charge.Amount, AmountCaptured: w.charge.AmountCaptured,
		Currency: w.charge.Currency, Capture: n.Capture, Captured: w.charge.Captured,
		Customer: w.charge.Customer, Description: w.charge.Description, Metadata: metadata,
		ReceiptEmail: w.charge.ReceiptEmail, Suffix: w.charge.StatementDescriptorSuffix,
		Livemode: w.charge.Livemode, FailureCode: w.charge.FailureCode,
		FailureMessage: w.charge.FailureMessage, Outcome: bytesOrNil(outcome),
		ProviderID: w.charge.Provider.ID, CreatedAt: op.CreatedAt, IntentID: db.OrNil(w.intentID),
		NextAction: bytesOrNil(next), ProviderAccount: r.store.own.get(),
		Reference: w.charge.Reference, DuplicateOf: w.charge.DuplicateOf, Details: details,
		Shipping: bytesOrNil(shipping), Descriptor: w.charge.StatementDescriptor,
	})
	if err != nil || written == 0 {
		return false, err
	}
	if err := r.restoreKey(ctx, tx, op, n, *c.Answer); err != nil {
		return false, err
	}
	err = q.OutboxAdd(ctx, tx, db.OutboxAddParams{
		EventID: w.eventID, AccountID: op.AccountID, Type: w.eventType, OperationID: op.ID,
		ObjectID: w.charge.ID, Payload: w.eventPayload,
	})
	return true, err
}

func bytesOrNil(s string) []byte {
	if s == "" {
		return nil
	}
	return []byte(s)
}

// restoreKey writes the key of a rebuilt operation, with its answer.
func (r *rebuild) restoreKey(
	ctx context.Context, tx db.DBTX, op *idemkeys.Operation, n claimNote, a idemkeys.Answer,
) error {
	headers, err := json.Marshal(a.Header)
	if err != nil {
		return db.Final(err)
	}
	return r.store.queries.KeyRestore(ctx, tx, db.KeyRestoreParams{
		AccountID: n.Account, KeyHash: n.KeyHash[:], OperationID: op.ID, Kind: n.Kind,
		HashVersion: n.HashVersion, RequestHash: n.RequestHash,
		RequestID: n.RequestID, ResourceID: n.Resource, ResponseCode: int16(a.Code), ResponseHeaders: headers, ResponseBody: a.Body, //nolint:gosec // an HTTP status
		CreatedAt: n.Created, KeyTtl: r.store.keyTTL,
	})
}

// allIntents looks for intents whose charge is not in the list of charges: the payer may still
// bring it about.
func (r *rebuild) allIntents(ctx context.Context, since time.Time) error {
	m := missing[provider.Intent]{
		rebuild: r, write: r.intent,
		describe: func(i provider.Intent) (string, provider.Tags, *provider.Terms) {
			return i.ID, i.Tags, i.Terms
		},
		report:  func(n int) error { return r.report(ctx, history.Counts{Charges: n}) },
		prepare: r.readChargeOf,
	}
	err := m.all(ctx, func(take func(provider.Intent) error) error {
		return r.provider.ListIntents(ctx, since, time.Time{}, take)
	})
	if provider.KindOf(err) == provider.Unsupported {
		return nil
	}
	return err
}

func (r *rebuild) intent(
	ctx context.Context, tx db.DBTX, got provider.Intent, n claimNote,
) (bool, error) {
	op, request := rebuiltOperation(got.Tags.Operation, n), rebuiltRequest(got.Terms, got.Tags, n)
	request.Amount, request.Currency, request.Livemode = got.Amount, got.Currency, got.Livemode
	end := &chargeEnd{store: r.store, op: op, request: request, intentID: got.ID}
	switch {
	case n.Kind == KindPaymentIntentCreate:
		return r.clientIntent(ctx, tx, op, request, got, n)
	case !answered(got):
		return false, nil
	case got.Failure != nil && !waitsForPayer(got):
		return r.restore(ctx, tx, op, n, end.refused(got.Failure))
	}
	return r.restore(ctx, tx, op, n, end.waiting(&got))
}

func waitsForPayer(i provider.Intent) bool {
	return i.Status == provider.IntentRequiresAction || i.Status == provider.IntentProcessing
}

// answered reports whether a caller was told of an intent that has no charge: it waits for its
// payer, or came to nothing. One that was never confirmed moves nothing without us; the others have
// a charge.
func answered(i provider.Intent) bool {
	ended := i.Status == provider.IntentRequiresPaymentMethod || i.Status == provider.IntentCanceled
	return waitsForPayer(i) || ended && i.Failure != nil
}

const (
	// holdLife is how long an authorisation lasts at most: a week is usual, a month the longest of
	// Stripe's.
	holdLife = 31 * 24 * time.Hour
	// capturesAtOnce is how many charges are asked for at a time: Stripe allows 25 reads a second
	// in test mode.
	capturesAtOnce = 6
)

// allCaptures reads every charge that is only authorised here, to see whether it was captured
// since: Stripe takes no metadata with a capture, so nothing else shows it.
func (r *rebuild) allCaptures(ctx context.Context, _ time.Time) error {
	var after db.ChargesUncapturedParams
	after.Life, after.MaxRows, after.ProviderAccount = holdLife, rebuildPage, r.store.own.get()
	for {
		rows, err := db.Read(ctx, r.store.pool, r.store.queries.ChargesUncaptured, after)
		if err != nil || len(rows) == 0 {
			return err
		}
		found, released := make([]bool, len(rows)), make([]*provider.Charge, len(rows))
		group, asking := errgroup.WithContext(ctx)
		group.SetLimit(capturesAtOnce)
		for i, row := range rows {
			group.Go(func() (err error) {
				found[i], released[i], err = r.capture(asking, row)
				return err
			})
		}
		err = group.Wait()
		n := 0
		for i, f := range found {
			if f {
				n++
			}
			if released[i] != nil {
				r.released = append(r.released, *released[i])
			}
		}
		if err = errors.Join(err, r.report(ctx, history.Counts{Captures: n})); err != nil {
			return err
		}
		last := rows[len(rows)-1]
		after.AfterAt, after.AfterID = last.CreatedAt, last.ID
	}
}

// capture writes a capture that was forgotten, and returns a charge that was let go of instead.
func (r *rebuild) capture(
	ctx context.Context, row db.ChargesUncapturedRow,
) (written bool, released *provider.Charge, err error) {
	got, err := r.provider.GetCharge(ctx, row.ProviderID)
	switch {
	case err != nil || got == nil:
		return false, nil, err
	case got.Released():
		return false, got, nil
	case !got.Captured:
		return false, nil, nil
	}
	written, err = r.writeOne(ctx, got.ID, got.Tags, nil, func(
		ctx context.Context, tx db.DBTX,
	) (bool, error) {
		details, err := storedDetails(got.Details)
		if err != nil {
			return false, db.Final(err)
		}
		now, found, err := db.Found(
			r.store.queries.ChargeCaptureFound(
				ctx, tx,
				db.ChargeCaptureFoundParams{
					AmountCaptured: got.AmountCaptured, ID: row.ID, Details: details,
				},
			),
		)
		if err != nil {
			return false, err
		}
		if !found {
			return false, nil // our own capture is under way, and finds out
		}
		charge, err := fromRow(now)
		if err != nil {
			return false, db.Final(err)
		}
		o := trigger{account: now.AccountID, cause: now.OperationID, at: time.Now(), livemode: now.Livemode} //tidy:clock shown to people
		if err := r.store.addEvent(ctx, tx, o, outbox.ChargeCaptured, charge); err != nil {
			return false, err
		}
		was := now
		was.Captured = false
		return true, r.store.followCharge(ctx, tx, o, was, now)
	})
	return written, nil, err
}
