//go:build linux || darwin

package devpg

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// startTimeout bounds one start: crash recovery of a development database takes seconds, that
	// of a full disk a minute.
	startTimeout = 2 * time.Minute
	// stopTimeout bounds one stop: a fast shutdown ends sessions and writes one checkpoint, 0.2 s
	// when measured.
	stopTimeout = 30 * time.Second
	// pollPause is how often we look whether a server came up or went away; a warm start takes some
	// 70 ms.
	pollPause = 20 * time.Millisecond
	// connectTimeout bounds one try to connect to a server on this machine.
	connectTimeout = 2 * time.Second
	// maxConnections is above what parallel tests with a pool each were seen to use; an idle slot
	// costs some 20 KiB.
	maxConnections = 300
	// lowPort and highPort bound the ports tried. They lie below every system's range for outgoing
	// connections: inside it, a client that tries to reach a stopped server can be given that very
	// port and connect to itself.
	lowPort, highPort = 20000, 32000
	// portTries is how many ports are tried before giving up; the second try hardly ever happens.
	portTries = 20
)

// cluster is one data folder with the files around it. The control lock must be held for every
// method that changes it.
type cluster struct {
	dir     string
	progs   programs
	acct    *account
	fast    bool
	log     *slog.Logger
	stopNow <-chan struct{} // closed when the server has to stop at once

	password string // the superuser's; empty until ensure is called
}

// file returns the path of the cluster's file for this major version.
func (c *cluster) file(name string) string {
	return filepath.Join(c.dir, name+strconv.Itoa(c.progs.major))
}

func (c *cluster) data() string { return c.file("data") }

// running returns the server's entry in postmaster.pid if that very server is alive.
func (c *cluster) running() (pidFile, bool) {
	pf, ok := readPidFile(c.data())
	return pf, ok && isPostmaster(pf.pid, c.data())
}

// ensure starts the server unless it runs, and returns its port and whether it ran before.
func (c *cluster) ensure(ctx context.Context) (port int, adopted bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if c.password, err = c.readPassword(); err != nil {
		return 0, false, err
	}
	if c.password == "" { // A version without passwords started it and admitted everybody.
		if err := c.stop(); err != nil {
			return 0, false, err
		}
	}
	if pf, ok := c.running(); ok {
		if port, err = c.await(ctx, func() bool { _, ok := c.running(); return !ok }); err == nil {
			c.log.Info("adopted the running PostgreSQL", "pid", pf.pid, "port", port)
			return port, true, nil
		}
		if _, still := c.running(); still {
			return 0, false, err
		} // it was shutting down
	}
	if err := c.prepare(ctx); err != nil {
		return 0, false, err
	}
	port, err = c.launch(ctx)
	return port, false, err
}

// prepare creates the data folder if there is none. It repairs one that a crashed server left, so
// that the next server can start.
func (c *cluster) prepare(ctx context.Context) error {
	if _, err := os.Lstat(pidFilePath(c.data())); err == nil && c.fast {
		// The server was not shut down, and nothing was synced, so the files cannot be trusted. The
		// folder is renamed first: backends that outlive their server for a moment write relative
		// to it.
		old := c.file("discarded")
		if err := errors.Join(os.RemoveAll(old), os.Rename(c.data(), old), os.RemoveAll(old)); err != nil {
			return err
		}
		c.log.Info("threw away unsynced data after a crash", "data", c.data())
	}
	if _, err := os.Lstat(c.data()); errors.Is(err, fs.ErrNotExist) {
		if err := c.initialise(ctx); err != nil {
			return err
		}
	}
	if err := disarm(c.data()); err != nil || c.password != "" {
		return err
	}
	return c.secure(ctx)
}

// initialise runs initdb in a folder of another name, the mark of an unfinished one, and renames it
// when all is done.
func (c *cluster) initialise(ctx context.Context) error {
	started := time.Now()
	unfinished := c.file("unfinished")
	if err := os.RemoveAll(unfinished); err != nil {
		return err
	}
	if err := errors.Join(os.Mkdir(unfinished, 0o700), c.acct.give(unfinished)); err != nil {
		return err
	}
	err := c.newPassword(func(_, file string) error {
		args := []string{
			"-D", unfinished, "-U", superuser, "--auth=scram-sha-256", "--pwfile=" + file,
			"--locale=C", "-E", "UTF8",
		}
		if c.fast {
			args = append(args, "--no-sync")
		}
		out, err := c.acct.command(ctx, c.dir, c.progs.path("initdb"), args...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("initdb: %w\n%s", err, tail(out))
		}
		return c.writeHBA(unfinished)
	})
	if err != nil {
		return err
	}
	if err := os.Rename(unfinished, c.data()); err != nil {
		return err
	}
	c.log.Info("made a new database cluster", "data", c.data(),
		"took", time.Since(started).Round(time.Millisecond))
	return nil
}

// launch starts the server on the last port if that is free, else on another.
func (c *cluster) launch(ctx context.Context) (int, error) {
	last := 0
	if text, err := os.ReadFile(c.file("port")); err == nil {
		last, _ = strconv.Atoi(strings.TrimSpace(string(text)))
	}
	for try := 0; ; try++ {
		port, err := freePort(last)
		if err != nil {
			return 0, err
		}
		err = c.launchOn(ctx, port)
		switch {
		case err == nil:
			return port, os.WriteFile(c.file("port"), []byte(strconv.Itoa(port)+"\n"), 0o600)
		case try >= portTries || ctx.Err() != nil:
			return 0, err
		case strings.Contains(err.Error(), "could not bind"):
			last = 0 // another program took the port after freePort looked
		case strings.Contains(err.Error(), "pre-existing shared memory"):
			time.Sleep(10 * pollPause) // backends of the crashed server are about to end
		default:
			return 0, err
		}
	}
}

