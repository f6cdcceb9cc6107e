package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"paidonce/accounts"
	"paidonce/api/apitest"
	"paidonce/outbox"
)

const hook = "/v1/webhook_endpoints/hook"

// put registers an endpoint with a JSON body.
func put(c *apitest.Client, path, body string) apitest.Answer {
	return c.Do(c.Request("PUT", path, body, "Content-Type", "application/json"))
}

type endpoint struct {
	ID, URL, Status, Secret, Object string
	Description                     *string
	EnabledEvents                   []string `json:"enabled_events"`
	DisabledAt                      *int64   `json:"disabled_at"`
}

func read(t *testing.T, a apitest.Answer, status int) (e endpoint) {
	t.Helper()
	if a.JSON(&e); a.Code != status {
		t.Errorf("got %d %s, want %d", a.Code, a.Body, status)
	}
	return e
}

// Registering again is the same registration; what is given replaces what was, and the secret
// stays.
func TestAnEndpointIsWhatItsRegistrationSays(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	a := put(s.Client, hook, `{"url":"https://203.0.114.7/in","enabled_events":["charge.succeeded","charge.failed"],"description":"one"}`)
	first := read(t, a, 201)
	if a.Header.Get("Location") != hook || first.ID != "hook" || first.Object != "webhook_endpoint" || first.Status != "enabled" || *first.Description != "one" ||
		!slices.Equal(first.EnabledEvents, []string{"charge.failed", "charge.succeeded"}) || !strings.HasPrefix(first.Secret, "whsec_") {
		t.Errorf("got %s %v", a.Body, a.Header)
	}
	form := s.Request("PUT", hook, "url=https://203.0.114.7/other", "Content-Type", "application/x-www-form-urlencoded", "Idempotency-Key", "\xff") // ignored
	a = s.Do(form)
	second := read(t, a, 200)
	if a.Header.Get("Location") != "" || second.URL != "https://203.0.114.7/other" || second.Description != nil || !slices.Equal(second.EnabledEvents, []string{"*"}) || second.Secret != first.Secret {
		t.Errorf("got %s %v", a.Body, a.Header)
	}
	if again := put(s.Client, hook, `{"url":"https://203.0.114.7/other","enabled_events":["*"]}`); again.Code != 200 || !bytes.Equal(again.Body, a.Body) {
		t.Errorf("once more: %d %s", again.Code, again.Body)
	}
	if object := s.Get(hook); !bytes.Equal(object.Body, a.Body) {
		t.Errorf("GET shows %s", object.Body)
	}
	if _, err := s.Pool.Exec(t.Context(), "UPDATE webhook_endpoints SET disabled_at = now(), disabled_reason = 'it answered 410'"); err != nil {
		t.Fatal(err)
	}
	if e := read(t, s.Get(hook), 200); e.Status != "disabled" || e.DisabledAt == nil {
		t.Errorf("got %+v", e)
	}
	if e := read(t, put(s.Client, hook, `{"url":"https://203.0.114.7/other"}`), 200); e.Status != "enabled" || e.DisabledAt != nil {
		t.Errorf("got %+v", e)
	}
	read(t, put(s.Client, "/v1/webhook_endpoints/a.second_one-2", `{"url":"http://203.0.114.7:8080/"}`), 201)
	var list struct{ Data []endpoint }
	if s.Get("/v1/webhook_endpoints").JSON(&list); len(list.Data) != 2 || list.Data[0].ID != "a.second_one-2" || list.Data[1].Secret != first.Secret {
		t.Errorf("listed: %+v", list)
	}
	a = s.Do(s.Request("DELETE", hook, ""))
	if a.Code != 200 || string(a.Body) != `{"deleted":true,"id":"hook","object":"webhook_endpoint"}`+"\n" {
		t.Errorf("got %d %s", a.Code, a.Body)
	}
	wants(t, s.Do(s.Request("DELETE", hook, "")), 404, "resource_missing", "id")
	wants(t, s.Get(hook), 404, "resource_missing", "id")
	if e := read(t, put(s.Client, hook, `{"url":"https://203.0.114.7/in"}`), 201); e.Secret == first.Secret {
		t.Error("a new endpoint has the secret of a deleted one")
	}
}

