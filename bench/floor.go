package main

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// runFloor measures pgbench. It runs for the warm-up, the window and a little more; its log of
// every transaction says afterwards which ended in the window, and how long each took.
func (b *bench) runFloor(ctx context.Context, c cell, name string) (r result, err error) {
	r.cell = c
	prefix := b.file(name + "-pgbench")
	// whole ones, rounded up
	seconds := int((b.cfg.Warmup + b.cfg.Measure + time.Second + time.Second/2) / time.Second)
	bench, err := startChild("pgbench", nil, b.log, b.pgbench,
		b.floorArgs(c, name, prefix, seconds)...)
	if err != nil {
		return r, err
	}
	defer bench.stop()
	bench.drain()
	select {
	case <-time.After(b.cfg.Warmup):
	case <-bench.ended:
		return r, fmt.Errorf("pgbench ended early: %w; see %s", bench.err, b.log.Name())
	}
	end := make(chan error, 1)
	began := time.Now()
	time.AfterFunc(b.cfg.Measure, func() { end <- nil })
	from, to, err := b.window(ctx, name, parties{driver: bench.pid()}, &r, end)
	ended := time.Now()
	if err != nil {
		return r, err
	}
	if err := bench.wait(ctx); err != nil {
		return r, err
	}
	total, samples, err := readPgbenchLog(prefix, began)
	if err != nil {
		return r, err
	}
	l := summarize(samples, 0, ended.Sub(began))
	if l.Count == 0 {
		return r, errors.New("pgbench committed nothing in the measured time")
	}
	r.Requests, r.PerSecond = l.Count, float64(l.Count)/ended.Sub(began).Seconds()
	r.P50, r.P99, r.Max = ms(l.P50), ms(l.P99), ms(l.Max)
	r.fill(from, to)
	r.Charges = total
	rows, err := b.count(ctx, c, name, &r)
	if err == nil && rows != total {
		err = fmt.Errorf("pgbench tells of %d charges, %d are stored", total, rows)
	}
	return r, err
}

func (b *bench) floorArgs(c cell, name, prefix string, seconds int) []string {
	args := []string{"--no-vacuum", "--protocol=prepared",
		"--file=" + b.file(c.System.shape().script()), "--time=" + fmt.Sprint(seconds),
		"--client=" + fmt.Sprint(c.Clients),
		"--jobs=" + fmt.Sprint(min(c.Clients, runtime.NumCPU())),
		"--log", "--log-prefix=" + prefix, "--define=n=0"}
	for k, v := range sampleRow(b.pg.owner) {
		text := fmt.Sprint(v)
		if bytes, ok := v.([]byte); ok {
			text = `\x` + hex.EncodeToString(bytes)
		}
		args = append(args, "--define="+k+"="+text)
	}
	return append(args, b.pg.server.URL(name))
}

// readPgbenchLog returns how many transactions there were, and each one's end (counted from began)
// and duration. A line is client, number, duration in µs, script, seconds and µs of the end.
func readPgbenchLog(prefix string, began time.Time) (total int64, samples []sample, err error) {
	files, err := filepath.Glob(prefix + ".*")
	if err != nil {
		return 0, nil, err
	}
	for _, name := range files {
		f, err := os.Open(name) //nolint:gosec // in our own folder
		if err != nil {
			return 0, nil, err
		}
		lines := bufio.NewScanner(f)
		for lines.Scan() {
			w := strings.Fields(lines.Text())
			if len(w) < 6 {
				continue
			}
			took, err1 := strconv.ParseInt(w[2], 10, 64)
			sec, err2 := strconv.ParseInt(w[4], 10, 64)
			us, err3 := strconv.ParseInt(w[5], 10, 64)
			if err := errors.Join(err1, err2, err3); err != nil {
				_ = f.Close()
				return 0, nil, fmt.Errorf("pgbench's log says %q: %w", lines.Text(), err)
			}
			total++
			samples = append(samples,
				sample{time.Unix(sec, us*1000).Sub(began), time.Duration(took) * time.Microsecond})
		}
		err = errors.Join(lines.Err(), f.Close(), os.Remove(name))
		if err != nil {
			return 0, nil, err
		}
	}
	return total, samples, nil
}
