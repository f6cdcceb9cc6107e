package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"
)

// --sweep measures the same 32 clients on a table without old keys ("empty"), on one with N expired
// keys that nobody touches ("full"), and on that one while `paidonce sweep` deletes them ("sweep").

const (
	sweepClients = 32
	// spared is how many keys of each kind that must not be swept are among them: finished but not
	// expired, and unfinished.
	spared = 1000
	// fullDB is templateDB with the keys. It is filled once and copied for each cell, so that all
	// of them begin alike.
	fullDB = "bench_template_full"
	// sweepLead is how long before the window the sweep is started, so that it runs during all of
	// it.
	sweepLead = 300 * time.Millisecond
)

func sweepCell(kind string, round int) cell {
	return cell{System: Product, Kind: kind, Clients: sweepClients, Round: round}
}

// sweeps reports whether a cell is one of --sweep.
func (c cell) sweeps() bool { return c.Kind == "empty" || c.Kind == "full" || c.Kind == "sweep" }

// fillKeys writes finished keys as charges leave them, and those that are to be spared. The first
// five characters of a key tell them apart. The resource's id begins as that of all rows that are
// there beforehand.
const fillKeys = `
INSERT INTO idempotency_keys (account_id, key, operation_id, kind, hash_version, request_hash, request_id, params, resource_id,
    status, recovery_point, lease_token, locked_at, first_attempt_at, last_attempt_at,
    response_code, response_headers, response_body, created_at, finished_at, expires_at)
SELECT $1::text, x.class || md5(i::text), 'op_' || x.id, 'charge.create', 1, sha256(i::text::bytea), 'req_' || x.id, $2::bytea, 'ch_' || x.id,
    x.status, CASE WHEN x.done THEN 'finished' ELSE 'started' END,
    CASE WHEN NOT x.done THEN 'lease-' || x.id END, CASE WHEN NOT x.done THEN x.born END, x.born, x.born,
    CASE x.status WHEN 'completed' THEN 201 WHEN 'failed' THEN 503 END,
    CASE WHEN x.done THEN $3::bytea END, CASE WHEN x.done THEN $4::bytea END,
    x.born, CASE WHEN x.done THEN x.born + interval '300 ms' END, CASE WHEN x.done THEN x.born + interval '24 hours 300 ms' END
FROM generate_series(1, $5::bigint + 2 * $6::bigint) i
CROSS JOIN LATERAL (SELECT
    CASE WHEN i <= $5::bigint THEN 'gone-' WHEN i <= $5::bigint + $6::bigint THEN 'kept-' ELSE 'open-' END AS class,
    CASE WHEN i > $5::bigint + $6::bigint THEN 'in_progress' WHEN i % 50 = 0 THEN 'failed' ELSE 'completed' END AS status,
    i <= $5::bigint + $6::bigint AS done,
    $7::text || lpad(i::text, 22, '0') AS id,
    CASE WHEN i <= $5::bigint OR i > $5::bigint + $6::bigint -- a day's keys, the last of them expired an hour ago
        THEN statement_timestamp() - interval '25 hours' - greatest($5::bigint - i, 0) * (interval '24 hours' / $5::bigint)
        ELSE statement_timestamp() END AS born) x`

// prepareFull makes fullDB.
func (p *postgres) prepareFull(ctx context.Context, n int) error {
	if _, err := p.admin.Exec(ctx, "CREATE DATABASE "+fullDB+" TEMPLATE "+templateDB); err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, p.server.URL(fullDB))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	v := sampleRow(p.owner)
	if _, err := conn.Exec(ctx, fillKeys, p.owner.Account, v["params"], v["headers"], v["body"], n,
		spared, filledMark); err != nil {
		return fmt.Errorf("fill idempotency_keys: %w", err)
	}
	_, err = conn.Exec(ctx, "VACUUM ANALYZE")
	return err
}

// freshFiles copies a template file by file, for all cells of --sweep alike. Copying through the
// log would be an unfair start for either table, since pages that were logged as a whole need not
// be logged again.
func (p *postgres) freshFiles(ctx context.Context, c cell, name string) (url string, err error) {
	how := "CREATE DATABASE " + name + " TEMPLATE " + fullDB
	if c.Kind == "empty" {
		how = "CREATE DATABASE " + name + " TEMPLATE " + templateDB
	}
	var version int
	if err := p.admin.QueryRow(ctx,
		"SELECT current_setting('server_version_num')::int").Scan(&version); err != nil {
		return "", err
	}
	if version >= 15_00_00 { // before, there was no other way
		how += " STRATEGY FILE_COPY"
	}
	for _, q := range []string{"DROP DATABASE IF EXISTS " + name + " WITH (FORCE)", how,
		"CHECKPOINT"} {
		if _, err := p.admin.Exec(ctx, q); err != nil {
			return "", err
		}
	}
	return p.server.URL(name), nil
}

