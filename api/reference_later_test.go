package api_test

import (
	"testing"

	"paidonce/accounts"
	"paidonce/api/apitest"
	online "paidonce/internal/shop"
	"paidonce/internal/world"
	"paidonce/provider/stripesim"
)

// An account that begins to take references from its metadata answers a key from before as before,
// also if what the metadata has there is no reference.
func TestReferencesFromMetadataLater(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	const body = `{"amount":2000,"currency":"usd","source":"tok_visa","metadata":{"order_id":"a\tb"}}`
	first := s.Charge("k1", body)
	apitest.Created(t, first)
	store := accounts.NewStore(s.World.Pool)
	if _, err := store.SetReferenceFrom(t.Context(), world.Account, "order_id"); err != nil {
		t.Fatal(err)
	}
	again := s.As(s.NewKey(world.Account).Secret).Charge("k1", body)
	if again.Code != first.Code || string(again.Body) != string(first.Body) {
		t.Errorf("first %d %s, then %d %s", first.Code, first.Body, again.Code, again.Body)
	}
}

// An account that stops taking references from its metadata answers a key as before, whose charge
// was meant as a second one of such a reference. A new key is told what is missing.
func TestDuplicatesOfReferencesThatEnd(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	store := accounts.NewStore(s.World.Pool)
	from := func(name string) *apitest.Client { // keys remember the account's settings for a while
		if _, err := store.SetReferenceFrom(t.Context(), world.Account, name); err != nil {
			t.Fatal(err)
		}
		return s.As(s.NewKey(world.Account).Secret)
	}
	const body = `{"amount":2000,"currency":"usd","source":"tok_visa","metadata":{"order_id":"6735"}`
	c := from("order_id")
	once := c.Charge("k1", body+`}`)
	apitest.Created(t, once)
	twice := body + `,"duplicate_of":"` + once.ID() + `"}`
	second := c.Charge("k2", twice)
	apitest.Created(t, second)
	c = from("")
	apitest.Replays(t, once, c.Charge("k1", body+`}`))
	apitest.Replays(t, second, c.Charge("k2", twice))
	apitest.Wants(t, c.Charge("k3", twice), 400, "parameter_missing", "reference")
	apitest.Wants(t, c.Charge("k2", body+`}`), 422, "idempotency_key_reused", "")
}

// A server that goes back to the flow of one call answers keys from before as before, whose charges
// a payer may have come back from, and goes on with those that have no outcome yet.
func TestReturnURLsOfAFlowThatEnds(t *testing.T) {
	t.Parallel()
	w := world.NewIntents(t)
	s := &shop{online.New(w)}
	const members = `"currency":"usd","return_url":"https://shop.example/back","off_session":false}`
	body := map[string]string{
		"paid":    `{"amount":2000,"source":"tok_visa",` + members,
		"waiting": `{"amount":2001,"source":"tok_threeDSecure2Required",` + members,
		"refused": `{"amount":2002,"source":"tok_chargeDeclined",` + members,
		"unknown": `{"amount":2003,"source":"tok_visa",` + members,
	}
	first := map[string]apitest.Answer{}
	for key, code := range map[string]int{"paid": 201, "waiting": 201, "refused": 402} {
		if first[key] = s.Charge(key, body[key]); first[key].Code != code {
			t.Fatalf("%s: got %d %s", key, first[key].Code, first[key].Body)
		}
	}
	s.PostFault(1, "/v1/payment_intents", stripesim.Fault{Type: stripesim.DropAfter})
	apitest.Wants(t, s.Charge("unknown", body["unknown"]), 503, "outcome_unknown", "")
	w.Intents = false
	c := apitest.NewClient(t, s.Serve(whsec).URL, w.Key.Secret)
	for key, answer := range first {
		apitest.Replays(t, answer, c.Charge(key, body[key]))
	}
	apitest.Created(t, c.Charge("unknown", body["unknown"]))
	apitest.Wants(t, c.Charge("new", body["paid"]), 400, "parameter_invalid", "return_url")
}
