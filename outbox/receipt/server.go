package receipt

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/mail"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// Server is a mail server and how to talk to it.
type Server struct {
	host           string
	port           string
	tls            bool // from the first byte; else STARTTLS
	user, password string
	roots          *x509.CertPool // nil: the system's
	dial           func(ctx context.Context, network, address string) (net.Conn, error)
}

// ParseServer reads the URL of a mail server: smtp://[user:password@]host[:587] or smtps://[user:password@]host[:465]. Errors are words that complete the name of the
// setting, and never have the URL: it may have a password.
func ParseServer(raw string) (Server, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return Server{}, errors.New("is not a url such as smtp://user:password@mail.example.com:587; special characters of a password are written as %40")
	}
	s := Server{host: u.Hostname(), port: u.Port(), tls: u.Scheme == "smtps", dial: (&net.Dialer{}).DialContext}
	switch {
	case u.Scheme != "smtp" && u.Scheme != "smtps":
		return Server{}, errors.New("must begin with smtp:// (STARTTLS) or smtps:// (TLS from the first byte)")
	case s.host == "" || strings.ContainsFunc(s.host, unfit):
		return Server{}, errors.New("has no host")
	case (u.Path != "" && u.Path != "/") || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return Server{}, errors.New("must end after host and port")
	}
	if s.port == "" {
		s.port = "587"
		if s.tls {
			s.port = "465"
		}
	}
	if n, err := strconv.ParseUint(s.port, 10, 16); err != nil || n == 0 {
		return Server{}, errors.New("the port must be a number up to 65535")
	}
	if u.User != nil {
		s.user = u.User.Username()
		s.password, _ = u.User.Password()
		if s.user == "" || s.password == "" {
			return Server{}, errors.New("has a user without a password, or a password without a user")
		}
	}
	return s, nil
}

// unfit finds what neither a host nor an address nor a name in a header may have.
func unfit(r rune) bool { return r == utf8.RuneError || unicode.IsControl(r) }

// Trusting returns the server with the certificates whose signatures are believed, rather than the system's.
func (s Server) Trusting(roots *x509.CertPool) Server {
	s.roots = roots
	return s
}

// String tells where it is, and no secret.
func (s Server) String() string { return net.JoinHostPort(s.host, s.port) }

// GoString is String: no verb of fmt prints the password.
func (s Server) GoString() string { return s.String() }

// local reports whether nobody can listen between this process and the server.
func (s Server) local() bool {
	ip := net.ParseIP(s.host)
	return s.host == "localhost" || ip != nil && ip.IsLoopback()
}

// redact takes out of a reason, which has what the server said, what a log must not have.
func (s Server) redact(reason string, others ...string) string {
	for _, secret := range append(others, s.password) {
		if secret != "" {
			reason = strings.ReplaceAll(reason, secret, "…")
		}
	}
	return reason
}

// Sender is whom mails are from when nobody says: the user, where it is an address, as mail providers want it; else receipts at the server's name.
func (s Server) Sender() *mail.Address {
	if a, err := ParseSender(s.user); err == nil && a.Name == "" {
		return a
	}
	if s.host != "localhost" && net.ParseIP(s.host) == nil {
		if a, err := ParseSender("receipts@" + s.host); err == nil {
			return a
		}
	}
	return &mail.Address{Address: "receipts@localhost"}
}

// ParseSender reads whom mails are from: an address, or a name and an address, as of RFC 5322. Errors are words that complete the name of the setting.
func ParseSender(raw string) (*mail.Address, error) {
	a, err := mail.ParseAddress(raw)
	if err != nil {
		return nil, errors.New("must be an address such as receipts@example.com, or Example Shop <receipts@example.com>")
	}
	if strings.ContainsFunc(a.Name, unfit) {
		return nil, errors.New("the name must have no control characters")
	}
	a.Address, err = toWire(a.Address)
	if err != nil || !ascii(a.Address) {
		return nil, errors.New("before the @ the address must have letters, digits and a few signs of ASCII, after it a domain")
	}
	return a, nil
}

// toWire writes an address as it goes over the wire: its domain in ASCII. What is before the @ stays as it is; only some servers take it when it is not ASCII. An
// address that would need quotes is not taken: nobody has one, but tricks do.
func toWire(address string) (string, error) {
	a, err := mail.ParseAddress(address)
	if err != nil || a.Address != address || a.Name != "" || strings.ContainsFunc(address, unfit) {
		return "", errors.New("it is not a plain address")
	}
	at := strings.LastIndexByte(address, '@')
	name, domain := address[:at], address[at+1:]
	if !ascii(domain) {
		if domain, err = idna.Lookup.ToASCII(domain); err != nil {
			return "", fmt.Errorf("its domain is none: %w", err)
		}
	}
	return name + "@" + domain, nil
}

func ascii(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r > unicode.MaxASCII })
}
