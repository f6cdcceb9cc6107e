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

// encoded tells whether a body is compressed, or the like.
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
	tooLarge := faultBodyTooLarge.of("", "The body is larger than %d bytes.", bodyMax)
	if r.ContentLength > bodyMax {
		w.Header().Set("Connection", "close") // rather than read what nobody wants
		return nil, tooLarge
	}
	// MaxBytesReader also makes the server close the connection when the limit is passed.
	limited := http.MaxBytesReader(w, r.Body, bodyMax)
	var body []byte
	var err error
	if r.ContentLength >= 0 && r.ContentLength <= believedMax {
		body = make([]byte, r.ContentLength)
		_, err = io.ReadFull(limited, body)
	} else {
		body, err = io.ReadAll(limited)
	}
	var over *http.MaxBytesError
	var timeout net.Error
	switch {
	case err == nil:
		return body, nil
	case errors.As(err, &over):
		return nil, tooLarge
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		w.Header().Set("Connection", "close")
		return nil, faultTimeout.because(err)
	default:
		w.Header().Set("Connection", "close")
		return nil, faultBodyIncomplete.because(err)
	}
}
