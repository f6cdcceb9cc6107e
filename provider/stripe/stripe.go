// Package stripe is the adapter to Stripe: provider.Provider on stripe-go.
//
// One call is one attempt. stripe-go's own retries are off, its globals are never touched, and what
// its answers mean is decided in one table (classify.go).
package stripe

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	sdk "github.com/stripe/stripe-go/v76"
	"github.com/stripe/stripe-go/v76/form"

	"paidonce/provider"
)

// Config says how Stripe is reached.
type Config struct {
	// APIKey is a secret (sk_…) or restricted (rk_…) key.
	APIKey string
	// BaseURL is where Stripe is, without /v1; a trailing slash makes no difference. Empty:
	// https://api.stripe.com.
	BaseURL string
	// Timeout bounds one HTTP exchange, from dialling to the last byte of the answer. A look-up
	// makes one a page. 0: 20 s.
	Timeout time.Duration
	// MaxIdleConns is how many connections are kept for the next call. It should be near the number
	// of calls in flight, or each call pays for a handshake. 0: 1024.
	MaxIdleConns int
	// Proxy is what Stripe is reached through: http://, https:// or socks5://host:port, with user
	// and password if it asks for them. Empty: none; those of the environment are never used.
	Proxy string
	// MaxPages caps the list of one charge's refunds, at 100 a page; beyond it the look-up is
	// inconclusive. 0: 1000.
	MaxPages int
}

const (
	defaultTimeout = 20 * time.Second
	defaultIdle    = 1024
	defaultPages   = 1000
	oneObject      = 1 << 20 // bytes of an answer that is one object; a charge has about 4 KiB
	onePage        = 8 << 20 // of an answer with 100 of them, each with metadata of up to 27 kB
)

// String leaves the key out, so that a configuration can be printed.
func (c Config) String() string {
	return fmt.Sprintf("stripe(%s, timeout %s)", c.BaseURL, c.Timeout)
}

// GoString is String, for %#v.
func (c Config) GoString() string { return c.String() }

// LogValue is String, for slog.
func (c Config) LogValue() slog.Value { return slog.StringValue(c.String()) }

// Provider talks to one Stripe account. It is safe for concurrent use.
type Provider struct {
	backend   sdk.Backend
	key       string
	livemode  bool // which mode the key is for
	timeout   time.Duration
	pages     int
	transport *http.Transport
	direct    *direct // nil with a proxy
	clock     *clock

	charges searches[chargeFields, provider.Charge]
	intents searches[intentFields, provider.Intent]
}

var _ provider.Provider = (*Provider)(nil)

// New checks the configuration, naming every problem at once, and makes a provider. It sends
// nothing.
func New(cfg Config) (*Provider, error) {
	base, err := baseURL(cfg.BaseURL)
	var problems []error
	if err != nil {
		problems = append(problems, err)
	}
	if !strings.HasPrefix(cfg.APIKey, "sk_") && !strings.HasPrefix(cfg.APIKey, "rk_") || strings.ContainsFunc(cfg.APIKey, notKeyRune) {
		problems = append(problems, errors.New("the API key has to be a secret or restricted key: sk_… or rk_…"))
	}
	proxy, err := ParseProxy(cfg.Proxy)
	if err != nil {
		problems = append(problems, fmt.Errorf("the proxy %w", err))
	}
	if cfg.Timeout < 0 || cfg.MaxIdleConns < 0 || cfg.MaxPages < 0 {
		problems = append(problems, errors.New("timeout, idle connections and pages can't be negative"))
	}
	if len(problems) > 0 {
		return nil, fmt.Errorf("stripe: %w", errors.Join(problems...))
	}
	p := &Provider{key: cfg.APIKey, timeout: orElse(cfg.Timeout, defaultTimeout), pages: orElse(cfg.MaxPages, defaultPages)}
	p.livemode = strings.HasPrefix(cfg.APIKey[len("sk_"):], "live_")
	p.clock = &clock{}
	p.charges = searches[chargeFields, provider.Charge]{
		provider: p, path: "/v1/charges", hit: p.charge, whole: (*chargeFields).whole, get: p.GetCharge, searching: make(chan struct{}, searchesMax),
		look: func(c *chargeFields) passed { return passed{c.name(), c.Metadata.tags(), c.Created.Time} },
		tags: func(c *provider.Charge) provider.Tags { return c.Tags },
	}
	p.intents = searches[intentFields, provider.Intent]{
		provider: p, path: intentsPath, hit: p.intent, whole: (*intentFields).whole, get: p.GetIntent, searching: make(chan struct{}, searchesMax),
		look: func(i *intentFields) passed { return passed{i.name(), i.Metadata.tags(), i.Created.Time} },
		tags: func(i *provider.Intent) provider.Tags { return i.Tags },
	}
	p.transport = newTransport(orElse(cfg.MaxIdleConns, defaultIdle))
	if proxy != nil {
		p.transport.Proxy = http.ProxyURL(proxy)
	}
	p.backend = newBackend(base, &observer{base: p.transport, clock: p.clock})
	if b, is := p.backend.(*sdk.BackendImplementation); is && proxy == nil {
		if p.direct, err = newDirect(base, p.key, p.transport, b, p.clock); err != nil {
			return nil, fmt.Errorf("stripe: %w", err)
		}
	}
	return p, nil
}

