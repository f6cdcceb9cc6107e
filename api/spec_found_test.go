package api_test

import (
	"net/url"
	"strings"
	"testing"
	"time"
)

// What TestSpecFuzz found is kept here.

// Limits of openapi.yaml are in characters, not in bytes: a text as long as it may be is looked for, and not found, or taken.
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
	for i, ok := range []bool{true, false} {
		body := news("evt_long", strings.Repeat("é", 255+i), "o")
		if a := s.send(body, signature(body, whsec, time.Now())); (a.Code == 200) != ok {
			t.Errorf("a type of %d characters: got %d %s", 255+i, a.Code, a.Body)
		}
	}
}
