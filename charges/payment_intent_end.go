package charges

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"paidonce/db"
	"paidonce/idemkeys"
	"paidonce/problem"
	"paidonce/provider"
)

// The last commit.

const paymentIntentsPath = "/v1/payment_intents/"

// intentEnd makes the commit that ends an operation on an intent, which is as it was read.
type intentEnd struct {
	store *Store
	op    *idemkeys.Operation
	clientIntent
	withCharge bool // the answer shows the whole latest charge
}

// newIntentEnd is that of a creation, whose intent is not stored yet.
func newIntentEnd(
	s *Store, op *idemkeys.Operation, r *provider.ChargeRequest, row db.Charge,
) (*intentEnd, error) {
	terms, err := json.Marshal(paymentTerms{
		Automatic: r.AutomaticMethods, Types: r.PaymentMethodTypes, FutureUsage: r.SetupFutureUsage,
	})
	return &intentEnd{store: s, op: op, clientIntent: clientIntent{
		charge: row, intent: db.PaymentIntent{
			AccountID: row.AccountID, ChargeID: row.ID, Customer: row.Customer,
			CreatedAt: row.CreatedAt, Terms: terms,
		},
	}}, err
}

// learn is the intent once the operation has ended, with what the provider shows of it.
func (e *intentEnd) learn(in *provider.Intent) clientIntent {
	now := e.clientIntent
	now.charge.CaptureOperationID, now.charge.NextAction = nil, nil
	if in != nil {
		now.take(in)
	}
	return now
}

// take takes over what the provider's intent shows beside money.
func (i *clientIntent) take(in *provider.Intent) {
	i.charge.IntentID, i.intent.ID = &in.ID, in.ID
	i.intent.ProviderStatus = string(in.Status)
	if in.ClientSecret != "" {
		secret := string(in.ClientSecret)
		i.intent.ClientSecret = &secret
	}
	i.intent.PaymentMethod = db.OrNil(in.PaymentMethod)
	i.intent.Terms = withTypes(i.intent.Terms, in.MethodTypes)
	if in.CancellationReason != "" {
		i.intent.CancellationReason = &in.CancellationReason
	}
	switch {
	case i.charge.Status != string(provider.Pending):
	case in.Status == provider.IntentRequiresAction:
		i.charge.NextAction, _ = json.Marshal(nextActionOf(in)) //nolint:errchkjson,gosec // texts; it is stored for the account alone
	case in.Status == provider.IntentProcessing && in.ChargeID != "":
		i.charge.ProviderID, i.intent.LatestCharge = &in.ChargeID, &i.charge.ID
	}
}

// waiting is the commit for an intent that waits: for its confirmation, or its payer.
func (e *intentEnd) waiting(
	ctx context.Context, in *provider.Intent,
) (*idemkeys.Commit, error) {
	return e.commit(ctx, e.learn(in), e.shown, nil)
}

// shown is the answer that shows the intent.
func (e *intentEnd) shown(p PaymentIntent) idemkeys.Answer {
	if e.op.Kind == KindPaymentIntentCreate {
		return createdAnswer(paymentIntentsPath+p.ID, p)
	}
	return okAnswer(p)
}

// paid is the commit for an intent whose charge took or holds the money.
func (e *intentEnd) paid(
	ctx context.Context, in *provider.Intent, got *provider.Charge,
) (*idemkeys.Commit, error) {
	now := e.learn(in)
	now.charge.ProviderID = &got.ID
	advanceCharge(&now.charge, got, "")
	now.settle()
	return e.commit(ctx, now, e.shown, nil)
}

// settle is what becomes of an intent when its charge is no longer pending.
func (i *clientIntent) settle() {
	if i.charge.Status == string(provider.Succeeded) {
		i.intent.LatestCharge, i.intent.LastPaymentError = &i.charge.ID, nil
	}
	if i.status() == provider.IntentCanceled && i.intent.CanceledAt == nil {
		at := time.Now() //tidy:clock shown to people, nothing is decided by it
		i.intent.CanceledAt = &at
	}
}

