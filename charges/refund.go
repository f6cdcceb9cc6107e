package charges

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"unicode/utf8"

	"paidonce/db"
	"paidonce/idemkeys"
	"paidonce/problem"
	"paidonce/provider"
)

// KindRefund is the kind of operation that refunds money.
const KindRefund = "refund.create"

// The parameters.

// RefundParams are a client's parameters.
type RefundParams struct {
	Charge string
	// PaymentIntent names the charge instead, by the intent that it is of.
	PaymentIntent string
	Amount        int64  // minor units; 0: all that is left
	Reason        string // one of refundReasons, or empty
	Metadata      map[string]string

	WithCharge bool // the answer shows the whole charge
}

// refundReasons are Stripe's.
var refundReasons = []string{"duplicate", "fraudulent", "requested_by_customer"}

// Validate checks what can be known without looking at the charge. The first fault is returned as a
// [*problem.Error].
func (p RefundParams) Validate() error {
	switch {
	case p.Charge == "" && p.PaymentIntent == "":
		return problem.ParameterMissing.Of("charge", "charge or payment_intent is required.")
	case p.Charge != "" && p.PaymentIntent != "":
		return problem.ParameterInvalid.Of(
			"payment_intent", "charge and payment_intent exclude each other.",
		)
	case utf8.RuneCountInString(p.PaymentIntent) > ProviderIDMax:
		return problem.ParameterInvalid.Of(
			"payment_intent", "payment_intent may have at most %d characters.", ProviderIDMax,
		)
	case utf8.RuneCountInString(p.Charge) > ProviderIDMax:
		return problem.ParameterInvalid.Of(
			"charge", "charge may have at most %d characters.", ProviderIDMax,
		)
	case p.Reason != "" && !slices.Contains(refundReasons, p.Reason):
		return problem.ParameterInvalid.Of(
			"reason", "reason must be duplicate, fraudulent or requested_by_customer.",
		)
	}
	if e := (Params{Metadata: p.Metadata}).checkMetadata(); e != nil {
		return e
	}
	return checkPart(p.Amount, "refund all that is left")
}

// The claim.

// Refund gives money of a charge back, once for the request's key. Errors: those of
// [idemkeys.Runner.Do].
func (s *Service) Refund(
	ctx context.Context, r idemkeys.Request, p RefundParams,
) (idemkeys.Result, error) {
	res, err := s.runner.Do(ctx, r, func(ctx context.Context, r idemkeys.Request, op *idemkeys.Operation) (
		idemkeys.Claimed, error,
	) {
		op.Kind, op.ResourceID = KindRefund, db.NewID("re")
		if p.PaymentIntent != "" {
			paid, err := s.store.paidBy(ctx, r, p.PaymentIntent)
			if err != nil {
				return claimResult(err)
			}
			p.Charge = paid
		}
		got, err := s.store.claimOnCharge(ctx, r, op, p.Charge, "charge", func(
			ctx context.Context, tx db.DBTX, charge db.Charge,
		) (any, error) {
			if isHold(charge) {
				op.Kind = KindRefundHold
				return s.reserveHold(ctx, tx, r, op, charge, p)
			}
			blocked, err := s.store.queries.DisputeBlocksRefund(ctx, tx, charge.ID)
			if err != nil {
				return nil, err
			}
			amount, err := refundable(charge, blocked, p.Amount)
			if err != nil {
				return nil, withCharge(charge, err)
			}
			return s.reserveRefund(ctx, tx, r, op, charge, p, amount)
		})
		if got == idemkeys.Won {
			s.store.recent.add(op.ID)
		}
		return got, err
	})
	return res, ofRefundedCharge(s.store.orReplaced(ctx, err), p.Charge)
}

// paidBy finds the charge that a payment intent was paid by.
func (s *Store) paidBy(
	ctx context.Context, r idemkeys.Request, intent string,
) (charge string, err error) {
	charge, found, err := db.One(ctx, s.pool, s.queries.ChargeOfIntentPaid,
		db.ChargeOfIntentPaidParams{IntentID: intent, AccountID: r.AccountID})
	if err == nil && !found {
		err = s.refuseUnlessTaken(ctx, s.pool, r, problem.ResourceMissing.Of("payment_intent",
			"There is no payment intent of this id that was paid."))
	}
	return charge, err
}

// ofRefundedCharge lets an error without an outcome name the charge: the client does not know the
// refund yet.
func ofRefundedCharge(err error, charge string) error {
	var unknown *idemkeys.Unknown
	var parked *idemkeys.Parked
	switch {
	case errors.As(err, &unknown):
		unknown.ResourceID = charge
	case errors.As(err, &parked):
		parked.ResourceID = charge
	}
	return err
}

