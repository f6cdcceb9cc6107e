package api

import (
	"context"
	"errors"

	"github.com/labstack/echo/v4"

	"paidonce/idemkeys"
	"paidonce/problem"
)

// idempotent handles every operation that moves money: it reads the body, asks the domain to do the
// work once for the request's key, and writes the key's answer. parse turns parameters into what
// they ask for; a request that it refuses has not spent its key.
func idempotent[P any](s *Server, c echo.Context, r *request, parse func(*parameters) (P, *problem.Error),
	do func(context.Context, idemkeys.Request, P) (idemkeys.Result, error),
) error {
	a, e := readAsked(s, c, r, parse)
	if e != nil {
		return e
	}
	// The API key may have been looked up a while ago. The domain's own statements check it again,
	// so a revoked key begins nothing and learns nothing. The client may hang up: the work goes on,
	// and a retry with the same key learns the result. The domain sets the deadlines.
	res, err := do(context.WithoutCancel(c.Request().Context()), a.by, a.wanted)
	return r.answer(c, &res, err)
}

// asked is what a request asks for, and under which key.
type asked[P any] struct {
	by     idemkeys.Request
	wanted P
}

// readAsked reads the body and the headers.
func readAsked[P any](
	s *Server, c echo.Context, r *request, parse func(*parameters) (P, *problem.Error),
) (*asked[P], *problem.Error) {
	sent, e := s.readBody(c, r)
	if e != nil {
		return nil, e
	}
	wanted, e := parse(sent)
	if e != nil {
		return nil, e
	}
	a := &asked[P]{keyRequest(c, r, sent), wanted}
	if wait, asked := preferredWait(c.Request().Header["Prefer"]); asked {
		a.by.Wait = wait
		c.Response().Header()["Preference-Applied"] = []string{appliedWait(wait)}
	}
	return a, nil
}

// answer writes what the domain returned.
func (r *request) answer(c echo.Context, res *idemkeys.Result, err error) error {
	r.operationID = res.OperationID
	if err != nil {
		var named interface{ Operation() string } // in use, unknown, parked
		if errors.As(err, &named) {
			r.operationID = named.Operation()
		}
		return fromEngine(err)
	}
	writeResult(c, r, *res)
	return nil
}

// keyRequest returns the request as idemkeys takes it.
func keyRequest(c echo.Context, r *request, sent *parameters) idemkeys.Request {
	u := c.Request().URL
	return idemkeys.Request{
		AccountID: r.identity.AccountID, APIKeyID: r.identity.APIKeyID, Key: r.key, RequestID: r.id,
		Fingerprint: idemkeys.NewFingerprint(c.Request().Method, u.EscapedPath(),
			canonicalQuery(u.RawQuery), sent.canonical()),
	}
}

// writeLocal writes the result of a request that changed only the database, and for which a key is
// optional. what names the kind of resource in answers.
func writeLocal(c echo.Context, r *request, res idemkeys.Result, err error, what string) error {
	if r.key != "" && (err == nil || errors.Is(err, idemkeys.ErrReused)) {
		c.Response().Header()["Idempotency-Key"] = []string{r.key}
	}
	switch {
	case errors.Is(err, idemkeys.ErrReused), errors.Is(err, idemkeys.ErrForbidden):
		return fromEngine(err)
	case err != nil:
		return fromEvents(err, what)
	case r.key == "":
		if location := res.Answer.Header["Location"]; location != "" {
			c.Response().Header()["Location"] = []string{location}
		}
		writeBody(c, res.Answer.Code, res.Answer.Body)
		return nil
	}
	r.operationID = res.OperationID
	writeResult(c, r, res)
	return nil
}
