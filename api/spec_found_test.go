package api_test

import (
	"io"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"paidonce/internal/world"
)

// What TestSpecFuzz found is kept here.

// Limits of openapi.yaml are in characters, not in bytes: a text as long as it may be is looked
// for, and not found, or taken.
func TestLimitsAreInCharacters(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	longest := strings.Repeat("é", 255)
	wants(t, s.Post("/v1/refunds", "K", `{"charge":"`+longest+`"}`), 404, "resource_missing", "charge")
	wants(t, s.Post("/v1/refunds", "K", `{"charge":"`+longest+`é"}`), 400, "parameter_invalid", "charge")
	for _, path := range []string{"/v1/charges", "/v1/refunds", "/v1/events"} {
		wants(t, s.Get(path+"?starting_after="+url.QueryEscape(longest)), 400, "resource_missing", "starting_after")
		wants(t, s.Get(path+"?starting_after="+url.QueryEscape(longest+"é")), 400, "parameter_invalid", "starting_after")
	}
	for i, code := range []string{"resource_missing", "parameter_invalid"} {
		a := s.Post("/v1/events/evt_1/resend", "", `{"webhook_endpoint":"`+longest+strings.Repeat("é", i)+`"}`)
		if a.Error().Code != code {
			t.Errorf("got %d %s", a.Code, a.Body)
		}
	}
	if a := s.Get("/v1/charges?customer=" + url.QueryEscape(longest)); a.Code != 200 {
		t.Errorf("got %d %s", a.Code, a.Body)
	}
	for i := range 2 { // what is signed is stored, also what is longer
		body := string(world.Event("evt_long", strings.Repeat("é", 255+i), "o"))
		if a := s.Send(body, world.Signed([]byte(body), whsec, time.Now())); a.Code != 200 {
			t.Errorf("a type of %d characters: got %d %s", 255+i, a.Code, a.Body)
		}
	}
}

// What is not HTTP never reaches us: Go's server answers it, briefly and not in JSON, and closes
// the connection. docs/errors.md says so.
func TestWhatIsNotHTTPIsAnsweredBeforeUs(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	for _, tc := range []struct{ request, status string }{
		{"nonsense\r\n\r\n", "400"},
		{"GET /healthz HTTP/1.1\r\n\r\n", "400"}, // no Host
		{"GET /healthz HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", "400"},
		{"GET /healthz HTTP/1.1\r\nHost: x\r\nA\x00: b\r\n\r\n", "400"},
		{"GET /healthz HTTP/1.1\r\nHost: x\r\nIdempotency-Key: a\x01b\r\n\r\n", "400"},
		{"GET /\x7f HTTP/1.1\r\nHost: x\r\n\r\n", "400"},
		{"GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n", "400"},
		{"POST /v1/charges HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", "400"},
		{"POST /v1/charges HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", "400"},
		{"POST /v1/charges HTTP/1.1\r\nHost: x\r\nExpect: more\r\nContent-Length: 0\r\n\r\n", "417"},
		{"GET /healthz HTTP/1.1\r\nHost: x\r\nA: " + strings.Repeat("a", 64<<10) + "\r\n\r\n", "431"},
		{"POST /v1/charges HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n", "501"},
		{"GET /healthz HTTP/3.0\r\nHost: x\r\n\r\n", "505"},
	} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(e.BaseURL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write([]byte(tc.request)); err != nil {
			t.Fatal(err)
		}
		answer := make([]byte, 12)
		if _, err := io.ReadFull(conn, answer); err != nil || string(answer) != "HTTP/1.1 "+tc.status {
			t.Errorf("%.80q: got %q, %v", tc.request, answer, err)
		}
		_ = conn.Close()
	}
	if a := e.Get("/healthz"); a.Code != 200 || e.creations() != 0 {
		t.Errorf("got %d, the domain was asked %d times", a.Code, e.creations())
	}
}
