package api

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"paidonce/charges"
	"paidonce/idemkeys"
)

// The types of errors, with Stripe's names.
const (
	typeAPI            = "api_error"
	typeAuthentication = "authentication_error"
	typeIdempotency    = "idempotency_error"
	typeRequest        = "invalid_request_error"
	typeRateLimit      = "rate_limit_error"
)

// fault is one kind of error: everything about it that does not depend on the request.
type fault struct {
	code       string
	status     int
	kind       string // type
	advice     idemkeys.Advice
	retryAfter time.Duration // 0: no Retry-After
	message    string        // the default
}

// unavailableRetry is when to come back after a failure of ours that usually passes by itself (a database that fails over, a process
// that is replaced): long enough not to storm, short enough that a paying customer still waits.
const unavailableRetry = 2 * time.Second

// The table of errors. docs/errors.md is its description; a test compares them.
var (
	faultAPIKeyMissing = fault{"api_key_missing", http.StatusUnauthorized, typeAuthentication, idemkeys.Stop, 0,
		"An API key is required: Authorization: Bearer sk_…, or HTTP Basic with the key as user name."}
	faultAPIKeyInvalid = fault{"api_key_invalid", http.StatusUnauthorized, typeAuthentication, idemkeys.Stop, 0,
		"The API key is not valid."}

	faultParameter = fault{"parameter_invalid", http.StatusBadRequest, typeRequest, idemkeys.FixAndUseNewKey, 0,
		"A parameter is not valid."}
	faultParameterUnknown   = faultParameter.as("parameter_unknown", "There is no such parameter.")
	faultParameterDuplicate = faultParameter.as("parameter_duplicate", "A parameter is given more than once.")
	faultParameterMissing   = faultParameter.as("parameter_missing", "A parameter is missing.")
	faultParameterEmpty     = faultParameter.as("parameter_invalid_empty", "A parameter is empty.")
	faultParameterInteger   = faultParameter.as("parameter_invalid_integer", "A parameter is not an integer.")
	faultBodyMalformed      = faultParameter.as("body_malformed", "The body is not well-formed.")
	faultBodyIncomplete     = faultParameter.as("body_incomplete", "The body ended before it was complete. Nothing was done.")
	faultQueryMalformed     = faultParameter.as("query_malformed", "The query is not well-formed.")
	faultKeyMissing         = faultParameter.as("idempotency_key_missing",
		"An Idempotency-Key header is required: a new random value for each payment, the same one for each retry of it.")
	faultKeyInvalid = faultParameter.as("idempotency_key_invalid",
		"The Idempotency-Key header must be one line of 1 to 255 printable ASCII characters.")

	faultSignature = fault{"signature_invalid", http.StatusBadRequest, typeRequest, idemkeys.Stop, 0,
		"The signature does not match the body, or not at this time. Nothing was stored."}
	faultWebhooksOff = fault{"webhooks_not_configured", http.StatusBadRequest, typeRequest, idemkeys.Stop, 0,
		"This installation takes no events: STRIPE_WEBHOOK_SECRET is not set."}

	faultResourceMissing = fault{"resource_missing", http.StatusNotFound, typeRequest, idemkeys.Stop, 0,
		"There is no such thing."}
	faultCursorMissing = fault{"resource_missing", http.StatusBadRequest, typeRequest, idemkeys.FixAndUseNewKey, 0,
		"There is no such thing."}
	faultRouteUnknown = fault{"route_unknown", http.StatusNotFound, typeRequest, idemkeys.Stop, 0,
		"There is nothing at this path; the reference is at /docs."}
	faultMethod = fault{"method_not_allowed", http.StatusMethodNotAllowed, typeRequest, idemkeys.Stop, 0,
		"This path does not have the method; the Allow header lists those that it has."}
	faultTimeout = fault{"request_timeout", http.StatusRequestTimeout, typeRequest, idemkeys.RetrySameKey, 0,
		"The body took too long to arrive. Nothing was done."}
	faultBodyTooLarge = fault{"body_too_large", http.StatusRequestEntityTooLarge, typeRequest, idemkeys.FixAndUseNewKey, 0,
		"The body is too large."}
	faultMediaType = fault{"media_type_unsupported", http.StatusUnsupportedMediaType, typeRequest, idemkeys.FixAndUseNewKey, 0,
		"The body must be application/json or application/x-www-form-urlencoded, in UTF-8."}
	faultEncoding = fault{"content_encoding_unsupported", http.StatusUnsupportedMediaType, typeRequest, idemkeys.FixAndUseNewKey, 0,
		"The body must not be compressed."}

	faultInUse = fault{"idempotency_key_in_use", http.StatusConflict, typeIdempotency, idemkeys.RetrySameKey, time.Second,
		"The same request is running. Send it again with the same key to learn its result."}
	faultReused = fault{"idempotency_key_reused", http.StatusUnprocessableEntity, typeIdempotency, idemkeys.FixAndUseNewKey, 0,
		"The key stands for another request. Use a new key for a new request."}
	faultRateLimited = fault{"rate_limited", http.StatusTooManyRequests, typeRateLimit, idemkeys.RetrySameKey, time.Second,
		"Too many requests. Nothing was done."}

	faultInternal = fault{"internal_error", http.StatusInternalServerError, typeAPI, idemkeys.RetrySameKey, 0,
		"Something went wrong here. Sending the same request again with the same key is safe."}
	faultParked = fault{"operation_parked", http.StatusInternalServerError, typeAPI, idemkeys.Stop, 0,
		"What became of this request cannot be found out automatically. The operator has to decide; do not repeat it under another key."}

	faultOutcomeUnknown = fault{"outcome_unknown", http.StatusServiceUnavailable, typeAPI, idemkeys.RetrySameKey, unavailableRetry,
		"The outcome is not known yet; the payment provider may or may not have acted. Send the same request again with the same key."}
	faultProviderUnavailable = fault{"provider_unavailable", http.StatusServiceUnavailable, typeAPI, idemkeys.RetrySameKey, unavailableRetry,
		"The payment provider could not be reached; no money was moved yet. Send the same request again with the same key."}
	faultUnavailable = fault{"unavailable", http.StatusServiceUnavailable, typeAPI, idemkeys.RetrySameKey, unavailableRetry,
		"The service is not able to answer at the moment. Send the same request again with the same key."}
	faultShuttingDown = fault{"shutting_down", http.StatusServiceUnavailable, typeAPI, idemkeys.RetrySameKey, time.Second,
		"This process is shutting down. Nothing was done; send the same request again with the same key."}
)

