package metrics

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"paidonce/provider"
)

// result is the result of a call of the provider. The first six are definitive, the others mean
// that no outcome is known.
type result string

const (
	succeeded result = "succeeded"
	// Made and not finished: the provider still works on it, or the payer has to authenticate.
	pending  result = "pending"
	declined result = "declined" // of a card, or of a refund that failed
	refused  result = "refused"  // a request that the provider will not carry out
	found    result = "found"    // of a look-up
	absent   result = "absent"   // of a look-up that was complete and found nothing

	// It may or may not have acted; any kind that is not listed below.
	unknown = result(provider.Unknown)
	// Known not to have acted, as when it was not reached.
	notExecuted = result(provider.NotExecuted)
	rateLimited = result(provider.RateLimited)
	credentials = result(provider.Credentials)
	inFlight    = result(provider.InFlight)
	conflict    = result(provider.Conflict)
)

// The possible results of calls. There are no series for results that a call cannot have.
var (
	ofMoving = []result{
		succeeded, pending, declined, refused, unknown, notExecuted, rateLimited, credentials,
		inFlight, conflict,
	}
	ofLooking = []result{found, absent, unknown, notExecuted, rateLimited, credentials}
	ofWhole   = []result{succeeded, unknown, notExecuted, rateLimited, credentials}
)

// calls lists the methods of the port with their possible results.
var calls = map[string][]result{
	"charge": ofMoving, "capture": ofMoving, "refund": ofMoving, "create_intent": ofMoving,
	"update_intent": ofMoving, "confirm_intent": ofMoving, "cancel_intent": ofMoving,
	"find_charge": ofLooking, "find_refund": ofLooking, "find_intent": ofLooking,
	"get_charge": ofLooking, "get_refund": ofLooking, "get_intent": ofLooking,
	"get_dispute": ofLooking, "get_fraud_warning": ofLooking,
	"refunds_of":   ofLooking,
	"list_charges": ofWhole, "list_refunds": ofWhole, "list_intents": ofWhole, "list_disputes": ofWhole,
	"account": ofWhole,
}

// callBuckets cover a provider that answers within some hundred milliseconds, and the default of
// PAIDONCE_PROVIDER_TIMEOUT, 20 s.
var callBuckets = []float64{.01, .025, .05, .1, .2, .4, .8, 1.5, 3, 5, 10, 20, 40}

// providerCalls has a counter for each call and result, and a histogram for each call, all looked
// up at start.
type providerCalls struct {
	total  map[string]map[result]prometheus.Counter
	took   map[string]prometheus.Observer
	denied map[string]deniedCall
	log    *slog.Logger
}

// deniedCall is whether our credentials lack the right to make a call.
type deniedCall struct {
	gauge prometheus.Gauge
	now   *atomic.Bool
}

func newProviderCalls(r prometheus.Registerer, log *slog.Logger) providerCalls {
	total := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "paidonce_provider_calls_total",
		Help: "Calls of the payment provider by what they came to.",
	}, []string{"call", "result"})
	took := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "paidonce_provider_call_duration_seconds",
		Help:    "How long calls of the payment provider took, timeouts included.",
		Buckets: callBuckets,
	}, []string{"call"})
	denied := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "paidonce_provider_call_denied",
		Help: "1 for a call that the API key at the provider lacks the right to make, since it was tried.",
	}, []string{"call"})
	r.MustRegister(total, took, denied)
	p := providerCalls{
		total: map[string]map[result]prometheus.Counter{},
		took:  map[string]prometheus.Observer{}, denied: map[string]deniedCall{}, log: log,
	}
	for call, results := range calls {
		p.denied[call] = deniedCall{denied.WithLabelValues(call), new(atomic.Bool)}
		p.took[call], p.total[call] = took.WithLabelValues(call), map[result]prometheus.Counter{}
		for _, r := range results {
			p.total[call][r] = total.WithLabelValues(call, string(r))
		}
	}
	return p
}

func (p *providerCalls) count(call string, began time.Time, r result) {
	p.took[call].Observe(time.Since(began).Seconds())
	c, possible := p.total[call][r]
	if !possible {
		c = p.total[call][unknown]
	}
	c.Inc()
}

// noteRight keeps which calls are denied, and logs when that changes: a right that is missing is
// told once, however often it is missed.
func (p *providerCalls) noteRight(call string, err error) {
	denied := provider.Denied(err)
	if err != nil && !denied {
		return // it says nothing of rights
	}
	d := p.denied[call]
	switch {
	case !d.now.CompareAndSwap(!denied, denied):
	case denied:
		d.gauge.Set(1)
		p.log.Warn("the API key at the provider lacks a right that a restricted key needs: see docs/operations.md",
			"call", call, "cause", err)
	default:
		d.gauge.Set(0)
		p.log.Info("the API key at the provider has a right that it lacked", "call", call)
	}
}

func ofRefusal(r *provider.Refusal) result {
	if r != nil && r.Decline {
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
	if o.Charge == nil {
		return ofRefusal(o.Refusal)
	}
	return ofStatus(o.Charge.Status)
}

func ofRefund(o provider.RefundOutcome) result {
	if o.Refund == nil {
		return ofRefusal(o.Refusal)
	}
	return ofStatus(o.Refund.Status)
}

func ofIntent(o provider.IntentOutcome) result {
	if o.Intent == nil {
		return ofRefusal(o.Refusal)
	}
	switch o.Intent.Status {
	case provider.IntentSucceeded, provider.IntentRequiresCapture:
		return succeeded
	case provider.IntentRequiresPaymentMethod, provider.IntentCanceled:
		if o.Intent.Failure == nil {
			return declined
		}
		return ofRefusal(o.Intent.Failure)
	}
	return pending
}

// ofStep: an intent that is created, updated or cancelled has done all that was asked, whatever is
// still to be done with it.
func ofStep(o provider.IntentOutcome) result {
	if o.Intent == nil {
		return ofRefusal(o.Refusal)
	}
	return succeeded
}

func ofHits[T any](hits []T) result {
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

func ofAll[T any](T) result { return succeeded }