func TestEndpointsThatAreRefused(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	for _, u := range []string{
		"http://127.0.0.1/", "http://localhost/", "http://LOCALHOST./", "http://10.1.2.3/", "http://192.168.0.1:8080/x", "http://169.254.169.254/latest/meta-data", "http://[::1]/",
		"http://[::ffff:10.0.0.1]/", "http://[fd00::1]/", "http://0.0.0.0/", "http://2130706433/", "http://127.1/", "ftp://203.0.114.7/", "file:///etc/passwd", "x", "//203.0.114.7/",
		"https://user:password@203.0.114.7/", "https://203.0.114.7/#x", "https://203.0.114.7:0/",
	} {
		wants(t, put(s.Client, hook, fmt.Sprintf(`{"url":%q}`, u)), 400, "parameter_invalid", "url")
	}
	if p := put(s.Client, hook, `{"url":"http://127.0.0.1/"}`).Error(); p.Message != "url leads to an address that is not public." {
		t.Errorf("got %q", p.Message)
	}
	const ok = "https://203.0.114.7/"
	for _, tc := range []struct{ path, body, code, param string }{
		{hook, ``, "parameter_missing", "url"},
		{hook, `{}`, "parameter_missing", "url"},
		{hook, `{"enabled_events":["*"]}`, "parameter_missing", "url"},
		{hook, `{"url":""}`, "parameter_invalid_empty", "url"},
		{hook, `{"url":1}`, "parameter_invalid", "url"},
		{hook, `{"url":"` + ok + `","secret":"whsec_mine"}`, "parameter_unknown", "secret"},
		{hook, `{"url":"` + ok + `","Url":"x"}`, "parameter_unknown", "Url"},
		{hook, `{"url":"` + ok + strings.Repeat("x", 2000) + `"}`, "parameter_invalid_string_too_long", "url"},
		{hook, `{"url":"` + ok + `","description":"` + strings.Repeat("é", 501) + `"}`, "parameter_invalid_string_too_long", "description"},
		{hook, `{"url":"` + ok + `","enabled_events":["charge.exploded"]}`, "parameter_invalid", "enabled_events"},
		{hook, `{"url":"` + ok + `","enabled_events":[]}`, "parameter_invalid_empty", "enabled_events"},
		{hook, `{"url":"` + ok + `"`, "body_malformed", ""},
		{hook + "?url=x", `{"url":"` + ok + `"}`, "parameter_unknown", "url"},
		{"/v1/webhook_endpoints/a%20b", `{"url":"` + ok + `"}`, "parameter_invalid", "id"},
		{"/v1/webhook_endpoints/a%2Fb", `{"url":"` + ok + `"}`, "parameter_invalid", "id"},
		// clients and proxies take dots out of paths
		{"/v1/webhook_endpoints/.", `{"url":"` + ok + `"}`, "parameter_invalid", "id"},
		{"/v1/webhook_endpoints/..", `{"url":"` + ok + `"}`, "parameter_invalid", "id"},
		{"/v1/webhook_endpoints/%2e%2E", `{"url":"` + ok + `"}`, "parameter_invalid", "id"},
		{"/v1/webhook_endpoints/-a", `{"url":"` + ok + `"}`, "parameter_invalid", "id"},
		{"/v1/webhook_endpoints/%00", `{"url":"` + ok + `"}`, "parameter_invalid", "id"},
		{"/v1/webhook_endpoints/" + strings.Repeat("x", 65), `{"url":"` + ok + `"}`, "parameter_invalid", "id"},
		{"/v1/webhook_endpoints/" + strings.Repeat("x", 300), `{"url":"` + ok + `"}`, "parameter_invalid", "id"},
	} {
		wants(t, put(s.Client, tc.path, tc.body), 400, tc.code, tc.param)
	}
	wants(t, s.Do(s.Request("PUT", hook, "<url/>", "Content-Type", "text/xml")), 415, "media_type_unsupported", "")
	wants(t, s.As("sk_wrong").Get("/v1/webhook_endpoints"), 401, "api_key_invalid", "")
	wants(t, s.Do(s.Request("PATCH", hook, "{}")), 405, "method_not_allowed", "")
	if list, err := s.Outbox.ListEndpoints(t.Context(), s.account(t)); err != nil || len(list) != 0 {
		t.Errorf("registered: %v %v", list, err)
	}
	for i := range 50 {
		read(t, put(s.Client, fmt.Sprintf("/v1/webhook_endpoints/e%d", i), `{"url":"`+ok+`"}`), 201)
	}
	wants(t, put(s.Client, hook, `{"url":"`+ok+`"}`), 400, "too_many_endpoints", "id")
	read(t, put(s.Client, "/v1/webhook_endpoints/e7", `{"url":"`+ok+`"}`), 200)
}

