package charges

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"paidonce/db"
	"paidonce/idemkeys"
	"paidonce/inbox"
	"paidonce/provider"
)

// ProviderEvents moves charges and refunds forward by the provider's events. An event only says
// where to look; the state is read from the provider. Safe for concurrent use.
type ProviderEvents struct {
	store    *Store
	desk     *idemkeys.Desk
	provider provider.Provider
	cfg      Config
	settlers map[string]settler
}

// NewProviderEvents works over the same store, operations and provider as the drivers.
func NewProviderEvents(
	s *Store, desk *idemkeys.Desk, p provider.Provider, cfg Config,
) *ProviderEvents {
	return &ProviderEvents{
		store: s, desk: desk, provider: p, cfg: cfg, settlers: settlers(p, s, cfg),
	}
}

// incoming is an event that is being processed.
type incoming struct {
	inbox.Event
	mark inbox.Mark
	// the intent that was read; nil: none was
	intent *provider.Intent
	// how many events had told of the charge before the provider was asked; nil: that was not
	// looked at
	eventsBefore *int32
	// the refunds of the charge at the provider, once they were read; wantsRefunds: they have to be
	refunds                   []provider.Refund
	refundsRead, wantsRefunds bool
}

// readsMax is how often the provider is asked again at once when its answer may be stale; after
// that the event waits, as after any failure.
const readsMax = 3

// Apply does what an event asks for: it is an [inbox.Apply]. An operation that is still
// open is settled through the same fence as by any driver; what changed later (a dispute, a refund
// that failed) moves our state forward, with an event of our own. State comes from an authenticated
// read, so order and repetition do not matter.
func (pe *ProviderEvents) Apply(ctx context.Context, e inbox.Event, mark inbox.Mark) error {
	return untilFresh(
		incoming{Event: e, mark: mark}, func(ev incoming) error { return pe.apply(ctx, ev) },
	)
}

// untilFresh applies an event until the provider's answer is not older than what is stored.
func untilFresh(ev incoming, apply func(incoming) error) error {
	for tries := 0; ; tries++ {
		err := apply(ev)
		var o *staleRead
		switch {
		case errors.As(err, &o) && tries < readsMax:
			ev.eventsBefore = &o.events
		// its request is not answered yet
		case errors.Is(err, idemkeys.ErrBusy), errors.Is(err, errEnding):
			return inbox.Early(err)
		default:
			return err
		}
	}
}

// errEnding says that an operation is about to capture a charge, or to let go of it. Its outcome
// decides what is new: what was done to the charge afterwards is told after it.
var errEnding = errors.New("an operation is about to capture the charge, or to let go of it")

// staleRead says that the provider's answer may be older than what is stored, or that it takes more
// of its answers to know what is new. Sums and disputes go up and down, and several events are
// processed at once, beside refunds. So such an answer counts only if the charge has had no event
// since the provider was asked.
type staleRead struct{ events int32 }

func (*staleRead) Error() string { return "the charge changed while the provider was asked" }

// checkUnchanged returns nil if a charge, whose row is locked, has had no event since the provider
// was asked.
func (ev incoming) checkUnchanged(row db.Charge) error {
	if ev.eventsBefore != nil && *ev.eventsBefore == row.Events {
		return nil
	}
	return db.Final(&staleRead{row.Events})
}

// objectID is what an id of the provider looks like. With anything else another address than that
// of one object would be asked.
var objectID = regexp.MustCompile(`^[A-Za-z0-9_]{1,255}$`)

func (pe *ProviderEvents) apply(ctx context.Context, ev incoming) error {
	if elsewhere, err := pe.chargeElsewhere(ctx, ev); err != nil {
		return err
	} else if elsewhere != nil {
		return pe.applyUnverified(ctx, ev, *elsewhere)
	}
	if ev.Livemode != pe.cfg.Livemode {
		return pe.markOnly(ctx, ev, inbox.Nothing("of the other mode: left alone"))
	}
	if handled(ev.Type) && !objectID.MatchString(ev.ObjectID) {
		return pe.markOnly(ctx, ev, inbox.Nothing("about no object that the provider could be asked for"))
	}
	switch {
	case strings.HasPrefix(ev.Type, "charge.dispute."):
		return pe.dispute(ctx, ev)
	case strings.HasPrefix(ev.Type, "radar.early_fraud_warning."):
		return pe.fraudWarning(ctx, ev)
	case strings.HasPrefix(ev.Type, "payment_intent."):
		return pe.intent(ctx, ev)
	case strings.HasPrefix(ev.Type, "refund."), ev.Type == "charge.refund.updated":
		return pe.refund(ctx, ev)
	case strings.HasPrefix(ev.Type, "charge."):
		return pe.charge(ctx, ev)
	}
	return pe.markOnly(ctx, ev, unhandledType)
}

