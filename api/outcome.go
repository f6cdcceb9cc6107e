package api

import (
	"net/http"
	"time"

	"paidonce/problem"
)

// Outcome is how a request ended, as requests are counted.
type Outcome uint8

// The outcomes. Of the requests that carry a key, Fresh, Resumed and Replayed learnt the
// operation's answer, whatever it is: a decline is one.
const (
	// internal_error, an answer that broke off, or anything that is not classified.
	OutcomeError Outcome = iota
	OutcomeFresh         // the request's own work, done now
	// Work that another request had begun, ended by this one.
	OutcomeResumed
	OutcomeReplayed // the stored answer
	OutcomeInUse    // 409: the same request is running
	OutcomeReused   // 422: the key stands for another request
	OutcomeNotKnown // 503: the provider may or may not have acted
	// 503: begun, and the provider is known not to have acted.
	OutcomeProviderUnavailable
	OutcomeParked // 500: an operator has to decide
	// 503 before any work: the database is away, or this process is shutting down.
	OutcomeUnavailable
	// 4xx before any work; for reads also what does not exist.
	OutcomeRefused
	OutcomeUnauthenticated // 401
	OutcomeRateLimited     // 429
	OutcomeRead            // a GET, answered
	OutcomeDone            // any other request without a key, answered
	outcomes               // how many there are
)

var outcomeNames = [outcomes]string{
	"error", "fresh", "resumed", "replayed", "in_use", "reused", "unknown", "provider_unavailable",
	"parked", "unavailable", "refused",
	"unauthenticated", "rate_limited", "read", "done",
}

func (o Outcome) String() string { return outcomeNames[o] }

// Outcomes returns all outcomes.
func Outcomes() []Outcome {
	all := make([]Outcome, outcomes)
	for i := range all {
		all[i] = Outcome(i)
	}
	return all
}

// RouteNone is the route of requests that reach no operation of openapi.yaml.
const RouteNone = "none"

// Observe is called for each request of a route when it is answered. It runs within the request, so
// it must be quick.
type Observe func(o Outcome, took time.Duration)

// measure returns the observer of a route's requests. It is called once for each route, so that no
// request has to search for its observer.
func (s *Server) measure(route string) Observe {
	if s.cfg.Measure == nil {
		return func(Outcome, time.Duration) {}
	}
	return s.cfg.Measure(route)
}

// unkeyedOutcome returns the outcome of a successful request without a key.
func unkeyedOutcome(method string) Outcome {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return OutcomeRead
	}
	return OutcomeDone
}

// refused returns the outcome of a request that was answered with an error.
func refused(c problem.Code) Outcome {
	switch c {
	case problem.KeyInUse:
		return OutcomeInUse
	case problem.KeyReused:
		return OutcomeReused
	case problem.OperationParked:
		return OutcomeParked
	case problem.OutcomeUnknown:
		return OutcomeNotKnown
	case problem.ProviderUnavailable:
		return OutcomeProviderUnavailable
	case problem.Unavailable, problem.ShuttingDown:
		return OutcomeUnavailable
	}
	switch {
	case c.Status() == http.StatusUnauthorized:
		return OutcomeUnauthenticated
	case c.Status() == http.StatusTooManyRequests:
		return OutcomeRateLimited
	case c.Status() < http.StatusInternalServerError:
		return OutcomeRefused
	}
	return OutcomeError
}
