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
	"paidonce/problem"
)

// request is what is known about a request and its answer so far. It lives as long as the handler
// runs.
type request struct {
	id       string     // Request-Id
	op       *operation // nil where openapi.yaml has none
	identity accounts.Identity
	key      string      // the idempotency key; logged as a hint only
	param    string      // the parameter in the path, such as a charge's id
	query    *parameters // nil where it is not read

	operationID string // the key's operation, when it is known
	cause       error  // what the log should know and the client should not
	unread      bool   // much of the body was not read, and nobody wants it
	observe     Observe
	outcome     Outcome
}

const requestName = "request"

// requestOf is the request of a context; wrap has put it there.
func requestOf(c echo.Context) *request {
	return c.Get(requestName).(*request) //nolint:errcheck // nothing else has the name
}

// newRequestID is never taken from the client: it names this request in the log, alone.
func newRequestID() string { return "req_" + ulid.MustNew(ulid.Now(), rand.Reader).String() }

// wrap is the outermost handler, around routing as well: each answer has a Request-Id, each
// error the error object, each panic a 500, and each request one line in the log.
func (s *Server) wrap(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		start := time.Now()
		r := &request{id: newRequestID(), observe: s.unrouted}
		defer func() { // when all else is done: it is no part of how long the answer took
			if r.unread {
				discardRest(c.Response(), c.Request())
			}
		}()
		// Also for an answer that breaks off.
		defer func() { r.observe(r.outcome, time.Since(start)) }()
		c.Set(requestName, r)
		h := c.Response().Header()
		h["Request-Id"] = []string{r.id}
		h["Cache-Control"] = noStore
		h["X-Content-Type-Options"] = noSniff
		if err := recovered(c, next); err != nil {
			s.fail(c, err)
		} else if r.outcome == OutcomeError {
			r.outcome = unkeyedOutcome(c.Request().Method) // the handler set no other outcome
		}
		s.logRequest(c, r, time.Since(start))
		return nil
	}
}

// Header values that each answer has; shared, so not to be changed.
var (
	noStore         = []string{"no-store"}
	noSniff         = []string{"nosniff"}
	applicationJSON = []string{"application/json"}
)

// recovered runs the handlers. A panic becomes an error, unless the answer has begun: then only
// breaking the connection off keeps the client from taking it for whole.
func recovered(c echo.Context, next echo.HandlerFunc) (err error) {
	defer func() {
		p := recover()
		switch {
		case p == nil:
		case p == http.ErrAbortHandler || c.Response().Committed: //nolint:errorlint // net/http compares it like this, too
			panic(http.ErrAbortHandler)
		default:
			err = problem.InternalError.Because(fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
		}
	}()
	return next(c)
}

// refuseWhileDraining refuses requests while the process shuts down, except those about its health.
func (s *Server) refuseWhileDraining(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		path := c.Request().URL.Path
		if s.draining.Load() && path != healthPath && path != readyPath {
			c.Response().Header().Set("Connection", "close")
			return problem.ShuttingDown.New()
		}
		return next(c)
	}
}

// fail answers with an error of any handler.
func (s *Server) fail(c echo.Context, err error) {
	var e *problem.Error
	switch {
	case errors.As(err, &e):
	case errors.Is(err, echo.ErrNotFound):
		e = problem.RouteUnknown.New()
	case errors.Is(err, echo.ErrMethodNotAllowed):
		e = problem.MethodNotAllowed.New()
	default:
		e = problem.InternalError.Because(err)
	}
	r := requestOf(c)
	r.cause, r.outcome = e.Cause, refused(e.Code)
	if r.unread = restUnread(c.Request(), e); r.unread {
		c.Response().Header().Set("Connection", "close")
	}
	writeProblem(c, r, e)
}

// logRequest writes the one line of a request: no bodies, no credentials, no whole idempotency
// keys, no paths made up by the client.
func (s *Server) logRequest(c echo.Context, r *request, took time.Duration) {
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
	attrs = append(attrs, slog.String("request_id", r.id), slog.String("method",
		c.Request().Method), slog.String(
		"route", c.Path()),
		slog.Int("status", status), slog.Float64("duration_ms", float64(took.Microseconds())/1000))
	for _, a := range [...]struct{ name, value string }{
		{"account_id", r.identity.AccountID}, {"operation_id", r.operationID},
		{"key_hint", keyHint(r.key)},
	} {
		if a.value != "" {
			attrs = append(attrs, slog.String(a.name, a.value))
		}
	}
	if r.cause != nil {
		attrs = append(attrs, slog.String("cause", r.cause.Error()))
	}
	s.cfg.Log.LogAttrs(ctx, level, "request", attrs...)
}

const (
	keyHintChars  = 4 // enough to find the line when the key is known
	keyHintHidden = 8 // shorter keys would be half known by their first characters
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
