package api_test

import (
	"bytes"
	"net/url"
	"sync"
	"testing"
)

// A key that comes with a POST that moves no money is honoured as well: the work is done once for
// it, however often and however many at once ask, and what is refused does not spend it.
func TestKeysOfOtherPosts(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	old := read(t, put(s.Client, hook, `{"url":"https://203.0.114.7/in"}`), 201)
	created(t, s.Charge("K", b0))
	event := "/v1/events/" + s.relayed(t)[0].EventID

	wants(t, s.Post("/v1/webhook_endpoints/nowhere/rotate_secret", "R", ""), 404, "resource_missing", "id")
	wants(t, s.Post(hook+"/rotate_secret", "R", `{"secret":"mine"}`), 400, "parameter_unknown", "secret")
	first := s.Post(hook+"/rotate_secret", "R", "")
	fresh := read(t, first, 200)
	if fresh.Secret == old.Secret || first.Replayed() || first.Header.Get("Idempotency-Key") != "R" {
		t.Errorf("rotated to %+v with %v", fresh, first.Header)
	}
	again := s.Post(hook+"/rotate_secret", `"R"`, "{}") // the same key, the same parameters
	if !again.Replayed() || again.Code != 200 || !bytes.Equal(again.Body, first.Body) || again.Header.Get("Original-Request") != first.Header.Get("Request-Id") {
		t.Errorf("got %d %s with %v", again.Code, again.Body, again.Header)
	}
	if now := read(t, s.Get(hook), 200); now.Secret != fresh.Secret {
		t.Error("a repetition has rotated the secret")
	}
	wants(t, s.Post(event+"/resend", "R", ""), 422, "idempotency_key_reused", "")
	wants(t, s.Charge("R", b0), 422, "idempotency_key_reused", "")
	if a := s.Get("/v1/idempotency_keys/R"); a.Code != 200 || !bytes.Contains(a.Body, []byte(`"status":"completed"`)) || !bytes.Contains(a.Body, []byte(`"resource":"hook"`)) {
		t.Errorf("got %d %s", a.Code, a.Body)
	}

	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if a := s.Post(event+"/resend", "S", `{"webhook_endpoint":"hook"}`); a.Code != 200 || !bytes.Contains(a.Body, []byte(`"deliveries":1`)) {
				t.Errorf("got %d %s", a.Code, a.Body)
			}
		})
	}
	all.Wait()
	if sent := s.relayed(t); len(sent) != 1 {
		t.Errorf("sent %d times", len(sent))
	}
	if a := s.Post(event+"/resend", "S", `{"webhook_endpoint":"hook"}`); !a.Replayed() {
		t.Errorf("got %d %s", a.Code, a.Body)
	}
	if sent := s.relayed(t); len(sent) != 0 {
		t.Error("a repetition has sent the event again")
	}
	wants(t, s.Post(event+"/resend", "S", ""), 422, "idempotency_key_reused", "")
}

// A client asks for its key in the form in which it sent it, quotes and all; without them it is the
// same key.
func TestKeyIsFoundAsItWasSent(t *testing.T) {
	s := newShop(t)
	for sent, other := range map[string]string{`"8e03978e"`: "8e03978e", `"a\"b/c%20"`: `a"b/c%20`, "100%": `"100%"`, "..": `".."`, "x/../y": `"x/../y"`} {
		if a := s.Charge(sent, b0); a.Code != 201 {
			t.Fatalf("%s: got %d %s", sent, a.Code, a.Body)
		}
		for _, form := range []string{sent, other} {
			if a := s.Get("/v1/idempotency_keys/" + url.PathEscape(form)); a.Code != 200 {
				t.Errorf("sent as %s, asked for as %s: got %d %s", sent, form, a.Code, a.Body)
			}
		}
	}
	wants(t, s.Get("/v1/idempotency_keys/"+url.PathEscape(`"8e03978"`)), 404, "resource_missing", "key")
}
