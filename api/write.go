package api

import (
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"paidonce/idemkeys"
	"paidonce/problem"
)

// writeBody sends a complete answer, with its length.
func writeBody(c echo.Context, status int, body []byte) {
	w := c.Response()
	h := w.Header()
	h["Content-Type"] = applicationJSON
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that has gone does not want to hear of it
}

// writeProblem sends the error object.
func writeProblem(c echo.Context, r *request, e *problem.Error) {
	h := c.Response().Header()
	h["Stripe-Should-Retry"] = []string{shouldRetry(e.Code)}
	if e.RetryAfter > 0 {
		h["Retry-After"] = []string{seconds(e.RetryAfter)}
	}
	if e.Code.Status() == http.StatusUnauthorized {
		h["Www-Authenticate"] = []string{`Bearer realm="paidonce", Basic realm="paidonce"`}
	}
	writeBody(c, e.Code.Status(), e.Body(r.id))
}

// writeResult sends the answer of a key: its status, its bytes, and those of its headers that
// belong to the result rather than to the request that made it.
func writeResult(c echo.Context, r *request, res idemkeys.Result) {
	h := c.Response().Header()
	switch {
	case res.Replayed:
		r.outcome = OutcomeReplayed
	case res.OriginalRequest == r.id:
		r.outcome = OutcomeFresh
	default:
		r.outcome = OutcomeResumed
	}
	if res.Replayed {
		h["Idempotent-Replayed"] = []string{"true"}
		h["Original-Request"] = []string{res.OriginalRequest}
	}
	if location := res.Answer.Header["Location"]; location != "" {
		h["Location"] = []string{location}
	}
	if res.Answer.Code >= http.StatusBadRequest {
		// An operation that is proven not to have happened may run again under the same key. Any
		// other stored error is final.
		again := res.Status == idemkeys.Failed
		h["Stripe-Should-Retry"] = []string{strconv.FormatBool(again)}
		if again {
			h["Retry-After"] = []string{seconds(problem.Soon)}
		}
	}
	writeBody(c, res.Answer.Code, res.Answer.Body)
}
