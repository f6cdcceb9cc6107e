package charges

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"paidonce/db"
	"paidonce/idemkeys"
	"paidonce/problem"
	"paidonce/provider"
)

// The claim.

// UpdatePaymentIntent changes an intent that is not confirmed, or what a later one says beside its
// money, once for the request's key. Errors: those of [idemkeys.Runner.Do] and
// [idemkeys.Runner.Local].
func (s *Service) UpdatePaymentIntent(
	ctx context.Context, r idemkeys.Request, p PaymentIntentUpdateParams,
) (idemkeys.Result, error) {
	var confirmed string // the charge of an intent that was
	res, err := s.onPaymentIntent(ctx, r, KindPaymentIntentUpdate, p.Intent, func(
		ctx context.Context, tx db.DBTX, op *idemkeys.Operation, i clientIntent,
	) (any, error) {
		if confirmed = ""; i.confirmed() && p.onlySays() {
			confirmed = i.charge.ID
			return nil, problem.PaymentIntentUnexpectedState.New()
		}
		f, err := s.freezeUpdate(op, i, p)
		if err != nil {
			return nil, err
		}
		return f, s.store.reserveConfirm(ctx, tx, op, i)
	})
	var refused *idemkeys.Refused
	if confirmed == "" || !errors.As(err, &refused) {
		return res, err
	}
	return s.runner.Local(ctx, r, KindPaymentIntentUpdate, confirmed, func(
		ctx context.Context, tx idemkeys.Tx,
	) (idemkeys.Answer, error) {
		return s.store.updateConfirmed(ctx, tx, r, confirmed, p)
	})
}

// confirmed reports whether the provider has a charge for the intent, or it has ended.
func (i clientIntent) confirmed() bool {
	return i.charge.Status != string(provider.Pending) || i.charge.ProviderID != nil
}

// onlySays reports whether nothing is to be changed that the provider has to know.
func (p PaymentIntentUpdateParams) onlySays() bool {
	return p.Amount == 0 && p.Currency == "" && p.Customer == "" && p.PaymentMethod == "" &&
		p.StatementDescriptorSuffix == "" && len(p.PaymentMethodTypes) == 0 &&
		p.SetupFutureUsage == ""
}

// updateConfirmed changes what an intent says beside its money, as that of its charge is changed.
func (s *Store) updateConfirmed(
	ctx context.Context, tx db.DBTX, r idemkeys.Request, charge string, p PaymentIntentUpdateParams,
) (answer idemkeys.Answer, err error) {
	locked := func() (i clientIntent) {
		if err == nil {
			i.charge, err = s.queries.ChargeLock(
				ctx, tx, db.ChargeLockParams{AccountID: r.AccountID, ID: charge},
			)
		}
		if err == nil {
			i.intent, err = s.queries.PaymentIntentOfChargeLock(ctx, tx, charge)
		}
		return i
	}
	if is := locked(); err == nil && !is.confirmed() { // its attempt failed just now
		return answer, db.Final(problem.ConfirmPending.New())
	}
	p.Charge = charge
	if err == nil {
		_, err = s.update(ctx, tx, r, p.UpdateParams)
	}
	now := locked()
	if err != nil {
		return answer, err
	}
	shown, err := now.render()
	if err == nil && p.WithCharge {
		err = s.showLatest(ctx, now, &shown)
	}
	return okAnswer(shown), err
}

// updateFrozen is what is frozen of a change.
type updateFrozen struct {
	onIntent
	Request provider.UpdateIntentRequest `json:"request"`
	Change  PaymentIntentUpdateParams    `json:"change"`
}

func (s *Service) freezeUpdate(
	op *idemkeys.Operation, i clientIntent, p PaymentIntentUpdateParams,
) (f updateFrozen, err error) {
	price := Params{Amount: i.charge.Amount, Currency: i.charge.Currency}
	if p.Amount != 0 {
		price.Amount = p.Amount
	}
	if p.Currency != "" {
		price.Currency = p.Currency
	}
	if e := price.checkAmount(); e != nil {
		return f, e
	}
	var pairs map[string]string
	if err := json.Unmarshal(i.charge.Metadata, &pairs); err != nil {
		return f, db.Final(err)
	}
	merged := p.merged(pairs)
	if e := (Params{Metadata: merged}).checkMetadata(); e != nil {
		return f, e
	}
	changes := map[string]string{}
	for name, value := range merged {
		if was, there := pairs[name]; !there || was != value {
			changes[name] = value
		}
	}
	for name := range pairs {
		if _, kept := merged[name]; !kept {
			changes[name] = ""
		}
	}
	email := p.ReceiptEmail
	if s.cfg.OwnReceipts {
		email = nil
	}
	return updateFrozen{
		onIntent: s.ofIntent(i, p.WithCharge), Change: p,
		Request: provider.UpdateIntentRequest{
			IdempotencyKey: derivedKey(s.cfg.Installation, op.ID, "update"),
			Tags: provider.Tags{
				Operation: i.charge.OperationID, Installation: s.cfg.Installation,
			},
			IntentID: i.intent.ID, Amount: p.Amount, Currency: p.Currency, Customer: p.Customer,
			Source: p.PaymentMethod, SetupFutureUsage: p.SetupFutureUsage,
			StatementDescriptorSuffix: p.StatementDescriptorSuffix,
			PaymentMethodTypes:        p.PaymentMethodTypes, Description: p.Description,
			ReceiptEmail: email, Metadata: changes,
		},
	}, nil
}

// The phases.

// intentUpdateKind is the change of an intent as a kind of operation: it moves nothing, and the
// same may be sent again.
type intentUpdateKind struct{ *phaseDeps }

