package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of CPU times in /proc: 1/100 s on every Linux that Go runs on.
const tick = 10 * time.Millisecond

// stat is what we read of /proc/PID/stat.
type stat struct {
	ppid          int
	own, ofWaited time.Duration // CPU; ofWaited is that of children that ended and were waited for
}

// readStat returns false where there is no /proc (macOS): CPU columns are empty then.
func readStat(pid int) (s stat, ok bool) {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return s, false
	}
	// The name in brackets may hold blanks; the fields after it are counted from the state, which
	// is the third.
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(f) < 15 {
		return s, false
	}
	n := func(i int) time.Duration {
		v, _ := strconv.ParseInt(f[i-3], 10, 64) // numbered as in proc(5)
		return time.Duration(v) * tick
	}
	s.ppid, _ = strconv.Atoi(f[1])
	s.own, s.ofWaited = n(14)+n(15), n(16)+n(17)
	return s, true
}

// cpuOf returns the CPU time of a process so far.
func cpuOf(pid int) time.Duration {
	if pid == 0 {
		return 0
	}
	s, _ := readStat(pid)
	return s.own
}

// cpuOfFamily returns the CPU time of a process and its children, including those that have ended:
// for PostgreSQL, of the server process and all its workers and backends.
func cpuOfFamily(pid int) time.Duration {
	s, ok := readStat(pid)
	if !ok {
		return 0
	}
	sum := s.own + s.ofWaited
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		p, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if c, ok := readStat(p); ok && c.ppid == pid {
			sum += c.own
		}
	}
	return sum
}

// memory returns a figure of /proc/PID/status in bytes: VmHWM, the most that was resident, or
// VmRSS.
func memory(pid int, name string) int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, name+":"); ok {
			kb, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(v), " kB"), 10, 64)
			return kb * 1024
		}
	}
	return 0
}
