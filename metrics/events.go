package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"paidonce/db"
	"paidonce/outbox"
	"paidonce/outbox/receipt"
)

// attemptBuckets cover receivers that answer within milliseconds or some hundreds of them; an
// attempt is given up after ten seconds.
var attemptBuckets = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20}

const (
	// lateCommit is how much older than the newest numbered event one without a position may be and
	// still be counted. It is far longer than any transaction of Paidonce takes, and bounds the
	// scan to the events of ten minutes while some other transaction stays open for hours.
	lateCommit = 10 * time.Minute
	// pendingMax bounds what a scrape counts: it takes ten milliseconds to read, and tells a few
	// from far too many.
	pendingMax = 10_000
)

// eventsOut counts what the relay worker and the streams of this process did. A relay that runs as
// a process of its own is not scraped: what it leaves undone shows in the gauges of the database.
type eventsOut struct {
	attempts *prometheus.CounterVec
	took     prometheus.Histogram
	receipts *prometheus.CounterVec
}

func newEventsOut(r prometheus.Registerer) eventsOut {
	m := eventsOut{
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "paidonce_deliveries_total",
			Help: "Attempts of this process to deliver an event to an endpoint, by what they came to.",
		}, []string{"result"}),
		took: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "paidonce_delivery_duration_seconds",
			Help: "How long these attempts took, timeouts included.", Buckets: attemptBuckets,
		}),
	}
	m.receipts = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "paidonce_receipts_total",
		Help: "What became of receipt mails in this process; failed ones are tried again.",
	}, []string{"result"})
	for _, result := range outbox.AttemptResults {
		m.attempts.WithLabelValues(result)
	}
	for _, result := range receipt.Results {
		m.receipts.WithLabelValues(result)
	}
	r.MustRegister(m.attempts, m.took, m.receipts)
	return m
}

// RecordAttempt counts an attempt to deliver an event; see [outbox.RelayConfig].
func (m *Metrics) RecordAttempt(result string, took time.Duration) {
	m.events.attempts.WithLabelValues(result).Inc()
	m.events.took.Observe(took.Seconds())
}

// RecordReceipt counts the result of a receipt mail; see [receipt.Config].
func (m *Metrics) RecordReceipt(result string, _ time.Duration) {
	m.events.receipts.WithLabelValues(result).Inc()
}

// Stream adds a stream of this process to the metrics. Call it once for each.
func (m *Metrics) Stream(s *outbox.Stream) {
	count := func(name, help string, of func(outbox.StreamCounts) int64) {
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: name, Help: help, ConstLabels: prometheus.Labels{"stream": s.Name()},
		},
			func() float64 { return float64(of(s.Counts())) }))
	}
	count("paidonce_stream_events_total", "Events that this process published and the stream acknowledged, those included that came again.",
		func(c outbox.StreamCounts) int64 { return c.Published })
	count("paidonce_stream_failures_total",
		"Times that this process could not publish; it tries again.",
		func(c outbox.StreamCounts) int64 { return c.Failed })
}

func watchEvents(counter register, s *outbox.Store, r *outbox.Relay) {
	counter("paidonce_events_numbered_total", "Events that this process queued for the endpoints that want them.", nil,
		func() float64 { return float64(s.Queued()) })
	counter("paidonce_events_cleaned_total", "Events past their retention that this process's relay worker deleted.", nil,
		func() float64 { return float64(r.Counts().Cleaned) })
	counter("paidonce_endpoint_disablings_total", "Webhook endpoints that this process's relay worker disabled.", nil,
		func() float64 { return float64(r.Counts().Disabled) })
}

// eventStats is what the database stats about events out.
type eventStats struct {
	db.EventGaugesRow
	streams         []db.StreamGaugesRow
	receiptsOverdue float64
}

func readEvents(ctx context.Context, q *db.Queries, on db.DBTX) (stats eventStats, err error) {
	if stats.streams, err = q.StreamGauges(ctx, on); err != nil {
		return stats, err
	}
	if stats.receiptsOverdue, err = q.ReceiptGauge(ctx, on, receipt.Oldest); err != nil {
		return stats, err
	}
	stats.EventGaugesRow, err = q.EventGauges(ctx, on, db.EventGaugesParams{
		LateCommit: lateCommit, PendingMax: pendingMax,
	})
	return stats, err
}

func eventGauges() (all []gauge[eventStats]) {
	add := func(name, help string, of func(eventStats) float64) { all = append(all, newGauge(name, help, of)) }
	add("paidonce_events_unnumbered_seconds", "Age of the oldest event that is not queued for the endpoints that want it; grows when no relay runs.",
		func(e eventStats) float64 { return e.UnnumberedSeconds })
	add("paidonce_deliveries_overdue_seconds", "How long the delivery that waits longest could have been tried, of endpoints that are neither disabled nor failing.",
		func(e eventStats) float64 { return e.OverdueSeconds })
	add("paidonce_deliveries_pending", "Deliveries that are not made and not given up on, those of disabled endpoints included; 10000 stands for more.",
		func(e eventStats) float64 { return float64(e.Pending) })
	add("paidonce_webhook_endpoints_disabled", "Webhook endpoints that are disabled.",
		func(e eventStats) float64 { return float64(e.Disabled) })
	add("paidonce_webhook_endpoints_failing",
		"Webhook endpoints that are enabled and whose last delivery failed.",
		func(e eventStats) float64 { return float64(e.Failing) })
	add("paidonce_webhook_endpoints_failing_seconds", "How long the enabled endpoint that fails longest has taken nothing; 0 when none fails.",
		func(e eventStats) float64 { return e.FailingSeconds })
	add("paidonce_receipts_overdue_seconds", "How long what waits longest for its receipt mail could have had it; grows when no relay with a mail server runs, or the mail server is away.",
		func(e eventStats) float64 { return e.receiptsOverdue })
	return all
}

var streamLag = prometheus.NewDesc("paidonce_stream_lag_seconds",
	"Age of the oldest event that has its place and is not published to the stream; 0 when there is none."+everywhere, []string{"stream"}, nil)
