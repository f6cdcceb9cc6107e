package api

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"paidonce/idemkeys"
)

const (
	healthPath = "/healthz"
	readyPath  = "/readyz"
)

// readTimeout bounds what is asked of the database outside of the engine, which has its own limits. Such reads take milliseconds; one that
// takes this long means that the database is in trouble.
const readTimeout = 5 * time.Second

// operation is what is checked before an operation of openapi.yaml is run.
type operation struct {
	public bool   // no API key
	keyed  bool   // an idempotency key is required, and its claim checks the API key again
	signed bool   // by the provider, instead of an API key
	param  string // the parameter in the path
	below  int    // how many segments of the path follow it
	named  bool   // by the client: a name that cannot be is its fault, rather than a thing that is not there
	list   bool   // reads many rows: only so many at a time
	mayKey bool   // an idempotency key is not needed; one that is given is honoured
	query  shape  // what the query may contain; a keyed operation does not read it, the fingerprint does
}

// operations has every operation of openapi.yaml, by its id; a test compares them.
func operations() map[string]operation {
	return map[string]operation{
		"createCharge":                {keyed: true},
		"listCharges":                 {list: true, query: listShape},
		"getCharge":                   {param: "id"},
		"captureCharge":               {keyed: true, param: "id", below: 1},
		"createRefund":                {keyed: true},
		"listRefunds":                 {list: true, query: refundListShape},
		"getRefund":                   {param: "id"},
		"receiveStripeEvent":          {public: true, signed: true},
		"getIdempotencyKey":           {param: "key"},
		"listEvents":                  {list: true, query: eventListShape},
		"getEvent":                    {param: "id"},
		"resendEvent":                 {mayKey: true, param: "id", below: 1},
		"listWebhookEndpoints":        {list: true},
		"putWebhookEndpoint":          {named: true, param: "id"},
		"getWebhookEndpoint":          {param: "id"},
		"deleteWebhookEndpoint":       {param: "id"},
		"rotateWebhookEndpointSecret": {mayKey: true, param: "id", below: 1},
		"getHealth":                   {public: true},
		"getReadiness":                {public: true},
	}
}

func (s *Server) guards() map[string][]echo.MiddlewareFunc {
	guards := map[string][]echo.MiddlewareFunc{}
	for id, op := range operations() {
		guards[id] = []echo.MiddlewareFunc{s.guard(op, s.routed[id])}
	}
	return guards
}

// guard checks, in this order: API key, rate limit, that nobody else is meant, then what can be said about path, query and idempotency key without the body. What it
// lets pass, the generated wrapper can read.
func (s *Server) guard(op operation, observe Observe) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if op.below > 0 && c.Param(op.param) == "" {
				return faultRouteUnknown.because(nil) // to the router, a parameter within a path may be empty
			}
			x := exchangeOf(c)
			x.observe = observe
			if op.signed {
				if e := s.checkSigned(c); e != nil {
					return e
				}
			}
			if op.public {
				return next(c)
			}
			if e := s.authenticate(c, x, op); e != nil {
				return e
			}
			if wait := s.limiter.take(x.identity.AccountID, time.Now()); wait > 0 {
				return faultRateLimited.after(wait).because(nil)
			}
			if e := actsForNobodyElse(c.Request().Header); e != nil {
				return e
			}
			check := checkRead
			if op.keyed {
				check = checkKeyed
			}
			if e := check(c, x, op); e != nil {
				return e
			}
			if op.list {
				release, ok := s.lists.take(c.Request().Context(), x.identity.AccountID)
				if !ok {
					return listsBusy()
				}
				defer release()
			}
			return next(c)
		}
	}
}

// authenticate asks the database whose key it is, except where the claim does so in its own statement.
func (s *Server) authenticate(c echo.Context, x *exchange, op operation) *apiError {
	key, e := presentedKey(c.Request().Header["Authorization"])
	if e != nil {
		return e
	}
	ask := s.cfg.Accounts.Authenticate
	if op.keyed {
		ask = s.cfg.Accounts.Cached
	}
	ctx, cancel := detached(c)
	defer cancel()
	identity, err := ask(ctx, key)
	if err != nil {
		return fromAuthenticator(err)
	}
	x.identity, x.apiKey = identity, key
	return nil
}

