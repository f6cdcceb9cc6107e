package stripe

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"paidonce/provider"
)

// Go reads the proxy variables once a process and spares loopback addresses, so only the setting
// itself can be looked at.
func TestTransportSettings(t *testing.T) {
	tr := newTransport(7)
	if tr.Proxy != nil {
		t.Error("a proxy of the environment would see charges and the key")
	}
	if tr.ForceAttemptHTTP2 || tr.MaxIdleConnsPerHost != 7 || !tr.DisableCompression {
		t.Errorf("%+v", tr)
	}
}

var anyCharge = provider.ChargeRequest{
	IdempotencyKey: "po_1", Tags: provider.Tags{Operation: "op_1", Installation: "in_1"}, Amount: 2000, Currency: "usd", Source: "tok_visa", Capture: true,
}

const chargeAnswer = `{"id":"ch_1","object":"charge","status":"succeeded","amount":2000,"amount_captured":2000,"currency":"usd","captured":true,` +
	`"livemode":false,"metadata":{"paidonce_operation":"op_1","paidonce_installation":"in_1"}}`

func newTestProvider(t *testing.T, url string) *Provider {
	t.Helper()
	p, err := New(Config{APIKey: "sk_test_x", BaseURL: url, Timeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// deadOnSecond is a connection that takes one request and not a byte of the next.
type deadOnSecond struct {
	net.Conn
	writes atomic.Int64
}

func (c *deadOnSecond) Write(b []byte) (int, error) {
	if c.writes.Add(1) > 1 {
		return 0, syscall.EPIPE
	}
	return c.Conn.Write(b)
}

// net/http's own retry when nothing was written is safe, and stays although the key's header is
// hidden from it.
func TestSentAgainWhenNothingWasWritten(t *testing.T) {
	var requests atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		if body, _ := io.ReadAll(r.Body); r.Header.Get("Idempotency-Key") != "po_1" || len(body) == 0 {
			t.Errorf("key %q, %d bytes", r.Header.Get("Idempotency-Key"), len(body))
		}
		_, _ = io.WriteString(w, chargeAnswer)
	}))
	defer s.Close()
	p := newTestProvider(t, s.URL)
	tr := p.transport
	var dialled atomic.Int64
	tr.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, address)
		dialled.Add(1)
		return &deadOnSecond{Conn: c}, err
	}
	for n := range int64(3) {
		out, err := p.Charge(context.Background(), &anyCharge)
		if err != nil || out.Charge == nil || requests.Load() != n+1 || dialled.Load() != n+1 {
			t.Fatalf("%+v, %v after %d requests on %d connections, want %d on as many", out, err, requests.Load(), dialled.Load(), n+1)
		}
	}
}

// undoing gives the key's header its usual name back, as if once weren't there: net/http then sends
// again by itself.
type undoing struct{ base http.RoundTripper }

func (u undoing) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set(keyHeader, req.Header[keyHeaderHidden][0]) //nolint:staticcheck // the spelling is the point
	return u.base.RoundTrip(req)
}

// The second line of defence: should a request go out twice after all, the answer to the second
// proves nothing about the first.
func TestAnswerToResend(t *testing.T) {
	refusal := func(code string) string {
		return `{"error":{"type":"invalid_request_error","message":"No.","code":"` + code + `"}}`
	}
	for name, c := range map[string]struct {
		status int
		body   string
		want   provider.Kind // empty: the outcome stands
	}{
		"rate limit":             {429, "", provider.Unknown},
		"lock timeout":           {400, refusal("lock_timeout"), provider.Unknown},
		"unauthorised":           {401, "", provider.Unknown},
		"forbidden":              {403, "", provider.Unknown},
		"captured already":       {400, refusal("charge_already_captured"), provider.Unknown},
		"refunded already":       {400, refusal("charge_already_refunded"), provider.Unknown},
		"unexpected state":       {400, refusal("payment_intent_unexpected_state"), provider.Unknown},
		"refused for the source": {400, refusal("resource_missing"), ""},
		"in flight":              {409, refusal("idempotency_key_in_use"), provider.InFlight},
		"charge":                 {200, chargeAnswer, ""},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			var requests atomic.Int64
			go func() {
				for {
					conn, err := l.Accept()
					if err != nil {
						return
					}
					go serveDyingOnce(conn, &requests, fmt.Sprintf("HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%s", c.status, len(c.body), c.body))
				}
			}()
			p := newTestProvider(t, "http://"+l.Addr().String())
			p.backend = newBackend("http://"+l.Addr().String(), &observer{base: undoing{p.transport}, clock: p.clock})
			p.direct = nil
			if _, err := p.Charge(context.Background(), &anyCharge); err != nil {
				t.Fatal(err)
			}
			out, err := p.Charge(context.Background(), &anyCharge)
			if requests.Load() != 3 {
				t.Fatalf("%d requests; this test is for three", requests.Load())
			}
			var e *provider.Error
			if errors.As(err, &e) != (c.want != "") || e != nil && e.Kind != c.want {
				t.Errorf("got %+v, %v, want %q", out, err, c.want)
			}
		})
	}
}

// serveDyingOnce answers the first request with a charge, dies at the second, and has answer for
// the others.
func serveDyingOnce(conn net.Conn, requests *atomic.Int64, answer string) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	for {
		req, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, req.Body)
		switch requests.Add(1) {
		case 1:
			_, _ = fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(chargeAnswer), chargeAnswer)
		case 2:
			return
		default:
			_, _ = io.WriteString(conn, answer)
		}
	}
}

// What goes through net/http, as everything does with a proxy, isn't sent again by it either.
func TestTransportDoesNotSendAgain(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var requests atomic.Int64
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go serveDyingOnce(conn, &requests, "HTTP/1.1 429 X\r\nContent-Length: 0\r\n\r\n")
		}
	}()
	p := newTestProvider(t, "http://"+l.Addr().String())
	p.direct = nil
	for n, want := range []string{"charge", "unknown"} {
		if got := kindOf(p.Charge(t.Context(), &anyCharge)); got != want {
			t.Errorf("charge %d: got %s, want %s", n, got, want)
		}
	}
	if n := requests.Load(); n != 2 {
		t.Errorf("got %d requests for two calls, want 2", n)
	}
}
