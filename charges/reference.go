package charges

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"paidonce/db"
	"paidonce/idemkeys"
	"paidonce/problem"
	"paidonce/provider"
)

// A reference is the merchant's name of what is paid for, such as the number of an order. At most
// one live charge of an account and mode has it: one that is pending, or succeeded and neither
// wholly refunded nor let go. A charge gives its reference back by becoming something else, in
// whatever way that is learnt. The claim looks whether a live charge has the reference; between two
// that look at the same moment the index charges_one_live_reference decides.

// ReferenceMax is the most characters that a reference has: as long a name as Stripe takes.
const ReferenceMax = 255

// checkGivenReference checks what the request itself says of references.
func (p Params) checkGivenReference() *problem.Error {
	switch {
	case utf8.RuneCountInString(p.DuplicateOf) > ProviderIDMax:
		return problem.ParameterTooLong.Of(
			"duplicate_of", "duplicate_of may have at most %d characters.", ProviderIDMax,
		)
	case p.ReferenceFrom == "":
		return p.checkReferenceText()
	}
	return nil
}

// checkReference checks what the account's settings make of it.
func (p Params) checkReference() *problem.Error {
	if p.Reference == "" && p.DuplicateOf != "" {
		return problem.ParameterMissing.Of(
			"reference", "duplicate_of goes with the reference that both charges have.",
		)
	}
	return p.checkReferenceText()
}

func (p Params) checkReferenceText() *problem.Error {
	switch {
	case p.Reference == "":
		return nil
	case utf8.RuneCountInString(p.Reference) > ReferenceMax,
		!utf8.ValidString(p.Reference), strings.ContainsFunc(p.Reference, unprintable):
		return problem.ParameterInvalid.Of(
			p.referenceParam(), "%s must have 1 to %d printable characters.", p.referenceParam(),
			ReferenceMax,
		)
	}
	return nil
}

// referenceParam is what the request calls the reference.
func (p Params) referenceParam() string {
	if p.ReferenceFrom != "" {
		return "metadata[" + p.ReferenceFrom + "]"
	}
	return "reference"
}

// oneOfEachReference leaves out rows whose reference an earlier row of the batch has: at most one
// of them wins, and the statement would fail for all of them. What is left out has lost, and finds
// out to whom.
func oneOfEachReference(rows []*claimRow) []*claimRow {
	if !slices.ContainsFunc(rows, func(r *claimRow) bool { return r.request.Reference != "" }) {
		return rows
	}
	type scoped struct {
		account, reference string
		livemode           bool
	}
	seen, kept := map[scoped]bool{}, make([]*claimRow, 0, len(rows))
	for _, r := range rows {
		of := scoped{r.op.AccountID, r.request.Reference, r.request.Livemode}
		if of.reference == "" || !seen[of] {
			seen[of] = true
			kept = append(kept, r)
		}
	}
	return kept
}

// whyNotClaimed is what became of a claim that lost to a live charge with its reference: it is
// refused, unless the key is taken, since what the key stands for comes first, and may well be that
// charge. If nothing is there any more that it lost to, it has just lost.
func (s *Store) whyNotClaimed(
	ctx context.Context, r idemkeys.Request, request *provider.ChargeRequest,
) (idemkeys.Claimed, error) {
	holder, found, err := db.One(ctx, s.pool, s.queries.ChargeByReference, db.ChargeByReferenceParams{
		AccountID: r.AccountID, Reference: &request.Reference, Livemode: request.Livemode,
	})
	if err != nil || !found {
		return idemkeys.Lost, err
	}
	return claimResult(s.refuseUnlessTaken(ctx, s.pool, r, referenceTaken(holder)))
}

// referenceTaken is why another charge cannot have the reference of this one.
func referenceTaken(holder db.ChargeByReferenceRow) error {
	e := problem.ReferenceAlreadyPaid.Of("reference",
		"The charge %s has this reference, and it succeeded.", holder.ID)
	if holder.Status == string(provider.Pending) {
		e = problem.ReferenceInProgress.Of("reference",
			"The charge %s has this reference, and its outcome is not known yet.", holder.ID)
	}
	e.Charge = holder.ID
	return e
}

