package stripe

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	sdk "github.com/stripe/stripe-go/v76"

	"paidonce/provider"
)

// meaning is what an answer of 400 and above says about the call.
type meaning int

const (
	unknown     meaning = iota // may or may not have been carried out
	declined                   // outcome: the card said no
	refused                    // outcome: Stripe won't do it, now or later
	notExecuted                // had no effect; the same key again later
	rateLimited                // had no effect, nor would others now
	credentials                // had no effect; an operator has to act
	inFlight                   // another request under the key runs
	conflict                   // a bug on our side; an operator has to look
)

// What a row asks of the error's type, beside one of Stripe's types. No type of an error has a
// space.
const (
	anything sdk.ErrorType = ""         // any answer
	anyType  sdk.ErrorType = "any type" // an error object of whatever type
	noType   sdk.ErrorType = "no type"  // an error object that names none
)

// answers is the whole of our knowledge about Stripe's errors: the first row that fits decides, and
// whatever fits none is unknown. Only what is surely definitive may be declined or refused: a wrong
// "unknown" costs a look-up, a wrong outcome costs money. Rows for anything hold also when the body
// is no JSON; the others need an error object.
var answers = []struct {
	status int
	kind   sdk.ErrorType
	means  meaning
}{
	{http.StatusUnauthorized, anything, credentials},
	{http.StatusForbidden, anything, credentials},
	{http.StatusTooManyRequests, anything, rateLimited}, // rate limit and lock_timeout
	// a proxy's answer, in place of handing the request on
	{http.StatusProxyAuthRequired, anything, notExecuted},
	{http.StatusConflict, anything, inFlight},
	{http.StatusBadRequest, sdk.ErrorTypeIdempotency, conflict},
	{http.StatusUnprocessableEntity, sdk.ErrorTypeIdempotency, conflict},
	{http.StatusPaymentRequired, anyType, declined},
	{http.StatusBadRequest, sdk.ErrorTypeCard, declined},
	{http.StatusBadRequest, sdk.ErrorTypeInvalidRequest, refused},
	{http.StatusBadRequest, noType, refused},
	{http.StatusNotFound, sdk.ErrorTypeInvalidRequest, refused},
	{http.StatusNotFound, noType, refused},
	{http.StatusUnprocessableEntity, sdk.ErrorTypeInvalidRequest, refused},
	{http.StatusUnprocessableEntity, noType, refused},
}

// byCode overrides the table for codes that mean the same under every status.
var byCode = map[sdk.ErrorCode]meaning{
	sdk.ErrorCodeIdempotencyKeyInUse:   inFlight,
	sdk.ErrorCodeLockTimeout:           rateLimited,
	sdk.ErrorCodeRateLimit:             rateLimited,
	sdk.ErrorCodePlatformAPIKeyExpired: credentials,
	sdk.ErrorCodeAPIKeyExpired:         credentials,
}

// aboutEarlier has the refusals that our own earlier request may be the reason of.
var aboutEarlier = map[sdk.ErrorCode]bool{
	sdk.ErrorCodeChargeAlreadyCaptured: true, sdk.ErrorCodeChargeAlreadyRefunded: true, sdk.ErrorCodePaymentIntentUnexpectedState: true,
}

func meaningOf(status int, e *sdk.Error) meaning {
	if status < http.StatusBadRequest || status >= http.StatusInternalServerError {
		return unknown
	}
	if e != nil {
		if m, known := byCode[e.Code]; known {
			return m
		}
	}
	for _, a := range answers {
		if a.status == status && fits(a.kind, e) {
			return a.means
		}
	}
	return unknown
}

func fits(kind sdk.ErrorType, e *sdk.Error) bool {
	switch {
	case kind == anything:
		return true
	case e == nil:
		return false
	case kind == noType:
		return e.Type == ""
	}
	return kind == anyType || kind == e.Type
}

// settle resets an exchange into what the port promises: nil and nil for a 2xx answer that could be
// decoded, a refusal when that is the outcome, an error in every other case.
func (p *Provider) settle(r *result) (*provider.Refusal, *provider.Error) {
	if r.local != "" {
		return nil, &provider.Error{Kind: provider.Conflict, Message: r.local}
	}
	if r.status == 0 {
		return nil, p.noAnswer(r)
	}
	if r.err == nil && r.status >= 200 && r.status <= 299 {
		return nil, nil
	}
	var e *sdk.Error
	errors.As(r.err, &e)
	means := meaningOf(r.status, e)
	if r.resent() && (kinds[means].NotExecuted() || e != nil && means == refused && aboutEarlier[e.Code]) {
		means = unknown // of the request that went out first nothing is known
	}
	if e != nil && (means == declined || means == refused) {
		return &provider.Refusal{
			Decline: means == declined, ChargeID: p.clean(e.ChargeID), Code: p.clean(string(e.Code)),
			DeclineCode: p.clean(string(e.DeclineCode)), Message: p.clean(e.Msg), Param: p.clean(e.Param),
			AlreadyCaptured: e.Code == sdk.ErrorCodeChargeAlreadyCaptured,
		}, nil
	}
	out := p.failure(r, kinds[means])
	out.Denied = means == credentials && r.status == http.StatusForbidden && e != nil
	if e != nil {
		out.Code, out.Message = p.clean(string(e.Code)), p.clean(e.Msg)
	}
	return nil, out
}

