package webhook

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"paidonce/outbox"
)

func TestPublic(t *testing.T) {
	for address, want := range map[string]bool{
		"93.184.215.14": true, "1.1.1.1": true, "2606:4700:4700::1111": true, "::ffff:1.1.1.1": true, "100.128.0.1": true, "172.32.0.1": true,
		"127.0.0.1": false, "127.255.255.255": false, "0.0.0.0": false, "0.1.2.3": false, "10.1.2.3": false, "172.16.0.1": false, "172.31.255.255": false,
		"192.168.1.1": false, "169.254.169.254": false, "100.64.0.1": false, "100.127.255.255": false, "192.0.0.8": false, "192.0.2.1": false,
		"198.18.0.1": false, "198.19.255.255": false, "198.51.100.1": false, "203.0.113.1": false, "192.88.99.1": false, "224.0.0.1": false, "239.255.255.255": false,
		"240.0.0.1": false, "255.255.255.255": false,
		"::": false, "::1": false, "fe80::1": false, "fe80::1%eth0": false, "fc00::1": false, "fd00:ec2::254": false, "ff02::1": false, "fec0::1": false,
		"::ffff:127.0.0.1": false, "::ffff:169.254.169.254": false, "::127.0.0.1": false, "64:ff9b::7f00:1": false, "64:ff9b:1::1": false, "100::1": false,
		// IPv4 inside: through NAT64 it decides; other coats lead nowhere public.
		"64:ff9b::a29f:8ae8": true, "64:ff9b::1.1.1.1": true, "64:ff9b::": false, "64:ff9b::10.0.0.1": false, "64:ff9b::169.254.169.254": false,
		"64:ff9b::192.168.1.1": false, "64:ff9b::100.100.100.200": false, "64:ff9b::224.0.0.1": false, "64:ff9b::255.255.255.255": false, "64:ff9b::192.0.2.1": false,
		"64:ff9b::1:1.1.1.1": false, "64:ff9b:0:0:0:1:101:101": false, "64:ff9b:1::1.1.1.1": false, "64:ff9b:1:fffe::1.1.1.1": false, "64:ff9a::1.1.1.1": false,
		"::ffff:0:1.1.1.1": false, "::1.1.1.1": false, "2002:101:101::": false, "2002:101:101::1": false, "2001:0:101:101::fefe:fefe": false, "100.100.100.200": false,
		"2001:db8::1": false, "2001::1": false, "2001:20::1": false, "2002:7f00:1::": false, "3fff::1": false, "5f00::1": false,
	} {
		if got := public(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s is public: %t, want %t", address, got, want)
		}
	}
	if public(netip.Addr{}) {
		t.Error("no address is public")
	}
}

func TestCheckURL(t *testing.T) {
	dns := newNameServer(t)
	dns.answer.Store(&[]netip.Addr{netip.MustParseAddr("1.1.1.1")})
	g := Guard{Resolver: dns.resolver()}
	for raw, want := range map[string]string{
		"https://example.com/hooks?x=1": "", "http://example.com:8080": "", "https://1.1.1.1/": "", "https://[2606:4700:4700::1111]:443/": "", "HTTPS://EXAMPLE.com./": "",
		"ftp://example.com/": "http", "//example.com/": "http", "example.com": "http", "https://": "http", "https:///x": "http", "": "http", "https:example.com": "http",
		"https://a:b@example.com/": "password", "https://a@example.com/": "password", "https://example.com/#x": "fragment", "https://example.com/#": "fragment",
		"https://exämple.com/": "ASCII", "https://example.com/a b": "ASCII", "https://example.com:0/": "port", "https://example.com:65536/": "port",
		"http://127.0.0.1/": "not public", "http://169.254.169.254/latest/meta-data": "not public", "http://[::1]/": "not public", "http://[::ffff:10.0.0.1]/": "not public",
		"http://localhost/": "not public", "http://LOCALHOST./": "not public", "http://a.localhost/": "not public", "http://[fe80::1%25eth0]/": "not public",
		"http://127.1/": "usual form", "http://2130706433/": "usual form", "http://0x7f000001/": "usual form", "http://0177.0.0.1/": "usual form", "http://10.0.0.1./": "not public",
		"https://[64:ff9b::a29f:8ae8]/h": "", "https://[64:ff9b::7f00:1]/h": "not public", "https://[2002:7f00:1::]/h": "not public", "https://100.100.100.200/h": "not public",
	} {
		err := g.CheckURL(t.Context(), raw)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", raw, err, want)
		}
	}
	// what DNS64 tells of an IPv4-only host
	dns.answer.Store(&[]netip.Addr{netip.MustParseAddr("64:ff9b::1.1.1.1")})
	if err := g.CheckURL(t.Context(), "https://example.com/"); err != nil {
		t.Errorf("a name that leads through NAT64: %v", err)
	}
	dns.answer.Store(&[]netip.Addr{netip.MustParseAddr("64:ff9b::10.0.0.1")})
	if err := g.CheckURL(t.Context(), "https://example.com/"); !errors.Is(err, ErrForbiddenAddress) {
		t.Errorf("a name that leads to a private address through NAT64: %v", err)
	}
	dns.answer.Store(&[]netip.Addr{netip.MustParseAddr("1.1.1.1"), netip.MustParseAddr("10.0.0.1")})
	if err := g.CheckURL(t.Context(), "https://example.com/"); !errors.Is(err, ErrForbiddenAddress) {
		t.Errorf("a name that also leads to a private address: %v", err)
	}
	g.AllowPrivate = true
	for _, raw := range []string{"http://127.0.0.1:1/", "http://localhost/", "https://example.com/"} {
		if err := g.CheckURL(t.Context(), raw); err != nil {
			t.Errorf("allowed: %q: %v", raw, err)
		}
	}
	if err := g.CheckURL(t.Context(), "http://u@127.0.0.1/"); err == nil {
		t.Error("a user is allowed with private addresses")
	}
}

