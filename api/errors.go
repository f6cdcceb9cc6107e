package api

import (
	"errors"
	"strconv"
	"time"

	"paidonce/charges"
	"paidonce/idemkeys"
	"paidonce/problem"
)

// shouldRetry returns the value of Stripe-Should-Retry, which Stripe's libraries obey.
func shouldRetry(c problem.Code) string {
	return strconv.FormatBool(c.Advice() == problem.RetrySameKey)
}

func unknownParameter(s shape, name string) *problem.Error {
	name = problem.Printable(name)
	for i := range s {
		if equalFoldASCII(s[i].name, name) {
			return problem.ParameterUnknown.Of(name,
				"There is no parameter %s; names are case-sensitive: %s.", name, s[i].name)
		}
	}
	return problem.ParameterUnknown.Of(name, "There is no parameter %s.", name)
}

func duplicateParameter(name string) *problem.Error {
	return problem.ParameterDuplicate.Of(name, "%s is given more than once.",
		problem.Printable(name))
}

func invalidParameter(name, format string, args ...any) *problem.Error {
	return problem.ParameterInvalid.Of(name, format, args...)
}

// fromParams returns the answer to the domain's error about a parameter.
func fromParams(err error) *problem.Error {
	var e *problem.Error
	if errors.As(err, &e) {
		return e
	}
	return problem.InternalError.Because(err)
}

// fromEngine returns the answer to an error of idemkeys.
func fromEngine(err error) *problem.Error {
	var (
		refused *problem.Error // the key is not spent
		inUse   *idemkeys.InUse
		unknown *idemkeys.Unknown
		parked  *idemkeys.Parked
	)
	switch {
	case errors.Is(err, idemkeys.ErrReused):
		return problem.KeyReused.New()
	case errors.As(err, &refused):
		return refused
	case errors.As(err, &inUse):
		return problem.KeyInUse.New().After(inUse.RetryAfter)
	case errors.As(err, &unknown):
		e := problem.OutcomeUnknown.Because(unknown.Cause)
		if unknown.NotExecuted {
			e = notExecuted(unknown.Obstacle, unknown.Cause)
		}
		e.Charge = unknown.ResourceID
		return e.After(unknown.RetryAfter)
	case errors.As(err, &parked):
		e := problem.OperationParked.Because(err)
		e.Charge = parked.ResourceID
		return e
	case errors.Is(err, charges.ErrProviderAway):
		e := problem.ProviderUnavailable.Because(err)
		e.Message = "The payment provider could not be reached, and nothing was done. Send the same request again with the same key."
		return e
	case errors.Is(err, idemkeys.ErrHeld):
		return problem.Unavailable.Because(err)
	case errors.Is(err, idemkeys.ErrUnavailable):
		return fromDatabase(err)
	case errors.Is(err, idemkeys.ErrForbidden):
		return problem.APIKeyInvalid.Because(err)
	default:
		return problem.InternalError.Because(err)
	}
}

// fromDatabase returns the answer to an error of a read, or of a commit that did not begin. A
// client should retry after an error that passes by itself. Any other (a table or a privilege is
// missing, a statement is wrong) is an internal error, which an operator has to fix.
func fromDatabase(err error) *problem.Error {
	if idemkeys.Passes(err) {
		return problem.Unavailable.Because(err)
	}
	return problem.InternalError.Because(err)
}

// notExecuted returns the answer when the provider has not acted, and says why: a provider that is
// down needs another reaction of the operator than one that refuses the credentials.
func notExecuted(o idemkeys.Obstacle, cause error) *problem.Error {
	e := problem.ProviderUnavailable.Because(cause)
	switch o {
	case idemkeys.ObstacleCredentials:
		e.Message = "The payment provider refuses the credentials of this installation, which its operator has to fix; no money was moved yet. " +
			"Send the same request again with the same key."
	case idemkeys.ObstacleRateLimit:
		e.Message = "The payment provider takes no more requests from this installation at the moment; no money was moved yet. " +
			"Send the same request again with the same key."
	}
	return e
}

// seconds returns d in whole seconds, rounded up, because a retry that is too early is of no use.
// It is at least 1, since 0 means at once.
func seconds(d time.Duration) string {
	return strconv.FormatInt(max(1, int64((d+time.Second-1)/time.Second)), 10)
}

// equalFoldASCII reports whether two names differ only in case, as in a misspelt parameter.
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
