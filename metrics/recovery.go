package metrics

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"paidonce/recovery"
)

// passBuckets cover an idle pass, which is one query, and one after an outage, which goes through
// thousands of operations.
var passBuckets = []float64{.005, .01, .05, .1, .5, 1, 5, 15, 60, 300, 900}

// recoveryRuns counts what the workers of this process did. A pass that cron starts is a process of
// its own that nobody scrapes: what it leaves undone shows in the gauges of the database.
type recoveryRuns struct {
	workers                   *prometheus.GaugeVec
	passes, sweeps            *prometheus.CounterVec
	passTook                  prometheus.Histogram
	finished, waiting, parked prometheus.Counter
	swept                     prometheus.Counter
	sweptRows                 *prometheus.CounterVec
	// These have no labels, but are vectors so that they are absent until the first run, rather
	// than 0, which would be 1970.
	lastPass, lastSweep *prometheus.GaugeVec
}

func newRecoveryRuns(r prometheus.Registerer) recoveryRuns {
	counters := func(name, help string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{
			"result",
		})
		r.MustRegister(v)
		return v
	}
	gauges := func(name, help string, labels ...string) *prometheus.GaugeVec {
		v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
		r.MustRegister(v)
		return v
	}
	driven := counters("paidonce_reconcile_operations_total",
		"Operations that this process's reconcile worker drove, by what came of it.")
	m := recoveryRuns{
		workers: gauges("paidonce_worker_info", "1 for each worker that runs in this process.",
			"worker"),
		passes: counters("paidonce_reconcile_passes_total",
			"Passes of this process's reconcile worker."),
		sweeps: counters("paidonce_sweep_runs_total", "Sweeps of this process's sweep worker."),
		lastPass: gauges("paidonce_reconcile_last_pass_timestamp_seconds",
			"When this process's reconcile worker last ended a pass without an error."),
		lastSweep: gauges("paidonce_sweep_last_run_timestamp_seconds",
			"When this process's sweep worker last ended a sweep without an error."),
		finished: driven.WithLabelValues("finished"), waiting: driven.WithLabelValues("waiting"),
		parked: driven.WithLabelValues("parked"),
		passTook: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "paidonce_reconcile_pass_duration_seconds",
			Help: "How long passes of this process's reconcile worker took.", Buckets: passBuckets,
		}),
		swept: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "paidonce_sweep_keys_total",
			Help: "Keys past their retention that this process's sweep worker deleted.",
		}),
	}
	m.sweptRows = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "paidonce_sweep_rows_total",
		Help: "Rows other than keys that this process's sweep worker deleted past their retention.",
	}, []string{"table"})
	for _, table := range []string{"provider_events", "operation_log"} {
		m.sweptRows.WithLabelValues(table)
	}
	r.MustRegister(m.passTook, m.swept, m.sweptRows)
	for _, result := range []string{"done", "failed", "interrupted"} {
		m.passes.WithLabelValues(result)
		m.sweeps.WithLabelValues(result)
	}
	return m
}

// Worker notes that a worker runs in this process.
func (m *Metrics) Worker(name string) { m.recovery.workers.WithLabelValues(name).Set(1) }

// RecordPass counts a pass of the reconcile worker; see [recovery.Reconciler.Work].
func (m *Metrics) RecordPass(c recovery.Counts, took time.Duration, err error) {
	r := &m.recovery
	r.passTook.Observe(took.Seconds())
	r.finished.Add(float64(c.Finished))
	r.waiting.Add(float64(c.Waiting))
	r.parked.Add(float64(c.Parked))
	r.passes.WithLabelValues(ran(err)).Inc()
	if err == nil {
		r.lastPass.WithLabelValues().SetToCurrentTime()
	}
}

// RecordSweep counts a sweep of the sweep worker; see [recovery.WorkSweep].
func (m *Metrics) RecordSweep(rows map[string]int, err error) {
	r := &m.recovery
	for kind, n := range rows {
		if kind == "keys" {
			r.swept.Add(float64(n))
			continue
		}
		r.sweptRows.WithLabelValues(kind).Add(float64(n))
	}
	r.sweeps.WithLabelValues(ran(err)).Inc()
	if err == nil {
		r.lastSweep.WithLabelValues().SetToCurrentTime()
	}
}

func ran(err error) string {
	switch {
	case err == nil:
		return "done"
	case errors.Is(err, context.Canceled):
		return "interrupted"
	}
	return "failed"
}
