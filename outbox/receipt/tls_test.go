package receipt_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"paidonce/outbox/receipt"
)

// certificate makes one that nobody signed but itself.
func certificate(t *testing.T, name string) (*tls.Config, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	if c, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(c)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}, roots
}

// try sends a mail to a server, and says what came of it.
func try(t *testing.T, url string, p *postOffice, roots *x509.CertPool) (state, reason string) {
	t.Helper()
	s, err := receipt.ParseServer(url)
	if err != nil {
		t.Fatal(err)
	}
	here := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, p.address)
	}
	return s.Trusting(roots).Through(here).Send(t.Context(), "receipts@example.com", "jenny@example.org", "Subject: x\r\n\r\nx\r\n")
}

// TestEncryption: over the internet no password without TLS, and no certificate that is not good;
// the machine's own mail server may be as simple as they are.
func TestEncryption(t *testing.T) {
	t.Parallel()
	good, roots := certificate(t, "mail.example.com")
	other, _ := certificate(t, "mail.example.com")
	for name, c := range map[string]struct {
		url      string
		tls      *tls.Config // of STARTTLS, or of all for smtps
		password string
		state    string
		reason   string
	}{
		"smtps":                          {url: "smtps://mail.example.com", tls: good, state: "sent"},
		"smtps, unsigned":                {url: "smtps://mail.example.com", tls: other, state: "pending", reason: "certificate"},
		"smtps, of another name":         {url: "smtps://mail.example.org", tls: good, state: "pending", reason: "certificate"},
		"smtps, unsigned, here":          {url: "smtps://127.0.0.1", tls: other, state: "pending", reason: "certificate"},
		"smtps, here":                    {url: "smtps://127.0.0.1", tls: good, state: "sent"},
		"smtps, logs in":                 {url: "smtps://shop:hunter2@mail.example.com", tls: good, password: "hunter2", state: "sent"},
		"smtps to a server without":      {url: "smtps://mail.example.com", state: "pending", reason: "TLS"},
		"nothing offered":                {url: "smtp://mail.example.com", state: "sent"},
		"offered":                        {url: "smtp://mail.example.com", tls: good, state: "sent"},
		"offered, unsigned":              {url: "smtp://mail.example.com", tls: other, state: "pending", reason: "certificate"},
		"logs in":                        {url: "smtp://shop:hunter2@mail.example.com", tls: good, password: "hunter2", state: "sent"},
		"logs in, unsigned":              {url: "smtp://shop:hunter2@mail.example.com", tls: other, password: "hunter2", state: "pending", reason: "certificate"},
		"logs in, nothing offered":       {url: "smtp://shop:hunter2@mail.example.com", password: "hunter2", state: "pending", reason: "STARTTLS"},
		"logs in, nothing offered, here": {url: "smtp://shop:hunter2@localhost", password: "hunter2", state: "sent"},
		"logs in, unsigned, here":        {url: "smtp://shop:hunter2@127.0.0.1", tls: other, password: "hunter2", state: "sent"},
		"wrong password":                 {url: "smtps://shop:hunter3@mail.example.com", tls: good, password: "hunter2", state: "pending", reason: "535"},
		"no password":                    {url: "smtps://mail.example.com", tls: good, password: "hunter2", state: "pending", reason: "502"},
		"a server without users":         {url: "smtps://shop:hunter2@mail.example.com", tls: good, state: "pending", reason: "AUTH"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &postOffice{password: c.password}
			heard := &strings.Builder{}
			secure := strings.HasPrefix(c.url, "smtps") && c.tls != nil
			p.serve(t, "127.0.0.1:0", func(s *smtp.Server) {
				s.AllowInsecureAuth = strings.Contains(name, "nothing offered")
				if !secure {
					s.TLSConfig, s.Debug = c.tls, heard
				}
			})
			if secure {
				p = wrapped(t, p, c.tls)
			}
			state, reason := try(t, c.url, p, roots)
			if state != c.state || !strings.Contains(reason, c.reason) || (state == "sent") != (len(p.taken()) == 1) {
				t.Errorf("%s: %s; want %s: %s", state, reason, c.state, c.reason)
			}
		})
	}
}

// wrapped puts TLS before a mail server.
func wrapped(t *testing.T, p *postOffice, c *tls.Config) *postOffice {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", c)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = p.server.Serve(l) }()
	t.Cleanup(func() { _ = l.Close() })
	p.address = l.Addr().String()
	return p
}

