package paidonce

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"paidonce/sdk/go/rest"
)

// Error is an error that the server answered with.
type Error struct {
	Status int
	// One of openapi.yaml, such as card_error; empty if the answer is not from Paidonce but, say,
	// from a proxy.
	Type        string
	Code        string
	Message     string
	Param       string
	DeclineCode string
	Charge      string
	Advice      string // retry_same_key, fix_and_use_new_key or stop
	RequestID   string // of this exchange
	Replayed    bool   // whether the answer was stored by an earlier request with the same key
	Header      http.Header
}

func (e *Error) Error() string {
	if e.Code == "" {
		return fmt.Sprintf("paidonce: %d %s", e.Status, e.Message)
	}
	return fmt.Sprintf("paidonce: %d %s: %s", e.Status, e.Code, e.Message)
}

// Is makes errors.Is(err, ErrDeclined) and the like work.
func (e *Error) Is(target error) bool {
	switch target {
	case ErrDeclined:
		return e.declined()
	case ErrKeyInUse:
		return e.Code == "idempotency_key_in_use"
	case ErrKeyReused:
		return e.Code == "idempotency_key_reused"
	case ErrNotFound:
		return e.Status == http.StatusNotFound && e.Type != ""
	}
	return false
}

// declined reports whether the payment was declined, which is a final answer. A 402 of a proxy is
// not.
func (e *Error) declined() bool {
	return e.Status == http.StatusPaymentRequired && e.Type == string(rest.CardError)
}

// refuses reports whether Paidonce itself found the request wrong. It is false for errors of the
// caller, such as a 401: the same request succeeds once they are fixed. A 404 is such an error,
// too, unless what is missing is what the request names.
func (e *Error) refuses() bool {
	return e.Type == string(rest.InvalidRequestError) &&
		(e.Advice == string(rest.FixAndUseNewKey) || e.Status == http.StatusNotFound &&
			e.Code == "resource_missing")
}

// Kinds of errors, for errors.Is; errors.As with *Error gives the details of the first four.
var (
	ErrDeclined  = errors.New("paidonce: the payment was declined")
	ErrKeyInUse  = errors.New("paidonce: the same request is running")
	ErrKeyReused = errors.New("paidonce: the key stands for another request")
	ErrNotFound  = errors.New("paidonce: there is no such thing")

	// ErrNoOutcome: the time is over, and the outcome of the request is not known. The operation is
	// stored: call again, or Resume it.
	ErrNoOutcome = errors.New("paidonce: time is up, and the outcome is not known")
	// ErrMismatch: the operation was begun with another request. Nothing was sent.
	ErrMismatch = errors.New("paidonce: the operation was begun with another request")
	// ErrStale: the operation was begun so long ago that the server may have forgotten its key.
	// Nothing was sent: look for the charge.
	ErrStale = errors.New("paidonce: the operation was begun too long ago to be sent again")
	// ErrUnknownOperation: no operation was begun under the name.
	ErrUnknownOperation = errors.New("paidonce: there is no such operation")
)

// errorOf returns the error of an answer. An answer that is not from Paidonce, such as a proxy's
// page, gives an error without details.
func errorOf(a answer) *Error {
	e := &Error{
		Status: a.status, Message: http.StatusText(a.status), RequestID: a.header.Get("Request-Id"),
		Replayed: a.replayed(), Header: a.header,
	}
	var body rest.Error
	if json.Unmarshal(a.body, &body) != nil || body.Error.Type == "" {
		return e
	}
	d := body.Error
	e.Type, e.Message, e.Advice = string(d.Type), d.Message, string(d.Advice)
	e.Code, e.Param, e.DeclineCode, e.Charge = text(d.Code), text(d.Param), text(d.DeclineCode),
		text(d.Charge)
	return e
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
