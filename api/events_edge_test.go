package api_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"paidonce/api"
	"paidonce/db"
	"paidonce/idemkeys"
	"paidonce/internal/dbtest"
	"paidonce/outbox"
)

// Only a request whose own statements check the API key again may be up to a cache behind.
func TestOnlyWhatMovesMoneyTrustsTheCache(t *testing.T) {
	e := newEdge(t)
	for _, r := range []struct{ method, path, body string }{
		{"GET", "/v1/charges", ""},
		{"GET", "/v1/charges/ch_1", ""},
		{"GET", "/v1/refunds", ""},
		{"GET", "/v1/refunds/re_1", ""},
		{"GET", "/v1/idempotency_keys/K", ""},
		{"GET", "/v1/events", ""},
		{"GET", "/v1/events/evt_1", ""},
		{"POST", "/v1/events/evt_1/resend", ""},
		{"GET", "/v1/webhook_endpoints", ""},
		{"GET", "/v1/webhook_endpoints/hook", ""},
		{"PUT", "/v1/webhook_endpoints/hook", `{"url":"https://example.com/"}`},
		{"POST", "/v1/webhook_endpoints", `{"url":"https://example.com/"}`},
		{"POST", "/v1/webhook_endpoints/hook", `{"url":"https://example.com/"}`},
		{"DELETE", "/v1/webhook_endpoints/hook", ""},
		{"POST", "/v1/webhook_endpoints/hook/rotate_secret", ""},
	} {
		var header []string
		if r.body != "" {
			header = []string{"Content-Type", "application/json"}
		}
		e.accountErr = errors.New("SQLSTATE 57P01")
		wants(t, e.As("sk_revoked").Do(e.Request(r.method, r.path, r.body, header...)), 503, "unavailable", "")
		e.accountErr = nil
		wants(t, e.As("sk_revoked").Do(e.Request(r.method, r.path, r.body, header...)), 401, "api_key_invalid", "")
	}
	if a := e.As("sk_revoked").Charge("K", b0); a.Code != 201 {
		t.Errorf("a charge, which the domain checks: got %d", a.Code)
	}
}

