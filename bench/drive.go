package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"
)

// driver is a closed loop of clients: each has one connection and sends its next request when the
// last is answered.
type driver struct {
	targets         []string
	apiKey, run     string
	mode            string
	clients         int
	warmup, measure time.Duration
	keys            int           // replay: how many
	every, hold     time.Duration // storm: how often, and how long its charge takes
}

// driven is what the driver prints at its end, as a line of JSON.
type driven struct {
	Requests int           `json:"requests"` // that ended in the window
	Window   time.Duration `json:"window"`
	P50      time.Duration `json:"p50"`
	P99      time.Duration `json:"p99"`
	Max      time.Duration `json:"max"`
	// Of everything sent, the warm-up included:
	Charges  int            `json:"charges"` // distinct keys that were answered with 201
	Statuses map[string]int `json:"statuses"`
	Wrong    map[string]int `json:"wrong"` // answers that the mode does not expect
}

// worker is what one client gathers; nobody else touches it until it is done.
type worker struct {
	d        *driver
	n        int
	start    time.Time
	stop     <-chan struct{}
	conn     *conn
	samples  []sample
	charges  int
	statuses map[string]int
	wrong    map[string]int
}

func driveMain(ctx context.Context, args []string) error {
	var d driver
	fs := flag.NewFlagSet("bench drive", flag.ContinueOnError)
	target := fs.String("target", "127.0.0.1:8080", "host:port of the server, or of several, "+
		"with commas: clients are dealt out among them")
	fs.StringVar(&d.apiKey, "api-key", "sk_bench", "API key")
	fs.StringVar(&d.run, "run", fmt.Sprint(time.Now().UnixNano()),
		"makes the idempotency keys unlike those of other runs")
	fs.StringVar(&d.mode, "mode", "charge", "charge: a new key each time; replay: keys that are "+
		"finished; storm: all clients on one key; reference: as charge, each with a reference; "+
		"intent: as charge, with payment intents that are confirmed at once")
	fs.IntVar(&d.clients, "clients", 8, "clients")
	fs.DurationVar(&d.warmup, "warmup", time.Second, "unmeasured time")
	fs.DurationVar(&d.measure, "measure", 5*time.Second, "measured time")
	fs.IntVar(&d.keys, "keys", 256, "replay: how many finished keys")
	fs.DurationVar(&d.every, "every", 250*time.Millisecond, "storm: how often a client asks again")
	fs.DurationVar(&d.hold, "hold", 5*time.Second,
		"storm: how long the provider takes for the one charge")
	if err := parseFlags(fs, args); err != nil {
		return err
	}
	d.targets = strings.Split(*target, ",")
	loop, ok := map[string]func(*worker){"charge": (*worker).charge, "replay": (*worker).replay,
		"storm": (*worker).storm, "reference": (*worker).charge, "intent": (*worker).charge}[d.mode]
	if !ok {
		return usageError{fmt.Errorf("--mode: %q is none of charge, replay, storm, reference, intent",
			d.mode)}
	}
	return d.drive(ctx, loop)
}

// drive prints "measure" and "measured" at the borders of the window, for the parent to read its
// meters, then the result.
func (d *driver) drive(ctx context.Context, loop func(*worker)) error {
	stop := make(chan struct{})
	workers := make([]*worker, d.clients)
	for i := range workers { // connected before the clock starts
		c, err := dial(ctx, d.targets[i%len(d.targets)], d.apiKey)
		if err != nil {
			return err
		}
		defer c.close()
		c.references, c.intents = d.mode == "reference", d.mode == "intent"
		workers[i] = &worker{
			d: d, n: i, stop: stop, conn: c, statuses: map[string]int{}, wrong: map[string]int{},
		}
	}
	if d.mode == "replay" {
		if err := workers[0].finishKeys(); err != nil {
			return err
		}
	}
	start := time.Now()
	var all sync.WaitGroup
	for _, w := range workers {
		w.start = start
		all.Go(func() { loop(w) })
	}
	orphaned := untilOrphaned(ctx)
	sleep(d.warmup, orphaned)
	from := time.Since(start)
	fmt.Println("measure")
	sleep(d.measure, orphaned)
	to := time.Since(start)
	fmt.Println("measured")
	close(stop)
	all.Wait()
	fmt.Println(string(mustJSON(gather(workers, from, to))))
	return nil
}

