package api_test

import (
	"slices"
	"testing"

	"paidonce/accounts"
	"paidonce/api/apitest"
	online "paidonce/internal/shop"
	"paidonce/internal/world"
)

const forOrder = `{"amount":2000,"currency":"usd","source":"tok_visa","reference":"order 6735"}`

// The refusals of a reference, as clients see them.
func TestReferences(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	first := s.Charge("k1", forOrder)
	apitest.Created(t, first)
	var c struct{ Reference string }
	if first.JSON(&c); c.Reference != "order 6735" {
		t.Errorf("the charge shows %q", c.Reference)
	}
	taken := s.Charge("k2", forOrder)
	apitest.Wants(t, taken, 400, "reference_already_paid", "reference")
	if e := taken.Error(); e.Charge != first.ID() || e.Advice != "use_existing" ||
		taken.Header.Get("Stripe-Should-Retry") != "false" {
		t.Errorf("%+v, should retry: %s", e, taken.Header.Get("Stripe-Should-Retry"))
	}
	apitest.Created(t, s.B.Charge("k1", forOrder)) // another account's order
	beside := s.ChargeForm("k2", "amount=2000&currency=usd&source=tok_visa&reference=order+6735&duplicate_of="+first.ID())
	apitest.Created(t, beside)
	for query, want := range map[string][]string{
		"reference=order+6735":                               {beside.ID(), first.ID()},
		"reference=order+6735&ending_before=" + first.ID():   {beside.ID()},
		"reference=order+6735&starting_after=" + beside.ID(): {first.ID()},
		"reference=order+6735&status=succeeded&limit=1":      {beside.ID()},
		"reference=order+6735&status=failed":                 nil,
		"reference=order+6735&customer=cus_1":                nil,
		"reference=order+6735&payment_intent=pi_1":           nil,
		"reference=Order+6735":                               nil,
		"reference=order+6735&created[lt]=1":                 nil,
	} {
		var page struct{ Data []struct{ ID string } }
		s.Get("/v1/charges?" + query).JSON(&page)
		var got []string
		for _, c := range page.Data {
			got = append(got, c.ID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s lists %v, want %v", query, got, want)
		}
	}
	apitest.Wants(t, s.Charge("k3", `{"amount":1,"currency":"usd","source":"tok_visa","duplicate_of":"ch_1"}`),
		400, "parameter_missing", "reference")
	apitest.Wants(t, s.Charge("k3", `{"amount":1,"currency":"usd","source":"tok_visa","reference":"a\nb"}`),
		400, "parameter_invalid", "reference")
	apitest.Wants(t, s.Charge("k3", `{"amount":1,"currency":"usd","source":"tok_visa","reference":"a","duplicate_of":"`+
		s.B.Charge("k1", forOrder).ID()+`"}`), 404, "resource_missing", "duplicate_of")
}

// An account can take references from its metadata, so that programs with Stripe's libraries need
// no change. A reference of the request's own comes first.
func TestReferencesFromMetadata(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	store := accounts.NewStore(s.World.Pool)
	if _, err := store.SetReferenceFrom(t.Context(), world.Account, "order_id"); err != nil {
		t.Fatal(err)
	}
	body := func(order, more string) string {
		return `{"amount":2000,"currency":"usd","source":"tok_visa","metadata":{"order_id":"` + order + `"}` + more + `}`
	}
	first := s.Charge("k1", body("6735", ""))
	apitest.Created(t, first)
	apitest.Wants(t, s.Charge("k2", body("6735", "")), 400, "reference_already_paid", "reference")
	apitest.Created(t, s.Charge("k3", body("6735", `,"reference":"another"`)))
	apitest.Created(t, s.Charge("k4", online.Twenty)) // names no order
	apitest.Created(t, s.Charge("k5", online.Twenty))
	apitest.Created(t, s.Charge("k6", body("", "")))
	apitest.Wants(t, s.Charge("k7", body("a\\tb", "")), 400, "parameter_invalid", "metadata[order_id]")
	for _, wrong := range []string{"a[b", "a\n", string(make([]byte, 41))} {
		if _, err := store.SetReferenceFrom(t.Context(), world.Account, wrong); err == nil {
			t.Errorf("references are taken from %q", wrong)
		}
	}
}
