//go:build linux || darwin

package devpg

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"
)

// Server is one use of a running PostgreSQL server. Other processes, and other Servers, may use the
// same one.
type Server struct {
	c    *cluster
	port int
	// users is locked shared by all who use the server, and exclusively by whoever wants to stop
	// it.
	users   *fileLock
	adopted bool
	stop    sync.Once
}

// Start starts the folder's server, or adopts the running one. ctx bounds only the start.
func Start(ctx context.Context, opt Options) (*Server, error) {
	dir, acct, err := findPlace(ctx, opt.Dir, opt.logger())
	if err != nil {
		return nil, fmt.Errorf("embedded PostgreSQL: %w", err)
	}
	progs, err := choosePrograms(ctx, dir, acct, opt)
	if err != nil {
		return nil, fmt.Errorf("embedded PostgreSQL: %w", err)
	}
	s := &Server{
		c: &cluster{
			dir: dir, progs: progs, acct: acct, fast: opt.Fast, log: opt.logger(), stopNow: opt.StopNow,
		},
	}
	control, err := lock(ctx, s.c.file("control"), true)
	if err != nil {
		return nil, fmt.Errorf("embedded PostgreSQL: %w", err)
	}
	defer control.unlock()
	// This never waits long: whoever locks users exclusively holds the control lock, too.
	if s.users, err = lock(ctx, s.c.file("users"), false); err != nil {
		return nil, fmt.Errorf("embedded PostgreSQL: %w", err)
	}
	if s.port, s.adopted, err = s.c.ensure(ctx); err != nil {
		s.users.unlock()
		return nil, fmt.Errorf("embedded PostgreSQL in %s: %w", dir, err)
	}
	return s, nil
}

// URL returns the address of a database of the server with the password, whether that database
// exists or not; "postgres" always does.
func (s *Server) URL(database string) string { return databaseURL(s.port, database, s.c.password) }

// Dir returns the folder that is in use: that of Options, or the one that stands in for it.
func (s *Server) Dir() string { return s.c.dir }

// EnsureDatabase creates the database unless it exists, and returns its URL.
func (s *Server) EnsureDatabase(ctx context.Context, name string) (string, error) {
	conn, err := pgx.Connect(ctx, s.URL("postgres"))
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	_, err = conn.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize())
	// Whether it exists is checked after the failure: before it, somebody else could still be
	// creating it.
	if err != nil {
		var exists bool
		q := "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)"
		if qErr := conn.QueryRow(ctx, q, name).Scan(&exists); qErr != nil || !exists {
			return "", errors.Join(err, qErr)
		}
	}
	return s.URL(name), nil
}

// Stop ends this use. The server is shut down if nobody else uses it.
func (s *Server) Stop() {
	s.stop.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
		defer cancel()
		control, err := lock(ctx, s.c.file("control"), true)
		if err != nil {
			s.c.log.Error("cannot stop PostgreSQL", "err", err)
			s.users.unlock()
			return
		}
		defer control.unlock()
		s.users.unlock()
		if _, err := s.c.stopUnused(); err != nil {
			s.c.log.Error("cannot stop PostgreSQL", "err", err)
		}
	})
}

// stopUnused stops the server if nobody uses it. The control lock must be held.
func (c *cluster) stopUnused() (stopped bool, err error) {
	users, err := tryLock(c.file("users"), true)
	if errors.Is(err, errBusy) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer users.unlock()
	return true, c.stop()
}

// Halt shuts the server down in order but keeps this use of it, so that Restart may follow. It is
// only for a folder that nobody else uses.
func (s *Server) Halt() error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	control, err := lock(ctx, s.c.file("control"), true)
	if err != nil {
		return err
	}
	defer control.unlock()
	return s.c.stop()
}

// Kill kills the server with all its processes, as a power cut would. It is for tests, and only for
// a folder that nobody else uses.
func (s *Server) Kill() error {
	pf, ok := s.c.running()
	if !ok {
		return errors.New("the server is not running")
	}
	return killAll(pf.pid)
}

// Restart starts the server again after Kill or Halt, on the same port if that is still free, and
// waits for its recovery.
func (s *Server) Restart(ctx context.Context) error {
	control, err := lock(ctx, s.c.file("control"), true)
	if err != nil {
		return err
	}
	defer control.unlock()
	s.port, s.adopted, err = s.c.ensure(ctx)
	return err
}
