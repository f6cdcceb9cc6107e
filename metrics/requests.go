package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"paidonce/api"
)

// requestBuckets cover a replay, which takes about a millisecond, a charge, which takes as long as
// the provider, a caller that waits for half a minute, and a run, which ends within nine tenths of
// the lease.
var requestBuckets = []float64{
	.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 40, 90,
}

type requests struct {
	total *prometheus.CounterVec
	took  *prometheus.HistogramVec
}

func newRequests(r prometheus.Registerer) requests {
	m := requests{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "paidonce_requests_total",
			Help: "Requests by the operation of openapi.yaml (none: no such route) and by what they came to.",
		}, []string{"route", "outcome"}),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "paidonce_request_duration_seconds",
			Help:    "How long requests took, the provider and waiting for another's result included.",
			Buckets: requestBuckets,
		}, []string{"route"}),
	}
	r.MustRegister(m.total, m.took)
	return m
}

// Route returns the observer of a route's requests; see [api.Config]. Its counters exist from then
// on, at 0, so that rates have no gaps.
func (m *Metrics) Route(route string) api.Observe {
	counters := make([]prometheus.Counter, len(api.Outcomes()))
	for _, o := range api.Outcomes() {
		counters[o] = m.requests.total.WithLabelValues(route, o.String())
	}
	took := m.requests.took.WithLabelValues(route)
	return func(o api.Outcome, d time.Duration) {
		counters[o].Inc()
		took.Observe(d.Seconds())
	}
}
