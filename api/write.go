package api

import (
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"paidonce/idemkeys"
)

// writeBody sends an answer: its length is told, and nothing follows.
func writeBody(c echo.Context, status int, body []byte) {
	w := c.Response()
	h := w.Header()
	h["Content-Type"] = applicationJSON
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that has gone does not want to hear of it
}

// writeProblem sends the error object.
func writeProblem(c echo.Context, x *exchange, e *apiError) {
	h := c.Response().Header()
	h["Stripe-Should-Retry"] = []string{e.shouldRetry()}
	if e.retryAfter > 0 {
		h["Retry-After"] = []string{seconds(e.retryAfter)}
	}
	if e.status == http.StatusUnauthorized {
		h["Www-Authenticate"] = []string{`Bearer realm="paidonce", Basic realm="paidonce"`}
	}
	writeBody(c, e.status, idemkeys.Problem{
		Type: e.kind, Code: e.code, Message: e.message, Param: e.param, Charge: e.charge, RequestID: x.id, Advice: e.advice,
	}.Render())
}

// writeResult sends the answer that a key stands for: its status, its bytes, and of its headers those that belong to the result
// rather than to the exchange that made it.
func writeResult(c echo.Context, x *exchange, res idemkeys.Result) {
	h := c.Response().Header()
	switch {
	case res.Replayed:
		x.outcome = OutcomeReplayed
	case res.OriginalRequest == x.id:
		x.outcome = OutcomeFresh
	default:
		x.outcome = OutcomeResumed
	}
	if res.Replayed {
		h["Idempotent-Replayed"] = []string{"true"}
		h["Original-Request"] = []string{res.OriginalRequest}
	}
	if location := res.Answer.Header["Location"]; location != "" {
		h["Location"] = []string{location}
	}
	if res.Answer.Code >= http.StatusBadRequest {
		// Proven not to have happened: the same request under the same key runs anew. Any other stored error is final.
		again := res.Status == idemkeys.Failed
		h["Stripe-Should-Retry"] = []string{strconv.FormatBool(again)}
		if again {
			h["Retry-After"] = []string{seconds(unavailableRetry)}
		}
	}
	writeBody(c, res.Answer.Code, res.Answer.Body)
}
