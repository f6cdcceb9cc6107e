package outbox_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"paidonce/outbox"
	"paidonce/outbox/webhook"
)

// TestDelivers: each event once, with both kinds of signature, the stored bytes, and its result
// written down.
func TestDelivers(t *testing.T) {
	w, r := newWorld(t), newReceiver(t)
	r.secret = w.put("hook", r.URL).Secret
	w.put("refunds", r.URL+"/never", "refund.created")
	id := w.add(w.Pool, "charge.succeeded", "ch_1")
	r.answer = func(w http.ResponseWriter, _ *http.Request, _ int) {
		_, _ = w.Write([]byte(strings.Repeat("thanks ", 10_000)))
	}
	if err := w.relay().RunOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	e, err := w.store.Find(t.Context(), id)
	if err != nil || r.bodies[id] != string(e.Payload) || len(r.seen()) != 1 {
		t.Fatalf("%v: received %d, %q, stored %q", err, len(r.seen()), r.bodies[id], e.Payload)
	}
	list, err := w.store.Deliveries(t.Context(), id)
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	d := list[0]
	if d.State != "delivered" || d.Attempts != 1 || d.LastStatus != 200 || len(d.LastBody) != 8<<10 || d.FinishedAt == nil || d.LastError != "" {
		t.Errorf("%+v", d)
	}
}

// TestFailsThreeTimes: the same id and bytes each time, until the receiver takes it.
func TestFailsThreeTimes(t *testing.T) {
	w, r := newWorld(t), newReceiver(t)
	r.secret = w.put("hook", r.URL).Secret
	r.answer = func(w http.ResponseWriter, _ *http.Request, nth int) {
		if nth <= 3 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}
	for range 30 {
		w.add(w.Pool, "charge.succeeded", "ch_"+strconv.Itoa(r.distinct()))
	}
	w.run(w.relay(), w.relay())
	eventually(t, 20*time.Second, "30 events delivered", func() bool {
		return w.Count(`SELECT count(*) FROM deliveries WHERE state = 'delivered' AND attempts = 4`) == 30
	})
}

// The first failure of an endpoint is a warning; later ones are logged at a lower level.
func TestFirstFailureIsAWarning(t *testing.T) {
	w, r := newWorld(t), newReceiver(t)
	r.secret = w.put("hook", r.URL).Secret
	r.answer = func(w http.ResponseWriter, _ *http.Request, nth int) {
		if nth <= 3 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}
	w.add(w.Pool, "charge.succeeded", "ch_1")
	var said bytes.Buffer
	stop := w.run(w.relay(func(c *outbox.RelayConfig) { c.Log = slog.New(slog.NewTextHandler(&said, nil)) }))
	eventually(t, 20*time.Second, "the event is delivered", func() bool {
		return w.Count(`SELECT count(*) FROM deliveries WHERE state = 'delivered' AND attempts = 4`) == 1
	})
	stop()
	failed := regexp.MustCompile(`level=(\w+) msg="a delivery failed`).FindAllStringSubmatch(said.String(), -1)
	if len(failed) != 3 || failed[0][1] != "WARN" || failed[1][1] != "INFO" || failed[2][1] != "INFO" {
		t.Errorf("%q\n%s", failed, said.String())
	}
}

// TestSecretsOverlap: after a rotation deliveries verify with the old secret and with the new one;
// after a day only with the new one.
func TestSecretsOverlap(t *testing.T) {
	w, r := newWorld(t), newReceiver(t)
	was := w.put("hook", r.URL)
	now, err := w.rotate("hook")
	if err != nil || now.Secret == was.Secret || !strings.HasPrefix(now.Secret, "whsec_") {
		t.Fatal(now, err)
	}
	var headers http.Header
	r.answer = func(_ http.ResponseWriter, req *http.Request, _ int) { headers = req.Header.Clone() }
	once := func() (string, http.Header) {
		id := w.add(w.Pool, "charge.succeeded", "ch_1")
		if err := w.relay().RunOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		return r.bodies[id], headers
	}
	body, h := once()
	verify(t, was.Secret, []byte(body), h)
	verify(t, now.Secret, []byte(body), h)
	w.Exec(`UPDATE webhook_secrets SET expires_at = expires_at - interval '24 hours' WHERE expires_at IS NOT NULL`)
	body, h = once()
	verify(t, now.Secret, []byte(body), h)
	if n := len(strings.Fields(h.Get("webhook-signature"))); n != 1 {
		t.Errorf("%d signatures after a day", n)
	}
	for range 10 {
		if _, err := w.rotate("hook"); err != nil {
			t.Fatal(err)
		}
	}
	if n := w.Count(`SELECT count(*) FROM webhook_secrets`); n != 5 {
		t.Errorf("%d secrets sign after many rotations", n)
	}
}