// claimAlone is commit 1 in a transaction that no other claim shares: of a payment intent's charge,
// and of a charge that is meant to be made beside another of the same reference. That other is
// locked meanwhile, so it stays live until this one is there: whoever finds the first refunded
// finds the second.
func (s *Service) claimAlone(
	ctx context.Context, r idemkeys.Request, row *claimRow,
) (time.Time, idemkeys.Claimed, error) {
	var at time.Time
	duplicate := row.request.DuplicateOf != ""
	err := db.Tx(ctx, s.store.pool, func(ctx context.Context, tx db.DBTX) error {
		if duplicate {
			if err := s.store.checkDuplicable(ctx, tx, r, row.request); err != nil {
				return err
			}
		}
		claimed, err := s.store.claimIn(ctx, tx, []*claimRow{row})
		if err != nil {
			return err
		}
		var won bool
		if at, won = claimed[row.op.ID]; !won {
			return errKeyTaken
		}
		if row.ofIntent {
			return s.store.queries.ChargeOfIntentMark(ctx, tx, row.op.ResourceID)
		}
		return nil
	})
	if !duplicate && row.request.Reference != "" &&
		(errors.Is(err, errKeyTaken) || db.Violates(err, "charges_one_live_reference")) {
		got, err := s.store.whyNotClaimed(ctx, r, row.request)
		return at, got, err
	}
	got, err := claimResult(err)
	if got == idemkeys.Won {
		s.store.recent.add(row.op.ID)
	}
	return at, got, err
}

// checkDuplicable locks the charge that a request wants to double, and refuses unless that is the
// last live charge of the reference, and has succeeded.
func (s *Store) checkDuplicable(
	ctx context.Context, tx db.DBTX, r idemkeys.Request, request *provider.ChargeRequest,
) error {
	of, found, err := db.Found(s.queries.ChargeLock(
		ctx, tx, db.ChargeLockParams{AccountID: r.AccountID, ID: request.DuplicateOf},
	))
	switch {
	case err != nil:
		return err
	case !found:
		return s.refuseUnlessTaken(
			ctx, tx, r, problem.ResourceMissing.Of("duplicate_of", "There is no such charge."),
		)
	case db.OrEmpty(of.Reference) != request.Reference || of.Livemode != request.Livemode:
		return s.refuseUnlessTaken(ctx, tx, r, problem.ParameterInvalid.Of(
			"duplicate_of", "The charge %s has another reference.", of.ID,
		))
	}
	last, found, err := db.Found(s.queries.ChargeByReference(ctx, tx, db.ChargeByReferenceParams{
		AccountID: r.AccountID, Reference: &request.Reference, Livemode: request.Livemode,
	}))
	switch {
	case err != nil:
		return err
	case !found:
		return s.refuseUnlessTaken(ctx, tx, r, problem.ParameterInvalid.Of("duplicate_of",
			"The charge %s is not live any more: without duplicate_of the reference is free.", of.ID))
	case last.ID != of.ID, last.Status == string(provider.Pending):
		return s.refuseUnlessTaken(ctx, tx, r, referenceTaken(last))
	}
	return nil
}

// live reports whether a charge keeps its reference from others. The claim and the index
// charges_one_live_reference say the same in SQL.
func live(c db.Charge) bool {
	return c.Status != string(provider.Failed) && !released(c) &&
		(!c.Captured || c.AmountRefunded < c.AmountCaptured)
}

// yieldReference is called before a charge is changed from was to now. If it becomes live again,
// since a refund failed after all, and its reference was taken meanwhile, the other keeps it.
func (s *Store) yieldReference(ctx context.Context, tx db.DBTX, was, now db.Charge) error {
	if was.Reference == nil || live(was) || !live(now) {
		return nil
	}
	return s.queries.ChargeYieldReference(ctx, tx, was.ID)
}
