package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	"paidonce/idemkeys"
)

// once is every operation that moves money: it reads the body, asks the domain to do the work once for the request's key, and writes what the key
// stands for. parse says what the parameters ask for; what it refuses has not spent the key.
func once[P any](s *Server, c echo.Context, prefer *string, takes shape, parse func(*parameters) (P, *apiError),
	do func(context.Context, idemkeys.Request, P) (idemkeys.Result, error),
) error {
	x, r := exchangeOf(c), c.Request()
	sent, e := readParameters(c.Response(), r, s.cfg.MaxBody, takes)
	if e != nil {
		return e
	}
	wanted, e := parse(sent)
	if e != nil {
		return e
	}
	req := keyRequest(x, r, sent)
	if prefer != nil {
		if wait, asked := preferredWait([]string{*prefer}); asked {
			req.Wait = wait
			c.Response().Header()["Preference-Applied"] = []string{appliedWait(wait)}
		}
	}
	// The API key was looked up a while ago, perhaps; the domain's own statements check it again, so a revoked one begins nothing and learns nothing.
	// Whoever asked may hang up: the work goes on, and the same key learns what came of it. The engine sets the deadlines.
	res, err := do(context.WithoutCancel(r.Context()), req, wanted)
	x.operation = res.OperationID
	if err != nil {
		return engineFailure(x, sent, err)
	}
	writeResult(c, x, res)
	return nil
}

// keyRequest is the request as its key knows it.
func keyRequest(x *exchange, r *http.Request, sent *parameters) idemkeys.Request {
	return idemkeys.Request{
		AccountID: x.identity.AccountID, APIKeyID: x.identity.APIKeyID, Key: x.key, RequestID: x.id,
		Fingerprint: idemkeys.NewFingerprint(r.Method, r.URL.EscapedPath(), canonicalQuery(r.URL.RawQuery), sent.canonical()),
	}
}

// local is every other operation that changes something: it does the work in our database alone, once for the request's key if it has one, and writes what the
// key stands for. what is done to, in words, and the resource's id are for answers. The body of a success is what do returns.
func (s *Server) local(c echo.Context, sent *parameters, kind, resource string, do func(context.Context, idemkeys.Tx) (any, error), what string) error {
	x, r := exchangeOf(c), c.Request()
	res, err := s.cfg.Keys.Local(context.WithoutCancel(r.Context()), keyRequest(x, r, sent), kind, resource, func(ctx context.Context, tx idemkeys.Tx) (idemkeys.Answer, error) {
		made, err := do(ctx, tx)
		return idemkeys.Answer{Code: http.StatusOK, Header: map[string]string{"Content-Type": applicationJSON[0]}, Body: idemkeys.Render(made)}, err
	})
	if x.key != "" && (err == nil || errors.Is(err, idemkeys.ErrReused)) {
		c.Response().Header()["Idempotency-Key"] = []string{x.key}
	}
	switch {
	case errors.Is(err, idemkeys.ErrReused), errors.Is(err, idemkeys.ErrNotClaimable):
		return fromEngine(err)
	case err != nil:
		return fromEvents(err, what)
	case x.key == "":
		writeBody(c, res.Answer.Code, res.Answer.Body)
		return nil
	}
	x.operation = res.OperationID
	writeResult(c, x, res)
	return nil
}

// engineFailure is fromEngine with what the log should know, in the words of the request.
func engineFailure(x *exchange, sent *parameters, err error) *apiError {
	var named interface{ Operation() string } // in use, unknown, parked
	if errors.As(err, &named) {
		x.operation = named.Operation()
	}
	e := fromEngine(err)
	charge, names := sent.get("charge")
	if names && e.charge != "" {
		e.charge = charge.text // a refund's operation makes a refund, whose id means nothing yet to who asked for it
	}
	if e.param == "charge" && sent.index("charge") < 0 {
		e.param = "id" // a capture names its charge in the path
	}
	return e
}