// TestAnswersThatAreNoSuccess: nothing but 2xx is one; redirects are not followed.
func TestAnswersThatAreNoSuccess(t *testing.T) {
	w, r, elsewhere := newWorld(t), newReceiver(t), newReceiver(t)
	w.put("hook", r.URL)
	statuses := []int{301, 302, 303, 307, 308, 304, 400, 401, 404, 429, 500, 503}
	for i, status := range statuses {
		id := w.add(w.Pool, "charge.succeeded", "ch_"+strconv.Itoa(i))
		r.answer = func(w http.ResponseWriter, _ *http.Request, _ int) {
			w.Header().Set("Location", elsewhere.URL)
			if status == 302 {
				w.Header().Set("Location", "http://[not an address") // of a client it is an error; it is an answer all the same
			}
			w.WriteHeader(status)
		}
		relay := w.relay(func(c *outbox.RelayConfig) { c.Pause = time.Hour })
		if err := relay.RunOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		list, err := w.store.Deliveries(t.Context(), id)
		if err != nil || len(list) != 1 || list[0].State != "pending" || list[0].LastStatus != status || list[0].Attempts != 1 {
			t.Errorf("%d: got %+v, %v, want 1", status, list, err)
		}
	}
	if n := len(elsewhere.seen()); n != 0 {
		t.Errorf("%d redirects were followed", n)
	}
}