func newBackend(base string, transport http.RoundTripper) sdk.Backend {
	return sdk.GetBackendWithConfig(sdk.APIBackend, &sdk.BackendConfig{
		URL:               sdk.String(base),
		HTTPClient:        &http.Client{Transport: transport, CheckRedirect: noRedirect},
		MaxNetworkRetries: sdk.Int64(0),
		EnableTelemetry:   sdk.Bool(false),
		// Its log lines contain bodies of answers; what matters of them is in the errors we return.
		LeveledLogger: &sdk.LeveledLogger{Level: sdk.LevelNull},
	})
}

// Close lets go of idle connections. Calls that run are not disturbed.
func (p *Provider) Close() {
	p.transport.CloseIdleConnections()
	if p.direct != nil {
		p.direct.CloseIdleConnections()
	}
}

func notKeyRune(r rune) bool {
	return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
}

func orElse[T int | time.Duration](v, other T) T {
	if v == 0 {
		return other
	}
	return v
}

func baseURL(raw string) (string, error) {
	if raw == "" {
		return sdk.APIURL, nil
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return "", errors.New("the base URL can't be parsed")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return "", errors.New("the base URL has to be http://… or https://…")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "", errors.New("the base URL can't have a user, a query or a fragment")
	}
	return strings.TrimRight(raw, "/"), nil
}

// ParseProxy reads a proxy's URL, nil for an empty one. Errors complete "the proxy …", and leave
// the URL out, which may have a password.
func ParseProxy(raw string) (*url.URL, error) {
	if raw == "" {
		return nil, nil
	}
	u, err := url.Parse(raw)
	if err != nil || !slices.Contains([]string{"http", "https", "socks5"}, u.Scheme) || u.Hostname() == "" || u.Opaque != "" {
		return nil, errors.New("must be http://, https:// or socks5://host:port")
	}
	if port := u.Port(); port != "" || strings.HasSuffix(u.Host, ":") {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return nil, errors.New("must have a port from 1 to 65535, or none")
		}
	}
	if strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("must not have a path, a query or a fragment")
	}
	return u, nil
}

// newTransport makes connections for one host. HTTP/2 stays off: there, one broken connection takes
// every call on it along and makes all their outcomes unknown. A proxy from the environment is
// never used: money goes where BaseURL and Proxy say.
func newTransport(idle int) *http.Transport {
	return &http.Transport{
		DialContext:            (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    5 * time.Second,
		MaxIdleConnsPerHost:    idle,
		IdleConnTimeout:        time.Minute,
		MaxResponseHeaderBytes: 64 << 10,
		// a connection that waits for its answer holds both; thousands may wait
		ReadBufferSize:     2 << 10,
		WriteBufferSize:    2 << 10,
		DisableCompression: true, // the bound on an answer's size holds on what is decoded
	}
}

// noRedirect hands the 3xx to us: a POST must not turn into a GET somewhere else.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// post sends one POST under our key. Without a key stripe-go would make one up, so that is refused
// here.
func (p *Provider) post(ctx context.Context, path, key string, tags provider.Tags, body *form.Values, into wire) *result {
	if !usableKey(key) {
		return &result{local: "a call that moves money needs an idempotency key of 1 to 255 printable characters"}
	}
	if tags.Operation == "" || tags.Installation == "" {
		return &result{local: "a call that moves money needs the operation's and the installation's tag: nothing else finds it again"}
	}
	return p.exchange(ctx, http.MethodPost, path, &key, body, into, oneObject)
}

// usableKey reports whether stripe-go sends the key as it is: it trims spaces and refuses long
// ones.
func usableKey(key string) bool {
	for i := range len(key) {
		if key[i] <= ' ' || key[i] > '~' {
			return false
		}
	}
	return len(key) >= 1 && len(key) <= 255
}

func (p *Provider) get(ctx context.Context, path string, query *form.Values, into wire, limit int64) *result {
	return p.exchange(ctx, http.MethodGet, path, nil, query, into, limit)
}

func (p *Provider) exchange(ctx context.Context, method, path string, key *string, values *form.Values, into wire, limit int64) *result {
	if ctx.Err() != nil {
		return &result{err: ctx.Err()} // nothing was sent
	}
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	r := &result{limit: limit, keyed: key != nil}
	if p.direct != nil && key != nil {
		r.err = p.direct.post(ctx, path, *key, values.Encode(), r)
	} else {
		r.err = p.backend.CallRaw(method, path, p.key, values, &sdk.Params{Context: r.watch(ctx), IdempotencyKey: key}, into)
	}
	if r.err == nil && r.body != nil {
		r.err = into.UnmarshalJSON(r.body)
	}
	return r
}

// wire is an object of Stripe's that an answer is decoded into.
type wire interface {
	sdk.LastResponseSetter
	UnmarshalJSON([]byte) error
}
