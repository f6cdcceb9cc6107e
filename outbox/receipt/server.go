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

// Server is a mail server and how to connect to it.
type Server struct {
	host           string
	port           string
	tls            bool // TLS from the first byte; otherwise STARTTLS
	user, password string
	roots          *x509.CertPool // nil: the system's
	dial           func(ctx context.Context, network, address string) (net.Conn, error)
}

// ParseServer reads the URL of a mail server: smtp://[user:password@]host[:587] or
// smtps://[user:password@]host[:465]. Errors complete the name of the setting. They never contain
// the URL, which may have a password.
func ParseServer(raw string) (Server, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return Server{}, errors.New("is not a url such as smtp://user:password@mail.example.com:587; special characters of a password are written as %40")
	}
	s := Server{
		host: u.Hostname(), port: u.Port(), tls: u.Scheme == "smtps",
		dial: (&net.Dialer{}).DialContext,
	}
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

// unfit reports whether a character may be in no host, address or name of a header.
func unfit(r rune) bool { return r == utf8.RuneError || unicode.IsControl(r) }

// Trusting returns the server with these root certificates in place of the system's.
func (s Server) Trusting(roots *x509.CertPool) Server {
	s.roots = roots
	return s
}

// String returns the host and port, without secrets.
func (s Server) String() string { return net.JoinHostPort(s.host, s.port) }

// GoString is like String, so that no verb of fmt prints the password.
func (s Server) GoString() string { return s.String() }

// local reports whether nobody can listen between this process and the server.
func (s Server) local() bool {
	ip := net.ParseIP(s.host)
	return s.host == "localhost" || ip != nil && ip.IsLoopback()
}

// redact removes secrets from a reason, which may quote what the server said.
func (s Server) redact(reason string, others ...string) string {
	for _, secret := range append(others, s.password) {
		if secret != "" {
			reason = strings.ReplaceAll(reason, secret, "…")
		}
	}
	return reason
}

// Sender returns the default sender of mails: the user, if it is an address, as mail providers
// require it; otherwise receipts at the server's name.
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

// ParseSender parses the sender of mails: an address, or a name and an address, as in RFC 5322.
// Errors complete the name of the setting.
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

// toWire returns an address as it goes over the wire, with its domain in ASCII. The part before the
// @ stays as it is; only some servers accept it when it is not ASCII. An address that would need
// quotes is refused: real ones do not, but injections do.
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
