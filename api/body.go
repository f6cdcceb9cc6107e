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
)

// DefaultMaxBody is the largest body that is read unless configured otherwise: some two hundred times the largest sensible charge.
const DefaultMaxBody = 1 << 20

// believedMax is the largest length, in bytes, for which room is made because it is announced; larger bodies get room as they arrive. Events of the
// provider are read before anybody knows who sends them.
const believedMax = 16 << 10

// medium is how a body is written.
type medium uint8

const (
	mediumJSON medium = iota
	mediumForm
)

// readParameters reads the body of a request by the table. Nothing of a body is looked at before all of it has arrived within the limit.
func readParameters(w http.ResponseWriter, r *http.Request, bodyMax int64, s shape) (*parameters, *apiError) {
	if encoded(r) {
		return nil, faultEncoding.because(nil)
	}
	m, mediumErr := mediumOf(r.Header.Values("Content-Type"))
	if mediumErr != nil && r.ContentLength > 0 {
		return nil, mediumErr
	}
	body, e := readBody(w, r, bodyMax)
	switch {
	case e != nil:
		return nil, e
	case len(body) == 0 && len(r.Header.Values("Content-Type")) == 0:
		return newParameters(s), nil
	case mediumErr != nil:
		return nil, mediumErr
	case m == mediumForm:
		sent, e := decodeForm(string(body), s, faultBodyMalformed)
		if e != nil && bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{")) { // as curl sends JSON when it is not told that it is
			e.message += " The body was read as a form, as its Content-Type says: JSON needs Content-Type: application/json."
		}
		return sent, e
	}
	return decodeJSON(body, s)
}

// encoded reports whether a body is compressed, or the like.
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
func mediumOf(lines []string) (medium, *apiError) {
	if len(lines) != 1 {
		return 0, faultMediaType.because(nil)
	}
	switch lines[0] {
	case "application/json":
		return mediumJSON, nil
	case "application/x-www-form-urlencoded":
		return mediumForm, nil
	}
	mediaType, params, err := mime.ParseMediaType(lines[0])
	if err != nil {
		return 0, faultMediaType.because(err)
	}
	if charset, given := params["charset"]; given {
		if c := lowerASCII(charset); c != "utf-8" && c != "utf8" {
			return 0, faultMediaType.because(nil)
		}
	}
	switch mediaType {
	case "application/json":
		return mediumJSON, nil
	case "application/x-www-form-urlencoded":
		return mediumForm, nil
	}
	return 0, faultMediaType.because(nil)
}

// readBody reads all of the body, or says why that was not possible.
func readBody(w http.ResponseWriter, r *http.Request, bodyMax int64) ([]byte, *apiError) {
	if r.ContentLength > bodyMax {
		return nil, tooLarge(bodyMax)
	}
	limited := http.MaxBytesReader(bare(w), r.Body, bodyMax)
	var body []byte
	var err error
	if r.ContentLength >= 0 && r.ContentLength <= believedMax {
		body = make([]byte, r.ContentLength)
		_, err = io.ReadFull(limited, body)
	} else {
		body, err = io.ReadAll(limited)
	}
	return wholeBody(w, r, body, err, bodyMax)
}

// wholeBody notes that nothing of a body is left on the wire, unless reading it failed.
func wholeBody(w http.ResponseWriter, r *http.Request, body []byte, err error, bodyMax int64) ([]byte, *apiError) {
	if e := bodyFault(w, err, bodyMax); e != nil {
		return nil, e
	}
	r.Body = http.NoBody
	return body, nil
}

// bare is net/http's own writer below what surrounds it: MaxBytesReader can tell no other that the rest of a body is not wanted.
func bare(w http.ResponseWriter) http.ResponseWriter {
	for {
		around, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return w
		}
		w = around.Unwrap()
	}
}

func tooLarge(bodyMax int64) *apiError {
	return faultBodyTooLarge.of("", "The body is larger than %d bytes.", bodyMax)
}

// bodyFault is the answer to an error of reading a body; nil to none.
func bodyFault(w http.ResponseWriter, err error, bodyMax int64) *apiError {
	var over *http.MaxBytesError
	var timeout net.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &over):
		return tooLarge(bodyMax)
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		w.Header().Set("Connection", "close")
		return faultTimeout.because(err)
	default:
		w.Header().Set("Connection", "close")
		return faultBodyIncomplete.because(err)
	}
}

const (
	// A rest of a body up to this size is left to net/http, which takes it after the answer and uses the connection again.
	restSmall = 64 << 10
	// What is taken of a longer one before the connection ends: a client that sends all of its body before it reads would else see a reset instead of the
	// answer. It is several times what may be sent; the pauses and the time in all are what a slow line, but nobody who only holds connections, needs.
	restMax   = 16 << 20
	restPause = 3 * time.Second
	restTime  = 30 * time.Second
)

// restUnread reports whether a body was left on the wire by a request that is refused, and is so long, or may be, that the connection has to end after the answer.
func restUnread(r *http.Request, e *apiError) bool {
	if r.Body == http.NoBody || e.code == faultTimeout.code || e.code == faultBodyIncomplete.code { // nothing more is to come
		return false
	}
	return r.ContentLength < 0 || r.ContentLength > restSmall
}

// takeRest lets the client read the answer, which is written, before its connection ends.
func takeRest(w http.ResponseWriter, r *http.Request) {
	control := http.NewResponseController(bare(w))
	if control.Flush() != nil {
		return
	}
	end := time.Now().Add(restTime)
	for taken := int64(0); taken < restMax && time.Now().Before(end); {
		if control.SetReadDeadline(time.Now().Add(restPause)) != nil { // not a connection, as in some tests
			return
		}
		n, err := io.CopyN(io.Discard, r.Body, believedMax)
		if err != nil {
			return
		}
		taken += n
	}
}
