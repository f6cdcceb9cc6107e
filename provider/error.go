package provider

import (
	"errors"
	"fmt"
	"time"
)

// Kind says what is known when no outcome is. The kinds are all there is to decide by: what an
// adapter learnt it from, such as an HTTP status, is for logs.
type Kind string

// Kinds of any call.
const (
	// Unknown says that nothing is known: of a call that moves money, whether it has had its effect
	// (timeout, reset, a gateway's 5xx, an answer that cannot be read); of a read, what it would
	// have told.
	Unknown Kind = "unknown"
	// NotExecuted says that the call is known to have had no effect (connection refused, say). Same
	// key again, later.
	NotExecuted Kind = "not_executed"
	// RateLimited is NotExecuted, because the provider takes no more calls at the moment.
	RateLimited Kind = "rate_limited"
	// Credentials is NotExecuted, because the provider does not accept our credentials, or not for
	// this call. An operator has to act.
	Credentials Kind = "credentials"
)

// Kinds of calls that move money.
const (
	// StoredFailure is Unknown, and the provider has stored that answer under the key: sending
	// again gives the same forever, only a look-up helps. A 500; a refusal that may be about an
	// earlier call; anything else that says nothing and is marked as a replay.
	StoredFailure Kind = "stored_failure"
	// InFlight says that another attempt under the same derived key is alive at the provider.
	InFlight Kind = "in_flight"
	// Conflict says that the provider knows the derived key with other parameters, or answered with
	// something that contradicts what was asked. An operator has to look; the operation is parked.
	Conflict Kind = "conflict"
)

// Kinds of reads. A read that contradicts itself is a Conflict as well.
const (
	// Unsupported says that the provider has no such read at all, as a gateway or a double that
	// knows only charges.
	Unsupported Kind = "unsupported"
	// Unreadable says that an answer came, and not one that tells anything: another thing than was
	// asked for, or a refusal to read it.
	Unreadable Kind = "unreadable"
	// Incomplete says that a look-up found nothing in the time it had, and has more to look
	// through. It goes on there when it is asked for again.
	Incomplete Kind = "incomplete"
)

// NotExecuted reports whether the call is known to have had no effect, for whatever reason.
func (k Kind) NotExecuted() bool { return k == NotExecuted || k == RateLimited || k == Credentials }

// KindOf returns the kind of an error of a provider; empty when it is none.
func KindOf(err error) Kind {
	var e *Error
	if !errors.As(err, &e) {
		return ""
	}
	return e.Kind
}

// Denied reports whether an error says that our credentials may not make a call; see [Error].
func Denied(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Denied
}

// Error says that no outcome is known. Message is cleaned and carries no secret.
type Error struct {
	Kind Kind
	// Denied says, of the kind Credentials, that the provider knows the credentials and does not
	// let them make this call, as with a restricted API key. Message names the missing right.
	Denied     bool
	HTTPStatus int    // for logs; 0 when no answer came
	Code       string // the provider's, may be empty
	RequestID  string // the provider's, may be empty
	Message    string
	// RetryAfter is what the provider asked us to wait; 0 when it said nothing.
	RetryAfter time.Duration
}

func (e *Error) Error() string {
	if e.HTTPStatus == 0 {
		return fmt.Sprintf("provider: %s: %s", e.Kind, e.Message)
	}
	return fmt.Sprintf("provider: %s: HTTP %d %s: %s", e.Kind, e.HTTPStatus, e.Code, e.Message)
}