// declined is the commit for an attempt that came to nothing: the intent lives on, and the attempt
// is a failed charge of its own.
func (e *intentEnd) declined(
	ctx context.Context, in *provider.Intent, no *provider.Refusal,
) (*idemkeys.Commit, error) {
	now := e.learn(in)
	failed, err := e.store.failedAttempt(ctx, e.store.pool, now.charge, no)
	if err != nil {
		return nil, err
	}
	now.fail(failed)
	return e.commit(ctx, now, e.refusalOf(problem.CardDeclined, no, failed.id), failed)
}

// refused is the commit for a refusal that is no decline: the intent is as it was. in is nil if it
// was not read.
func (e *intentEnd) refused(
	ctx context.Context, in *provider.Intent, no *provider.Refusal,
) (*idemkeys.Commit, error) {
	now := e.learn(in)
	if in == nil {
		now.charge.NextAction = e.charge.NextAction
	}
	return e.commit(ctx, now, e.refusalOf(problem.ProviderRefused, no, ""), nil)
}

// refusalOf makes the answer with a refusal of the provider, and with the intent, as Stripe's has.
func (e *intentEnd) refusalOf(
	code problem.Code, no *provider.Refusal, charge string,
) func(PaymentIntent) idemkeys.Answer {
	return func(shown PaymentIntent) idemkeys.Answer {
		p := refusal(code, no, charge, "payment intent")
		p.PaymentIntent = shown
		return errorAnswer(e.op, p)
	}
}

// canceled is the commit for an intent that somebody cancelled before it could be confirmed.
func (e *intentEnd) canceled(
	ctx context.Context, in *provider.Intent,
) (*idemkeys.Commit, error) {
	now := e.learn(in)
	(&ending{how: releaseCanceled}).end(&now.charge, e.op.ID)
	now.settle()
	return e.commit(ctx, now, func(PaymentIntent) idemkeys.Answer {
		return errorAnswer(e.op, now.unexpected("confirmed", provider.IntentRequiresPaymentMethod,
			provider.IntentRequiresConfirmation, provider.IntentRequiresAction))
	}, nil)
}

// unconfirmable is the commit for an intent that its state does not let anybody confirm: mostly
// because it has nothing to be paid with.
func (e *intentEnd) unconfirmable(
	ctx context.Context, in *provider.Intent,
) (*idemkeys.Commit, error) {
	return e.refused(ctx, in, &provider.Refusal{
		Code:    problem.PaymentIntentUnexpectedState.String(),
		Message: "The payment intent cannot be confirmed as it is: name a payment_method.",
	})
}

// notConfirmed is the commit for proof that a confirmation, or a change, was never made: the intent
// is as it was, and the same request may run anew.
func (e *intentEnd) notConfirmed() *idemkeys.Commit {
	now := e.clientIntent
	now.charge.CaptureOperationID = nil
	p := ofCharge(problem.ConfirmNeverMade, "")
	return e.write(now, idemkeys.Failed, errorAnswer(e.op, p), nil)
}

// neverMade is the commit for proof that the intent does not exist, or was never confirmed by its
// creation: nothing moved, and the same request may make another.
func (e *intentEnd) neverMade() *idemkeys.Commit {
	return e.gone(idemkeys.Failed, ofCharge(problem.IntentNeverMade, ""))
}

// notMade is the commit for a provider that refuses to make the intent.
func (e *intentEnd) notMade(no *provider.Refusal) (*idemkeys.Commit, error) {
	code := problem.ProviderRefused
	if no.Decline {
		code = problem.CardDeclined
	}
	return e.gone(idemkeys.Completed, refusal(code, no, "", "payment intent")), nil
}

// gone ends an intent that nobody was told of: only its charge stays, as failed, in no list.
func (e *intentEnd) gone(status idemkeys.Status, p *problem.Error) *idemkeys.Commit {
	now := e.clientIntent
	now.charge.Status = string(provider.Failed)
	now.charge.FailureCode, now.charge.FailureMessage = db.OrNil(p.Name()), db.OrNil(p.Message)
	return e.write(now, status, errorAnswer(e.op, p), nil)
}