// account is account A's id.
func (s *shop) account(t *testing.T) (id string) {
	t.Helper()
	if err := s.Pool.QueryRow(t.Context(), "SELECT account_id FROM api_keys WHERE id = $1", s.World.Key.ID).Scan(&id); err != nil {
		t.Fatal(err)
	}
	return id
}

// receiver takes what a relay sends.
type receiver struct {
	mu   sync.Mutex
	sent []outbox.Message
}

func (r *receiver) Send(_ context.Context, m outbox.Message) (outbox.Answer, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent = append(r.sent, m)
	return outbox.Answer{Status: http.StatusOK}, nil
}

// relayed delivers what is due and returns it.
func (s *shop) relayed(t *testing.T) []outbox.Message {
	t.Helper()
	var r receiver
	if err := outbox.NewRelay(s.Outbox, outbox.RelayConfig{Sender: &r, Log: slog.New(slog.DiscardHandler)}).RunOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r.sent
}

// Both secrets sign for a day after a rotation; the bytes are the same wherever they are read.
func TestRotatingAndResending(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	old := read(t, put(s.Client, hook, `{"url":"https://203.0.114.7/in"}`), 201)
	created(t, s.Charge("K", b0))
	sent := s.relayed(t)
	if len(sent) != 1 || !slices.Equal(sent[0].Secrets, []string{old.Secret}) {
		t.Fatalf("sent: %+v", sent)
	}
	event := "/v1/events/" + sent[0].EventID
	if a := s.Get(event); a.Code != 200 || !bytes.Equal(a.Body, sent[0].Payload) {
		t.Errorf("GET shows %s, sent was %s", a.Body, sent[0].Payload)
	}
	for _, path := range []string{hook + "/rotate_secret", event + "/resend"} {
		for _, tc := range []struct {
			body, header, value string
			status              int
			code, param         string
		}{
			{"", "Idempotency-Key", "", 400, "idempotency_key_invalid", ""},
			{"", "Idempotency-Key", strings.Repeat("k", 256), 400, "idempotency_key_invalid", ""},
			{"", "Idempotency-Key", "\xff", 400, "idempotency_key_invalid", ""},
			{`{"secret":"mine"}`, "Content-Type", "application/json", 400, "parameter_unknown", "secret"},
			{`secret=mine`, "Content-Type", "application/x-www-form-urlencoded", 400, "parameter_unknown", "secret"},
			{`<x/>`, "Content-Type", "text/xml", 415, "media_type_unsupported", ""},
		} {
			wants(t, s.Do(s.Request("POST", path, tc.body, tc.header, tc.value)), tc.status, tc.code, tc.param)
		}
		twice := s.Request("POST", path, "")
		twice.Header["Idempotency-Key"] = []string{"a", "b"}
		wants(t, s.Do(twice), 400, "idempotency_key_invalid", "")
		wants(t, s.Do(s.Request("POST", path+"?x=1", "")), 400, "parameter_unknown", "x")
	}
	if e := read(t, s.Get(hook), 200); e.Secret != old.Secret {
		t.Error("what was refused has rotated the secret")
	}
	// it stands for a charge
	wants(t, s.Post(hook+"/rotate_secret", "K", ""), 422, "idempotency_key_reused", "")
	fresh := read(t, s.Do(s.Request("POST", hook+"/rotate_secret", "")), 200)
	if fresh.Secret == old.Secret || read(t, s.Get(hook), 200).Secret != fresh.Secret {
		t.Errorf("rotated to %+v", fresh)
	}
	a := s.Do(s.Request("POST", event+"/resend", ""))
	if want := fmt.Sprintf(`{"deliveries":1,"event":%q,"object":"event_resend"}`+"\n", sent[0].EventID); a.Code != 200 || string(a.Body) != want || a.Replayed() {
		t.Errorf("got %d %s", a.Code, a.Body)
	}
	again := s.relayed(t)
	if len(again) != 1 || again[0].EventID != sent[0].EventID || !bytes.Equal(again[0].Payload, sent[0].Payload) || !slices.Equal(again[0].Secrets, []string{fresh.Secret, old.Secret}) {
		t.Errorf("sent: %+v", again)
	}
	s.toOneEndpoint(t, event)
	read(t, s.Do(s.Request("DELETE", hook, "")), 200)
	wants(t, s.Do(s.Request("POST", event+"/resend", `{"webhook_endpoint":"hook"}`, "Content-Type", "application/json")), 404, "resource_missing", "webhook_endpoint")
	read(t, s.Do(s.Request("DELETE", "/v1/webhook_endpoints/refunds", "")), 200)
	if a := s.Do(s.Request("POST", event+"/resend", "")); a.Code != 200 || !bytes.Contains(a.Body, []byte(`"deliveries":0`)) {
		t.Errorf("got %d %s", a.Code, a.Body)
	}
}

