package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// cell is one measurement.
type cell struct {
	System System `json:"system"`
	// charges, replay, storm, calm (what the storm is compared with), inflight, and those of
	// intents.go, sweep.go, backlog.go and extras.go
	Kind    string        `json:"kind"`
	Clients int           `json:"clients"`
	Delay   time.Duration `json:"delay_ns"`
	Round   int           `json:"round"`
}

func (c cell) String() string {
	return fmt.Sprintf("round %d  %-8s %s  %4d clients  provider %4d ms", c.Round+1, c.Kind,
		c.System, c.Clients, c.Delay.Milliseconds())
}

// result is a cell's figures. CPU is in µs a request, by process.
type result struct {
	cell
	Requests    int     `json:"requests"`
	PerSecond   float64 `json:"per_second"`
	P50         float64 `json:"p50_ms"`
	P99         float64 `json:"p99_ms"`
	Max         float64 `json:"max_ms"`
	CPUServer   float64 `json:"cpu_server_us"`
	CPUPostgres float64 `json:"cpu_postgres_us"`
	CPUStub     float64 `json:"cpu_stub_us"`
	CPUDriver   float64 `json:"cpu_driver_us"` // of F: pgbench
	WAL         float64 `json:"wal_bytes"`     // a request
	Commits     float64 `json:"commits"`       // a request, of transactions that wrote
	Calls       float64 `json:"calls"`         // of the provider for a charge or an intent
	Connections int     `json:"connections"`   // the most that were seen
	IdleInTx    int     `json:"idle_in_transaction"`
	PeakMemory  int64   `json:"server_peak_bytes"`
	InFlight    int64   `json:"most_in_flight"` // at a provider that takes its time
	// All charges, with those of the warm-up. They are checked against three counts.
	Charges int64   `json:"charges"`
	Params  float64 `json:"stored_params_bytes"`
	Answer  float64 `json:"stored_answer_bytes"`
	Event   float64 `json:"stored_event_bytes"`
	Sweep   *swept  `json:"sweep,omitempty"`
}

func (r result) cpu() float64 { return r.CPUServer + r.CPUPostgres + r.CPUStub + r.CPUDriver }

func (r result) String() string {
	return fmt.Sprintf("%7.0f/s  p50 %7.2f ms  p99 %7.2f ms  cpu %5.0f µs  wal %5.0f B  conns %d",
		r.PerSecond, r.P50, r.P99, r.cpu(), r.WAL, r.Connections)
}

// parties are the processes of a cell; 0 where there is none.
type parties struct {
	servers      []int
	stub, driver int
}

// meters has the figures that are read at both ends of the window.
type meters struct {
	server, postgres, stub, driver time.Duration
	wal, transactions              int64
}

func (b *bench) readMeters(ctx context.Context, p parties) (m meters, err error) {
	m.wal, m.transactions, err = b.pg.written(ctx)
	m.stub, m.driver, m.postgres = cpuOf(p.stub), cpuOf(p.driver), cpuOfFamily(b.pg.pid)
	for _, pid := range p.servers {
		m.server += cpuOf(pid)
	}
	return m, err
}

// fill sets the result from the differences of two readings.
func (r *result) fill(from, to meters) {
	n := float64(max(r.Requests, 1))
	each := func(a, b time.Duration) float64 { return float64((b - a).Microseconds()) / n }
	r.CPUServer, r.CPUPostgres = each(from.server, to.server), each(from.postgres, to.postgres)
	r.CPUStub, r.CPUDriver = each(from.stub, to.stub), each(from.driver, to.driver)
	r.WAL = float64(to.wal-from.wal) / n
	r.Commits = float64(to.transactions-from.transactions) / n
}

// window reads the meters when begin and end say so, and counts the connections in between.
func (b *bench) window(
	ctx context.Context, name string, p parties, r *result, end <-chan error,
) (from, to meters, err error) {
	if from, err = b.readMeters(ctx, p); err != nil {
		return from, to, err
	}
	look := time.NewTicker(250 * time.Millisecond)
	defer look.Stop()
	for {
		all, idle, err := b.pg.connections(ctx, name)
		if err != nil {
			return from, to, err
		}
		r.Connections, r.IdleInTx = max(r.Connections, all), max(r.IdleInTx, idle)
		select {
		case err := <-end:
			if err != nil {
				return from, to, err
			}
			to, err = b.readMeters(ctx, p)
			return from, to, err
		case <-look.C:
		}
	}
}