// as is another fault of the same sort.
func (f fault) as(code, message string) fault {
	f.code, f.message = code, message
	return f
}

// shouldRetry is what Stripe's libraries are told.
func (f fault) shouldRetry() string { return strconv.FormatBool(f.advice == idemkeys.RetrySameKey) }

// apiError is a fault as it happened. It is what handlers return for every answer that is not a success.
type apiError struct {
	fault
	param  string
	charge string
	cause  error // for the log only
}

func (e *apiError) Error() string { return e.code + ": " + e.message }
func (e *apiError) Unwrap() error { return e.cause }

func (f fault) because(cause error) *apiError { return &apiError{fault: f, cause: cause} }

// of is the fault of a parameter, with a message of its own.
func (f fault) of(param, format string, args ...any) *apiError {
	f.message = fmt.Sprintf(format, args...)
	return &apiError{fault: f, param: shown(param)}
}

func unknownParameter(s shape, name string) *apiError {
	name = shown(name)
	for i := range s {
		if equalFoldASCII(s[i].name, name) {
			return faultParameterUnknown.of(name, "There is no parameter %s; names are case-sensitive: %s.", name, s[i].name)
		}
	}
	return faultParameterUnknown.of(name, "There is no parameter %s.", name)
}

func duplicateParameter(name string) *apiError {
	return faultParameterDuplicate.of(name, "%s is given more than once.", shown(name))
}

func invalidParameter(name, format string, args ...any) *apiError {
	return faultParameter.of(name, format, args...)
}

// fromParams is the answer to what the domain says of a parameter.
func fromParams(err error) *apiError {
	var p *charges.ParamError
	if !errors.As(err, &p) {
		return faultInternal.because(err)
	}
	return &apiError{fault: faultParameter.as(p.Code, p.Message), param: shown(p.Param)}
}