// The password is in nothing that is kept or logged, even when the mail server repeats it.
func TestPasswordIsNotTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.post.password = "right"
	s, err := receipt.ParseServer("smtp://shop:hunter2@" + w.post.address)
	if err != nil {
		t.Fatal(err)
	}
	var logged strings.Builder
	m := w.mailer(func(c *receipt.Config) { c.Server, c.Log = s, logTo(&logged) })
	id := w.pay(payment{})
	w.once(m)
	if r := w.row(id); r.State != "pending" || r.Code != 535 || strings.Contains(r.Error, "hunter2") || !strings.Contains(r.Error, "no such user as shop with …") {
		t.Errorf("got %+v, want 535", r)
	}
	w.post.password = ""
	w.post.onRcpt = func(int) error { return &smtp.SMTPError{Code: 550, Message: "no mailbox jenny@example.org"} }
	w.hurry()
	w.once(w.mailer(func(c *receipt.Config) { c.Log = logTo(&logged) }))
	if said := logged.String(); strings.Contains(said, "hunter2") || strings.Contains(said, "jenny") || !strings.Contains(said, "no mailbox …") {
		t.Errorf("logged:\n%s", said)
	}
}

// script is a mail server that says what it is told to, whatever it hears.
func script(t *testing.T, serve func(in *bufio.Reader, out io.Writer)) *postOffice {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serve(bufio.NewReader(conn), conn)
			_ = conn.Close()
		}
	}()
	return &postOffice{address: l.Addr().String()}
}

// A mail server that takes the mail and does not say so in time may have it.
func TestNoReply(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		silentAfter string // the line that gets no reply any more
		last        string // what is said instead
		want        string
	}{
		"to MAIL":               {"MAIL", "", "pending"},
		"to DATA":               {"DATA", "", "pending"},
		"to the mail":           {".", "", "unknown"},
		"nonsense to the mail":  {".", "hello?\r\n", "unknown"},
		"an odd yes":            {".", "299 all right\r\n", "unknown"},
		"half a reply":          {".", "250-all right\r\n", "unknown"},
		"an endless reply":      {".", strings.Repeat("250-and\r\n", 200_000), "unknown"},
		"an endless greeting":   {"", strings.Repeat("220-and\r\n", 200_000), "pending"},
		"not a mail server":     {"", "HTTP/1.1 400 Bad Request\r\n", "pending"},
		"it wants nobody today": {"", "554 no\r\n", "pending"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			done := make(chan struct{})
			p := script(t, func(in *bufio.Reader, out io.Writer) {
				if c.silentAfter == "" {
					fmt.Fprint(out, c.last)
					return
				}
				fmt.Fprint(out, "220 hello\r\n")
				data := false
				for {
					line, err := in.ReadString('\n')
					if err != nil {
						return
					}
					switch line = strings.TrimRight(line, "\r\n"); {
					case strings.HasPrefix(line, c.silentAfter) && (c.silentAfter != "." || data && line == "."):
						fmt.Fprint(out, c.last)
						<-done
						return
					case data:
					case line == "DATA":
						data = true
						fmt.Fprint(out, "354 go on\r\n")
					default:
						fmt.Fprint(out, "250 fine\r\n")
					}
				}
			})
			s, err := receipt.ParseServer("smtp://" + p.address)
			if err != nil {
				t.Fatal(err)
			}
			// what a mail has; only those that get no reply wait for it
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			defer close(done)
			if state, reason := s.Send(ctx, "receipts@example.com", "jenny@example.org", "Subject: x\r\n\r\nx\r\n"); state != c.want || reason == "" {
				t.Errorf("%s: %s, want %s", state, reason, c.want)
			}
		})
	}
}

// A connection that breaks within a mail has not ended the mail: no final dot is sent after it, not
// even by the library's good-bye.
func TestNoDotAfterABreak(t *testing.T) {
	t.Parallel()
	gaveUp, got := make(chan struct{}), make(chan string, 1)
	// more than sockets hold
	message := "Subject: x\r\n\r\n" + strings.Repeat(strings.Repeat("x", 70)+"\r\n", 400_000)
	p := script(t, func(in *bufio.Reader, out io.Writer) {
		fmt.Fprint(out, "220 hello\r\n")
		for _, reply := range []string{"250 hello", "250 from", "250 to", "354 go on"} {
			if _, err := in.ReadString('\n'); err != nil {
				break
			}
			fmt.Fprint(out, reply+"\r\n")
		}
		// the mail begins, and nobody reads on until its sender has given up
		_, _ = in.ReadString('\n')
		<-gaveUp
		rest, _ := io.ReadAll(in)
		got <- string(rest)
	})
	s, err := receipt.ParseServer("smtp://" + p.address)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // what the mail has
	defer cancel()
	state, reason := s.Send(ctx, "receipts@example.com", "jenny@example.org", message)
	if close(gaveUp); state != "pending" || !strings.Contains(reason, "timeout") {
		t.Fatalf("%s: %s, want pending", state, reason)
	}
	if rest := <-got; strings.Contains(rest, "\r\n.\r\n") || strings.Contains(rest, "QUIT") {
		t.Errorf("the mail was ended: %q", rest[max(0, len(rest)-80):])
	}
}
