package api_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"paidonce/api/apitest"
	"paidonce/outbox"
)

const (
	hooks     = "/v1/webhook_endpoints"
	asForm    = "application/x-www-form-urlencoded"
	receiving = "https://203.0.114.7/in"
)

// post sends a form as Stripe's libraries do, under a key if there is one.
func post(c *apitest.Client, path, key, form string) apitest.Answer {
	req := c.Request("POST", path, form, "Content-Type", asForm)
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	return c.Do(req)
}

func endpointOf(t *testing.T, a apitest.Answer, status int) (e outbox.Endpoint) {
	t.Helper()
	if a.JSON(&e); a.Code != status {
		t.Fatalf("got %d %s, want %d", a.Code, a.Body, status)
	}
	return e
}

// Under a key an endpoint is made once and every answer has the same bytes, its secret among them;
// without one, each request makes one more.
func TestEndpointsAreCreatedOncePerKey(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	const form = "url=" + receiving + "&enabled_events[0]=charge.failed&enabled_events[1]=charge.failed&description=one&metadata[a]=1&metadata[b]=&connect=false&api_version=2023-10-16"
	var all sync.WaitGroup
	answers := make([]apitest.Answer, 10)
	for i := range answers {
		all.Go(func() { answers[i] = post(s.Client, hooks, "K", form) })
	}
	all.Wait()
	fresh := 0
	for _, a := range answers {
		if !bytes.Equal(a.Body, answers[0].Body) || a.Code != 201 || a.Header.Get("Location") != answers[0].Header.Get("Location") {
			t.Errorf("got %d %s with %v", a.Code, a.Body, a.Header)
		}
		if !a.Replayed() {
			fresh++
		}
	}
	e := endpointOf(t, answers[0], 201)
	if !strings.HasPrefix(e.ID, "we_") || e.Object != "webhook_endpoint" || e.Status != "enabled" || e.APIVersion != "2023-10-16" || e.Application != nil || e.Livemode ||
		*e.Description != "one" || fmt.Sprint(e.Metadata) != "map[a:1]" || fmt.Sprint(e.EnabledEvents) != "[charge.failed]" || !strings.HasPrefix(e.Secret, "whsec_") || e.Created == 0 {
		t.Errorf("got %s", answers[0].Body)
	}
	if got := s.Get(answers[0].Header.Get("Location")); fresh != 1 || !bytes.Equal(got.Body, answers[0].Body) {
		t.Errorf("%d answers are the first; GET shows %s", fresh, got.Body)
	}
	wants(t, post(s.Client, hooks, "K", "url="+receiving), 422, "idempotency_key_reused", "")
	wants(t, post(s.Client, hooks, "K", "url=true"), 400, "parameter_invalid", "url")
	wants(t, post(s.Client, hooks+"/"+e.ID, "K", "url=true"), 400, "parameter_invalid", "url")

	// The answer stays the same when the endpoint has changed, and when there is none any more.
	endpointOf(t, post(s.Client, hooks+"/"+e.ID, "", "description=two&disabled=true"), 200)
	if a := post(s.Client, hooks, "K", form); !a.Replayed() || !bytes.Equal(a.Body, answers[0].Body) {
		t.Errorf("got %d %s", a.Code, a.Body)
	}
	if a := s.Do(s.Request("DELETE", hooks+"/"+e.ID, "")); a.Code != 200 {
		t.Errorf("got %d %s", a.Code, a.Body)
	}
	if a := post(s.Client, hooks, "K", form); !a.Replayed() || !bytes.Equal(a.Body, answers[0].Body) {
		t.Errorf("got %d %s", a.Code, a.Body)
	}
	one, other := endpointOf(t, post(s.Client, hooks, "", form), 201), endpointOf(t, post(s.Client, hooks, "", form), 201)
	if one.ID == other.ID || one.Secret == other.Secret {
		t.Errorf("without a key: %+v and %+v", one, other)
	}
	wants(t, s.As(s.NewKey("other").Secret).Get(hooks+"/"+one.ID), 404, "resource_missing", "id")
}

