// Package api is the HTTP edge: it authenticates, decodes, asks the domain, and writes answers.
//
// Read operations.go first: it shows what is checked before an operation, and in which order.
// errors.go turns errors of the domain into answers, and idempotent.go shows a request that moves
// money from end to end. openapi.gen.go is the table of operations and their parameters, generated
// from openapi.yaml.
//
// A request that is refused here has not spent its idempotency key: the domain claims the key after
// all of these checks.
package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync/atomic"

	"github.com/labstack/echo/v4"

	"paidonce/charges"
	"paidonce/idemkeys"
	"paidonce/inbox"
	"paidonce/outbox"
)

// Charges is what the edge asks of charges; *charges.Service is the one in production. It is an
// interface because tests of the edge alone need every answer and every error that there can be,
// also those that take a lost commit or a provider that contradicts itself.
type Charges interface {
	// Create makes a charge once for the request's key. Errors: those of [idemkeys.Runner.Do].
	Create(ctx context.Context, r idemkeys.Request, p charges.Params) (idemkeys.Result, error)
	// Capture takes the money of an authorised charge once for the request's key. Errors: those of
	// [idemkeys.Runner.Do].
	Capture(ctx context.Context, r idemkeys.Request,
		p charges.CaptureParams) (idemkeys.Result, error)
	// Cancel lets go of an authorised charge, or ends one that waits for its payer, once for the
	// request's key. Errors: those of [idemkeys.Runner.Do].
	Cancel(ctx context.Context, r idemkeys.Request,
		p charges.CancelParams) (idemkeys.Result, error)
	// Refund gives money of a charge back once for the request's key. Errors: those of
	// [idemkeys.Runner.Do].
	Refund(ctx context.Context, r idemkeys.Request, p charges.RefundParams) (idemkeys.Result, error)
	// Update changes what a charge says beside its money. Errors: [*problem.Error], or those of
	// [idemkeys.Runner.Local].
	Update(ctx context.Context, r idemkeys.Request, p charges.UpdateParams) (idemkeys.Result, error)
	// Get returns a charge as it is now. Errors: [charges.ErrNotFound], or the database's.
	Get(ctx context.Context, accountID, id string, withRefunds bool) (charges.Charge, error)
	// List returns a page of charges. Errors: [charges.ErrNotFound] for an unknown cursor, or the
	// database's.
	List(ctx context.Context, accountID string, f charges.Filter) (charges.Page, error)
	// GetRefund returns a refund as it is now. Errors: [charges.ErrNotFound], or the database's.
	GetRefund(ctx context.Context, accountID, id string, withCharge bool) (charges.Refund, error)
	// ListRefunds returns a page of refunds. Errors: [charges.ErrNotFound] for an unknown cursor,
	// or the database's.
	ListRefunds(ctx context.Context, accountID string,
		f charges.RefundFilter) (charges.RefundPage, error)
	// CreatePaymentIntent makes a payment intent once for the request's key. Errors: those of
	// [idemkeys.Runner.Do], as for the four that follow.
	CreatePaymentIntent(ctx context.Context, r idemkeys.Request,
		p charges.PaymentIntentParams) (idemkeys.Result, error)
	// ConfirmPaymentIntent charges what an intent was made for.
	ConfirmPaymentIntent(ctx context.Context, r idemkeys.Request,
		p charges.ConfirmParams) (idemkeys.Result, error)
	// UpdatePaymentIntent changes an intent, or only what it says, once it is confirmed.
	UpdatePaymentIntent(ctx context.Context, r idemkeys.Request,
		p charges.PaymentIntentUpdateParams) (idemkeys.Result, error)
	// CapturePaymentIntent takes what an intent holds.
	CapturePaymentIntent(ctx context.Context, r idemkeys.Request,
		p charges.PaymentIntentCaptureParams) (idemkeys.Result, error)
	// CancelPaymentIntent ends an intent that was not paid, or lets go of what it holds.
	CancelPaymentIntent(ctx context.Context, r idemkeys.Request,
		p charges.PaymentIntentCancelParams) (idemkeys.Result, error)
	// GetPaymentIntent returns an intent as it is now. Errors: [charges.ErrNotFound], or the
	// database's.
	GetPaymentIntent(
		ctx context.Context, accountID, id string, inFull bool,
	) (charges.PaymentIntent, error)
	// ListPaymentIntents returns a page of intents. Errors: [charges.ErrNotFound] for an unknown
	// cursor, or the database's.
	ListPaymentIntents(ctx context.Context, accountID string,
		f charges.PaymentIntentFilter) (charges.PaymentIntentPage, error)
	// GetDispute returns a dispute as it is now. Errors: [charges.ErrNotFound], or the database's.
	GetDispute(ctx context.Context, accountID, id string, withCharge bool) (charges.Dispute, error)
	// ListDisputes returns a page of disputes. Errors: [charges.ErrNotFound] for an unknown cursor,
	// or the database's.
	ListDisputes(ctx context.Context, accountID string,
		f charges.DisputeFilter) (charges.DisputePage, error)
}

