package charges_test

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"paidonce/accounts"
	"paidonce/api/apitest"
	"paidonce/internal/shop"
	"paidonce/internal/world"
	"paidonce/provider/stripesim"
)

// givenBack is what the provider's own book says was refunded, in how many refunds.
func givenBack(s *shop.Shop, t *testing.T) (sum int64, n int) {
	t.Helper()
	book := s.Ledger()
	for _, r := range book.Refunds {
		if r.Status != "failed" {
			sum, n = sum+r.Amount, n+1
		}
	}
	return sum, n
}

// 20 refunds of 30 on a charge of 100, two of 60 on one of 100, 20 of 10: together they never
// exceed it, over two servers and a slow provider.
func TestRefundsTogetherNeverExceedTheCharge(t *testing.T) {
	t.Parallel()
	s := shop.New(world.New(t))
	clients := []*apitest.Client{s.Client, apitest.NewClient(t, s.Serve().URL, s.APIKey)}
	s.PostFault(0, "/v1/refunds", stripesim.Fault{Type: stripesim.Delay, DelayMS: 200})
	back := int64(0)
	storm := func(name string, charge int64, refunds []int64, wantMade int) {
		id := s.MustCharge(name, fmt.Sprintf(`"amount":%d`, charge))
		answers := make([]apitest.Answer, len(refunds))
		var wg sync.WaitGroup
		for i, amount := range refunds {
			wg.Go(func() { answers[i] = clients[i%2].Refund(fmt.Sprint(name, i), id, amount) })
		}
		wg.Wait()
		made, sum := 0, int64(0)
		for i, a := range answers {
			switch {
			case a.Code == 201:
				made, sum = made+1, sum+refunds[i]
			case a.Code == 409 && a.Error().Code == "refund_pending":
			case a.Code != 400 ||
				a.Error().Code != "amount_too_large" && a.Error().Code != "charge_already_refunded":
				t.Errorf("%s: refund %d: got %d %s", name, i, a.Code, a.Body)
			case s.Get("/v1/idempotency_keys/"+fmt.Sprint(name, i)).Code != 404:
				t.Errorf("%s: a refusal has spent its key", name)
			}
		}
		back += sum
		c := s.Show(id)
		if made != wantMade || sum > charge || c.AmountRefunded != sum ||
			c.Refunded != (sum == charge) {
			t.Errorf("%s: %d refunds of %d together; the charge says %+v", name, made, sum, c)
		}
		if theirs, _ := givenBack(s, t); theirs != back {
			t.Errorf("%s: the provider gave %d back, we %d", name, theirs, back)
		}
	}
	twenty := func(amount int64) (all []int64) {
		for range 20 {
			all = append(all, amount)
		}
		return all
	}
	storm("thirties", 100, twenty(30), 3)
	storm("two", 10_000, []int64{6000, 6000}, 1)
	storm("thousands", 10_000, twenty(1000), 10)
}

// The answer to a partial refund is lost, and the provider's event of it arrives before the client
// tries again.
func TestAPartialRefundIsNotRepeated(t *testing.T) {
	t.Parallel()
	s := shop.New(world.New(t))
	for _, newsFirst := range []bool{false, true} {
		key := fmt.Sprint("K", newsFirst)
		id := s.MustCharge("charge "+key, `"amount":100`)
		before, made := s.KeysSent("/v1/refunds"), s.World.Sim.Stats().RefundsExecuted
		s.PostFault(1, "/v1/refunds", stripesim.Fault{Type: stripesim.DropAfter})
		first := s.Refund(key, id, 40)
		apitest.Wants(t, first, 503, "outcome_unknown", "")
		if first.Error().Charge != id || first.Header.Get("Retry-After") == "" {
			t.Errorf("got %+v", first.Error())
		}
		if newsFirst {
			s.Deliver("evt_1", "charge.refunded", s.ProviderID())
			s.Process()
		}
		again := until(t, 201, func() apitest.Answer { return s.Refund(key, id, 40) })
		for range 3 {
			if a := s.Refund(key, id, 40); !a.Replayed() || !bytes.Equal(a.Body, again.Body) ||
				a.Header.Get("Location") != again.Header.Get("Location") {
				t.Errorf("got %d %s, was %s", a.Code, a.Body, again.Body)
			}
		}
		apitest.Wants(t, s.Refund(key, id, 41), 422, "idempotency_key_reused", "")
		apitest.Wants(t, s.Refund(" ", id, 40), 400, "idempotency_key_invalid", "")
		if c := s.Show(id); c.AmountRefunded != 40 || c.Refunded {
			t.Errorf("the charge says %+v", c)
		}
		if n := s.World.Sim.Stats().RefundsExecuted - made; n != 1 ||
			len(s.KeysSent("/v1/refunds")) != len(before)+1 {
			t.Errorf(
				"the provider made %d refunds, and saw the keys %v", n, s.KeysSent("/v1/refunds"),
			)
		}
	}
}

