package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"testing"
)

// sim is the simulated provider, in a process of its own.
type sim struct {
	*proc
	ledger string
}

func (w *world) startSim() *sim {
	w.t.Helper()
	s := &sim{ledger: w.t.TempDir() + "/ledger.jsonl"}
	w.runSim(s, "127.0.0.1:0")
	return s
}

func (w *world) runSim(s *sim, listen string) {
	w.t.Helper()
	// Without fsync: it survives being killed, and no test cuts the power.
	s.proc = w.start("stripesim",
		w.command(nil, "stripesim", "--listen", listen, "--ledger", s.ledger, "--fsync=false"))
	s.url = "http://" + s.await(`Stripe simulator on http://(\S+)`)[1]
}

var simClient = &http.Client{Timeout: patience}

// control asks or sets one of the switches.
func (s *sim) control(method, path string, body, into any) {
	s.t.Helper()
	var sent bytes.Buffer
	if body != nil {
		_ = json.NewEncoder(&sent).Encode(body)
	}
	req, err := http.NewRequest(method, s.url+"/_sim/"+path, &sent)
	if err != nil {
		s.t.Fatal(err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := simClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		s.t.Fatalf("%s /_sim/%s: %d %s %v", method, path, res.StatusCode, answer, err)
	}
	if into == nil {
		return
	}
	if err := json.Unmarshal(answer, into); err != nil {
		s.t.Fatal(err)
	}
}

// fault is what goes wrong with a charge.
type fault map[string]any

// arm lets a fault strike the next count charges; 0: all.
func (s *sim) arm(count int, f fault) {
	s.t.Helper()
	s.control(http.MethodPost, "faults", map[string]any{
		"match": map[string]any{"method": "POST", "path": "/v1/charges"}, "count": count,
		"fault": f,
	}, nil)
}

// slow lets every charge take so long: the first half before it is executed, the second after.
func (s *sim) slow(ms int) {
	s.t.Helper()
	s.arm(0, fault{"type": "delay", "delay_ms": ms / 2, "delay_after_ms": ms - ms/2})
}

type simStats struct {
	ChargeRequests   int `json:"charge_requests"`
	IntentRequests   int `json:"intent_requests"`
	ChargesExecuted  int `json:"charges_executed"`
	DistinctKeys     int `json:"distinct_keys"`
	CapturesExecuted int `json:"captures_executed"`
	Charges          int `json:"charges"`
	Mismatched       int `json:"mismatched"`
}

func (s *sim) stats() (n simStats) {
	s.t.Helper()
	s.control(http.MethodGet, "stats", nil, &n)
	return n
}

// awaitRequests waits until so many charges or payment intents were asked for.
func (s *sim) awaitRequests(n int) {
	s.t.Helper()
	eventually(s.t, "requests at the provider", func() bool {
		got := s.stats()
		return got.ChargeRequests+got.IntentRequests >= n
	})
}

type simCharge struct {
	ID       string            `json:"id"`
	Amount   int64             `json:"amount"`
	Status   string            `json:"status"`
	Metadata map[string]string `json:"metadata"`
	Key      string            `json:"idempotency_key"`
}

func (s *sim) charges() []simCharge {
	s.t.Helper()
	var l struct{ Charges []simCharge }
	s.control(http.MethodGet, "ledger", nil, &l)
	return l.Charges
}

type simRequest struct {
	Method string            `json:"method"`
	Path   string            `json:"path"`
	Key    string            `json:"idempotency_key"`
	Params map[string]string `json:"params"`
}

// sent returns the charges that were asked for, the latest first.
func (s *sim) sent() (posts []simRequest) {
	s.t.Helper()
	var l struct{ Data []simRequest }
	s.control(http.MethodGet, "requests?limit=1000", nil, &l)
	for _, r := range l.Data {
		if r.Method == http.MethodPost && r.Path == "/v1/charges" {
			posts = append(posts, r)
		}
	}
	return posts
}

// mustHave fails the test unless the provider has so many charges, each asked for under one key of
// its own.
func (s *sim) mustHave(t testing.TB, charges int) {
	t.Helper()
	if n := s.stats(); n.Charges != charges || n.DistinctKeys != charges || n.Mismatched != 0 {
		t.Errorf("the provider has %d charges under %d keys (%d mismatches), want %d and one "+
			"key each", n.Charges, n.DistinctKeys, n.Mismatched, charges)
	}
}