// stage is a stub with the server or servers that run for one cell.
type stage struct {
	stub     *child
	servers  []*child
	provider string   // the stub's URL
	targets  []string // the servers' host:port
}

func (s *stage) pids() (pids []int) {
	for _, c := range s.servers {
		pids = append(pids, c.pid())
	}
	return pids
}

func (b *bench) runServer(ctx context.Context, c cell, name, url string) (result, error) {
	s, err := b.raise(ctx, c, url)
	defer s.strike()
	if err != nil {
		return result{}, err
	}
	r, charges, err := b.load(ctx, c, name, s)
	if err != nil {
		return r, err
	}
	for _, pid := range s.pids() {
		r.PeakMemory += memory(pid, "VmHWM")
	}
	stats, err := readStubStats(ctx, s.provider)
	if err != nil {
		return r, err
	}
	for _, server := range s.servers { // nothing may be running when the rows are counted
		server.stop()
	}
	r.Charges, r.InFlight = int64(charges), stats.MostInFlight
	rows, err := b.count(ctx, c, name, &r)
	if err != nil {
		return r, err
	}
	r.Calls = float64(stats.Calls) / float64(max(charges, 1))
	if err := audit(rows, r.Charges, r.Charges*c.posts(), stats); err != nil {
		return r, err
	}
	return r, b.auditKeys(ctx, c, name, r)
}

// count reads what the cell left behind.
func (b *bench) count(ctx context.Context, c cell, name string, r *result) (int64, error) {
	s, err := b.pg.stored(ctx, c, name)
	r.Params, r.Answer, r.Event = s.params, s.answer, s.event
	return s.charges, err
}

// audit checks what the product is for, and B is not excused from it: there are as many charges as
// were answered with 201 and as the provider was asked for, each once; for an intent, it is asked
// twice.
func audit(rows, answered, posts int64, stats stubStats) error {
	if rows != answered || stats.Keys != posts || stats.Posts != posts {
		return fmt.Errorf("%d charges were answered with 201, %d are stored, the provider was "+
			"asked %d times with %d keys",
			answered, rows, stats.Posts, stats.Keys)
	}
	return nil
}

// raise starts the stub and the servers.
func (b *bench) raise(ctx context.Context, c cell, url string) (s *stage, err error) {
	s = &stage{}
	if s.stub, err = startChild("the stub", nil, b.log, b.self, "stub",
		"--delay", c.Delay.String()); err != nil {
		return s, err
	}
	addr, err := s.stub.address()
	if err != nil {
		return s, err
	}
	s.provider = "http://" + addr
	if c.System == Bare || c.System == LeanBare {
		server, err := startChild("the bare server", []string{"DATABASE_URL=" + url}, b.log, b.self,
			"bare", "--provider", s.provider, "--pool", fmt.Sprint(b.cfg.Pool),
			"--lean="+fmt.Sprint(c.System == LeanBare))
		if err != nil {
			return s, err
		}
		s.servers = append(s.servers, server)
		addr, err := server.address()
		s.targets = append(s.targets, addr)
		return s, err
	}
	n := 1
	if c.Kind == "servers" {
		n = b.cfg.Servers
	}
	for range n {
		if err := b.raiseProduct(ctx, b.binaryOf(c), s, url); err != nil {
			return s, err
		}
	}
	return s, nil
}

