package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"paidonce/accounts"
	"paidonce/api"
	"paidonce/internal/dbtest"
	"paidonce/provider/stripesim"
	"paidonce/recovery"
)

// watched is the product as serve builds it, on its own database and simulated provider.
type watched struct {
	t    *testing.T
	app  *app
	edge *api.Server
	sim  *stripesim.Server
	url  string
	key  accounts.NewKey
}

func newWatched(t *testing.T, change func(*config)) *watched {
	t.Helper()
	sim, err := stripesim.New(stripesim.Config{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	psp := httptest.NewServer(sim)
	t.Cleanup(func() { psp.CloseClientConnections(); psp.Close(); _ = sim.Close() })
	cfg := &config{
		DatabaseURL: dbtest.New(t), StripeAPIKey: "sk_test_x", StripeAPIBase: psp.URL,
		DBMaxConns: 6, ProviderTimeout: 2 * time.Second,
		StaleAfter: 90 * time.Second, KeyTTL: 24 * time.Hour, ProviderKeyWindow: 23 * time.Hour,
		LookupMisses: 3, LookupSpan: 2 * time.Minute, maxBody: 1 << 20,
	}
	if change != nil {
		change(cfg)
	}
	a, err := newApp(t.Context(), cfg, slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.close)
	if err := a.recognise(t.Context()); err != nil {
		t.Fatal(err)
	}
	w := &watched{t: t, app: a, sim: sim}
	if w.edge, err = a.edge(); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(a.metrics.Handler(w.edge))
	t.Cleanup(server.Close)
	w.url = server.URL
	if w.key, err = a.accounts.CreateKey(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	return w
}

// do sends a request and returns its status and body.
func (w *watched) do(method, path, key, body string) (int, string) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.url+path,
		strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+w.key.Secret)
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

const visa = `{"amount":2000,"currency":"usd","source":"tok_visa"}`

func (w *watched) charge(key, body string, want int) {
	w.t.Helper()
	if code, text := w.do("POST", "/v1/charges", key, body); code != want {
		w.t.Fatalf("%s: got %d %s, want %d", key, code, text, want)
	}
}

// fault makes the next matching call to the provider fail.
func (w *watched) fault(method string, f stripesim.Fault) {
	w.t.Helper()
	if _, err := w.sim.AddFault(stripesim.Rule{Match: stripesim.Match{Method: method,
		Path: "/v1/charges"}, Count: 1, Fault: f}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *watched) exec(sql string, args ...any) {
	w.t.Helper()
	if _, err := w.app.pool.Exec(context.Background(), sql, args...); err != nil {
		w.t.Fatal(err)
	}
}

// samples are the values of a scrape, by name and labels.
type samples map[string]float64

var sampleLine = regexp.MustCompile(`^([a-z_]+(?:\{.*\})?) (\S+)$`)

func (w *watched) scrape() samples {
	w.t.Helper()
	code, text := w.do("GET", "/metrics", "", "")
	if code != http.StatusOK {
		w.t.Fatalf("scrape: %d %s", code, text)
	}
	all := samples{}
	for line := range strings.Lines(text) {
		m := sampleLine.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil {
			if !strings.HasPrefix(line, "#") {
				w.t.Errorf("not a sample: %q", line)
			}
			continue
		}
		v, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			w.t.Errorf("%q: %v", line, err)
		}
		all[m[1]] = v
	}
	return all
}

// eventually scrapes until a sample has the value: what is read from the database is kept for some
// seconds.
func (w *watched) eventually(name string, holds func(float64) bool) {
	w.t.Helper()
	var v float64
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(
		200 * time.Millisecond) {
		var there bool
		if v, there = w.scrape()[name]; there && holds(v) {
			return
		}
	}
	w.t.Errorf("%s is %v", name, v)
}

func equals(want float64) func(float64) bool { return func(v float64) bool { return v == want } }

// moved calls do and fails unless exactly the given counters changed, of those that count requests,
// provider calls, commits and leases.
func (w *watched) moved(what string, want map[string]float64, do func()) {
	w.t.Helper()
	before := w.scrape()
	do()
	// A request is counted just after its answer is sent.
	var got map[string]float64
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		got = map[string]float64{}
		for name, v := range w.scrape() {
			if d := v - before[name]; d != 0 && countsWork.MatchString(name) {
				got[name] = d
			}
		}
		if fmt.Sprint(got) == fmt.Sprint(want) {
			return
		}
		if time.Now().After(deadline) {
			w.t.Errorf("%s:\n got %v\nwant %v", what, got, want)
			return
		}
	}
}

var countsWork = regexp.MustCompile(
	`^paidonce_(requests|signatures_refused|provider_calls|commit_won_rows|lease_takeovers|leases_lost|parkings|runs_without_outcome)_total`)

func request(route, outcome string) string {
	return fmt.Sprintf(`paidonce_requests_total{outcome=%q,route=%q}`, outcome, route)
}

func called(call, result string) string {
	return fmt.Sprintf(`paidonce_provider_calls_total{call=%q,result=%q}`, call, result)
}

const (
	claimed       = `paidonce_commit_won_rows_total{commit="claim"}`
	settled       = `paidonce_commit_won_rows_total{commit="settle"}`
	callerTook    = `paidonce_lease_takeovers_total{driver="caller"}`
	reconcileTook = `paidonce_lease_takeovers_total{driver="reconciler"}`
	noOutcome     = `paidonce_runs_without_outcome_total`
)

// Each way in which a request can end changes its own counters and no others.
func TestMetricsFollowRequests(t *testing.T) {
	t.Parallel()
	w := newWatched(t, nil)
	type counts = map[string]float64
	w.moved("fresh", counts{
		request("createCharge", "fresh"): 1, called("charge", "succeeded"): 1, claimed: 1,
		settled: 1,
	},
		func() { w.charge("a", visa, 201) })
	w.moved("replayed", counts{request("createCharge", "replayed"): 1}, func() {
		w.charge("a", visa, 201)
	})
	w.moved("reused", counts{request("createCharge", "reused"): 1}, func() {
		w.charge("a", strings.Replace(visa, "2000", "2001", 1), 422)
	})
	w.moved("declined", counts{
		request("createCharge", "fresh"): 1, called("charge", "declined"): 1, claimed: 1,
		settled: 1,
	},
		func() { w.charge("b", strings.Replace(visa, "tok_visa", "tok_chargeDeclined", 1), 402) })
	w.moved("refused", counts{request("createCharge", "refused"): 1}, func() {
		w.charge("c", `{"amount":0}`, 400)
	})
	w.moved("no key", counts{request("createCharge", "refused"): 1}, func() {
		w.charge("", visa, 400)
	})
	w.moved("unknown", counts{request("createCharge", "unknown"): 1, called("charge", "unknown"): 1,
		claimed: 1, noOutcome: 1}, func() {
		w.fault("POST", stripesim.Fault{Type: stripesim.DropAfter})
		w.charge("d", visa, 503)
	})
	w.moved("resumed", counts{
		request("createCharge", "resumed"): 1, called("find_charge", "found"): 1, callerTook: 1,
		settled: 1,
	},
		func() { w.charge("d", visa, 201) })
	w.moved("credentials", counts{request("createCharge", "provider_unavailable"): 1,
		called("charge", "credentials"): 1, claimed: 1, noOutcome: 1}, func() {
		w.fault("POST", stripesim.Fault{Type: stripesim.StatusBefore, Status: 401})
		w.charge("e", visa, 503)
	})
	w.moved("rate limit of the provider", counts{request("createCharge", "provider_unavailable"): 1,
		called("charge", "rate_limited"): 1, claimed: 1, noOutcome: 1}, func() {
		w.fault("POST", stripesim.Fault{Type: stripesim.StatusBefore, Status: 429})
		w.charge("f", visa, 503)
	})
	w.moved("list", counts{request("listCharges", "read"): 1}, func() {
		w.do("GET", "/v1/charges", "", "")
	})
	w.moved("get", counts{request("getCharge", "refused"): 1}, func() {
		w.do("GET", "/v1/charges/ch_none", "", "")
	})
	w.moved("key", counts{request("getIdempotencyKey", "read"): 1}, func() {
		w.do("GET", "/v1/idempotency_keys/a", "", "")
	})
	w.moved("probes", counts{request("getHealth", "read"): 1, request("getReadiness", "read"): 1},
		func() { w.do("GET", "/healthz", "", ""); w.do("GET", "/readyz", "", "") })
	w.moved("nowhere", counts{request("none", "refused"): 3}, func() {
		w.do("GET", "/v1/nothing", "", "")
		w.do("DELETE", "/v1/charges", "", "")
		w.do("POST", "/metrics", "", "")
	})
	secret := w.key.Secret
	w.key.Secret = "sk_test_stranger"
	w.moved("unauthenticated", counts{request("createCharge", "unauthenticated"): 1}, func() {
		w.charge("g", visa, 401)
	})
	w.key.Secret = secret
	w.moved("draining", counts{request("none", "unavailable"): 1}, func() {
		w.edge.Drain()
		w.charge("g", visa, 503)
	})
}

func TestMetricsOfTheSameRequestRunning(t *testing.T) {
	t.Parallel()
	w := newWatched(t, func(c *config) { c.ProviderTimeout = 20 * time.Second })
	w.moved("in use", map[string]float64{
		request("createCharge", "fresh"): 1, request("createCharge", "in_use"): 1,
		called("charge", "succeeded"): 1, claimed: 1, settled: 1,
	}, func() {
		w.fault("POST", stripesim.Fault{Type: stripesim.Delay, DelayMS: 5000})
		first := make(chan int, 1)
		go func() { code, _ := w.do("POST", "/v1/charges", "k", visa); first <- code }()
		for w.sim.Stats().ChargeRequests == 0 {
			time.Sleep(time.Millisecond)
		}
		if n := w.scrape()["paidonce_requests_in_flight"]; n != 1 {
			t.Errorf("%v requests in flight", n)
		}
		w.charge("k", visa, 409)
		if code := <-first; code != 201 {
			t.Errorf("the first got %d", code)
		}
	})
}

// A refused signature is counted by its reason, both before the body is read and after.
func TestMetricsOfRefusedSignatures(t *testing.T) {
	t.Parallel()
	w := newWatched(t, func(c *config) { c.StripeWebhookSecrets = []string{"whsec_metrics"} })
	send := func(signed ...string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
			w.url+"/v1/provider/stripe/webhooks", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header["Stripe-Signature"] = signed
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if _ = res.Body.Close(); res.StatusCode != http.StatusBadRequest {
			t.Errorf("%q: got %d", signed, res.StatusCode)
		}
	}
	name := func(reason string) string {
		return `paidonce_signatures_refused_total{reason="` + reason + `"}`
	}
	now, v1 := time.Now().Unix(), strings.Repeat("a", 64)
	want := map[string]float64{
		name("header"): 3, name("time"): 2, name("mismatch"): 1,
		request("receiveStripeEvent", "refused"): 6,
	}
	w.moved("refused signatures", want, func() {
		send()
		send("garbage")
		send(fmt.Sprintf("t=%d,v1=%s", now, v1), fmt.Sprintf("t=%d,v1=%s", now, v1))
		send(fmt.Sprintf("t=%d,v1=%s", now-3600, v1))
		send(fmt.Sprintf("t=%d,v1=%s", now+3600, v1))
		send(fmt.Sprintf("t=%d,v1=%s", now, v1))
	})
}

func TestMetricsOfTheRateLimit(t *testing.T) {
	t.Parallel()
	w := newWatched(t, func(c *config) { c.ratePerSec = 0.01 })
	w.moved("rate limited", map[string]float64{request("listCharges", "read"): 1,
		request("createCharge", "rate_limited"): 1}, func() {
		w.do("GET", "/v1/charges", "", "")
		w.charge("k", visa, 429)
	})
}

// The gauges report the state of all operations, whoever left them so.
func TestMetricsOfUnfinishedOperations(t *testing.T) {
	t.Parallel()
	w := newWatched(t, nil)
	for _, key := range []string{"waits", "stuck", "abandoned", "doubtful"} {
		w.fault("POST", stripesim.Fault{Type: stripesim.DropAfter})
		w.charge(key, visa, 503)
	}
	w.exec(`UPDATE idempotency_keys SET created_at = created_at - interval '1 hour', next_run_at = clock_timestamp() - interval '20 minutes' WHERE key = 'stuck'`)
	w.exec(`UPDATE idempotency_keys SET lease_token = 'gone', locked_at = clock_timestamp() - interval '10 minutes', next_run_at = NULL WHERE key = 'abandoned'`)
	// The provider's object differs from the request: an operator has to decide.
	w.exec(`UPDATE idempotency_keys SET params = convert_to(replace(convert_from(params, 'UTF8'), '"amount":2000', '"amount":2001'), 'UTF8') WHERE key = 'doubtful'`)
	w.moved("parked", map[string]float64{
		request("createCharge", "parked"): 1, called("find_charge", "found"): 1, callerTook: 1,
		"paidonce_parkings_total": 1,
	},
		func() { w.charge("doubtful", visa, 500) })
	w.moved("parked already", map[string]float64{request("createCharge", "parked"): 1}, func() {
		w.charge("doubtful", visa, 500)
	})
	w.exec(`UPDATE idempotency_keys SET parked_at = parked_at - interval '2 hours' WHERE key = 'doubtful'`)
	w.eventually("paidonce_operations_oldest_parked_seconds", about(7200))
	w.eventually("paidonce_operations_parked", equals(1))
	w.eventually("paidonce_operations_in_progress", equals(4))
	w.eventually("paidonce_operations_stale", equals(1))
	w.eventually("paidonce_operations_running", equals(0))
	w.eventually("paidonce_operations_oldest_seconds", about(3600))
	w.eventually("paidonce_operations_overdue_seconds", about(20*60))

	w.exec(`UPDATE idempotency_keys SET next_run_at = clock_timestamp() WHERE key = 'waits'`)
	w.moved("a pass", map[string]float64{reconcileTook: 3, called("find_charge", "found"): 3,
		settled: 3}, func() { w.pass(3) })
	now := w.scrape()
	for name, want := range map[string]float64{
		`paidonce_reconcile_operations_total{result="finished"}`: 3,
		`paidonce_reconcile_operations_total{result="waiting"}`:  0,
	} {
		if now[name] != want {
			t.Errorf("%s is %v, want %v", name, now[name], want)
		}
	}
	if last := now["paidonce_reconcile_last_pass_timestamp_seconds"]; time.Since(time.Unix(int64(last), 0)) > time.Minute || now[`paidonce_reconcile_passes_total{result="done"}`] == 0 {
		t.Errorf("last pass at %v", last)
	}
	w.eventually("paidonce_operations_overdue_seconds", equals(0))
	w.eventually("paidonce_operations_in_progress", equals(1))

	w.exec(`UPDATE idempotency_keys SET expires_at = clock_timestamp() - interval '5 hours' WHERE key = 'stuck'`)
	w.eventually("paidonce_keys_oldest_expired_seconds", about(5*3600))
	w.exec(`INSERT INTO provider_events (id, type, object_id, livemode, payload, processed_at, result, next_run_at)
		SELECT n, 'charge.succeeded', 'ch', false, '{}', now() - interval '91 days', 'done', NULL FROM generate_series(1, 3) n`)
	w.sweep(1)
	w.eventually("paidonce_keys_oldest_expired_seconds", equals(0))
	now = w.scrape()
	if keys, events := now["paidonce_sweep_keys_total"],
		now[`paidonce_sweep_rows_total{table="provider_events"}`]; keys != 1 || events != 3 {
		t.Errorf("%v keys and %v events swept", keys, events)
	}
}

// pass runs the reconcile worker until it has driven n operations.
func (w *watched) pass(most int) {
	ctx, stop := context.WithCancel(w.t.Context())
	driven := 0
	w.app.reconciler().Work(ctx, 10*time.Millisecond,
		func(c recovery.Counts, took time.Duration, err error) {
			w.app.metrics.RecordPass(c, took, err)
			if driven += c.Driven; driven >= most {
				stop()
			}
		})
	stop()
}

// sweep runs the sweep worker until it has deleted n keys.
func (w *watched) sweep(most int) {
	ctx, stop := context.WithCancel(w.t.Context())
	swept := 0
	recovery.WorkSweep(ctx, w.app.expiring, 10*time.Millisecond, w.app.log,
		func(n map[string]int, err error) {
			w.app.metrics.RecordSweep(n, err)
			if swept += n["keys"]; swept >= most {
				stop()
			}
		})
	stop()
}

// If the database does not answer, a scrape lacks the gauges that come from it and takes two
// seconds at most; nothing else changes.
func TestScrapeWithoutDatabase(t *testing.T) {
	t.Parallel()
	w := newWatched(t, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for range w.app.pool.Config().MaxConns {
		c, err := w.app.pool.Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Release()
	}
	began := time.Now()
	got := w.scrape()
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the scrape took %v", took)
	}
	if _, there := got["paidonce_operations_stale"]; there ||
		got["paidonce_scrape_errors_total"] != 1 {
		t.Errorf("stale operations there: %t; errors: %v", there,
			got["paidonce_scrape_errors_total"])
	}
	if acquired, most := got[`paidonce_db_pool_connections{state="acquired"}`],
		got["paidonce_db_pool_max_connections"]; acquired != most ||
		int(most) != w.app.cfg.DBMaxConns-2 {
		t.Errorf("%v of %v connections are acquired", acquired, most)
	}
}
