package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// System is one of the systems that are compared.
type System string

// The systems, in the order of the report.
const (
	LeanFloor System = "F0"
	LeanBare  System = "B0"
	Floor     System = "F"
	Bare      System = "B"
	Product   System = "P"
)

func (s System) floor() bool { return s == Floor || s == LeanFloor }

// shape is the schema that the system writes into.
func (s System) shape() *shape {
	if s == LeanFloor || s == LeanBare {
		return &lean
	}
	return &ours
}

// config has the flags of a whole run.
type config struct {
	Systems     []System
	Clients     []int // with a provider that answers at once
	SlowClients []int // with one that takes SlowDelay
	SlowDelay   time.Duration
	Rounds      int
	Measure     time.Duration // of each cell
	Warmup      time.Duration // before it, unmeasured
	Pool        int           // database connections of B0, of B and of P
	Preload     int           // settled charges in each database before a cell begins
	Replay      bool
	References  bool
	Intents     bool
	Before      string // another built paidonce, with a schema that this one can migrate
	StormEvery  time.Duration
	Servers     int           // on one database
	CommitDelay time.Duration // of each commit, as with a synchronous standby
	InFlight    int
	Sweep       int // expired keys
	Backlog     int // stuck operations, and events that wait
	JSON        string
	Binary      string // a paidonce that is built already
	Dir         string
	Verbose     bool
}

func parseConfig(args []string) (config, error) {
	var c config
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.Usage = func() { put(fs.Output(), "%s", usage); fs.PrintDefaults() }
	systems := fs.String("systems", "F0,B0,F,B,P", "which systems")
	clients := fs.String("clients", "1,8,32,64",
		"numbers of clients, with a provider that answers at once")
	slow := fs.String("slow-clients", "64,256", "numbers of clients, with the slow provider; F0 "+
		"and F have none and are left out")
	fs.DurationVar(&c.SlowDelay, "slow-delay", 50*time.Millisecond,
		"how long the slow provider takes")
	fs.IntVar(&c.Rounds, "rounds", 3, "rounds; each measures every cell once")
	seconds := fs.Float64("seconds", 6, "measured seconds of each cell")
	warmup := fs.Float64("warmup", 1.5, "unmeasured seconds before them")
	fs.IntVar(&c.Pool, "pool", max(8, 4*runtime.NumCPU()),
		"database connections of B0, of B and of P (PAIDONCE_DB_MAX_CONNS)")
	fs.IntVar(&c.Preload, "preload", 5000, "settled charges in each database before a cell begins")
	fs.BoolVar(&c.Replay, "replay", false,
		"also measure replays, and a retry storm of 100 clients on one key")
	fs.DurationVar(&c.StormEvery, "storm-every", 250*time.Millisecond,
		"how often each client of the storm asks again, whatever Retry-After says")
	fs.IntVar(&c.Servers, "servers", 0,
		"also measure 64 clients of one server, and of so many on one database")
	fs.DurationVar(&c.CommitDelay, "commit-delay", 0, "make each commit take so much longer (at most 100ms), as a synchronous standby does")
	fs.BoolVar(&c.References, "references", false,
		"also measure 32 clients whose charges have no reference, and one each")
	fs.BoolVar(&c.Intents, "intents", false, "also measure payment intents that are created and "+
		"confirmed in one request, and charges, of 1 and of 32 clients")
	fs.StringVar(&c.Before, "before", "", "an older paidonce, built: also measure the charges of "+
		"32 clients of it, and of this one on its database, migrated")
	fs.IntVar(&c.InFlight, "inflight", 0,
		"also hold so many charges in flight at a provider that takes 5 s")
	fs.IntVar(&c.Sweep, "sweep", 0, "also measure charges with so many finished keys in the "+
		"table, and while 'paidonce sweep' deletes them")
	fs.IntVar(&c.Backlog, "backlog", 0, "also measure how fast so many stuck operations are "+
		"reconciled, and so many events delivered")
	short := fs.Bool("short", false, "a smoke run of a few seconds: one round, few cells")
	fs.StringVar(&c.JSON, "json", "", "write all figures to this file")
	fs.StringVar(&c.Binary, "paidonce", "", "a built paidonce; without it, ./cmd/paidonce is built")
	fs.StringVar(&c.Dir, "dir", "", "folder for data and logs, kept; without it, a new one below "+
		"/var/tmp that is removed. It must be on a real disk")
	fs.BoolVar(&c.Verbose, "v", false, "show what PostgreSQL's start-up says")
	if err := parseFlags(fs, args); err != nil {
		return c, err
	}
	set := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { set[f.Name] = true })
	c.Measure, c.Warmup = asDuration(*seconds), asDuration(*warmup)
	if *short { // a flag that was given still counts
		unlessSet(set, "rounds", func() { c.Rounds = 1 })
		unlessSet(set, "seconds", func() { c.Measure = 800 * time.Millisecond })
		unlessSet(set, "warmup", func() { c.Warmup = 200 * time.Millisecond })
		unlessSet(set, "clients", func() { *clients = "1,32" })
		unlessSet(set, "slow-clients", func() { *slow = "64" })
		unlessSet(set, "preload", func() { c.Preload = 500 })
	}
	return c, c.finish(*systems, *clients, *slow)
}

