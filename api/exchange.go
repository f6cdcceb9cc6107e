package api

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/oklog/ulid/v2"

	"paidonce/accounts"
)

// exchange is one request and its answer, as far as it has come. It lives as long as the handler runs.
type exchange struct {
	id       string // Request-Id
	identity accounts.Identity
	apiKey   string // as presented; never logged
	key      string // the idempotency key; logged as a hint only
	// operation is the id of the operation that the key stands for, when that is known.
	operation string
	cause     error // what the log should know and the client should not
	rest      bool  // much of the body is unread, and nobody wants it
	observe   Observe
	outcome   Outcome
}

const exchangeName = "exchange"

// exchangeOf is for handlers, which run within the exchange middleware.
func exchangeOf(c echo.Context) *exchange {
	return c.Get(exchangeName).(*exchange) //nolint:errcheck // nothing else has the name
}

// newRequestID is never taken from the client: it names this exchange in the log, alone.
func newRequestID() string { return "req_" + ulid.MustNew(ulid.Now(), rand.Reader).String() }

// exchange surrounds everything, routing included: each answer has a Request-Id, each error the error object, each panic a 500, and each
// request one line in the log.
func (s *Server) exchange(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		start := time.Now()
		x := &exchange{id: newRequestID(), observe: s.unrouted}
		defer func() { // when all else is done: it is no part of how long the answer took
			if x.rest {
				takeRest(c.Response(), c.Request())
			}
		}()
		defer func() { x.observe(x.outcome, time.Since(start)) }() // also of an answer that breaks off
		c.Set(exchangeName, x)
		h := c.Response().Header()
		h["Request-Id"] = []string{x.id}
		h["Cache-Control"] = noStore
		h["X-Content-Type-Options"] = noSniff
		if err := contained(c, next); err != nil {
			s.fail(c, err)
		} else if x.outcome == OutcomeError {
			x.outcome = answered(c.Request().Method) // whoever answered did not say more
		}
		s.logExchange(c, x, time.Since(start))
		return nil
	}
}

// Header values that each answer has; shared, so not to be changed.
var (
	noStore         = []string{"no-store"}
	noSniff         = []string{"nosniff"}
	applicationJSON = []string{"application/json"}
)

// contained runs the handlers. A panic becomes an error, unless the answer has begun: then only breaking the connection off keeps the
// client from taking it for whole.
func contained(c echo.Context, next echo.HandlerFunc) (err error) {
	defer func() {
		p := recover()
		switch {
		case p == nil:
		case p == http.ErrAbortHandler || c.Response().Committed: //nolint:errorlint // net/http compares it like this, too
			panic(http.ErrAbortHandler)
		default:
			err = faultInternal.because(fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
		}
	}()
	return next(c)
}

// unlessDraining refuses what comes once the process ends, but for questions about its health.
func (s *Server) unlessDraining(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		path := c.Request().URL.Path
		if s.draining.Load() && path != healthPath && path != readyPath {
			c.Response().Header().Set("Connection", "close")
			return faultShuttingDown.because(nil)
		}
		return next(c)
	}
}

// fail answers with an error, whoever returned it.
func (s *Server) fail(c echo.Context, err error) {
	var e *apiError
	var fromEcho *echo.HTTPError
	switch {
	case errors.As(err, &e):
	case errors.Is(err, echo.ErrNotFound):
		e = faultRouteUnknown.because(nil)
	case errors.Is(err, echo.ErrMethodNotAllowed):
		e = faultMethod.because(nil)
	case errors.As(err, &fromEcho) && fromEcho.Code == http.StatusBadRequest:
		e = faultParameter.because(err) // of the generated wrapper; the guards refuse what it would, so nothing is known to come here
	default:
		e = faultInternal.because(err)
	}
	x := exchangeOf(c)
	x.cause, x.outcome = e.cause, e.outcome()
	if x.rest = restUnread(c.Request(), e); x.rest {
		c.Response().Header().Set("Connection", "close")
	}
	writeProblem(c, x, e)
}

// logExchange writes the one line of a request: no bodies, no credentials, no whole idempotency keys, no paths made up by the client.
func (s *Server) logExchange(c echo.Context, x *exchange, took time.Duration) {
	status := c.Response().Status
	level := slog.LevelInfo
	switch {
	case status == http.StatusServiceUnavailable:
		level = slog.LevelWarn
	case status >= http.StatusInternalServerError:
		level = slog.LevelError
	}
	ctx := context.WithoutCancel(c.Request().Context())
	if !s.cfg.Log.Enabled(ctx, level) {
		return
	}
	attrs := make([]slog.Attr, 0, 10)
	attrs = append(attrs, slog.String("request_id", x.id), slog.String("method", c.Request().Method), slog.String("route", c.Path()),
		slog.Int("status", status), slog.Float64("duration_ms", float64(took.Microseconds())/1000))
	for _, a := range [...]struct{ name, value string }{
		{"account_id", x.identity.AccountID}, {"operation_id", x.operation}, {"key_hint", keyHint(x.key)},
	} {
		if a.value != "" {
			attrs = append(attrs, slog.String(a.name, a.value))
		}
	}
	if x.cause != nil {
		attrs = append(attrs, slog.String("cause", x.cause.Error()))
	}
	s.cfg.Log.LogAttrs(ctx, level, "request", attrs...)
}

const (
	keyHintChars  = 4 // enough to find the line when the key is known
	keyHintHidden = 8 // shorter keys would be half told by their first characters
)

// keyHint tells keys apart in a log without writing them there.
func keyHint(key string) string {
	if key == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(key))
	hash := hex.EncodeToString(sum[:4])
	if len(key) < keyHintHidden {
		return "…" + hash
	}
	return key[:keyHintChars] + "…" + hash
}
