package api

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"paidonce/inbox"
	"paidonce/problem"
)

// signatureHeader is net/http's spelling.
const signatureHeader = "Stripe-Signature"

// checkSigned refuses requests whose body need not be read, since anybody may send one. The
// signature itself is checked when the body is there.
func (s *Server) checkSigned(c echo.Context) *problem.Error {
	if s.cfg.ProviderEvents == nil {
		return problem.WebhooksNotConfigured.New()
	}
	lines := c.Request().Header[signatureHeader]
	switch err := s.cfg.ProviderEvents.Expects(lines); {
	case err != nil && len(lines) != 1:
		return problem.SignatureInvalid.Of("", "Exactly one %s header is required.",
			signatureHeader)
	case err != nil:
		return problem.SignatureInvalid.Because(err)
	}
	return nil
}

const (
	// eventBodyMax is the largest event, in bytes. Those of a charge have some 5 KiB; with all the
	// metadata that Stripe allows (50 pairs of 540 characters, twice where it changed, six bytes
	// for a character at worst) less than 400. PAIDONCE_MAX_BODY is for the API's own clients.
	eventBodyMax = 1 << 20
	// eventReadersMax is how many bodies above preallocMax are read at once, so that they take at
	// most 16 MiB. A body up to preallocMax costs no more than its connection.
	eventReadersMax = 16
	// eventTurnWait is how long a large body waits for its turn: reading one takes milliseconds,
	// and the provider sends a refused event again.
	eventTurnWait = 2 * time.Second
	// eventBodyTimeout is how long a body may take to arrive, so that nobody keeps a turn for long.
	// The provider itself gives up after some ten seconds.
	eventBodyTimeout = 10 * time.Second
)

// readDelivery reads the body of a delivery, whose sender is not known yet. Call done when the body
// is no longer needed.
func (s *Server) readDelivery(
	w http.ResponseWriter, r *http.Request,
) (body []byte, done func(), e *problem.Error) {
	if r.ContentLength > eventBodyMax {
		return nil, nil, tooLarge(eventBodyMax)
	}
	wait := eventBodyTimeout
	if server, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok &&
		server.ReadTimeout > 0 {
		wait = min(wait, server.ReadTimeout)
	}
	// Fails where there is no connection, as in some tests.
	_ = http.NewResponseController(innermost(w)).SetReadDeadline(time.Now().Add(wait))
	limited := http.MaxBytesReader(innermost(w), r.Body, eventBodyMax)
	done = func() {}
	body, err := io.ReadAll(io.LimitReader(limited, preallocMax))
	if err == nil && len(body) == preallocMax {
		turn := time.NewTimer(eventTurnWait)
		defer turn.Stop()
		select {
		case s.eventTurns <- struct{}{}:
			done = func() { <-s.eventTurns }
		case <-turn.C:
			return nil, nil, problem.Unavailable.Because(errors.New("too many large deliveries are being read"))
		}
		// Announced lengths are within the limit, and it is our turn.
		rest := make([]byte, 0, max(r.ContentLength, 2*preallocMax))
		buffer := bytes.NewBuffer(append(rest, body...))
		_, err = buffer.ReadFrom(limited)
		body = buffer.Bytes()
	}
	if body, e = finishBody(w, r, body, err, eventBodyMax); e != nil {
		done()
		return nil, nil, e
	}
	return body, done, nil
}

// receiveStripeEvent takes an event of the provider. The signature is over the bytes as they came,
// so nothing looks at them before: neither query nor media type nor encoding matter.
func (s *Server) receiveStripeEvent(c echo.Context, _ *request) error {
	if e := s.checkSigned(c); e != nil {
		return e
	}
	r := c.Request()
	body, done, e := s.readDelivery(c.Response(), r)
	if e != nil {
		return e
	}
	defer done()
	// The client's context is not used: an event should be stored even if the provider hangs up.
	// The inbox has a time limit of its own.
	switch err := s.cfg.ProviderEvents.Receive(context.WithoutCancel(r.Context()), body,
		r.Header.Get(signatureHeader)); {
	case errors.Is(err, inbox.ErrSignature):
		return problem.SignatureInvalid.New()
	case err != nil:
		return fromDatabase(err)
	}
	writeBody(c, http.StatusOK, problem.Render(struct {
		Received bool `json:"received"`
	}{true}))
	return nil
}
