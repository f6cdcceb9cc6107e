package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"paidonce/outbox"
)

// receiver registers a webhook endpoint that answers with the status that respond returns; the
// result reports how often it was called.
func (w *watched) receiver(id string, status func() int) *atomic.Int64 {
	w.t.Helper()
	var got atomic.Int64
	server := httptest.NewServer(
		http.HandlerFunc(func(answer http.ResponseWriter, _ *http.Request) {
			got.Add(1)
			answer.WriteHeader(status())
		}))
	w.t.Cleanup(server.Close)
	if _, _, err := w.app.events.PutEndpoint(w.t.Context(), w.key.AccountID, id,
		outbox.EndpointParams{URL: server.URL, EnabledEvents: []string{"*"}}); err != nil {
		w.t.Fatal(err)
	}
	return &got
}

func always(status int) func() int { return func() int { return status } }

// relays delivers everything that is due, with the relay of this process.
func (w *watched) relays() {
	w.t.Helper()
	if err := w.app.relay.RunOnce(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// says scrapes until all these samples have the wanted values: what is read from the database is
// kept for some seconds.
func (w *watched) says(want samples) {
	w.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		got, differ := w.scrape(), samples{}
		for name, v := range want {
			if now, there := got[name]; !there || now != v {
				differ[name] = now
			}
		}
		if len(differ) == 0 {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("scraped %v, want %v", differ, want)
		}
	}
}

func attempts(result string) string { return `paidonce_deliveries_total{result="` + result + `"}` }

func private(c *config) { c.AllowPrivate = true }

func about(want float64) func(float64) bool {
	return func(v float64) bool { return v >= want && v < want+60 }
}

// Gauges report how far delivery is, and counters the result of each attempt.
func TestMetricsOfDeliveries(t *testing.T) {
	t.Parallel()
	w := newWatched(t, private)
	zero := samples{
		"paidonce_events_unnumbered_seconds": 0, "paidonce_deliveries_overdue_seconds": 0,
		"paidonce_deliveries_pending": 0, "paidonce_webhook_endpoints_disabled": 0,
		"paidonce_webhook_endpoints_failing": 0, "paidonce_webhook_endpoints_failing_seconds": 0,
		"paidonce_events_numbered_total": 0, "paidonce_endpoint_disablings_total": 0,
		attempts("delivered"): 0, attempts("failed"): 0, attempts("dead"): 0, attempts("lost"): 0,
		"paidonce_delivery_duration_seconds_count": 0,
	}
	w.says(zero)
	good, gone, failing := w.receiver("good", always(200)), w.receiver("gone", always(410)),
		w.receiver("failing", always(500))

	// Nothing is delivered, so the lag grows.
	w.charge("a", visa, 201)
	w.exec(`UPDATE outbox SET created_at = created_at - interval '1 hour'`)
	w.eventually("paidonce_events_unnumbered_seconds", about(3600))
	before := w.scrape()["paidonce_events_unnumbered_seconds"]
	w.eventually("paidonce_events_unnumbered_seconds", func(now float64) bool {
		return now > before
	})
	if _, err := w.app.events.Number(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.exec(`UPDATE deliveries SET next_run_at = next_run_at - interval '20 minutes'`)
	w.says(samples{
		"paidonce_events_unnumbered_seconds": 0, "paidonce_events_numbered_total": 1,
		"paidonce_deliveries_pending": 3,
	})
	w.eventually("paidonce_deliveries_overdue_seconds", about(20*60))

	w.relays()
	w.says(samples{
		attempts("delivered"): 1, attempts("failed"): 2,
		"paidonce_delivery_duration_seconds_count": 3, "paidonce_endpoint_disablings_total": 1,
		"paidonce_webhook_endpoints_disabled": 1, "paidonce_webhook_endpoints_failing": 1,
		"paidonce_deliveries_pending": 2, "paidonce_deliveries_overdue_seconds": 0,
	})
	// A failing endpoint's events do not count as the relay's lag.
	w.exec(`UPDATE webhook_endpoints SET failing_since = failing_since - interval '7 hours' WHERE id = 'failing'`)
	w.exec(`UPDATE deliveries SET next_run_at = clock_timestamp() - interval '20 minutes' WHERE state = 'pending'`)
	w.eventually("paidonce_webhook_endpoints_failing_seconds", about(7*3600))
	w.says(samples{"paidonce_deliveries_overdue_seconds": 0})

	// The time for retries is over, and the endpoint accepts others: only this event is given up.
	w.exec(`UPDATE webhook_endpoints SET failing_since = clock_timestamp() WHERE id = 'failing'`)
	w.exec(`UPDATE deliveries SET attempts = 20, first_attempt_at = clock_timestamp() - interval '4 days' WHERE state = 'pending'`)
	w.relays()
	w.says(samples{
		attempts("dead"): 1, attempts("failed"): 2, "paidonce_deliveries_pending": 1,
		"paidonce_endpoint_disablings_total": 1,
	})
	if n := []int64{good.Load(), gone.Load(), failing.Load()}; !slices.Equal(n, []int64{1, 1, 2}) {
		t.Errorf("the receivers got %v", n)
	}
}

// An attempt counts as lost if another relay has taken the event meanwhile.
func TestMetricsOfALostDelivery(t *testing.T) {
	t.Parallel()
	w := newWatched(t, private)
	w.receiver("slow", func() int { // another relay claims it meanwhile, and keeps it for an hour
		w.exec(`UPDATE deliveries SET claims = claims + 1, next_run_at = clock_timestamp() + interval '1 hour'`)
		return 200
	})
	w.charge("a", visa, 201)
	w.relays()
	w.says(samples{
		attempts("lost"): 1, attempts("delivered"): 0, "paidonce_deliveries_pending": 1,
		"paidonce_delivery_duration_seconds_count": 1,
	})
}

// stream acknowledges events, or fails as it is told.
type stream struct{ no error }

func (*stream) Name() string                                    { return "nats" }
func (s *stream) Publish(context.Context, []outbox.Event) error { return s.no }

// Each stream has its lag, whoever publishes to it. Counted are the events that this process
// published or could not publish.
func TestMetricsOfStreams(t *testing.T) {
	t.Parallel()
	w := newWatched(t, nil)
	publisher := &stream{errors.New("it is away")}
	s := outbox.NewStream(w.app.events, publisher, w.app.log)
	w.app.metrics.Stream(s)
	const lag, published, failed = `paidonce_stream_lag_seconds{stream="nats"}`,
		`paidonce_stream_events_total{stream="nats"}`,
		`paidonce_stream_failures_total{stream="nats"}`
	w.charge("a", visa, 201)
	w.charge("b", visa, 201)
	w.exec(`UPDATE outbox SET created_at = created_at - interval '1 hour'`)
	if _, err := s.RunOnce(t.Context()); !errors.Is(err, publisher.no) {
		t.Fatal(err)
	}
	w.says(samples{
		published: 0, failed: 1, "paidonce_events_numbered_total": 2,
		"paidonce_events_unnumbered_seconds": 0,
	})
	w.eventually(lag, about(3600))
	before := w.scrape()[lag]
	w.eventually(lag, func(now float64) bool { return now > before })
	publisher.no = nil
	if n, err := s.RunOnce(t.Context()); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	w.says(samples{published: 2, failed: 1, lag: 0})
	// One stream is half-way; the other is published to by another process.
	w.exec(`UPDATE outbox SET created_at = created_at - interval '1 hour' WHERE position = (SELECT max(position) FROM outbox)`)
	w.exec(`UPDATE outbox_cursors SET position = (SELECT min(position) FROM outbox)`)
	w.exec(`INSERT INTO outbox_cursors (publisher) VALUES ('receipt')`)
	w.eventually(lag, about(2*3600))
	w.eventually(`paidonce_stream_lag_seconds{stream="receipt"}`, about(3600))
}

// Receipts are behind when events have not been read for them, and when a mail is due, but not when
// it would be too old.
func TestMetricsOfReceipts(t *testing.T) {
	t.Parallel()
	w := newWatched(t, nil)
	const overdue = "paidonce_receipts_overdue_seconds"
	w.charge("a", visa, 201)
	if _, err := w.app.events.Number(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.exec(`UPDATE outbox SET created_at = created_at - interval '1 hour'`)
	w.says(samples{"paidonce_events_numbered_total": 1, overdue: 0}) // receipts are not switched on
	w.exec(`INSERT INTO receipts_cursor (position) VALUES (0)`)
	w.eventually(overdue, about(3600))
	w.exec(`UPDATE receipts_cursor SET position = (SELECT max(position) FROM outbox)`)
	w.eventually(overdue, equals(0))
	w.exec(`INSERT INTO receipts (charge_id, account_id, event_id, taken_at, state, next_run_at) SELECT 'ch_' || n, 'a', 'e', now(), 'pending', now() - n * interval '2 hours' FROM generate_series(1, 13) n`)
	w.eventually(overdue, func(v float64) bool { return v > 22*3600-60 && v < 24*3600 })
}

// If the query about events takes too long, the gauges of operations are reported all the same.
func TestScrapeWithoutEvents(t *testing.T) {
	t.Parallel()
	w := newWatched(t, nil)
	tx, err := w.app.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := tx.Exec(t.Context(), `LOCK TABLE deliveries IN ACCESS EXCLUSIVE MODE`,
		pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
	got := w.scrape()
	if _, there := got["paidonce_operations_stale"]; !there ||
		got["paidonce_scrape_errors_total"] != 1 {
		t.Errorf("stale operations there: %t; errors: %v", there,
			got["paidonce_scrape_errors_total"])
	}
	for name := range got {
		if strings.HasPrefix(name, "paidonce_webhook_") ||
			strings.HasPrefix(name, "paidonce_deliveries_pending") {
			t.Errorf("%s is there", name)
		}
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.says(samples{"paidonce_deliveries_pending": 0})
}
