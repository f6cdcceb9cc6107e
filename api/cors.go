package api

import (
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
)

// preflightAge is how long a browser may keep the answer to a preflight, in seconds: what it says
// changes with a deployment only.
const preflightAge = 600

var (
	// corsAllowed are the headers of openapi.yaml that a script may send.
	corsAllowed = []string{"Authorization", "Content-Type", "Idempotency-Key", "Prefer"}
	// corsExposed are the headers that a script may read, besides the few that it always may. A
	// test compares them with openapi.yaml.
	corsExposed = []string{
		"Allow", "Idempotency-Key", "Idempotent-Replayed", "Location", "Original-Request",
		"Preference-Applied", "Request-Id", "Retry-After",
		"Stripe-Should-Retry", "WWW-Authenticate", "X-Content-Type-Options",
	}
)

// cors lets scripts of these origins read answers, errors too. Cookies are never taken into
// account: API keys are sent by the script itself.
func cors(origins []string) echo.MiddlewareFunc {
	cfg := middleware.CORSConfig{
		AllowOrigins: []string{"*"},
		AllowMethods: []string{
			http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete,
		},
		AllowHeaders: corsAllowed, ExposeHeaders: corsExposed,
		MaxAge: preflightAge,
	}
	if !slices.Contains(origins, "*") {
		// AllowOrigins would take patterns as well; here an origin is allowed only when it is
		// named.
		cfg.AllowOriginFunc = func(origin string) (bool, error) { return slices.Contains(origins, origin), nil }
	}
	return middleware.CORSWithConfig(cfg)
}

// An origin as browsers write it: a scheme, a host, perhaps a port, all in lower case.
var origin = regexp.MustCompile(`^(http|https)://([a-z0-9._-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?$`)

// originProblem says why a text is not an origin as browsers send it; "" when it is.
func originProblem(o string) string {
	m := origin.FindStringSubmatch(o)
	switch {
	case o == "*":
		return ""
	case m == nil:
		return "is not http or https, a host, and perhaps a port, all in lower case"
	case m[1] == "http" && m[3] == ":80", m[1] == "https" && m[3] == ":443":
		return "names the port that browsers leave out"
	}
	if port, err := strconv.Atoi(strings.TrimPrefix(m[3], ":")); m[3] != "" &&
		(err != nil || port > math.MaxUint16) {
		return "names a port that there is not"
	}
	return ""
}

// CheckOrigins returns what is wrong with those origins that no browser would send.
func CheckOrigins(origins []string) (problems []string) {
	for _, o := range origins {
		if why := originProblem(o); why != "" {
			problems = append(problems, strconv.Quote(o)+" "+why)
		}
	}
	return problems
}
