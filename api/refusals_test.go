package api_test

import (
	"bufio"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"paidonce/api"
)

// asked is a request that is refused, and how.
type asked struct {
	name    string
	header  []string
	body    string
	status  int
	code    string
	param   string
	without string // a header to leave out
}

// Whatever is refused here has not spent its key: the domain never hears of it.
func TestRefusalsNeverReachTheDomain(t *testing.T) {
	key, jsonType := "Idempotency-Key", "Content-Type"
	e := newEdge(t)
	for _, tc := range []asked{
		{name: "no key", without: key, status: 400, code: "idempotency_key_missing"},
		{name: "empty key", header: []string{key, ""}, status: 400, code: "idempotency_key_invalid"},
		{name: "blank key", header: []string{key, "  "}, status: 400, code: "idempotency_key_invalid"},
		{name: "empty quoted key", header: []string{key, `""`}, status: 400, code: "idempotency_key_invalid"},
		{name: "half-quoted key", header: []string{key, `"abc`}, status: 400, code: "idempotency_key_invalid"},
		{name: "256 characters", header: []string{key, strings.Repeat("k", 256)}, status: 400, code: "idempotency_key_invalid"},
		{name: "255 astral characters", header: []string{key, strings.Repeat("\U0001F600", 255)}, status: 400, code: "idempotency_key_invalid"},
		{name: "bytes outside ASCII", header: []string{key, "a\xffb"}, status: 400, code: "idempotency_key_invalid"},
		{name: "two key lines", header: []string{key, "a", key, "b"}, status: 400, code: "idempotency_key_invalid"},
		{name: "two equal key lines", header: []string{key, "a", key, "a"}, status: 400, code: "idempotency_key_invalid"},
		{name: "no media type", without: jsonType, status: 415, code: "media_type_unsupported"},
		{name: "two media types", header: []string{jsonType, "application/json", jsonType, "application/json"}, status: 415, code: "media_type_unsupported"},
		{name: "vendor JSON", header: []string{jsonType, "application/vnd.x+json"}, status: 415, code: "media_type_unsupported"},
		{name: "prefix of JSON", header: []string{jsonType, "application/jsonfoo"}, status: 415, code: "media_type_unsupported"},
		{name: "text JSON", header: []string{jsonType, "text/json"}, status: 415, code: "media_type_unsupported"},
		{name: "XML", header: []string{jsonType, "application/xml"}, status: 415, code: "media_type_unsupported"},
		{name: "multipart", header: []string{jsonType, "multipart/form-data; boundary=x"}, status: 415, code: "media_type_unsupported"},
		{name: "Latin-1", header: []string{jsonType, "application/json; charset=iso-8859-1"}, status: 415, code: "media_type_unsupported"},
		{name: "UTF-16", header: []string{jsonType, "application/json; charset=utf-16"}, status: 415, code: "media_type_unsupported"},
		{name: "Latin-1 form", header: []string{jsonType, "application/x-www-form-urlencoded; charset=iso-8859-1"}, status: 415, code: "media_type_unsupported"},
		{name: "broken media type", header: []string{jsonType, "application/json; charset"}, status: 415, code: "media_type_unsupported"},
		{name: "gzip", header: []string{"Content-Encoding", "gzip"}, status: 415, code: "content_encoding_unsupported"},
		{name: "identity, gzip", header: []string{"Content-Encoding", "identity, GZIP"}, status: 415, code: "content_encoding_unsupported"},
		{name: "gzip in a second line", header: []string{"Content-Encoding", "identity", "Content-Encoding", "br"}, status: 415, code: "content_encoding_unsupported"},
		{name: "empty body", body: " ", status: 400, code: "body_malformed"},
		{name: "array", body: "[]", status: 400, code: "body_malformed"},
		{name: "null amount", body: `{"amount":null}`, status: 400, code: "parameter_invalid", param: "amount"},
		{name: "amount missing", body: `{}`, status: 400, code: "parameter_missing", param: "amount"},
		{name: "negative amount", body: `{"amount":-100,"currency":"usd","source":"tok_visa"}`, status: 400, code: "parameter_invalid_integer", param: "amount"},
		{name: "currency that is none", body: `{"amount":1,"currency":"zzz","source":"tok_visa"}`, status: 400, code: "invalid_currency", param: "currency"},
		{name: "card number", body: `{"amount":1,"currency":"usd","source":"4242424242424242"}`, status: 400, code: "parameter_invalid", param: "source"},
		{name: "NUL in source", body: `{"amount":1,"currency":"usd","source":"tok\u0000"}`, status: 400, code: "parameter_invalid", param: "source"},
		{name: "NUL in currency", body: `{"amount":1,"currency":"us\u0000","source":"tok_visa"}`, status: 400, code: "parameter_invalid", param: "currency"},
		{name: "no API key", header: []string{"Authorization", ""}, status: 401, code: "api_key_missing"},
		{name: "unknown API key", header: []string{"Authorization", "Bearer sk_x"}, status: 401, code: "api_key_invalid"},
		{name: "unknown API key, broken request", header: []string{"Authorization", "Bearer sk_x", jsonType, "x"}, body: "{", without: key, status: 401, code: "api_key_invalid"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			body := tc.body
			if body == "" {
				body = b0
			}
			req := e.Request("POST", "/v1/charges", body, tc.header...)
			for name, val := range map[string]string{key: "K", jsonType: "application/json"} {
				if tc.without != name && req.Header[name] == nil {
					req.Header.Set(name, val)
				}
			}
			if tc.without == jsonType {
				req.Header[jsonType] = nil
			}
			a := e.Do(req)
			wants(t, a, tc.status, tc.code, tc.param)
			if a.Header.Get("Stripe-Should-Retry") != "false" {
				t.Error("Stripe's libraries would try again")
			}
		})
	}
	if n := e.creations(); n != 0 {
		t.Errorf("the domain was asked %d times", n)
	}
}

