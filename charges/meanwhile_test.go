package charges_test

import (
	"context"
	"encoding/json"
	"testing"

	"paidonce/charges"
	"paidonce/db"
	"paidonce/internal/world"
	"paidonce/provider"
)

// meanwhile is a provider during whose calls something else happens.
type meanwhile struct {
	provider.Provider
	happen func()
}

func (m meanwhile) Capture(
	ctx context.Context, r provider.CaptureRequest,
) (provider.ChargeOutcome, error) {
	defer m.happen()
	return m.Provider.Capture(ctx, r)
}

func (m meanwhile) Refund(
	ctx context.Context, r provider.RefundRequest,
) (provider.RefundOutcome, error) {
	defer m.happen()
	return m.Provider.Refund(ctx, r)
}

func (m meanwhile) CancelIntent(
	ctx context.Context, r provider.CancelRequest,
) (provider.IntentOutcome, error) {
	defer m.happen()
	return m.Provider.CancelIntent(ctx, r)
}

// An answer is what is true once it is stored: it has what was changed while the provider was
// asked, as have the event of that moment and the charge.
func TestAnswersHaveWhatChangedMeanwhile(t *testing.T) {
	t.Parallel()
	bothFlows(t, func(t *testing.T, w *world.World) {
		for what, event := range map[string]string{
			"capture": "charge.captured", "cancel": "charge.canceled", "refund": "charge.refunded",
		} {
			id := w.Start().MustCharge("k-"+what, world.Authorised)
			i := w.StartWith(nil, meanwhile{w.Provider, func() {
				if _, err := w.Start().Charges.Update(t.Context(), w.Request("u-"+what), charges.UpdateParams{
					Charge: id, Description: db.OrNil("changed"),
				}); err != nil {
					t.Error(err)
				}
			}})
			do := map[string]func() (body []byte, err error){
				"capture": func() ([]byte, error) { r, err := i.Capture(what, id, 2000); return r.Answer.Body, err },
				"cancel":  func() ([]byte, error) { r, err := i.Cancel(what, id); return r.Answer.Body, err },
				"refund": func() ([]byte, error) {
					r, err := i.Charges.Refund(t.Context(), w.Request(what), charges.RefundParams{Charge: id, WithCharge: true})
					var refund struct{ Charge json.RawMessage }
					if err == nil {
						err = json.Unmarshal(r.Answer.Body, &refund)
					}
					return refund.Charge, err
				},
			}[what]
			for _, when := range []string{"first", "again"} {
				body, err := do()
				if err != nil || described(t, body) != "changed" {
					t.Errorf("%s, %s: %s, %v", what, when, body, err)
				}
			}
			var told string
			w.Read(`SELECT convert_from(payload, 'UTF8')::jsonb->'data'->'object' FROM outbox
				WHERE type = $1 AND object_id = $2`, []any{event, id}, &told)
			if described(t, []byte(told)) != "changed" {
				t.Errorf("%s: the event has %s", what, told)
			}
		}
	})
}

func described(t *testing.T, charge []byte) string {
	t.Helper()
	var c struct{ Description string }
	if err := json.Unmarshal(charge, &c); err != nil {
		t.Errorf("%s: %v", charge, err)
	}
	return c.Description
}
