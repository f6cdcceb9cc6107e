package charges

import (
	"context"

	json "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"paidonce/db"
	"paidonce/idemkeys"
	"paidonce/inbox"
	"paidonce/provider"
)

// The state behind an event of another account cannot be read with our credentials. The event's
// signature and our tags are then all there is: what it says about an operation without an outcome
// is believed, through the same fence and against the same frozen request as any look-up. It
// changes nothing that has an outcome: events may be late, and nobody can say what holds now.

// eventObject is what an event says about the object that it is about.
type eventObject struct {
	ID     string `json:"id"`
	Object string `json:"object"`
	// Charge is an id, or an object where somebody asked for it to be expanded.
	Charge   jsontext.Value `json:"charge"`
	Metadata jsontext.Value `json:"metadata"`
}

func (s eventObject) chargeID() string {
	var id string
	switch {
	case s.Object == "charge":
		return s.ID
	case json.Unmarshal(s.Charge, &id) == nil:
		return id
	}
	var expanded struct {
		ID string `json:"id"`
	}
	_ = json.Unmarshal(s.Charge, &expanded)
	return expanded.ID
}

func (s eventObject) operation(installation string) string {
	pairs := map[string]string{}
	if json.Unmarshal(s.Metadata, &pairs) != nil ||
		pairs[provider.MetadataInstallation] != installation {
		return ""
	}
	return pairs[provider.MetadataOperation]
}

// chargeElsewhere finds the charge that an event is about, when it is one of another account of the
// provider. nil means that it is one of our account, or none that we know.
func (pe *ProviderEvents) chargeElsewhere(
	ctx context.Context, ev incoming,
) (*db.ChargeOfProviderEventRow, error) {
	if pe.store.own.get() == noAccount {
		return nil, nil
	}
	var e struct {
		Data struct {
			Object eventObject `json:"object"`
		} `json:"data"`
	}
	// a body that cannot be read names nothing
	_ = json.Unmarshal(
		ev.Payload, &e, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true),
	)
	p := db.ChargeOfProviderEventParams{
		ProviderID:  e.Data.Object.chargeID(),
		OperationID: e.Data.Object.operation(pe.cfg.Installation),
	}
	if p.ProviderID == "" && p.OperationID == "" {
		return nil, nil
	}
	row, found, err := db.One(ctx, pe.store.pool, pe.store.queries.ChargeOfProviderEvent, p)
	if err != nil || !found || pe.store.own.is(row.Account) {
		return nil, err
	}
	return &row, nil
}

// applyUnverified believes an event about a charge of another account.
func (pe *ProviderEvents) applyUnverified(
	ctx context.Context, ev incoming, row db.ChargeOfProviderEventRow,
) error {
	object := pe.provider.EventObject(ev.Payload)
	charge, refund := object.Charge, object.Refund
	operation, what := "", providerObject{charge: charge, refund: refund}
	switch {
	case charge != nil && charge.Tags.Installation == pe.cfg.Installation &&
		charge.Tags.Operation == row.OperationID && charge.Status == provider.Succeeded:
		switch {
		case row.SettledAt == nil:
			operation = row.OperationID
		// it waits for its payer
		case row.Status == string(provider.Pending) && row.IntentID != nil &&
			*row.IntentID == charge.IntentID:
			ev.refundsRead = true // with our credentials they cannot be
			return pe.changeChargeTo(ctx, ev, charge, "", nil)
		case (charge.Captured && !row.Captured || charge.Released() && row.Release != nil) &&
			row.CaptureOperationID != nil:
			operation = *row.CaptureOperationID
		}
	case refund != nil && refund.Tags.Installation == pe.cfg.Installation &&
		refund.Tags.Operation != "" && moneyMoves(string(refund.Status)):
		operation = refund.Tags.Operation
	}
	if operation == "" {
		return pe.markOnly(
			ctx, ev,
			inbox.Nothing(
				"of another account of the provider, and nothing that waits for it: left alone",
			),
		)
	}
	// The account is not checked here, since the provider is not asked.
	settled, err := pe.settleBy(ctx, operation, "an event of the account at the provider that it was sent to", func(ctx context.Context, op *idemkeys.Operation) (*idemkeys.Commit, error) {
		return pe.settled(ctx, op, what)
	})
	switch {
	case err != nil:
		return err
	case !settled:
		return pe.markOnly(
			ctx, ev, inbox.Nothing("of another account of the provider: nothing new"),
		)
	}
	return pe.markOnly(
		ctx, ev, inbox.Changed("of another account of the provider: its operation is settled"),
	)
}
