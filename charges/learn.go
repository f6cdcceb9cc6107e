package charges

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"paidonce/db"
	"paidonce/idemkeys"
	"paidonce/provider"
)

// News is an event of the provider. Only where to look is taken from it; what is true is asked for.
type News struct {
	ID       string
	Type     string
	ObjectID string
	Livemode bool
	Payload  []byte // signed, but maybe old

	asOf *int32 // how many events had told of the charge before the provider was asked; nil: that was not looked at
}

// booksDiffer begins the result of news that does not agree with what we know. inbox.NeedsPerson is the same.
const booksDiffer = "books differ: "

// Mark writes what came of the news in the transaction of its effect; false: somebody else did so meanwhile, and nothing must be written.
type Mark func(ctx context.Context, tx db.DBTX, result string) (bool, error)

// Learner lets charges and refunds learn from the provider's events.
type Learner struct {
	store    *Store
	engine   *idemkeys.Engine
	provider provider.Provider
	cfg      Config
}

// NewLearner returns a learner over the same store, engine and provider as the drivers.
func NewLearner(s *Store, e *idemkeys.Engine, p provider.Provider, cfg Config) *Learner {
	return &Learner{store: s, engine: e, provider: p, cfg: cfg}
}

// readsMax is how many times more the provider is asked at once when what it said may be overtaken; then the news waits, as after any failure.
const readsMax = 3

// Learn does what the news asks for. An operation of ours that is still open is settled through the same fence as by any driver; what changed later (a
// dispute, a refund that failed) moves our state forward, with an event. State comes from an authenticated read, so order and repetition do not matter. An error
// means: later again.
func (l *Learner) Learn(ctx context.Context, n News, mark Mark) error {
	for tries := 0; ; tries++ {
		err := l.learn(ctx, n, mark)
		var o *overtaken
		if !errors.As(err, &o) || tries == readsMax {
			return err
		}
		n.asOf = &o.events
	}
}

// overtaken: what the provider said may be older than what is stored. Sums and disputes go up and down, and several pieces of news are worked on at once, beside
// refunds; so an answer of this kind counts only if nothing was told of the charge since it was asked for.
type overtaken struct{ events int32 }

func (*overtaken) Error() string { return "the charge changed while the provider was asked" }

// fresh reports whether nothing was told of a charge, whose row is locked, since the provider was asked.
func (n News) fresh(row db.Charge) error {
	if n.asOf != nil && *n.asOf == row.Events {
		return nil
	}
	return db.Final(&overtaken{row.Events})
}

func (l *Learner) learn(ctx context.Context, n News, mark Mark) error {
	if elsewhere, err := l.elsewhere(ctx, n); err != nil {
		return err
	} else if elsewhere != nil {
		return l.believe(ctx, n, *elsewhere, mark)
	}
	if n.Livemode != l.cfg.Livemode {
		return l.note(ctx, mark, "of the other mode: left alone")
	}
	switch {
	case strings.HasPrefix(n.Type, "charge.dispute."):
		return l.dispute(ctx, n, mark)
	case strings.HasPrefix(n.Type, "payment_intent."):
		return l.intent(ctx, n, mark)
	case strings.HasPrefix(n.Type, "refund."), n.Type == "charge.refund.updated":
		return l.refund(ctx, n, mark)
	case strings.HasPrefix(n.Type, "charge."):
		return l.charge(ctx, n, mark)
	}
	return l.note(ctx, mark, nothingHere)
}

// note marks the news without an effect.
func (l *Learner) note(ctx context.Context, mark Mark, result string) error {
	return db.Tx(ctx, l.store.pool, func(ctx context.Context, tx db.DBTX) error {
		_, err := mark(ctx, tx, result)
		return err
	})
}

// known reports whether news of a charge says what we know already. Most news is of this kind, and asking the provider about each charge once more would
// use up what it allows.
func (l *Learner) known(ctx context.Context, n News) bool {
	var row db.ChargeByProviderIDRow
	if err := db.Retry(ctx, func(ctx context.Context) (err error) {
		row, err = l.store.queries.ChargeByProviderID(ctx, l.store.pool, &n.ObjectID)
		return err
	}); err != nil {
		return false
	}
	switch n.Type {
	case "charge.succeeded", "charge.failed":
		return "charge."+row.Status == n.Type
	case "charge.captured":
		return row.Captured
	}
	return false
}