// Config has the parts and settings of a server.
type Config struct {
	Charges  Charges
	Keys     *idemkeys.Keys
	Accounts Authenticator
	Events   *outbox.Store
	// ProviderEvents takes the provider's events. It is nil when no secret is configured to verify
	// them, and then they are refused.
	ProviderEvents *inbox.Inbox
	// Ready returns why requests should not be sent here, or nil: the database is not reachable, or
	// its schema is not the one of this binary.
	Ready func(context.Context) error
	Log   *slog.Logger
	// MaxBody is the largest body, in bytes; 0 means DefaultMaxBody.
	MaxBody int64
	// RateLimit is how many requests a second each account may make; 0 means no limit.
	RateLimit float64
	// Lists is how many lists may be read at a time, fewer than there are connections to the
	// database; 0 means no limit.
	Lists int
	// CORSOrigins are the origins whose scripts may read answers, or * for all; empty: none.
	// CheckOrigins says what one is.
	CORSOrigins []string
	// Measure returns the observer of a route, named by its operation's id or RouteNone. It is
	// called once for each route. nil: requests are not observed.
	Measure func(route string) Observe
}

// Server is the HTTP API as an http.Handler. Safe for concurrent use.
type Server struct {
	cfg      Config
	echo     *echo.Echo
	limiter  *limiter
	lists    *listSlots
	draining atomic.Bool
	// eventTurns bounds how many large deliveries of the provider are read at once.
	eventTurns chan struct{}
	unrouted   Observe // for requests that reach no operation
}

// New returns a server. Errors name what the configuration lacks, all at once.
func New(cfg Config) (*Server, error) {
	var missing []error
	for name, absent := range map[string]bool{
		"Charges": cfg.Charges == nil, "Keys": cfg.Keys == nil, "Accounts": cfg.Accounts == nil,
		"Events": cfg.Events == nil, "Ready": cfg.Ready == nil, "Log": cfg.Log == nil,
	} {
		if absent {
			missing = append(missing, errors.New("api: Config."+name+" is missing"))
		}
	}
	if cfg.MaxBody < 0 || cfg.RateLimit < 0 || cfg.Lists < 0 {
		missing = append(missing,
			errors.New("api: Config.MaxBody, Config.RateLimit and Config.Lists must not be negative"))
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
	s := &Server{
		cfg: cfg, echo: echo.New(), limiter: newLimiter(cfg.RateLimit),
		lists: newListSlots(cfg.Lists), eventTurns: make(chan struct{}, eventReadersMax),
	}
	s.unrouted = s.measure(RouteNone)
	s.echo.HideBanner, s.echo.HidePort = true, true
	s.echo.HTTPErrorHandler = func(err error, c echo.Context) { s.fail(c, err) }
	s.echo.Pre(s.wrap)
	if len(cfg.CORSOrigins) > 0 {
		// Before anything can be refused, so that scripts can read refusals too.
		s.echo.Use(cors(cfg.CORSOrigins))
	}
	s.echo.Use(s.refuseWhileDraining)
	s.register(s.operations())
	return s, nil
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.echo.ServeHTTP(w, r) }

// Drain makes the server answer new requests with 503, so that load balancers send them elsewhere.
// Requests that are running are not disturbed.
func (s *Server) Drain() { s.draining.Store(true) }
