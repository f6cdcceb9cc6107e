package charges

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"paidonce/db"
	"paidonce/history"
	"paidonce/idemkeys"
	"paidonce/provider"
)

// Rebuilder rebuilds from the provider's books what the database has forgotten: charges, captures and
// refunds, the keys that made them, and the events that told of them. It implements [history.Books].
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

// Forget makes Claimed begin anew.
func (b *Rebuilder) Forget() { b.store.recent.clear() }

const (
	// probeEnough is how many of the newest objects are looked at: one page, in which a database that has
	// forgotten more than a moment shows.
	probeEnough = 100
	// probeMost is how many are looked at for the sake of one of ours, on an account that others use more.
	probeMost = 1000
	// sinceMargin is by how much the books are read from before the newest charge that is known: what was
	// forgotten was claimed after that was settled, so any margin is enough; five minutes are well before.
	sinceMargin = 5 * time.Minute
	// sinceSlack is the margin where the provider tells no time of a charge: the clocks of machines that
	// nobody looks after are about an hour apart at most, where one was set by the wrong time zone.
	sinceSlack = 65 * time.Minute
	// newestTried is how many of the newest known charges the provider is asked for until it knows one.
	newestTried = 5
)

// errEnough ends a walk early.
var errEnough = errors.New("enough was seen")

// Forgot looks at the newest charges, intents and refunds of the provider, and says what of them is not
// here. A provider that has no such lists, or does not let us read them, proves nothing.
func (b *Rebuilder) Forgot(ctx context.Context) (string, error) {
	if err := b.store.Held(); err != nil { // whose books would these be?
		return "", err
	}
	what, err := b.newest(ctx, "charge", func(see func(provider.Tags, *provider.Terms) error) error {
		return b.provider.ListCharges(ctx, time.Unix(1, 0), time.Time{}, func(c provider.Charge) error { return see(c.Tags, c.Terms) })
	})
	if err != nil || what != "" {
		return what, err
	}
	if b.cfg.Intents { // one that waits for its payer has no charge yet
		what, err = b.newest(ctx, "intent", func(see func(provider.Tags, *provider.Terms) error) error {
			return b.provider.ListIntents(ctx, time.Unix(1, 0), time.Time{}, func(i provider.Intent) error {
				if !answered(i) {
					i.Terms = nil
				}
				return see(i.Tags, i.Terms)
			})
		})
		if err != nil || what != "" {
			return what, err
		}
	}
	return b.newest(ctx, "refund", func(see func(provider.Tags, *provider.Terms) error) error {
		return b.provider.ListRefunds(ctx, time.Unix(1, 0), time.Time{}, func(r provider.Refund) error { return see(r.Tags, r.Terms) })
	})
}

func (b *Rebuilder) newest(ctx context.Context, what string, list func(see func(provider.Tags, *provider.Terms) error) error) (string, error) {
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
	var refused *provider.Error
	switch {
	case noSuchRead(err):
		return "", nil
	case errors.As(err, &refused) && refused.Alert:
		b.log.WarnContext(ctx, "whether the database has forgotten "+what+"s cannot be told: the provider does not let us list them", "cause", err)
		return "", nil
	case err != nil && !errors.Is(err, errEnough):
		return "", fmt.Errorf("the provider's list of %ss: %w (%w)", what, err, idemkeys.ErrProviderAway)
	}
	if len(ours) == 0 {
		return "", nil
	}
	var unknown []string
	err = db.Retry(ctx, func(ctx context.Context) (err error) {
		unknown, err = b.store.queries.OperationsForgotten(ctx, b.store.pool, ours)
		return err
	})
	if err != nil || len(unknown) == 0 {
		return "", err
	}
	return fmt.Sprintf("%d %ss, of the operation %s among others", len(unknown), what, unknown[0]), nil
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
	err = db.Retry(ctx, func(ctx context.Context) (err error) {
		ids, err = b.store.queries.OperationsUnknown(ctx, b.store.pool, operations)
		return err
	})
	return ids, err
}