func (e *intentEnd) commit(
	ctx context.Context, now clientIntent, answer func(PaymentIntent) idemkeys.Answer, failed *failedAttempt,
) (*idemkeys.Commit, error) {
	shown, err := now.render()
	if err == nil && e.withCharge {
		err = e.store.showLatest(ctx, now, &shown)
	}
	if err != nil {
		return nil, parked("the payment intent %s cannot be shown: %v", now.intent.ID, err)
	}
	return e.write(now, idemkeys.Completed, answer(shown), failed), nil
}

func (e *intentEnd) write(
	now clientIntent, status idemkeys.Status, a idemkeys.Answer, failed *failedAttempt,
) *idemkeys.Commit {
	return &idemkeys.Commit{
		Next: idemkeys.Finished, Status: status, Answer: &a,
		Write: intentSettlement{e.store, e.op, now, failed},
	}
}

// intentSettlement writes the rows of the last commit: the intent and its charge, the attempt that
// failed, and their events, with the stored answer.
type intentSettlement struct {
	store  *Store
	op     *idemkeys.Operation
	now    clientIntent
	failed *failedAttempt
}

// Execute implements [idemkeys.Write].
func (w intentSettlement) Execute(
	ctx context.Context, f idemkeys.Fence, c *idemkeys.Commit,
) (bool, error) {
	s, now := w.store, w.now
	won, err := s.finishCharge(ctx, f, c, now.charge.ID, db.OrEmpty(now.charge.ProviderID), nil, func(
		ctx context.Context, tx db.DBTX, was db.Charge,
	) error {
		created := was.OperationID == f.OperationID && was.SettledAt == nil
		if !created && db.OrEmpty(was.CaptureOperationID) != f.OperationID {
			return db.Final(errors.New("the intent is another operation's to change"))
		}
		if w.op.Kind == KindPaymentIntentUpdate {
			if err := s.changeOfIntent(ctx, tx, now.charge); err != nil {
				return err
			}
		}
		return s.writeIntent(ctx, tx, triggerOf(w.op, was.Livemode), was, now, w.failed)
	})
	return won, s.whoseCharge(ctx, now.charge.ID, now.charge.ProviderID, err)
}

// writeIntent writes an intent with its charge, whose row is locked and was as it says, as they are
// now, with the events that say what changed. An intent without an id was never made.
func (s *Store) writeIntent(
	ctx context.Context, tx db.DBTX, o trigger, was db.Charge, now clientIntent,
	failed *failedAttempt,
) error {
	c := now.charge
	err := s.queries.ChargeOfIntentSettle(ctx, tx, db.ChargeOfIntentSettleParams{
		ID: c.ID, Status: c.Status, Captured: c.Captured, AmountCaptured: c.AmountCaptured,
		ProviderID: c.ProviderID, FailureCode: c.FailureCode, FailureMessage: c.FailureMessage,
		Outcome: c.Outcome, NextAction: c.NextAction, Release: c.Release,
		CaptureOperationID: c.CaptureOperationID, IntentID: c.IntentID, Details: c.Details,
	})
	if err != nil || now.intent.ID == "" {
		return err
	}
	before, found, err := db.Found(s.queries.PaymentIntentOfChargeLock(ctx, tx, c.ID))
	if err != nil {
		return err
	}
	if err := s.putIntent(ctx, tx, now.intent); err != nil {
		return err
	}
	if failed != nil {
		if err := s.writeFailedAttempt(ctx, tx, o, c, failed); err != nil {
			return err
		}
	}
	if err := s.addChargeEvents(ctx, tx, o, was, c); err != nil {
		return err
	}
	return s.addIntentEvents(ctx, tx, o, clientIntent{before, was}, now, !found)
}

func (s *Store) putIntent(ctx context.Context, tx db.DBTX, i db.PaymentIntent) error {
	return s.queries.PaymentIntentPut(ctx, tx, db.PaymentIntentPutParams{
		ID: i.ID, AccountID: i.AccountID, ChargeID: i.ChargeID, Customer: i.Customer,
		CreatedAt: i.CreatedAt, ClientSecret: i.ClientSecret, ProviderStatus: i.ProviderStatus,
		PaymentMethod: i.PaymentMethod, Terms: i.Terms, ReturnUrl: i.ReturnUrl,
		LatestCharge: i.LatestCharge, LastPaymentError: i.LastPaymentError,
		CanceledAt: i.CanceledAt, CancellationReason: i.CancellationReason,
	})
}
