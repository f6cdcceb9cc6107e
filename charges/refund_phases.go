package charges

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"paidonce/db"
	"paidonce/idemkeys"
	"paidonce/provider"
)

// refunding is the refund as a kind of operation. Its amount is reserved on the charge from the claim on, and given
// back after a definite refusal.
type refunding struct {
	provider provider.Provider
	store    *Store
	cfg      Config
}

func (p refunding) refund(ctx context.Context, op idemkeys.Operation) (idemkeys.Commit, error) {
	f, err := thaw[refundFrozen](op.Params)
	if err != nil {
		return idemkeys.Commit{}, err
	}
	if err := p.store.stillReserved(ctx, op, f); err != nil {
		return idemkeys.Commit{}, err
	}
	return p.cfg.attempt(ctx, op, attempt{
		look: func(reading) (idemkeys.Commit, bool, error) {
			found, err := p.lookUp(ctx, op, f)
			if err != nil || found == nil {
				return idemkeys.Commit{}, false, err
			}
			return noted(p.settled(op, f, *found), "found by a look-up"), true, nil
		},
		send:      func() (idemkeys.Commit, error) { return p.send(ctx, op, f) },
		neverMade: func() idemkeys.Commit { return p.neverMade(op, f) },
	})
}

func (p refunding) send(ctx context.Context, op idemkeys.Operation, f refundFrozen) (idemkeys.Commit, error) {
	outcome, err := p.provider.Refund(ctx, f.Request)
	if err != nil {
		return idemkeys.Commit{}, unresolved(err)
	}
	if outcome.Refusal != nil {
		return noted(p.refused(op, f, *outcome.Refusal), "sent"), nil
	}
	return noted(p.settled(op, f, *outcome.Refund), "sent"), nil
}

func (p refunding) lookUp(ctx context.Context, op idemkeys.Operation, f refundFrozen) (*provider.Refund, error) {
	hits, err := p.provider.FindRefund(ctx, provider.Lookup{Tags: f.Request.Tags, ChargeID: f.Request.ChargeID})
	if err = lookedUp(op, err); err != nil {
		return nil, err
	}
	return only(hits, "refund", func(got provider.Refund) error { return matchesRefund(got, f) })
}

func matchesRefund(got provider.Refund, f refundFrozen) error {
	if got.Amount != f.Request.Amount || got.Currency != f.Currency || got.ChargeID != f.Request.ChargeID || got.Tags != f.Request.Tags {
		return fmt.Errorf("the provider's refund %s is of %d %s of %s (operation %q), asked for were %d %s of %s (operation %q)",
			got.ID, got.Amount, got.Currency, got.ChargeID, got.Tags.Operation, f.Request.Amount, f.Currency, f.Request.ChargeID, f.Request.Tags.Operation)
	}
	return nil
}

func (f refundFrozen) render(op idemkeys.Operation) Refund {
	metadata := f.Request.Metadata
	if metadata == nil {
		metadata = map[string]string{}
	}
	return Refund{
		ID: op.ResourceID, Object: "refund", Amount: f.Request.Amount, Charge: f.Charge, Created: f.Created, Currency: f.Currency, Metadata: metadata,
		Provider: Provider{Name: "stripe"}, Reason: db.OrNil(f.Request.Reason), Status: string(provider.Pending),
	}
}

// settled is the commit for a refund that the provider has. A pending one counts as refunded: the money is on its way, and a later failure gives it back.
func (p refunding) settled(op idemkeys.Operation, f refundFrozen, got provider.Refund) idemkeys.Commit {
	r := f.render(op)
	r.Status, r.Provider.ID, r.FailureReason = string(got.Status), db.OrNil(got.ID), db.OrNil(got.FailureReason)
	answer := idemkeys.Answer{
		Code: http.StatusCreated, Header: map[string]string{"Content-Type": "application/json", "Location": "/v1/refunds/" + r.ID}, Body: idemkeys.Render(r),
	}
	return p.commit(op, f, idemkeys.Completed, answer, r)
}

