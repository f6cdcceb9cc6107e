package api_test

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"paidonce/charges"
	"paidonce/idemkeys"
	"paidonce/provider/stripesim"
)

// curl -d sends a form unless it is told otherwise: whoever wrote JSON is told what is missing. A
// form that is wrong is not.
func TestJSONThatIsSentAsAForm(t *testing.T) {
	e := newEdge(t)
	for body, told := range map[string]bool{b0: true, "\n" + b0: true, `{"description":"a=b"}`: true, "amount": false, "{=1": true, "amount=x": false} {
		a := e.Post("/v1/charges", "K", body, "Content-Type", "application/x-www-form-urlencoded")
		if a.Code != 400 || strings.Contains(a.Error().Message, "Content-Type: application/json") != told {
			t.Errorf("%s: got %d %s, want 400", body, a.Code, a.Body)
		}
	}
}

func TestPathsAndMethodsThatAreNot(t *testing.T) {
	e := newEdge(t)
	for _, path := range []string{
		"/", "/v1", "/v1/", "/v1/charges/", "/v1/charges//", "/v1/charges/" + chargeID + "/", "/v1/charges/a/b", "/V1/charges", "/v1/Charges",
		"/v1/idempotency_keys", "/v1/idempotency_keys/", "/healthz/", "/metrics/x", "/v1/%63harges", "//v1/charges", "/v1/charges/%00/x",
	} {
		for _, method := range []string{"GET", "POST", "PUT", "DELETE"} {
			req := e.Request(method, path, "")
			req.Header["Authorization"] = nil
			wants(t, e.Do(req), 404, "route_unknown", "")
		}
	}
	for path, allowed := range map[string][]string{
		"/v1/charges": {"GET", "HEAD", "POST", "OPTIONS"}, "/v1/charges/" + chargeID: {"GET", "HEAD", "POST", "OPTIONS"}, "/healthz": {"GET", "HEAD", "OPTIONS"},
		"/v1/idempotency_keys/K": {"GET", "HEAD", "OPTIONS"},
	} {
		for _, method := range []string{"PUT", "PATCH", "DELETE", "POST", "BREW"} {
			if method == "POST" && slices.Contains(allowed, "POST") {
				continue
			}
			a := e.Do(e.Request(method, path, b0, "Idempotency-Key", "K"))
			wants(t, a, 405, "method_not_allowed", "")
			for _, m := range allowed {
				if !strings.Contains(a.Header.Get("Allow"), m) {
					t.Errorf("%s %s: Allow is %q", method, path, a.Header.Get("Allow"))
				}
			}
		}
		if a := e.Do(e.Request("OPTIONS", path, "")); a.Code != 204 || !strings.Contains(a.Header.Get("Allow"), "GET") || a.Header.Get("Request-Id") == "" {
			t.Errorf("OPTIONS %s: %d %v", path, a.Code, a.Header)
		}
	}
	if e.creations() != 0 {
		t.Error("the domain was asked")
	}
}

