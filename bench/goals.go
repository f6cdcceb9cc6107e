package main

import (
	"fmt"
	"time"
)

// The goals, each as a ratio within one run. They are told, never enforced: a machine with other
// disks or cores may miss them for reasons of its own.

// goal is one of them and how it went.
type goal struct {
	Name  string  `json:"name"`
	Want  string  `json:"want"`
	Got   float64 `json:"got"`
	State string  `json:"state"` // met, not met, not measured
}

const (
	memoryGoal = 250 << 20 // bytes, with 5,000 charges in flight
	walGoal    = 3.5e3     // bytes a charge, at any number of clients with an instant provider
)

func (r *report) goals() []goal {
	const slow = 50 * time.Millisecond
	g := []goal{
		r.ratioGoal("P/B0", "charges/s", 1, 0, 0.85, true),
		r.ratioGoal("P/B0", "charges/s", 8, 0, 0.9, true),
		r.ratioGoal("P/B0", "charges/s", 32, 0, 1.3, true),
		r.ratioGoal("P/B0", "charges/s", 64, 0, 1.5, true),
		r.ratioGoal("P/F0", "charges/s", 32, 0, 0.7, true),
		r.ratioGoal("P/F0", "charges/s", 64, 0, 0.95, true),
		r.ratioGoal("P/B0", "charges/s", 256, slow, 1.5, true),
		r.ratioGoal("P/B0", "p99", 256, slow, 0.8, false),
		r.ratioGoal("P/F0", "PostgreSQL's CPU", 1, 0, 1.5, false),
		r.ratioGoal("P/F0", "PostgreSQL's CPU", 64, 0, 0.4, false),
		r.ratioGoal("P/B0", "server's CPU", 1, 0, 1.3, false),
		r.ratioGoal("P/B0", "server's CPU", 64, 0, 0.9, false),
		r.walGoal(),
		r.connectionGoal(slow),
	}
	g = append(g, r.inFlightGoals()...)
	g = append(g,
		r.pairGoal("replays/s to charges/s, 32 clients", 4, cell{
			System: Product, Kind: "replay", Clients: replayClients,
		},
			cell{System: Product, Kind: "calm", Clients: calmClients}),
		r.pairGoal("charges/s of 32 clients in a retry storm to those without", 0.95, cell{
			System: Product, Kind: "storm", Clients: calmClients,
		},
			cell{System: Product, Kind: "calm", Clients: calmClients}))
	g = append(g, r.pairGoal("charges/s of several servers to those of one, 64 clients", 1,
		cell{System: Product, Kind: "servers", Clients: serversClients}, cell{
			System: Product, Kind: "server", Clients: serversClients,
		}))
	g = append(g, r.pairGoal("charges/s with a reference to those without, 32 clients", 0.95,
		cell{System: Product, Kind: "reference", Clients: referenceClients},
		cell{System: Product, Kind: "none", Clients: referenceClients}))
	g = append(g, r.pairGoal("charges/s to those of the other binary, 32 clients", 0.98,
		cell{System: Product, Kind: "after", Clients: beforeClients},
		cell{System: Product, Kind: "before", Clients: beforeClients}))
	g = append(g, r.intentGoals()...)
	return append(append(g, r.sweepGoals()...), r.backlogGoals()...)
}

func (r *report) ratioGoal(
	name, of string, clients int, delay time.Duration, limit float64, atLeast bool,
) goal {
	g := goal{
		Name: fmt.Sprintf("%s %s, %d clients, provider %d ms", name, of, clients,
			delay.Milliseconds()), State: "not measured",
	}
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

// walGoal is the most that any number of clients wrote.
func (r *report) walGoal() goal {
	g := goal{
		Name: "P's WAL, bytes a charge, most of the instant cells",
		Want: fmt.Sprintf("at most %.0f", walGoal), State: "not measured",
	}
	for _, x := range r.Medians {
		if x.System == Product && x.Kind == "charges" && x.Delay == 0 && x.WAL > g.Got {
			g.decide(x.WAL, x.WAL <= walGoal)
		}
	}
	return g
}

// connectionGoal: nobody waits for the provider with a connection, or with a transaction open.
func (r *report) connectionGoal(delay time.Duration) goal {
	g := goal{Name: "connections in use while the provider takes its time, most clients",
		Want:  fmt.Sprintf("at most %d, none idle in a transaction", r.Pool),
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
	there := goal{
		Name: fmt.Sprintf("charges in flight at once, of %d", n),
		Want: fmt.Sprintf("at least %d", n*95/100), State: "not measured",
	}
	mem := goal{
		Name: "the server's memory then, MiB", Want: fmt.Sprintf("below %d", memoryGoal>>20),
		State: "not measured",
	}
	conns := goal{
		Name: "its database connections then", Want: fmt.Sprintf("at most %d", r.Pool),
		State: "not measured",
	}
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
