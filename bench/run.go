package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

// bench is one run.
type bench struct {
	cfg     config
	self    string // this program, to start its parts
	binary  string // the product
	before  string // an older one
	pgbench string
	dir     string
	log     *os.File // what parts say on standard error
	pg      *postgres
	cells   int
	report  report
}

// run starts one private PostgreSQL and measures in rounds. A round measures every cell once, and
// the systems of one cell one after the other, so that whatever drifts (other work on the machine,
// a disk that gets slower) affects all of them. The order of the systems changes from round to
// round.
func run(ctx context.Context, cfg config) (err error) {
	b := &bench{cfg: cfg}
	defer func() { err = errors.Join(err, b.tearDown()) }() //nolint:contextcheck // also when ctx has ended
	if err := b.setUp(ctx); err != nil {
		return err
	}
	for round := range cfg.Rounds {
		for _, n := range cfg.Clients {
			for _, s := range rotated(cfg.Systems, round) {
				if err := b.measure(ctx,
					cell{System: s, Kind: "charges", Clients: n, Round: round}); err != nil {
					return err
				}
			}
		}
		for _, n := range cfg.SlowClients {
			for _, s := range rotated(cfg.Systems, round) {
				if s.floor() {
					continue // it has no provider to wait for
				}
				if err := b.measure(ctx, cell{System: s, Kind: "charges", Clients: n,
					Delay: cfg.SlowDelay, Round: round}); err != nil {
					return err
				}
			}
		}
		if err := b.extras(ctx, round); err != nil {
			return err
		}
	}
	b.report.finish()
	b.report.print(os.Stdout)
	if cfg.JSON != "" {
		if err := b.report.write(cfg.JSON); err != nil {
			return err
		}
	}
	return b.report.failure()
}

func rotated[T any](list []T, by int) []T {
	by %= len(list)
	return append(append([]T{}, list[by:]...), list[:by]...)
}

// progress reports what the run is doing, for whoever watches.
func (b *bench) progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format("15:04:05  ")+format+"\n", args...)
}

func (b *bench) setUp(ctx context.Context) (err error) {
	if b.self, err = os.Executable(); err != nil {
		return err
	}
	if err := b.makeDir(); err != nil {
		return err
	}
	if slices.ContainsFunc(b.cfg.Systems, System.floor) {
		if b.pgbench, err = findPgbench(ctx); err != nil {
			return err
		}
		for _, s := range []*shape{&ours, &lean} {
			if err := os.WriteFile(b.file(s.script()), []byte(pgbenchScript(s)), 0o600); err != nil {
				return err
			}
		}
	}
	if b.cfg.has(Product) {
		if err := b.buildProduct(ctx); err != nil {
			return err
		}
	}
	b.progress("starting PostgreSQL, filling a database")
	var said io.Writer = b.log
	if b.cfg.Verbose {
		said = os.Stderr
	}
	if b.pg, err = startPostgres(ctx, b.file("postgres"), said); err != nil {
		return err
	}
	// of 16 MiB: what a cell of a fast machine writes
	if err := b.pg.delayCommits(ctx, b.cfg.CommitDelay); err != nil {
		return err
	}
	walFiles := 3 + int(1.5*(b.cfg.Warmup+b.cfg.Measure).Seconds())
	if err := b.pg.prepareTemplate(ctx, b.binary, b.before, b.cfg.Preload, walFiles); err != nil {
		return err
	}
	if b.cfg.has(LeanFloor) || b.cfg.has(LeanBare) {
		if err := b.pg.prepareLean(ctx, b.cfg.Preload); err != nil {
			return err
		}
	}
	if b.cfg.Sweep > 0 {
		b.progress("filling another with %d expired keys", b.cfg.Sweep)
		if err := b.pg.prepareFull(ctx, b.cfg.Sweep); err != nil {
			return err
		}
	}
	settings, err := b.pg.settings(ctx)
	b.report.begin(b.cfg, b.pg.version, settings)
	return err
}

// makeDir creates the folder of the run. It is not in the system's folder for temporary files,
// which is often memory, where fsync costs nothing.
func (b *bench) makeDir() (err error) {
	if b.dir = b.cfg.Dir; b.dir != "" {
		err = os.MkdirAll(b.dir, 0o755) //nolint:gosec // PostgreSQL's user has to get in
	} else {
		parent := "/var/tmp"
		if _, statErr := os.Stat(parent); statErr != nil {
			parent = ""
		}
		b.dir, err = os.MkdirTemp(parent, "paidonce-bench-")
		if err == nil {
			err = os.Chmod(b.dir, 0o755) //nolint:gosec // PostgreSQL's user has to get in
		}
	}
	if err != nil {
		return err
	}
	if b.dir, err = filepath.Abs(b.dir); err != nil {
		return err
	}
	b.log, err = os.Create(b.file("log.txt"))
	return err
}

func (b *bench) file(name string) string { return filepath.Join(b.dir, name) }

func (b *bench) buildProduct(ctx context.Context) (err error) {
	if b.cfg.Before != "" {
		if b.before, err = filepath.Abs(b.cfg.Before); err != nil {
			return err
		}
	}
	if b.cfg.Binary != "" {
		b.binary, err = filepath.Abs(b.cfg.Binary)
		return err
	}
	b.progress("building ./cmd/paidonce")
	b.binary = b.file("paidonce")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", b.binary, "./cmd/paidonce") //nolint:gosec // fixed arguments
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go build ./cmd/paidonce: %w (run it in the repository's root, or use "+
			"--systems F,B)", err)
	}
	return nil
}

// tearDown stops PostgreSQL and removes the folder, unless it is to be kept or something failed in
// it.
func (b *bench) tearDown() error {
	b.pg.stop()
	if b.log != nil {
		_ = b.log.Close()
	}
	if b.dir == "" || b.cfg.Dir != "" {
		return nil
	}
	if len(b.report.Faults) > 0 {
		b.progress("kept for the curious: %s", b.dir)
		return nil
	}
	return os.RemoveAll(b.dir)
}

// measure runs one cell and keeps its result. A cell that fails is a fault of the run, reported at
// the end. An error is returned only if going on makes no sense.
func (b *bench) measure(ctx context.Context, c cell) error {
	r, err := b.runCell(ctx, c)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		b.report.fault(c, err)
		b.progress("%s  FAILED: %v", c, err)
		return nil
	}
	b.report.Cells = append(b.report.Cells, r)
	b.progress("%s  %s", c, r)
	return nil
}

func (b *bench) runCell(ctx context.Context, c cell) (result, error) {
	// Nothing below takes long: if something hangs, it is a fault.
	limit := b.cfg.Warmup + b.cfg.Measure + 3*time.Minute
	if c.sweeps() {
		limit += time.Duration(b.cfg.Sweep) * time.Millisecond
	}
	if c.backlogs() {
		limit += time.Duration(b.cfg.Backlog) * 10 * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	b.cells++
	name := fmt.Sprintf("bench_%d", b.cells)
	fresh := func() (string, error) { return b.pg.fresh(ctx, c.template(), name) }
	if c.sweeps() {
		fresh = func() (string, error) { return b.pg.freshFiles(ctx, c, name) }
	}
	url, err := fresh()
	if err != nil {
		return result{}, err
	}
	defer b.pg.drop(name) //nolint:contextcheck // also when ctx has ended
	if c.backlogs() {
		return b.runBacklog(ctx, c, name, url)
	}
	if c.System.floor() {
		return b.runFloor(ctx, c, name)
	}
	return b.runServer(ctx, c, name, url)
}
