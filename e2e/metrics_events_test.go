package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// samples scrapes an instance.
func (p *proc) samples() map[string]float64 {
	p.t.Helper()
	all := map[string]float64{}
	for line := range strings.Lines(p.scraped()) {
		if at := strings.LastIndexByte(line, ' '); !strings.HasPrefix(line, "#") {
			v, err := strconv.ParseFloat(strings.TrimSpace(line[at:]), 64)
			if err != nil {
				p.t.Errorf("%q: %v", line, err)
			}
			all[line[:at]] = v
		}
	}
	return all
}

// tells waits until an instance tells these samples: what comes from the database is kept for some
// seconds.
func (p *proc) tells(want map[string]float64) {
	p.t.Helper()
	var got map[string]float64
	deadline := time.Now().Add(patience)
	for {
		got = p.samples()
		differ := false
		for name, v := range want {
			now, there := got[name]
			differ = differ || !there || now != v
		}
		if !differ {
			return
		}
		if time.Now().After(deadline) {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	for name, v := range want {
		p.t.Errorf("%s: %s is %v, want %v", p.name, name, got[name], v)
	}
	p.t.FailNow()
}

// grows waits until a sample is there and more than it was.
func (p *proc) grows(name string) {
	p.t.Helper()
	var first float64
	eventually(p.t, name+" is above 0", func() bool { first = p.samples()[name]; return first > 0 })
	eventually(p.t, name+" grows", func() bool { return p.samples()[name] > first })
}

// asked serves an endpoint that always answers with a status, and counts how often it is asked.
func asked(t *testing.T, status int) (url string, times *atomic.Int64) {
	times = new(atomic.Int64)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		times.Add(1)
		w.WriteHeader(status)
	}))
	t.Cleanup(s.Close)
	return s.URL, times
}

// What is told of deliveries is what receivers got. How far delivery is, is told by an instance
// that delivers nothing as well; what it did itself it did not.
func TestDeliveriesAreScraped(t *testing.T) {
	t.Parallel()
	w := newWorld(t, allowPrivate)
	idle := w.serve()
	c := w.client(idle)
	goodURL, good := asked(t, http.StatusOK)
	failingURL, failing := asked(t, http.StatusInternalServerError)
	goneURL, gone := asked(t, http.StatusGone)
	register(t, c, "good", goodURL)
	register(t, c, "failing", failingURL)
	register(t, c, "gone", goneURL)
	const events = 5
	for i := range events {
		c.Charge(fmt.Sprint("k", i), twenty)
	}
	idle.grows("paidonce_events_unnumbered_seconds")

	relay := w.serve("PAIDONCE_WORKERS=relay")
	idle.tells(map[string]float64{
		"paidonce_events_unnumbered_seconds": 0, "paidonce_deliveries_pending": 2 * events,
		"paidonce_webhook_endpoints_disabled": 1, "paidonce_webhook_endpoints_failing": 1,
		"paidonce_events_numbered_total": 0, `paidonce_deliveries_total{result="delivered"}`: 0,
		`paidonce_deliveries_total{result="failed"}`: 0, "paidonce_endpoint_disablings_total": 0,
	})
	relay.tells(map[string]float64{
		"paidonce_events_numbered_total":                events,
		`paidonce_deliveries_total{result="delivered"}`: events,
		"paidonce_endpoint_disablings_total":            1,
		"paidonce_deliveries_pending":                   2 * events,
	})
	if n := good.Load(); n != events {
		t.Errorf("%d deliveries were taken", n)
	}
	// Three days later: the events are given up on, since the endpoint took others not long ago.
	execSQL(t, w.dbURL,
		`UPDATE webhook_endpoints SET failing_since = clock_timestamp() WHERE id = 'failing'`,
		`UPDATE deliveries SET attempts = 20,
		first_attempt_at = clock_timestamp() - interval '4 days', next_run_at = clock_timestamp(), leased_until = NULL WHERE state = 'pending'`)
	relay.tells(map[string]float64{
		`paidonce_deliveries_total{result="dead"}`: events, "paidonce_deliveries_pending": events,
	})
	if n := querySQL[int](t, w.dbURL, `SELECT count(*) FROM deliveries WHERE state = 'dead'`); n != events {
		t.Errorf("%d are given up on in the database", n)
	}
	eventually(t, "as many attempts are told as the receivers were asked", func() bool {
		got, all := relay.samples(), 0.0
		for _, result := range []string{"delivered", "failed", "dead", "lost"} {
			all += got[`paidonce_deliveries_total{result="`+result+`"}`]
		}
		sent := float64(good.Load() + failing.Load() + gone.Load())
		return all == sent && got["paidonce_delivery_duration_seconds_count"] == sent
	})
}

// A stream that does not take events is behind, and says so; when it does, it is not.
func TestStreamsAreScraped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	start := func(port int, jetStream bool) *server.Server {
		s, err := server.NewServer(&server.Options{
			Host: "127.0.0.1", Port: port, JetStream: jetStream, StoreDir: t.TempDir(), NoLog: true,
			NoSigs: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		s.Start()
		t.Cleanup(s.Shutdown)
		if !s.ReadyForConnections(patience) {
			t.Fatal("the server does not start")
		}
		return s
	}
	without := start(-1, false)
	idle, relay := w.serve(),
		w.serve("PAIDONCE_WORKERS=relay", "PAIDONCE_NATS_URL="+without.ClientURL())
	const lag, published, failures = `paidonce_stream_lag_seconds{stream="nats"}`,
		`paidonce_stream_events_total{stream="nats"}`,
		`paidonce_stream_failures_total{stream="nats"}`
	c := w.client(idle)
	for i := range 3 {
		c.Charge(fmt.Sprint("k", i), twenty)
	}
	idle.grows(lag)
	relay.grows(failures)
	if n := relay.samples()[published]; n != 0 {
		t.Errorf("%v events are published", n)
	}
	address := without.Addr().String()
	port, err := strconv.Atoi(address[strings.LastIndexByte(address, ':')+1:])
	if err != nil {
		t.Fatal(err)
	}
	without.Shutdown()
	without.WaitForShutdown()
	start(port, true)
	relay.tells(map[string]float64{published: 3, lag: 0})
	idle.tells(map[string]float64{lag: 0})
}

// Receipts that nobody mails are overdue, at an instance that mails none as well; what is mailed is
// counted.
func TestReceiptsAreScraped(t *testing.T) {
	t.Parallel()
	post := newPostOffice(t, 0)
	w := newWorld(t, "PAIDONCE_SMTP_URL="+post.url)
	idle := w.serve()
	c := w.client(idle)
	const charges, overdue, sent = 3, "paidonce_receipts_overdue_seconds",
		`paidonce_receipts_total{result="sent"}`
	for i := range charges {
		c.Charge(fmt.Sprint("k", i), receiptTo("payer@example.org"))
	}
	c.Get("/v1/events") // which gives them their places
	idle.grows(overdue)
	relay := w.serve("PAIDONCE_WORKERS=relay")
	relay.tells(map[string]float64{sent: charges, overdue: 0})
	idle.tells(map[string]float64{sent: 0, overdue: 0})
	if n := len(post.of("payer@example.org")); n != charges {
		t.Errorf("%d mails", n)
	}
}