// TestRetryAfter is obeyed, within a day.
func TestRetryAfter(t *testing.T) {
	w, r := newWorld(t), newReceiver(t)
	w.put("hook", r.URL)
	for _, c := range []struct {
		header   string
		from, to time.Duration
	}{
		{"7200", 2 * time.Hour, 3 * time.Hour},
		{time.Now().Add(3 * time.Hour).UTC().Format(http.TimeFormat), 2 * time.Hour, 4 * time.Hour},
		{"99999999", 24 * time.Hour, 27 * time.Hour},
		{"-5", 0, time.Minute},
		{"soon", 0, time.Minute},
	} {
		id := w.add(w.Pool, "charge.succeeded", "ch_"+c.header)
		r.answer = func(w http.ResponseWriter, _ *http.Request, _ int) {
			w.Header().Set("Retry-After", c.header)
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		if err := w.relay(func(c *outbox.RelayConfig) { c.Pause = 10 * time.Second }).RunOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		list, _ := w.store.Deliveries(t.Context(), id)
		if pause := time.Until(*list[0].NextRunAt); pause < c.from-time.Minute || pause > c.to {
			t.Errorf("Retry-After: %s: a pause of %s", c.header, pause)
		}
	}
}

// TestGone: 410 disables the endpoint at once; what is queued waits; registering it again sends it.
func TestGone(t *testing.T) {
	w, r := newWorld(t), newReceiver(t)
	w.put("hook", r.URL)
	r.answer = func(w http.ResponseWriter, _ *http.Request, _ int) { w.WriteHeader(http.StatusGone) }
	id := w.add(w.Pool, "charge.succeeded", "ch_1")
	relay := w.relay()
	if err := relay.RunOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	e, err := w.store.GetEndpoint(t.Context(), account, "hook")
	if err != nil || e.DisabledAt == nil || !strings.Contains(*e.DisabledReason, "410") || relay.Counts().Disabled != 1 {
		t.Fatalf("%+v, %v", e, err)
	}
	w.add(w.Pool, "charge.succeeded", "ch_2")
	r.answer = nil
	time.Sleep(10 * time.Millisecond)
	if err := relay.RunOnce(t.Context()); err != nil || len(r.seen()) != 1 {
		t.Fatalf("%v, %d deliveries to a disabled endpoint", err, len(r.seen())-1)
	}
	w.put("hook", r.URL)
	if err := relay.RunOnce(t.Context()); err != nil || r.times[id] != 2 || len(r.seen()) != 2 {
		t.Fatalf("%v, %v", err, r.times)
	}
}

// TestPatienceEnds: an endpoint that took nothing for three days is disabled, with one alert; one
// that takes others keeps going without the poison.
func TestPatienceEnds(t *testing.T) {
	for _, others := range []bool{false, true} {
		t.Run("takes others: "+strconv.FormatBool(others), func(t *testing.T) {
			w, r := newWorld(t), newReceiver(t)
			w.put("hook", r.URL)
			poison := w.add(w.Pool, "charge.succeeded", "ch_poison")
			r.answer = func(w http.ResponseWriter, req *http.Request, _ int) {
				if id := req.Header.Get("webhook-id"); id == poison || !others {
					w.WriteHeader(http.StatusInternalServerError)
				}
			}
			relay := w.relay()
			day := func() {
				w.Exec(`UPDATE deliveries SET next_run_at = clock_timestamp(), first_attempt_at = first_attempt_at - interval '6 hours' WHERE state = 'pending'`)
				w.Exec(`UPDATE webhook_endpoints SET failing_since = failing_since - interval '6 hours'`)
				if others {
					w.add(w.Pool, "charge.succeeded", "ch_"+strconv.Itoa(r.distinct()))
				}
				if err := relay.RunOnce(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			for range 11 {
				day()
			}
			if c := relay.Counts(); c.Dead != 0 || c.Disabled != 0 {
				t.Fatalf("given up too early: %+v", c)
			}
			for range 4 {
				day()
			}
			c := relay.Counts()
			if others && (c.Dead != 1 || c.Disabled != 0) || !others && (c.Dead != 0 || c.Disabled != 1) {
				t.Errorf("%+v", c)
			}
			pending := w.Count(`SELECT count(*) FROM deliveries WHERE state = 'pending'`)
			if others && pending != 0 || !others && pending != 1 {
				t.Errorf("%d deliveries wait", pending)
			}
			r.answer = nil
			if n, err := w.store.Requeue(t.Context(), account, poison, ""); others && (err != nil || n != 1) {
				t.Errorf("resent to %d, %v", n, err)
			}
			w.put("hook", r.URL)
			if err := relay.RunOnce(t.Context()); err != nil || w.Count(`SELECT count(*) FROM deliveries WHERE state <> 'delivered'`) != 0 {
				t.Errorf("%v: something is not delivered in the end", err)
			}
		})
	}
}

// TestUnreachable: however often nobody answers within the three days, or says to come later, the
// event stays pending.
func TestUnreachable(t *testing.T) {
	w, closed, plain, busy := newWorld(t), newReceiver(t), newReceiver(t), newReceiver(t)
	closed.Listener.Close()
	busy.answer = func(w http.ResponseWriter, req *http.Request, _ int) {
		switch req.URL.Path {
		case "/503":
			w.WriteHeader(http.StatusServiceUnavailable)
		case "/429":
			w.WriteHeader(http.StatusTooManyRequests)
		default:
			<-req.Context().Done()
		}
	}
	w.put("closed", closed.URL)
	w.put("nowhere", "http://nowhere.invalid/")
	w.put("no-tls", "https://"+strings.TrimPrefix(plain.URL, "http://")+"/")
	w.put("unavailable", busy.URL+"/503")
	w.put("too-many", busy.URL+"/429")
	w.put("silent", busy.URL+"/silent")
	w.add(w.Pool, "charge.succeeded", "ch_1")
	relay := w.relay(func(c *outbox.RelayConfig) {
		c.Sender, c.Pause = webhook.New(webhook.Config{Guard: webhook.Guard{AllowPrivate: true}, Timeout: 50 * time.Millisecond}), time.Hour
	})
	const rounds = 40
	for range rounds {
		w.Exec(`UPDATE deliveries SET next_run_at = clock_timestamp()`)
		if err := relay.RunOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := w.Count(`SELECT count(*) FROM deliveries WHERE state = 'pending' AND attempts = $1 AND last_error <> ''`, rounds); n != 6 {
		t.Errorf("%d of 6 are pending after %d tries", n, rounds)
	}
}

// TestHangs: who accepts and never answers, or answers a byte a second, is left after the limit,
// with no connection to the database held meanwhile.
func TestHangs(t *testing.T) {
	w, r := newWorld(t), newReceiver(t)
	w.put("hook", r.URL)
	id := w.add(w.Pool, "charge.succeeded", "ch_1")
	r.answer = func(_ http.ResponseWriter, req *http.Request, _ int) { <-req.Context().Done() }
	limit := 500 * time.Millisecond
	relay := w.relay(func(c *outbox.RelayConfig) {
		c.Sender, c.Pause = webhook.New(webhook.Config{Guard: webhook.Guard{AllowPrivate: true}, Timeout: limit}), time.Hour
	})
	done := make(chan error)
	go func() { done <- relay.RunOnce(context.Background()) }()
	eventually(t, 5*time.Second, "the attempt begins", func() bool { return r.distinct() == 1 })
	time.Sleep(50 * time.Millisecond)
	if n := w.Count(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND (state LIKE 'idle in%' OR state = 'active') AND pid <> pg_backend_pid()`); n != 0 {
		t.Errorf("%d connections are in use during an attempt", n)
	}
	began := time.Now()
	if err := <-done; err != nil || time.Since(began) > 3*limit {
		t.Errorf("%v after %s", err, time.Since(began))
	}
	list, _ := w.store.Deliveries(t.Context(), id)
	if list[0].State != "pending" || !strings.Contains(list[0].LastError, "in time") {
		t.Errorf("%+v", list[0])
	}
}
