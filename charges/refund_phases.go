package charges

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"paidonce/db"
	"paidonce/idemkeys"
	"paidonce/outbox"
	"paidonce/problem"
	"paidonce/provider"
)

// The phases.

// refundKind is the refund as a kind of operation. Its amount is reserved on the charge from the
// claim on, and given back after a definite refusal.
type refundKind struct{ *phaseDeps }

func (k refundKind) refund(ctx context.Context, op *idemkeys.Operation) (*idemkeys.Commit, error) {
	end, err := k.end(op)
	if err != nil {
		return nil, err
	}
	if err := k.store.checkReserved(ctx, op, end.frozen); err != nil {
		return nil, err
	}
	return attempt[provider.Refund]{
		look: func(reading) (*provider.Refund, error) {
			hits, err := k.find(ctx, end.frozen)
			if err = lookedUp(op, err); err != nil {
				return nil, err
			}
			return single(
				hits, "refund",
				func(got *provider.Refund) error { return matchesRefund(got, end.frozen) },
			)
		},
		send: func() (*provider.Refund, *provider.Refusal, error) {
			outcome, err := k.provider.Refund(ctx, end.frozen.Request)
			return outcome.Refund, outcome.Refusal, err
		},
		settled: infallible(end.settled), refused: infallible(end.refused),
		neverMade: end.neverMade,
	}.run(ctx, &k.cfg, op)
}

// find asks the provider for the operation's refunds.
func (k refundKind) find(ctx context.Context, f *refundFrozen) ([]provider.Refund, error) {
	return k.provider.FindRefund(
		ctx, provider.Lookup{Tags: f.Request.Tags, ChargeID: f.Request.ChargeID},
	)
}

// matchesRefund returns an error if a provider's refund differs from what was requested.
func matchesRefund(got *provider.Refund, f *refundFrozen) error {
	if got.Amount != f.Request.Amount || got.Currency != f.Currency ||
		got.ChargeID != f.Request.ChargeID || got.Tags != f.Request.Tags {
		return fmt.Errorf("the provider's refund %s is of %d %s of %s (operation %q), asked for were %d %s of %s (operation %q)",
			got.ID, got.Amount, got.Currency, got.ChargeID, got.Tags.Operation, f.Request.Amount, f.Currency, f.Request.ChargeID, f.Request.Tags.Operation)
	}
	return nil
}

// The last commit.

// refundEnd makes the commit that ends a refund's operation.
type refundEnd struct {
	store  *Store
	op     *idemkeys.Operation
	frozen *refundFrozen
}

func (k refundKind) end(op *idemkeys.Operation) (*refundEnd, error) {
	f, err := readFrozen[refundFrozen](op.Params)
	return &refundEnd{k.store, op, f}, err
}

// settled is the commit for a refund that the provider has. A pending one counts as refunded: the
// money is on its way, and a later failure gives it back.
func (e *refundEnd) settled(got *provider.Refund) *idemkeys.Commit {
	r := e.frozen.render(e.op)
	r.Status, r.Provider.ID, r.FailureReason = string(got.Status), db.OrNil(got.ID), db.OrNil(got.FailureReason)
	return e.commit(idemkeys.Completed, createdAnswer(refundsPath+r.ID, r), r)
}

// refused is the commit for a refusal: nothing moved, and the amount is no longer reserved.
func (e *refundEnd) refused(no *provider.Refusal) *idemkeys.Commit {
	answer := errorAnswer(e.op, refusal(problem.ProviderRefused, no, e.frozen.Charge, "refund"))
	return e.commit(idemkeys.Completed, answer, e.failed(cmp.Or(no.Code, "refused")))
}

// neverMade is the commit for a refund that is proven not to have been made.
func (e *refundEnd) neverMade() *idemkeys.Commit {
	p := ofCharge(problem.RefundNeverMade, e.frozen.Charge)
	return e.commit(idemkeys.Failed, errorAnswer(e.op, p), e.failed(p.Name()))
}

func (e *refundEnd) failed(reason string) Refund {
	r := e.frozen.render(e.op)
	r.Status, r.FailureReason = string(provider.Failed), &reason
	return r
}

func (e *refundEnd) commit(status idemkeys.Status, a idemkeys.Answer, r Refund) *idemkeys.Commit {
	return &idemkeys.Commit{
		Next: idemkeys.Finished, Status: status, Answer: &a,
		Write: refundSettlement{
			e.store, e.op, r, e.frozen.Livemode,
			e.frozen.WithCharge && a.Code == problem.Created,
		},
	}
}

// refundSettlement writes the rows of the last commit of a refund: the refund, the charge's sums,
// and their events, with the stored answer.
type refundSettlement struct {
	store      *Store
	op         *idemkeys.Operation
	refund     Refund
	livemode   bool
	withCharge bool // the answer shows the whole charge
}