// toOneEndpoint resends an event to one endpoint alone, one that did not ask for its type.
func (s *shop) toOneEndpoint(t *testing.T, event string) {
	t.Helper()
	read(t, put(s.Client, "/v1/webhook_endpoints/refunds", `{"url":"https://203.0.114.7/refunds","enabled_events":["charge.refunded"]}`), 201)
	const asJSON, asForm = "application/json", "application/x-www-form-urlencoded"
	for _, sent := range [][2]string{{asJSON, `{"webhook_endpoint":"refunds"}`}, {asForm, "webhook_endpoint=refunds"}} {
		if a := s.Do(s.Request("POST", event+"/resend", sent[1], "Content-Type", sent[0])); a.Code != 200 || !bytes.Contains(a.Body, []byte(`"deliveries":1`)) {
			t.Errorf("%s: got %d %s", sent[1], a.Code, a.Body)
		}
		if got := s.relayed(t); len(got) != 1 || got[0].URL != "https://203.0.114.7/refunds" || "/v1/events/"+got[0].EventID != event {
			t.Errorf("%s: sent: %+v", sent[1], got)
		}
	}
	for _, tc := range []struct {
		path, mediaType, body string
		status                int
		code, param           string
	}{
		{event, asJSON, `{"webhook_endpoint":"nowhere"}`, 404, "resource_missing", "webhook_endpoint"},
		{event, asForm, "webhook_endpoint=nowhere", 404, "resource_missing", "webhook_endpoint"},
		{"/v1/events/evt_x", asJSON, `{"webhook_endpoint":"hook"}`, 404, "resource_missing", "id"},
		{event, asForm, "webhook_endpoint=", 400, "parameter_invalid_empty", "webhook_endpoint"},
		{event, asJSON, `{"webhook_endpoint":["hook"]}`, 400, "parameter_invalid", "webhook_endpoint"},
		{event, asJSON, `{"webhook_endpoint":null}`, 400, "parameter_invalid", "webhook_endpoint"},
		{event, asForm, "webhook_endpoint=" + strings.Repeat("h", 256), 400, "parameter_invalid", "webhook_endpoint"},
		{event, asForm, "webhook_endpoint=%00", 400, "parameter_invalid", "webhook_endpoint"},
		{event, asForm, "webhook_endpoint=hook&webhook_endpoint=refunds", 400, "parameter_duplicate", "webhook_endpoint"},
	} {
		wants(t, s.Do(s.Request("POST", tc.path+"/resend", tc.body, "Content-Type", tc.mediaType)), tc.status, tc.code, tc.param)
	}
	if got := s.relayed(t); len(got) != 0 {
		t.Errorf("what was refused was sent: %+v", got)
	}
}

