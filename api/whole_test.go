package api_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"paidonce/accounts"
	"paidonce/api"
	"paidonce/api/apitest"
	"paidonce/internal/world"
	"paidonce/provider/stripesim"
)

// A key stands for its first request; another body under it is told nothing of the first.
func TestAnotherBodyUnderTheSameKeyIsRefused(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	first := s.Charge("K", `{"amount":100,"currency":"usd","source":"tok_visa"}`)
	created(t, first)
	second := s.Charge("K", `{"amount":100000,"currency":"usd","source":"tok_visa"}`)
	wants(t, second, 422, "idempotency_key_reused", "")
	if bytes.Contains(second.Body, []byte(first.ID())) {
		t.Error("something of the first is revealed")
	}
	same(t, first, s.Charge("K", `{"amount":100,"currency":"usd","source":"tok_visa"}`))
	if s.ChargeRequests() != 1 {
		t.Errorf("the provider was asked %d times", s.ChargeRequests())
	}
}

// What proxies do to a request does not change it, nor who it is from.
func TestHeadersOfProxiesChangeNothing(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	proxied := []string{"X-Forwarded-For", "10.0.0.9", "X-Forwarded-Host", "b.example", "Via", "1.1 nginx", "Forwarded", "for=10.0.0.9", "X-Request-Id", "\xc0\xaf\xff", "User-Agent", "\xff"}
	first := s.Charge("K", b0)
	created(t, first)
	req := s.Request("POST", "/v1/charges", b0, append(proxied, "idempotency-key", "K", "content-type", "application/json")...)
	req.Body, req.ContentLength = io.NopCloser(strings.NewReader(b0)), -1
	same(t, first, s.Do(req))
	created(t, s.B.Charge("K", b0, proxied...))
	wants(t, s.Charge("K", `{"amount":1,"currency":"usd","source":"tok_visa"}`, proxied...), 422, "idempotency_key_reused", "")
}

// The same body to another path, or with another query, is another request.
func TestMethodPathAndQueryBelongToTheRequest(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	first := s.Charge("K", b0)
	created(t, first)
	post := func(path string) apitest.Answer {
		return s.Do(s.Request("POST", path, b0, "Idempotency-Key", "K", "Content-Type", "application/json"))
	}
	wants(t, post("/v1/charges?expand[]=customer"), 422, "idempotency_key_reused", "")
	wants(t, post("/v1/charges/"), 404, "route_unknown", "")
	for _, method := range []string{"PUT", "PATCH", "DELETE"} {
		for _, path := range []string{"/v1/charges", "/v1/charges/" + first.ID()} {
			wants(t, s.Do(s.Request(method, path, b0, "Idempotency-Key", "K")), 405, "method_not_allowed", "")
		}
	}
	live := s.Get("/v1/charges", "Idempotency-Key", "K")
	if live.Code != 200 || live.Replayed() || !bytes.Contains(live.Body, []byte(first.ID())) {
		t.Errorf("got %d %s", live.Code, live.Body)
	}
	same(t, first, post("/v1/charges"))
	if s.World.Count("SELECT count(*) FROM idempotency_keys") != 1 || s.ChargeRequests() != 1 {
		t.Errorf("%d keys, provider asked %d times", s.World.Count("SELECT count(*) FROM idempotency_keys"), s.ChargeRequests())
	}
}

// A declined card is a final answer, which the key keeps.
func TestADeclineIsAnAnswer(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	declined := `{"amount":2000,"currency":"usd","source":"tok_chargeDeclinedInsufficientFunds"}`
	first := s.Charge("K", declined)
	if p := first.Error(); first.Code != 402 || p.Type != "card_error" || p.DeclineCode != "insufficient_funds" || p.Charge == "" || first.Header.Get("Stripe-Should-Retry") != "false" {
		t.Errorf("got %d %+v %v", first.Code, p, first.Header)
	}
	for range 3 {
		again := s.Charge("K", declined)
		same(t, first, again)
		if again.Header.Get("Stripe-Should-Retry") != "false" {
			t.Error("Stripe's libraries would try again")
		}
	}
	wants(t, s.Charge("K", b0), 422, "idempotency_key_reused", "")
	if s.ChargeRequests() != 1 {
		t.Errorf("the provider was asked %d times", s.ChargeRequests())
	}
	created(t, s.Charge("K2", b0))
	if a := s.Get("/v1/charges/" + first.Error().Charge); a.Code != 200 || !bytes.Contains(a.Body, []byte(`"status":"failed"`)) {
		t.Errorf("got %d %s", a.Code, a.Body)
	}
}

