package charges

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"paidonce/db"
	"paidonce/idemkeys"
	"paidonce/provider"
)

// Refund is a refund as clients see it, with Stripe's names and types, and provider, which is ours.
type Refund struct {
	ID            string            `json:"id"`
	Object        string            `json:"object"`
	Amount        int64             `json:"amount"` // minor units
	Charge        string            `json:"charge"`
	Created       int64             `json:"created"` // unix seconds
	Currency      string            `json:"currency"`
	FailureReason *string           `json:"failure_reason"`
	Metadata      map[string]string `json:"metadata"`
	Provider      Provider          `json:"provider"`
	Reason        *string           `json:"reason"`
	Status        string            `json:"status"`
}

// RefundParams is what a client asks for.
type RefundParams struct {
	Charge   string
	Amount   int64  // minor units; 0: all that is left
	Reason   string // one of refundReasons, or empty
	Metadata map[string]string
}

// refundReasons are Stripe's.
var refundReasons = []string{"duplicate", "fraudulent", "requested_by_customer"}

// Validate checks what can be known without looking at the charge. The first fault is returned as a [*ParamError].
func (p RefundParams) Validate() error {
	switch {
	case p.Charge == "":
		return invalid("charge", "parameter_missing", "charge is required.")
	case utf8.RuneCountInString(p.Charge) > ProviderIDMax:
		return invalid("charge", "parameter_invalid", "charge may have at most %d characters.", ProviderIDMax)
	case p.Amount < 0 || p.Amount > AmountMax:
		return invalid("amount", "parameter_invalid_integer", "amount must be 1 to %d, in minor units; leave it out to refund all that is left.", AmountMax)
	case p.Reason != "" && !slices.Contains(refundReasons, p.Reason):
		return invalid("reason", "parameter_invalid", "reason must be duplicate, fraudulent or requested_by_customer.")
	}
	if e := (Params{Metadata: p.Metadata}).checkMetadata(); e != nil {
		return e
	}
	return nil
}

// Refund gives money of a charge back, once for the request's key. Errors: those of [idemkeys.Engine.Do].
func (s *Service) Refund(ctx context.Context, r idemkeys.Request, p RefundParams) (idemkeys.Result, error) {
	return s.do(ctx, r, func(ctx context.Context, r idemkeys.Request, operationID, leaseToken string) (idemkeys.Operation, bool, error) {
		op := newOperation(r, operationID, leaseToken, KindRefund, db.NewID("re"))
		return s.store.claimOn(ctx, r, op, p.Charge, func(ctx context.Context, tx db.DBTX, charge db.Charge) (any, error) {
			amount, err := refundable(charge, p.Amount)
			if err != nil {
				return nil, about(charge, err)
			}
			return s.reserveRefund(ctx, tx, r, op, charge, p, amount)
		})
	})
}

// about names the charge that a refusal speaks of.
func about(charge db.Charge, err error) error {
	var refused *idemkeys.Refused
	if errors.As(err, &refused) {
		refused.Problem.Charge = charge.ID
	}
	return err
}

func newOperation(r idemkeys.Request, id, leaseToken, kind, resourceID string) idemkeys.Operation {
	return idemkeys.Operation{
		AccountID: r.AccountID, Key: r.Key, ID: id, Kind: kind, Point: idemkeys.Started, ResourceID: resourceID, RequestID: r.RequestID,
		LeaseToken: leaseToken, Actor: "request " + r.RequestID, Attempts: 1, WindowOpen: true,
	}
}

// refundable returns how much of a charge a refund takes: what is asked for, or all that is left. What is reserved for refunds of unknown outcome is not left.
func refundable(c db.Charge, asked int64) (int64, error) {
	left := c.AmountCaptured - c.AmountRefunded - c.AmountRefundPending
	switch {
	case c.Status == string(provider.Pending):
		return 0, refuse(http.StatusConflict, "charge_pending", "charge", "The outcome of the charge is not known yet; refund it when it is.")
	case c.Status != string(provider.Succeeded):
		return 0, refuse(http.StatusBadRequest, "charge_not_succeeded", "charge", "The charge failed: there is nothing to give back.")
	case !c.Captured:
		return 0, refuse(http.StatusBadRequest, "charge_not_captured", "charge", "The charge is authorised and not captured: there is nothing to give back.")
	case c.Disputed:
		return 0, refuse(http.StatusBadRequest, "charge_disputed", "charge", "The charge is disputed: its money is with the card's bank.")
	case c.AmountRefunded == c.AmountCaptured:
		return 0, refuse(http.StatusBadRequest, "charge_already_refunded", "charge", "The charge has been refunded already.")
	case left == 0:
		return 0, refuse(http.StatusConflict, "refund_pending", "charge", "All that is left of the charge is reserved for refunds whose outcome is not known yet.")
	case asked > left && asked <= left+c.AmountRefundPending:
		// It may fit after all: the same request under the same key is the right retry, and must not be told otherwise now and made later.
		return 0, refuse(http.StatusConflict, "refund_pending", "amount", "What is left of the charge is reserved for refunds whose outcome is not known yet.")
	case asked > left:
		return 0, refuse(http.StatusBadRequest, "amount_too_large", "amount", "amount is greater than what is left of the charge.")
	case asked == 0:
		return left, nil
	}
	return asked, nil
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
}

