package stripesim_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"paidonce/provider/stripesim"
)

// ask sends a request as it is, and returns the status.
func ask(t *testing.T, method, address, host, body string, header ...string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Host = host
	for i := 0; i < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	return res.StatusCode
}

// A page of another site, open in a browser of this machine, arms nothing, resets nothing, charges
// nothing and reads nothing.
func TestOtherSitesAreRefused(t *testing.T) {
	t.Parallel()
	sim, err := stripesim.New(stripesim.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sim.Close() })
	server := httptest.NewServer(sim)
	t.Cleanup(server.Close)
	own := strings.TrimPrefix(server.URL, "http://")
	_, port, _ := net.SplitHostPort(own)
	const json, form, rule, visa = "application/json", "application/x-www-form-urlencoded", `{"fault":"hang","probability":0.5,"match":{"key":"none"}}`, "amount=2000&currency=usd&source=tok_visa"
	faults, reset, charges := server.URL+"/_sim/faults", server.URL+"/_sim/reset", server.URL+"/v1/charges"
	key := []string{"Authorization", "Bearer sk_test_x", "Content-Type", form}
	with := func(more ...string) []string { return append(more, key...) }
	for name, tc := range map[string]struct {
		method, address, host, body string
		header                      []string
		want                        int
	}{
		"json":                       {"POST", faults, own, rule, []string{"Content-Type", json}, 200},
		"json in utf-8":              {"POST", faults, own, rule, []string{"Content-Type", json + "; charset=utf-8"}, 200},
		"no body":                    {"POST", reset, own, "", nil, 200},
		"by name":                    {"GET", faults, "localhost:" + port, "", nil, 200},
		"without a port":             {"GET", faults, "127.0.0.1", "", nil, 200},
		"another loopback":           {"GET", faults, "127.8.0.1:" + port, "", nil, 200},
		"loopback of IPv6":           {"GET", faults, "[::1]:" + port, "", nil, 200},
		"typed into a browser":       {"GET", server.URL + "/_sim/", own, "", []string{"Sec-Fetch-Site", "none"}, 200},
		"its own page":               {"POST", faults, own, rule, []string{"Content-Type", json, "Origin", server.URL, "Sec-Fetch-Site", "same-origin"}, 200},
		"a charge":                   {"POST", charges, own, visa, with(), 200},
		"plain text":                 {"POST", faults, own, rule, []string{"Content-Type", "text/plain"}, 415},
		"a form":                     {"POST", faults, own, rule, []string{"Content-Type", form}, 415},
		"a form of parts":            {"POST", faults, own, rule, []string{"Content-Type", "multipart/form-data; boundary=a"}, 415},
		"no type":                    {"POST", faults, own, rule, nil, 415},
		"two types":                  {"POST", faults, own, rule, []string{"Content-Type", json, "Content-Type", "text/plain"}, 415},
		"an empty form":              {"POST", reset, own, "", []string{"Content-Type", form}, 415},
		"another origin":             {"POST", faults, own, rule, []string{"Content-Type", json, "Origin", "https://evil.example"}, 403},
		"another port":               {"POST", reset, own, "", []string{"Origin", "http://127.0.0.1:1"}, 403},
		"no origin to speak of":      {"POST", reset, own, "", []string{"Origin", "null"}, 403},
		"another site":               {"POST", reset, own, "", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		"another port of this site":  {"POST", reset, own, "", []string{"Sec-Fetch-Site", "same-site"}, 403},
		"disarmed by another":        {"DELETE", faults, own, "", []string{"Origin", "https://evil.example"}, 403},
		"read by another":            {"GET", server.URL + "/_sim/ledger", own, "", []string{"Origin", "https://evil.example"}, 403},
		"a rebound name":             {"POST", faults, "evil.example:" + port, rule, []string{"Content-Type", json}, 403},
		"a rebound name, its origin": {"POST", faults, "evil.example:" + port, rule, []string{"Content-Type", json, "Origin", "http://evil.example:" + port}, 403},
		"a name that ends so":        {"GET", faults, "evil-localhost:" + port, "", nil, 403},
		"a name that begins so":      {"GET", faults, "127.0.0.1.evil.example", "", nil, 403},
		"another address":            {"GET", faults, "10.0.0.1:" + port, "", nil, 403},
		"a charge of another site":   {"POST", charges, own, visa, with("Sec-Fetch-Site", "cross-site"), 403},
		"a charge, another origin":   {"POST", charges, own, visa, with("Origin", "https://evil.example"), 403},
		"a charge, rebound":          {"POST", charges, "evil.example:" + port, visa, with(), 403},
	} {
		if got := ask(t, tc.method, tc.address, tc.host, tc.body, tc.header...); got != tc.want {
			t.Errorf("%s: got %d, want %d", name, got, tc.want)
		}
	}
	// In a test network others have names for it.
	far := httptest.NewRequestWithContext(context.WithValue(t.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: net.IPv4(172, 17, 0, 2), Port: 12111}), "GET", "/_sim/faults", nil)
	far.Host = "stripesim:12111"
	w := httptest.NewRecorder()
	if sim.ServeHTTP(w, far); w.Code != 200 {
		t.Errorf("in a test network: got %d", w.Code)
	}
}