// What is refused has not spent the key.
func TestRefusalsDoNotSpendTheKey(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	for _, body := range []string{
		"{\"amount\":2000,\"currency\":\"usd\",\"source\":\"tok_visa\",\"metadata\":{\"order\":\"\xff\"}}", `{"amount":2000,"currency":"usd","source":"tok_visa","metadata":{"o":"x\ud801"}}`,
		`{"amount":2000,"currency":"usd","source":"tok_visa","metadata":{"o":"x\ud802"}}`, `{"amount":2000,"currency":"usd","source":"tok_visa","metadata":{"a":"x\u0000y"}}`,
		b0 + b0, b0 + " xx", b0 + "\x00", "\ufeff" + b0, "[]", `""`, "null", `{}`, `{"amount":null}`, `{"amount":1e400}`, `{"amount":NaN}`, `{"amount":0,"currency":"usd","source":"tok_visa"}`,
		`{"amount":100000000,"currency":"usd","source":"tok_visa"}`, `{"amount":9007199254740993,"currency":"usd","source":"tok_visa"}`,
	} {
		if a := s.Charge("K", body); a.Code != 400 {
			t.Errorf("%q: got %d %s", body, a.Code, a.Body)
		}
	}
	for _, mediaType := range []string{"application/vnd.x+json", "application/json; charset=utf-16", "text/xml", "multipart/form-data; boundary=x"} {
		wants(t, s.Charge("K", b0, "Content-Type", mediaType), 415, "media_type_unsupported", "")
	}
	wants(t, s.ChargeForm("K", "amount=2000&amount=1&currency=usd&source=tok_visa"), 400, "parameter_duplicate", "amount")
	wants(t, s.Charge("K", b0+strings.Repeat(" ", api.DefaultMaxBody)), 413, "body_too_large", "")
	wants(t, s.As("sk_unknown").Charge("K", b0), 401, "api_key_invalid", "")
	wants(t, s.Get("/v1/idempotency_keys/K"), 404, "resource_missing", "key")
	if s.World.Count("SELECT count(*) FROM idempotency_keys") != 0 || s.ChargeRequests() != 0 {
		t.Errorf("%d keys, provider asked %d times", s.World.Count("SELECT count(*) FROM idempotency_keys"), s.ChargeRequests())
	}
	created(t, s.Charge("K", b0))
	created(t, s.Charge("largest", `{"amount":99999999,"currency":"usd","source":"tok_visa"}`))
}

// Spellings of one request are one request; other texts that look alike are not.
func TestSpellingsOfOneRequestAreOne(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	first := s.Charge("K", `{"amount":2000,"currency":"usd","source":"tok_visa","metadata":{"a":"\u00e9","b":"\u20ac/"}}`)
	created(t, first)
	same(t, first, s.Charge("K", "\n{\"metadata\": {\"b\":\"€\\/\", \"a\":\"é\"},\t\"source\":\"tok_visa\",\"currency\":\"usd\",\"amount\":2000}"))
	same(t, first, s.ChargeForm("K", "metadata[b]=%E2%82%AC%2F&metadata%5Ba%5D=%c3%a9&amount=2000&currency=usd&source=tok_visa"))
	// one currency
	same(t, first, s.Charge("K", `{"amount":2000,"currency":"USD","source":"tok_visa","metadata":{"a":"é","b":"€/"}}`))
	for _, other := range []string{
		"{\"amount\":2000,\"currency\":\"usd\",\"source\":\"tok_visa\",\"metadata\":{\"a\":\"e\u0301\",\"b\":\"€/\"}}", // not normalised
		`{"amount":2000,"currency":"usd","source":"tok_visa","metadata":{"a":"é","b":"€/"},"capture":true}`,
		`{"amount":2000,"currency":"usd","source":"tok_visa","metadata":{"a":"é","b":"€/","c":""}}`,
	} {
		wants(t, s.Charge("K", other), 422, "idempotency_key_reused", "")
	}
	if s.ChargeRequests() != 1 {
		t.Errorf("the provider was asked %d times", s.ChargeRequests())
	}
}