// swept is what a sweep did.
type swept struct {
	Keys int64 `json:"keys"`
	// of the whole sweep, the program's start and end included
	Seconds     float64 `json:"seconds"`
	LoadKeys    int64   `json:"load_keys"`    // of these, while charges were made
	LoadSeconds float64 `json:"load_seconds"` // how long that was
}

func (s swept) perSecond() float64     { return float64(s.Keys) / max(s.Seconds, 0.001) }
func (s swept) loadPerSecond() float64 { return float64(s.LoadKeys) / max(s.LoadSeconds, 0.001) }

// broom is a `paidonce sweep` that runs during a cell.
type broom struct {
	b       *bench
	name    string // of the database
	stop    context.CancelFunc
	started chan struct{}
	began   time.Time // read after started is closed
	ended   chan struct{}
	took    time.Duration // read after ended is closed, as are the two that follow
	keys    int64
	err     error
	// Up to the end of the driver's window:
	sharedTime time.Duration
	sharedKeys int64
}

// sweepBeside starts a sweep shortly before the driver's window. When the sweep ends first, the
// window ends, too: only charges during the sweep count. It returns nil in cells without a sweep.
func (b *bench) sweepBeside(ctx context.Context, c cell, name string, driver *child) *broom {
	if c.Kind != "sweep" {
		return nil
	}
	ctx, stop := context.WithCancel(ctx)
	s := &broom{
		b: b, name: name, stop: stop, started: make(chan struct{}), ended: make(chan struct{}),
	}
	go func() {
		defer close(s.ended)
		sleep(b.cfg.Warmup-sweepLead, ctx.Done())
		s.began = time.Now()
		close(s.started)
		var out []byte
		if out, s.err = runProduct(ctx, b.pg.server.URL(name), b.binary, "sweep", "--json"); s.err == nil {
			s.err = s.read(out)
		}
		s.took = time.Since(s.began)
		_ = driver.stdin.Close() // the driver ends its window when we seem to be gone
	}()
	return s
}

func (s *broom) read(out []byte) error {
	var said struct {
		Swept int64 `json:"swept"`
	}
	if err := json.Unmarshal(out, &said); err != nil {
		return fmt.Errorf("sweep --json said %q: %w", out, err)
	}
	s.keys = said.Swept
	return nil
}

// windowEnded looks how far the sweep has come.
func (s *broom) windowEnded(ctx context.Context) error {
	if s == nil {
		return nil
	}
	select {
	case <-s.ended:
		s.sharedTime, s.sharedKeys = s.took, s.keys
		return s.err
	default:
	}
	<-s.started
	s.sharedTime = time.Since(s.began)
	left, err := s.b.pg.keyClasses(ctx, s.name)
	s.sharedKeys = int64(s.b.cfg.Sweep) - left.gone
	return err
}

// finish waits for the sweep's end.
func (s *broom) finish(r *result) error {
	if s == nil {
		return nil
	}
	<-s.ended // its context bounds it
	r.Sweep = &swept{
		Keys: s.keys, Seconds: s.took.Seconds(), LoadKeys: s.sharedKeys,
		LoadSeconds: s.sharedTime.Seconds(),
	}
	return s.err
}

// drop stops a sweep whose result is not needed any more.
func (s *broom) drop() {
	if s != nil {
		s.stop()
		<-s.ended
	}
}

// keyClasses counts keys by their state.
type keyClasses struct {
	gone      int64 // expired, the sweep's
	kept      int64 // finished and not expired
	open      int64 // unfinished
	preloaded int64
	expired   int64 // by their column, whatever they are called
	all       int64
}

