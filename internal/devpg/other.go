//go:build !linux && !darwin

package devpg

import (
	"context"
	"errors"
	"time"
)

// ErrUnsupported is returned by Start on systems where devpg cannot lock files or drop privileges.
var ErrUnsupported = errors.New("the embedded PostgreSQL runs on Linux and macOS only: set " +
	"DATABASE_URL (TEST_DATABASE_URL for tests) to a server of your own")

// Server does not exist on this system.
type Server struct{}

// Start returns ErrUnsupported.
func Start(context.Context, Options) (*Server, error) { return nil, ErrUnsupported }

// URL returns nothing here.
func (*Server) URL(string) string { return "" }

// Dir returns nothing here.
func (*Server) Dir() string { return "" }

// EnsureDatabase returns ErrUnsupported.
func (*Server) EnsureDatabase(context.Context, string) (string, error) { return "", ErrUnsupported }

// Stop does nothing here.
func (*Server) Stop() {}

// Halt returns ErrUnsupported.
func (*Server) Halt() error { return ErrUnsupported }

// Kill returns ErrUnsupported.
func (*Server) Kill() error { return ErrUnsupported }

// Restart returns ErrUnsupported.
func (*Server) Restart(context.Context) error { return ErrUnsupported }

// TryLock locks nothing here.
func TryLock(string) (unlock func(), err error) { return func() {}, nil }

// Reap does nothing here.
func Reap(string, time.Duration, bool) {}
