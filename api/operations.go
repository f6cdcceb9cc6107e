package api

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"paidonce/idemkeys"
	"paidonce/problem"
)

const (
	healthPath = "/healthz"
	readyPath  = "/readyz"
)

// readTimeout bounds what is asked of the database outside of the engine, which has its own
// limits. Such reads take milliseconds; one that takes this long means that the database is in
// trouble.
const readTimeout = 5 * time.Second

// operation is an operation of openapi.yaml. The table of them is generated: [Server.operations].
type operation struct {
	id     string // operationId
	method string
	path   string // as the router has it, such as /v1/charges/:id
	handle func(echo.Context, *request) error
	public bool    // no API key is needed
	key    keyRule // whether it takes an idempotency key
	param  string  // the name of the parameter in the path; "" if there is none
	// What the query may contain; unless a key is required: then the query is not read.
	query shape
	body  shape // what the body may contain
}

// keyRule says whether an operation takes an idempotency key.
type keyRule uint8

const (
	keyNone     keyRule = iota // a key is not looked at
	keyOptional                // a key is honoured
	keyRequired                // a key is required, and its claim checks the API key again
)

// register adds the operations to the router. HEAD is answered wherever GET is; net/http leaves the
// body out.
func (s *Server) register(operations []operation) {
	for _, op := range operations {
		handler := s.handler(&op, s.measure(op.id))
		s.echo.Add(op.method, op.path, handler)
		if op.method == http.MethodGet {
			s.echo.Add(http.MethodHead, op.path, handler)
		}
		// The router lets a parameter at the end of a path contain slashes. Where a path goes on it
		// does not, and this rule would hide that a method is not there.
		below := func(other operation) bool { return strings.HasPrefix(other.path, op.path+"/") }
		if op.param != "" && !slices.ContainsFunc(operations, below) {
			s.echo.RouteNotFound(op.path+"/*", echo.NotFoundHandler)
		}
	}
}

// handler runs an operation for requests that pass its checks.
func (s *Server) handler(op *operation, observe Observe) echo.HandlerFunc {
	// A list reads many rows, so only some run at a time.
	isList := strings.HasPrefix(op.id, "list")
	for i := range op.query { // a list is written name[], or with indices
		op.query[i].name = strings.TrimSuffix(op.query[i].name, "[]")
	}
	return func(c echo.Context) error {
		if op.param != "" && c.Param(op.param) == "" {
			return echo.ErrNotFound // to the router, a parameter within a path may be empty
		}
		r := requestOf(c)
		r.op, r.observe = op, observe
		if op.public {
			return op.handle(c, r)
		}
		if e := s.check(c, r); e != nil {
			return e
		}
		if isList {
			release, ok := s.lists.take(c.Request().Context(), r.identity.AccountID)
			if !ok {
				return listsBusy()
			}
			defer release()
		}
		return op.handle(c, r)
	}
}

// check checks, in this order: API key, rate limit, that the API key may do more than read if it
// has to, that no other account is meant, and what can be said about idempotency key, path and
// query without the body. What it reads is in r.
func (s *Server) check(c echo.Context, r *request) *problem.Error {
	if e := s.authenticate(c, r); e != nil {
		return e
	}
	if wait := s.limiter.take(r.identity.AccountID, time.Now()); wait > 0 {
		return problem.RateLimited.New().After(wait)
	}
	if r.identity.ReadOnly && r.op.method != http.MethodGet {
		return problem.APIKeyReadOnly.New()
	}
	if e := refuseConnectHeaders(c.Request().Header); e != nil {
		return e
	}
	if e := readKey(c, r); e != nil {
		return e
	}
	if e := readPath(c, r); e != nil {
		return e
	}
	if r.op.key == keyRequired {
		return nil // the query only belongs to what the key stands for
	}
	var e *problem.Error
	if r.query, e = decodeForm(c.Request().URL.RawQuery, r.op.query,
		problem.QueryMalformed); e != nil {
		return e
	}
	return r.query.checkLimits()
}

