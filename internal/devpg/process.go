//go:build linux || darwin

package devpg

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// pidFile is what PostgreSQL writes into postmaster.pid: process, data folder, start time, port, …,
// one a line.
type pidFile struct {
	pid, port int
}

func pidFilePath(data string) string { return filepath.Join(data, "postmaster.pid") }

// readPidFile returns what postmaster.pid says; ok is false when there is none or it is not whole
// yet.
func readPidFile(data string) (pf pidFile, ok bool) {
	text, err := os.ReadFile(pidFilePath(data))
	if err != nil {
		return pf, false
	}
	lines := strings.Split(string(text), "\n")
	const portLine = 3 // the fourth
	pf.pid, err = strconv.Atoi(strings.TrimSpace(lines[0]))
	if err != nil || pf.pid <= 1 {
		return pf, false
	}
	if len(lines) > portLine {
		pf.port, _ = strconv.Atoi(strings.TrimSpace(lines[portLine]))
	}
	return pf, true
}

// isPostmaster reports whether a process is the server of this very data folder. A process id alone
// proves nothing: after a crash, or in a restarted container, it may be anybody's, and pg_ctl would
// send its signals there.
func isPostmaster(pid int, data string) bool {
	args, err := arguments(pid)
	if err != nil || len(args) == 0 || !strings.HasPrefix(filepath.Base(args[0]), "postgres") {
		return false
	}
	i := slices.Index(args, "-D")
	return i >= 0 && i+1 < len(args) && args[i+1] == data
}

// exitTimeout is how long we wait for a process without a command line to be gone. An exiting
// process loses its command line a moment before it ends; a kernel thread never has one.
const exitTimeout = time.Second

// arguments returns the command line of a process. It is empty for one that is dead but not yet
// waited for.
func arguments(pid int) ([]string, error) {
	if runtime.GOOS == "linux" { // ps is not on every Linux
		for deadline := time.Now().Add(exitTimeout); ; time.Sleep(pollPause) {
			text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
			if err != nil || len(text) > 0 || gone(pid) || time.Now().After(deadline) {
				return strings.Split(strings.TrimRight(string(text), "\x00"), "\x00"), err
			}
		}
	}
	out, err := exec.CommandContext(context.Background(), "ps", "-ww", "-o", "command=",
		"-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return nil, err
	}
	// ps joins the arguments with blanks. Ours start with "postgres -D FOLDER -c", so the folder is
	// what comes between.
	line := strings.TrimSpace(string(out))
	program, rest, ok := strings.Cut(line, " -D ")
	if !ok {
		return []string{line}, nil
	}
	folder, _, _ := strings.Cut(rest, " -c ")
	return []string{program, "-D", folder}, nil
}

// gone reports whether no process of that id runs. One that only waits to be collected by its
// parent counts as gone.
func gone(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	if runtime.GOOS != "linux" {
		state, err := exec.CommandContext(context.Background(), "ps", "-o", "state=",
			"-p", strconv.Itoa(pid)).Output()
		return err != nil || strings.HasPrefix(strings.TrimSpace(string(state)), "Z")
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return true
	}
	_, after, _ := bytes.Cut(stat, []byte(") "))
	return bytes.HasPrefix(after, []byte("Z"))
}

// children lists the direct children of a process. Those of a server are its backends and helpers,
// each of which leads its own process group: a signal to the server's group would miss them.
func children(parent int) ([]int, error) {
	if runtime.GOOS != "linux" {
		out, err := exec.CommandContext(context.Background(), "ps", "-axo", "pid=,ppid=").Output()
		if err != nil {
			return nil, err
		}
		var pids []int
		for line := range strings.Lines(string(out)) {
			var pid, ppid int
			if _, err := fmt.Sscan(line, &pid, &ppid); err == nil && ppid == parent {
				pids = append(pids, pid)
			}
		}
		return pids, nil
	}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it ended meanwhile
		}
		var state string
		var ppid int
		_, after, _ := bytes.Cut(text, []byte(") "))
		if _, err := fmt.Sscan(string(after), &state, &ppid); err != nil || ppid != parent {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// killAll kills a server and all its processes at once, as a power cut would. It stops the server
// first, which could otherwise start a helper between the listing and the kill.
func killAll(pid int) error {
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return err
	}
	backends, err := children(pid)
	for _, p := range append(backends, pid) {
		_ = syscall.Kill(p, syscall.SIGKILL) // a process that ended by itself is as good
	}
	if err != nil {
		return err
	}
	deadline := time.Now().Add(stopTimeout)
	for _, p := range append(backends, pid) {
		for !gone(p) {
			if time.Now().After(deadline) {
				return fmt.Errorf("process %d survived SIGKILL", p)
			}
			time.Sleep(pollPause)
		}
	}
	return nil
}

// disarm replaces the process id in a stale postmaster.pid if another process has that id now:
// PostgreSQL would take that one for a running server. The file itself stays: by its other lines
// PostgreSQL notices that backends of the dead server still write to the data.
func disarm(data string) error {
	pf, ok := readPidFile(data)
	if !ok || errors.Is(syscall.Kill(pf.pid, 0), syscall.ESRCH) {
		return nil
	}
	text, err := os.ReadFile(pidFilePath(data))
	if err != nil {
		return err
	}
	_, rest, _ := strings.Cut(string(text), "\n")
	// This is above the highest process id of any system.
	const nobody = "2147483647"
	f, err := os.OpenFile(pidFilePath(data), os.O_WRONLY|os.O_TRUNC, 0) // keeps owner and mode
	if err != nil {
		return err
	}
	_, err = f.WriteString(nobody + "\n" + rest)
	return errors.Join(err, f.Close())
}