// What may be left out may be unset as well.
func TestEndpointsOfUnsetParameters(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	for _, e := range []outbox.Endpoint{
		endpointOf(t, post(s.Client, hooks, "A", "url="+receiving+"&description=&metadata="), 201),
		endpointOf(t, s.Post(hooks, "B", `{"url":"`+receiving+`","description":null,"metadata":null}`), 201),
	} {
		if e.Description != nil || len(e.Metadata) != 0 || fmt.Sprint(e.EnabledEvents) != "[*]" {
			t.Errorf("got %+v", e)
		}
	}
}

func TestEndpointsThatAreNotCreatedOrUpdated(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	e := endpointOf(t, post(s.Client, hooks, "", "url="+receiving+"&metadata[a]=1"), 201)
	one := hooks + "/" + e.ID
	before := s.Get(one).Body
	many := url.Values{}
	for i := range 50 {
		many.Set(fmt.Sprintf("metadata[k%d]", i), "v")
	}
	for _, tc := range []struct{ path, form, code, param string }{
		{hooks, "", "parameter_missing", "url"},
		{hooks, "url=", "parameter_invalid_empty", "url"},
		{hooks, "url=http://127.0.0.1/", "parameter_invalid", "url"},
		{hooks, "url=" + receiving + "&enabled_events[]=invoice.paid", "parameter_invalid", "enabled_events"},
		{hooks, "url=" + receiving + "&api_version=2026-08-26", "parameter_invalid", "api_version"},
		{hooks, "url=" + receiving + "&api_version=", "parameter_invalid_empty", "api_version"},
		{hooks, "url=" + receiving + "&connect=", "parameter_invalid", "connect"},
		{hooks, "url=" + receiving + "&connect=true", "parameter_invalid", "connect"},
		{hooks, "url=" + receiving + "&disabled=true", "parameter_unknown", "disabled"},
		{hooks, "url=" + receiving + "&expand[0]=x", "parameter_unknown", "expand[0]"},
		{hooks, "url=" + receiving + "&metadata[" + strings.Repeat("é", 41) + "]=v", "parameter_invalid", "metadata"},
		{hooks, "url=" + receiving + "&metadata[a]=" + strings.Repeat("é", 501), "parameter_invalid_string_too_long", "metadata[a]"},
		{hooks, "url=" + receiving + "&metadata[more]=v&" + many.Encode(), "parameter_invalid", "metadata"},
		{hooks, "url=" + receiving + "&description=" + strings.Repeat("x", 501), "parameter_invalid_string_too_long", "description"},
		{one, "url=", "parameter_invalid_empty", "url"},
		{one, "url=http://[::1]/", "parameter_invalid", "url"},
		{one, "enabled_events[]=invoice.paid", "parameter_invalid", "enabled_events"},
		{one, "description=" + strings.Repeat("x", 501), "parameter_invalid_string_too_long", "description"},
		{one, "metadata[b]=" + strings.Repeat("x", 501), "parameter_invalid_string_too_long", "metadata[b]"},
		{one, many.Encode(), "parameter_invalid", "metadata"}, // 51 with the one that is there
		{one, "metadata=&metadata[b]=2", "parameter_duplicate", "metadata"},
		{one, "disabled=", "parameter_invalid", "disabled"},
		{one, "disabled=yes", "parameter_invalid", "disabled"},
		{one, "api_version=2023-10-16", "parameter_unknown", "api_version"},
		{one, "connect=false", "parameter_unknown", "connect"},
	} {
		// What is refused does not spend the key.
		wants(t, post(s.Client, tc.path, "K", tc.form), 400, tc.code, tc.param)
	}
	wants(t, post(s.Client, hooks+"/we_nothing", "K", "description=x"), 404, "resource_missing", "id")
	wants(t, s.As(s.NewKey("other").Secret).Do(s.Request("POST", one, "")), 404, "resource_missing", "id")
	if got := s.Get(one).Body; !bytes.Equal(got, before) || s.Get("/v1/idempotency_keys/K").Code != 404 {
		t.Errorf("refused updates made %s", got)
	}
	endpointOf(t, post(s.Client, hooks, "K", "url="+receiving+"&"+many.Encode()), 201)
}