var kinds = map[meaning]provider.Kind{
	unknown: provider.Unknown, notExecuted: provider.NotExecuted, rateLimited: provider.RateLimited, credentials: provider.Credentials,
	inFlight: provider.InFlight, conflict: provider.Conflict,
	// Reached only if a row without a body were an outcome, which none is.
	declined: provider.Unknown, refused: provider.Unknown,
}

// failure is an error about an answer, with everything but the provider's words.
func (p *Provider) failure(r *result, kind provider.Kind) *provider.Error {
	if kind == provider.Unknown {
		kind = r.kindWithoutOutcome()
	}
	out := &provider.Error{
		Kind: kind, HTTPStatus: r.status, RequestID: p.requestID(r),
		RetryAfter: retryAfter(r.header), Message: "the answer is not one of Stripe's",
	}
	if r.status == http.StatusProxyAuthRequired {
		out.Message = "the proxy asks for a user and password, or for others"
	}
	if r.bodyErr != nil {
		out.Message = p.clean("the answer broke off: " + r.bodyErr.Error())
	}
	return out
}

// kindWithoutOutcome is the kind of an answer that tells no outcome. For a call under a key it
// matters whether the key gives it from now on. Stripe keeps the 500 of a request that it began to
// carry out; a 502, 503 or 504 comes from in front of it, as do redirects and pages, unless it is
// said to be a replay. For a read it matters whether asking again may help: not where there is no
// such path, as in a gateway or a double.
func (r *result) kindWithoutOutcome() provider.Kind {
	switch {
	case r.keyed && (r.status == http.StatusInternalServerError || strings.EqualFold(r.header.Get("Idempotent-Replayed"), "true")):
		return provider.StoredFailure
	case r.keyed || r.bodyErr != nil:
		return provider.Unknown
	case r.status == http.StatusNotFound, r.status == http.StatusMethodNotAllowed, r.status == http.StatusNotImplemented:
		return provider.Unsupported
	case r.status >= http.StatusInternalServerError:
		return provider.Unknown
	}
	return provider.Unreadable
}

// noAnswer is an exchange that ended without an answer.
func (p *Provider) noAnswer(r *result) *provider.Error {
	out := &provider.Error{Kind: provider.NotExecuted, Message: "no answer"}
	if r.connected.Load() {
		out.Kind = provider.Unknown
	}
	switch {
	case errors.Is(r.err, context.DeadlineExceeded):
		out.Message = fmt.Sprintf("no answer in time (%s)", p.timeout)
	case errors.Is(r.err, context.Canceled):
		out.Message = "the call was cancelled"
	case r.err != nil:
		out.Message = p.clean(r.err.Error())
	}
	return out
}

func (p *Provider) requestID(r *result) string { return p.clean(r.header.Get("Request-Id")) }

// contradiction is a 2xx answer that isn't what was asked for.
func (p *Provider) contradiction(r *result, format string, args ...any) *provider.Error {
	e := p.failure(r, provider.Conflict)
	e.Message = p.clean(fmt.Sprintf(format, args...))
	return e
}

// unreadable is a 2xx answer that lacks what it must have.
func (p *Provider) unreadable(r *result, what string) *provider.Error {
	e := p.failure(r, provider.Unknown)
	e.Message = "the answer is not " + what
	return e
}

// retryAfter reads the header, in seconds or as a date, which is one by the clock that the answer's
// own Date tells; nonsense counts as nothing, and more than an hour as an hour.
func retryAfter(h http.Header) time.Duration {
	var d time.Duration
	v := h.Get("Retry-After")
	if n, err := strconv.ParseUint(strings.TrimSpace(v), 10, 31); err == nil {
		d = time.Duration(n) * time.Second
	} else if t, err := http.ParseTime(v); err == nil {
		now, err := http.ParseTime(h.Get("Date"))
		if err != nil {
			now = time.Now()
		}
		d = t.Sub(now)
	}
	return min(max(d, 0), time.Hour)
}
