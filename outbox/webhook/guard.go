// Package webhook sends signed events to the addresses that accounts registered: to public
// addresses only, and within limits of time and size.
//
// The address is chosen by a client and the request is made by this server, so it could be aimed at
// what only this server can reach, such as a metadata service or a database's port. guard.go
// prevents that twice: when an address is registered, for the sake of a good error message, and at
// each connection, on the very address that is being connected to, which no change of DNS can
// evade.
package webhook

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ErrForbiddenAddress: an endpoint's name leads to an address that is not on the public Internet.
var ErrForbiddenAddress = errors.New("leads to an address that is not public")

// lookupLimit is how long a registration waits for DNS. A name that is not resolved by then is
// checked when something is sent.
const lookupLimit = 3 * time.Second

// Guard decides which addresses may be connected to.
type Guard struct {
	AllowPrivate bool          // PAIDONCE_WEBHOOK_ALLOW_PRIVATE: any address, for development
	Resolver     *net.Resolver // nil: the system's
}

// notPublic4 are the IPv4 networks of the registry of special addresses that are not globally
// reachable, or not one host.
var notPublic4 = prefixes(
	"0.0.0.0/8",       // this network
	"10.0.0.0/8",      // private
	"100.64.0.0/10",   // behind a carrier's NAT
	"127.0.0.0/8",     // loopback
	"169.254.0.0/16",  // link-local, where clouds keep their metadata
	"172.16.0.0/12",   // private
	"192.0.0.0/24",    // protocol assignments
	"192.0.2.0/24",    // documentation
	"192.88.99.0/24",  // relays of 6to4
	"192.168.0.0/16",  // private
	"198.18.0.0/15",   // benchmarks
	"198.51.100.0/24", // documentation
	"203.0.113.0/24",  // documentation
	"224.0.0.0/4",     // multicast
	"240.0.0.0/4",     // reserved, broadcast
)

// nat64 is where DNS64 puts IPv4-only hosts for networks that have only IPv6: the last four bytes
// are the host's address, and a translator connects to that. 64:ff9b:1::/48 is not unwrapped: what
// it contains is a choice of the local network.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// unwrap returns the address that is connected to in the end: an IPv4 address that is written as an
// IPv6 address is the IPv4 address. Those within addresses of 6to4 and Teredo are ends of tunnels.
// Nothing public is reached that way any more, so all of these are refused.
func unwrap(a netip.Addr) netip.Addr {
	a = a.Unmap().WithZone("")
	if nat64.Contains(a) {
		b := a.As16()
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return a
}

// public6 is where unicast addresses are given out; loopback, link-local, unique local, multicast
// and IPv4 in other forms are all outside of it.
var public6 = netip.MustParsePrefix("2000::/3")

// notPublic6 are the exceptions within public6.
var notPublic6 = prefixes(
	"2001::/23",     // protocol assignments, Teredo among them
	"2001:db8::/32", // documentation
	"2002::/16",     // 6to4, which contains an IPv4 address
	"3fff::/20",     // documentation
)

func prefixes(list ...string) []netip.Prefix {
	parsed := make([]netip.Prefix, len(list))
	for i, s := range list {
		parsed[i] = netip.MustParsePrefix(s)
	}
	return parsed
}

// public reports whether an address is one host on the public Internet.
func public(a netip.Addr) bool {
	a = unwrap(a)
	list := notPublic4
	if a.Is6() {
		if !public6.Contains(a) {
			return false
		}
		list = notPublic6
	}
	for _, p := range list {
		if p.Contains(a) {
			return false
		}
	}
	return a.IsValid()
}

// CheckURL returns why an endpoint's URL is not acceptable, in words that complete "url …". A name
// that cannot be looked up now is accepted: it is checked again at each delivery.
func (g Guard) CheckURL(ctx context.Context, raw string) error {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Opaque != "" || (u.Scheme != "http" && u.Scheme != "https") ||
		u.Hostname() == "":
		return errors.New("must be an http or https URL, such as https://example.com/hooks")
	case u.User != nil:
		return errors.New("must not have a user or password")
	case u.Fragment != "" || strings.Contains(raw, "#"):
		return errors.New("must not have a fragment")
	case !visibleASCII(raw):
		return errors.New("must be of visible ASCII characters; write other names in punycode, other characters with %")
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return errors.New("must have a port from 1 to 65535, or none")
		}
	}
	if g.AllowPrivate {
		return nil
	}
	return g.checkHost(ctx, strings.ToLower(strings.TrimSuffix(u.Hostname(), ".")))
}

func (g Guard) checkHost(ctx context.Context, host string) error {
	if a, err := netip.ParseAddr(host); err == nil {
		if !public(a) {
			return ErrForbiddenAddress
		}
		return nil
	}
	last := host[strings.LastIndexByte(host, '.')+1:]
	switch {
	case last == "localhost", last == "":
		return ErrForbiddenAddress
	// Some resolvers take 127.1, 0x7f000001 and 2130706433 for addresses. No top-level domain
	// begins with a digit.
	case last[0] >= '0' && last[0] <= '9':
		return errors.New("must name a host, or an address in its usual form")
	}
	ctx, cancel := context.WithTimeout(ctx, lookupLimit)
	defer cancel()
	addresses, err := g.resolver().LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil // the address is checked when something is sent
	}
	for _, a := range addresses {
		if !public(a) {
			return ErrForbiddenAddress
		}
	}
	return nil
}

func (g Guard) resolver() *net.Resolver {
	if g.Resolver == nil {
		return net.DefaultResolver
	}
	return g.Resolver
}

// control is called for each connection, between the choice of an address and the attempt to
// connect to it.
func (g Guard) control(_ context.Context, _, address string, _ syscall.RawConn) error {
	if g.AllowPrivate {
		return nil
	}
	a, err := netip.ParseAddrPort(address)
	if err != nil || !public(a.Addr()) {
		return fmt.Errorf("the endpoint's name %w", ErrForbiddenAddress)
	}
	return nil
}

func visibleASCII(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