// Many creates at once do not get past what an account can have.
func TestEndpointsAtTheirLimit(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	for i := range 49 {
		read(t, put(s.Client, fmt.Sprintf("%s/e%d", hooks, i), `{"url":"`+receiving+`"}`), 201)
	}
	var all sync.WaitGroup
	answers := make([]apitest.Answer, 8)
	for i := range answers {
		all.Go(func() { answers[i] = post(s.Client, hooks, fmt.Sprint("K", i%2*i), "url="+receiving) })
	}
	all.Wait()
	ids := map[string]bool{}
	for _, a := range answers {
		if a.Code == 201 {
			ids[endpointOf(t, a, 201).ID] = true
			continue
		}
		wants(t, a, 400, "too_many_endpoints", "")
	}
	if len(ids) != 1 {
		t.Errorf("made %v, where one had room", ids)
	}
}

// An update changes what it names: metadata pair by pair, the secret never.
func TestEndpointsAreUpdated(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	e := endpointOf(t, post(s.Client, hooks, "", "url="+receiving+"&description=one&enabled_events[]=charge.failed&metadata[a]=1&metadata[b]=2"), 201)
	one := hooks + "/" + e.ID
	for _, tc := range []struct{ form, want string }{
		{"", "one [charge.failed] map[a:1 b:2]"},
		{"metadata[a]=&metadata[c]=3", "one [charge.failed] map[b:2 c:3]"},
		{"description=&enabled_events[]=*", " [*] map[b:2 c:3]"},
		{"metadata=&description=two", "two [*] map[]"},
		{"metadata[d]=4", "two [*] map[d:4]"},
	} {
		a := post(s.Client, one, "", tc.form)
		got := endpointOf(t, a, 200)
		if text := fmt.Sprintf("%s %v %v", deref(got.Description), got.EnabledEvents, got.Metadata); text != tc.want {
			t.Errorf("%s: %q, want %q", tc.form, text, tc.want)
		}
		if bytes.Contains(a.Body, []byte("secret")) || a.Replayed() {
			t.Errorf("%s: got %s", tc.form, a.Body)
		}
	}
	for _, body := range []string{`{"metadata":{"d":null,"e":5}}`, `{"metadata":{}}`} {
		if got := endpointOf(t, s.Do(s.Request("POST", one, body, "Content-Type", "application/json")), 200); fmt.Sprint(got.Metadata) != "map[e:5]" {
			t.Errorf("%s: %v", body, got.Metadata)
		}
	}
	if got := endpointOf(t, s.Do(s.Request("POST", one, `{"metadata":null,"description":null}`, "Content-Type", "application/json")), 200); len(got.Metadata) != 0 || got.Description != nil {
		t.Errorf("unset: %+v", got)
	}
	// With a key it is done once, and taking something away is another request than leaving it.
	first := post(s.Client, one, "U", "description=three")
	endpointOf(t, post(s.Client, one, "", "description=four"), 200)
	if again := post(s.Client, one, "U", "description=three"); !again.Replayed() || !bytes.Equal(again.Body, first.Body) {
		t.Errorf("got %d %s", again.Code, again.Body)
	}
	wants(t, post(s.Client, one, "U", "description=three&metadata="), 422, "idempotency_key_reused", "")
	if got := endpointOf(t, s.Get(one), 200); *got.Description != "four" || got.Secret != e.Secret || got.URL != receiving {
		t.Errorf("GET shows %+v", got)
	}
	// A PUT has no metadata, and leaves what there is.
	endpointOf(t, post(s.Client, one, "", "metadata[f]=6"), 200)
	if got := endpointOf(t, put(s.Client, one, `{"url":"`+receiving+`"}`), 200); fmt.Sprint(got.Metadata) != "map[f:6]" {
		t.Errorf("PUT: %+v", got)
	}
}

func deref(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// Of updates at the same moment none is lost.
func TestEndpointsAreUpdatedAtOnce(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	one := hooks + "/" + endpointOf(t, post(s.Client, hooks, "", "url="+receiving), 201).ID
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() { endpointOf(t, post(s.Client, one, "", fmt.Sprintf("metadata[k%d]=v", i)), 200) })
	}
	all.Wait()
	if got := endpointOf(t, s.Get(one), 200); len(got.Metadata) != 10 {
		t.Errorf("left of ten updates: %v", got.Metadata)
	}
}

