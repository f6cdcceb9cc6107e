package charges_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"paidonce/inbox"
	"paidonce/internal/world"
	"paidonce/provider"
)

// sifting is the inbox of an instance as the product has it.
func sifting(w *world.World, i world.Instance) *inbox.Inbox {
	events := w.ProviderEvents(i, nil)
	return inbox.New(inbox.Config{
		Pool: w.Pool, Secrets: []string{world.Secret}, Log: world.Quiet, Sift: events.Sift,
		Apply: events.Apply,
	})
}

// Of what other programs do on the same account of the provider only as much is kept as tells a
// second delivery; of what is ours, or may be, all.
func TestForeignEventsAreNotKeptWhole(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	i := w.Start()
	if _, err := i.Charge("k"); err != nil {
		t.Fatal(err)
	}
	ours := w.ProviderCharge()
	theirTags := provider.Tags{Operation: "op_x", Installation: "elsewhere"}
	theirs, err := w.Provider.Charge(t.Context(), &provider.ChargeRequest{
		IdempotencyKey: "theirs", Tags: theirTags, Amount: 1000, Currency: "usd",
		Source: "tok_visa", Capture: true,
	})
	if err != nil || theirs.Charge == nil {
		t.Fatalf("%+v, %v", theirs, err)
	}
	back, err := w.Provider.Refund(t.Context(), provider.RefundRequest{
		IdempotencyKey: "their-refund", Tags: theirTags, ChargeID: theirs.Charge.ID, Amount: 300,
	})
	if err != nil || back.Refund == nil {
		t.Fatalf("%+v, %v", back, err)
	}
	news := sifting(w, i)
	const personal = "jenny@example.com"
	ourTags := `{"paidonce_installation":"test","paidonce_operation":"op_x"}`
	// whether the payload is, before and after it was processed
	type kept struct{ before, after bool }
	cases := map[string]struct {
		typ, object, kind, metadata string
		kept
		done bool // before anybody processes it
	}{
		"customer":           {"customer.updated", "cus_1", "customer", `{}`, kept{}, true},
		"customer, our tags": {"customer.updated", "cus_2", "customer", ourTags, kept{}, true},
		"invoice":            {"invoice.paid", "in_1", "invoice", `null`, kept{}, true},
		"checkout": {
			"checkout.session.completed", "cs_1", "checkout.session", `{"charge":"x"}`, kept{},
			true,
		},
		"ours": {
			"charge.succeeded", ours, "charge", ourTags, kept{true, true}, false,
		},
		"ours, tags gone": {"charge.updated", ours, "charge", `{}`, kept{true, true}, false},
		"theirs": {
			"charge.succeeded", theirs.Charge.ID, "charge", `{"order":"7"}`, kept{}, false,
		},
		"another's tags": {
			"charge.succeeded", theirs.Charge.ID, "charge", `{"paidonce_installation":"other"}`,
			kept{}, false,
		},
		"their intent": {
			"payment_intent.succeeded", "pi_1", "payment_intent", `{}`, kept{}, false,
		},
		"their refund": {
			"refund.created", back.Refund.ID, "refund", `{}`, kept{true, false}, false,
		},
		"odd metadata": {"charge.updated", ours, "charge", `"none"`, kept{true, true}, false},
		"tags that are none": {
			"charge.captured", theirs.Charge.ID, "charge", `{"paidonce_installation":{"a":1}}`,
			kept{}, false,
		},
	}
	look := func(when string, want func(kept) bool) {
		for name, c := range cases {
			id := "evt_" + strings.NewReplacer(" ", "_", ",", "", "'", "").Replace(name)
			if n := w.Count(
				`SELECT count(*) FROM provider_events WHERE id = $1 AND type = $2 AND object_id = $3 AND NOT livemode AND received_at IS NOT NULL`,
				id, c.typ, c.object,
			); n != 1 {
				t.Errorf("%s: what tells a second delivery is not there", name)
			}
			n := w.Count(
				`SELECT count(*) FROM provider_events WHERE id = $1 AND position($2 IN convert_from(payload, 'UTF8')) > 0`,
				id, personal,
			)
			if (n == 1) != want(c.kept) {
				t.Errorf(
					"%s, %s: the payload is kept: %t, want %t", name, when, n == 1, want(c.kept),
				)
			}
			if done := w.Count(
				`SELECT count(*) FROM provider_events WHERE id = $1 AND processed_at IS NOT NULL`,
				id,
			) == 1; when == "before" && done != c.done {
				t.Errorf("%s: processed at once: %t, want %t", name, done, c.done)
			}
		}
	}
	for range 2 { // a second delivery changes nothing
		for name, c := range cases {
			id := "evt_" + strings.NewReplacer(" ", "_", ",", "", "'", "").Replace(name)
			body := fmt.Appendf(nil, `{"id":%q,"object":"event","type":%q,"livemode":false,"data":{"object":{"id":%q,"object":%q,"metadata":%s,"email":%q}}}`,
				id, c.typ, c.object, c.kind, c.metadata, personal)
			if err := news.Receive(
				t.Context(), body, world.Signed(body, world.Secret, time.Now()),
			); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		look("before", func(k kept) bool { return k.before })
	}
	w.Process(news)
	look("after", func(k kept) bool { return k.after })
	if n := w.Count(`SELECT count(*) FROM provider_events WHERE processed_at IS NULL`); n != 0 {
		t.Errorf("%d are not processed", n)
	}
	if n, err := news.Replay(t.Context(), "", time.Now().Add(-time.Hour), ""); n != len(cases) ||
		err != nil {
		t.Errorf("replayed %d, %v", n, err)
	}
	w.Process(news)
	look("after a replay", func(k kept) bool { return k.after })
	if n := w.Count(`SELECT count(*) FROM charges`); n != 1 {
		t.Errorf("%d charges, want ours", n)
	}
}

// Of a type that changes nothing here it does not matter what else cannot be read: such an event is
// noted. Of the types that matter it is parked, whole, and an operator may process it after all.
func TestUnreadableEvents(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	i := w.Start()
	if _, err := i.Charge("k"); err != nil {
		t.Fatal(err)
	}
	news := sifting(w, i)
	for _, typ := range []string{"customer.updated", "charge.succeeded"} {
		body := fmt.Appendf(nil,
			`{"id":"evt_%[1]s","object":"event","type":"%[1]s","livemode":7,"data":{"object":{"id":%[2]q}}}`,
			typ, w.ProviderCharge())
		body = []byte(strings.Replace(string(body), "evt_"+typ, "evt_"+typ[:4], 1))
		if err := news.Receive(
			t.Context(), body, world.Signed(body, world.Secret, time.Now()),
		); err != nil {
			t.Fatal(err)
		}
	}
	w.Process(news)
	for where, want := range map[string]int{
		"id = 'evt_cust' AND processed_at IS NOT NULL":                                       1,
		"id = 'evt_char' AND parked_at IS NOT NULL AND payload IS NOT NULL AND attempts = 0": 1,
	} {
		if n := w.Count(`SELECT count(*) FROM provider_events WHERE ` + where); n != want {
			t.Errorf("%s: %d, want %d", where, n, want)
		}
	}
	if n, err := news.Replay(t.Context(), "evt_char", time.Time{}, ""); n != 1 || err != nil {
		t.Errorf("replayed %d, %v", n, err)
	}
	w.Process(news)
	if n := w.Count(`SELECT count(*) FROM provider_events WHERE result = 'nothing new'`); n != 1 {
		t.Error("it is not processed after an operator's replay")
	}
}
