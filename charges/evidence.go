package charges

import (
	"context"
	"errors"
	"fmt"

	json "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/jackc/pgx/v5"

	"paidonce/db"
	"paidonce/idemkeys"
	"paidonce/provider"
)

// News of an account that our credentials are not for cannot be asked about. Its signature and our tags are
// then all there is: what it says of an operation that has no outcome is taken, through the same fence and
// against the same frozen request as any look-up. It moves nothing that has an outcome: news may be late,
// and nobody can say what holds now.

// spoken is what an event says of where it belongs.
type spoken struct {
	ID     string `json:"id"`
	Object string `json:"object"`
	// Charge is an id, or an object where somebody asked for it to be expanded.
	Charge   jsontext.Value `json:"charge"`
	Metadata jsontext.Value `json:"metadata"`
}

func (s spoken) chargeID() string {
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

func (s spoken) operation(installation string) string {
	pairs := map[string]string{}
	if json.Unmarshal(s.Metadata, &pairs) != nil || pairs[provider.MetadataInstallation] != installation {
		return ""
	}
	return pairs[provider.MetadataOperation]
}

// elsewhere finds the charge that news speaks of, when it is one of another account of the provider. nil: it
// is of ours, or none that we know.
func (l *Learner) elsewhere(ctx context.Context, n News) (*db.ChargeOfNewsRow, error) {
	if l.store.own.account() == unasked {
		return nil, nil
	}
	var e struct {
		Data struct {
			Object spoken `json:"object"`
		} `json:"data"`
	}
	_ = json.Unmarshal(n.Payload, &e, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)) // else it names nothing
	p := db.ChargeOfNewsParams{ProviderID: e.Data.Object.chargeID(), OperationID: e.Data.Object.operation(l.cfg.Installation)}
	if p.ProviderID == "" && p.OperationID == "" {
		return nil, nil
	}
	var row db.ChargeOfNewsRow
	err := db.Retry(ctx, func(ctx context.Context) (err error) {
		row, err = l.store.queries.ChargeOfNews(ctx, l.store.pool, p)
		return err
	})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, err
	case l.store.own.mine(row.Account):
		return nil, nil
	}
	return &row, nil
}

// believe takes the word of news about a charge of another account.
func (l *Learner) believe(ctx context.Context, n News, row db.ChargeOfNewsRow, mark Mark) error {
	charge, refund := l.provider.Told(n.Payload)
	word := idemkeys.Resolution{Succeeded: true, News: true, Reason: "an event of the account at the provider that it was sent to"}
	operation := ""
	switch {
	case charge != nil && charge.Tags.Installation == l.cfg.Installation && charge.Tags.Operation == row.OperationID && charge.Status == provider.Succeeded:
		word.ProviderID, word.Evidence = charge.ID, charge
		switch {
		case row.SettledAt == nil:
			operation = row.OperationID
		case row.Status == string(provider.Pending) && row.IntentID != nil && *row.IntentID == charge.IntentID: // it waits for its payer
			return l.changeCharge(ctx, n, charge, nil, mark)
		case charge.Captured && !row.Captured && row.CaptureOperationID != nil:
			operation = *row.CaptureOperationID
		}
	case refund != nil && refund.Tags.Installation == l.cfg.Installation && refund.Tags.Operation != "" && moneyMoves(string(refund.Status)):
		operation, word.ProviderID, word.Evidence = refund.Tags.Operation, refund.ID, refund
	}
	if operation == "" {
		return l.note(ctx, mark, "of another account of the provider, and nothing that waits for it: left alone")
	}
	_, err := l.engine.Resolve(ctx, operation, word)
	switch {
	case errors.Is(err, idemkeys.ErrFinished), errors.Is(err, idemkeys.ErrNoOperation):
		return l.note(ctx, mark, "of another account of the provider: nothing new")
	case err != nil:
		return err
	}
	return l.note(ctx, mark, "of another account of the provider: its operation is settled")
}

// chargeFor is the charge that a word on an operation is about: as news has it, or as the provider says.
func (c creation) chargeFor(ctx context.Context, id string, word idemkeys.Resolution) (*provider.Charge, error) {
	if got, ok := word.Evidence.(*provider.Charge); ok {
		return got, nil
	}
	return c.provider.GetCharge(ctx, id)
}

func (p capturing) chargeFor(ctx context.Context, f captureFrozen, word idemkeys.Resolution) (*provider.Charge, error) {
	got, ok := word.Evidence.(*provider.Charge)
	if !ok {
		return p.provider.GetCharge(ctx, f.Request.ChargeID)
	}
	if got.ID != f.Request.ChargeID {
		return nil, fmt.Errorf("the news is of the charge %s, the capture of %s", got.ID, f.Request.ChargeID)
	}
	return got, nil
}

func (p refunding) refundsFor(ctx context.Context, f refundFrozen, word idemkeys.Resolution) ([]provider.Refund, error) {
	if got, ok := word.Evidence.(*provider.Refund); ok {
		return []provider.Refund{*got}, nil
	}
	return p.provider.FindRefund(ctx, provider.Lookup{Tags: f.Request.Tags, ChargeID: f.Request.ChargeID})
}

// byEvidence ends an operation whose intent cannot be read by the charge that it came to.
func (i intending) byEvidence(op idemkeys.Operation, f intentFrozen, word idemkeys.Resolution) (idemkeys.Commit, error) {
	got, ok := word.Evidence.(*provider.Charge)
	switch {
	case !ok || got.Status != provider.Succeeded:
		return idemkeys.Commit{}, errors.New("the news is of no charge that succeeded")
	case got.IntentID == "" || f.IntentID != "" && got.IntentID != f.IntentID:
		return idemkeys.Commit{}, fmt.Errorf("the news is of the intent %q, the operation of %q", got.IntentID, f.IntentID)
	}
	if err := matches(*got, f.Request); err != nil {
		return idemkeys.Commit{}, err
	}
	return i.through(got.IntentID).settled(op, f.Request, *got), nil
}