// Lists of texts are written in one way, in JSON and in forms alike.
func TestEnabledEventsAreReadStrictly(t *testing.T) {
	e := newEdge(t)
	put := func(mediaType, body string) (code int, problem, param, types string) {
		a := e.Do(e.Request("PUT", "/v1/webhook_endpoints/hook", body, "Content-Type", mediaType))
		if a.Code != 200 && a.Code != 201 {
			p := a.Error()
			return a.Code, p.Code, p.Param, ""
		}
		var got struct {
			EnabledEvents []string `json:"enabled_events"`
		}
		a.JSON(&got)
		for _, typ := range got.EnabledEvents {
			types += typ + " "
		}
		return a.Code, "", "", types
	}
	const asJSON, asForm = "application/json", "application/x-www-form-urlencoded"
	for _, tc := range []struct{ mediaType, body, code, param, types string }{
		{asJSON, `{"url":"u"}`, "", "", "* "},
		{asJSON, `{"url":"u","enabled_events":["charge.failed","refund.created"]}`, "", "", "charge.failed refund.created "},
		{asForm, `url=u`, "", "", "* "},
		{asForm, `url=u&enabled_events[]=charge.failed&enabled_events[]=refund.created`, "", "", "charge.failed refund.created "},
		{asForm, `url=u&enabled_events%5B0%5D=charge.failed&enabled_events[1]=refund.created`, "", "", "charge.failed refund.created "},
		{asJSON, `{"url":"u","enabled_events":[]}`, "parameter_invalid_empty", "enabled_events", ""},
		{asJSON, `{"url":"u","enabled_events":null}`, "parameter_invalid", "enabled_events", ""},
		{asJSON, `{"url":"u","enabled_events":"a"}`, "parameter_invalid", "enabled_events", ""},
		{asJSON, `{"url":"u","enabled_events":{"0":"a"}}`, "parameter_invalid", "enabled_events", ""},
		{asJSON, `{"url":"u","enabled_events":["a",1]}`, "parameter_invalid", "enabled_events[1]", ""},
		{asJSON, `{"url":"u","enabled_events":[["a"]]}`, "parameter_invalid", "enabled_events[0]", ""},
		{asJSON, `{"url":"u","enabled_events":[null]}`, "parameter_invalid", "enabled_events[0]", ""},
		{asJSON, `{"url":"u","enabled_events":[""]}`, "parameter_invalid_empty", "enabled_events[0]", ""},
		{asJSON, `{"url":"u","enabled_events":["a\u0000"]}`, "parameter_invalid", "enabled_events[0]", ""},
		{asJSON, `{"url":"u","enabled_events":["a"`, "body_malformed", "", ""},
		{asJSON, `{"url":"u","enabled_events":["a"],"enabled_events":["b"]}`, "parameter_duplicate", "enabled_events", ""},
		{asForm, `url=u&enabled_events=a`, "parameter_invalid", "enabled_events", ""},
		{asForm, `url=u&enabled_events[]=`, "parameter_invalid_empty", "enabled_events[0]", ""},
		{asForm, `url=u&enabled_events[1]=a`, "parameter_invalid", "enabled_events[1]", ""},
		{asForm, `url=u&enabled_events[0]=a&enabled_events[0]=b`, "parameter_invalid", "enabled_events[0]", ""},
		{asForm, `url=u&enabled_events[00]=a`, "parameter_invalid", "enabled_events[00]", ""},
		{asForm, `url=u&enabled_events[0=a`, "parameter_invalid", "enabled_events[0", ""},
		{asForm, `url=u&enabled_events[0][1]=a`, "parameter_invalid", "enabled_events[0][1]", ""},
		{asForm, `url=u&enabled_events[]=a%00`, "parameter_invalid", "enabled_events[0]", ""},
	} {
		status, code, param, types := put(tc.mediaType, tc.body)
		if code != tc.code || param != tc.param || types != tc.types || (status < 300) != (tc.code == "") {
			t.Errorf("%s: got %d %s %q %q, want %s %q %q", tc.body, status, code, param, types, tc.code, tc.param, tc.types)
		}
	}
}

// What the database does is told as what passes by itself, and not in its words. The API key is
// known all the same: the database went away after it was asked.
func TestEventsWithoutADatabase(t *testing.T) {
	t.Parallel()
	e := newEdge(t, func(c *api.Config) {
		gone, err := db.Open(dbtest.New(t), 1)
		if err != nil {
			t.Fatal(err)
		}
		gone.Close()
		c.Events = outbox.New(outbox.Config{Pool: gone, Runner: idemkeys.NewEngine(gone, idemkeys.Config{}, c.Log, nil).Runner})
	})
	var wg sync.WaitGroup // each is tried again for a while, in case the database comes back
	for _, r := range []struct{ method, path, body string }{
		{"GET", "/v1/events", ""},
		{"GET", "/v1/events/evt_1", ""},
		{"POST", "/v1/events/evt_1/resend", ""},
		{"GET", "/v1/webhook_endpoints", ""},
		{"GET", "/v1/webhook_endpoints/hook", ""},
		{"PUT", "/v1/webhook_endpoints/hook", `{"url":"https://example.com/"}`},
		{"POST", "/v1/webhook_endpoints", `{"url":"https://example.com/"}`},
		{"POST", "/v1/webhook_endpoints/hook", `{"url":"https://example.com/"}`},
		{"DELETE", "/v1/webhook_endpoints/hook", ""},
		{"POST", "/v1/webhook_endpoints/hook/rotate_secret", ""},
	} {
		wg.Go(func() {
			var header []string
			if r.body != "" {
				header = []string{"Content-Type", "application/json"}
			}
			a := e.Do(e.Request(r.method, r.path, r.body, header...))
			if p := a.Error(); a.Code != 503 || p.Code != "unavailable" || strings.Contains(string(a.Body), "pool") {
				t.Errorf("%s %s: got %d %s", r.method, r.path, a.Code, a.Body)
			}
		})
	}
	wg.Wait()
}
