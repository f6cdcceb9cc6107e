package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"paidonce/inbox"
)

func newSignaturesRefused(r prometheus.Registerer) *prometheus.CounterVec {
	refused := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "paidonce_signatures_refused_total",
		Help: "Deliveries to the provider's route whose signature was refused, by the reason.",
	}, []string{"reason"})
	for _, reason := range inbox.RefusedReasons {
		refused.WithLabelValues(reason)
	}
	r.MustRegister(refused)
	return refused
}

// RecordRefusedSignature counts a signature that was refused; see [inbox.Config].
func (m *Metrics) RecordRefusedSignature(reason string) { m.refused.WithLabelValues(reason).Inc() }