// actsForNobodyElse refuses the headers by which Stripe's Connect names the account that a request is for. Ignored, they would have the API key's own
// account charged. Empty, they name nobody.
func actsForNobodyElse(h http.Header) *apiError {
	for _, name := range [...]string{"Stripe-Account", "Stripe-Context"} {
		for _, line := range h[name] {
			if strings.TrimSpace(line) != "" {
				return faultParameterUnknown.of(name, "The header %s names an account to act for, as Stripe's Connect has it; here a request is for the account of its API key. "+
					"Nothing was done. Leave the header out, and use the API key of the account that is meant.", name)
			}
		}
	}
	return nil
}

// detached is a context for reads. A client that hangs up must not cancel them: cancelling closes the database connection, and many
// hang-ups at once would cause as many new connections.
func detached(c echo.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(c.Request().Context()), readTimeout)
}

// checkKeyed reads the idempotency key. From here on answers name it.
func checkKeyed(c echo.Context, x *exchange, op operation) *apiError {
	h := c.Request().Header
	key, err := idemkeys.ParseKey(h["Idempotency-Key"])
	switch {
	case errors.Is(err, idemkeys.ErrKeyMissing):
		return faultKeyMissing.because(nil)
	case err != nil:
		return faultKeyInvalid.because(nil)
	}
	x.key = key
	c.Response().Header()["Idempotency-Key"] = []string{key}
	if lines := h["Prefer"]; len(lines) > 1 {
		h["Prefer"] = []string{strings.Join(lines, ", ")} // the same by RFC 9110; the wrapper takes one line only
	}
	return checkPath(c, op)
}

// checkRead looks at the path's parameter and at the query of an operation that needs no key.
func checkRead(c echo.Context, x *exchange, op operation) *apiError {
	if lines := c.Request().Header["Idempotency-Key"]; op.mayKey && len(lines) > 0 {
		key, err := idemkeys.ParseKey(lines)
		if err != nil {
			return faultKeyInvalid.because(nil)
		}
		x.key = key
	}
	if e := checkPath(c, op); e != nil {
		return e
	}
	_, e := decodeForm(c.Request().URL.RawQuery, op.query, faultQueryMalformed)
	return e
}

// checkPath looks at the parameter in the path, if there is one.
func checkPath(c echo.Context, op operation) *apiError {
	if op.param == "" {
		return nil
	}
	u := c.Request().URL
	id, ok := segment(u, op.below)
	switch {
	case !ok && op.named:
		return invalidParameter(op.param, "%s in the path must have at most %d characters, none of them NUL, in UTF-8.", op.param, pathParamMax)
	case !ok:
		return faultResourceMissing.of(op.param, "There is no such thing.")
	}
	if u.RawPath != "" {
		id = url.PathEscape(id) // the wrapper unescapes it if, and only if, there is a raw path
	}
	c.SetParamValues(id)
	return nil
}

// pathParamMax is the longest parameter in a path: that of an idempotency key. Ids are shorter.
const pathParamMax = idemkeys.KeyMax

// segment is the segment of a path that so many others follow, unescaped once. The database would refuse NUL and invalid UTF-8: nothing has
// such a name.
func segment(u *url.URL, below int) (string, bool) {
	path := u.EscapedPath()
	for range below {
		path = path[:max(strings.LastIndexByte(path, '/'), 0)]
	}
	s, err := url.PathUnescape(path[strings.LastIndexByte(path, '/')+1:])
	return s, err == nil && len(s) <= pathParamMax && utf8.ValidString(s) && strings.IndexByte(s, 0) < 0
}

// GetHealth tells that the process is alive.
func (s *Server) GetHealth(c echo.Context) error {
	writeBody(c, http.StatusOK, idemkeys.Render(Health{Status: Ok}))
	return nil
}

// GetReadiness reports whether requests should be sent here.
func (s *Server) GetReadiness(c echo.Context) error {
	if s.draining.Load() {
		return faultShuttingDown.because(nil)
	}
	ctx, cancel := detached(c)
	defer cancel()
	if err := s.cfg.Ready(ctx); err != nil {
		return faultUnavailable.because(err)
	}
	return s.GetHealth(c)
}
