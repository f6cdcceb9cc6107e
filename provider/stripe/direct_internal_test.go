package stripe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"paidonce/provider"
)

// answering is a server that writes the same bytes to each request, and counts requests and
// connections.
type answering struct {
	url                   string
	requests, connections atomic.Int64
}

func serveBytes(t *testing.T, answer string) *answering {
	t.Helper()
	a := &answering{}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.requests.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		c, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(c, answer)
		_ = c.Close()
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			a.connections.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	a.url = s.URL
	return a
}

func TestDirectReadsAnyAnswer(t *testing.T) {
	whole := fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(chargeAnswer), chargeAnswer)
	chunks := fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(chargeAnswer), chargeAnswer)
	for name, c := range map[string]struct{ answer, want string }{
		"with a length":            {"HTTP/1.1 200 OK\r\n" + whole, "charge"},
		"in chunks":                {"HTTP/1.1 200 OK\r\n" + chunks, "charge"},
		"up to the end":            {"HTTP/1.0 200 OK\r\n\r\n" + chargeAnswer, "charge"},
		"after 1xx":                {strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", maxInterim) + "HTTP/1.1 200 OK\r\n" + whole, "charge"},
		"after too many 1xx":       {strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", maxInterim+1) + "HTTP/1.1 200 OK\r\n" + whole, "unknown"},
		"switching protocols":      {"HTTP/1.1 101 Switching Protocols\r\n\r\n", "unknown"},
		"with too long a head":     {"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 65<<10) + "\r\n" + whole, "unknown"},
		"cut in the head":          {"HTTP/1.1 200 OK\r\nContent-Le", "unknown"},
		"cut in the body":          {"HTTP/1.1 200 OK\r\nContent-Length: 4000\r\n\r\n" + chargeAnswer, "unknown"},
		"cut in a chunk":           {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfff\r\n" + chargeAnswer, "unknown"},
		"that is no HTTP":          {"+OK ready\r\n", "unknown"},
		"with two lengths":         {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n" + whole, "unknown"},
		"without a word":           {"", "unknown"},
		"with a refusal in chunks": {"HTTP/1.1 401 Unauthorized\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "not executed"},
	} {
		t.Run(name, func(t *testing.T) {
			a := serveBytes(t, c.answer)
			p := newTestProvider(t, a.url)
			if got := kindOf(p.Charge(t.Context(), &anyCharge)); got != c.want || a.requests.Load() != 1 {
				t.Errorf("got %s after %d requests, want %s after 1", got, a.requests.Load(), c.want)
			}
		})
	}
}

// kindOf says in a word what is known of a charge.
func kindOf(out provider.ChargeOutcome, err error) string {
	var e *provider.Error
	switch {
	case err == nil && out.Charge != nil:
		return "charge"
	case !errors.As(err, &e):
		return fmt.Sprintf("%+v, %v", out, err)
	case e.Kind == provider.Unknown:
		return "unknown"
	}
	return "not executed"
}

func TestDirectKeepsConnections(t *testing.T) {
	for name, start := range map[string]func(http.Handler) *httptest.Server{"http": httptest.NewServer, "https": httptest.NewTLSServer} {
		t.Run(name, func(t *testing.T) {
			var last atomic.Bool
			var mu sync.Mutex
			callers := map[string]int{}
			s := start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				callers[r.RemoteAddr]++
				mu.Unlock()
				if last.Load() {
					w.Header().Set("Connection", "close")
				}
				_, _ = io.WriteString(w, chargeAnswer)
			}))
			defer s.Close()
			p := newTestProvider(t, s.URL)
			if s.TLS != nil {
				p.transport.TLSClientConfig.RootCAs = s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
			}
			charge := func(connections, idle int) {
				t.Helper()
				if got := kindOf(p.Charge(t.Context(), &anyCharge)); got != "charge" {
					t.Fatalf("got %s, want a charge", got)
				}
				mu.Lock()
				defer mu.Unlock()
				if len(callers) != connections || len(p.direct.idle) != idle {
					t.Fatalf("%d connections, %d of them idle, want %d and %d", len(callers), len(p.direct.idle), connections, idle)
				}
			}
			for range 3 {
				charge(1, 1)
			}
			last.Store(true)
			charge(1, 0)
			last.Store(false)
			charge(2, 1)
			p.transport.IdleConnTimeout = 0
			p.direct.closeOld()
			p.transport.IdleConnTimeout = time.Minute
			if n := len(p.direct.idle); n != 0 {
				t.Errorf("%d connections are kept longer than they may", n)
			}
			charge(3, 1)
			p.Close()
			charge(4, 1)
		})
	}
}

// What arrives on an idle connection is the answer to nothing that is asked later.
func TestDirectTakesNoStrayAnswer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	first := make(chan net.Conn, 2)
	answer := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(chargeAnswer), chargeAnswer)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			first <- c
			buffer := make([]byte, 8<<10)
			if _, err := c.Read(buffer); err == nil {
				_, _ = io.WriteString(c, answer)
			}
		}
	}()
	p := newTestProvider(t, "http://"+l.Addr().String())
	if got := kindOf(p.Charge(t.Context(), &anyCharge)); got != "charge" {
		t.Fatal(got)
	}
	c := <-first
	defer c.Close()
	_, _ = io.WriteString(c, "HTTP/1.1 402 Payment Required\r\nContent-Length: 2\r\n\r\n{}")
	line := p.direct.idle[0]
	// until it has arrived here; what is read of it is lost, the rest is still there
	for quiet(line.socket) {
		time.Sleep(time.Millisecond)
	}
	if got := kindOf(p.Charge(t.Context(), &anyCharge)); got != "charge" || len(first) != 1 {
		t.Errorf("got %s on %d new connections, want a charge on one", got, len(first))
	}
}

