package charges

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"paidonce/db"
	"paidonce/history"
	"paidonce/idemkeys"
	"paidonce/problem"
	"paidonce/provider"
)

// Rebuilder rebuilds from the provider's records what the database has forgotten: charges, captures
// and refunds, their keys, and their events. It implements [history.Records].
type Rebuilder struct {
	store    *Store
	provider provider.Provider
	cfg      Config
	log      *slog.Logger
}

// NewRebuilder returns a rebuilder that writes to s what p has of this installation.
func NewRebuilder(s *Store, p provider.Provider, cfg Config, log *slog.Logger) *Rebuilder {
	return &Rebuilder{store: s, provider: p, cfg: cfg, log: log}
}

// Now returns the provider's time.
func (b *Rebuilder) Now() (time.Time, bool) { return b.provider.Now() }

// Claimed returns the operations that this process has claimed last.
func (b *Rebuilder) Claimed() []string { return b.store.recent.list(b.store.keyTTL) }

// ClearClaimed makes Claimed start empty.
func (b *Rebuilder) ClearClaimed() { b.store.recent.clear() }

const (
	// probeEnough is how many of the newest objects are looked at: one page, in which a database
	// that has forgotten more than a moment shows.
	probeEnough = 100
	// probeMost is how many are looked at to find one of our own, on an account that others
	// use more.
	probeMost = 1000
	// sinceMargin is by how much the records are read from before the newest charge that is known:
	// what was forgotten was claimed after that was settled, so any margin is enough; five minutes
	// are well before.
	sinceMargin = 5 * time.Minute
	// sinceSlack is the margin where the provider tells no time of a charge: the clocks of machines
	// that nobody looks after are about an hour apart at most, where one was set by the wrong time
	// zone.
	sinceSlack = 65 * time.Minute
	// newestTried is how many of the newest known charges the provider is asked for until it knows
	// one.
	newestTried = 5
)

// errEnough ends a list early.
var errEnough = errors.New("enough was seen")

// FindForgotten reads the newest charges, intents and refunds of the provider, and says which of
// them are not here. A provider that has no such lists, or does not let us read them, proves
// nothing.
func (b *Rebuilder) FindForgotten(ctx context.Context) (string, error) {
	if err := b.store.Held(); err != nil { // it is not known whose records these are
		return "", err
	}
	what, err := b.newest(ctx, "charge", func(
		see func(provider.Tags, *provider.Terms) error,
	) error {
		return b.provider.ListCharges(
			ctx, time.Unix(1, 0), time.Time{},
			func(c provider.Charge) error { return see(c.Tags, c.Terms) },
		)
	})
	if err != nil || what != "" {
		return what, err
	}
	// one that waits for its payer has no charge yet
	what, err = b.newest(ctx, "intent", func(
		see func(provider.Tags, *provider.Terms) error,
	) error {
		return b.provider.ListIntents(ctx, time.Unix(1, 0), time.Time{}, func(i provider.Intent) error {
			if n, ok := b.ours(i.Tags, i.Terms); ok && n.Kind != KindPaymentIntentCreate &&
				!answered(i) {
				i.Terms = nil
			}
			return see(i.Tags, i.Terms)
		})
	})
	if err != nil || what != "" {
		return what, err
	}
	return b.newest(ctx, "refund", func(see func(provider.Tags, *provider.Terms) error) error {
		return b.provider.ListRefunds(
			ctx, time.Unix(1, 0), time.Time{},
			func(r provider.Refund) error { return see(r.Tags, r.Terms) },
		)
	})
}

func (b *Rebuilder) newest(
	ctx context.Context, what string,
	list func(see func(provider.Tags, *provider.Terms) error) error,
) (string, error) {
	seen, ours := 0, []string(nil)
	err := list(func(tags provider.Tags, terms *provider.Terms) error {
		if _, ok := b.ours(tags, terms); ok {
			ours = append(ours, tags.Operation)
		}
		if seen++; seen >= probeMost || seen >= probeEnough && len(ours) > 0 {
			return errEnough
		}
		return nil
	})
	switch kind := provider.KindOf(err); {
	case kind == provider.Unsupported:
		return "", nil
	case kind == provider.Credentials:
		b.log.WarnContext(
			ctx,
			"whether the database has forgotten "+what+"s cannot be told: the provider does not let us list them",
			"cause", err,
		)
		return "", nil
	case err != nil && !errors.Is(err, errEnough):
		return "", fmt.Errorf("the provider's list of %ss: %w (%w)", what, err, ErrProviderAway)
	}
	if len(ours) == 0 {
		return "", nil
	}
	var unknown []string
	unknown, err = db.Read(ctx, b.store.pool, b.store.queries.OperationsForgotten, ours)
	if err != nil || len(unknown) == 0 {
		return "", err
	}
	return fmt.Sprintf(
		"%d %ss, of the operation %s among others", len(unknown), what, unknown[0],
	), nil
}

// ours returns the note of an object that this installation made, if it can be rebuilt from it.
func (b *Rebuilder) ours(tags provider.Tags, terms *provider.Terms) (claimNote, bool) {
	if tags.Installation != b.cfg.Installation || terms == nil {
		return claimNote{}, false
	}
	return readNote(terms.Claim)
}

