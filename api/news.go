package api

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"paidonce/idemkeys"
	"paidonce/inbox"
)

// News is what the edge asks of the inbox; *inbox.Inbox is the one in production.
type News interface {
	// Expects looks at the lines of the signature's header, before a body is read for them. Errors: [inbox.ErrSignature].
	Expects(lines []string) error
	// Receive verifies a delivery on its raw bytes and stores it. Errors: [inbox.ErrSignature], [inbox.ErrMalformed], or the database's.
	Receive(ctx context.Context, body []byte, signature string) error
}

// signatureHeader is net/http's spelling.
const signatureHeader = "Stripe-Signature"

// checkSigned refuses what need not be read: anybody may send it. The signature itself is checked on the body.
func (s *Server) checkSigned(c echo.Context) *apiError {
	if s.cfg.News == nil {
		return faultWebhooksOff.because(nil)
	}
	lines := c.Request().Header[signatureHeader]
	switch err := s.cfg.News.Expects(lines); {
	case err != nil && len(lines) != 1:
		return faultSignature.of("", "Exactly one %s header is required.", signatureHeader)
	case err != nil:
		return faultSignature.because(err)
	}
	return nil
}

const (
	// newsBodyMax is the largest event, in bytes. Those of a charge have some 5 KiB; with all the metadata that Stripe allows (50 pairs of 540 characters, twice
	// where it changed, six bytes for a character at worst) less than 400. PAIDONCE_MAX_BODY is for our own clients.
	newsBodyMax = 1 << 20
	// newsReaders is how many bodies above believedMax are read at once: 16 MiB, whoever sends them. Up to believedMax a body costs no more than its connection.
	newsReaders = 16
	// newsWait is how long a large body waits for its turn: reading one takes milliseconds, and the provider comes again.
	newsWait = 2 * time.Second
	// newsTimeout is how long a body may take to arrive, so that nobody keeps a turn for long. The provider itself gives up after some ten seconds.
	newsTimeout = 10 * time.Second
)

// readNews reads the body of a delivery, of which nobody knows yet who sent it. done is to be called when it is not needed any more.
func (s *Server) readNews(w http.ResponseWriter, r *http.Request) (body []byte, done func(), e *apiError) {
	if r.ContentLength > newsBodyMax {
		return nil, nil, tooLarge(newsBodyMax)
	}
	wait := newsTimeout
	if server, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok && server.ReadTimeout > 0 {
		wait = min(wait, server.ReadTimeout)
	}
	_ = http.NewResponseController(bare(w)).SetReadDeadline(time.Now().Add(wait)) // fails where there is no connection, as in some tests
	limited := http.MaxBytesReader(bare(w), r.Body, newsBodyMax)
	done = func() {}
	body, err := io.ReadAll(io.LimitReader(limited, believedMax))
	if err == nil && len(body) == believedMax {
		turn := time.NewTimer(newsWait)
		defer turn.Stop()
		select {
		case s.newsTurns <- struct{}{}:
			done = func() { <-s.newsTurns }
		case <-turn.C:
			return nil, nil, faultUnavailable.because(errors.New("too many large deliveries are being read"))
		}
		rest := make([]byte, 0, max(r.ContentLength, 2*believedMax)) // announced lengths are within the limit, and it is our turn
		buffer := bytes.NewBuffer(append(rest, body...))
		_, err = buffer.ReadFrom(limited)
		body = buffer.Bytes()
	}
	if body, e = wholeBody(w, r, body, err, newsBodyMax); e != nil {
		done()
		return nil, nil, e
	}
	return body, done, nil
}

// ReceiveStripeEvent takes an event of the provider. The signature is over the bytes as they came, so nothing looks at them before: neither query nor
// media type matter.
func (s *Server) ReceiveStripeEvent(c echo.Context, params ReceiveStripeEventParams) error {
	r := c.Request()
	if encoded(r) {
		return faultEncoding.because(nil)
	}
	body, done, e := s.readNews(c.Response(), r)
	if e != nil {
		return e
	}
	defer done()
	// Not the client's context: an event that is half stored when the provider hangs up should be stored. The inbox has a limit of its own.
	switch err := s.cfg.News.Receive(context.WithoutCancel(r.Context()), body, params.StripeSignature); {
	case errors.Is(err, inbox.ErrSignature):
		return faultSignature.because(nil)
	case errors.Is(err, inbox.ErrMalformed):
		return faultBodyMalformed.of("", "The body is not an event.")
	case err != nil:
		return fromDatabase(err)
	}
	writeBody(c, http.StatusOK, idemkeys.Render(Received{Received: True}))
	return nil
}