// settings returns the server's options. They are given on its command line, so that a newer devpg
// needs no newer data folder.
func (c *cluster) settings(port int) []string {
	s := []string{
		"port=" + strconv.Itoa(port), "listen_addresses=127.0.0.1", "unix_socket_directories=",
		"max_connections=" + strconv.Itoa(maxConnections), "timezone=UTC", "log_timezone=UTC",
		"logging_collector=off", "log_destination=stderr", "log_line_prefix=%m [%p] %d ",
		// Shared memory is in files of the data folder: a container has little /dev/shm, and a
		// killed server would leave something there.
		"dynamic_shared_memory_type=mmap",
	}
	if c.fast {
		s = append(s, "fsync=off", "synchronous_commit=off", "full_page_writes=off",
			// autovacuum would visit every test's database, and delay copies of the template
			"autovacuum=off",
		)
	}
	return s
}

// launchOn starts the server and waits until it answers. The server leads a session of its own, so
// that Ctrl-C does not reach it: we stop it in order.
func (c *cluster) launchOn(ctx context.Context, port int) error {
	args := []string{"-D", c.data()}
	for _, s := range c.settings(port) {
		args = append(args, "-c", s)
	}
	logPath := c.file("log")
	out, err := os.Create(logPath) // the previous log is of no use any more
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }()
	cmd := c.acct.command(context.WithoutCancel(ctx), c.dir, c.progs.path("postgres"), args...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr.Setsid = true
	if err := cmd.Start(); err != nil {
		return err
	}
	exited := make(chan struct{})
	go func() { _ = cmd.Wait(); close(exited) }()
	dead := func() bool {
		select {
		case <-exited:
			return true
		default:
			return false
		}
	}
	if _, err = c.await(ctx, dead); err == nil {
		c.log.Info("started PostgreSQL", "programs", c.progs.dir, "data", c.data(), "port", port,
			"pid", cmd.Process.Pid)
		return nil
	}
	if !dead() {
		_ = cmd.Process.Signal(syscall.SIGINT)
		<-exited
	}
	text, _ := os.ReadFile(logPath)
	return fmt.Errorf("PostgreSQL did not start: %w\n%s", err, tail(text))
}

// await waits until the server of this data folder answers on the port that its postmaster.pid
// names.
func (c *cluster) await(ctx context.Context, dead func() bool) (int, error) {
	for {
		if dead() {
			return 0, errors.New("the server ended")
		}
		if pf, ok := readPidFile(c.data()); ok && pf.port > 0 {
			err := c.identify(ctx, pf.port)
			if err == nil {
				return pf.port, nil
			}
			if errors.Is(err, errOtherServer) && !dead() {
				return 0, err
			}
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(pollPause):
		}
	}
}

var errOtherServer = errors.New("another server answers on the port")

// identify connects and checks that our server answers.
func (c *cluster) identify(ctx context.Context, port int) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, databaseURL(port, "postgres", c.password))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	var data string
	if err := conn.QueryRow(ctx, "SHOW data_directory").Scan(&data); err != nil {
		return err
	}
	if data != c.data() {
		return fmt.Errorf("%w: %s", errOtherServer, data)
	}
	return nil
}

// stop shuts the server down: sessions are ended, data are written.
func (c *cluster) stop() error {
	pf, ok := c.running()
	if !ok {
		return nil
	}
	// SIGINT asks for a fast shutdown, SIGQUIT for an immediate one, which the next start recovers
	// from.
	for _, s := range []struct {
		signal  syscall.Signal
		stopNow <-chan struct{}
	}{{syscall.SIGINT, c.stopNow}, {syscall.SIGQUIT, nil}} {
		// The server has ended meanwhile.
		if err := syscall.Kill(pf.pid, s.signal); errors.Is(err, syscall.ESRCH) {
			return nil
		} else if err != nil {
			return err
		}
		if c.ends(pf.pid, s.stopNow) {
			return nil
		}
	}
	return fmt.Errorf("PostgreSQL (process %d) does not stop", pf.pid)
}

// ends waits until the server has ended and reports whether it has. It gives up after stopTimeout,
// or when stopNow is closed.
func (c *cluster) ends(pid int, stopNow <-chan struct{}) bool {
	for deadline := time.Now().Add(stopTimeout); time.Now().Before(deadline); {
		if !isPostmaster(pid, c.data()) {
			return true
		}
		select {
		case <-stopNow:
			return false
		case <-time.After(pollPause):
		}
	}
	return false
}

// freePort returns the wanted port if it is free, else a random one.
func freePort(want int) (int, error) {
	var err error
	for range portTries {
		if want == 0 {
			want = lowPort + rand.IntN(highPort-lowPort)
		}
		var l net.Listener
		if l, err = net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(want))); err == nil {
			return want, l.Close()
		}
		want = 0
	}
	return 0, fmt.Errorf("no free port: %w", err)
}

// tail returns the end of a program's output, where its errors are.
func tail(text []byte) string {
	const limit = 2000 // some twenty lines
	if len(text) > limit {
		text = text[len(text)-limit:]
	}
	return strings.TrimSpace(string(text))
}