// A body of nothing says nothing about any parameter.
func TestEmptyBodies(t *testing.T) {
	e := newEdge(t)
	for _, mediaType := range []string{"", "application/json", "application/x-www-form-urlencoded"} {
		for _, chunked := range []bool{false, true} {
			req := e.Request("POST", "/v1/charges", "", "Idempotency-Key", "K")
			if mediaType != "" {
				req.Header.Set("Content-Type", mediaType)
			}
			if chunked {
				req.Body, req.ContentLength = io.NopCloser(strings.NewReader("")), -1
			}
			wants(t, e.Do(req), 400, "parameter_missing", "amount")
		}
	}
	if e.creations() != 0 {
		t.Error("the domain was asked")
	}
}

// Letter case and the ways to say UTF-8 make no difference.
func TestMediaTypesThatAreTaken(t *testing.T) {
	e := newEdge(t)
	for _, mediaType := range []string{
		"application/json", "APPLICATION/JSON", "application/json; charset=utf-8", "application/json;charset=UTF-8", `application/json; charset="utf-8"`,
		"application/json; charset=utf8", "Application/Json ; Charset=Utf-8",
	} {
		if a := e.Charge("K", b0, "Content-Type", mediaType); a.Code != 201 {
			t.Errorf("%s: got %d, want 201", mediaType, a.Code)
		}
	}
	for _, mediaType := range []string{"application/x-www-form-urlencoded", "application/x-www-form-urlencoded; charset=utf-8", "APPLICATION/X-WWW-FORM-URLENCODED"} {
		if a := e.ChargeForm("K", "amount=2000&currency=usd&source=tok_visa", "Content-Type", mediaType); a.Code != 201 {
			t.Errorf("%s: got %d, want 201", mediaType, a.Code)
		}
	}
	if a := e.Charge("K", b0, "Content-Encoding", "Identity"); a.Code != 201 {
		t.Errorf("identity: %d", a.Code)
	}
	first, _ := e.created[0].Fingerprint.Current()
	_, want := e.created[0].Fingerprint.Current()
	for _, r := range e.created {
		if same, known := r.Fingerprint.Matches(first, want); !same || !known {
			t.Error("the media type changed what the request is")
		}
	}
}