// A key belongs to an account, and all API keys of an account share it.
func TestKeysBelongToAccounts(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	a, b := s.Charge("1", b0), s.B.Charge("1", `{"amount":70,"currency":"eur","source":"tok_visa"}`)
	created(t, a)
	created(t, b)
	rotated := s.As(s.NewKey(world.Account).Secret)
	same(t, a, rotated.Charge("1", b0))
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte(s.APIKey+":"))
	same(t, a, s.Charge("1", b0, "Authorization", basic))
	wants(t, s.B.Get("/v1/charges/"+a.ID()), 404, "resource_missing", "id")
	wants(t, s.B.Get("/v1/charges?starting_after="+a.ID()), 400, "resource_missing", "starting_after")
	if l := s.B.Get("/v1/charges"); bytes.Contains(l.Body, []byte(a.ID())) || !bytes.Contains(l.Body, []byte(b.ID())) {
		t.Errorf("got %s", l.Body)
	}
	// A revoked API key is refused everywhere, although the cache knew it a moment ago.
	if err := accounts.NewStore(s.World.Pool).Revoke(t.Context(), s.World.Key.ID); err != nil {
		t.Fatal(err)
	}
	for _, answer := range []apitest.Answer{
		s.Charge("1", b0), s.Charge("1", `{"amount":1,"currency":"usd","source":"tok_visa"}`), s.Charge("new", b0), s.Get("/v1/charges/" + a.ID()), s.Get("/v1/idempotency_keys/1"),
	} {
		wants(t, answer, 401, "api_key_invalid", "")
	}
	same(t, a, rotated.Charge("1", b0))
	if s.ChargeRequests() != 2 {
		t.Errorf("the provider was asked %d times", s.ChargeRequests())
	}
}

// Status, headers and bytes are those of the first answer.
func TestAReplayIsTheSameBytes(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	body := `{"amount":2000,"currency":"usd","source":"tok_visa","metadata":{"bbb":"1","a":"2","cc":"<&>\u003c\u2028"},"description":"\"quoted\" \\ / é 😀"}`
	first := s.Charge("K", body)
	created(t, first)
	for range 10 {
		again := s.Charge("K", body)
		same(t, first, again)
		if again.Header.Get("Set-Cookie") != "" {
			t.Error("a cookie")
		}
	}
	get := s.Get("/v1/charges/" + first.ID())
	if !bytes.Equal(get.Body, first.Body) {
		t.Errorf("GET shows another charge:\n%s%s", get.Body, first.Body)
	}
	var c struct {
		Metadata    map[string]string
		Description string
	}
	get.JSON(&c)
	if c.Metadata["cc"] != "<&><\u2028" || c.Description != `"quoted" \ / é 😀` {
		t.Errorf("got %+v", c)
	}
}

// The provider's refusal of a request is an answer, too.
func TestARefusalOfTheProviderIsStored(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	for code, body := range map[string]string{
		"amount_too_small": `{"amount":49,"currency":"usd","source":"tok_visa"}`, "resource_missing": `{"amount":2000,"currency":"usd","source":"tok_unheardOf"}`,
	} {
		first := s.Charge(code, body)
		if p := first.Error(); first.Code != 400 || p.Type != "invalid_request_error" || p.Code != code || p.Charge == "" {
			t.Errorf("got %d %+v", first.Code, p)
		}
		same(t, first, s.Charge(code, body))
	}
	if s.ChargeRequests() != 2 {
		t.Errorf("the provider was asked %d times", s.ChargeRequests())
	}
}