// A disabled endpoint gets nothing new; enabled again, it gets what waited.
func TestEndpointsAreDisabledAndEnabled(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	one := hooks + "/" + endpointOf(t, post(s.Client, hooks, "", "url="+receiving), 201).ID
	created(t, s.Charge("K1", b0))
	if err := s.Outbox.NumberAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Pool.Exec(t.Context(), "UPDATE deliveries SET next_run_at = now() + interval '1 day'"); err != nil {
		t.Fatal(err)
	}
	off := endpointOf(t, post(s.Client, one, "", "disabled=true"), 200)
	if off.Status != "disabled" || off.DisabledAt == nil || deref(off.DisabledReason) != "an update disabled it" {
		t.Errorf("disabled: %+v", off)
	}
	if _, err := s.Pool.Exec(t.Context(), "UPDATE webhook_endpoints SET disabled_at = '2026-01-01Z', disabled_reason = 'it answered 410 Gone'"); err != nil {
		t.Fatal(err)
	}
	for _, form := range []string{"disabled=true", "url=https://203.0.114.7/other"} { // it keeps since when, and why
		if e := endpointOf(t, post(s.Client, one, "", form), 200); *e.DisabledAt != 1767225600 || deref(e.DisabledReason) != "it answered 410 Gone" {
			t.Errorf("%s: %+v", form, e)
		}
	}
	created(t, s.Charge("K2", b0))
	if sent := s.relayed(t); len(sent) != 0 {
		t.Errorf("sent while it is disabled: %d", len(sent))
	}
	if on := endpointOf(t, post(s.Client, one, "", "disabled=false"), 200); on.Status != "enabled" || on.DisabledAt != nil || on.DisabledReason != nil {
		t.Errorf("enabled: %+v", on)
	}
	if sent := s.relayed(t); len(sent) != 1 || sent[0].URL != "https://203.0.114.7/other" {
		t.Errorf("sent what waited: %+v", sent)
	}
	if e := endpointOf(t, post(s.Client, one, "", "disabled=false"), 200); e.Status != "enabled" {
		t.Errorf("enabled twice: %+v", e)
	}
}

func TestEndpointsArePaged(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	var ids []string
	for range 5 {
		ids = append(ids, endpointOf(t, post(s.Client, hooks, "", "url="+receiving), 201).ID)
	}
	slices.Reverse(ids) // the newest first
	for _, tc := range []struct {
		query    string
		from, to int
		more     bool
	}{
		{"", 0, 5, false},
		{"?limit=100", 0, 5, false},
		{"?limit=2", 0, 2, true},
		{"?limit=2&starting_after=" + ids[1], 2, 4, true},
		{"?limit=2&starting_after=" + ids[2], 3, 5, false},
		{"?starting_after=" + ids[4], 5, 5, false},
		{"?limit=2&ending_before=" + ids[4], 2, 4, true},
		{"?limit=2&ending_before=" + ids[2], 0, 2, false},
		{"?ending_before=" + ids[0], 0, 0, false},
	} {
		var page struct {
			Object, URL string
			HasMore     bool `json:"has_more"`
			Data        []outbox.Endpoint
		}
		if a := s.Get(hooks + tc.query); a.Code != http.StatusOK {
			t.Errorf("%s: got %d %s", tc.query, a.Code, a.Body)
		} else {
			a.JSON(&page)
		}
		got := []string{}
		for _, e := range page.Data {
			got = append(got, e.ID)
		}
		if page.Object != "list" || page.URL != hooks || page.Data == nil || page.HasMore != tc.more || !slices.Equal(got, ids[tc.from:tc.to]) {
			t.Errorf("%s: %+v", tc.query, page)
		}
	}
	other := s.As(s.NewKey("other").Secret)
	wants(t, other.Get(hooks+"?starting_after="+ids[0]), 400, "resource_missing", "starting_after")
	wants(t, s.Get(hooks+"?ending_before=we_nothing"), 400, "resource_missing", "ending_before")
	wants(t, s.Get(hooks+"?ending_before="+ids[0]+"&starting_after="+ids[1]), 400, "parameter_invalid", "ending_before")
	wants(t, s.Get(hooks+"?limit=0"), 400, "parameter_invalid_integer", "limit")
}
