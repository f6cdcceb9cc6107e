package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// stopTimeout is how long a process may take to end by itself.
const stopTimeout = 40 * time.Second

// announce tells the parent where we listen.
func announce(l net.Listener) { fmt.Println("listening", l.Addr()) }

func listenOn(ctx context.Context, address string) (net.Listener, error) {
	return (&net.ListenConfig{}).Listen(ctx, "tcp", address)
}

// untilOrphaned returns a channel that is closed when ctx ends or when standard input does. Our
// parent holds the other end, and may have been killed without a chance to tell us. If we were
// started by hand, only ctx counts.
func untilOrphaned(ctx context.Context) <-chan struct{} {
	if os.Getenv(childMark) == "" {
		return ctx.Done()
	}
	done := make(chan struct{})
	gone := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(gone)
	}()
	go func() {
		select {
		case <-ctx.Done():
		case <-gone:
		}
		close(done)
	}()
	return done
}

// childMark is set in the environment of our own parts.
const childMark = "PAIDONCE_BENCH_CHILD"

// child is a process that we started.
type child struct {
	name  string
	cmd   *exec.Cmd
	stdin io.Closer
	out   *bufio.Reader
	ended chan struct{}
	err   error // of Wait; read after ended
}

// startChild starts a program. We read its standard output; its errors go to the file log.
func startChild(
	name string, env []string, log *os.File, program string, args ...string,
) (*child, error) {
	cmd := exec.Command(program, args...) //nolint:gosec,noctx // our own programs; ended by stop, in order
	cmd.Env = append(os.Environ(), append(env, childMark+"=1")...)
	cmd.Stderr = log
	// It has its own process group: Ctrl-C reaches only us, and we end the children in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	r, w, err := os.Pipe() // not StdoutPipe: Wait would close it under the reader
	if err != nil {
		return nil, err
	}
	cmd.Stdout = w
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, r.Close(), w.Close())
	}
	_ = w.Close()
	c := &child{
		name: name, cmd: cmd, stdin: stdin, out: bufio.NewReader(r), ended: make(chan struct{}),
	}
	go func() {
		c.err = cmd.Wait()
		close(c.ended)
	}()
	return c, nil
}

func (c *child) pid() int { return c.cmd.Process.Pid }

// line reads a line of its output.
func (c *child) line() (string, error) {
	s, err := c.out.ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("%s said no more: %w", c.name, err)
	}
	return strings.TrimSpace(s), nil
}

// address reads what announce wrote.
func (c *child) address() (string, error) {
	s, err := c.line()
	if err != nil {
		return "", err
	}
	addr, ok := strings.CutPrefix(s, "listening ")
	if !ok {
		return "", fmt.Errorf("%s said %q, not where it listens", c.name, s)
	}
	return addr, nil
}

// drain discards what the process writes, so that it can go on.
func (c *child) drain() { go func() { _, _ = io.Copy(io.Discard, c.out) }() }

// wait waits for the end of a process that ends by itself.
func (c *child) wait(ctx context.Context) error {
	select {
	case <-c.ended:
		if c.err != nil {
			return fmt.Errorf("%s: %w", c.name, c.err)
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// stop asks the process to end and waits for it. A nil child is no process.
func (c *child) stop() {
	if c == nil {
		return
	}
	_ = c.cmd.Process.Signal(syscall.SIGTERM)
	_ = c.stdin.Close()
	select {
	case <-c.ended:
	case <-time.After(stopTimeout):
		_ = c.cmd.Process.Kill()
		<-c.ended
	}
}

// watcher is the client for questions to our own children.
var watcher = &http.Client{Timeout: 10 * time.Second}

// ready waits until a GET of the URL is answered with 200.
func (c *child) ready(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		if res, err := watcher.Do(req); err == nil {
			_ = res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-c.ended:
			return fmt.Errorf("%s ended before it was ready: %w", c.name, c.err)
		case <-ctx.Done():
			return fmt.Errorf("%s: %s was not ready in time", c.name, url)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