// until asks again, as a client does, until the answer is the wanted one.
func until(t *testing.T, code int, ask func() apitest.Answer) (a apitest.Answer) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		if a = ask(); a.Code == code || time.Now().After(deadline) {
			break
		}
	}
	if a.Code != code {
		t.Fatalf("got %d %s", a.Code, a.Body)
	}
	return a
}

// Two captures of an authorised charge at once: one is done, and no refund exceeds what it took.
func TestNoMoreIsCapturedThanWasAuthorised(t *testing.T) {
	t.Parallel()
	s := shop.New(world.New(t))
	id := s.MustCharge("charge", `"amount":1000,"capture":false`)
	apitest.Wants(t, s.Refund("early", id, 1), 400, "charge_not_captured", "amount")
	apitest.Wants(t, s.Capture("more", id, 1001), 400, "amount_too_large", "amount")
	s.PostFault(0, "/v1/charges/", stripesim.Fault{Type: stripesim.Delay, DelayMS: 200})
	answers := make([]apitest.Answer, 2)
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() { answers[i] = s.Capture(fmt.Sprint("K", i), id, 600) })
	}
	wg.Wait()
	won, lost := answers[0], answers[1]
	if won.Code != 200 {
		won, lost = lost, won
	}
	if c := lost.Error().Code; won.Code != 200 ||
		c != "capture_pending" && c != "charge_already_captured" {
		t.Errorf("got %d %s and %d %s", won.Code, won.Body, lost.Code, lost.Body)
	}
	if c := s.Show(id); !c.Captured || c.AmountCaptured != 600 ||
		s.World.Sim.Stats().CapturesExecuted != 1 {
		t.Errorf("the charge says %+v, captured %d times", c, s.World.Sim.Stats().CapturesExecuted)
	}
	apitest.Wants(t, s.Capture("again", id, 0), 400, "charge_already_captured", "id")
	apitest.Wants(t, s.Refund("over", id, 601), 400, "amount_too_large", "amount")
	apitest.Created(t, s.Refund("back", id, 0))
	if c := s.Show(id); c.AmountRefunded != 600 || !c.Refunded {
		t.Errorf("the charge says %+v", c)
	}
	apitest.Wants(t, s.Refund("more back", id, 0), 400, "charge_already_refunded", "charge")
	apitest.Wants(t, s.Capture("after the refund", id, 0), 400, "charge_already_captured", "id")
}

func TestACaptureIsDoneOnceAndReplayed(t *testing.T) {
	t.Parallel()
	s := shop.New(world.New(t))
	id := s.MustCharge("charge", `"amount":1000,"capture":false`)
	first := s.Capture("K", id, 0)
	if first.Code != 200 || first.ID() != id || s.Show(id).AmountCaptured != 1000 {
		t.Errorf("got %d %s", first.Code, first.Body)
	}
	apitest.Replays(t, first, s.Capture("K", id, 0))
	apitest.Replays(
		t, first,
		s.Post(
			"/v1/charges/"+id+"/capture", "K", "", "Content-Type",
			"application/x-www-form-urlencoded",
		),
	)
	apitest.Replays(t, first, s.Post("/v1/charges/"+id+"/capture", "K", "{}"))
	apitest.Wants(t, s.Capture("K", id, 1000), 422, "idempotency_key_reused", "")
	apitest.Wants(t, s.Charge("K", shop.Twenty), 422, "idempotency_key_reused", "")
	// The answer is lost, and the same key learns it.
	id = s.MustCharge("another", `"amount":1000,"capture":false`)
	s.PostFault(1, "/v1/charges/", stripesim.Fault{Type: stripesim.DropAfter})
	unknown := s.Capture("L", id, 700)
	apitest.Wants(t, unknown, 503, "outcome_unknown", "")
	if unknown.Error().Charge != id {
		t.Errorf("got %+v", unknown.Error())
	}
	apitest.Wants(t, s.Capture("M", id, 0), 409, "capture_pending", "id")
	until(t, 200, func() apitest.Answer { return s.Capture("L", id, 700) })
	if c := s.Show(id); c.AmountCaptured != 700 || s.World.Sim.Stats().CapturesExecuted != 2 {
		t.Errorf("the charge says %+v, captured %d times", c, s.World.Sim.Stats().CapturesExecuted)
	}
}

