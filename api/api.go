// Package api is the HTTP edge: it authenticates, decodes, asks the domain, and writes answers.
//
// Read operations.go first: what is checked before an operation, in which order. errors.go is the table of everything that is not a
// success, once.go shows a request that moves money from end to end. openapi.gen.go is generated from openapi.yaml.
//
// Whatever is refused here has not spent its idempotency key: the key is claimed by the domain, after all of these checks.
package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/labstack/echo/v4"

	"paidonce/charges"
	"paidonce/idemkeys"
)

// Charges is what the edge asks of charges; *charges.Service is the one in production, and tests of the edge alone have their own, to
// see every error.
type Charges interface {
	// Create makes a charge once for the request's key. Errors: those of [idemkeys.Engine.Do].
	Create(ctx context.Context, r idemkeys.Request, p charges.Params) (idemkeys.Result, error)
	// Capture takes the money of an authorised charge once for the request's key. Errors: those of [idemkeys.Engine.Do].
	Capture(ctx context.Context, r idemkeys.Request, p charges.CaptureParams) (idemkeys.Result, error)
	// Refund gives money of a charge back once for the request's key. Errors: those of [idemkeys.Engine.Do].
	Refund(ctx context.Context, r idemkeys.Request, p charges.RefundParams) (idemkeys.Result, error)
	// Get returns a charge as it is now. Errors: [charges.ErrNotFound], or the database's.
	Get(ctx context.Context, accountID, id string) (charges.Charge, error)
	// List returns a page of charges. Errors: [charges.ErrNotFound] for an unknown cursor, or the database's.
	List(ctx context.Context, accountID string, f charges.Filter) (charges.Page, error)
	// GetRefund returns a refund as it is now. Errors: [charges.ErrNotFound], or the database's.
	GetRefund(ctx context.Context, accountID, id string) (charges.Refund, error)
	// ListRefunds returns a page of refunds. Errors: [charges.ErrNotFound] for an unknown cursor, or the database's.
	ListRefunds(ctx context.Context, accountID string, f charges.RefundFilter) (charges.RefundPage, error)
}

// Keys is what the edge asks of idempotency keys; *idemkeys.Engine is the one in production.
type Keys interface {
	// Lookup tells what became of a key. Errors: [idemkeys.ErrNotFound], or the database's.
	Lookup(ctx context.Context, accountID, key string) (idemkeys.KeyInfo, error)
	// Local does work of our database alone, once for the request's key if it has one. Errors: do's own, or those of [idemkeys.Engine.Local].
	Local(ctx context.Context, r idemkeys.Request, kind, resource string, do func(ctx context.Context, tx idemkeys.Tx) (idemkeys.Answer, error)) (idemkeys.Result, error)
}

// Config is what a server is made of.
type Config struct {
	Charges  Charges
	Keys     Keys
	Accounts Authenticator
	Events   Events
	// News takes the provider's events. nil: none are taken, as no secret is configured to verify them.
	News News
	// Ready tells why requests should not be sent here: the database is not reachable, or its schema is not the one of this binary.
	Ready func(context.Context) error
	Log   *slog.Logger
	// MaxBody is the largest body, in bytes; 0 means DefaultMaxBody.
	MaxBody int64
	// RateLimit is how many requests a second each account may make; 0 means no limit.
	RateLimit float64
	// Lists is how many lists may be read at a time, fewer than there are connections to the database; 0 means no limit.
	Lists int
	// CORSOrigins are the origins whose scripts may read answers, or * for all; empty: none. CheckOrigins says what one is.
	CORSOrigins []string
	// Measure is asked once for each route, by its operation's id or RouteNone, who is told of its requests. nil: nobody is.
	Measure func(route string) Observe
}

// Server is the HTTP API as an http.Handler. Safe for concurrent use.
type Server struct {
	cfg      Config
	echo     *echo.Echo
	limiter  *limiter
	lists    *places
	draining atomic.Bool
	// newsTurns is who reads a large delivery.
	newsTurns chan struct{}
	routed    map[string]Observe // by operation's id; read at start only
	unrouted  Observe
}

var _ ServerInterface = (*Server)(nil)

// New returns a server. Errors name what the configuration lacks, all at once.
func New(cfg Config) (*Server, error) {
	var missing []error
	for name, absent := range map[string]bool{
		"Charges": cfg.Charges == nil, "Keys": cfg.Keys == nil, "Accounts": cfg.Accounts == nil, "Events": cfg.Events == nil, "Ready": cfg.Ready == nil, "Log": cfg.Log == nil,
	} {
		if absent {
			missing = append(missing, errors.New("api: Config."+name+" is missing"))
		}
	}
	if cfg.MaxBody < 0 || cfg.RateLimit < 0 || cfg.Lists < 0 {
		missing = append(missing, errors.New("api: Config.MaxBody, Config.RateLimit and Config.Lists must not be negative"))
	}
	for _, problem := range CheckOrigins(cfg.CORSOrigins) {
		missing = append(missing, errors.New("api: Config.CORSOrigins: "+problem))
	}
	if err := errors.Join(missing...); err != nil {
		return nil, err
	}
	if cfg.MaxBody == 0 {
		cfg.MaxBody = DefaultMaxBody
	}
	s := &Server{cfg: cfg, echo: echo.New(), limiter: newLimiter(cfg.RateLimit), lists: newPlaces(cfg.Lists), newsTurns: make(chan struct{}, newsReaders)}
	s.observers()
	s.echo.HideBanner, s.echo.HidePort = true, true
	s.echo.HTTPErrorHandler = func(err error, c echo.Context) { s.fail(c, err) }
	s.echo.Pre(s.exchange)
	if len(cfg.CORSOrigins) > 0 {
		s.echo.Use(cors(cfg.CORSOrigins)) // before anything can be refused: a script wants to read that, too
	}
	s.echo.Use(s.unlessDraining)
	RegisterHandlersWithOptions(headToo{s.echo}, s, RegisterHandlersOptions{OperationMiddlewares: s.guards()})
	s.nothingBelow()
	return s, nil
}

// headToo answers HEAD wherever GET is answered; net/http leaves the body out.
type headToo struct{ *echo.Echo }

// GET registers both methods.
func (h headToo) GET(path string, handle echo.HandlerFunc, m ...echo.MiddlewareFunc) *echo.Route {
	h.HEAD(path, handle, m...)
	return h.Echo.GET(path, handle, m...)
}

// nothingBelow says of what is below the last paths that it does not exist: the router lets a parameter at the end of a path swallow slashes. Where a
// path goes on, it does not, and such a rule would hide that a method is not there.
func (s *Server) nothingBelow() {
	routes := s.echo.Routes()
	for _, r := range routes {
		below := func(other *echo.Route) bool { return strings.HasPrefix(other.Path, r.Path+"/") }
		if strings.Contains(r.Path, ":") && !slices.ContainsFunc(routes, below) {
			s.echo.RouteNotFound(r.Path+"/*", echo.NotFoundHandler)
		}
	}
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.echo.ServeHTTP(w, r) }

// Drain refuses what comes from now on with 503, and tells load balancers so. What runs already is not disturbed.
func (s *Server) Drain() { s.draining.Store(true) }