// Too large is 413 before anything is parsed, chunked or not.
func TestBodyLimit(t *testing.T) {
	const limit = 300
	e := newEdge(t, func(c *api.Config) { c.MaxBody = limit })
	fits := b0 + strings.Repeat(" ", limit-len(b0))
	for _, tc := range []struct {
		body   string
		status int
	}{{fits, 201}, {fits + " ", 413}, {fits + strings.Repeat("x", 100_000), 413}} {
		for _, chunked := range []bool{false, true} {
			req := e.Request("POST", "/v1/charges", tc.body, "Idempotency-Key", "K", "Content-Type", "application/json")
			if chunked {
				req.Body, req.ContentLength = io.NopCloser(strings.NewReader(tc.body)), -1
			}
			if a := e.Do(req); a.Code != tc.status {
				t.Errorf("%d bytes, chunked %t: got %d, want %d", len(tc.body), chunked, a.Code, tc.status)
			}
		}
	}
	if e.creations() != 2 {
		t.Errorf("the domain was asked %d times", e.creations())
	}
}

// raw sends bytes as they are, closes its side of the connection, and reads the answer.
func raw(t *testing.T, e *edge, request string) (*http.Response, error) {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(e.BaseURL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	_ = c.(*net.TCPConn).CloseWrite()
	return http.ReadResponse(bufio.NewReader(c), nil)
}

func TestABodyThatEndsEarlyIsNotARequest(t *testing.T) {
	e := newEdge(t)
	head := "POST /v1/charges HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + secret + "\r\nIdempotency-Key: K\r\nContent-Type: application/json\r\n"
	for _, tail := range []string{
		fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(b0)+1, b0),
		fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", len(b0), b0),
		"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
	} {
		if res, err := raw(t, e, head+tail); err == nil && res.StatusCode != 400 {
			t.Errorf("got %d", res.StatusCode)
		}
	}
	if e.creations() != 0 {
		t.Error("the domain was asked")
	}
	// What will be refused anyway is not waited for.
	res, err := raw(t, e, strings.Replace(head, "application/json", "text/xml", 1)+"Content-Length: 100\r\n\r\n")
	if err != nil || res.StatusCode != 415 {
		t.Errorf("got %v, %v", res, err)
	}
	// What is announced is not believed: neither waited for nor made room for.
	res, err = raw(t, e, head+"Content-Length: 1099511627776\r\n\r\n"+b0)
	if err != nil || res.StatusCode != 413 || !res.Close {
		t.Errorf("got %v, %v", res, err)
	}
	// The same in whole, byte by byte, with a trailer.
	var chunks strings.Builder
	for i := range len(b0) {
		fmt.Fprintf(&chunks, "1\r\n%s\r\n", b0[i:i+1])
	}
	res, err = raw(t, e, head+"Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n"+chunks.String()+"0\r\nX-Sum: 1\r\n\r\n")
	if err != nil || res.StatusCode != 201 || res.ContentLength <= 0 {
		t.Errorf("got %v, %v", res, err)
	}
}