func (b *bench) raiseProduct(ctx context.Context, binary string, s *stage, url string) error {
	l, err := listenOn(ctx, "127.0.0.1:0") // to find a free port
	if err != nil {
		return err
	}
	target := l.Addr().String()
	if err := l.Close(); err != nil {
		return err
	}
	log, err := os.OpenFile(b.file("paidonce.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the child has its own
	server, err := startChild("paidonce serve", []string{
		"DATABASE_URL=" + url, "STRIPE_API_KEY=sk_test_x", "STRIPE_API_BASE=" + s.provider,
		"PAIDONCE_LISTEN=" + target,
		"PAIDONCE_LOG_FORMAT=json", fmt.Sprintf("PAIDONCE_DB_MAX_CONNS=%d", b.cfg.Pool),
	}, log, binary, "serve")
	if err != nil {
		return err
	}
	s.servers, s.targets = append(s.servers, server), append(s.targets, target)
	server.drain()
	return server.ready(ctx, "http://"+target+"/readyz")
}

func (s *stage) strike() {
	for _, server := range s.servers {
		server.stop()
	}
	s.stub.stop()
}

// load drives a cell and returns its figures and the number of charges.
func (b *bench) load(
	ctx context.Context, c cell, name string, s *stage,
) (r result, charges int, err error) {
	r.cell = c
	storm, err := b.brew(c, s)
	if err != nil {
		return r, 0, err
	}
	defer storm.stop()
	driver, err := b.startDriver(c.Kind, c.Clients, c.Kind, strings.Join(s.targets, ","))
	if err != nil {
		return r, 0, err
	}
	defer driver.stop()
	sweep := b.sweepBeside(ctx, c, name, driver)
	defer sweep.drop()
	if err := driver.expect("measure"); err != nil {
		return r, 0, err
	}
	end := make(chan error, 1)
	go func() { end <- driver.expect("measured") }()
	from, to, err := b.window(ctx, name, parties{s.pids(), s.stub.pid(), driver.pid()}, &r, end)
	if err != nil {
		return r, 0, err
	}
	if err := sweep.windowEnded(ctx); err != nil {
		return r, 0, err
	}
	d, err := driver.outcome(ctx)
	if err != nil {
		return r, 0, err
	}
	r.Requests, r.PerSecond = d.Requests, float64(d.Requests)/d.Window.Seconds()
	r.P50, r.P99, r.Max = ms(d.P50), ms(d.P99), ms(d.Max)
	r.fill(from, to)
	charges = d.Charges
	if storm != nil {
		sd, err := storm.weathered(ctx)
		if err != nil {
			return r, 0, err
		}
		charges += sd.Charges
	}
	if err := sweep.finish(&r); err != nil {
		return r, 0, err
	}
	if r.Requests == 0 {
		return r, charges, errors.New("nothing was answered in the measured time")
	}
	return r, charges, nil
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// startDriver starts the load. run keeps its keys apart from those of other drivers.
func (b *bench) startDriver(kind string, clients int, run, target string) (*child, error) {
	mode := "charge"
	switch kind {
	case "replay":
		mode = "replay"
	case "storm-driver":
		mode = "storm"
	case "reference", "intent":
		mode = kind
	}
	measure := b.cfg.Measure
	if kind == "inflight" {
		measure = max(measure, inFlightMeasure)
	}
	return startChild("the driver", nil, b.log, b.self, "drive", "--mode", mode, "--target", target,
		"--api-key", b.pg.apiKey,
		"--run", fmt.Sprintf("%d-%s", b.cells, run), "--clients", fmt.Sprint(clients),
		"--warmup", b.cfg.Warmup.String(), "--measure", measure.String(),
		"--every", b.cfg.StormEvery.String(), "--hold", stormHold(b.cfg).String())
}

// expect reads a line that must come next.
func (c *child) expect(want string) error {
	got, err := c.line()
	if err == nil && got != want {
		err = fmt.Errorf("%s said %q instead of %q", c.name, got, want)
	}
	return err
}

// outcome reads the driver's last line and waits for its end. Wrong answers are an error.
func (c *child) outcome(ctx context.Context) (d driven, err error) {
	line, err := c.line()
	if err != nil {
		return d, err
	}
	if err := decodeLine(line, &d); err != nil {
		return d, err
	}
	if len(d.Wrong) > 0 {
		return d, fmt.Errorf("wrong answers: %v (of all: %v)", d.Wrong, d.Statuses)
	}
	return d, c.wait(ctx)
}
