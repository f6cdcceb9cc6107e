package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"paidonce/api/apitest"
	"paidonce/provider/stripesim"
)

// charged makes a charge and returns its id.
func (s *shop) charged(t *testing.T, key, params string) string {
	t.Helper()
	a := s.Charge(key, `{"currency":"usd","source":"tok_visa",`+params+`}`)
	created(t, a)
	return a.ID()
}

// refund asks for a refund; amount 0 for all that is left.
func refundOf(c *apitest.Client, key, charge string, amount int64) apitest.Answer {
	body := fmt.Sprintf(`{"charge":%q,"amount":%d}`, charge, amount)
	if amount == 0 {
		body = fmt.Sprintf(`{"charge":%q}`, charge)
	}
	return c.Post("/v1/refunds", key, body)
}

// capture asks for a capture; amount 0 for all, without a body.
func capture(c *apitest.Client, key, charge string, amount int64) apitest.Answer {
	body := ""
	if amount != 0 {
		body = fmt.Sprintf(`{"amount":%d}`, amount)
	}
	return c.Post("/v1/charges/"+charge+"/capture", key, body)
}

type shownCharge struct {
	Status                string
	Captured, Refunded    bool
	Amount                int64
	AmountCaptured        int64 `json:"amount_captured"`
	AmountRefunded        int64 `json:"amount_refunded"`
	Currency, FailureCode string
}

func (s *shop) shows(t *testing.T, id string) (c shownCharge) {
	t.Helper()
	a := s.Get("/v1/charges/" + id)
	if a.Code != 200 {
		t.Fatalf("got %d %s", a.Code, a.Body)
	}
	a.JSON(&c)
	return c
}

// fault lets something go wrong with the next requests to a path of the provider; count 0: all.
func (s *shop) fault(t *testing.T, count int, path string, f stripesim.Fault) {
	t.Helper()
	if _, err := s.sim.AddFault(stripesim.Rule{Count: count, Match: stripesim.Match{Method: "POST", Path: path}, Fault: f}); err != nil {
		t.Fatal(err)
	}
}

// control asks the simulator for one of its views.
func (s *shop) control(t *testing.T, view string, into any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.simURL+"/_sim/"+view, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err == nil {
		err = json.Unmarshal(body, into)
	}
	if err != nil {
		t.Fatalf("%s: %v: %s", view, err, body)
	}
}

// givenBack is what the provider's own book says was refunded, in how many refunds.
func (s *shop) givenBack(t *testing.T) (sum int64, n int) {
	t.Helper()
	var book struct {
		Refunds []struct {
			Amount int64
			Status string
		}
	}
	s.control(t, "ledger", &book)
	for _, r := range book.Refunds {
		if r.Status != "failed" {
			sum, n = sum+r.Amount, n+1
		}
	}
	return sum, n
}

// refundKeys are the idempotency keys that the provider saw on refunds.
func (s *shop) refundKeys(t *testing.T) map[string]bool {
	t.Helper()
	var sent struct {
		Data []struct {
			Method, Path string
			Key          string `json:"idempotency_key"`
		}
	}
	s.control(t, "requests?limit=1000", &sent)
	keys := map[string]bool{}
	for _, r := range sent.Data {
		if r.Method == "POST" && r.Path == "/v1/refunds" {
			keys[r.Key] = true
		}
	}
	return keys
}