func unlessSet(set map[string]bool, name string, f func()) {
	if !set[name] {
		f()
	}
}

func asDuration(seconds float64) time.Duration {
	return time.Duration(seconds * float64(time.Second))
}

// finish reads the lists and checks what can be checked before anything is started.
func (c *config) finish(systems, clients, slow string) error {
	for _, s := range strings.Split(systems, ",") {
		s := System(strings.ToUpper(strings.TrimSpace(s)))
		if !slices.Contains([]System{LeanFloor, LeanBare, Floor, Bare, Product}, s) {
			return usageError{fmt.Errorf("--systems: %q is none of F0, B0, F, B, P", s)}
		}
		if !slices.Contains(c.Systems, s) {
			c.Systems = append(c.Systems, s)
		}
	}
	var err error
	if c.Clients, err = numbers(clients); err != nil {
		return usageError{fmt.Errorf("--clients: %w", err)}
	}
	if c.SlowClients, err = numbers(slow); err != nil {
		return usageError{fmt.Errorf("--slow-clients: %w", err)}
	}
	switch {
	case c.Rounds < 1, c.Measure <= 0, c.Warmup < 0, c.Pool < 1, c.Preload < 0, c.Servers < 0,
		c.CommitDelay < 0, c.CommitDelay > 100*time.Millisecond,
		c.InFlight < 0, c.Sweep < 0, c.Backlog < 0, c.StormEvery <= 0:
		return usageError{fmt.Errorf("a number is too small or too large: see --help")}
	case c.ofProduct() && !c.has(Product):
		return usageError{fmt.Errorf("--replay, --servers, --references, --intents, --before, " +
			"--inflight, --sweep and --backlog measure P, which --systems leaves out")}
	}
	for name, binary := range map[string]string{"--paidonce": c.Binary, "--before": c.Before} {
		if binary == "" {
			continue
		}
		if _, err := os.Stat(binary); err != nil {
			return usageError{fmt.Errorf("%s: %w", name, err)}
		}
	}
	return nil
}

// ofProduct reports whether something is asked for that only P has.
func (c *config) ofProduct() bool {
	return c.Replay || c.References || c.Intents || c.Before != "" || c.Servers > 0 ||
		c.InFlight > 0 || c.Sweep > 0 || c.Backlog > 0
}

func (c *config) has(s System) bool { return slices.Contains(c.Systems, s) }

func numbers(list string) ([]int, error) {
	var out []int
	for _, s := range strings.Split(list, ",") {
		if s = strings.TrimSpace(s); s == "" {
			continue
		}
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%q is no number of clients", s)
		}
		out = append(out, n)
	}
	return out, nil
}
