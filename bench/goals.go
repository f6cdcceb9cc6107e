package main

import (
	"fmt"
	"time"
)

// The goals, each as a ratio within one run. They are told, never enforced: a machine with other disks or cores may miss
// them for reasons of its own.

// goal is one of them and how it went.
type goal struct {
	Name  string  `json:"name"`
	Want  string  `json:"want"`
	Got   float64 `json:"got"`
	State string  `json:"state"` // met, not met, not measured
}

const memoryGoal = 300 << 20 // bytes, with 5,000 charges in flight

func (r *report) goals() []goal {
	const slow = 50 * time.Millisecond
	g := []goal{
		r.ratioGoal("1", "P/B", "charges/s", 1, 0, 0.9, true),
		r.ratioGoal("1", "P/B", "charges/s", 32, 0, 1.4, true),
		r.ratioGoal("1", "P/B", "charges/s", 64, 0, 1.8, true),
		r.ratioGoal("1", "P/F", "charges/s", 64, 0, 1.1, true),
		r.ratioGoal("2", "P/B", "p99", 64, slow, 0.95, false),
		r.ratioGoal("2", "P/B", "charges/s", 256, slow, 1.6, true),
		r.ratioGoal("2", "P/B", "p99", 256, slow, 0.75, false),
		r.connectionGoal(slow),
	}
	g = append(g, r.inFlightGoals()...)
	g = append(g,
		r.pairGoal("3: replays/s to charges/s, 32 clients", 3, cell{System: Product, Kind: "replay", Clients: replayClients},
			cell{System: Product, Kind: "calm", Clients: calmClients}),
		r.pairGoal("3: charges/s of 32 clients in a retry storm to those without", 0.9, cell{System: Product, Kind: "storm", Clients: calmClients},
			cell{System: Product, Kind: "calm", Clients: calmClients}))
	return append(append(g, r.sweepGoals()...), r.backlogGoals()...)
}

func (r *report) ratioGoal(number, name, of string, clients int, delay time.Duration, limit float64, atLeast bool) goal {
	g := goal{Name: fmt.Sprintf("%s: %s %s, %d clients, provider %d ms", number, name, of, clients, delay.Milliseconds()), State: "not measured"}
	if g.Want = fmt.Sprintf("at least %.2f", limit); !atLeast {
		g.Want = fmt.Sprintf("at most %.2f", limit)
	}
	for _, x := range r.Ratios {
		if x.Name == name && x.Of == of && x.Clients == clients && x.Delay == delay {
			g.decide(x.Median, (x.Median >= limit) == atLeast || x.Median == limit)
		}
	}
	return g
}

func (r *report) pairGoal(name string, limit float64, a, b cell) goal {
	g := goal{Name: name, Want: fmt.Sprintf("at least %.2f", limit), State: "not measured"}
	if x, ok := r.paired(a, b, perSecond); ok {
		g.decide(x.Median, x.Median >= limit)
	}
	return g
}

// connectionGoal: nobody waits for the provider with a connection, or with a transaction open.
func (r *report) connectionGoal(delay time.Duration) goal {
	g := goal{Name: "2: connections in use while the provider takes its time, most clients", Want: fmt.Sprintf("at most %d, none idle in a transaction", r.Pool),
		State: "not measured"}
	for _, x := range r.Medians {
		if x.System == Product && x.Kind == "charges" && x.Delay == delay {
			g.decide(float64(x.Connections), x.Connections <= r.Pool && x.IdleInTx == 0)
		}
	}
	return g
}

func (r *report) inFlightGoals() []goal {
	n := r.inFlight
	if n == 0 {
		n = 5000 // not measured; the goal is about so many
	}
	there := goal{Name: fmt.Sprintf("2: charges in flight at once, of %d", n), Want: fmt.Sprintf("at least %d", n*95/100), State: "not measured"}
	mem := goal{Name: "2: the server's memory then, MiB", Want: fmt.Sprintf("below %d", memoryGoal>>20), State: "not measured"}
	conns := goal{Name: "2: its database connections then", Want: fmt.Sprintf("at most %d", r.Pool), State: "not measured"}
	for _, x := range r.Medians {
		if x.Kind == "inflight" {
			there.decide(float64(x.InFlight), x.InFlight >= int64(n*95/100))
			mem.decide(float64(x.PeakMemory)/(1<<20), x.PeakMemory < memoryGoal)
			conns.decide(float64(x.Connections), x.Connections <= r.Pool)
		}
	}
	return []goal{there, mem, conns}
}

func (g *goal) decide(got float64, met bool) {
	g.Got, g.State = got, "not met"
	if met {
		g.State = "met"
	}
}