// TestDialedAddress: what counts is the address that is connected to, whatever the name led to
// before.
func TestDialedAddress(t *testing.T) {
	var hits atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	defer server.Close()
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	dns := newNameServer(t)
	dns.answer.Store(&[]netip.Addr{netip.MustParseAddr("1.1.1.1")})
	g := Guard{Resolver: dns.resolver()}
	name := "http://rebinding.example.com:" + port + "/"
	if err := g.CheckURL(t.Context(), name); err != nil {
		t.Fatalf("at registration: %v", err)
	}
	// DNS changes between check and dial
	dns.answer.Store(&[]netip.Addr{netip.MustParseAddr("127.0.0.1")})
	t.Setenv("HTTP_PROXY", server.URL)
	s := New(Config{Guard: g})
	defer s.CloseIdle()
	for _, target := range []string{name, server.URL, "http://127.0.0.1:" + port, "http://[::1]:" + port, "http://localhost:" + port, "http://169.254.169.254/", "http://[::ffff:127.0.0.1]:" + port, "http://[64:ff9b::127.0.0.1]:" + port} {
		_, err := s.Send(t.Context(), message(target))
		if !errors.Is(err, ErrForbiddenAddress) && (err == nil || target != "http://localhost:"+port) { // not every DNS serves localhost
			t.Errorf("%s: %v", target, err)
		}
	}
	if n := hits.Load(); n != 0 {
		t.Errorf("%d requests reached a private address", n)
	}
	allowed := New(Config{Guard: Guard{AllowPrivate: true, Resolver: g.Resolver}})
	defer allowed.CloseIdle()
	for _, target := range []string{name, server.URL} {
		if a, err := allowed.Send(t.Context(), message(target)); err != nil || a.Status != http.StatusOK {
			t.Errorf("allowed: %s: %+v, %v", target, a, err)
		}
	}
	if n := hits.Load(); n != 2 {
		t.Errorf("%d requests, want 2", n)
	}
}

func message(target string) outbox.Message {
	return outbox.Message{URL: target, Secrets: []string{"whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz"}, EventID: "evt_1", Payload: []byte("{}")}
}

// TestBodies: endless and dripping answers are left, and their status counts; an answer that never
// begins does not.
func TestBodies(t *testing.T) {
	over := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		write := func(s string) error {
			_, err := w.Write([]byte(s))
			_ = http.NewResponseController(w).Flush()
			return err
		}
		switch r.URL.Path {
		case "/endless":
			for write(strings.Repeat("x", 1<<16)) == nil {
			}
		case "/dripping":
			for write("x") == nil {
				time.Sleep(50 * time.Millisecond)
			}
		case "/header":
			w.Header().Set("X-Long", strings.Repeat("x", 1<<16))
			w.WriteHeader(http.StatusOK)
		default:
			<-over
		}
	}))
	defer server.Close()
	defer server.CloseClientConnections()
	defer close(over)
	s := New(Config{Guard: Guard{AllowPrivate: true}, Timeout: 300 * time.Millisecond})
	for path, c := range map[string]struct {
		status, atMost int
		fails          bool
	}{"/endless": {200, bodyKept, false}, "/dripping": {200, 100, false}, "/header": {0, 0, true}, "/silent": {0, 0, true}} {
		began := time.Now()
		a, err := s.Send(t.Context(), message(server.URL+path))
		if a.Status != c.status || len(a.Body) > c.atMost || (err != nil) != c.fails || time.Since(began) > 5*time.Second {
			t.Errorf("%s: status %d, %d bytes, %v after %s", path, a.Status, len(a.Body), err, time.Since(began))
		}
		if err != nil && strings.Contains(err.Error(), server.URL) {
			t.Errorf("the reason repeats the URL: %v", err)
		}
	}
	if _, err := s.Send(t.Context(), outbox.Message{URL: server.URL}); err == nil {
		t.Error("sent without a signature")
	}
}

// nameServer is a DNS server on this machine whose answer can be changed; names that do not begin
// with a letter do not exist.
type nameServer struct {
	conn   net.PacketConn
	answer atomic.Pointer[[]netip.Addr]
}

func newNameServer(t *testing.T) *nameServer {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &nameServer{conn: conn}
	t.Cleanup(func() { _ = conn.Close() })
	go s.serve()
	return s
}

func (s *nameServer) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", s.conn.LocalAddr().String())
	}}
}

func (s *nameServer) serve() {
	buffer := make([]byte, 1500)
	for {
		n, from, err := s.conn.ReadFrom(buffer)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(buffer[:n]) != nil || len(m.Questions) != 1 {
			continue
		}
		q := m.Questions[0]
		m.Response, m.Additionals = true, nil
		for _, a := range *s.answer.Load() {
			h := dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, Type: q.Type, TTL: 0}
			switch {
			case q.Type == dnsmessage.TypeA && a.Is4():
				m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AResource{A: a.As4()}})
			case q.Type == dnsmessage.TypeAAAA && a.Is6():
				m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AAAAResource{AAAA: a.As16()}})
			}
		}
		if packed, err := m.Pack(); err == nil {
			_, _ = s.conn.WriteTo(packed, from)
		}
	}
}
