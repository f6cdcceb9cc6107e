package recovery_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"paidonce/charges"
	"paidonce/inbox"
	"paidonce/provider"
)

// sifting is the inbox of an instance as the product has it.
func (w *world) sifting(i instance) *inbox.Inbox {
	l := charges.NewLearner(i.store, i.engine, w.psp, charges.Config{Installation: "test", LookupMisses: 3})
	return inbox.New(inbox.Config{
		Pool: w.pool, Secrets: []string{secret}, Log: quiet, Sift: l.Sift,
		Apply: func(ctx context.Context, e inbox.Event, mark inbox.Mark) error {
			return l.Learn(ctx, charges.News{ID: e.ID, Type: e.Type, ObjectID: e.ObjectID, Livemode: e.Livemode, Payload: e.Payload}, charges.Mark(mark))
		},
	})
}

// Of what other programs do on the same account of the provider only as much is kept as tells a
// second delivery; of what is ours, or may be, all.
func TestForeignEventsAreNotKeptWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	i := w.start(nil, nil)
	if _, err := i.charge(w, "k"); err != nil {
		t.Fatal(err)
	}
	ours := w.providerCharge()
	theirTags := provider.Tags{Operation: "op_x", Installation: "elsewhere"}
	theirs, err := w.psp.Charge(t.Context(), provider.ChargeRequest{
		IdempotencyKey: "theirs", Tags: theirTags, Amount: 1000, Currency: "usd", Source: "tok_visa", Capture: true,
	})
	if err != nil || theirs.Charge == nil {
		t.Fatalf("%+v, %v", theirs, err)
	}
	back, err := w.psp.Refund(t.Context(), provider.RefundRequest{
		IdempotencyKey: "their-refund", Tags: theirTags, ChargeID: theirs.Charge.ID, Amount: 300,
	})
	if err != nil || back.Refund == nil {
		t.Fatalf("%+v, %v", back, err)
	}
	news := w.sifting(i)
	const personal = "jenny@example.com"
	ourTags := `{"paidonce_installation":"test","paidonce_operation":"op_x"}`
	type kept struct{ before, after bool } // whether the payload is, before and after it was processed
	cases := map[string]struct {
		typ, object, kind, metadata string
		kept
		done bool // before anybody processes it
	}{
		"customer":           {"customer.updated", "cus_1", "customer", `{}`, kept{}, true},
		"customer, our tags": {"customer.updated", "cus_2", "customer", ourTags, kept{}, true},
		"invoice":            {"invoice.paid", "in_1", "invoice", `null`, kept{}, true},
		"checkout":           {"checkout.session.completed", "cs_1", "checkout.session", `{"charge":"x"}`, kept{}, true},
		"ours":               {"charge.succeeded", ours, "charge", ourTags, kept{true, true}, false},
		"ours, tags gone":    {"charge.updated", ours, "charge", `{}`, kept{true, true}, false},
		"theirs":             {"charge.succeeded", theirs.Charge.ID, "charge", `{"order":"7"}`, kept{}, false},
		"another's tags":     {"charge.succeeded", theirs.Charge.ID, "charge", `{"paidonce_installation":"other"}`, kept{}, false},
		"their intent":       {"payment_intent.succeeded", "pi_1", "payment_intent", `{}`, kept{}, false},
		"their refund":       {"refund.created", back.Refund.ID, "refund", `{}`, kept{true, false}, false},
		"odd metadata":       {"charge.updated", ours, "charge", `"none"`, kept{true, true}, false},
		"tags that are none": {"charge.captured", theirs.Charge.ID, "charge", `{"paidonce_installation":{"a":1}}`, kept{}, false},
	}
	look := func(when string, want func(kept) bool) {
		for name, c := range cases {
			id := "evt_" + strings.NewReplacer(" ", "_", ",", "", "'", "").Replace(name)
			if n := w.count(`SELECT count(*) FROM provider_events WHERE id = $1 AND type = $2 AND object_id = $3 AND NOT livemode AND received_at IS NOT NULL`, id, c.typ, c.object); n != 1 {
				t.Errorf("%s: what tells a second delivery is not there", name)
			}
			n := w.count(`SELECT count(*) FROM provider_events WHERE id = $1 AND position($2 IN convert_from(payload, 'UTF8')) > 0`, id, personal)
			if (n == 1) != want(c.kept) {
				t.Errorf("%s, %s: the payload is kept: %t, want %t", name, when, n == 1, want(c.kept))
			}
			if done := w.count(`SELECT count(*) FROM provider_events WHERE id = $1 AND processed_at IS NOT NULL`, id) == 1; when == "before" && done != c.done {
				t.Errorf("%s: processed at once: %t, want %t", name, done, c.done)
			}
		}
	}
	for range 2 { // a second delivery changes nothing
		for name, c := range cases {
			id := "evt_" + strings.NewReplacer(" ", "_", ",", "", "'", "").Replace(name)
			body := fmt.Appendf(nil, `{"id":%q,"object":"event","type":%q,"livemode":false,"data":{"object":{"id":%q,"object":%q,"metadata":%s,"email":%q}}}`,
				id, c.typ, c.object, c.kind, c.metadata, personal)
			if err := news.Receive(t.Context(), body, signed(body, secret, time.Now())); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		look("before", func(k kept) bool { return k.before })
	}
	w.process(news)
	look("after", func(k kept) bool { return k.after })
	if n := w.count(`SELECT count(*) FROM provider_events WHERE processed_at IS NULL`); n != 0 {
		t.Errorf("%d are not processed", n)
	}
	if n, err := news.Replay(t.Context(), "", time.Now().Add(-time.Hour), ""); n != len(cases) || err != nil {
		t.Errorf("replayed %d, %v", n, err)
	}
	w.process(news)
	look("after a replay", func(k kept) bool { return k.after })
	if n := w.count(`SELECT count(*) FROM charges`); n != 1 {
		t.Errorf("%d charges, want ours", n)
	}
}
