package stripesim_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"paidonce/provider/stripesim"
)

// clock is a time that tests set.
type clock struct{ t time.Time }

func (c *clock) now() time.Time { return c.t }

// sim is a simulator behind a loopback socket.
type sim struct {
	*stripesim.Server
	t    testing.TB
	http *httptest.Server
}

func start(t testing.TB, cfg stripesim.Config) *sim {
	t.Helper()
	s, err := stripesim.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(s)
	t.Cleanup(func() {
		_ = s.Close()
		h.Close()
	})
	return &sim{Server: s, t: t, http: h}
}

// reply is an answer, decoded.
type reply struct {
	status int
	header http.Header
	raw    string
	body   map[string]any
}

func (r *reply) id() string { s, _ := r.body["id"].(string); return s }

// err gives a field of the error, or "" when there is none.
func (r *reply) err(field string) string {
	e, _ := r.body["error"].(map[string]any)
	s, _ := e[field].(string)
	return s
}

// try sends a request with a fresh connection; err is set when no whole answer came.
func (s *sim) try(method, path, key, form string) (*reply, error) {
	s.t.Helper()
	var body io.Reader
	if method == http.MethodPost {
		body = strings.NewReader(form)
	} else if form != "" {
		path += "?" + form
	}
	req, err := http.NewRequest(method, s.http.URL+path, body)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer sk_test_1")
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	r := &reply{status: resp.StatusCode, header: resp.Header, raw: string(raw)}
	_ = json.Unmarshal(raw, &r.body)
	return r, nil
}

func (s *sim) do(method, path, key, form string) *reply {
	s.t.Helper()
	r, err := s.try(method, path, key, form)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	return r
}

const visa = "amount=2000&currency=usd&source=tok_visa"

// pay makes a charge that has to succeed.
func (s *sim) pay(key, form string) *reply {
	s.t.Helper()
	r := s.do("POST", "/v1/charges", key, form)
	if r.status != 200 || r.body["status"] != "succeeded" {
		s.t.Fatalf("charge: %d %s", r.status, r.raw)
	}
	return r
}

// control uses a switch.
func (s *sim) control(method, path, body string) string {
	s.t.Helper()
	req, err := http.NewRequest(method, s.http.URL+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != 200 {
		s.t.Fatalf("%s %s: %d %s", method, path, resp.StatusCode, raw)
	}
	return string(raw)
}

// ids of a list.
func (r *reply) ids() []string {
	var out []string
	data, _ := r.body["data"].([]any)
	for _, d := range data {
		out = append(out, d.(map[string]any)["id"].(string))
	}
	return out
}

// as reads with another Authorization.
func (s *sim) as(authorization, path string) *reply {
	s.t.Helper()
	req, err := http.NewRequest(http.MethodGet, s.http.URL+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	if authorization != "" {
		req.Header.Set("Authorization", authorization)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, _ := io.ReadAll(resp.Body)
	r := &reply{status: resp.StatusCode, header: resp.Header, raw: string(raw)}
	_ = json.Unmarshal(raw, &r.body)
	return r
}