func (l *Learner) charge(ctx context.Context, n News, mark Mark) error {
	if l.known(ctx, n) {
		return l.note(ctx, mark, "nothing new")
	}
	got, err := l.provider.GetCharge(ctx, n.ObjectID)
	switch {
	case err != nil:
		return err
	case got == nil:
		return l.note(ctx, mark, "the provider has no such charge")
	case got.Tags.Installation != l.cfg.Installation:
		return l.note(ctx, mark, notOurs)
	}
	if err := l.settle(ctx, got.Tags.Operation, got.ID, got.Status == provider.Succeeded); err != nil {
		return err
	}
	return l.changeCharge(ctx, n, got, nil, mark)
}

// settle lets an operation of ours that is still open end by what the provider has. One that somebody works on ends by itself: later again.
func (l *Learner) settle(ctx context.Context, operationID, providerID string, succeeded bool) error {
	if !succeeded { // a failed or pending one says nothing final of an operation that may be tried again under its key
		return nil
	}
	_, err := l.engine.Resolve(ctx, operationID, idemkeys.Resolution{Succeeded: true, ProviderID: providerID, News: true, Reason: "an event of the provider"})
	switch {
	case errors.Is(err, idemkeys.ErrFinished), errors.Is(err, idemkeys.ErrNoOperation):
		return nil
	}
	return err
}

// changeCharge moves a settled charge forward to what the provider has: disputed, refunded elsewhere. disputed nil: as the charge itself says.
func (l *Learner) changeCharge(ctx context.Context, n News, got *provider.Charge, disputed *bool, mark Mark) error {
	return db.Tx(ctx, l.store.pool, func(ctx context.Context, tx db.DBTX) error {
		row, err := l.store.queries.ChargeOfOperationLock(ctx, tx, got.Tags.Operation)
		if errors.Is(err, pgx.ErrNoRows) {
			_, err := mark(ctx, tx, booksDiffer+"an orphan: the operation "+got.Tags.Operation+" is not known here; `paidonce audit` tells more")
			return err
		}
		if err != nil {
			return err
		}
		was := row
		switch {
		case row.SettledAt == nil:
			return db.Final(fmt.Errorf("the operation %s has no outcome yet", row.OperationID))
		case row.Amount != got.Amount || row.Currency != got.Currency:
			return db.Final(fmt.Errorf("the provider's charge %s is of %d %s, ours of %d %s", got.ID, got.Amount, got.Currency, row.Amount, row.Currency))
		case row.AmountRefundPending > 0 && got.AmountRefunded != row.AmountRefunded:
			return db.Final(fmt.Errorf("refunds of the charge %s are under way; their outcome decides what is new", row.ID))
		case row.ProviderID == nil && row.Status == string(provider.Pending) && row.IntentID != nil: // it waited for its payer
			row.ProviderID = &got.ID
		case row.ProviderID == nil || *row.ProviderID != got.ID:
			_, err := mark(ctx, tx, booksDiffer+"another charge of the same operation than the one we know; `paidonce audit` tells more")
			return err
		}
		forwardCharge(&row, got)
		if disputed != nil {
			row.Disputed = *disputed
		}
		if row.AmountRefunded != was.AmountRefunded || row.Disputed != was.Disputed {
			if err := n.fresh(was); err != nil {
				return err
			}
		}
		return l.writeChange(ctx, tx, n, was, row, mark)
	})
}

// forwardCharge moves a charge to what the provider has; it never goes back.
func forwardCharge(row *db.Charge, got *provider.Charge) {
	// Whether it is disputed now only the dispute tells: the charge stays marked for ever.
	if row.Status == string(provider.Pending) && got.Status != provider.Pending {
		row.Status = string(got.Status)
		row.FailureCode, row.FailureMessage = db.OrNil(got.FailureCode), db.OrNil(got.FailureMessage)
		if outcome, err := json.Marshal(outcomeOf(got.Outcome)); err == nil && got.Outcome != nil {
			row.Outcome = outcome
		}
		row.Captured = got.Captured && got.Status == provider.Succeeded
		if row.Captured {
			row.AmountCaptured = got.AmountCaptured
		}
	}
	if got.Captured && !row.Captured && row.Status == string(provider.Succeeded) && row.CaptureOperationID == nil { // captured elsewhere
		row.Captured, row.AmountCaptured = true, got.AmountCaptured
	}
	if got.AmountRefunded <= row.AmountCaptured { // refunded elsewhere, or a refund that failed after all; no refund of ours is under way
		row.AmountRefunded = got.AmountRefunded
	}
	if row.Status != string(provider.Pending) {
		row.NextAction = nil
	}
}