// A key in quotes, as the draft of the header has it, is the same key without them.
func TestQuotedAndBareKeysAreOne(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	first := s.Charge("abc", b0)
	created(t, first)
	same(t, first, s.Charge(`"abc"`, b0))
	same(t, first, s.Charge("  abc\t", b0))
	created(t, s.Charge("ABC", b0))
	created(t, s.Charge(`"a\"b"`, b0))
	if a := s.Get("/v1/idempotency_keys/a%22b"); a.Code != 200 {
		t.Errorf("got %d", a.Code)
	}
	longest := strings.Repeat("k", 255)
	created(t, s.Charge(longest, b0))
	if a := s.Get("/v1/idempotency_keys/" + longest); a.Code != 200 || !bytes.Contains(a.Body, []byte(`"status":"completed","`)) && !bytes.Contains(a.Body, []byte(`"status":"completed"}`)) {
		t.Errorf("got %d %s", a.Code, a.Body)
	}
}

// Hostile texts come back as they were, or are refused.
func TestHostileTextsComeBackAsTheyWere(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	for i, text := range []string{
		"'; DROP TABLE charges; --", "<script>alert(1)</script>", "${jndi:ldap://x}", "{{7*7}}", "%s%n%x", "\u202e\u200b\ufeff", "Ω≈ç√", "\U0001F469\u200d\U0001F680", "\x7f\u0080",
		"a\r\nSet-Cookie: x=1", "\u0001\u001f", "NULL", "undefined", "0x10", "1/0", "\u0130\u0131\u212a", "ﷺ", "\ufffe\uffff", strings.Repeat("é", 500),
	} {
		enc, err := jsonText(text)
		if err != nil {
			t.Fatal(err)
		}
		a := s.Charge(fmt.Sprint("K", i), `{"amount":50,"currency":"usd","source":"tok_visa","description":`+enc+`,"metadata":{"v":`+enc+`}}`)
		created(t, a)
		for _, answer := range []apitest.Answer{a, s.Get("/v1/charges/" + a.ID())} {
			var c struct {
				Metadata    map[string]string
				Description string
			}
			answer.JSON(&c)
			if c.Description != text || c.Metadata["v"] != text {
				t.Errorf("%q became %q, %q", text, c.Description, c.Metadata["v"])
			}
		}
	}
}

// The same request while the first runs: 409 at once, or with Prefer its result.
func TestTheSameRequestWhileTheFirstRuns(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	if _, err := s.World.Sim.AddFault(stripesim.Rule{Count: 1, Match: stripesim.Match{Method: "POST", Path: "/v1/charges"}, Fault: stripesim.Fault{Type: stripesim.Delay, DelayMS: 700}}); err != nil {
		t.Fatal(err)
	}
	var first apitest.Answer
	var wg sync.WaitGroup
	wg.Go(func() { first = s.Charge("K", b0) })
	for s.ChargeRequests() == 0 {
		time.Sleep(5 * time.Millisecond)
	}
	start := time.Now()
	second := s.Charge("K", b0)
	wants(t, second, 409, "idempotency_key_in_use", "")
	if second.Header.Get("Stripe-Should-Retry") != "true" || time.Since(start) > 500*time.Millisecond {
		t.Errorf("after %v: %v", time.Since(start), second.Header)
	}
	wants(t, s.Charge("K", `{"amount":1,"currency":"usd","source":"tok_visa"}`), 422, "idempotency_key_reused", "")
	waited := s.Charge("K", b0, "Prefer", "wait=10")
	wg.Wait()
	created(t, first)
	same(t, first, waited)
	if waited.Header.Get("Preference-Applied") != "wait=10" || s.ChargeRequests() != 1 {
		t.Errorf("%v, asked %d times", waited.Header, s.ChargeRequests())
	}
}