// PB-116, and 20 refunds of 30 on a charge of 100: together they never exceed it, over two servers and a slow provider.
func TestRefundsTogetherNeverExceedTheCharge(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	clients := []*apitest.Client{s.Client, apitest.NewClient(t, s.serve(t).url, s.APIKey)}
	s.fault(t, 0, "/v1/refunds", stripesim.Fault{Type: stripesim.Delay, DelayMS: 200})
	back := int64(0)
	storm := func(name string, charge int64, refunds []int64, wantMade int) {
		id := s.charged(t, name, fmt.Sprintf(`"amount":%d`, charge))
		answers := make([]apitest.Answer, len(refunds))
		var wg sync.WaitGroup
		for i, amount := range refunds {
			wg.Go(func() { answers[i] = refundOf(clients[i%2], fmt.Sprint(name, i), id, amount) })
		}
		wg.Wait()
		made, sum := 0, int64(0)
		for i, a := range answers {
			switch {
			case a.Code == 201:
				made, sum = made+1, sum+refunds[i]
			case a.Code == 409 && a.Error().Code == "refund_pending":
			case a.Code != 400 || a.Error().Code != "amount_too_large" && a.Error().Code != "charge_already_refunded":
				t.Errorf("%s: refund %d: got %d %s", name, i, a.Code, a.Body)
			case s.Get("/v1/idempotency_keys/"+fmt.Sprint(name, i)).Code != 404:
				t.Errorf("%s: a refusal has spent its key", name)
			}
		}
		back += sum
		c := s.shows(t, id)
		if made != wantMade || sum > charge || c.AmountRefunded != sum || c.Refunded != (sum == charge) {
			t.Errorf("%s: %d refunds of %d together; the charge says %+v", name, made, sum, c)
		}
		if theirs, _ := s.givenBack(t); theirs != back {
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

// PB-122: the answer to a partial refund is lost. PB-121: and news of it arrives before the client tries again.
func TestAPartialRefundIsNotRepeated(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	for _, newsFirst := range []bool{false, true} {
		key := fmt.Sprint("K", newsFirst)
		id := s.charged(t, "charge "+key, `"amount":100`)
		before, made := s.refundKeys(t), s.sim.Stats().RefundsExecuted
		s.fault(t, 1, "/v1/refunds", stripesim.Fault{Type: stripesim.DropAfter})
		first := refundOf(s.Client, key, id, 40)
		wants(t, first, 503, "outcome_unknown", "")
		if first.Error().Charge != id || first.Header.Get("Retry-After") == "" {
			t.Errorf("got %+v", first.Error())
		}
		if newsFirst {
			s.deliver(t, "evt_1", "charge.refunded", s.providerID(t, id))
			s.process(t)
		}
		again := s.until(t, 201, func() apitest.Answer { return refundOf(s.Client, key, id, 40) })
		for range 3 {
			if a := refundOf(s.Client, key, id, 40); !a.Replayed() || !bytes.Equal(a.Body, again.Body) || a.Header.Get("Location") != again.Header.Get("Location") {
				t.Errorf("got %d %s, was %s", a.Code, a.Body, again.Body)
			}
		}
		wants(t, refundOf(s.Client, key, id, 41), 422, "idempotency_key_reused", "")
		wants(t, refundOf(s.Client, " ", id, 40), 400, "idempotency_key_invalid", "")
		if c := s.shows(t, id); c.AmountRefunded != 40 || c.Refunded {
			t.Errorf("the charge says %+v", c)
		}
		if n := s.sim.Stats().RefundsExecuted - made; n != 1 || len(s.refundKeys(t)) != len(before)+1 {
			t.Errorf("the provider made %d refunds, and saw the keys %v", n, s.refundKeys(t))
		}
	}
}

// until asks again, as a client does, until the answer is the wanted one.
func (s *shop) until(t *testing.T, code int, ask func() apitest.Answer) (a apitest.Answer) {
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

// PB-130
func TestNoMoreIsCapturedThanWasAuthorised(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	id := s.charged(t, "charge", `"amount":1000,"capture":false`)
	wants(t, refundOf(s.Client, "early", id, 1), 400, "charge_not_captured", "charge")
	wants(t, capture(s.Client, "more", id, 1001), 400, "amount_too_large", "amount")
	s.fault(t, 0, "/v1/charges/", stripesim.Fault{Type: stripesim.Delay, DelayMS: 200})
	answers := make([]apitest.Answer, 2)
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() { answers[i] = capture(s.Client, fmt.Sprint("K", i), id, 600) })
	}
	wg.Wait()
	won, lost := answers[0], answers[1]
	if won.Code != 200 {
		won, lost = lost, won
	}
	if c := lost.Error().Code; won.Code != 200 || c != "capture_pending" && c != "charge_already_captured" {
		t.Errorf("got %d %s and %d %s", won.Code, won.Body, lost.Code, lost.Body)
	}
	if c := s.shows(t, id); !c.Captured || c.AmountCaptured != 600 || s.sim.Stats().CapturesExecuted != 1 {
		t.Errorf("the charge says %+v, captured %d times", c, s.sim.Stats().CapturesExecuted)
	}
	wants(t, capture(s.Client, "again", id, 0), 400, "charge_already_captured", "id")
	wants(t, refundOf(s.Client, "over", id, 601), 400, "amount_too_large", "amount")
	created(t, refundOf(s.Client, "back", id, 0))
	if c := s.shows(t, id); c.AmountRefunded != 600 || !c.Refunded {
		t.Errorf("the charge says %+v", c)
	}
	wants(t, refundOf(s.Client, "more back", id, 0), 400, "charge_already_refunded", "charge")
	wants(t, capture(s.Client, "after the refund", id, 0), 400, "charge_already_captured", "id")
}

func TestACaptureIsDoneOnceAndReplayed(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	id := s.charged(t, "charge", `"amount":1000,"capture":false`)
	first := capture(s.Client, "K", id, 0)
	if first.Code != 200 || first.ID() != id || s.shows(t, id).AmountCaptured != 1000 {
		t.Errorf("got %d %s", first.Code, first.Body)
	}
	same(t, first, capture(s.Client, "K", id, 0))
	same(t, first, s.Post("/v1/charges/"+id+"/capture", "K", "", "Content-Type", "application/x-www-form-urlencoded"))
	same(t, first, s.Post("/v1/charges/"+id+"/capture", "K", "{}"))
	wants(t, capture(s.Client, "K", id, 1000), 422, "idempotency_key_reused", "")
	wants(t, s.Charge("K", b0), 422, "idempotency_key_reused", "")
	// The answer is lost, and the same key learns it.
	id = s.charged(t, "another", `"amount":1000,"capture":false`)
	s.fault(t, 1, "/v1/charges/", stripesim.Fault{Type: stripesim.DropAfter})
	unknown := capture(s.Client, "L", id, 700)
	wants(t, unknown, 503, "outcome_unknown", "")
	if unknown.Error().Charge != id {
		t.Errorf("got %+v", unknown.Error())
	}
	wants(t, capture(s.Client, "M", id, 0), 409, "capture_pending", "id")
	s.until(t, 200, func() apitest.Answer { return capture(s.Client, "L", id, 700) })
	if c := s.shows(t, id); c.AmountCaptured != 700 || s.sim.Stats().CapturesExecuted != 2 {
		t.Errorf("the charge says %+v, captured %d times", c, s.sim.Stats().CapturesExecuted)
	}
}

// Refusals by how a charge stands; none of them spends its key.
func TestRefundsAndCapturesThatCannotBe(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	id := s.charged(t, "charge", `"amount":1000`)
	for _, foreign := range []string{id, "ch_01KB7Y8R5V6W3Q2P1N0M9K8J7H", "nonsense"} {
		c := s.b
		if foreign != id {
			c = s.Client
		}
		refund, capture := refundOf(c, "K", foreign, 1), capture(c, "K", foreign, 0)
		wants(t, refund, 404, "resource_missing", "charge")
		wants(t, capture, 404, "resource_missing", "id")
		if refund.Error().Charge != "" || refund.Header.Get("Stripe-Should-Retry") != "false" {
			t.Errorf("got %+v", refund.Error())
		}
	}
	wants(t, refundOf(s.Client, "K", id, 1001), 400, "amount_too_large", "amount")
	wants(t, capture(s.Client, "K", id, 0), 400, "charge_already_captured", "id")
	failed := s.Charge("declined", `{"amount":1000,"currency":"usd","source":"tok_chargeDeclined"}`).Error().Charge
	wants(t, refundOf(s.Client, "K", failed, 1), 400, "charge_not_succeeded", "charge")
	wants(t, capture(s.Client, "K", failed, 0), 400, "charge_not_succeeded", "id")
	s.fault(t, 1, "/v1/charges", stripesim.Fault{Type: stripesim.DropAfter})
	pending := s.Charge("unknown", b0).Error().Charge
	for _, a := range []apitest.Answer{refundOf(s.Client, "K", pending, 0), capture(s.Client, "K", pending, 0)} {
		p := a.Error()
		if a.Code != 409 || p.Code != "charge_pending" || p.Advice != "retry_same_key" || p.Charge != pending || a.Header.Get("Retry-After") == "" || a.Header.Get("Stripe-Should-Retry") != "true" {
			t.Errorf("got %d %+v %v", a.Code, p, a.Header)
		}
	}
	wants(t, s.Get("/v1/idempotency_keys/K"), 404, "resource_missing", "key")
	if s.sim.Stats().RefundRequests+s.sim.Stats().CaptureRequests != 0 {
		t.Error("the provider was asked")
	}
	s.until(t, 201, func() apitest.Answer { return s.Charge("unknown", b0) })
	created(t, refundOf(s.Client, "K", pending, 0)) // as the advice says: the same key, later
	// A revoked API key, which the cache still knows, learns nothing and does nothing.
	if err := s.accounts.Revoke(t.Context(), s.keyID); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"K", "new"} {
		wants(t, refundOf(s.Client, key, pending, 0), 401, "api_key_invalid", "")
		wants(t, refundOf(s.Client, key, id, 1), 401, "api_key_invalid", "")
		wants(t, capture(s.Client, key, id, 1), 401, "api_key_invalid", "")
	}
	if n := s.sim.Stats().RefundRequests; n != 1 {
		t.Errorf("the provider was asked %d times", n)
	}
}

func TestRefundsAreListed(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	id, other := s.charged(t, "charge", `"amount":1000`), s.charged(t, "other", `"amount":1000`)
	var ids []string
	for i := range 4 {
		a := refundOf(s.Client, fmt.Sprint("K", i), id, 10)
		created(t, a)
		ids = append([]string{a.ID()}, ids...)
		if get := s.Get(a.Header.Get("Location")); get.Code != 200 || !bytes.Equal(get.Body, a.Body) {
			t.Errorf("got %d %s, made %s", get.Code, get.Body, a.Body)
		}
	}
	last := s.Post("/v1/refunds", "form", "charge="+other+"&amount=5&reason=duplicate&metadata[a]=b", "Content-Type", "application/x-www-form-urlencoded")
	created(t, last)
	if !strings.Contains(string(last.Body), `"reason":"duplicate"`) || !strings.Contains(string(last.Body), `"metadata":{"a":"b"}`) {
		t.Errorf("got %s", last.Body)
	}
	for query, want := range map[string]string{
		"charge=" + id: fmt.Sprint(ids, false), "charge=" + other: fmt.Sprint([]string{last.ID()}, false), "limit=2": fmt.Sprint([]string{last.ID(), ids[0]}, true),
		"limit=2&starting_after=" + ids[0]: fmt.Sprint(ids[1:3], true), "limit=2&ending_before=" + ids[2] + "&charge=" + id: fmt.Sprint(ids[:2], false), "charge=nobody": "[] false",
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
	wants(t, s.b.Get("/v1/refunds/"+ids[0]), 404, "resource_missing", "id")
	wants(t, s.b.Get("/v1/refunds?starting_after="+ids[0]), 400, "resource_missing", "starting_after")
	if a := s.b.Get("/v1/refunds?charge=" + id); !strings.Contains(string(a.Body), `"data":[]`) {
		t.Errorf("got %s", a.Body)
	}
}
