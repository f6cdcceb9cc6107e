package api_test

import (
	"context"
	"errors"
	"testing"

	"paidonce/api"
	"paidonce/idemkeys"
	"paidonce/outbox"
)

// noEvents is an account with no events, where any endpoint can be registered and none is there.
type noEvents struct{ err error }

func (n noEvents) fault() error {
	if n.err != nil {
		return n.err
	}
	return outbox.ErrNotFound
}

func (n noEvents) List(_ context.Context, _ string, f outbox.Filter) (outbox.Page, error) {
	if f.StartingAfter != "" {
		return outbox.Page{}, n.fault()
	}
	return outbox.Page{}, n.err
}

func (n noEvents) Get(context.Context, string, string) (outbox.Event, error) {
	return outbox.Event{}, n.fault()
}

func (n noEvents) NumberAll(context.Context) error { return n.err }

func (n noEvents) Resend(context.Context, idemkeys.Tx, string, string, string) (int, error) {
	return 0, n.fault()
}

func (n noEvents) PutEndpoint(_ context.Context, _, id string, p outbox.EndpointParams) (outbox.Endpoint, bool, error) {
	return outbox.Endpoint{ID: id, URL: p.URL, EnabledEvents: p.EnabledEvents, Description: p.Description, Secret: "whsec_AAAA"}, true, n.err
}

func (n noEvents) GetEndpoint(context.Context, string, string) (outbox.Endpoint, error) {
	return outbox.Endpoint{}, n.fault()
}

func (n noEvents) ListEndpoints(context.Context, string) ([]outbox.Endpoint, error) {
	return nil, n.err
}

func (n noEvents) DeleteEndpoint(context.Context, string, string) error { return n.fault() }

func (n noEvents) RotateSecret(context.Context, idemkeys.Tx, string, string) (outbox.Endpoint, error) {
	return outbox.Endpoint{}, n.fault()
}

// What the database does is told as what passes by itself, and not in its words.
func TestEventsWithoutADatabase(t *testing.T) {
	e := newEdge(t, func(c *api.Config) { c.Events = noEvents{errors.New("SQLSTATE 57P01")} })
	for _, r := range []struct{ method, path, body string }{
		{"GET", "/v1/events", ""},
		{"GET", "/v1/events/evt_1", ""},
		{"POST", "/v1/events/evt_1/resend", ""},
		{"GET", "/v1/webhook_endpoints", ""},
		{"GET", "/v1/webhook_endpoints/hook", ""},
		{"PUT", "/v1/webhook_endpoints/hook", `{"url":"https://example.com/"}`},
		{"DELETE", "/v1/webhook_endpoints/hook", ""},
		{"POST", "/v1/webhook_endpoints/hook/rotate_secret", ""},
	} {
		var header []string
		if r.body != "" {
			header = []string{"Content-Type", "application/json"}
		}
		wants(t, e.Do(e.Request(r.method, r.path, r.body, header...)), 503, "unavailable", "")
		if e.asked == 0 {
			t.Errorf("%s %s: the API key was taken from the cache", r.method, r.path)
		}
		e.asked = 0
		e.accountErr = errors.New("SQLSTATE 57P01")
		wants(t, e.As("sk_revoked").Do(e.Request(r.method, r.path, r.body, header...)), 503, "unavailable", "")
		e.accountErr = nil
		wants(t, e.As("sk_revoked").Do(e.Request(r.method, r.path, r.body, header...)), 401, "api_key_invalid", "")
	}
}

// Lists of texts are written in one way, in JSON and in forms alike.
func TestEnabledEventsAreReadStrictly(t *testing.T) {
	e := newEdge(t)
	put := func(mediaType, body string) (code int, problem, param, types string) {
		a := e.Do(e.Request("PUT", "/v1/webhook_endpoints/hook", body, "Content-Type", mediaType))
		if a.Code != 201 {
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
		{asJSON, `{"url":"u","enabled_events":["a","b"]}`, "", "", "a b "},
		{asForm, `url=u`, "", "", "* "},
		{asForm, `url=u&enabled_events[]=a&enabled_events[]=b`, "", "", "a b "},
		{asForm, `url=u&enabled_events%5B0%5D=a&enabled_events[1]=b`, "", "", "a b "},
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
		if code != tc.code || param != tc.param || types != tc.types || (status == 201) != (tc.code == "") {
			t.Errorf("%s: got %d %s %q %q, want %s %q %q", tc.body, status, code, param, types, tc.code, tc.param, tc.types)
		}
	}
}
