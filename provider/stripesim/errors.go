package stripesim

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

const (
	typeInvalid     = "invalid_request_error"
	typeCard        = "card_error"
	typeIdempotency = "idempotency_error"
	typeAPI         = "api_error"
)

// apiError is an error answer of Stripe's shape. It is kept in the ledger when it is stored under a
// key.
type apiError struct {
	Status      int    `json:"status"`
	Type        string `json:"type"`
	Code        string `json:"code,omitempty"`
	DeclineCode string `json:"decline_code,omitempty"`
	Message     string `json:"message"`
	Param       string `json:"param,omitempty"`
	Charge      string `json:"charge,omitempty"`
	// Intent is shown with errors about one; never in the error that is the intent's own Failure.
	Intent *intent `json:"intent,omitempty"`
	Public bool    `json:"public,omitempty"` // the intent is shown as to a browser
}

func (a *apiError) render(e *enc) {
	e.open()
	e.key("error")
	a.inside(e)
	e.close()
}

// inside renders what stands in the envelope, which is also an intent's last_payment_error.
func (a *apiError) inside(e *enc) {
	e.open()
	for _, f := range [...]pair{{"charge", a.Charge}, {"code", a.Code}, {"decline_code", a.DeclineCode}} {
		if f.V != "" {
			e.text(f.K, f.V)
		}
	}
	if a.Code != "" {
		e.text("doc_url", "https://stripe.com/docs/error-codes/"+strings.ReplaceAll(a.Code, "_", "-"))
	}
	e.text("message", a.Message)
	if a.Param != "" {
		e.text("param", a.Param)
	}
	switch {
	case a.Intent != nil && a.Public:
		e.object("payment_intent", publicIntent{a.Intent})
	case a.Intent != nil:
		e.object("payment_intent", a.Intent)
	}
	e.text("type", a.Type)
	e.close()
}

func invalid(code, param, format string, args ...any) *apiError {
	return &apiError{Status: http.StatusBadRequest, Type: typeInvalid, Code: code, Param: param, Message: fmt.Sprintf(format, args...)}
}

func missing(param string) *apiError {
	return invalid("parameter_missing", param, "Missing required param: %s.", param)
}

func noSuch(what, id, param string) *apiError {
	e := invalid("resource_missing", param, "No such %s: '%s'", what, id)
	e.Status = http.StatusNotFound
	return e
}

// noSuchParam is noSuch for an object that was named by a parameter, not by the path: Stripe
// answers 400 then.
func noSuchParam(what, id, param string) *apiError {
	e := noSuch(what, id, param)
	e.Status = http.StatusBadRequest
	return e
}

// errorFor gives the body that belongs to a status a fault rule asks for.
func errorFor(status int) *apiError {
	e := &apiError{Status: status, Type: typeInvalid, Message: "Simulated answer " + strconv.Itoa(status) + "."}
	switch {
	case status >= http.StatusInternalServerError:
		e.Type, e.Message = typeAPI, "An unknown error occurred (simulated)."
	case status == http.StatusTooManyRequests:
		e.Code, e.Message = "rate_limit", "Request rate limit exceeded (simulated)."
	case status == http.StatusUnauthorized:
		e.Message = "Invalid API Key provided: sk_test_****imul"
	case status == http.StatusForbidden:
		e.Message = "The provided key does not have the required permissions for this endpoint (simulated)."
	case status == http.StatusPaymentRequired:
		e.Type, e.Code, e.DeclineCode, e.Message = typeCard, "card_declined", "generic_decline", "Your card was declined."
	case status == http.StatusConflict:
		*e = *inUse("(simulated)")
	}
	return e
}

// inUse is what a second request gets while the first under the same key runs. The words and the
// type are those that Stripe's plugins match on.
func inUse(key string) *apiError {
	return &apiError{
		Status: http.StatusConflict, Type: typeInvalid, Code: "idempotency_key_in_use",
		Message: "There is currently another in-progress request using this Idempotent Key (that probably means you submitted twice, " +
			"and the other request is still going through): " + key + ". Please try again later.",
	}
}

// money writes an amount the way Stripe's messages do.
func money(amount int64, currency string) string {
	exp := 2
	if zeroDecimal[currency] {
		exp = 0
	} else if threeDecimal[currency] {
		exp = 3
	}
	s := strconv.FormatInt(amount, 10)
	if exp > 0 {
		for len(s) <= exp {
			s = "0" + s
		}
		s = s[:len(s)-exp] + "." + s[len(s)-exp:]
	}
	switch currency {
	case "usd":
		return "$" + s
	case "eur":
		return "€" + s
	case "gbp":
		return "£" + s
	}
	return s + " " + strings.ToUpper(currency)
}