// unknown returns which of the operations are not here.
func (b *Rebuilder) unknown(ctx context.Context, operations []string) (ids []string, err error) {
	if len(operations) == 0 {
		return nil, nil
	}
	ids, err = db.Read(ctx, b.store.pool, b.store.queries.OperationsUnknown, operations)
	return ids, err
}

// RebuildFrom returns from when on the provider's records have to be read: from before the newest
// charge that is known on both sides, in the provider's time, so that our own clocks have no say.
func (b *Rebuilder) RebuildFrom(ctx context.Context) (time.Time, error) {
	if err := b.store.Held(); err != nil {
		return time.Time{}, err
	}
	rows, err := db.Read(
		ctx, b.store.pool, b.store.queries.NewestAtProvider,
		db.NewestAtProviderParams{ProviderAccount: b.store.own.get(), MaxRows: newestTried},
	)
	if err != nil {
		return time.Time{}, err
	}
	if len(rows) == 0 {
		return time.Unix(1, 0), nil // everything
	}
	for _, row := range rows {
		got, err := b.provider.GetCharge(ctx, row.ProviderID)
		switch {
		case err != nil:
			return time.Time{}, fmt.Errorf("the provider's charge %s: %w", row.ProviderID, err)
		case got == nil:
			continue
		case got.Created.IsZero():
			return row.CreatedAt.Add(-sinceSlack), nil
		}
		return got.Created.Add(-sinceMargin), nil
	}
	return time.Time{}, fmt.Errorf("the provider knows none of the %d charges that were made last, such as %s: is STRIPE_API_KEY of the account that made them?",
		len(rows), rows[0].ProviderID)
}

// Rebuild reads the records from since on. Everything is written once, by the operation's id, so it
// may be interrupted anywhere and run again.
func (b *Rebuilder) Rebuild(
	ctx context.Context, since time.Time, report func(context.Context, history.Counts) error,
) error {
	if err := b.store.Held(); err != nil {
		return err
	}
	r := rebuild{Rebuilder: b, report: report, changed: map[string]struct{}{}}
	for _, step := range []func(context.Context, time.Time) error{r.allCharges, r.allIntents, r.allCaptures, r.allRefunds, r.allReleases, r.allChanged, r.allDisputes, r.settleUnfinished} {
		if err := step(ctx, since); err != nil {
			return err
		}
	}
	return nil
}

// rebuild is one walk through the records.
type rebuild struct {
	*Rebuilder
	report func(context.Context, history.Counts) error
	// charges, by the provider's ids, of which more may be refunded than is known here
	changed map[string]struct{}
	// charges that are only authorised here and were let go of there
	released []provider.Charge
}

// settleUnfinished prepares the operations that were unfinished at the moment to which the database
// was put back.
func (r *rebuild) settleUnfinished(ctx context.Context, _ time.Time) error {
	q := r.store.queries
	return db.Tx(ctx, r.store.pool, func(ctx context.Context, tx db.DBTX) error {
		if _, err := q.KeysReached(ctx, tx); err != nil {
			return err
		}
		if _, err := q.ReceiptsHold(ctx, tx); err != nil {
			return err
		}
		if _, err := q.KeyOutlived(ctx, tx); err != nil {
			return err
		}
		overtaken, err := q.KeyOvertaken(ctx, tx, idemkeys.OvertakenPrefix)
		for _, id := range overtaken {
			r.log.WarnContext(
				ctx,
				"not sent again: its key came to stand for another operation since, which the provider has",
				"operation_id", id,
			)
		}
		return err
	})
}

// writeOne writes one object in a transaction of its own, and reports whether it was new. One that
// the database refuses is logged, and blocks nothing but its own key.
func (r *rebuild) writeOne(
	ctx context.Context, id string, tags provider.Tags, n *claimNote,
	write func(context.Context, db.DBTX) (bool, error),
) (created bool, err error) {
	err = db.Tx(ctx, r.store.pool, func(ctx context.Context, tx db.DBTX) (err error) {
		created, err = write(ctx, tx)
		return err
	})
	if err == nil || !db.ByData(err) {
		return created && err == nil, err
	}
	r.log.ErrorContext(
		ctx, "could not be rebuilt from the provider's records: an operator has to look", "provider_id",
		id, "operation_id", tags.Operation, "cause", err,
	)
	if n == nil {
		return false, nil
	}
	return false, db.Tx(
		ctx, r.store.pool,
		func(ctx context.Context, tx db.DBTX) error { return r.blockKey(ctx, tx, tags, *n) },
	)
}

// blockKey keeps the key of an operation that cannot be rebuilt from moving money once more.
func (r *rebuild) blockKey(ctx context.Context, tx db.DBTX, tags provider.Tags, n claimNote) error {
	e := problem.OperationParked.Of("", "The payment provider carried this request out, and what became of it could not be restored. "+
		"The operator has to decide; do not repeat it under another key.")
	op := rebuiltOperation(tags.Operation, n)
	return r.restoreKey(ctx, tx, op, n, errorAnswer(op, e))
}
