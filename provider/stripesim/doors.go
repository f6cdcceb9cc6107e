package stripesim

import (
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// foreign says why a request is not taken, or nothing: a browser lets any page send requests to
// this machine, and they must not move simulated money or switches.
func foreign(r *http.Request) string {
	if foreignHost(r) {
		// A page's own name may be made to lead here, and then it is no other origin to the
		// browser.
		return "the Host header must be localhost or a loopback address"
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
	default:
		return "requests of other sites' pages are not taken"
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		if u, err := url.Parse(origin); err != nil || u.Host == "" || !strings.EqualFold(u.Host, r.Host) {
			return "requests of other origins are not taken"
		}
	}
	return ""
}

// foreignHost reports whether a request to this machine is for another name.
func foreignHost(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return ok && isLoopback(local.String()) && !isLoopback(r.Host)
}

// isLoopback reports whether host, or host:port, is this machine by its form alone.
func isLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Unmap().IsLoopback()
	}
	return strings.EqualFold(host, "localhost")
}

// jsonOnly reports whether a switch's body, if it has one, is said to be JSON. A page of another
// site may send forms and plain text without asking first.
func jsonOnly(r *http.Request) bool {
	kind := r.Header.Values("Content-Type")
	if len(kind) == 0 {
		return r.ContentLength == 0
	}
	mediaType, _, err := mime.ParseMediaType(kind[0])
	return err == nil && len(kind) == 1 && mediaType == "application/json"
}
