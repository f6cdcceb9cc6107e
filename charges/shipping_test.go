package charges_test

import (
	"encoding/json"
	"strings"
	"testing"

	"paidonce/internal/world"
	"paidonce/provider"
)

// A charge that the database forgot comes back with where goods are sent, and with its descriptor,
// where it may have one.
func TestShippingIsRebuilt(t *testing.T) {
	t.Parallel()
	bothFlows(t, func(t *testing.T, w *world.World) {
		i := w.Start()
		p := world.Twenty
		p.Shipping = &provider.Shipping{
			Name: "Jenny", Phone: "1", Address: provider.Address{City: "London", Line1: "12 Mill Lane"},
		}
		shown := `"shipping":{"address":{"city":"London","country":null,"line1":"12 Mill Lane",` +
			`"line2":null,"postal_code":null,"state":null},"carrier":null,"name":"Jenny","phone":"1",` +
			`"tracking_number":null}`
		if !w.Intents {
			p.StatementDescriptor = "BOOKS 6735"
			shown += `,"statement_descriptor":"BOOKS 6735"`
		}
		id := i.MustCharge("k", p)
		forgetAndRebuild(w, i)
		c, err := i.Charges.Get(t.Context(), w.Request("x").AccountID, id, false)
		body, _ := json.Marshal(c)
		if err != nil || !strings.Contains(string(body), shown) {
			t.Errorf("it shows %s, %v", body, err)
		}
		res, err := i.Charges.Create(t.Context(), w.Request("k"), p)
		if err != nil || !strings.Contains(string(res.Answer.Body), shown) {
			t.Errorf("replayed: %s, %v", res.Answer.Body, err)
		}
	})
}