// Since returns from when on the provider's books have to be read: from before the newest charge that is
// known on both sides, in the provider's time, so that no clock of ours has a say.
func (b *Rebuilder) Since(ctx context.Context) (time.Time, error) {
	if err := b.store.Held(); err != nil {
		return time.Time{}, err
	}
	var rows []db.NewestAtProviderRow
	err := db.Retry(ctx, func(ctx context.Context) (err error) {
		rows, err = b.store.queries.NewestAtProvider(ctx, b.store.pool, db.NewestAtProviderParams{ProviderAccount: b.store.own.account(), Most: newestTried})
		return err
	})
	if err != nil {
		return time.Time{}, err
	}
	if len(rows) == 0 {
		return time.Unix(1, 0), nil // all that it has
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

// Rebuild walks the books from since on. Whatever it writes is written once, by the operation's id, so it
// may be interrupted anywhere and run again.
func (b *Rebuilder) Rebuild(ctx context.Context, since time.Time, told func(context.Context, history.Counts) error) error {
	if err := b.store.Held(); err != nil {
		return err
	}
	r := rebuild{Rebuilder: b, told: told, changed: map[string]struct{}{}}
	for _, step := range []func(context.Context, time.Time) error{r.allCharges, r.allIntents, r.allCaptures, r.allRefunds, r.allChanged, r.loose} {
		if err := step(ctx, since); err != nil {
			return err
		}
	}
	return nil
}

// rebuild is one walk through the books.
type rebuild struct {
	*Rebuilder
	told    func(context.Context, history.Counts) error
	changed map[string]struct{} // charges, by the provider's ids, of which more may be refunded than is known here
}

// loose deals with what was unfinished at the moment to which the database was put back.
func (r *rebuild) loose(ctx context.Context, _ time.Time) error {
	q := r.store.queries
	return db.Tx(ctx, r.store.pool, func(ctx context.Context, tx db.DBTX) error {
		if _, err := q.KeysReached(ctx, tx); err != nil {
			return err
		}
		if _, err := q.ReceiptsHold(ctx, tx); err != nil {
			return err
		}
		overtaken, err := q.KeyOvertaken(ctx, tx)
		for _, id := range overtaken {
			r.log.WarnContext(ctx, "not sent again: its key came to stand for another operation since, which the provider has", "operation_id", id)
		}
		return err
	})
}

// each writes one object in a transaction of its own, and reports whether it was new. One that the
// database refuses is told, and blocks nobody but its own key.
func (r *rebuild) each(ctx context.Context, id string, tags provider.Tags, n *claimNote, write func(context.Context, db.DBTX) (bool, error)) (fresh bool, err error) {
	err = db.Tx(ctx, r.store.pool, func(ctx context.Context, tx db.DBTX) (err error) {
		fresh, err = write(ctx, tx)
		return err
	})
	if err == nil || !db.ByData(err) {
		return fresh && err == nil, err
	}
	r.log.ErrorContext(ctx, "could not be rebuilt from the provider's books: a person has to look", "provider_id", id, "operation_id", tags.Operation, "cause", err)
	if n == nil {
		return false, nil
	}
	return false, db.Tx(ctx, r.store.pool, func(ctx context.Context, tx db.DBTX) error { return r.block(ctx, tx, tags, *n) })
}

// block keeps the key of an operation that cannot be rebuilt from moving money once more.
func (r *rebuild) block(ctx context.Context, tx db.DBTX, tags provider.Tags, n claimNote) error {
	problem := idemkeys.Problem{
		Type: "api_error", Code: "operation_parked", RequestID: n.RequestID, Advice: idemkeys.Stop,
		Message: "The payment provider carried this request out, and what became of it could not be restored. " +
			"The operator has to decide; do not repeat it under another key.",
	}
	return r.key(ctx, tx, rebuiltOperation(tags.Operation, n), n, errorAnswer(http.StatusInternalServerError, problem))
}