func (p *postgres) keyClasses(ctx context.Context, name string) (k keyClasses, err error) {
	conn, err := pgx.Connect(ctx, p.server.URL(name))
	if err != nil {
		return k, err
	}
	defer func() { _ = conn.Close(ctx) }()
	err = conn.QueryRow(ctx, `SELECT count(*) FILTER (WHERE left(key, 5) = 'gone-'),
			count(*) FILTER (WHERE left(key, 5) = 'kept-' AND status <> 'in_progress' AND expires_at > now()),
			count(*) FILTER (WHERE left(key, 5) = 'open-' AND status = 'in_progress' AND expires_at IS NULL),
			count(*) FILTER (WHERE left(key, 7) = 'filled-' AND status = 'completed'),
			count(*) FILTER (WHERE expires_at <= now()), count(*)
		FROM idempotency_keys`).Scan(&k.gone, &k.kept, &k.open, &k.preloaded, &k.expired, &k.all)
	return k, err
}

// auditKeys checks, in the cells of --sweep, that exactly those keys are there that should be: all
// but the charges' own are known by name, and of these as many as were answered.
func (b *bench) auditKeys(ctx context.Context, c cell, name string, r result) error {
	if !c.sweeps() {
		return nil
	}
	got, err := b.pg.keyClasses(ctx, name)
	if err != nil {
		return err
	}
	want := keyClasses{preloaded: int64(b.cfg.Preload)}
	if c.Kind != "empty" {
		want.kept, want.open = spared, spared
	}
	if c.Kind == "full" {
		want.gone, want.expired = int64(b.cfg.Sweep), int64(b.cfg.Sweep)
	}
	want.all = want.gone + want.kept + want.open + want.preloaded + r.Charges
	if got != want {
		return fmt.Errorf("keys in the table afterwards: %+v, should be %+v", got, want)
	}
	if r.Sweep != nil && r.Sweep.Keys != int64(b.cfg.Sweep) {
		return fmt.Errorf("the sweep says it deleted %d keys, of %d that had expired", r.Sweep.Keys,
			b.cfg.Sweep)
	}
	return nil
}

func (r *report) sweepGoals() []goal {
	n := r.sweep
	if n == 0 {
		n = 1_000_000 // not measured; the goal is about so many
	}
	return []goal{
		r.pairGoal(fmt.Sprintf("charges/s of 32 clients while %d expired keys are swept to those "+
			"without a sweep", n), 0.85,
			sweepCell("sweep", 0), sweepCell("full", 0)),
		r.pairGoal(fmt.Sprintf("charges/s of 32 clients with %d finished keys in the table to "+
			"those without", n), 0.9,
			sweepCell("full", 0), sweepCell("empty", 0)),
	}
}

// medianSweep returns the median of a cell's sweeps, for each figure by itself.
func medianSweep(rounds map[int]result) *swept {
	var keys, seconds, loadKeys, loadSeconds []float64
	for _, x := range rounds {
		if x.Sweep != nil {
			keys, seconds = append(keys, float64(x.Sweep.Keys)), append(seconds, x.Sweep.Seconds)
			loadKeys, loadSeconds = append(loadKeys, float64(x.Sweep.LoadKeys)),
				append(loadSeconds, x.Sweep.LoadSeconds)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	return &swept{
		Keys: int64(middle(keys)), Seconds: middle(seconds), LoadKeys: int64(middle(loadKeys)),
		LoadSeconds: middle(loadSeconds),
	}
}

func (r *report) printSweep(w io.Writer) {
	if r.sweep == 0 {
		return
	}
	v := sampleRow(owner{})
	params, _ := v["params"].([]byte)
	answer, _ := v["body"].([]byte)
	put(w, "\nCharges without old keys (empty); with %d expired keys of %d + %d bytes in the "+
		"table (full); while they are swept (sweep)\n",
		r.sweep, len(params), len(answer))
	r.printCells(w, func(x result) bool { return x.sweeps() })
	for _, pair := range [][2]string{{"sweep", "full"}, {"full", "empty"}} {
		if x, ok := r.paired(sweepCell(pair[0], 0), sweepCell(pair[1], 0), perSecond); ok {
			put(w, "%s/%s charges/s: %.2f (%.2f-%.2f)\n", pair[0], pair[1], x.Median, x.Least,
				x.Most)
		}
	}
	for _, x := range r.Medians {
		if s := x.Sweep; s != nil {
			put(w, "the sweep: %d keys in %.1f s, %.0f keys/s; of these %d in the %.1f s in "+
				"which charges were made, %.0f keys/s\n",
				s.Keys, s.Seconds, s.perSecond(), s.LoadKeys, s.LoadSeconds, s.loadPerSecond())
		}
	}
}
