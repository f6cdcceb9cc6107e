package api_test

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"paidonce/api/apitest"
)

// Go's HTTP client sends a POST again by itself when it carries an Idempotency-Key and the
// connection it reused dies without an answer. The caller sees one request; the server sees two,
// and the second is a replay.
func TestAClientThatSendsAgainByItselfPaysOnce(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	var posts atomic.Int32
	flaky := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || posts.Add(1) > 1 {
			s.API.ServeHTTP(w, r)
			return
		}
		s.API.ServeHTTP(httptest.NewRecorder(), r) // done, and the answer is lost
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_ = conn.Close()
	}))
	defer flaky.Close()
	c := apitest.NewClient(t, flaky.URL, s.APIKey)
	if a := c.Get("/healthz"); a.Code != 200 { // so that there is a connection to be used again
		t.Fatalf("got %d", a.Code)
	}
	a := c.Charge("K", b0)
	if a.Code != 201 || !a.Replayed() || posts.Load() != 2 || s.ChargeRequests() != 1 {
		t.Errorf("got %d (replayed %t), %d requests, the provider was asked %d times", a.Code, a.Replayed(), posts.Load(), s.ChargeRequests())
	}
}
