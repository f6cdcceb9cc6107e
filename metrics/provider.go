package metrics

import (
	"context"
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
	callGetCharge
	callCapture
	callRefund
	callFindRefund
	calls
)

var callNames = [calls]string{"charge", "find_charge", "list_charges", "get_charge", "capture", "refund", "find_refund"}

// result is what a call came to. The first six are definitive, the others mean that no outcome is known.
type result uint8

const (
	succeeded   result = iota
	pending            // made, and the provider itself has not ended it
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
	case callCharge, callCapture, callRefund:
		return r != found && r != absent
	case callListCharges:
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

func ended(s provider.Status, refusal *provider.Refusal) result {
	switch {
	case refusal != nil && refusal.Decline:
		return declined
	case refusal != nil:
		return refused
	case s == provider.Succeeded:
		return succeeded
	case s == provider.Failed, s == provider.Canceled:
		return declined
	}
	return pending
}

// Provider returns p, measured.
func (m *Metrics) Provider(p provider.Provider) provider.Provider { return measured{p, &m.provider} }

// measured counts each call and hands it on as it is.
type measured struct {
	provider.Provider
	calls *providerCalls
}

func (p measured) Charge(ctx context.Context, r provider.ChargeRequest) (provider.ChargeOutcome, error) {
	began := time.Now()
	o, err := p.Provider.Charge(ctx, r)
	p.calls.count(callCharge, began, ofCharge(o, err))
	return o, err
}

func (p measured) Capture(ctx context.Context, r provider.CaptureRequest) (provider.ChargeOutcome, error) {
	began := time.Now()
	o, err := p.Provider.Capture(ctx, r)
	p.calls.count(callCapture, began, ofCharge(o, err))
	return o, err
}

func ofCharge(o provider.ChargeOutcome, err error) result {
	switch {
	case err != nil:
		return failed(err)
	case o.Charge == nil:
		return ended("", o.Refusal)
	}
	return ended(o.Charge.Status, o.Refusal)
}

func (p measured) Refund(ctx context.Context, r provider.RefundRequest) (provider.RefundOutcome, error) {
	began := time.Now()
	o, err := p.Provider.Refund(ctx, r)
	var res result
	switch {
	case err != nil:
		res = failed(err)
	case o.Refund == nil:
		res = ended("", o.Refusal)
	default:
		res = ended(o.Refund.Status, o.Refusal)
	}
	p.calls.count(callRefund, began, res)
	return o, err
}

func (p measured) FindCharge(ctx context.Context, l provider.Lookup) ([]provider.Charge, error) {
	began := time.Now()
	hits, err := p.Provider.FindCharge(ctx, l)
	p.calls.count(callFindCharge, began, ofLookup(len(hits), err))
	return hits, err
}

func (p measured) FindRefund(ctx context.Context, l provider.Lookup) ([]provider.Refund, error) {
	began := time.Now()
	hits, err := p.Provider.FindRefund(ctx, l)
	p.calls.count(callFindRefund, began, ofLookup(len(hits), err))
	return hits, err
}

func (p measured) GetCharge(ctx context.Context, id string) (*provider.Charge, error) {
	began := time.Now()
	c, err := p.Provider.GetCharge(ctx, id)
	hits := 0
	if c != nil {
		hits = 1
	}
	p.calls.count(callGetCharge, began, ofLookup(hits, err))
	return c, err
}

func ofLookup(hits int, err error) result {
	switch {
	case err != nil:
		return failed(err)
	case hits == 0:
		return absent
	}
	return found
}

// ListCharges is timed with what its caller does with each charge.
func (p measured) ListCharges(ctx context.Context, from, to time.Time, each func(provider.Charge) error) error {
	began := time.Now()
	err := p.Provider.ListCharges(ctx, from, to, each)
	res := succeeded
	if err != nil {
		res = failed(err)
	}
	p.calls.count(callListCharges, began, res)
	return err
}
