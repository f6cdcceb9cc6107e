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
	script := pgbenchScript()
	values := sampleRow(owner{"acct_x", "key_x"})
	for _, m := range placeholder.FindAllStringSubmatch(script, -1) {
		name := m[2]
		if _, ok := values[name]; !ok && name != "u" && name != "n" && name != "client_id" {
			t.Errorf("nothing gives :%s a value", name)
		}
	}
	if strings.Count(script, ";\n") != 2 {
		t.Error("not two statements")
	}
}

func TestStubAnswersWithACharge(t *testing.T) {
	s := &stub{keys: map[uint64]struct{}{}}
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
	if c.Amount != 4200 || c.AmountCaptured != 0 || c.Captured || c.Livemode || c.Metadata["paidonce_operation"] != "op_1" {
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

func TestSummarizeCountsOnlyTheWindow(t *testing.T) {
	var samples []sample
	for i := range 300 {
		samples = append(samples, sample{time.Duration(i) * time.Millisecond, time.Duration(i) * time.Microsecond})
	}
	l := summarize(samples, 100*time.Millisecond, 200*time.Millisecond)
	if l.Count != 100 || l.P50 != 149*time.Microsecond || l.P99 != 198*time.Microsecond || l.Max != 199*time.Microsecond {
		t.Errorf("got %+v", l)
	}
}

func TestSweepIsComparedByRounds(t *testing.T) {
	var r report
	for round, v := range [][3]float64{{100, 95, 80}, {50, 40, 36}, {200, 200, 170}} {
		for i, kind := range []string{"empty", "full", "sweep"} {
			x := result{cell: sweepCell(kind, round), PerSecond: v[i]}
			if kind == "sweep" {
				x.Sweep = &swept{Keys: 1000, Seconds: float64(1 + round), LoadKeys: 500, LoadSeconds: 1}
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
	if s := r.median(sweepCell("sweep", 0)).Sweep; s == nil || s.perSecond() != 500 || s.loadPerSecond() != 500 {
		t.Errorf("got %+v", s)
	}
}

func TestRatiosArePaired(t *testing.T) {
	var r report
	for round, v := range [][2]float64{{100, 200}, {10, 40}, {50, 150}} { // the machine was slow in the second round
		for i, s := range []System{Bare, Product} {
			r.Cells = append(r.Cells, result{cell: cell{System: s, Kind: "charges", Clients: 64, Round: round}, PerSecond: v[i], P99: 1})
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
		if strings.HasPrefix(g.Name, "1: P/B charges/s, 64") && g.State != "met" {
			t.Errorf("got %+v", g)
		}
	}
}