// An unknown outcome is said to be one, is not stored, and the same key is the right retry.
func TestAnUnknownOutcomeIsResumedByTheSameKey(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	if _, err := s.World.Sim.AddFault(stripesim.Rule{Count: 1, Match: stripesim.Match{Method: "POST", Path: "/v1/charges"}, Fault: stripesim.Fault{Type: stripesim.DropAfter, Wire: stripesim.WirePartial}}); err != nil {
		t.Fatal(err)
	}
	first := s.Charge("K", b0)
	wants(t, first, 503, "outcome_unknown", "")
	if first.Error().Charge == "" || first.Error().Advice != "retry_same_key" || first.Header.Get("Stripe-Should-Retry") != "true" {
		t.Errorf("got %+v", first.Error())
	}
	if a := s.Get("/v1/idempotency_keys/K"); !bytes.Contains(a.Body, []byte(`"status":"in_progress"`)) || !bytes.Contains(a.Body, []byte(first.Error().Charge)) {
		t.Errorf("got %s", a.Body)
	}
	deadline := time.Now().Add(30 * time.Second)
	again := s.Charge("K", b0)
	for again.Code != 201 && time.Now().Before(deadline) {
		time.Sleep(100 * time.Millisecond)
		again = s.Charge("K", b0)
	}
	created(t, again)
	if again.ID() != first.Error().Charge || s.World.Sim.Stats().Charges != 1 {
		t.Errorf("charge %s, was %s; the provider has %d", again.ID(), first.Error().Charge, s.World.Sim.Stats().Charges)
	}
	again.Header.Set("Request-Id", first.Header.Get("Request-Id")) // which claimed the key
	same(t, again, s.Charge("K", b0))
}

func TestListsWalkFromNewestToOldest(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	var ids []string
	for i := range 5 {
		a := s.Charge(fmt.Sprint("K", i), b0)
		created(t, a)
		ids = append([]string{a.ID()}, ids...)
	}
	page := func(query string) (got []string, more bool) {
		var l struct {
			Data []struct{ ID string }
			More bool `json:"has_more"`
		}
		s.Get("/v1/charges?" + query).JSON(&l)
		for _, c := range l.Data {
			got = append(got, c.ID)
		}
		return got, l.More
	}
	for query, want := range map[string]string{
		"": fmt.Sprint(ids, false), "limit=2": fmt.Sprint(ids[:2], true), "limit=2&starting_after=" + ids[1]: fmt.Sprint(ids[2:4], true),
		"limit=2&ending_before=" + ids[3]: fmt.Sprint(ids[1:3], true), "starting_after=" + ids[4]: fmt.Sprint([]string{}, false),
		"status=failed": fmt.Sprint([]string{}, false), "created[gt]=1&created[lt]=9999999999": fmt.Sprint(ids, false), "created[lte]=1": fmt.Sprint([]string{}, false),
	} {
		if got, more := page(query); fmt.Sprint(got, more) != want {
			t.Errorf("%s: got %v %t, want %s", query, got, more, want)
		}
	}
}

// The database gone is 503 on every path, and the process stays alive.
func TestWithoutADatabaseNothingIsDone(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	created(t, s.Charge("K", b0))
	s.Pool.Close()
	var wg sync.WaitGroup // each is tried again for a while, in case the database comes back
	for _, ask := range []func() apitest.Answer{
		func() apitest.Answer { return s.Charge("K", b0) }, func() apitest.Answer { return s.Charge("new", b0) },
		func() apitest.Answer { return s.Get("/v1/charges") }, func() apitest.Answer { return s.Get("/v1/idempotency_keys/K") },
		func() apitest.Answer { return s.Get("/readyz") },
	} {
		wg.Go(func() { wants(t, ask(), http.StatusServiceUnavailable, "unavailable", "") })
	}
	wg.Wait()
	if a := s.Get("/healthz"); a.Code != 200 || s.ChargeRequests() != 1 {
		t.Errorf("got %d, asked %d times", a.Code, s.ChargeRequests())
	}
}