func sleep(d time.Duration, stop <-chan struct{}) {
	select {
	case <-time.After(d):
	case <-stop:
	}
}

func gather(workers []*worker, from, to time.Duration) driven {
	r := driven{Window: to - from, Statuses: map[string]int{}, Wrong: map[string]int{}}
	var samples []sample
	for _, w := range workers {
		samples = append(samples, w.samples...)
		r.Charges += w.charges
		for s, n := range w.statuses {
			r.Statuses[s] += n
		}
		for s, n := range w.wrong {
			r.Wrong[s] += n
		}
	}
	l := summarize(samples, from, to)
	r.Requests, r.P50, r.P99, r.Max = l.Count, l.P50, l.P99, l.Max
	maps.DeleteFunc(r.Wrong, func(_ string, n int) bool { return n == 0 })
	return r
}

func (w *worker) stopped() bool {
	select {
	case <-w.stop:
		return true
	default:
		return false
	}
}

// send posts once and keeps what is to be kept. A broken connection ends the client: nothing may
// break here.
func (w *worker) send(key, description string, amount int64) (answer, bool) {
	began := time.Now()
	a, err := w.conn.post(key, description, amount)
	if err != nil {
		w.wrong["connection: "+err.Error()]++
		return a, false
	}
	now := time.Now()
	w.samples = append(w.samples, sample{now.Sub(w.start), now.Sub(began)})
	w.statuses[fmt.Sprint(a.status)]++
	return a, true
}

// charge makes new charges.
func (w *worker) charge() {
	for i := 0; !w.stopped(); i++ {
		a, ok := w.send(fmt.Sprintf("%s-%05d-%08d", w.d.run, w.n, i), sampleDescription,
			int64(100+i%9000))
		if !ok {
			return
		}
		if a.status == 201 && !a.replayed {
			w.charges++
			continue
		}
		w.unexpected(a)
	}
}

// unexpected counts an answer that should not be, and pauses: a server that refuses at once must
// not be hammered.
func (w *worker) unexpected(a answer) {
	kind := fmt.Sprint(a.status)
	if a.replayed {
		kind += " replayed"
	}
	w.wrong[kind]++
	time.Sleep(10 * time.Millisecond)
}

// finishKeys makes the charges that are replayed afterwards.
func (w *worker) finishKeys() error {
	w.start = time.Now()
	for i := range w.d.keys {
		a, err := w.conn.post(w.replayKey(i), "to be replayed", 4200)
		if err != nil {
			return err
		}
		if a.status != 201 {
			return fmt.Errorf("a charge to be replayed was answered with %d", a.status)
		}
		w.charges++
	}
	return nil
}

func (w *worker) replayKey(i int) string { return fmt.Sprintf("%s-replay-%08d", w.d.run, i) }

// replay asks again for finished keys, each client in its own order.
func (w *worker) replay() {
	for i := w.n * 7; !w.stopped(); i++ {
		a, ok := w.send(w.replayKey(i%w.d.keys), "to be replayed", 4200)
		if !ok {
			return
		}
		if a.status != 201 || !a.replayed {
			w.unexpected(a)
		}
	}
}

// storm asks for one and the same key at fixed times, whatever was answered. The provider takes
// long for it, so at first the answer is 409, later the stored one.
func (w *worker) storm() {
	next := w.start.Add(w.d.every * time.Duration(w.n) / time.Duration(w.d.clients))
	for !w.stopped() {
		sleep(time.Until(next), w.stop)
		next = next.Add(w.d.every)
		a, ok := w.send(w.d.run+"-storm", "storm "+delayMark+w.d.hold.String(), 4200)
		if !ok {
			return
		}
		switch {
		case a.status == 201 && !a.replayed:
			w.charges++
		case a.status != 201 && a.status != 409:
			w.unexpected(a)
		}
	}
}
