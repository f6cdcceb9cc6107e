package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// put writes, and ignores errors: a closed terminal is no fault of the run.
func put(w io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) }

// print writes the report as text.
func (r *report) print(w io.Writer) {
	put(w, "%s; %s\n", r.Machine, strings.SplitN(r.Postgres, ",", 2)[0])
	put(w, "fsync on; beside PostgreSQL's defaults: %s\n", r.Settings)
	put(w, "%d rounds, %.3g s each cell, medians; pool of B0, B and P: %d connections\n", r.Rounds,
		r.Seconds, r.Pool)
	put(w, "F: the two statements alone (pgbench)   B: bare echo + pgx server   P: paidonce "+
		"serve   F0, B0: on a lean schema\n")
	r.printSizes(w)
	for _, d := range r.delays() {
		put(w, "\nCharges, provider answers %s\n", after(d))
		r.printCells(w, func(x result) bool { return x.Kind == "charges" && x.Delay == d })
		r.printRatios(w, d)
	}
	other := func(x result) bool { return x.Kind != "charges" && !x.sweeps() && !x.backlogs() && !x.ofIntents() }
	if slices.ContainsFunc(r.Medians, other) {
		put(w, "\nReplays; charges with and without a retry storm; of one server and of several; "+
			"with a reference and with none; of an older program (before) and of this one (after); "+
			"in flight (a request is a replay or a charge)\n")
		r.printCells(w, other)
	}
	r.printIntents(w)
	r.printSweep(w)
	r.printBacklog(w)
	r.printGoals(w)
	for _, f := range r.Faults {
		put(w, "WENT WRONG: %s\n", f)
	}
}

// printSizes shows that the systems store rows of the same size: smaller ones would be an unfair
// advantage.
func (r *report) printSizes(w io.Writer) {
	var told []System
	text := "bytes stored of a charge (frozen parameters, answer, event):"
	for _, x := range r.Medians {
		if x.Kind == "charges" && !slices.Contains(told, x.System) {
			told = append(told, x.System)
			text += fmt.Sprintf("  %s %.0f, %.0f, %.0f", x.System, x.Params, x.Answer, x.Event)
		}
	}
	if len(told) > 0 {
		put(w, "%s\n", text)
	}
}

func (r *report) delays() []time.Duration {
	var out []time.Duration
	for _, x := range r.Medians {
		if x.Kind == "charges" && !slices.Contains(out, x.Delay) {
			out = append(out, x.Delay)
		}
	}
	return out
}

func after(d time.Duration) string {
	if d == 0 {
		return "at once"
	}
	return "after " + d.String()
}

func (r *report) printCells(w io.Writer, want func(result) bool) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	put(t, "clients\tsystem\tper second\tp50 ms\tp99 ms\tCPU µs "+
		"each\tserver\tPostgreSQL\tstub\tdriver\tWAL B each\tconnections\t\n")
	for _, x := range r.Medians {
		if !want(x) {
			continue
		}
		name := string(x.System)
		if x.Kind != "charges" {
			name += " " + x.Kind
		}
		put(t, "%d\t%s\t%.0f\t%.2f\t%.2f\t%s\t%s\t%s\t%s\t%s\t%.0f\t%d\t\n", x.Clients, name,
			x.PerSecond, x.P50, x.P99,
			micros(x.cpu()), micros(x.CPUServer), micros(x.CPUPostgres), micros(x.CPUStub),
			micros(x.CPUDriver), x.WAL, x.Connections)
	}
	_ = t.Flush()
}

// micros leaves out what does not exist: F has no server, macOS no /proc.
func micros(v float64) string {
	if v <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f", v)
}

// printRatios prints a line for each system and measure, with a column for each number of clients.
func (r *report) printRatios(w io.Writer, d time.Duration) {
	var names []string // lines
	var clients []int  // columns
	cells := map[string]string{}
	for _, x := range r.Ratios {
		if x.Delay != d {
			continue
		}
		name := x.Name + "\t" + x.Of
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
		if !slices.Contains(clients, x.Clients) {
			clients = append(clients, x.Clients)
		}
		text := fmt.Sprintf("%.2f", x.Median)
		if r.Rounds > 1 {
			text += fmt.Sprintf(" (%.2f-%.2f)", x.Least, x.Most)
		}
		cells[fmt.Sprint(name, x.Clients)] = text
	}
	if len(names) == 0 {
		return
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	put(t, "\nratio\tof\t")
	for _, n := range clients {
		put(t, "%d clients\t", n)
	}
	put(t, "\n")
	for _, name := range names {
		put(t, "%s\t", name)
		for _, n := range clients {
			put(t, "%s\t", cells[fmt.Sprint(name, n)])
		}
		put(t, "\n")
	}
	_ = t.Flush()
}

func (r *report) printGoals(w io.Writer) {
	put(w, "\nGoals (medians of the rounds' ratios)\n")
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, g := range r.Goals {
		if g.State == "not measured" {
			put(t, "  %s\t%s\t\t%s\n", g.Name, g.Want, g.State)
			continue
		}
		put(t, "  %s\t%s\tgot %.2f\t%s\n", g.Name, g.Want, g.Got, g.State)
	}
	_ = t.Flush()
}
