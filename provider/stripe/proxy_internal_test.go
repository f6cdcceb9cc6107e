package stripe

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"paidonce/provider"
)

const hush = "hushhush"

// testProxy is a proxy for HTTP. status 0: it does what it is asked for.
type testProxy struct {
	status  int
	hangUp  atomic.Bool  // after it has said that the tunnel stands
	asked   atomic.Int64 // for tunnels and pages
	unknown atomic.Int64 // by somebody without the password
}

func (p *testProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.asked.Add(1)
	if user, password, _ := (&http.Request{Header: http.Header{"Authorization": r.Header["Proxy-Authorization"]}}).BasicAuth(); user != "u" || password != hush {
		p.unknown.Add(1)
	}
	switch {
	case p.status != 0:
		w.WriteHeader(p.status)
		_, _ = io.WriteString(w, "<html>a page of the proxy</html>")
	case r.Method == http.MethodConnect:
		p.tunnel(w, r.Host)
	default:
		r.RequestURI = ""
		r.Header.Del("Proxy-Authorization")
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer resp.Body.Close()
		w.WriteHeader(resp.StatusCode)
		_, _ = io.Copy(w, resp.Body)
	}
}

func (p *testProxy) tunnel(w http.ResponseWriter, host string) {
	there, err := net.Dial("tcp", host)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	here, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	_, _ = io.WriteString(here, "HTTP/1.1 200 Connection established\r\n\r\n")
	if p.hangUp.Load() {
		_, _ = here.Close(), there.Close()
		return
	}
	splice(here, there)
}

func splice(a, b net.Conn) {
	go func() { _, _ = io.Copy(a, b); _ = a.Close() }()
	go func() { _, _ = io.Copy(b, a); _ = b.Close() }()
}

// socks is a proxy of SOCKS 5 that wants the password, and answers a request for a tunnel with the
// given code; 0: granted.
func socks(t *testing.T, code byte) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	serve := func(c net.Conn) error {
		b := make([]byte, 600)
		read := func(n int) []byte { _, err = io.ReadFull(c, b[:n]); return b[:n] }
		read(int(read(2)[1])) // the ways to authenticate
		_, _ = c.Write([]byte{5, 2})
		user := string(read(int(read(2)[1])))
		password := string(read(int(read(1)[0])))
		if user != "u" || password != hush {
			_, _ = c.Write([]byte{1, 1})
			return errors.New("who is there?")
		}
		_, _ = c.Write([]byte{1, 0})
		host := net.IP(nil)
		if read(4)[3] == 1 {
			host = append(host, read(4)...)
		}
		port := binary.BigEndian.Uint16(read(2))
		_, _ = c.Write([]byte{5, code, 0, 1, 0, 0, 0, 0, 0, 0})
		if code != 0 {
			return errors.New("refused")
		}
		there, err := net.Dial("tcp", net.JoinHostPort(host.String(), fmt.Sprint(port)))
		if err == nil {
			splice(c, there)
		}
		return err
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if serve(c) != nil {
				_ = c.Close()
			}
		}
	}()
	return l.Addr().String()
}

// through makes a provider that reaches a target through a proxy.
func through(t *testing.T, proxy, address string, target *httptest.Server) *Provider {
	t.Helper()
	p, err := New(Config{APIKey: "sk_test_x", BaseURL: target.URL, Proxy: proxy + "://u:" + hush + "@" + address, Timeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	if target.TLS != nil { // its certificate is also that of other test servers
		p.transport.TLSClientConfig.RootCAs = target.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	}
	return p
}

// outcome sends one charge and says what is known of it.
func outcome(t *testing.T, p *Provider) string {
	t.Helper()
	out, err := p.Charge(t.Context(), &anyCharge)
	var e *provider.Error
	switch {
	case err == nil && out.Charge != nil:
		return "charge"
	case !errors.As(err, &e):
		return fmt.Sprintf("%+v, %v", out, err)
	}
	if strings.Contains(err.Error(), hush) || strings.Contains(err.Error(), "sk_test_x") {
		t.Errorf("a secret is told: %v", err)
	}
	return string(e.Kind)
}

// counted is a Stripe that makes charges, and breaks off while dying.
func counted(t *testing.T, start func(http.Handler) *httptest.Server) (s *httptest.Server, requests *atomic.Int64, dying *atomic.Bool) {
	t.Helper()
	requests, dying = new(atomic.Int64), new(atomic.Bool)
	s = start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		if r.Header.Get("Proxy-Authorization") != "" {
			t.Error("the provider is told the proxy's password")
		}
		if dying.Load() {
			panic(http.ErrAbortHandler)
		}
		_, _ = io.WriteString(w, chargeAnswer)
	}))
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s, requests, dying
}

