package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"
)

// report is everything a run found, and what --json writes.
type report struct {
	Began    time.Time `json:"began"`
	Machine  string    `json:"machine"`
	Postgres string    `json:"postgres"`
	Settings string    `json:"postgres_settings"` // what differs from the defaults
	Pool     int       `json:"pool"`
	Rounds   int       `json:"rounds"`
	Seconds  float64   `json:"seconds"`
	Medians  []result  `json:"medians"` // of each cell, over the rounds
	Ratios   []ratio   `json:"ratios"`
	Goals    []goal    `json:"goals"`
	Faults   []string  `json:"faults"` // a run with faults proves nothing
	Cells    []result  `json:"cells"`  // of each round
	inFlight int       // how many charges were to be in flight
	sweep    int       // how many expired keys were to be swept
}

// ratio compares two systems. It has the median of the rounds, the least and the largest. Within a
// round the two were measured one after the other, so a round's ratio is worth more than a ratio of
// medians.
type ratio struct {
	Name    string        `json:"name"` // such as P/B0
	Of      string        `json:"of"`   // one of measures
	Clients int           `json:"clients"`
	Delay   time.Duration `json:"delay_ns"`
	Median  float64       `json:"median"`
	Least   float64       `json:"least"`
	Most    float64       `json:"most"`
}

func (r *report) begin(c config, version, settings string) {
	r.Began, r.Postgres, r.Settings = time.Now(), version, settings
	r.Machine = fmt.Sprintf("%d CPUs, %s/%s", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH)
	r.Pool, r.Rounds, r.Seconds, r.inFlight, r.sweep = c.Pool, c.Rounds, c.Measure.Seconds(),
		c.InFlight, c.Sweep
}

func (r *report) fault(c cell, err error) {
	r.Faults = append(r.Faults, fmt.Sprintf("%s: %v", c, err))
}

// failure is an error that makes the run exit with 1. A missed goal is none.
func (r *report) failure() error {
	if len(r.Faults) > 0 {
		return fmt.Errorf("%d cells went wrong; the first: %s", len(r.Faults), r.Faults[0])
	}
	return nil
}

func (r *report) write(path string) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o644) //nolint:gosec // meant to be read
}

// finish makes medians, ratios and goals of the cells.
func (r *report) finish() {
	for _, c := range r.kinds() {
		r.Medians = append(r.Medians, r.median(c))
	}
	for _, c := range r.kinds() {
		if c.Kind != "charges" {
			continue
		}
		if c.System != Product {
			continue
		}
		for _, m := range measures {
			for _, other := range []System{LeanBare, LeanFloor, Bare, Floor} {
				r.addRatio(c, other, m.name, m.of)
			}
		}
	}
	r.Goals = r.goals()
}

func perSecond(x result) float64 { return x.PerSecond }

// measures are the figures by which P is compared, in the order of the columns.
var measures = []struct {
	name string
	of   func(result) float64
}{
	{"charges/s", perSecond},
	{"p99", func(x result) float64 { return x.P99 }},
	{"PostgreSQL's CPU", func(x result) float64 { return x.CPUPostgres }},
	{"server's CPU", func(x result) float64 { return x.CPUServer }},
	{"WAL", func(x result) float64 { return x.WAL }},
}

// kinds are the different cells, rounds apart, in the order in which the first round met them,
// clients before systems.
func (r *report) kinds() []cell {
	var out []cell
	for _, x := range r.Cells {
		c := x.cell
		c.Round = 0
		if !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	return out
}

// rounds returns a cell's results by round.
func (r *report) rounds(c cell) map[int]result {
	out := map[int]result{}
	for _, x := range r.Cells {
		round := x.Round
		if y := x.cell; y.System == c.System && y.Kind == c.Kind && y.Clients == c.Clients &&
			y.Delay == c.Delay {
			out[round] = x
		}
	}
	return out
}

func (r *report) median(c cell) result {
	rounds := r.rounds(c)
	m := result{cell: c}
	set := func(to *float64, get func(result) float64) {
		var all []float64
		for _, x := range rounds {
			all = append(all, get(x))
		}
		*to = middle(all)
	}
	set(&m.PerSecond, perSecond)
	set(&m.P50, func(x result) float64 { return x.P50 })
	set(&m.P99, func(x result) float64 { return x.P99 })
	set(&m.Max, func(x result) float64 { return x.Max })
	set(&m.CPUServer, func(x result) float64 { return x.CPUServer })
	set(&m.CPUPostgres, func(x result) float64 { return x.CPUPostgres })
	set(&m.CPUStub, func(x result) float64 { return x.CPUStub })
	set(&m.CPUDriver, func(x result) float64 { return x.CPUDriver })
	set(&m.WAL, func(x result) float64 { return x.WAL })
	set(&m.Commits, func(x result) float64 { return x.Commits })
	set(&m.Calls, func(x result) float64 { return x.Calls })
	set(&m.Params, func(x result) float64 { return x.Params })
	set(&m.Answer, func(x result) float64 { return x.Answer })
	set(&m.Event, func(x result) float64 { return x.Event })
	m.Sweep = medianSweep(rounds)
	for _, x := range rounds { // of these the worst counts
		m.Requests += x.Requests
		m.Charges += x.Charges
		m.Connections, m.IdleInTx = max(m.Connections, x.Connections), max(m.IdleInTx, x.IdleInTx)
		m.PeakMemory, m.InFlight = max(m.PeakMemory, x.PeakMemory), max(m.InFlight, x.InFlight)
	}
	return m
}

func middle(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Clone(v)
	slices.Sort(v)
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}

func (r *report) addRatio(c cell, to System, of string, get func(result) float64) {
	other := c
	other.System = to
	if x, ok := r.paired(c, other, get); ok {
		x.Name, x.Of, x.Clients, x.Delay = string(c.System)+"/"+string(to), of, c.Clients, c.Delay
		r.Ratios = append(r.Ratios, x)
	}
}

// paired returns the ratios of two cells for the rounds that have both.
func (r *report) paired(a, b cell, get func(result) float64) (out ratio, ok bool) {
	as, bs := r.rounds(a), r.rounds(b)
	var all []float64
	for round, x := range as {
		if y, ok := bs[round]; ok && get(y) > 0 {
			all = append(all, get(x)/get(y))
		}
	}
	if len(all) == 0 {
		return out, false
	}
	return ratio{Median: middle(all), Least: slices.Min(all), Most: slices.Max(all)}, true
}