// markOnly stores the result of an event that has no effect.
func (pe *ProviderEvents) markOnly(ctx context.Context, ev incoming, result inbox.Result) error {
	return db.Tx(ctx, pe.store.pool, func(ctx context.Context, tx db.DBTX) error {
		_, err := ev.mark(ctx, tx, result)
		return err
	})
}

// orphan is the result of an event about an operation that carries our tags and is not known here.
func orphan(operationID string) inbox.Result {
	return inbox.RecordsDiffer(
		"an orphan: the operation " + operationID + " is not known here; `paidonce audit` tells more",
	)
}

// providerObject is what the provider has of an operation: exactly one is set. It was read there
// or, at an account that our credentials are not for, taken from a signed event.
type providerObject struct {
	charge *provider.Charge
	intent *provider.Intent
	refund *provider.Refund
}

// settler returns the commit that ends an operation by what the provider has of it, once that is
// checked to be what was asked for.
type settler func(ctx context.Context, op *idemkeys.Operation, what providerObject) (*idemkeys.Commit, error)

// settlers are those of all kinds of operation, each beside the kind's phases. The table of phases
// is not used for it: nothing in this package may need that one.
func settlers(p provider.Provider, s *Store, cfg Config) map[string]settler {
	d := &phaseDeps{provider: p, store: s, cfg: cfg}
	return map[string]settler{
		KindCreate:  chargeKind{d}.settle,
		KindIntent:  intentKind{d}.settle,
		KindCapture: captureKind{d}.settle,
		KindRefund:  refundKind{d}.settle,

		KindPaymentIntentCreate:  intentCreateKind{d}.settle,
		KindPaymentIntentConfirm: intentConfirmKind{d}.settle,
		KindPaymentIntentUpdate:  intentUpdateKind{d}.settle,

		KindCancel:     cancelKind{d}.settle,
		KindRefundHold: cancelKind{d}.settle,
	}
}

// settle ends an operation that is still open by what the provider has. Errors:
// [idemkeys.ErrBusy] while somebody works on it: it ends by itself; or why it does not end so.
func (pe *ProviderEvents) settle(
	ctx context.Context, operationID string, what providerObject,
) error {
	_, err := pe.settleBy(ctx, operationID, "an event of the provider", func(
		ctx context.Context, op *idemkeys.Operation,
	) (*idemkeys.Commit, error) {
		if err := pe.store.checkOperation(ctx, op); err != nil {
			return nil, err
		}
		return pe.settled(ctx, op, what)
	})
	return err
}

// settleBy reports false for an operation that has its outcome already, or is not known.
func (pe *ProviderEvents) settleBy(
	ctx context.Context, operationID, why string, outcome idemkeys.Phase,
) (settled bool, err error) {
	_, err = pe.desk.Settle(
		ctx, operationID, idemkeys.LogEntry{Event: "settled", Actor: "provider", Detail: why},
		outcome,
	)
	if errors.Is(err, idemkeys.ErrFinished) || errors.Is(err, idemkeys.ErrNoOperation) {
		return false, nil
	}
	return err == nil, err
}

func (pe *ProviderEvents) settled(
	ctx context.Context, op *idemkeys.Operation, what providerObject,
) (*idemkeys.Commit, error) {
	settle, known := pe.settlers[op.Kind]
	if !known {
		return nil, fmt.Errorf(
			"operations of kind %q cannot be settled by this binary", op.Kind,
		)
	}
	return settle(ctx, op, what)
}

// errOtherObject says that an event is about another kind of object than the operation makes.
var errOtherObject = errors.New(
	"the event is about another kind of object than the operation makes",
)
