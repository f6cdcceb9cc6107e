package charges_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"paidonce/charges"
	"paidonce/history"
	"paidonce/internal/shop"
	"paidonce/internal/world"
	"paidonce/provider"
)

// paidWith is a charge as far as it says how it was paid.
type paidWith struct {
	ID                   string
	PaymentMethodDetails *struct {
		Type string
		Card map[string]any
	} `json:"payment_method_details"`
	ReceiptURL         *string `json:"receipt_url"`
	BalanceTransaction *string `json:"balance_transaction"`
}

func paid(t *testing.T, body []byte) (c paidWith) {
	t.Helper()
	if err := json.Unmarshal(body, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// eventsOf are the charges in the events of a type, oldest first.
func eventsOf(w *world.World, kind string) (all []paidWith) {
	w.T.Helper()
	var texts []string
	w.Read(`SELECT coalesce(array_agg(convert_from(payload, 'UTF8') ORDER BY position), '{}')
		FROM outbox WHERE type = $1`, []any{kind}, &texts)
	for _, text := range texts {
		var e struct{ Data struct{ Object paidWith } }
		if err := json.Unmarshal([]byte(text), &e); err != nil {
			w.T.Fatal(err)
		}
		all = append(all, e.Data.Object)
	}
	return all
}

func wantVisa(t *testing.T, where string, c paidWith, booked bool) {
	t.Helper()
	want := map[string]any{
		"brand": "visa", "country": "US", "exp_month": 12.0, "exp_year": 2034.0,
		"funding": "credit", "last4": "4242", "network": "visa", "wallet": nil,
	}
	if c.PaymentMethodDetails == nil || c.PaymentMethodDetails.Type != "card" ||
		!reflect.DeepEqual(c.PaymentMethodDetails.Card, want) ||
		c.ReceiptURL == nil || !strings.HasPrefix(*c.ReceiptURL, "https://pay.stripe.com/receipts/") ||
		(c.BalanceTransaction != nil) != booked {
		t.Errorf("%s: %+v", where, c)
	}
}

// Every answer and event shows how a charge was paid, from the first on, and its balance
// transaction once there is one.
func TestDetailsOverHTTP(t *testing.T) {
	t.Parallel()
	bothFlows(t, func(t *testing.T, w *world.World) {
		s := shop.New(w)
		held := s.Charge("k", `{"amount":2000,"currency":"usd","source":"tok_visa","capture":false}`)
		first := paid(t, held.Body)
		wantVisa(t, "POST", first, false)
		wantVisa(t, "GET", paid(t, s.Get("/v1/charges/"+first.ID).Body), false)
		taken := s.Capture("c", first.ID, 2000)
		wantVisa(t, "capture", paid(t, taken.Body), true)
		wantVisa(t, "GET after the capture", paid(t, s.Get("/v1/charges/"+first.ID).Body), true)
		var list struct{ Data []json.RawMessage }
		s.Get("/v1/charges").JSON(&list)
		wantVisa(t, "list", paid(t, list.Data[0]), true)
		for kind, booked := range map[string]bool{"charge.succeeded": false, "charge.captured": true} {
			events := eventsOf(w, kind)
			if len(events) != 1 {
				t.Fatalf("%d events %s", len(events), kind)
			}
			wantVisa(t, kind, events[0], booked)
		}
		// of a declined payment nothing is known, and an older row has none
		s.Charge("d", `{"amount":2000,"currency":"usd","source":"tok_chargeDeclined"}`)
		w.Exec(`UPDATE charges SET details = NULL`)
		var all struct{ Data []paidWith }
		s.Get("/v1/charges").JSON(&all)
		for _, c := range all.Data {
			if c.PaymentMethodDetails != nil || c.ReceiptURL != nil || c.BalanceTransaction != nil {
				t.Errorf("unknown, and shown: %+v", c)
			}
		}
	})
}

// Another kind than a card is told by its type alone, also once it has cleared.
func TestDetailsOfABankDebit(t *testing.T) {
	t.Parallel()
	bothFlows(t, detailsOfABankDebit)
}

func detailsOfABankDebit(t *testing.T, w *world.World) {
	i := w.Start()
	in := w.Inbox(i)
	charge := debit(w, i, "k")
	if err := w.Sim.EndDebit(w.ProviderCharge(), ""); err != nil {
		t.Fatal(err)
	}
	w.Deliver(in, "evt_1", "charge.succeeded", w.ProviderCharge())
	w.Process(in)
	events := append(eventsOf(w, "charge.pending"), eventsOf(w, "charge.succeeded")...)
	if len(events) != 2 {
		t.Fatalf("%d events of %s", len(events), charge)
	}
	for _, c := range events {
		if m := c.PaymentMethodDetails; m == nil || m.Type != "us_bank_account" || m.Card != nil {
			t.Errorf("%+v", c)
		}
	}
}

// What the provider tells later becomes known with an event, once. Another address of the same
// receipt is no news: the one that is known stays.
func TestDetailsLearntLater(t *testing.T) {
	t.Parallel()
	bothFlows(t, func(t *testing.T, w *world.World) {
		i := w.Start()
		in := w.Inbox(i)
		charge := i.MustCharge("k", world.Twenty)
		deliver := func(id string) {
			w.Deliver(in, id, "charge.updated", w.ProviderCharge())
			w.Process(in)
		}
		w.Exec(`UPDATE charges SET details = jsonb_set(details::jsonb, '{receipt}', '"https://a.example"')`)
		deliver("evt_1")
		if n := len(eventsOf(w, "charge.updated")); n != 0 {
			t.Errorf("%d events of another address", n)
		}
		if n := w.Count(`SELECT count(*) FROM charges WHERE details::jsonb->>'receipt' = 'https://a.example'`); n != 1 {
			t.Error("the address of the receipt has changed")
		}
		w.Exec(`UPDATE charges SET details = NULL WHERE id = $1`, charge)
		for _, id := range []string{"evt_2", "evt_3"} {
			deliver(id)
			events := eventsOf(w, "charge.updated")
			if len(events) != 1 {
				t.Fatalf("%d events", len(events))
			}
			wantVisa(t, "event", events[0], true)
		}
	})
}

// A charge that the database forgot comes back with its details, and so does its capture.
func TestDetailsAreRebuilt(t *testing.T) {
	t.Parallel()
	bothFlows(t, func(t *testing.T, w *world.World) {
		i := w.Start()
		id := i.MustCharge("k", world.Authorised)
		if res, err := i.Capture("c", id, 2000); err != nil || res.Answer.Code != 200 {
			t.Fatalf("%s, %v", res.Answer.Body, err)
		}
		forgetAndRebuild(w, i)
		c, err := i.Charges.Get(t.Context(), w.Request("x").AccountID, id, false)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := json.Marshal(c)
		wantVisa(t, "GET", paid(t, body), true)
		res, err := i.Charges.Create(t.Context(), w.Request("k"), world.Authorised)
		if err != nil {
			t.Fatal(err)
		}
		wantVisa(t, "replay", paid(t, res.Answer.Body), false)
		for kind, booked := range map[string]bool{"charge.succeeded": false, "charge.captured": true} {
			for _, e := range eventsOf(w, kind) {
				wantVisa(t, kind, e, booked)
			}
		}
	})
}

// forgetAndRebuild takes all charges out of the database, and rebuilds them from the provider's
// records.
func forgetAndRebuild(w *world.World, i world.Instance) {
	w.T.Helper()
	for _, table := range []string{"outbox", "charges", "idempotency_keys"} {
		w.Exec(`DELETE FROM ` + table)
	}
	b := charges.NewRebuilder(i.Store, w.Provider, charges.Config{
		Installation: world.Installation, Intents: w.Intents,
	}, world.Quiet)
	if err := b.Rebuild(w.T.Context(), time.Unix(1, 0),
		func(context.Context, history.Counts) error { return nil }); err != nil {
		w.T.Fatal(err)
	}
}

// A charge whose details nobody can read is made like any other.
func TestDetailsUntold(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	i := w.StartWith(nil, untold{w.Provider})
	res, err := i.Charge("k")
	if err != nil || res.Answer.Code != 201 ||
		!strings.Contains(string(res.Answer.Body), `"payment_method_details":null`) {
		t.Errorf("%s, %v", res.Answer.Body, err)
	}
	if n := w.Count(`SELECT count(*) FROM charges WHERE details IS NULL`); n != 1 {
		t.Errorf("%d charges without details, want 1", n)
	}
}

// The stored text is short, as it is written with each charge: it has the names and values of what
// is known, and nothing else. Whoever prints a charge does not print the address of its receipt.
func TestDetailsAreShortAndSecret(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	i := w.Start()
	id := i.MustCharge("k", world.Twenty)
	var stored string
	w.Read(`SELECT details FROM charges`, nil, &stored)
	var all map[string]any
	if err := json.Unmarshal([]byte(stored), &all); err != nil || len(all) != 10 {
		t.Errorf("%s, %v", stored, err)
	}
	values := 0
	for _, v := range all {
		text, _ := json.Marshal(v)
		values += len(text)
	}
	if rest := len(stored) - values; rest > 105 {
		t.Errorf("%d bytes beside the values: %s", rest, stored)
	}
	c, err := i.Charges.Get(t.Context(), w.Request("x").AccountID, id, false)
	if err != nil || c.ReceiptURL == nil {
		t.Fatalf("%v, %v", c.ReceiptURL, err)
	}
	for _, verb := range []string{"%v", "%+v", "%#v"} {
		for _, what := range []any{c, &c, c.Details, c.ReceiptURL, *c.ReceiptURL} {
			if shown := fmt.Sprintf(verb, what); strings.Contains(shown, "receipts/") {
				t.Errorf("%s of a %T shows %s", verb, what, shown)
			}
		}
	}
}

// untold is a provider that tells no details.
type untold struct{ provider.Provider }

func (p untold) Charge(
	ctx context.Context, r *provider.ChargeRequest,
) (provider.ChargeOutcome, error) {
	out, err := p.Provider.Charge(ctx, r)
	if out.Charge != nil {
		out.Charge.Details = provider.Details{}
	}
	return out, err
}