// writeChange writes what changed, with one event for each change.
func (l *Learner) writeChange(ctx context.Context, tx db.DBTX, n News, was, now db.Charge, mark Mark) error {
	var events []string
	for _, e := range []struct {
		kind    string
		changed bool
	}{ // in the order in which they can have come true: it is that of their sequence
		{"charge." + now.Status, now.Status != was.Status},
		{"charge.captured", now.Captured && !was.Captured && was.Status == now.Status},
		{"charge.refunded", now.AmountRefunded > was.AmountRefunded},
		{"charge.updated", now.AmountRefunded < was.AmountRefunded}, // a refund failed after all
		{"charge.dispute.created", now.Disputed && !was.Disputed},
		{"charge.dispute.closed", !now.Disputed && was.Disputed},
	} {
		if e.changed {
			events = append(events, e.kind)
		}
	}
	result := "nothing new"
	if len(events) > 0 {
		result = strings.Join(events, ", ")
	}
	if ok, err := mark(ctx, tx, result); err != nil || !ok || len(events) == 0 {
		return err
	}
	err := l.store.queries.ChargeChange(ctx, tx, db.ChargeChangeParams{
		ID: now.ID, Status: now.Status, Captured: now.Captured, AmountCaptured: now.AmountCaptured, AmountRefunded: now.AmountRefunded, Disputed: now.Disputed,
		ProviderID: now.ProviderID, FailureCode: now.FailureCode, FailureMessage: now.FailureMessage, Outcome: now.Outcome,
	})
	if err != nil {
		return err
	}
	charge, err := fromRow(now)
	if err != nil {
		return db.Final(err)
	}
	for _, kind := range events {
		if err := l.tell(ctx, tx, n, now.AccountID, kind, charge.ID, charge, charge.Livemode); err != nil {
			return err
		}
	}
	return nil
}

// tell writes an event that news made true: one of a type for each piece of news.
func (l *Learner) tell(ctx context.Context, tx db.DBTX, n News, account, kind, objectID string, object any, livemode bool) error {
	sequence, err := l.store.countEvent(ctx, tx, object, objectID)
	if err != nil {
		return err
	}
	id := eventID(kind, objectID, n.ID)
	return l.store.queries.OutboxAdd(ctx, tx, db.OutboxAddParams{
		EventID: id, AccountID: account, Type: kind, OperationID: n.ID, ObjectID: objectID,
		Payload: renderEvent(id, kind, time.Now(), object, livemode, sequence), //tidy:clock shown to people, nothing is decided by it
	})
}

// disputeIn reads a dispute out of an event. nil: there is none.
func disputeIn(payload []byte) *provider.Dispute {
	var e struct {
		Data struct {
			Object struct {
				ID     string `json:"id"`
				Object string `json:"object"`
				Charge string `json:"charge"`
				Status string `json:"status"`
			} `json:"object"`
		} `json:"data"`
	}
	o := &e.Data.Object
	if json.Unmarshal(payload, &e) != nil || o.Object != "dispute" || o.Charge == "" {
		return nil
	}
	return &provider.Dispute{ID: o.ID, ChargeID: o.Charge, Status: o.Status}
}

func (l *Learner) dispute(ctx context.Context, n News, mark Mark) error {
	d, err := l.provider.GetDispute(ctx, n.ObjectID)
	if err != nil {
		return err
	}
	if d == nil {
		// Restricted keys may not read disputes. The event's own word is signed, and the next one corrects it.
		if d = disputeIn(n.Payload); d == nil {
			return l.note(ctx, mark, "the provider has no such dispute")
		}
	}
	got, err := l.provider.GetCharge(ctx, d.ChargeID)
	switch {
	case err != nil:
		return err
	case got == nil || got.Tags.Installation != l.cfg.Installation:
		return l.note(ctx, mark, notOurs)
	}
	if err := l.settle(ctx, got.Tags.Operation, got.ID, got.Status == provider.Succeeded); err != nil {
		return err
	}
	// A charge stays marked as disputed at the provider for ever; whether its money is contested now, only the dispute tells.
	open := d.Status != "won" && d.Status != "warning_closed"
	return l.changeCharge(ctx, n, got, &open, mark)
}