// What belongs to another account is not there, in no way.
func TestEventsAndEndpointsOfOthers(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	mine := read(t, put(s.Client, hook, `{"url":"https://203.0.114.7/in"}`), 201)
	created(t, s.Charge("K", b0))
	ids, _ := s.walk(t, "", 10)
	if len(ids) != 1 {
		t.Fatalf("events: %v", ids)
	}
	event := "/v1/events/" + ids[0]
	for _, r := range [][2]string{
		{"GET", hook}, {"DELETE", hook}, {"POST", hook + "/rotate_secret"}, {"GET", event}, {"POST", event + "/resend"}, {"GET", "/v1/events/evt_x"}, {"GET", "/v1/events/%00"},
		{"POST", "/v1/events/%ff/resend"}, {"DELETE", "/v1/webhook_endpoints/a%20b"}, {"POST", "/v1/webhook_endpoints/%00/rotate_secret"},
	} {
		wants(t, s.B.Do(s.B.Request(r[0], r[1], "")), 404, "resource_missing", "id")
	}
	wants(t, s.B.Get("/v1/events?starting_after="+ids[0]), 400, "resource_missing", "starting_after")
	for _, path := range []string{"/v1/events", "/v1/webhook_endpoints"} {
		if a := s.B.Get(path); a.Code != 200 || !bytes.Contains(a.Body, []byte(`"data":[]`)) {
			t.Errorf("%s of another account: %s", path, a.Body)
		}
	}
	if theirs := read(t, put(s.B, hook, `{"url":"https://203.0.114.8/"}`), 201); theirs.Secret == mine.Secret {
		t.Error("two accounts share a secret")
	}
	if e := read(t, s.Get(hook), 200); e.URL != mine.URL || e.Secret != mine.Secret {
		t.Errorf("another account's registration changed it: %+v", e)
	}
	// A revoked key is refused at once: it is not looked up in a cache.
	if err := accounts.NewStore(s.World.Pool).Revoke(t.Context(), s.World.Key.ID); err != nil {
		t.Fatal(err)
	}
	wants(t, s.Get(hook), 401, "api_key_invalid", "")
	wants(t, put(s.Client, hook, `{"url":"https://203.0.114.9/"}`), 401, "api_key_invalid", "")
}

// walk reads on from a cursor to the end, in pages; also the bytes of the events.
func (s *shop) walk(t *testing.T, after string, limit int) (ids []string, bodies [][]byte) {
	t.Helper()
	for {
		path := fmt.Sprintf("/v1/events?limit=%d", limit)
		if after != "" {
			path += "&starting_after=" + after
		}
		a := s.Get(path)
		var p struct {
			HasMore bool `json:"has_more"`
			Data    []json.RawMessage
		}
		if a.JSON(&p); a.Code != 200 || len(p.Data) > limit {
			t.Fatalf("got %d %s", a.Code, a.Body)
		}
		for _, raw := range p.Data {
			var e struct{ ID string }
			if err := json.Unmarshal(raw, &e); err != nil {
				t.Fatal(err)
			}
			after, ids, bodies = e.ID, append(ids, e.ID), append(bodies, raw)
		}
		if !p.HasMore {
			return ids, bodies
		}
	}
}

// Whoever reads to the end and comes back later misses nothing, though transactions commit in
// another order than they begin.
func TestReadingOnMissesNothing(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	var begun, charging sync.WaitGroup
	for i := range 8 {
		charging.Go(func() {
			for j := range 4 {
				s.Charge(fmt.Sprintf("K-%d-%d", i, j), b0)
			}
		})
	}
	done := make(chan struct{})
	begun.Go(func() { charging.Wait(); close(done) })
	var seen []string
	for last, running := "", true; running; {
		select {
		case <-done:
			running = false // and once more to the end
		default:
		}
		ids, _ := s.walk(t, last, 3)
		if len(ids) > 0 {
			last = ids[len(ids)-1]
		}
		seen = append(seen, ids...)
	}
	begun.Wait()
	// One that was written early commits late: it comes after what was seen.
	held, err := s.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const late = "evt_00000000000000000000000000"
	if _, err = held.Exec(t.Context(), `INSERT INTO outbox (event_id, account_id, type, operation_id, object_id, payload)
		SELECT $1, account_id, type, 'op_late', object_id, convert_to(replace(convert_from(payload, 'UTF8'), event_id, $1), 'UTF8') FROM outbox LIMIT 1`, late); err != nil {
		t.Fatal(err)
	}
	created(t, s.Charge("K-last", b0))
	ids, _ := s.walk(t, seen[len(seen)-1], 100)
	if err := held.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(ids) != 1 {
		t.Fatalf("after the last: %v", ids)
	}
	if again, _ := s.walk(t, ids[0], 100); !slices.Equal(again, []string{late}) {
		t.Errorf("coming back: %v", again)
	}
	seen = append(seen, ids[0], late)
	whole, bodies := s.walk(t, "", 100)
	if !slices.Equal(whole, seen) || len(seen) != 34 {
		t.Errorf("walked in pieces %d: %v\nat once %d: %v", len(seen), seen, len(whole), whole)
	}
	for i, id := range whole[:3] {
		if a := s.Get("/v1/events/" + id); !bytes.Equal(bytes.TrimSpace(a.Body), bodies[i]) {
			t.Errorf("listed as %s, shown as %s", bodies[i], a.Body)
		}
	}
}