func (s *Service) reserveRefund(ctx context.Context, tx db.DBTX, r idemkeys.Request, op idemkeys.Operation, charge db.Charge, p RefundParams, amount int64) (any, error) {
	metadata := p.Metadata
	if metadata == nil {
		metadata = map[string]string{}
	}
	encoded, err := json.Marshal(metadata)
	if err != nil {
		return nil, db.Final(err)
	}
	if _, err := s.store.queries.ChargeReserveRefund(ctx, tx, db.ChargeReserveRefundParams{Amount: amount, AccountID: op.AccountID, ID: charge.ID}); err != nil {
		return nil, err
	}
	created, err := s.store.queries.RefundCreate(ctx, tx, db.RefundCreateParams{
		ID: op.ResourceID, AccountID: op.AccountID, ChargeID: charge.ID, OperationID: op.ID, Amount: amount, Currency: charge.Currency,
		Reason: db.OrNil(p.Reason), Metadata: encoded,
	})
	if err != nil {
		return nil, err
	}
	return refundFrozen{
		Request: provider.RefundRequest{
			IdempotencyKey: derivedKey(s.cfg.Installation, op.ID, "refund"), Tags: provider.Tags{Operation: op.ID, Installation: s.cfg.Installation},
			ChargeID: db.OrEmpty(charge.ProviderID), Amount: amount, Reason: p.Reason, Metadata: p.Metadata,
			Claim: dated(frozenNote(r, KindRefund, op.ResourceID, true), created.Unix()),
		},
		Charge: charge.ID, Account: numberOf(charge), Sender: s.store.own.mark(), Currency: charge.Currency, Livemode: charge.Livemode, Created: created.Unix(),
	}, nil
}

// RefundFilter selects refunds of an account for a list.
type RefundFilter struct {
	Limit         int // 1-100
	StartingAfter string
	EndingBefore  string
	Charge        string
}

// RefundPage is a page of refunds, newest first.
type RefundPage struct {
	Refunds []Refund
	HasMore bool
}

// GetRefund returns a refund as it is now. Errors: [ErrNotFound], or the database's.
func (s *Service) GetRefund(ctx context.Context, accountID, id string) (Refund, error) {
	row, err := s.store.refund(ctx, accountID, id)
	if err != nil {
		return Refund{}, s.notHere(err)
	}
	return refundFromRow(row)
}

func (s *Store) refund(ctx context.Context, accountID, id string) (row db.Refund, err error) {
	err = db.Retry(ctx, func(ctx context.Context) (err error) {
		row, err = s.queries.RefundGet(ctx, s.pool, db.RefundGetParams{AccountID: accountID, ID: id})
		return err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return row, ErrNotFound
	}
	return row, err
}

// ListRefunds returns a page of refunds, newest first. Errors: [ErrNotFound] for a cursor that names no refund of the account, or the database's.
func (s *Service) ListRefunds(ctx context.Context, accountID string, f RefundFilter) (RefundPage, error) {
	rows, err := s.store.refundRows(ctx, accountID, f)
	if err != nil {
		return RefundPage{}, s.notHere(err)
	}
	page := RefundPage{HasMore: len(rows) > f.Limit, Refunds: make([]Refund, 0, len(rows))}
	if page.HasMore {
		rows = rows[:f.Limit]
	}
	if f.EndingBefore != "" {
		slices.Reverse(rows)
	}
	for _, row := range rows {
		refund, err := refundFromRow(row)
		if err != nil {
			return RefundPage{}, err
		}
		page.Refunds = append(page.Refunds, refund)
	}
	return page, nil
}

func (s *Store) refundRows(ctx context.Context, accountID string, f RefundFilter) (rows []db.Refund, err error) {
	ctx = db.OnlyReads(ctx)
	within := wholeTime
	backwards := f.EndingBefore != ""
	if id := f.StartingAfter + f.EndingBefore; id != "" { // one of them at most
		cursor, err := s.refund(ctx, accountID, id)
		if err != nil {
			return nil, err
		}
		within.above, within.below = place{cursor.CreatedAt, cursor.ID}, place{cursor.CreatedAt, cursor.ID}
	}
	most := int32(f.Limit + 1) //nolint:gosec // 101 at most
	above, below := within.above, within.below
	err = db.Retry(ctx, func(ctx context.Context) (err error) {
		switch {
		case f.Charge == "" && backwards:
			rows, err = s.queries.RefundListBefore(ctx, s.pool, db.RefundListBeforeParams{AccountID: accountID, AboveAt: above.at, AboveID: above.id, Most: most})
		case f.Charge == "":
			rows, err = s.queries.RefundList(ctx, s.pool, db.RefundListParams{AccountID: accountID, BelowAt: below.at, BelowID: below.id, Most: most})
		case backwards:
			rows, err = s.queries.RefundListOfChargeBefore(ctx, s.pool,
				db.RefundListOfChargeBeforeParams{AccountID: accountID, ChargeID: f.Charge, AboveAt: above.at, AboveID: above.id, Most: most})
		default:
			rows, err = s.queries.RefundListOfCharge(ctx, s.pool,
				db.RefundListOfChargeParams{AccountID: accountID, ChargeID: f.Charge, BelowAt: below.at, BelowID: below.id, Most: most})
		}
		return err
	})
	return rows, err
}

func refundFromRow(row db.Refund) (Refund, error) {
	r := Refund{
		ID: row.ID, Object: "refund", Amount: row.Amount, Charge: row.ChargeID, Created: row.CreatedAt.Unix(), Currency: row.Currency,
		FailureReason: row.FailureReason, Provider: Provider{Name: row.Provider, ID: row.ProviderID}, Reason: row.Reason, Status: row.Status,
	}
	return r, json.Unmarshal(row.Metadata, &r.Metadata)
}
