package main

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"
)

func TestNumberedLeavesCastsAlone(t *testing.T) {
	s := numbered("SELECT :a::text, :b::bytea, :a::text")
	if want := "SELECT $1::text, $2::bytea, $1::text"; s.sql != want {
		t.Errorf("got %q, want %q", s.sql, want)
	}
	if got := strings.Join(s.names, " "); got != "a b" {
		t.Errorf("names: %q", got)
	}
}

// Every parameter of the statements has a value in the sample or is made in pgbench's script.
func TestPgbenchScriptIsWhole(t *testing.T) {
	values := sampleRow(owner{"acct_x", "key_x"})
	for _, s := range []*shape{&ours, &lean} {
		script := pgbenchScript(s)
		for _, m := range placeholder.FindAllStringSubmatch(script, -1) {
			name := m[2]
			if _, ok := values[name]; !ok && name != "u" && name != "n" && name != "client_id" {
				t.Errorf("%s: nothing gives :%s a value", s.name, name)
			}
		}
		if strings.Count(script, ";\n") != 2 {
			t.Errorf("%s: not two statements", s.name)
		}
	}
}

func TestStubAnswersWithACharge(t *testing.T) {
	s := newStub(0)
	body := "amount=4200&currency=usd&capture=false&metadata[paidonce_operation]=op_1"
	status, first := s.charge("k", body)
	var c struct {
		ID             string
		Amount         int64
		AmountCaptured int64 `json:"amount_captured"`
		Captured       bool
		Livemode       bool
		Metadata       map[string]string
	}
	if err := json.Unmarshal([]byte(first), &c); err != nil || status != "200 OK" {
		t.Fatalf("%s, %v: %s", status, err, first)
	}
	if c.Amount != 4200 || c.AmountCaptured != 0 || c.Captured || c.Livemode ||
		c.Metadata["paidonce_operation"] != "op_1" {
		t.Errorf("got %+v", c)
	}
	_, again := s.charge("k", body)
	_, other := s.charge("l", body)
	if !strings.Contains(again, c.ID) || strings.Contains(other, c.ID) {
		t.Error("a charge's id does not follow its idempotency key")
	}
	if s.posts.Load() != 3 || len(s.keys) != 2 {
		t.Errorf("%d calls, %d keys", s.posts.Load(), len(s.keys))
	}
}

func TestStubConfirmsAnIntent(t *testing.T) {
	s := newStub(0)
	type answer struct {
		ID, Status string
		Amount     int64
		Metadata   map[string]string
		Charge     *struct {
			Amount        int64
			PaymentIntent string `json:"payment_intent"`
			Metadata      map[string]string
		} `json:"latest_charge"`
	}
	post := func(rest, key, body string) (a answer) {
		status, text := s.intent(rest, key, body)
		if err := json.Unmarshal([]byte(text), &a); err != nil || status != "200 OK" {
			t.Fatalf("%s, %v: %s", status, err, text)
		}
		return a
	}
	made := post("", "k", "amount=4200&currency=usd&metadata[paidonce_operation]=op_1")
	if made.Status != "requires_confirmation" || made.Charge != nil || made.Amount != 4200 {
		t.Errorf("got %+v", made)
	}
	paid := post("/"+made.ID+"/confirm", "l", "expand[]=latest_charge")
	if paid.Status != "succeeded" || paid.ID != made.ID || paid.Charge == nil ||
		paid.Charge.PaymentIntent != made.ID || paid.Charge.Amount != 4200 ||
		paid.Charge.Metadata["paidonce_operation"] != "op_1" {
		t.Errorf("got %+v", paid)
	}
	if status, _ := s.intent("/pi_x/confirm", "m", ""); status != "404 Not Found" {
		t.Errorf("an intent that is not there: %s", status)
	}
}

func TestSummarizeCountsOnlyTheWindow(t *testing.T) {
	var samples []sample
	for i := range 300 {
		samples = append(samples,
			sample{time.Duration(i) * time.Millisecond, time.Duration(i) * time.Microsecond})
	}
	l := summarize(samples, 100*time.Millisecond, 200*time.Millisecond)
	if l.Count != 100 || l.P50 != 149*time.Microsecond || l.P99 != 198*time.Microsecond ||
		l.Max != 199*time.Microsecond {
		t.Errorf("got %+v", l)
	}
}

func TestSweepIsComparedByRounds(t *testing.T) {
	var r report
	for round, v := range [][3]float64{{100, 95, 80}, {50, 40, 36}, {200, 200, 170}} {
		for i, kind := range []string{"empty", "full", "sweep"} {
			x := result{cell: sweepCell(kind, round), PerSecond: v[i]}
			if kind == "sweep" {
				x.Sweep = &swept{
					Keys: 1000, Seconds: float64(1 + round), LoadKeys: 500, LoadSeconds: 1,
				}
			}
			r.Cells = append(r.Cells, x)
		}
	}
	r.finish()
	got := map[string]float64{}
	for _, g := range r.sweepGoals() {
		got[g.State] += g.Got
	}
	if len(got) != 1 || math.Abs(got["met"]-0.85-0.95) > 1e-9 {
		t.Errorf("got %v", got)
	}
	if s := r.median(sweepCell("sweep", 0)).Sweep; s == nil || s.perSecond() != 500 ||
		s.loadPerSecond() != 500 {
		t.Errorf("got %+v", s)
	}
}

func TestRatiosArePaired(t *testing.T) {
	var r report
	// the machine was slow in the second round
	for round, v := range [][2]float64{{100, 200}, {10, 40}, {50, 150}} {
		for i, s := range []System{LeanBare, Product} {
			r.Cells = append(r.Cells, result{
				cell: cell{System: s, Kind: "charges", Clients: 64, Round: round}, PerSecond: v[i],
				P99: 1,
			})
		}
	}
	r.Rounds = 3
	r.finish()
	for _, x := range r.Ratios {
		if x.Of == "charges/s" && (math.Abs(x.Median-3) > 1e-9 || x.Least != 2 || x.Most != 4) {
			t.Errorf("got %+v", x)
		}
	}
	for _, g := range r.Goals {
		if strings.HasPrefix(g.Name, "P/B0 charges/s, 64") && g.State != "met" {
			t.Errorf("got %+v", g)
		}
	}
}