// Refusals by how a charge stands; none of them spends its key.
func TestRefundsAndCapturesThatCannotBe(t *testing.T) {
	t.Parallel()
	s := shop.New(world.New(t))
	id := s.MustCharge("charge", `"amount":1000`)
	for _, foreign := range []string{id, "ch_01KB7Y8R5V6W3Q2P1N0M9K8J7H", "nonsense"} {
		c := s.B
		if foreign != id {
			c = s.Client
		}
		refund, capture := c.Refund("K", foreign, 1), c.Capture("K", foreign, 0)
		apitest.Wants(t, refund, 404, "resource_missing", "charge")
		apitest.Wants(t, capture, 404, "resource_missing", "id")
		if refund.Error().Charge != "" || refund.Header.Get("Stripe-Should-Retry") != "false" {
			t.Errorf("got %+v", refund.Error())
		}
	}
	apitest.Wants(t, s.Refund("K", id, 1001), 400, "amount_too_large", "amount")
	apitest.Wants(t, s.Capture("K", id, 0), 400, "charge_already_captured", "id")
	failed := s.Charge(
		"declined", `{"amount":1000,"currency":"usd","source":"tok_chargeDeclined"}`,
	).Error().Charge
	apitest.Wants(t, s.Refund("K", failed, 1), 400, "charge_not_succeeded", "charge")
	apitest.Wants(t, s.Capture("K", failed, 0), 400, "charge_not_succeeded", "id")
	s.PostFault(1, "/v1/charges", stripesim.Fault{Type: stripesim.DropAfter})
	pending := s.Charge("unknown", shop.Twenty).Error().Charge
	for _, a := range []apitest.Answer{s.Refund("K", pending, 0), s.Capture("K", pending, 0)} {
		p := a.Error()
		if a.Code != 409 || p.Code != "charge_pending" || p.Advice != "retry_same_key" ||
			p.Charge != pending || a.Header.Get("Retry-After") == "" || a.Header.Get("Stripe-Should-Retry") != "true" {
			t.Errorf("got %d %+v %v", a.Code, p, a.Header)
		}
	}
	apitest.Wants(t, s.Get("/v1/idempotency_keys/K"), 404, "resource_missing", "key")
	if s.World.Sim.Stats().RefundRequests+s.World.Sim.Stats().CaptureRequests != 0 {
		t.Error("the provider was asked")
	}
	until(t, 201, func() apitest.Answer { return s.Charge("unknown", shop.Twenty) })
	apitest.Created(t, s.Refund("K", pending, 0)) // as the advice says: the same key, later
	// A revoked API key, which the cache still knows, learns nothing and does nothing.
	if err := accounts.NewStore(s.World.Pool).Revoke(t.Context(), s.World.Key.ID); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"K", "new"} {
		apitest.Wants(t, s.Refund(key, pending, 0), 401, "api_key_invalid", "")
		apitest.Wants(t, s.Refund(key, id, 1), 401, "api_key_invalid", "")
		apitest.Wants(t, s.Capture(key, id, 1), 401, "api_key_invalid", "")
	}
	if n := s.World.Sim.Stats().RefundRequests; n != 1 {
		t.Errorf("the provider was asked %d times", n)
	}
}

func TestRefundsAreListed(t *testing.T) {
	t.Parallel()
	s := shop.New(world.New(t))
	id, other := s.MustCharge("charge", `"amount":1000`), s.MustCharge("other", `"amount":1000`)
	var ids []string
	for i := range 4 {
		a := s.Refund(fmt.Sprint("K", i), id, 10)
		apitest.Created(t, a)
		ids = append([]string{a.ID()}, ids...)
		if get := s.Get(a.Header.Get("Location")); get.Code != 200 ||
			!bytes.Equal(get.Body, a.Body) {
			t.Errorf("got %d %s, made %s", get.Code, get.Body, a.Body)
		}
	}
	last := s.Post(
		"/v1/refunds", "form", "charge="+other+"&amount=5&reason=duplicate&metadata[a]=b",
		"Content-Type", "application/x-www-form-urlencoded",
	)
	apitest.Created(t, last)
	if !strings.Contains(string(last.Body), `"reason":"duplicate"`) ||
		!strings.Contains(string(last.Body), `"metadata":{"a":"b"}`) {
		t.Errorf("got %s", last.Body)
	}
	for query, want := range map[string]string{
		"charge=" + id:                     fmt.Sprint(ids, false),
		"charge=" + other:                  fmt.Sprint([]string{last.ID()}, false),
		"limit=2":                          fmt.Sprint([]string{last.ID(), ids[0]}, true),
		"limit=2&starting_after=" + ids[0]: fmt.Sprint(ids[1:3], true),
		"limit=2&ending_before=" + ids[2] + "&charge=" + id: fmt.Sprint(ids[:2], false),
		"charge=nobody": "[] false",
	} {
		var l struct {
			Data []struct{ ID string }
			More bool `json:"has_more"`
		}
		s.Get("/v1/refunds?" + query).JSON(&l)
		got := []string{}
		for _, r := range l.Data {
			got = append(got, r.ID)
		}
		if fmt.Sprint(got, l.More) != want {
			t.Errorf("%s: got %v %t, want %s", query, got, l.More, want)
		}
	}
	apitest.Wants(t, s.B.Get("/v1/refunds/"+ids[0]), 404, "resource_missing", "id")
	apitest.Wants(
		t, s.B.Get("/v1/refunds?starting_after="+ids[0]), 400, "resource_missing", "starting_after",
	)
	if a := s.B.Get("/v1/refunds?charge=" + id); !strings.Contains(string(a.Body), `"data":[]`) {
		t.Errorf("got %s", a.Body)
	}
}