// With https a proxy sees no request: what it says instead of making a tunnel is said before
// anything was sent.
func TestTunnelThroughAProxy(t *testing.T) {
	target, requests, dying := counted(t, httptest.NewTLSServer)
	for _, scheme := range []string{"http", "https"} {
		proxy := &testProxy{}
		start := map[string]func(http.Handler) *httptest.Server{"http": httptest.NewServer, "https": httptest.NewTLSServer}[scheme]
		server := start(proxy)
		t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
		address := server.Listener.Addr().String()
		before := requests.Load()
		if got := outcome(t, through(t, scheme, address, target)); got != "charge" || proxy.asked.Load() != 1 || proxy.unknown.Load() != 0 || requests.Load() != before+1 {
			t.Errorf("%s: got %s, with %d and %d requests, %d of them strangers", scheme, got, proxy.asked.Load(), requests.Load()-before, proxy.unknown.Load())
		}
		dying.Store(true)
		if got := outcome(t, through(t, scheme, address, target)); got != string(provider.Unknown) {
			t.Errorf("%s, broken off in the tunnel: got %s", scheme, got)
		}
		dying.Store(false)
		before = requests.Load()
		for _, proxy.status = range []int{301, 400, 401, 403, 404, 407, 429, 500, 502, 503, 504} {
			if got := outcome(t, through(t, scheme, address, target)); got != string(provider.NotExecuted) {
				t.Errorf("%s, the proxy answers %d: got %s", scheme, proxy.status, got)
			}
		}
		proxy.status = 0
		proxy.hangUp.Store(true)
		if got := outcome(t, through(t, scheme, address, target)); got != string(provider.NotExecuted) {
			t.Errorf("%s, no tunnel after all: got %s", scheme, got)
		}
		server.Close()
		if got := outcome(t, through(t, scheme, address, target)); got != string(provider.NotExecuted) {
			t.Errorf("%s, the proxy is down: got %s", scheme, got)
		}
		if requests.Load() != before {
			t.Errorf("%s: the provider had %d requests", scheme, requests.Load()-before)
		}
	}
}

func TestSocksProxy(t *testing.T) {
	for _, start := range []func(http.Handler) *httptest.Server{httptest.NewServer, httptest.NewTLSServer} {
		target, requests, dying := counted(t, start)
		address := socks(t, 0)
		if got := outcome(t, through(t, "socks5", address, target)); got != "charge" || requests.Load() != 1 {
			t.Errorf("got %s, with %d requests", got, requests.Load())
		}
		dying.Store(true)
		if got := outcome(t, through(t, "socks5", address, target)); got != string(provider.Unknown) {
			t.Errorf("broken off: got %s", got)
		}
		if got := outcome(t, through(t, "socks5", socks(t, 5), target)); got != string(provider.NotExecuted) || requests.Load() != 2 {
			t.Errorf("refused: got %s, with %d requests", got, requests.Load())
		}
	}
}

// With plain http the proxy has the request: only what says that it did not hand it on is not
// executed.
func TestPlainRequestThroughAProxy(t *testing.T) {
	target, requests, dying := counted(t, httptest.NewServer)
	proxy := &testProxy{}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	p := through(t, "http", server.Listener.Addr().String(), target)
	if got := outcome(t, p); got != "charge" || proxy.asked.Load() != 1 || proxy.unknown.Load() != 0 || requests.Load() != 1 {
		t.Errorf("got %s, with %d and %d requests", got, proxy.asked.Load(), requests.Load())
	}
	dying.Store(true)
	if got := outcome(t, p); got != string(provider.Unknown) {
		t.Errorf("broken off behind the proxy: got %s", got)
	}
	for status, want := range map[int]provider.Kind{
		407: provider.NotExecuted, 401: provider.Credentials, 403: provider.Credentials, 429: provider.RateLimited,
		200: provider.Unknown, 302: provider.Unknown, 400: provider.Unknown, 402: provider.Unknown, 404: provider.Unknown, 408: provider.Unknown, 422: provider.Unknown,
		500: provider.StoredFailure, 502: provider.Unknown, 503: provider.Unknown, 504: provider.Unknown,
	} {
		proxy.status = status
		if got := outcome(t, p); got != string(want) {
			t.Errorf("the proxy answers %d: got %s, want %s", status, got, want)
		}
	}
	server.Close()
	// a connection that is kept may be taken once more before its end is noticed, and then nothing
	// is certain
	p.Close()
	if got := outcome(t, p); got != string(provider.NotExecuted) {
		t.Errorf("the proxy is down: got %s", got)
	}
}

func TestParseProxy(t *testing.T) {
	for raw, want := range map[string]bool{
		"": true, "http://proxy:3128": true, "https://proxy": true, "socks5://u:p@proxy:1080": true, "http://u:p@[::1]:3128/": true,
		"proxy:3128": false, "proxy": false, "socks4://proxy": false, "ftp://proxy": false, "http://": false, "http:///x": false, "http://proxy/x": false, "http://proxy?x": false,
		"http://proxy#x": false, "http://proxy:0": false, "http://proxy:65536": false, "http://proxy:": false, "http://u:" + hush + "@pro xy": false, "http://u:" + hush + "@proxy:x": false,
	} {
		if _, err := ParseProxy(raw); (err == nil) != want || err != nil && strings.Contains(err.Error(), hush) {
			t.Errorf("%q: %v", raw, err)
		}
	}
	if _, err := New(Config{APIKey: "sk_test_x", Proxy: "ftp://u:" + hush + "@x"}); err == nil || strings.Contains(err.Error(), hush) {
		t.Error(err)
	}
	if c := (Config{Proxy: "http://u:" + hush + "@x"}); strings.Contains(fmt.Sprintf("%v %+v %#v", c, c, c), hush) {
		t.Errorf("a configuration tells the proxy's password: %v", c)
	}
}