// authenticate asks the database whose key it is, except where the claim does so in its own
// statement.
func (s *Server) authenticate(c echo.Context, r *request) *problem.Error {
	key, e := presentedKey(c.Request().Header["Authorization"])
	if e != nil {
		return e
	}
	fetch := s.cfg.Accounts.Authenticate
	if r.op.key == keyRequired {
		fetch = s.cfg.Accounts.Cached
	}
	ctx, cancel := detached(c)
	defer cancel()
	identity, err := fetch(ctx, key)
	if err != nil {
		return fromAuthenticator(err)
	}
	r.identity = identity
	return nil
}

// refuseConnectHeaders refuses the headers by which Stripe's Connect names the account that a
// request is for. Ignored, they would have the API key's own account charged. Empty, they name
// nobody.
func refuseConnectHeaders(h http.Header) *problem.Error {
	for _, name := range [...]string{"Stripe-Account", "Stripe-Context"} {
		for _, line := range h[name] {
			if strings.TrimSpace(line) != "" {
				return problem.ParameterUnknown.Of(name, "The header %s names an account to act for, as Stripe's Connect has it; "+
					"here a request is for the account of its API key. Nothing was done. "+
					"Leave the header out, and use the API key of the account that is meant.", name)
			}
		}
	}
	return nil
}

// detached is a context for reads. A client that hangs up must not cancel them: cancelling closes
// the database connection, and many hang-ups at once would cause as many new connections.
func detached(c echo.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(c.Request().Context()), readTimeout)
}

// readKey reads the idempotency key. Answers name a required key from here on, and an optional one
// once it is used.
func readKey(c echo.Context, r *request) *problem.Error {
	lines := c.Request().Header["Idempotency-Key"]
	if r.op.key == keyNone || r.op.key == keyOptional && len(lines) == 0 {
		return nil
	}
	key, err := idemkeys.ParseKey(lines)
	switch {
	case errors.Is(err, idemkeys.ErrKeyMissing):
		return problem.KeyMissing.New()
	case err != nil:
		return problem.KeyInvalid.New()
	}
	r.key = key
	if r.op.key == keyRequired {
		c.Response().Header()["Idempotency-Key"] = []string{key}
	}
	return nil
}

// pathParamMax is the longest parameter in a path, in bytes: that of an idempotency key. Ids are
// shorter.
const pathParamMax = idemkeys.KeyMax

// readPath reads the parameter in the path, if there is one. The database would refuse NUL and
// invalid UTF-8: nothing has such a name. PUT has the client name a thing, so a name that cannot be
// is the client's fault.
func readPath(c echo.Context, r *request) *problem.Error {
	name := r.op.param
	if name == "" {
		return nil
	}
	val, err := c.Param(name), error(nil)
	// The router goes by the path as it was sent, if unescaping it loses something.
	if c.Request().URL.RawPath != "" {
		val, err = url.PathUnescape(val)
	}
	switch valid := err == nil && len(val) <= pathParamMax && utf8.ValidString(val) &&
		strings.IndexByte(val, 0) < 0; {
	case valid:
		r.param = val
		return nil
	case r.op.method == http.MethodPut:
		return invalidParameter(name,
			"%s in the path must have at most %d characters, none of them NUL, in UTF-8.", name,
			pathParamMax)
	}
	return problem.ResourceMissing.Of(name, "There is nothing with this %s.", name)
}

// getHealth says that the process is alive.
func (s *Server) getHealth(c echo.Context, _ *request) error {
	writeBody(c, http.StatusOK, problem.Render(struct {
		Status string `json:"status"`
	}{"ok"}))
	return nil
}

// getReadiness reports whether requests should be sent here.
func (s *Server) getReadiness(c echo.Context, r *request) error {
	if s.draining.Load() {
		return problem.ShuttingDown.New()
	}
	ctx, cancel := detached(c)
	defer cancel()
	if err := s.cfg.Ready(ctx); err != nil {
		return problem.Unavailable.Because(err)
	}
	return s.getHealth(c, r)
}
