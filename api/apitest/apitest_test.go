package apitest

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A check that cannot fail is none.
func TestWhatIsNotDescribedIsFound(t *testing.T) {
	const whole = `{"error":{"type":"api_error","code":"x","message":"m","request_id":"r","advice":"stop"}}`
	good := map[string]string{
		"Request-Id": "req_01KB7Y8R5QG2Z3X4C5V6B7N8M9", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Content-Type": "application/json",
		"Stripe-Should-Retry": "false",
	}
	for _, tc := range []struct {
		name, method, path string
		status             int
		change             map[string]string
		body               string
		finds              string
	}{
		{"a described error", "GET", "/v1/charges/ch_1", 404, nil, whole, ""},
		{"an unknown path", "GET", "/nowhere", 404, nil, whole, ""},
		{"HEAD", "HEAD", "/v1/charges/ch_1", 404, nil, "", ""},
		{"a status that is not declared", "GET", "/v1/charges/ch_1", 402, nil, whole, "declares no 402"},
		{"a header that is not declared", "GET", "/v1/charges/ch_1", 404, map[string]string{"X-More": "1"}, whole, "X-More is not declared"},
		{"a header that is missing", "GET", "/v1/charges/ch_1", 404, map[string]string{"Request-Id": ""}, whole, "Request-Id is missing"},
		{"a header of the wrong form", "GET", "/v1/charges/ch_1", 404, map[string]string{"Request-Id": "1"}, whole, "Request-Id"},
		{"another media type", "GET", "/v1/charges/ch_1", 404, map[string]string{"Content-Type": "text/plain"}, whole, "Content-Type"},
		{"a member that is not declared", "GET", "/v1/charges/ch_1", 404, nil, strings.Replace(whole, `"code"`, `"kode"`, 1), "kode"},
		{"a member that is missing", "GET", "/v1/charges/ch_1", 404, nil, strings.Replace(whole, `,"advice":"stop"`, "", 1), "advice"},
		{"a body that is not JSON", "GET", "/v1/charges/ch_1", 404, nil, "no", "failed to decode"},
		{"an unknown path that succeeds", "GET", "/nowhere", 200, nil, whole, "no such operation"},
		{"an unknown path with a wrong body", "GET", "/nowhere", 404, nil, `{"error":"x"}`, "error"},
		{"an unknown path with an unknown header", "GET", "/nowhere", 404, map[string]string{"X-More": "1"}, whole, "X-More"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				for _, headers := range []map[string]string{good, tc.change} {
					for name, val := range headers {
						if val == "" {
							w.Header().Del(name)
							continue
						}
						w.Header().Set(name, val)
					}
				}
				w.WriteHeader(tc.status)
				_, _ = w.Write([]byte(tc.body))
			}))
			defer s.Close()
			c := NewClient(t, s.URL, "")
			res, err := c.HTTP.Do(c.Request(tc.method, tc.path, ""))
			if err == nil {
				_ = res.Body.Close()
			}
			if tc.finds == "" && err != nil || tc.finds != "" && (err == nil || !strings.Contains(err.Error(), tc.finds)) {
				t.Errorf("got %v, want %q", err, tc.finds)
			}
		})
	}
}
