package charges

import (
	"context"
	"errors"

	"paidonce/db"
	"paidonce/provider"
)

// Waiting for payers. No operation is open meanwhile: what became of an intent is one read by its
// id, so whoever looks next goes on from there, whatever was killed before.

// Await asks the provider about up to most charges that wait for their payer and are due, ends
// those whose wait is over, and reports how many it took: for when no event comes. Errors: the
// database's; a charge that cannot be asked for is asked for again later.
func (pe *ProviderEvents) Await(ctx context.Context, most int) (int, error) {
	rows, err := db.Write(ctx, pe.store.pool, pe.store.queries.ChargeTakeAwaiting,
		db.ChargeTakeAwaitingParams{PayerWindow: pe.cfg.PayerWindow, MaxRows: int32(most)}) //nolint:gosec // a constant of the caller's
	if err != nil {
		return 0, err
	}
	accountOf := func(row db.ChargeTakeAwaitingRow) int16 { return row.ProviderAccount }
	return askEach(pe, rows, accountOf, func(row db.ChargeTakeAwaitingRow) error {
		in, err := pe.provider.GetIntent(ctx, row.IntentID)
		switch {
		case err != nil || in == nil || in.Tags.Operation != row.OperationID:
			return err
		case row.Over && in.Status == provider.IntentRequiresAction:
			return pe.endIntent(ctx, pe.asked(), in)
		}
		return pe.changeIntent(ctx, pe.asked(), in)
	})
}

// reasonAbandoned is Stripe's word for an intent whose payer did not go through with it.
const reasonAbandoned = "abandoned"

// endIntent cancels an intent whose payer has not gone through with it, and moves the charge on to
// what that comes to. Only when the intent is cancelled has the charge failed for good: until then
// a payer may authenticate after all, or try another card with the client secret. So the provider
// decides which was first. Each call has a key of its own: a cancellation moves nothing, and an
// answer that was stored under a key must not keep the next from being made.
func (pe *ProviderEvents) endIntent(
	ctx context.Context, ev incoming, in *provider.Intent,
) error {
	out, err := pe.provider.CancelIntent(ctx, provider.CancelRequest{
		IdempotencyKey: derivedKey(pe.cfg.Installation, db.NewID("ask"), "cancel"),
		Tags:           in.Tags, IntentID: in.ID, Reason: reasonAbandoned,
	})
	if err != nil {
		return err
	}
	now := out.Intent
	if now == nil { // the payer was first, or it was cancelled before
		if now, err = pe.provider.GetIntent(ctx, in.ID); err != nil {
			return err
		}
	}
	switch {
	case now == nil || now.Tags != in.Tags:
		return errors.New("the provider does not know the intent " + in.ID + " any more")
	case now.Status == in.Status:
		return errors.New("the provider does not cancel the intent " + in.ID)
	}
	return pe.changeIntent(ctx, ev, now)
}
