package api

import (
	"net/http"
	"time"
)

// Outcome is what a request came to, for who counts requests.
type Outcome uint8

// The outcomes. Of the requests that carry a key, Fresh, Resumed and Replayed learnt the operation's answer, whatever it is: a decline is one.
const (
	OutcomeError               Outcome = iota // a fault of ours: internal_error, or an answer that broke off. Also what is not known better
	OutcomeFresh                              // the request's own work, done now
	OutcomeResumed                            // work that another request had begun, ended by this one
	OutcomeReplayed                           // the stored answer
	OutcomeInUse                              // 409: the same request is running
	OutcomeReused                             // 422: the key stands for another request
	OutcomeNotKnown                           // 503: the provider may or may not have acted
	OutcomeProviderUnavailable                // 503: begun, and the provider is known not to have acted
	OutcomeParked                             // 500: a person has to decide
	OutcomeUnavailable                        // 503 before any work: the database is away, or this process is shutting down
	OutcomeRefused                            // 4xx before any work; for reads also what does not exist
	OutcomeUnauthenticated                    // 401
	OutcomeRateLimited                        // 429
	OutcomeRead                               // a GET, answered
	OutcomeDone                               // any other request without a key, answered
	outcomes                                  // how many there are
)

var outcomeNames = [outcomes]string{
	"error", "fresh", "resumed", "replayed", "in_use", "reused", "unknown", "provider_unavailable", "parked", "unavailable", "refused",
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

// Observe is told of a route's requests, each when it is answered. It is called for every request, so it should take next to no time.
type Observe func(o Outcome, took time.Duration)

// observers asks once for what is told of each route, so that no request has to search for its own.
func (s *Server) observers() {
	measure := s.cfg.Measure
	if measure == nil {
		measure = func(string) Observe { return func(Outcome, time.Duration) {} }
	}
	s.unrouted = measure(RouteNone)
	s.routed = map[string]Observe{}
	for id := range operations() {
		s.routed[id] = measure(id)
	}
}

// answered is what a request came to that had neither a key nor a fault.
func answered(method string) Outcome {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return OutcomeRead
	}
	return OutcomeDone
}

// outcome is what a request came to that was answered with this fault.
func (f fault) outcome() Outcome {
	switch f.code {
	case faultInUse.code:
		return OutcomeInUse
	case faultReused.code:
		return OutcomeReused
	case faultParked.code:
		return OutcomeParked
	case faultOutcomeUnknown.code:
		return OutcomeNotKnown
	case faultProviderUnavailable.code:
		return OutcomeProviderUnavailable
	case faultUnavailable.code, faultShuttingDown.code:
		return OutcomeUnavailable
	}
	switch {
	case f.status == http.StatusUnauthorized:
		return OutcomeUnauthenticated
	case f.status == http.StatusTooManyRequests:
		return OutcomeRateLimited
	case f.status < http.StatusInternalServerError:
		return OutcomeRefused
	}
	return OutcomeError
}