// moneyMoves reports whether a refund of this status takes money from the charge.
func moneyMoves(status string) bool {
	return status != string(provider.Failed) && status != string(provider.Canceled)
}

// Execute implements [idemkeys.Write].
func (w refundSettlement) Execute(
	ctx context.Context, f idemkeys.Fence, c *idemkeys.Commit,
) (bool, error) {
	s, r, o := w.store, w.refund, triggerOf(w.op, w.livemode)
	won, err := s.finish(ctx, f, c, db.OrEmpty(r.Provider.ID), w.showCharge, func(
		ctx context.Context, tx db.DBTX,
	) error {
		n, err := s.queries.RefundSettle(ctx, tx, db.RefundSettleParams{
			Status: r.Status, ProviderID: r.Provider.ID, FailureReason: r.FailureReason, ID: r.ID,
			OperationID: f.OperationID,
		})
		if err != nil {
			return err
		}
		if n == 0 {
			return db.Final(errors.New("the refund is settled already"))
		}
		settle := db.ChargeSettleRefundParams{
			Amount: r.Amount, AccountID: f.AccountID, ID: r.Charge.ID,
		}
		if moneyMoves(r.Status) {
			settle.Refunded = r.Amount
		}
		row, err := s.queries.ChargeSettleRefund(ctx, tx, settle)
		if err != nil {
			return err
		}
		if settle.Refunded == 0 {
			return s.addEvent(ctx, tx, o, outbox.RefundFailed, r)
		}
		charge, err := fromRow(row)
		if err != nil {
			return db.Final(err)
		}
		if err := s.addEvent(ctx, tx, o, outbox.RefundCreated, r); err != nil {
			return err
		}
		return s.addEvent(ctx, tx, o, outbox.ChargeRefunded, charge)
	})
	return won, s.whoseRefund(ctx, r, err)
}

// whoseRefund says which refund has the provider's id already, if a refund could not be stored
// because of that.
func (s *Store) whoseRefund(ctx context.Context, r Refund, err error) error {
	if !db.Violates(err, "refunds_provider_id") {
		return err
	}
	other, readErr := db.Read(ctx, s.pool, s.queries.RefundByProviderID, r.Provider.ID)
	return duplicateProviderID("refund", *r.Provider.ID, other, r.ID, readErr, err)
}

// showCharge puts the charge, as this commit leaves it, into the answer. Others change the charge
// as well, so it is locked first. Whoever claims on a charge takes the locks in this order, too.
func (w refundSettlement) showCharge(
	ctx context.Context, tx db.DBTX, f idemkeys.Fence, c *idemkeys.Commit,
) error {
	if !w.withCharge {
		return nil
	}
	r := w.refund
	row, found, err := w.store.lock(ctx, tx, f.AccountID, r.Charge.ID)
	if err != nil || !found {
		return err
	}
	if moneyMoves(r.Status) {
		row.AmountRefunded += r.Amount
	}
	charge, err := fromRow(row)
	if err != nil {
		return db.Final(err)
	}
	r.Charge.whole = &charge
	c.Answer.Body = problem.Render(r)
	return nil
}

// An operator's decision, or an event of the provider.

// resolve checks an operator's decision on a refund at the provider.
func (k refundKind) resolve(
	ctx context.Context, op *idemkeys.Operation, decision idemkeys.Resolution,
) (*idemkeys.Commit, error) {
	end, err := k.end(op)
	if err != nil {
		return nil, err
	}
	hits, err := k.find(ctx, end.frozen)
	if err != nil {
		return nil, fmt.Errorf("the provider could not be asked: %w", err)
	}
	for _, hit := range hits {
		switch {
		case !decision.Succeeded && moneyMoves(string(hit.Status)):
			return nil, fmt.Errorf(
				"the provider has the refund %s of this operation, %s", hit.ID, hit.Status,
			)
		case decision.Succeeded && hit.ID == decision.ProviderID && moneyMoves(string(hit.Status)):
			return end.settledBy(&hit)
		}
	}
	if decision.Succeeded {
		return nil, fmt.Errorf(
			"the provider has no refund %q of this operation", decision.ProviderID,
		)
	}
	return end.neverMade(), nil
}

// settle ends the operation by its refund.
func (k refundKind) settle(
	_ context.Context, op *idemkeys.Operation, what providerObject,
) (*idemkeys.Commit, error) {
	end, err := k.end(op)
	switch {
	case err != nil:
		return nil, err
	case what.refund == nil:
		return nil, errOtherObject
	}
	return end.settledBy(what.refund)
}

// settledBy checks that a refund of the provider is what was requested, and returns its commit.
func (e *refundEnd) settledBy(got *provider.Refund) (*idemkeys.Commit, error) {
	if err := matchesRefund(got, e.frozen); err != nil {
		return nil, err
	}
	return e.settled(got), nil
}
