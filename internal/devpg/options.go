// Package devpg runs a PostgreSQL server for development and for tests: it finds the programs (or
// downloads them), makes a data folder, starts the server as an unprivileged user on a loopback
// port, and finds its way back after crashes.
//
// Several processes may use one folder: the first starts the server, later ones adopt it, the last
// one to leave stops it. A process that is killed with SIGKILL leaves the server running; the next
// Start adopts it.
//
// It is no production server: whoever can read the folder is its superuser. Other users of the
// machine are not: the password is in a file that they cannot read.
package devpg

import (
	"errors"
	"log/slog"
	"net"
	"net/url"
	"strconv"
)

// MinMajor is the oldest PostgreSQL that is used; the schema and the statements are written for it
// and newer ones.
const MinMajor = 14

// ErrLocked says that another process holds a lock.
var ErrLocked = errors.New("another process has it")

// superuser is the role that initdb creates and that URL names.
const superuser = "postgres"

// Options say where and how the server runs.
type Options struct {
	// Dir is the folder for data, log and locks. When we are root and the unprivileged user cannot
	// reach it, a folder below /var/tmp is used instead, and Dir/postgres-folder names it.
	Dir string
	// Fast trades durability for speed (fsync off): data may be lost in a crash, and are thrown
	// away after one. Tests only.
	Fast bool
	// Log gets what a developer wants to know: which programs, which folder, which port. Nothing is
	// logged if it is nil.
	Log *slog.Logger
	// Closing StopNow makes Stop, even one under way, ask for an immediate shutdown, from which the
	// next Start recovers. It may be nil.
	StopNow <-chan struct{}

	// repository replaces the address that the embedded-postgres library downloads from; for tests.
	repository string
	// onlyDownload skips the search for programs on this machine; for tests.
	onlyDownload bool
}

func (o Options) logger() *slog.Logger {
	if o.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return o.Log
}

func databaseURL(port int, database, password string) string {
	u := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(superuser, password),
		Host:     net.JoinHostPort("127.0.0.1", strconv.Itoa(port)),
		Path:     "/" + database,
		RawQuery: "sslmode=disable",
	}
	return u.String()
}
