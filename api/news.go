package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	"paidonce/idemkeys"
	"paidonce/inbox"
)

// News is what the edge asks of the inbox; *inbox.Inbox is the one in production.
type News interface {
	// Receive verifies a delivery on its raw bytes and stores it. Errors: [inbox.ErrSignature], [inbox.ErrMalformed], or the database's.
	Receive(ctx context.Context, body []byte, signature string) error
}

// signatureHeader is net/http's spelling.
const signatureHeader = "Stripe-Signature"

// checkSigned refuses what need not be read. The signature itself is checked on the body.
func (s *Server) checkSigned(c echo.Context) *apiError {
	switch lines := c.Request().Header[signatureHeader]; {
	case s.cfg.News == nil:
		return faultWebhooksOff.because(nil)
	case len(lines) != 1 || lines[0] == "":
		return faultSignature.of("", "Exactly one %s header is required.", signatureHeader)
	}
	return nil
}

// ReceiveStripeEvent takes an event of the provider. The signature is over the bytes as they came, so nothing looks at them before: neither query nor
// media type matter.
func (s *Server) ReceiveStripeEvent(c echo.Context, params ReceiveStripeEventParams) error {
	r := c.Request()
	if encoded(r) {
		return faultEncoding.because(nil)
	}
	body, e := readBody(c.Response(), r, s.cfg.MaxBody)
	if e != nil {
		return e
	}
	// Not the client's context: an event that is half stored when the provider hangs up should be stored. The inbox has a limit of its own.
	switch err := s.cfg.News.Receive(context.WithoutCancel(r.Context()), body, params.StripeSignature); {
	case errors.Is(err, inbox.ErrSignature):
		return faultSignature.because(nil)
	case errors.Is(err, inbox.ErrMalformed):
		return faultBodyMalformed.of("", "The body is not an event.")
	case err != nil:
		return faultUnavailable.because(err)
	}
	writeBody(c, http.StatusOK, idemkeys.Render(Received{Received: True}))
	return nil
}
