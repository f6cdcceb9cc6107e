// Package metrics measures the product for Prometheus: what requests came to, how the provider
// answers, where unfinished operations stand, how far the delivery of events is, and how database,
// recovery and process are doing. docs/operations.md says what to watch.
//
// A request touches only a counter and a histogram that were looked up at start. What only the
// database knows is queried at a scrape, with a short time limit; when it does not answer, the
// scrape has the rest. No label has a value that a client chooses.
package metrics

import (
	"log/slog"
	"net/http"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Path is the path of the metrics. It needs no API key: keep it off the internet.
const Path = "/metrics"

// scrapesMax is how many scrapes are answered at once: enough for a few Prometheus servers, too few
// to be a burden when a stranger finds the path.
const scrapesMax = 4

// Metrics is everything that one process measures. Safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry
	scrapes  http.Handler
	inFlight prometheus.Gauge

	requests requests
	provider providerCalls
	recovery recoveryRuns
	events   eventsOut
	refused  *prometheus.CounterVec
}

// New returns metrics of this process alone. Watch adds the database, the leases and the relay.
func New(log *slog.Logger) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "paidonce_requests_in_flight",
		Help: "Requests that are being answered, those included that wait for another's result.",
	})}
	m.requests, m.provider, m.recovery = newRequests(m.registry), newProviderCalls(m.registry, log), newRecoveryRuns(m.registry)
	m.events, m.refused = newEventsOut(m.registry), newSignaturesRefused(m.registry)
	m.registry.MustRegister(m.inFlight, buildInfo(), collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.scrapes = promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(log.Handler(),
			slog.LevelWarn), ErrorHandling: promhttp.ContinueOnError,
		MaxRequestsInFlight: scrapesMax, EnableOpenMetrics: true,
	})
	return m
}

// Handler returns a handler that answers scrapes, and counts and passes everything else to next.
func (m *Metrics) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == Path && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
			w.Header().Set("Cache-Control", "no-store")
			m.scrapes.ServeHTTP(w, r)
			return
		}
		m.inFlight.Inc()
		defer m.inFlight.Dec()
		next.ServeHTTP(w, r)
	})
}

// buildInfo returns a gauge that is always 1, whose labels say which binary this is.
func buildInfo() prometheus.Collector {
	version, revision, goVersion := "unknown", "unknown", "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		version, goVersion = info.Main.Version, info.GoVersion
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = s.Value
			}
		}
	}
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "paidonce_build_info", Help: "Always 1; which binary this is.",
		ConstLabels: prometheus.Labels{
			"version": version, "revision": revision, "go_version": goVersion,
		},
	}, func() float64 { return 1 })
}