// refundable returns how much of a charge a refund takes: the amount asked for, or all that is
// left. Amounts that are reserved for refunds without an outcome are not left. blocked says that a
// dispute of the charge lets nobody refund it; of all others the provider decides.
func refundable(c db.Charge, blocked bool, asked int64) (int64, error) {
	left := c.AmountCaptured - c.AmountRefunded - c.AmountRefundPending
	switch {
	case c.Status == string(provider.Pending):
		return 0, problem.ChargePending.Of(
			"charge", "The outcome of the charge is not known yet; refund it when it is.",
		)
	case c.Status != string(provider.Succeeded):
		return 0, problem.ChargeNotSucceeded.Of(
			"charge", "The charge failed: there is nothing to give back.",
		)
	case blocked:
		return 0, problem.ChargeDisputed.Of(
			"charge", "The charge is disputed: its money is with the card's bank.",
		)
	case c.AmountRefunded == c.AmountCaptured:
		return 0, problem.ChargeAlreadyRefunded.Of(
			"charge", "The charge has been refunded already.",
		)
	case left == 0:
		return 0, problem.RefundPending.Of(
			"charge",
			"All that is left of the charge is reserved for refunds whose outcome is not known yet.",
		)
	case asked > left && asked <= left+c.AmountRefundPending:
		// It may fit after all: the same request under the same key is the right retry, and must
		// not be refused for good now and carried out later.
		return 0, problem.RefundPending.Of(
			"amount",
			"What is left of the charge is reserved for refunds whose outcome is not known yet.",
		)
	case asked > left:
		return 0, problem.AmountTooLarge.Of(
			"amount", "amount is greater than what is left of the charge.",
		)
	case asked == 0:
		return left, nil
	}
	return asked, nil
}

func (s *Service) reserveRefund(
	ctx context.Context, tx db.DBTX, r idemkeys.Request, op *idemkeys.Operation, charge db.Charge,
	p RefundParams, amount int64,
) (any, error) {
	if _, err := s.store.queries.ChargeReserveRefund(
		ctx, tx,
		db.ChargeReserveRefundParams{Amount: amount, AccountID: op.AccountID, ID: charge.ID},
	); err != nil {
		return nil, err
	}
	return s.freezeRefund(ctx, tx, r, op, charge, p, amount)
}

// freezeRefund writes a pending refund, and returns what is frozen of it.
func (s *Service) freezeRefund(
	ctx context.Context, tx db.DBTX, r idemkeys.Request, op *idemkeys.Operation, charge db.Charge,
	p RefundParams, amount int64,
) (f refundFrozen, err error) {
	encoded, err := json.Marshal(orEmpty(p.Metadata))
	if err != nil {
		return f, db.Final(err)
	}
	created, err := s.store.queries.RefundCreate(ctx, tx, db.RefundCreateParams{
		ID: op.ResourceID, AccountID: op.AccountID, ChargeID: charge.ID, OperationID: op.ID,
		Amount: amount, Currency: charge.Currency, Reason: db.OrNil(p.Reason), Metadata: encoded,
	})
	if err != nil {
		return f, err
	}
	return refundFrozen{
		Request: provider.RefundRequest{
			IdempotencyKey: derivedKey(s.cfg.Installation, op.ID, "refund"),
			Tags:           provider.Tags{Operation: op.ID, Installation: s.cfg.Installation},
			ChargeID:       db.OrEmpty(charge.ProviderID), Amount: amount, Reason: p.Reason,
			Metadata: p.Metadata,
			Claim:    dated(frozenNote(r, op.Kind, op.ResourceID, true), created.Unix()),
		},
		Charge: charge.ID, Account: numberOf(charge), Sender: s.store.own.senderMark(),
		Currency: charge.Currency, Livemode: charge.Livemode, Created: created.Unix(),
		WithCharge: p.WithCharge,
	}, nil
}

// refundFrozen is what is frozen of a refund.
type refundFrozen struct {
	Request  provider.RefundRequest `json:"request"`
	Charge   string                 `json:"charge"`            // ours
	Account  int16                  `json:"account,omitempty"` // the charge's, at the provider
	Sender   string                 `json:"sender,omitempty"`  // as in [provider.ChargeRequest]
	Currency string                 `json:"currency"`
	Livemode bool                   `json:"livemode"`
	Created  int64                  `json:"created"`

	WithCharge bool `json:"with_charge,omitempty"`
}

func (f refundFrozen) render(op *idemkeys.Operation) Refund {
	return Refund{
		ID: op.ResourceID, Object: "refund", Amount: f.Request.Amount, Charge: ChargeRef{ID: f.Charge},
		Created: f.Created, Currency: f.Currency, MadeBy: madeByAPI, Metadata: orEmpty(f.Request.Metadata),
		Provider: Provider{Name: "stripe"}, Reason: db.OrNil(f.Request.Reason),
		Status: string(provider.Pending),
	}
}
