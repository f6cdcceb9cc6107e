package e2e

import (
	"bytes"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"paidonce/api/apitest"
)

// proxy stands before instances as gateways do: it adds headers, writes names in lower case, sends
// bodies in chunks, and tries the next instance when one has no answer.
type proxy struct {
	*httptest.Server
	mu       sync.Mutex
	backends []string
	next     atomic.Int64
}

func newProxy(t *testing.T, backends ...*proc) *proxy {
	t.Helper()
	p := &proxy{}
	p.use(backends...)
	base := &http.Transport{MaxIdleConnsPerHost: 20}
	t.Cleanup(base.CloseIdleConnections)
	p.Server = httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetXForwarded()
			r.Out.Header.Set("Via", "1.1 gateway")
			r.Out.Header.Set("X-Request-Id", "the-gateway's-own")
			r.Out.Host = r.In.Host
		},
		Transport: &gateway{proxy: p, base: base},
		ErrorLog:  log.New(t.Output(), "proxy: ", 0),
	})
	t.Cleanup(p.Close)
	return p
}

func (p *proxy) use(backends ...*proc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.backends = nil
	for _, b := range backends {
		p.backends = append(p.backends, b.url)
	}
}

// pick returns two instances to try, one after the other.
func (p *proxy) pick() [2]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := int(p.next.Add(1))
	return [2]string{p.backends[n%len(p.backends)], p.backends[(n+1)%len(p.backends)]}
}

type gateway struct {
	proxy *proxy
	base  http.RoundTripper
}

func (g *gateway) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	for _, instance := range g.proxy.pick() {
		to, bad := url.Parse(instance)
		if bad != nil {
			return nil, bad
		}
		out := req.Clone(req.Context())
		out.URL.Scheme, out.URL.Host = to.Scheme, to.Host
		out.Header = http.Header{}
		for name, values := range req.Header {
			out.Header[strings.ToLower(name)] = values
		}
		out.Body, out.ContentLength = http.NoBody, 0
		if len(body) > 0 {
			// In two chunks, whatever the client did.
			pieces := io.MultiReader(bytes.NewReader(body[:len(body)/2]),
				bytes.NewReader(body[len(body)/2:]))
			out.Body, out.ContentLength = io.NopCloser(pieces), -1
		}
		var res *http.Response
		if res, err = g.base.RoundTrip(out); err == nil {
			return res, nil
		}
	}
	return nil, errors.Join(errors.New("no instance answers"), err)
}

// Behind a gateway all is as it is without one.
func TestBehindAGateway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.serve(), w.serve()
	direct := w.client(a)
	through := *direct
	through.BaseURL = newProxy(t, a, b).URL
	long := strings.Repeat("y", 255)
	for _, c := range []struct {
		name, key, body string
		header          []string
		want            int
	}{
		{"charge", "k1", twenty, nil, 201},
		{"replay", "k1", twenty, nil, 201},
		{"another body", "k1", order(2001), nil, 422},
		{"decline", "k2", card("tok_chargeDeclined"), nil, 402},
		{"decline again", "k2", card("tok_chargeDeclined"), nil, 402},
		{"refused", "k3", order(0), nil, 400},
		{"no key", "", twenty, nil, 400},
		{"long key", long, twenty, nil, 201},
		{"too long key", long + "y", twenty, nil, 400},
		{"key with a dot", "k.", twenty, nil, 201},
		{"quoted key", `"k."`, twenty, nil, 201},
		{"wrong type", "k4", twenty, []string{"Content-Type", "text/xml"}, 415},
		{"two keys", "", twenty, []string{"Idempotency-Key", "k5", "Idempotency-Key", "k6"}, 400},
	} {
		d := direct.Charge(c.key, c.body, c.header...)
		p := through.Charge(c.key, c.body, c.header...)
		if d.Code != c.want || p.Code != c.want {
			t.Errorf("%s: %d direct, %d through the gateway, want %d\n%s%s", c.name, d.Code, p.Code,
				c.want, d.Body, p.Body)
		}
		if c.want < 300 && (string(p.Body) != string(d.Body) || !p.Replayed()) {
			t.Errorf("%s: through the gateway %s, want the replay of %s", c.name, p.Body, d.Body)
		}
		if c.want >= 400 && p.Error().Code != d.Error().Code {
			t.Errorf("%s: %s direct, %s through the gateway", c.name, d.Body, p.Body)
		}
		if p.Header.Get("Request-Id") == "" ||
			p.Header.Get("Request-Id") == d.Header.Get("Request-Id") {
			t.Errorf("%s: Request-Id %q", c.name, p.Header.Get("Request-Id"))
		}
	}
	w.sim.arm(1, fault{"type": "drop_before"})
	if p := through.Charge("k7", twenty); p.Code != http.StatusServiceUnavailable ||
		!mayRetry(t, p) {
		t.Errorf("503 through the gateway: %d %s", p.Code, p.Body)
	}
	if p := through.Charge("k7", twenty); p.Code != http.StatusCreated {
		t.Errorf("its retry: %d %s", p.Code, p.Body)
	}
	w.checkBooks()
}

// Instances are replaced one after the other while clients pay. Each payment is made once, after
// few resends.
func TestRollingRestartUnderLoad(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "PAIDONCE_PROVIDER_TIMEOUT=10s", "PAIDONCE_STALE_AFTER=30s")
	w.sim.slow(100)
	running := []*proc{w.serve(), w.serve()}
	p := newProxy(t, running...)
	c := apitest.NewClient(t, p.URL, w.apiKey)
	l := w.load(8, func() *apitest.Client { return c })
	for round := range 3 {
		l.progress(t, 10)
		old := running[round%2]
		running[round%2] = w.serve()
		early := round == 1 // the gateway learns of it only afterwards
		if !early {
			p.use(running...)
		}
		old.signal(syscall.SIGTERM)
		if early {
			l.progress(t, 10)
			p.use(running...)
		}
		if state := old.wait(); state.ExitCode() != 0 {
			t.Errorf("%s: %v, want exit code 0", old.name, state)
		}
	}
	l.progress(t, 10)
	l.end()
	if n := l.mostResends.Load(); n > 4 {
		t.Errorf("a key needed %d resends", n)
	}
	t.Logf("%d charges, at most %d resends, %d times 503", l.done.Load(), l.mostResends.Load(),
		l.unavailable.Load())
	w.sim.mustHave(t, int(l.done.Load()))
	w.checkBooks()
}
