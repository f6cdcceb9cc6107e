package api

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"paidonce/problem"
)

// DefaultMaxBody is the largest body that is read unless configured otherwise: some two hundred
// times the largest sensible charge.
const DefaultMaxBody = 1 << 20

// preallocMax is the largest announced length, in bytes, for which memory is allocated at once.
// Larger bodies get memory as they arrive, since events of the provider are read before it is known
// who sent them.
const preallocMax = 16 << 10

// medium is how a body is written.
type medium uint8

const (
	mediumJSON medium = iota
	mediumForm
)

// readBody reads the body of a request by its operation's table. Nothing of a body is looked at
// before all of it has arrived within the limit.
func (s *Server) readBody(c echo.Context, of *request) (*parameters, *problem.Error) {
	r, takes := c.Request(), of.op.body
	if encoded(r) {
		return nil, problem.EncodingUnsupported.New()
	}
	m, mediumErr := mediumOf(r.Header.Values("Content-Type"))
	if mediumErr != nil && r.ContentLength > 0 {
		return nil, mediumErr
	}
	body, e := readAll(c.Response(), r, s.cfg.MaxBody)
	switch {
	case e != nil:
		return nil, e
	case len(body) == 0 && len(r.Header.Values("Content-Type")) == 0:
		return newParameters(takes), nil
	case mediumErr != nil:
		return nil, mediumErr
	}
	sent, e := decode(body, m, takes)
	// Only of what exists can something be taken away.
	if e == nil && !strings.HasPrefix(of.op.id, "update") {
		sent.dropUnset()
	}
	return sent, e
}

func decode(body []byte, m medium, takes shape) (*parameters, *problem.Error) {
	if m == mediumJSON {
		return decodeJSON(body, takes)
	}
	sent, e := decodeForm(string(body), takes, problem.BodyMalformed)
	// As curl sends JSON without -H Content-Type.
	if e != nil && bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{")) {
		e.Message += " The body was read as a form, as its Content-Type says: JSON needs Content-Type: application/json."
	}
	return sent, e
}

// encoded reports whether a body is compressed or otherwise encoded.
func encoded(r *http.Request) bool {
	for _, codings := range r.Header.Values("Content-Encoding") {
		for coding := range strings.SplitSeq(codings, ",") {
			if c := lowerASCII(strings.Trim(coding, " \t")); c != "" && c != "identity" {
				return true
			}
		}
	}
	return false
}

// mediumOf reads the Content-Type lines. The two usual spellings need no parsing.
func mediumOf(lines []string) (medium, *problem.Error) {
	if len(lines) != 1 {
		return 0, problem.MediaTypeUnsupported.New()
	}
	switch lines[0] {
	case "application/json":
		return mediumJSON, nil
	case "application/x-www-form-urlencoded":
		return mediumForm, nil
	}
	mediaType, params, err := mime.ParseMediaType(lines[0])
	if err != nil {
		return 0, problem.MediaTypeUnsupported.Because(err)
	}
	if charset, given := params["charset"]; given {
		if c := lowerASCII(charset); c != "utf-8" && c != "utf8" {
			return 0, problem.MediaTypeUnsupported.New()
		}
	}
	switch mediaType {
	case "application/json":
		return mediumJSON, nil
	case "application/x-www-form-urlencoded":
		return mediumForm, nil
	}
	return 0, problem.MediaTypeUnsupported.New()
}

// readAll reads all of the body, or says why that was not possible.
func readAll(w http.ResponseWriter, r *http.Request, bodyMax int64) ([]byte, *problem.Error) {
	if r.ContentLength > bodyMax {
		return nil, tooLarge(bodyMax)
	}
	limited := http.MaxBytesReader(innermost(w), r.Body, bodyMax)
	var body []byte
	var err error
	if r.ContentLength >= 0 && r.ContentLength <= preallocMax {
		body = make([]byte, r.ContentLength)
		_, err = io.ReadFull(limited, body)
	} else {
		body, err = io.ReadAll(limited)
	}
	return finishBody(w, r, body, err, bodyMax)
}

// finishBody notes that nothing of a body is left on the wire, unless reading it failed.
func finishBody(
	w http.ResponseWriter, r *http.Request, body []byte, err error, bodyMax int64,
) ([]byte, *problem.Error) {
	if e := bodyFault(w, err, bodyMax); e != nil {
		return nil, e
	}
	r.Body = http.NoBody
	return body, nil
}

// innermost returns net/http's own writer below its wrappers. It is the only one that
// MaxBytesReader can ask to close the connection.
func innermost(w http.ResponseWriter) http.ResponseWriter {
	for {
		wrapper, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return w
		}
		w = wrapper.Unwrap()
	}
}

func tooLarge(bodyMax int64) *problem.Error {
	return problem.BodyTooLarge.Of("", "The body is larger than %d bytes.", bodyMax)
}

// bodyFault returns the answer to an error of reading a body, and nil if there was none.
func bodyFault(w http.ResponseWriter, err error, bodyMax int64) *problem.Error {
	var over *http.MaxBytesError
	var timeout net.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &over):
		return tooLarge(bodyMax)
	case errors.Is(err, os.ErrDeadlineExceeded),
		errors.Is(err, context.DeadlineExceeded),
		errors.As(err, &timeout) && timeout.Timeout():
		w.Header().Set("Connection", "close")
		return problem.RequestTimeout.Because(err)
	default:
		w.Header().Set("Connection", "close")
		return problem.BodyIncomplete.Because(err)
	}
}

const (
	// A remainder of a body up to this size is left to net/http, which reads it after the answer
	// and reuses the connection.
	restSmall = 64 << 10
	// What is read of a longer remainder before the connection is closed. Without that, a client
	// that sends its whole body before it reads would see a reset instead of the answer. The size
	// is several times the largest body. The times suffice for a slow line, and are too short for
	// clients that only hold connections.
	restMax   = 16 << 20
	restPause = 3 * time.Second
	restTime  = 30 * time.Second
)

// restUnread reports whether a body was left on the wire by a request that is refused, and is so
// long, or may be, that the connection has to end after the answer.
func restUnread(r *http.Request, e *problem.Error) bool {
	// Nothing more is to come.
	if r.Body == http.NoBody || e.Code == problem.RequestTimeout ||
		e.Code == problem.BodyIncomplete {
		return false
	}
	return r.ContentLength < 0 || r.ContentLength > restSmall
}

// discardRest reads the remainder of a body after the answer is written, so that the client can
// read the answer before its connection is closed.
func discardRest(w http.ResponseWriter, r *http.Request) {
	control := http.NewResponseController(innermost(w))
	if control.Flush() != nil {
		return
	}
	end := time.Now().Add(restTime)
	for taken := int64(0); taken < restMax && time.Now().Before(end); {
		// Not a connection, as in some tests.
		if control.SetReadDeadline(time.Now().Add(restPause)) != nil {
			return
		}
		n, err := io.CopyN(io.Discard, r.Body, preallocMax)
		if err != nil {
			return
		}
		taken += n
	}
}
