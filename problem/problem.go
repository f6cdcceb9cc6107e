// Package problem has the errors that clients are told, and the bytes of answers.
//
// codes.go is the table of all errors: what follows from a code, its HTTP status among it, is said
// there and nowhere else. An [Error] is one of them as it happened. The domain returns it, the HTTP
// edge writes it, and what a key's answer was stays stored in these very bytes: the form never
// changes.
package problem

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"
)

// Advice says what a program should do about an error.
type Advice string

// What a program can do.
const (
	RetrySameKey    Advice = "retry_same_key"
	FixAndUseNewKey Advice = "fix_and_use_new_key"
	Stop            Advice = "stop"
	// UseExisting says that what the request asks for is there already: the error names it.
	UseExisting Advice = "use_existing"
)

// The statuses of stored answers that are not errors.
const (
	OK      = http.StatusOK
	Created = http.StatusCreated
)

// Error is an error as it happened: its code, and what depends on the request.
type Error struct {
	Code    Code
	Message string
	Param   string // the parameter at fault
	Charge  string // the charge that it is about

	// PaymentIntent is the payment intent that it is about, as clients see it; nil: there is none.
	PaymentIntent any

	// ProviderCode is shown in place of the code's own name, DeclineCode beside it, if there are
	// any.
	ProviderCode, DeclineCode string

	RetryAfter time.Duration // when to come back; 0: no word of that
	Cause      error         // for the log; never shown to clients
}

func (e *Error) Error() string { return e.Code.String() + ": " + e.Message }
func (e *Error) Unwrap() error { return e.Cause }

// New returns the code's error, with the message that it usually has.
func (c Code) New() *Error {
	return &Error{Code: c, Message: table[c].message, RetryAfter: table[c].retryAfter}
}

// Because is New with a cause for the log.
func (c Code) Because(cause error) *Error {
	e := c.New()
	e.Cause = cause
	return e
}

// Of is the error of a parameter, which may be empty, with a message of its own.
func (c Code) Of(param, format string, args ...any) *Error {
	e := c.New()
	e.Param, e.Message = Printable(param), fmt.Sprintf(format, args...)
	return e
}

// After sets when to come back, unless nothing is known about that.
func (e *Error) After(d time.Duration) *Error {
	if d > 0 {
		e.RetryAfter = d
	}
	return e
}

// Name is the code as clients see it.
func (e *Error) Name() string { return cmp.Or(e.ProviderCode, e.Code.String()) }

// Body returns the body of the answer, with Stripe's shape: an error object.
func (e *Error) Body(requestID string) []byte {
	type object struct {
		Type        string `json:"type"`
		Code        string `json:"code,omitempty"`
		Message     string `json:"message"`
		Param       string `json:"param,omitempty"`
		DeclineCode string `json:"decline_code,omitempty"`
		Charge      string `json:"charge,omitempty"`
		Intent      any    `json:"payment_intent,omitempty"`
		RequestID   string `json:"request_id"`
		Advice      Advice `json:"advice"`
	}
	return Render(struct {
		Error object `json:"error"`
	}{object{
		Type: e.Code.Type(), Code: e.Name(), Message: e.Message, Param: e.Param,
		DeclineCode: e.DeclineCode,
		Charge:      e.Charge, Intent: e.PaymentIntent, RequestID: requestID,
		Advice: e.Code.Advice(),
	}})
}

// Render encodes v as the body of an answer: JSON without HTML escapes, ended by a newline. v must
// be encodable.
func Render(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		// Only our own types come here, and all of them are encodable.
		panic("rendering an answer: " + err.Error())
	}
	return b.Bytes()
}

// paramMax is how many bytes of a client's name are repeated: ours have some thirty.
const paramMax = 100

// Printable makes a client's name fit to be repeated in an error: it may be anything, and of any
// length.
func Printable(name string) string {
	if len(name) > paramMax {
		cut := paramMax
		for cut > 0 && !utf8.RuneStart(name[cut]) {
			cut--
		}
		name = name[:cut] + "…"
	}
	return strings.ReplaceAll(strings.ToValidUTF8(name, "\uFFFD"), "\x00", "\uFFFD")
}