func TestABodyThatComesTooSlowlyIsNotWaitedFor(t *testing.T) {
	e := newEdge(t)
	limits := e.server.HTTP()
	if limits.ReadHeaderTimeout == 0 || limits.ReadTimeout == 0 || limits.WriteTimeout == 0 || limits.IdleTimeout == 0 || limits.MaxHeaderBytes == 0 {
		t.Errorf("something is unlimited: %+v", limits)
	}
	limits.ReadTimeout = 100 * time.Millisecond
	s := httptest.NewUnstartedServer(nil)
	s.Config = limits
	s.Start()
	defer s.Close()
	body, hold := io.Pipe()
	defer func() { _ = hold.Close() }()
	req := e.Request("POST", "/v1/charges", "", "Idempotency-Key", "K", "Content-Type", "application/json")
	req.URL.Host, req.Body, req.ContentLength = strings.TrimPrefix(s.URL, "http://"), body, 100
	a := e.Do(req)
	wants(t, a, 408, "request_timeout", "")
	if a.Error().Advice != "retry_same_key" || e.creations() != 0 {
		t.Errorf("got %+v", a.Error())
	}
}

func TestAuthenticationSchemes(t *testing.T) {
	e := newEdge(t)
	basic := func(s string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(s)) }
	for _, tc := range []struct {
		lines []string
		code  string
	}{
		{[]string{"Bearer " + secret}, ""},
		{[]string{"bearer " + secret}, ""},
		{[]string{basic(secret + ":")}, ""},
		{[]string{basic(secret)}, ""},
		{[]string{""}, "api_key_missing"},
		{[]string{"Bearer "}, "api_key_missing"},
		{[]string{basic(":")}, "api_key_missing"},
		{[]string{basic(":" + secret)}, "api_key_missing"},
		{[]string{"Bearer " + secret + "x"}, "api_key_invalid"},
		{[]string{"Bearer SK_A"}, "api_key_invalid"},
		{[]string{"Bearer " + secret + " x"}, "api_key_invalid"},
		{[]string{secret}, "api_key_invalid"},
		{[]string{"Token " + secret}, "api_key_invalid"},
		{[]string{"Basic !!"}, "api_key_invalid"},
		{[]string{basic(secret + "\x00:")}, "api_key_invalid"},
		{[]string{"Bearer " + strings.Repeat("x", 5000)}, "api_key_invalid"},
		{[]string{"Bearer \xff"}, "api_key_invalid"},
		{[]string{"Bearer " + secret, "Bearer " + secret}, "api_key_invalid"},
		{[]string{"Bearer " + secret, "Bearer sk_B"}, "api_key_invalid"},
	} {
		req := e.Request("GET", "/v1/charges/"+chargeID, "")
		req.Header["Authorization"] = tc.lines
		a := e.Do(req)
		if tc.code == "" {
			if a.Code != 200 {
				t.Errorf("%.40q: got %d", tc.lines, a.Code)
			}
			continue
		}
		wants(t, a, 401, tc.code, "")
		if a.Header.Get("Www-Authenticate") == "" {
			t.Errorf("%.40q: no WWW-Authenticate", tc.lines)
		}
	}
	e.accountErr = errors.New("the database is away")
	wants(t, e.Get("/v1/charges"), 503, "unavailable", "")
	wants(t, e.As("sk_new").Charge("K", b0), 503, "unavailable", "")
}

func TestRateLimitOfAnAccount(t *testing.T) {
	e := newEdge(t, func(c *api.Config) { c.RateLimit = 0.5 })
	if a := e.Charge("K1", b0); a.Code != 201 {
		t.Errorf("got %d", a.Code)
	}
	a := e.Charge("K2", b0)
	wants(t, a, 429, "rate_limited", "")
	if p := a.Error(); p.Type != "rate_limit_error" || p.Advice != "retry_same_key" || a.Header.Get("Retry-After") != "2" || a.Header.Get("Stripe-Should-Retry") != "true" {
		t.Errorf("got %+v %v", p, a.Header)
	}
	if a := e.As("sk_B").Charge("K1", b0); a.Code != 201 {
		t.Errorf("another account: got %d", a.Code)
	}
	wants(t, e.As("sk_x").Charge("K", b0), 401, "api_key_invalid", "")
	if e.creations() != 2 {
		t.Errorf("the domain was asked %d times", e.creations())
	}
}