// updateStep is an operation of this kind.
type updateStep struct {
	*phaseDeps
	frozen *updateFrozen
	end    *intentEnd
}

func (k intentUpdateKind) at(ctx context.Context, op *idemkeys.Operation) (*updateStep, error) {
	f, err := readFrozen[updateFrozen](op.Params)
	if err != nil {
		return nil, err
	}
	end, err := k.store.reserved(ctx, op, f.onIntent)
	return &updateStep{k.phaseDeps, f, end}, err
}

func (k intentUpdateKind) update(
	ctx context.Context, op *idemkeys.Operation,
) (*idemkeys.Commit, error) {
	s, err := k.at(ctx, op)
	if err != nil {
		return nil, err
	}
	return attempt[provider.Intent]{
		repeatable: true,
		look:       func(reading) (*provider.Intent, error) { return s.applied(ctx) },
		send: func() (*provider.Intent, *provider.Refusal, error) {
			outcome, err := k.provider.UpdateIntent(ctx, s.frozen.Request)
			return outcome.Intent, outcome.Refusal, err
		},
		settled: func(in *provider.Intent) (*idemkeys.Commit, error) {
			return s.end.changed(ctx, in, s.frozen)
		},
		refused: func(no *provider.Refusal) (*idemkeys.Commit, error) {
			return s.end.refused(ctx, nil, no)
		},
		neverMade: s.end.notConfirmed,
	}.run(ctx, &k.cfg, op)
}

// applied returns the intent if it shows the new price that was asked for, or nil: then the change
// is sent again, which makes no difference if it was carried out.
func (s *updateStep) applied(ctx context.Context) (*provider.Intent, error) {
	r, is := s.frozen.Request, s.end.charge
	if (r.Amount == 0 || r.Amount == is.Amount) && (r.Currency == "" || r.Currency == is.Currency) {
		return nil, nil // it would show the same either way
	}
	in, err := s.provider.GetIntent(ctx, r.IntentID)
	switch {
	case err != nil:
		return nil, notLookedUp(err)
	case in == nil:
		return nil, unknownThere("intent", r.IntentID)
	case r.Amount != 0 && in.Amount != r.Amount || r.Currency != "" && in.Currency != r.Currency:
		return nil, nil
	}
	return in, nil
}

// resolve lets an operator give a change up, or carry it out, by what the provider has.
func (k intentUpdateKind) resolve(
	ctx context.Context, op *idemkeys.Operation, decision idemkeys.Resolution,
) (*idemkeys.Commit, error) {
	s, err := k.at(ctx, op)
	if err != nil {
		return nil, err
	}
	in, err := s.applied(ctx)
	switch {
	case err != nil:
		return nil, err
	case decision.Succeeded != (in != nil):
		return nil, fmt.Errorf(
			"the provider's intent %s says otherwise of its price", s.frozen.Request.IntentID,
		)
	case in != nil:
		return s.end.changed(ctx, in, s.frozen)
	}
	return s.end.notConfirmed(), nil
}

// settle does nothing: no event says whose change it tells of.
func (k intentUpdateKind) settle(
	context.Context, *idemkeys.Operation, providerObject,
) (*idemkeys.Commit, error) {
	return nil, errOtherObject
}

// The last commit.

// changed is the commit for a change that the provider has carried out.
func (e *intentEnd) changed(
	ctx context.Context, in *provider.Intent, f *updateFrozen,
) (*idemkeys.Commit, error) {
	now, p := e.learn(in), f.Change
	c := &now.charge
	c.Amount, c.Currency = in.Amount, in.Currency
	for to, given := range map[**string]string{
		&c.Customer: p.Customer, &c.StatementDescriptorSuffix: p.StatementDescriptorSuffix,
	} {
		if given != "" {
			*to = &given
		}
	}
	if p.Description != nil {
		c.Description = db.OrNil(*p.Description)
	}
	if p.ReceiptEmail != nil {
		c.ReceiptEmail = db.OrNil(*p.ReceiptEmail)
	}
	now.intent.Customer = c.Customer
	now.forgive()
	var pairs map[string]string
	var terms paymentTerms
	err := errors.Join(
		json.Unmarshal(c.Metadata, &pairs), json.Unmarshal(now.intent.Terms, &terms),
	)
	if err != nil {
		return nil, parked("the payment intent %s cannot be read: %v", in.ID, err)
	}
	if p.SetupFutureUsage != "" {
		terms.FutureUsage = p.SetupFutureUsage
	}
	if len(p.PaymentMethodTypes) > 0 {
		terms.Types, terms.Automatic = p.PaymentMethodTypes, nil
	}
	var errM, errT error
	c.Metadata, errM = json.Marshal(p.merged(pairs))
	now.intent.Terms, errT = json.Marshal(terms)
	if err := errors.Join(errM, errT); err != nil {
		return nil, parked("the payment intent %s cannot be written: %v", in.ID, err)
	}
	return e.commit(ctx, now, e.shown, nil)
}

// changeOfIntent writes what a client has changed of the charge, whose row is locked.
func (s *Store) changeOfIntent(ctx context.Context, tx db.DBTX, now db.Charge) error {
	return s.queries.ChargeOfIntentChange(ctx, tx, db.ChargeOfIntentChangeParams{
		ID: now.ID, Amount: now.Amount, Currency: now.Currency, Customer: now.Customer,
		Description: now.Description, Metadata: now.Metadata, ReceiptEmail: now.ReceiptEmail,
		Suffix: now.StatementDescriptorSuffix,
	})
}