// Whoever names an account to act for would have another one charged: each operation with an API
// key refuses it, before anything else is done.
func TestNobodyActsForAnotherAccount(t *testing.T) {
	doc, err := openapi3.NewLoader().LoadFromFile("../openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	e := newEdge(t)
	refused := 0
	for path, item := range doc.Paths.Map() {
		path = strings.NewReplacer("{id}", "x", "{key}", "x").Replace(path)
		for method, op := range item.Operations() {
			for header, lines := range map[string][]string{"Stripe-Account": {"acct_A"}, "Stripe-Context": {"", "acct_1/acct_2"}} {
				req := e.Request(method, path, "", "Idempotency-Key", "K")
				req.Header[header] = lines
				a := e.Do(req)
				if op.Security == nil || len(*op.Security) > 0 {
					wants(t, a, 400, "parameter_unknown", header)
					refused++
				} else if a.Code == 400 && a.Error().Code == "parameter_unknown" {
					t.Errorf("%s %s with %s: %d %s", method, path, header, a.Code, a.Body)
				}
			}
		}
	}
	if refused < 2*16 || e.creations() != 0 {
		t.Errorf("%d requests were refused, and the domain was asked %d times", refused, e.creations())
	}
	for _, empty := range []string{"", " "} { // names nobody
		if a := e.Charge("K", b0, "Stripe-Account", empty, "Stripe-Context", empty); a.Code != 201 {
			t.Errorf("got %d %s", a.Code, a.Body)
		}
	}
	req := e.Request("GET", "/v1/charges", "")
	req.Header["Authorization"], req.Header["Stripe-Account"] = nil, []string{"acct_A"}
	wants(t, e.Do(req), 401, "api_key_missing", "")
}

func TestHeadIsGetWithoutBody(t *testing.T) {
	e := newEdge(t)
	get, head := e.Get("/v1/charges/"+chargeID), e.Do(e.Request("HEAD", "/v1/charges/"+chargeID, ""))
	if head.Code != 200 || len(head.Body) != 0 || head.Header.Get("Content-Length") != get.Header.Get("Content-Length") {
		t.Errorf("got %d %q %v, GET said %v", head.Code, head.Body, head.Header, get.Header)
	}
	e.get = func(string) (charges.Charge, error) { return charges.Charge{}, charges.ErrNotFound }
	if head = e.Do(e.Request("HEAD", "/v1/charges/"+chargeID, "")); head.Code != 404 {
		t.Errorf("got %d", head.Code)
	}
}

// What the database would choke on is not there.
func TestIDsInThePath(t *testing.T) {
	e := newEdge(t)
	var got string
	e.get = func(id string) (charges.Charge, error) { got = id; return charge(chargeID), nil }
	for _, id := range []string{"ch_1", "a b", "100%", "a/b", "%41", "a+b", "é", "a;b", "a?b", "..", "%2F", "/%41", "/100%"} {
		if a := e.Get("/v1/charges/" + url.PathEscape(id)); a.Code != 200 || got != id {
			t.Errorf("%q: got %d, asked for %q", id, a.Code, got)
		}
	}
	got = "nothing"
	for _, escaped := range []string{"%00", "a%00", "%ff", "%c0%af", "%ed%a0%80", strings.Repeat("x", 256)} {
		wants(t, e.Get("/v1/charges/"+escaped), 404, "resource_missing", "id")
		wants(t, e.Get("/v1/idempotency_keys/"+escaped), 404, "resource_missing", "key")
	}
	if got != "nothing" {
		t.Errorf("asked for %q", got)
	}
	e.get = func(string) (charges.Charge, error) { return charges.Charge{}, charges.ErrNotFound }
	wants(t, e.Get("/v1/charges/ch_1"), 404, "resource_missing", "id")
	e.get = func(string) (charges.Charge, error) { return charges.Charge{}, errors.New("SQLSTATE 57P01") }
	wants(t, e.Get("/v1/charges/ch_1"), 503, "unavailable", "")
	wants(t, e.Get("/v1/charges/ch_1?expand[]=invoice"), 400, "parameter_invalid", "expand[0]")
}

func TestIdempotencyKeysAreShown(t *testing.T) {
	s := newShop(t)
	for _, key := range []string{"K", "order/6735", "100%", "%41", `a"b\c`, "a b", "?#&", ".", "..", "a.b", "%22K%22", "a//b", "/", `K"`, strings.Repeat("k", 255)} {
		charge := s.Charge(key, b0)
		a := s.Get("/v1/idempotency_keys/" + url.PathEscape(key))
		var got map[string]any
		a.JSON(&got)
		operation, created, expires := got["operation"].(string), got["created"].(float64), got["expires_at"].(float64)
		want := map[string]any{
			"object": "idempotency_key", "key": key, "status": "completed", "recovery_point": "finished", "attempts": 1.0, "operation": operation,
			"resource": charge.ID(), "parked": false, "response_code": 201.0, "original_request": charge.Header.Get("Request-Id"), "created": created, "expires_at": expires,
		}
		if !maps.Equal(got, want) || !strings.HasPrefix(operation, "op_") || time.Since(time.Unix(int64(created), 0)) > time.Minute || expires-created < 86400 {
			t.Errorf("%s: got %v, want %v", key, got, want)
		}
	}
	for sent, stored := range map[string]string{`"K"`: "K", `"a\"b\\c"`: `a"b\c`, `"order/6735"`: "order/6735", `"100%"`: "100%", `".."`: ".."} {
		var got map[string]any
		s.Get("/v1/idempotency_keys/" + url.PathEscape(sent)).JSON(&got)
		if got["key"] != stored {
			t.Errorf("%s: looked for %v, want %s", sent, got["key"], stored)
		}
	}
	if a := s.Get("/v1/idempotency_keys/" + url.PathEscape(`"K" `)); a.Code != 200 || !strings.Contains(string(a.Body), `"key":"K"`) {
		t.Errorf("with a blank behind its quotes: got %d %s", a.Code, a.Body)
	}
	for _, key := range []string{`"K`, `"`, `""`, `"a\b"`, `" K "`, "none", "\u00e9"} {
		wants(t, s.Get("/v1/idempotency_keys/"+url.PathEscape(key)), 404, "resource_missing", "key")
	}
	wants(t, s.B.Get("/v1/idempotency_keys/K"), 404, "resource_missing", "key")
	wants(t, s.Get("/v1/idempotency_keys/K?x=1"), 400, "parameter_unknown", "x")
	s.PostFault(1, "/v1/charges", stripesim.Fault{Type: stripesim.DropAfter})
	s.Charge("unknown", b0)
	a := s.Get("/v1/idempotency_keys/unknown")
	if body := string(a.Body); !strings.Contains(body, `"response_code":null`) || !strings.Contains(body, `"expires_at":null`) || !strings.Contains(body, `"status":"in_progress"`) {
		t.Errorf("got %s", body)
	}
}

func TestListFilters(t *testing.T) {
	e := newEdge(t)
	var f charges.Filter
	e.list = func(got charges.Filter) (charges.Page, error) {
		f = got
		return charges.Page{Charges: []charges.Charge{charge(chargeID)}, HasMore: true}, nil
	}
	at := func(s int64) *time.Time { t := time.Unix(s, 0); return &t }
	for query, want := range map[string]charges.Filter{
		"":                                      {Limit: 10},
		"?limit=100&status=failed":              {Limit: 100, Status: "failed"},
		"?limit=1&starting_after=ch_1":          {Limit: 1, StartingAfter: "ch_1"},
		"?ending_before=ch_1&customer=cus_1":    {Limit: 10, EndingBefore: "ch_1", Customer: "cus_1"},
		"?created[gte]=5&created[lt]=9":         {Limit: 10, CreatedFrom: at(5), CreatedBefore: at(9)},
		"?created%5Bgt%5D=5&created%5Blte%5D=9": {Limit: 10, CreatedFrom: at(6), CreatedBefore: at(10)},
		"?created[gt]=5&created[gte]=7":         {Limit: 10, CreatedFrom: at(7)},
		"?created[lt]=9&created[lte]=3":         {Limit: 10, CreatedBefore: at(4)},
		"?created[gte]=-9223372036854775808":    {Limit: 10, CreatedFrom: at(0)},
		"?created[lte]=9223372036854775807":     {Limit: 10, CreatedBefore: at(253402300800)},
		"?created[gt]=-5":                       {Limit: 10, CreatedFrom: at(0)},
		"?created[lt]=-1":                       {Limit: 10, CreatedBefore: at(0)},
		"?created=5":                            {Limit: 10, CreatedFrom: at(5), CreatedBefore: at(6)},
		"?created=-5":                           {Limit: 10, CreatedFrom: at(0), CreatedBefore: at(0)},
	} {
		a := e.Get("/v1/charges" + query)
		same := func(x, y *time.Time) bool { return (x == nil) == (y == nil) && (x == nil || x.Equal(*y)) }
		if a.Code != 200 || !same(f.CreatedFrom, want.CreatedFrom) || !same(f.CreatedBefore, want.CreatedBefore) {
			t.Errorf("%s: got %d, %v to %v", query, a.Code, f.CreatedFrom, f.CreatedBefore)
		}
		f.CreatedFrom, f.CreatedBefore, want.CreatedFrom, want.CreatedBefore = nil, nil, nil, nil
		if f != want {
			t.Errorf("%s: got %+v, want %+v", query, f, want)
		}
		if body := string(a.Body); !strings.HasPrefix(body, `{"object":"list","url":"/v1/charges","has_more":true,"data":[{"id":"`+chargeID) || !strings.Contains(body, "<&>") || !strings.HasSuffix(body, "}\n") {
			t.Errorf("%s: got %s", query, body)
		}
	}
	e.list = func(charges.Filter) (charges.Page, error) { t.Error("listed"); return charges.Page{}, nil }
	for _, tc := range []struct{ query, code, param string }{
		{"limit=0", "parameter_invalid_integer", "limit"}, {"limit=101", "parameter_invalid_integer", "limit"}, {"limit=-1", "parameter_invalid_integer", "limit"},
		{"limit=1.0", "parameter_invalid_integer", "limit"}, {"limit=%00", "parameter_invalid_integer", "limit"}, {"limit=", "parameter_invalid_integer", "limit"},
		{"limit=9223372036854775807", "parameter_invalid_integer", "limit"}, {"limits=1", "parameter_unknown", "limits"}, {"Limit=1", "parameter_unknown", "Limit"},
		{"status=paid", "parameter_invalid", "status"}, {"status=", "parameter_invalid_empty", "status"}, {"starting_after=a&ending_before=b", "parameter_invalid", "ending_before"},
		{"starting_after=%00", "parameter_invalid", "starting_after"}, {"customer=%ff", "parameter_invalid", "customer"}, {"customer=" + strings.Repeat("c", 256), "parameter_invalid", "customer"},
		{"created=x", "parameter_invalid_integer", "created"}, {"created=5&created[gt]=5", "parameter_duplicate", "created"}, {"created[eq]=5", "parameter_unknown", "created[eq]"}, {"created[gt]=x", "parameter_invalid_integer", "created[gt]"},
		{"limit=1&limit=1", "parameter_duplicate", "limit"}, {"limit=1;status=failed", "query_malformed", ""}, {"limit", "query_malformed", ""},
	} {
		wants(t, e.Get("/v1/charges?"+tc.query), 400, tc.code, tc.param)
	}
	e.list = func(charges.Filter) (charges.Page, error) { return charges.Page{}, charges.ErrNotFound }
	wants(t, e.Get("/v1/charges?starting_after=ch_x"), 400, "resource_missing", "starting_after")
	wants(t, e.Get("/v1/charges?ending_before=ch_x"), 400, "resource_missing", "ending_before")
	e.list = func(charges.Filter) (charges.Page, error) { return charges.Page{}, errors.New("SQLSTATE 57P01") }
	wants(t, e.Get("/v1/charges"), 503, "unavailable", "")
	e.list = func(charges.Filter) (charges.Page, error) { return charges.Page{}, nil }
	if a := e.Get("/v1/charges"); !strings.Contains(string(a.Body), `"data":[]`) {
		t.Errorf("got %s", a.Body)
	}
}

func TestPreferredWait(t *testing.T) {
	e := newEdge(t)
	for _, tc := range []struct {
		lines []string
		wait  time.Duration
		says  string
	}{
		{nil, 0, ""},
		{[]string{"wait=10"}, 10 * time.Second, "wait=10"},
		{[]string{"WAIT = 10 "}, 10 * time.Second, "wait=10"},
		{[]string{`wait="10"`}, 10 * time.Second, "wait=10"},
		{[]string{"wait=0"}, 0, "wait=0"},
		{[]string{"wait=31"}, 30 * time.Second, "wait=30"},
		{[]string{"wait=99999999999999999999999999"}, 30 * time.Second, "wait=30"},
		{[]string{"respond-async, wait=5; x=1, wait=7"}, 5 * time.Second, "wait=5"},
		{[]string{"respond-async", "handling=lenient", "wait=5"}, 5 * time.Second, "wait=5"},
		{[]string{`note="a, wait=3; \" b", wait=4`}, 4 * time.Second, "wait=4"},
		{[]string{"wait"}, 0, ""}, {[]string{"wait="}, 0, ""}, {[]string{"wait=-1"}, 0, ""}, {[]string{"wait=1.5"}, 0, ""}, {[]string{"wait=ten"}, 0, ""},
		{[]string{"await=5"}, 0, ""}, {[]string{"\xff, wait=5"}, 5 * time.Second, "wait=5"}, {[]string{`"wait=5`}, 0, ""}, {[]string{""}, 0, ""},
	} {
		req := e.Request("POST", "/v1/charges", b0, "Idempotency-Key", "K", "Content-Type", "application/json")
		req.Header["Prefer"] = tc.lines
		a := e.Do(req)
		if got := e.created[len(e.created)-1].Wait; a.Code != 201 || got != tc.wait || a.Header.Get("Preference-Applied") != tc.says {
			t.Errorf("%q: got %d, %v, %q", tc.lines, a.Code, got, a.Header.Get("Preference-Applied"))
		}
	}
	e.answers(nil, &idemkeys.InUse{})
	if a := e.Charge("K", b0, "Prefer", "wait=1"); a.Code != 409 || a.Header.Get("Preference-Applied") != "wait=1" {
		t.Errorf("got %d %v", a.Code, a.Header)
	}
}

// Method, path, query and parameters make the request; headers do not.
func TestWhatARequestIs(t *testing.T) {
	e := newEdge(t)
	post := func(query, body string, header ...string) {
		t.Helper()
		if a := e.Do(e.Request("POST", "/v1/charges"+query, body, append(header, "Idempotency-Key", "K", "Content-Type", "application/json")...)); a.Code != 201 {
			t.Fatalf("got %d %s", a.Code, a.Body)
		}
	}
	post("", b0)
	post("?", b0, "User-Agent", "x", "Date", "y", "Traceparent", "z", "Accept", "text/html")
	post("?a=1&b=2", b0)
	post("?b=2&a=1", `{"source":"tok_visa", "amount":2000,"currency":"usd"}`)
	post("?a=1", b0)
	post("", `{"amount":2001,"currency":"usd","source":"tok_visa"}`)
	post("?%zz=;%ff", b0) // not read, so not an error
	for i, want := range []int{0, 0, 2, 2, 4, 5, 6} {
		version, hash := e.created[i].Fingerprint.Current()
		for j := range e.created {
			same, _ := e.created[j].Fingerprint.Matches(version, hash)
			if same != ([]int{0, 0, 2, 2, 4, 5, 6}[j] == want) {
				t.Errorf("requests %d and %d: same is %t", i, j, same)
			}
		}
	}
}

func TestDrainingAndReadiness(t *testing.T) {
	e := newEdge(t)
	for _, path := range []string{"/healthz", "/readyz"} {
		if a := e.Get(path, "Authorization", ""); a.Code != 200 || string(a.Body) != "{\"status\":\"ok\"}\n" {
			t.Errorf("%s: got %d %s, want 200", path, a.Code, a.Body)
		}
	}
	e.ready = errors.New("dial tcp 10.0.0.1:5432: refused")
	a := e.Get("/readyz")
	wants(t, a, 503, "unavailable", "")
	if strings.Contains(string(a.Body), "10.0.0.1") || a.Header.Get("Retry-After") == "" {
		t.Errorf("got %s", a.Body)
	}
	e.ready = nil
	e.server.Drain()
	wants(t, e.Get("/readyz"), 503, "shutting_down", "")
	if a := e.Get("/healthz"); a.Code != 200 {
		t.Errorf("got %d", a.Code)
	}
	req := e.Request("POST", "/v1/charges", b0, "Idempotency-Key", "K", "Content-Type", "application/json", "Authorization", "Bearer "+secret)
	res, err := e.HTTP.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != 503 || !res.Close || res.Header.Get("Retry-After") == "" || res.Header.Get("Stripe-Should-Retry") != "true" || e.creations() != 0 {
		t.Errorf("got %d, close %t, %v", res.StatusCode, res.Close, res.Header)
	}
	wants(t, e.Get("/v1/charges"), 503, "shutting_down", "")
	wants(t, e.Get("/nowhere"), 503, "shutting_down", "")
}

func TestAPanicIsAnAnswerAndNotTheEnd(t *testing.T) {
	e := newEdge(t)
	e.create = func(context.Context, idemkeys.Request, charges.Params) (idemkeys.Result, error) {
		panic("the secret of the inside")
	}
	a := e.Charge("K", b0)
	wants(t, a, 500, "internal_error", "")
	if strings.Contains(string(a.Body), "secret") || a.Header.Get("Stripe-Should-Retry") != "true" {
		t.Errorf("got %s", a.Body)
	}
	if !strings.Contains(e.log.String(), "the secret of the inside") || !strings.Contains(e.log.String(), "goroutine") {
		t.Error("the log does not say why")
	}
	if a := e.Get("/healthz"); a.Code != 200 {
		t.Errorf("got %d", a.Code)
	}
	e.create = func(context.Context, idemkeys.Request, charges.Params) (idemkeys.Result, error) {
		panic(http.ErrAbortHandler)
	}
	req := e.Request("POST", "/v1/charges", b0, "Idempotency-Key", "K", "Content-Type", "application/json", "Authorization", "Bearer "+secret)
	req.GetBody = nil // or net/http sends it again by itself
	if res, err := e.HTTP.Do(req); err == nil {
		_ = res.Body.Close()
		t.Errorf("got %d", res.StatusCode)
	}
}

// Headers of a read change nothing. The log has what is needed to find a request, and nothing that
// helps anybody else.
func TestTheLogHasNoSecrets(t *testing.T) {
	e := newEdge(t)
	key := "secret-order-6735-of-jenny"
	e.Charge(key, `{"amount":2000,"currency":"usd","source":"tok_visa","description":"for jenny"}`)
	e.Charge("short", b0)
	e.Charge(key, `{"amount":"jenny"}`)
	e.As("sk_wrong").Charge(key, b0)
	e.Get("/v1/charges/jenny?who=jenny")
	e.Get("/jenny")
	e.Get("/v1/idempotency_keys/" + key)
	log := e.log.String()
	for _, not := range []string{key, "jenny", secret, "sk_wrong", "tok_visa", `"short`, "secret-order"} {
		if strings.Contains(log, not) {
			t.Errorf("the log contains %q:\n%s", not, log)
		}
	}
	for _, want := range []string{
		`"request_id":"req_`, `"method":"POST"`, `"route":"/v1/charges"`, `"status":201`, `"duration_ms":`, `"account_id":"acct_A"`, `"key_hint":"secr…`,
		`"operation_id":"` + operation, `"status":401`, `"route":"/v1/charges/:id"`,
	} {
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %s:\n%s", want, log)
		}
	}
	if n := strings.Count(log, "\n"); n != 7 {
		t.Errorf("7 requests made %d lines", n)
	}
}
