package api_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"paidonce/api"
	"paidonce/api/apitest"
)

// safelisted are the response headers that scripts may always read.
var safelisted = []string{"Cache-Control", "Content-Language", "Content-Length", "Content-Type", "Expires", "Last-Modified", "Pragma"}

func list(header string) (names []string) {
	for name := range strings.SplitSeq(header, ",") {
		names = append(names, strings.TrimSpace(name))
	}
	return names
}

// Off unless asked for: an answer says nothing to scripts of other origins.
func TestWithoutOriginsThereIsNoCORS(t *testing.T) {
	e := newEdge(t)
	for _, method := range []string{"GET", "OPTIONS"} {
		a := e.Do(e.Request(method, "/v1/charges", "", "Origin", "https://shop.example", "Access-Control-Request-Method", "POST"))
		for name := range a.Header {
			if strings.HasPrefix(name, "Access-Control-") || name == "Vary" {
				t.Errorf("%s: %s", method, name)
			}
		}
	}
}

func TestCORSOfNamedOrigins(t *testing.T) {
	e := newEdge(t, func(c *api.Config) { c.CORSOrigins = []string{"https://shop.example", "http://localhost:3000"} })
	for origin, allowed := range map[string]bool{
		"https://shop.example": true, "http://localhost:3000": true, "": false, "null": false, "http://shop.example": false, "https://shop.example.evil.com": false,
		"https://evilshop.example": false, "https://a.shop.example": false, "https://SHOP.example": false, "https://shop.example:8443": false, "http://localhost:3001": false,
		"https://shopXexample": false,
	} {
		header := []string{"Origin", origin}
		if origin == "" {
			header = nil
		}
		want := ""
		if allowed {
			want = origin
		}
		// Errors as well: a script wants to read those most of all.
		for _, req := range []*http.Request{
			e.Request("GET", "/v1/charges", "", header...), e.Request("GET", "/v1/charges/%00", "", header...), e.Request("GET", "/nowhere", "", header...),
			e.Request("PUT", "/v1/charges", "", header...), e.Request("POST", "/v1/charges", b0, header...),
		} {
			a := e.Do(req)
			if got := a.Header.Get("Access-Control-Allow-Origin"); got != want || a.Header.Get("Vary") != "Origin" || a.Header.Get("Access-Control-Allow-Credentials") != "" {
				t.Errorf("%q, %s %s: %d, allowed %q, Vary %q", origin, req.Method, req.URL.Path, a.Code, got, a.Header.Get("Vary"))
			}
		}
		preflight := e.Do(e.Request("OPTIONS", "/v1/refunds", "", append(header, "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization,idempotency-key")...))
		h := preflight.Header
		if preflight.Code != 204 || h.Get("Access-Control-Allow-Origin") != want || h.Get("Request-Id") == "" {
			t.Errorf("%q: got %d %v", origin, preflight.Code, h)
		}
		if !allowed {
			continue
		}
		for _, name := range []string{"Authorization", "Content-Type", "Idempotency-Key", "Prefer"} {
			if !slices.Contains(list(h.Get("Access-Control-Allow-Headers")), name) {
				t.Errorf("%s may not be sent: %v", name, h)
			}
		}
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "DELETE"} {
			if !slices.Contains(list(h.Get("Access-Control-Allow-Methods")), method) {
				t.Errorf("%s may not be used: %v", method, h)
			}
		}
	}
	if e.creations() != 0 {
		t.Error("something was done without a key")
	}
	e.server.Drain()
	if a := e.Get("/v1/charges", "Origin", "https://shop.example"); a.Code != 503 || a.Header.Get("Access-Control-Allow-Origin") == "" {
		t.Errorf("while shutting down: got %d %v", a.Code, a.Header)
	}
}

func TestCORSOfAllOrigins(t *testing.T) {
	e := newEdge(t, func(c *api.Config) { c.CORSOrigins = []string{"*"} })
	if a := e.Get("/v1/charges", "Origin", "https://anybody.example"); a.Header.Get("Access-Control-Allow-Origin") != "*" || a.Header.Get("Access-Control-Allow-Credentials") != "" {
		t.Errorf("got %v", a.Header)
	}
}

// Every header of openapi.yaml can be read by a script, and no other is spoken of.
func TestCORSShowsWhatIsDescribed(t *testing.T) {
	e := newEdge(t, func(c *api.Config) { c.CORSOrigins = []string{"*"} })
	shown := list(e.Get("/v1/charges", "Origin", "https://shop.example").Header.Get("Access-Control-Expose-Headers"))
	spec, err := apitest.Spec()
	if err != nil {
		t.Fatal(err)
	}
	described := map[string]bool{}
	for _, item := range spec.Paths.Map() {
		for _, o := range item.Operations() {
			for _, r := range o.Responses.Map() {
				for name := range r.Value.Headers {
					described[name] = true
				}
			}
		}
	}
	for name := range described {
		if !slices.Contains(shown, name) && !slices.Contains(safelisted, name) {
			t.Errorf("%s cannot be read by a script", name)
		}
	}
	for _, name := range shown {
		if !described[name] {
			t.Errorf("%s is not described", name)
		}
	}
}

func TestOriginsThatNoBrowserSends(t *testing.T) {
	good := []string{"*", "https://shop.example", "http://localhost:3000", "http://127.0.0.1:8080", "http://[::1]:3000", "https://xn--bcher-kva.example"}
	if problems := api.CheckOrigins(good); len(problems) != 0 {
		t.Error(problems)
	}
	bad := []string{
		"", "shop.example", "https://", "https://shop.example/", "https://shop.example/x", "https://Shop.example", "HTTPS://shop.example", "https://*.shop.example", "https://shop.example:443",
		"http://shop.example:80", "https://user@shop.example", "ftp://shop.example", "null", "https://a.example https://b.example", "https://shop.example?x", "https://shop.example:", "https://b\u00fccher.example",
		"https://shop.example:99999", "https://shop.example:x",
	}
	for _, origin := range bad {
		if len(api.CheckOrigins([]string{origin})) != 1 {
			t.Errorf("%q is taken", origin)
		}
	}
	if _, err := api.New(api.Config{CORSOrigins: bad[:2]}); err == nil || !strings.Contains(err.Error(), "shop.example") {
		t.Errorf("got %v", err)
	}
}