// fromEngine is the answer to what the engine says of a key.
func fromEngine(err error) *apiError {
	var (
		refused *idemkeys.Refused
		inUse   *idemkeys.InUse
		unknown *idemkeys.Unknown
		parked  *idemkeys.Parked
	)
	switch {
	case errors.Is(err, idemkeys.ErrReused):
		return faultReused.because(nil)
	case errors.As(err, &refused):
		return fromRefusal(*refused)
	case errors.As(err, &inUse):
		return faultInUse.after(inUse.RetryAfter).because(nil)
	case errors.As(err, &unknown):
		f := faultOutcomeUnknown
		if unknown.NotExecuted {
			f = notExecuted(unknown.Obstacle)
		}
		e := f.after(unknown.RetryAfter).because(unknown.Cause)
		e.charge = unknown.ResourceID
		return e
	case errors.As(err, &parked):
		e := faultParked.because(err)
		e.charge = parked.ResourceID
		return e
	case errors.Is(err, idemkeys.ErrProviderAway):
		f := faultProviderUnavailable
		f.message = "The payment provider could not be reached, and nothing was done. Send the same request again with the same key."
		return f.because(err)
	case errors.Is(err, idemkeys.ErrHeld):
		return faultUnavailable.because(err)
	case errors.Is(err, idemkeys.ErrUnavailable):
		return fromDatabase(err)
	case errors.Is(err, idemkeys.ErrNotClaimable):
		return faultAPIKeyInvalid.because(err)
	default:
		return faultInternal.because(err)
	}
}

// fromDatabase is the answer to what was in the way of a question to the database, or of a commit that did not begin. What passes by itself is asked for again;
// what does not (a table or a right is missing, a statement is wrong) is a fault here, which somebody has to mend.
func fromDatabase(err error) *apiError {
	if idemkeys.Passes(err) {
		return faultUnavailable.because(err)
	}
	return faultInternal.because(err)
}

// notExecuted tells why the provider has not acted: to whoever operates us, a provider that is down is another task than one that refuses us.
func notExecuted(o idemkeys.Obstacle) fault {
	f := faultProviderUnavailable
	switch o {
	case idemkeys.ObstacleCredentials:
		f.message = "The payment provider refuses the credentials of this installation, which its operator has to mend; no money was moved yet. " +
			"Send the same request again with the same key."
	case idemkeys.ObstacleRateLimit:
		f.message = "The payment provider takes no more requests from this installation at the moment; no money was moved yet. " +
			"Send the same request again with the same key."
	}
	return f
}

// fromRefusal is the answer to a claim that was refused as things stand. The key is not spent.
func fromRefusal(r idemkeys.Refused) *apiError {
	p := r.Problem
	f := fault{code: p.Code, status: r.Code, kind: p.Type, advice: p.Advice, message: p.Message}
	switch r.Code {
	case http.StatusNotFound:
		f = faultResourceMissing.as(p.Code, p.Message) // what is not there is told alike everywhere
	case http.StatusConflict:
		f.retryAfter = unavailableRetry // what stands in the way is an operation without an outcome, which passes by itself as well
	}
	return &apiError{fault: f, param: p.Param, charge: p.Charge}
}

// after sets when to come back, unless nothing is known about that.
func (f fault) after(d time.Duration) fault {
	if d > 0 {
		f.retryAfter = d
	}
	return f
}

// seconds rounds up: coming back too early is of no use. At least 1, as 0 means at once.
func seconds(d time.Duration) string {
	return strconv.FormatInt(max(1, int64((d+time.Second-1)/time.Second)), 10)
}

// equalFoldASCII is for telling a client about a misspelt name.
func equalFoldASCII(a, b string) bool { return lowerASCII(a) == lowerASCII(b) }

// lowerASCII leaves everything but A-Z alone: Unicode's rules would turn the Kelvin sign into a k.
func lowerASCII(s string) string {
	for i := range len(s) {
		if 'A' <= s[i] && s[i] <= 'Z' {
			b := []byte(s)
			for j := i; j < len(b); j++ {
				if 'A' <= b[j] && b[j] <= 'Z' {
					b[j] += 'a' - 'A'
				}
			}
			return string(b)
		}
	}
	return s
}
