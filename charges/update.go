package charges

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"time"

	"paidonce/db"
	"paidonce/idemkeys"
	"paidonce/outbox"
	"paidonce/problem"
	"paidonce/provider"
)

// KindUpdate is the kind of operation that changes what a charge says beside its money. It takes
// place in the database alone: the provider keeps what it was sent with the charge.
const KindUpdate = "charge.update"

// UpdateParams are a client's parameters. nil: it stays as it is.
type UpdateParams struct {
	Charge       string
	Description  *string // empty: taken away; so is ReceiptEmail
	ReceiptEmail *string
	Metadata     map[string]string // pairs to set; those with an empty value are taken away
	NoMetadata   bool              // takes away all pairs that there are
	Shipping     *provider.Shipping
	NoShipping   bool // takes it away

	WithRefunds bool // the answer shows the charge's refunds
}

// Validate checks what can be known without looking at the charge. The first fault is returned as a
// [*problem.Error].
func (p UpdateParams) Validate() error {
	whole := Params{
		Description: db.OrEmpty(p.Description), ReceiptEmail: db.OrEmpty(p.ReceiptEmail),
		Metadata: p.Metadata, Shipping: p.Shipping,
	}
	if e := whole.checkTexts(); e != nil {
		return e
	}
	if e := whole.checkShipping(); e != nil {
		return e
	}
	if e := whole.checkMetadata(); e != nil {
		return e
	}
	return nil
}

// Update changes a charge of the request's account; if the request has a key, once for the key. The
// answer is the charge. Errors: [*problem.Error], or those of [idemkeys.Runner.Local].
func (s *Service) Update(
	ctx context.Context, r idemkeys.Request, p UpdateParams,
) (idemkeys.Result, error) {
	row, err := s.store.row(ctx, r.AccountID, p.Charge)
	switch {
	case err == nil:
		p.Charge = row.ID // it may have been named by the provider's id
	case !errors.Is(err, ErrNotFound):
		return idemkeys.Result{}, err
	}
	return s.runner.Local(ctx, r, KindUpdate, p.Charge, func(
		ctx context.Context, tx idemkeys.Tx,
	) (idemkeys.Answer, error) {
		charge, err := s.store.update(ctx, tx, r, p)
		if errors.Is(err, ErrNotFound) {
			if err = s.readError(err); errors.Is(err, idemkeys.ErrUnavailable) {
				return idemkeys.Answer{}, err
			}
			err = db.Final(problem.ResourceMissing.Of("id", "There is no such charge."))
		}
		if err == nil && p.WithRefunds {
			shown := []Charge{charge}
			err = s.store.showRefunds(ctx, tx, r.AccountID, shown)
			charge = shown[0]
		}
		return okAnswer(charge), err
	})
}

// update changes a charge, with an event if something is different then. A charge whose operation
// has no outcome yet is left alone: its first event is still to come, and shows what was sent.
func (s *Store) update(
	ctx context.Context, tx db.DBTX, r idemkeys.Request, p UpdateParams,
) (Charge, error) {
	row, found, err := s.lock(ctx, tx, r.AccountID, p.Charge)
	switch {
	case err != nil:
		return Charge{}, err
	case !found:
		return Charge{}, db.Final(ErrNotFound)
	case row.SettledAt == nil:
		return Charge{}, db.Final(withCharge(row, problem.ChargePending.Of(
			"id", "The outcome of the charge is not known yet; change it when it is.",
		)))
	}
	was, err := fromRow(row)
	if err != nil {
		return Charge{}, db.Final(err)
	}
	now := was
	now.Metadata = p.merged(was.Metadata)
	if len(now.Metadata) > MetadataPairsMax {
		return Charge{}, db.Final((Params{Metadata: now.Metadata}).checkMetadata())
	}
	if p.Description != nil {
		now.Description = db.OrNil(*p.Description)
	}
	if p.ReceiptEmail != nil {
		now.ReceiptEmail = db.OrNil(*p.ReceiptEmail)
	}
	if p.NoShipping || p.Shipping != nil {
		now.Shipping = shippingOf(p.Shipping)
	}
	if maps.Equal(now.Metadata, was.Metadata) && reflect.DeepEqual(now.Shipping, was.Shipping) &&
		db.OrEmpty(now.Description) == db.OrEmpty(was.Description) &&
		db.OrEmpty(now.ReceiptEmail) == db.OrEmpty(was.ReceiptEmail) {
		return now, nil
	}
	metadata, err := json.Marshal(now.Metadata)
	if err != nil {
		return Charge{}, db.Final(err)
	}
	shipping, err := shippingColumn(now.Shipping)
	if err != nil {
		return Charge{}, db.Final(err)
	}
	if err := s.queries.ChargeUpdate(ctx, tx, db.ChargeUpdateParams{
		ID: row.ID, Description: now.Description, ReceiptEmail: now.ReceiptEmail,
		Metadata: metadata, Shipping: bytesOrNil(shipping),
	}); err != nil {
		return Charge{}, err
	}
	o := trigger{account: row.AccountID, cause: r.RequestID, at: time.Now(), livemode: row.Livemode} //tidy:clock shown to people, nothing is decided by it
	return now, s.addEvent(ctx, tx, o, outbox.ChargeUpdated, now)
}

// merged are the pairs that there are, changed as the client wants.
func (p UpdateParams) merged(pairs map[string]string) map[string]string {
	merged := map[string]string{}
	if !p.NoMetadata {
		maps.Copy(merged, pairs)
	}
	maps.Copy(merged, p.Metadata)
	maps.DeleteFunc(merged, func(_, value string) bool { return value == "" })
	return merged
}