// Whoever gives up isn't held by a server that doesn't answer, and its connection is of no more
// use.
func TestDirectGivesUp(t *testing.T) {
	arrived, release := make(chan struct{}, 1), make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		arrived <- struct{}{}
		<-release
	}))
	defer s.Close()
	defer close(release)
	p := newTestProvider(t, s.URL)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-arrived; cancel() }()
	if got := kindOf(p.Charge(ctx, &anyCharge)); got != "unknown" || len(p.direct.idle) != 0 {
		t.Errorf("cancelled: got %s, and %d connections are kept", got, len(p.direct.idle))
	}
	p.timeout = 50 * time.Millisecond
	if got := kindOf(p.Charge(t.Context(), &anyCharge)); got != "unknown" || len(p.direct.idle) != 0 {
		t.Errorf("timed out: got %s, and %d connections are kept", got, len(p.direct.idle))
	}
}

// What is sent directly is what stripe-go would send.
func TestDirectSendsWhatTheSDKSends(t *testing.T) {
	var seen []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Header.Del("Accept-Encoding") // net/http's own
		seen = append(seen, fmt.Sprint(r.Method, r.Host, r.RequestURI, r.Proto, r.ContentLength, r.TransferEncoding, r.Header, string(body)))
		_, _ = io.WriteString(w, chargeAnswer)
	}))
	defer s.Close()
	p := newTestProvider(t, s.URL+"/base/")
	for range 2 {
		if got := kindOf(p.Charge(t.Context(), &anyCharge)); got != "charge" {
			t.Fatalf("got %s, want a charge", got)
		}
		p.direct = nil
	}
	if len(seen) != 2 || seen[0] != seen[1] || !strings.Contains(seen[0], "Bearer sk_test_x") {
		t.Errorf("sent directly:\n%s\nsent by stripe-go:\n%s", seen[0], seen[len(seen)-1])
	}
}

// brokenOnSecond is a connection that breaks in the middle of its second request.
type brokenOnSecond struct {
	net.Conn
	writes atomic.Int64
}

func (c *brokenOnSecond) Write(b []byte) (int, error) {
	if c.writes.Add(1) > 1 {
		n, _ := c.Conn.Write(b[:20])
		return n, syscall.EPIPE
	}
	return c.Conn.Write(b)
}

// A request of which some bytes were written is not sent again: the server may have had all of it.
func TestDirectSendsNothingTwice(t *testing.T) {
	var requests atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		_, _ = io.WriteString(w, chargeAnswer)
	}))
	defer s.Close()
	p := newTestProvider(t, s.URL)
	var dialled atomic.Int64
	p.transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		dialled.Add(1)
		c, err := (&net.Dialer{}).DialContext(ctx, network, address)
		return &brokenOnSecond{Conn: c}, err
	}
	for n, want := range []string{"charge", "unknown"} {
		if got := kindOf(p.Charge(t.Context(), &anyCharge)); got != want {
			t.Errorf("charge %d: got %s, want %s", n, got, want)
		}
	}
	if requests.Load() != 1 || dialled.Load() != 1 {
		t.Errorf("got %d requests on %d connections, want 1 on 1", requests.Load(), dialled.Load())
	}
}