// refused is the commit for a definite no: nothing moved, and the amount is given back to the charge.
func (p refunding) refused(op idemkeys.Operation, f refundFrozen, no provider.Refusal) idemkeys.Commit {
	problem := idemkeys.Problem{Type: "invalid_request_error", Code: no.Code, Message: no.Message, Param: no.Param, Charge: f.Charge,
		RequestID: op.RequestID, Advice: idemkeys.FixAndUseNewKey}
	if problem.Message == "" {
		problem.Message = "The payment provider refused the refund."
	}
	r := f.render(op)
	r.Status, r.FailureReason = string(provider.Failed), db.OrNil(orElse(no.Code, "refused"))
	return p.commit(op, f, idemkeys.Completed, errorAnswer(http.StatusBadRequest, problem), r)
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func (p refunding) neverMade(op idemkeys.Operation, f refundFrozen) idemkeys.Commit {
	problem := idemkeys.Problem{Type: "api_error", Code: "refund_never_made", Charge: f.Charge, RequestID: op.RequestID, Advice: idemkeys.RetrySameKey,
		Message: "The payment provider never made this refund, and no money moved. The same request under the same key makes a new one."}
	r := f.render(op)
	r.Status, r.FailureReason = string(provider.Failed), db.OrNil(problem.Code)
	return p.commit(op, f, idemkeys.Failed, errorAnswer(http.StatusServiceUnavailable, problem), r)
}

func (p refunding) commit(op idemkeys.Operation, f refundFrozen, status idemkeys.Status, a idemkeys.Answer, r Refund) idemkeys.Commit {
	return idemkeys.Commit{Next: idemkeys.Finished, Status: status, Answer: &a, Write: refundSettlement{store: p.store, op: op, refund: r, livemode: f.Livemode}}
}

// refundSettlement is the refund's half of its last commit.
type refundSettlement struct {
	store    *Store
	op       idemkeys.Operation
	refund   Refund
	livemode bool
}

// moneyMoves reports whether a refund of this status takes money from the charge.
func moneyMoves(status string) bool {
	return status != string(provider.Failed) && status != string(provider.Canceled)
}

// Execute implements [idemkeys.Write].
func (w refundSettlement) Execute(ctx context.Context, f idemkeys.Fence, c idemkeys.Commit) (bool, error) {
	s, r := w.store, w.refund
	won, err := s.finish(ctx, f, c, db.OrEmpty(r.Provider.ID), func(ctx context.Context, tx db.DBTX) error {
		n, err := s.queries.RefundSettle(ctx, tx, db.RefundSettleParams{
			Status: r.Status, ProviderID: r.Provider.ID, FailureReason: r.FailureReason, ID: r.ID, OperationID: f.OperationID,
		})
		if err != nil {
			return err
		}
		if n == 0 {
			return db.Final(errors.New("the refund is settled already"))
		}
		settle := db.ChargeSettleRefundParams{Amount: r.Amount, AccountID: f.AccountID, ID: r.Charge}
		if moneyMoves(r.Status) {
			settle.Refunded = r.Amount
		}
		row, err := s.queries.ChargeSettleRefund(ctx, tx, settle)
		if err != nil {
			return err
		}
		if settle.Refunded == 0 {
			return s.tell(ctx, tx, w.op, "refund.failed", r.ID, r, w.livemode)
		}
		charge, err := fromRow(row)
		if err != nil {
			return db.Final(err)
		}
		if err := s.tell(ctx, tx, w.op, "refund.created", r.ID, r, w.livemode); err != nil {
			return err
		}
		return s.tell(ctx, tx, w.op, "charge.refunded", r.Charge, charge, w.livemode)
	})
	if db.Violates(err, "refunds_provider_id") {
		err = s.refundGivenTwice(ctx, r, err)
	}
	return won, err
}

// refundGivenTwice does for refunds what givenTwice does for charges.
func (s *Store) refundGivenTwice(ctx context.Context, r Refund, cause error) error {
	err := db.Retry(ctx, func(ctx context.Context) error {
		other, err := s.queries.RefundByProviderID(ctx, s.pool, r.Provider.ID)
		if err == nil {
			cause = db.Final(fmt.Errorf("the provider's refund %s is that of %s, and was given for %s as well", *r.Provider.ID, other, r.ID))
		}
		return err
	})
	if errors.Is(err, db.ErrUnavailable) {
		return err
	}
	return cause
}

// resolve checks a person's word on a refund at the provider.
func (p refunding) resolve(ctx context.Context, op idemkeys.Operation, word idemkeys.Resolution) (idemkeys.Commit, error) {
	f, err := thaw[refundFrozen](op.Params)
	if err != nil {
		return idemkeys.Commit{}, err
	}
	hits, err := p.refundsFor(ctx, f, word)
	if err != nil {
		return idemkeys.Commit{}, fmt.Errorf("the provider could not be asked: %w", err)
	}
	for _, hit := range hits {
		switch {
		case !word.Succeeded && moneyMoves(string(hit.Status)):
			return idemkeys.Commit{}, fmt.Errorf("the provider has the refund %s of this operation, %s", hit.ID, hit.Status)
		case word.Succeeded && hit.ID == word.ProviderID && moneyMoves(string(hit.Status)):
			if err := matchesRefund(hit, f); err != nil {
				return idemkeys.Commit{}, err
			}
			return p.settled(op, f, hit), nil
		}
	}
	if word.Succeeded {
		return idemkeys.Commit{}, fmt.Errorf("the provider has no refund %q of this operation", word.ProviderID)
	}
	return p.neverMade(op, f), nil
}
