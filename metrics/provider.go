package metrics

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"paidonce/provider"
)

// call is a method of the port.
type call uint8

const (
	callCharge call = iota
	callFindCharge
	callListCharges
	callListRefunds
	callListIntents
	callAccount
	callGetCharge
	callCapture
	callRefund
	callFindRefund
	callGetRefund
	callGetDispute
	callCreateIntent
	callConfirmIntent
	callGetIntent
	callFindIntent
	calls
)

var callNames = [calls]string{
	"charge", "find_charge", "list_charges", "list_refunds", "list_intents", "account", "get_charge", "capture", "refund", "find_refund", "get_refund", "get_dispute",
	"create_intent", "confirm_intent", "get_intent", "find_intent",
}

// result is what a call came to. The first six are definitive, the others mean that no outcome is known.
type result uint8

const (
	succeeded   result = iota
	pending            // made, and not ended: the provider is at it, or the payer has to authenticate
	declined           // of a card, or of a refund that failed
	refused            // a request that the provider will not carry out
	found              // of a look-up
	absent             // of a look-up that was complete and found nothing
	unknown            // it may or may not have acted
	notExecuted        // known not to have acted: not reached, say
	rateLimited        // known not to have acted: too many calls
	credentials        // known not to have acted: it does not accept ours
	inFlight           // another attempt under the same derived key is alive there
	conflict           // the derived key stands for other parameters there
	results
)

var resultNames = [results]string{
	"succeeded", "pending", "declined", "refused", "found", "absent", "unknown", "not_executed", "rate_limited", "credentials", "in_flight", "conflict",
}

// possible tells which results a call may have, so that there are no series that can never count.
func (c call) possible(r result) bool {
	switch c {
	case callCharge, callCapture, callRefund, callCreateIntent, callConfirmIntent:
		return r != found && r != absent
	case callListCharges, callListRefunds, callListIntents, callAccount:
		return r == succeeded || r >= unknown && r <= credentials
	default:
		return r >= found && r <= credentials
	}
}

// callBuckets: a provider answers in some hundred milliseconds; PAIDONCE_PROVIDER_TIMEOUT is 20 s unless it was changed.
var callBuckets = []float64{.01, .025, .05, .1, .2, .4, .8, 1.5, 3, 5, 10, 20, 40}

// providerCalls has a counter for each call and result, and a histogram for each call, found at start.
type providerCalls struct {
	total [calls][results]prometheus.Counter
	took  [calls]prometheus.Observer
}

func newProviderCalls(r prometheus.Registerer) (p providerCalls) {
	total := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "paidonce_provider_calls_total", Help: "Calls of the payment provider by what they came to.",
	}, []string{"call", "result"})
	took := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "paidonce_provider_call_duration_seconds", Help: "How long calls of the payment provider took, timeouts included.", Buckets: callBuckets,
	}, []string{"call"})
	r.MustRegister(total, took)
	for c := range calls {
		p.took[c] = took.WithLabelValues(callNames[c])
		for res := range results {
			if c.possible(res) {
				p.total[c][res] = total.WithLabelValues(callNames[c], resultNames[res])
			} else {
				p.total[c][res] = p.total[c][unknown] // never, unless the port changes
			}
		}
	}
	return p
}

func (p *providerCalls) count(c call, began time.Time, r result) {
	p.took[c].Observe(time.Since(began).Seconds())
	p.total[c][r].Inc()
}

// failed classifies an error: by the port's rule it is a [provider.Error], and what is none may have had its effect.
func failed(err error) result {
	var e *provider.Error
	if !errors.As(err, &e) {
		return unknown
	}
	switch {
	case e.Alert:
		return credentials
	case e.Kind == provider.NotExecuted && e.HTTPStatus == statusTooManyRequests:
		return rateLimited
	case e.Kind == provider.NotExecuted:
		return notExecuted
	case e.Kind == provider.InFlight:
		return inFlight
	case e.Kind == provider.Conflict:
		return conflict
	}
	return unknown
}

const statusTooManyRequests = 429

func ofRefusal(r *provider.Refusal) result {
	if r.Decline {
		return declined
	}
	return refused
}

func ofStatus(s provider.Status) result {
	switch s {
	case provider.Succeeded:
		return succeeded
	case provider.Failed, provider.Canceled:
		return declined
	}
	return pending
}

func ofCharge(o provider.ChargeOutcome) result {
	if o.Refusal != nil || o.Charge == nil {
		return ofRefusal(orRefused(o.Refusal))
	}
	return ofStatus(o.Charge.Status)
}

func ofRefund(o provider.RefundOutcome) result {
	if o.Refusal != nil || o.Refund == nil {
		return ofRefusal(orRefused(o.Refusal))
	}
	return ofStatus(o.Refund.Status)
}

func ofIntent(o provider.IntentOutcome) result {
	if o.Refusal != nil || o.Intent == nil {
		return ofRefusal(orRefused(o.Refusal))
	}
	switch i := o.Intent; i.Status {
	case provider.IntentSucceeded, provider.IntentRequiresCapture:
		return succeeded
	case provider.IntentRequiresPaymentMethod, provider.IntentCanceled:
		return ofRefusal(orDeclined(i.Failure))
	}
	return pending
}

// ofCreation: an intent that is created has done all that was asked, whatever is still to be done with it.
func ofCreation(o provider.IntentOutcome) result {
	if o.Intent != nil {
		return succeeded
	}
	return ofIntent(o)
}

func ofLookup[T any](hits []T) result {
	if len(hits) == 0 {
		return absent
	}
	return found
}

func ofRead[T any](got *T) result {
	if got == nil {
		return absent
	}
	return found
}

func orRefused(r *provider.Refusal) *provider.Refusal {
	if r == nil {
		return &provider.Refusal{}
	}
	return r
}

func orDeclined(r *provider.Refusal) *provider.Refusal {
	if r == nil {
		return &provider.Refusal{Decline: true}
	}
	return r
}