func TestEventFilters(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	charge := s.Charge("K", b0)
	created(t, charge)
	created(t, s.Post("/v1/refunds", "R", fmt.Sprintf(`{"charge":%q,"amount":500}`, charge.ID())))
	s.Charge("D", `{"amount":2000,"currency":"usd","source":"tok_chargeDeclined"}`)
	all, bodies := s.walk(t, "", 1)
	var types []string
	for _, b := range bodies {
		var e struct{ Type string }
		if err := json.Unmarshal(b, &e); err != nil {
			t.Fatal(err)
		}
		types = append(types, e.Type)
	}
	for _, typ := range []string{"charge.succeeded", "charge.failed", "refund.created", "charge.refunded"} {
		at := slices.Index(types, typ)
		a := s.Get("/v1/events?type=" + typ)
		if at < 0 || bytes.Count(a.Body, []byte(`"object":"event"`)) != 1 || !bytes.Contains(a.Body, []byte(all[at])) {
			t.Errorf("%s: %s; there are %v", typ, a.Body, types)
		}
		if at >= 0 {
			if a := s.Get("/v1/events?type=" + typ + "&starting_after=" + all[len(all)-1]); !bytes.Contains(a.Body, []byte(`"data":[]`)) {
				t.Errorf("%s after the last: %s", typ, a.Body)
			}
		}
	}
	backwards := slices.Clone(all)
	slices.Reverse(backwards)
	for query, want := range map[string][]string{"order=desc&limit=2": backwards[:2], "order=desc&limit=1&starting_after=" + all[2]: all[1:2], "order=asc&limit=1": all[:1]} {
		var page struct{ Data []struct{ ID string } }
		s.Get("/v1/events?" + query).JSON(&page)
		var got []string
		for _, e := range page.Data {
			got = append(got, e.ID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", query, got, want)
		}
	}
	for _, tc := range []struct{ query, code, param string }{
		{"order=up", "parameter_invalid", "order"}, {"order=", "parameter_invalid_empty", "order"}, {"order=DESC", "parameter_invalid", "order"},
		{"type=charge.exploded", "parameter_invalid", "type"}, {"type=*&types[]=charge.failed", "parameter_invalid", "types"}, {"type=", "parameter_invalid_empty", "type"},
		{"limit=0", "parameter_invalid_integer", "limit"}, {"limit=101", "parameter_invalid_integer", "limit"}, {"limit=x", "parameter_invalid_integer", "limit"},
		{"starting_after=evt_x", "resource_missing", "starting_after"}, {"starting_after=" + strings.Repeat("e", 256), "parameter_invalid", "starting_after"},
		{"starting_after=%00", "parameter_invalid", "starting_after"}, {"ending_before=evt_x", "resource_missing", "ending_before"}, {"types=x", "parameter_invalid", "types"},
		{"limit=1&limit=1", "parameter_duplicate", "limit"}, {"limit", "query_malformed", ""},
	} {
		wants(t, s.Get("/v1/events?"+tc.query), 400, tc.code, tc.param)
	}
	if head := s.Do(s.Request("HEAD", "/v1/events", "")); head.Code != 200 || len(head.Body) != 0 {
		t.Errorf("got %d %s", head.Code, head.Body)
	}
}
