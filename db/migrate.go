package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

const (
	// Instances that start together wait for the one that migrates, asking this often and this long
	// in all: half an hour, in which indexes of large tables are built.
	lockPollSeconds = 1
	lockPolls       = 1800
	// LockTimeoutDefault is how long a statement waits for a table: whoever comes after it waits
	// behind it for as long. Less than commitWait of idemkeys, so that no request fails; more than
	// PostgreSQL's deadlock_timeout of a second, after which an autovacuum gives way.
	LockTimeoutDefault = 2 * time.Second
	// LockPatienceDefault is when it gives up: dumps and reports that last longer are better waited
	// for by a person.
	LockPatienceDefault = 10 * time.Minute
)

// MigrateOptions say how Migrate treats those who use the tables meanwhile. What is not set has its
// default.
type MigrateOptions struct {
	// LockTimeout is how long a statement waits for a table before it lets others through and tries
	// again; the pauses are twice as long.
	LockTimeout time.Duration
	// Patience is how long a migration is tried again before it is given up.
	Patience time.Duration
	Applied  func(name string)
	Waiting  func(text string) // told why a migration is tried again
	Files    fs.FS             // the migrations; nil: those of this binary
}

// Migrate applies all pending migrations. Several instances may call it at once: a session lock
// lets one work and the others wait. The url must lead to the server itself: a pooler in
// transaction mode has no sessions to lock. A table that others hold is waited for in short tries,
// so that nobody waits for long behind them. Errors: what is in the way; what was applied before
// stays applied.
func Migrate(ctx context.Context, url string, o MigrateOptions) error {
	if o.Files == nil {
		o.Files = embedded()
	}
	if o.LockTimeout < time.Millisecond {
		o.LockTimeout = LockTimeoutDefault
	}
	if o.Patience <= 0 {
		o.Patience = LockPatienceDefault
	}
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return fmt.Errorf("the database url cannot be parsed")
	}
	if err := checkMigratable(ctx, cfg); err != nil {
		return err
	}
	conn := stdlib.OpenDB(*cfg)
	defer conn.Close()      //nolint:errcheck // nothing was left to write
	conn.SetMaxOpenConns(1) // the session that has the lock
	l, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(lockPollSeconds, lockPolls))
	if err != nil {
		return err
	}
	locker := &ground{SessionLocker: l, lockTimeout: o.LockTimeout, files: o.Files}
	p, err := goose.NewProvider(goose.DialectPostgres, conn, o.Files,
		goose.WithSessionLocker(locker), goose.WithTableName(versionTable))
	if err != nil {
		return err
	}
	applied, err := recorded(ctx, conn)
	if err != nil {
		return err
	}
	var known, newest int64
	for _, s := range p.ListSources() {
		known = max(known, s.Version)
	}
	for v := range applied {
		newest = max(newest, v)
	}
	if newest > known {
		return newerSchema(newest, known)
	}
	for _, s := range p.ListSources() {
		if _, done := applied[s.Version]; done {
			continue
		}
		if err := applyPatiently(ctx, p, conn, s, o); err != nil {
			return err
		}
	}
	return nil
}

// checkMigratable tells why the database cannot be migrated, before anything is begun there.
func checkMigratable(ctx context.Context, cfg *pgx.ConnConfig) error {
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return silent(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	return errors.Join(checkServer(ctx, conn), Writable(ctx, conn))
}

// ground holds the session lock from the first migration to the end of the session, pauses
// included: of many instances one tries, and the others wait.
type ground struct {
	lock.SessionLocker
	lockTimeout time.Duration
	files       fs.FS
}

// SessionLock also prepares what migrations stand on: the version table, and how long statements
// wait for tables, which the migration before may have changed.
func (g *ground) SessionLock(ctx context.Context, conn *sql.Conn) error {
	if err := g.SessionLocker.SessionLock(ctx, conn); err != nil {
		return err
	}
	set := fmt.Sprintf("SET lock_timeout = %d", g.lockTimeout.Milliseconds())
	if _, err := conn.ExecContext(ctx, set); err != nil {
		return err
	}
	return prepare(ctx, conn, g.files)
}

// SessionUnlock keeps the lock: the end of the session lets go of it.
func (g *ground) SessionUnlock(context.Context, *sql.Conn) error { return nil }

// applyPatiently applies one migration, and tries again while others hold what it needs.
func applyPatiently(ctx context.Context, p *goose.Provider, conn *sql.DB, s *goose.Source, o MigrateOptions) error {
	name := path.Base(s.Path)
	for began := time.Now(); ; {
		_, err := p.ApplyVersion(ctx, s.Version, true)
		switch {
		case err == nil:
			if o.Applied != nil {
				o.Applied(name)
			}
			return nil
		case errors.Is(err, goose.ErrAlreadyApplied): // by another instance, or it was taken over
			return nil
		case !heldByOthers(err):
			return err
		}
		who := oldestTransaction(ctx, conn)
		if time.Since(began) > o.Patience {
			return fmt.Errorf("%s: others held a table that it needs for %v%s; end them or wait for them, "+
				"and run `paidonce migrate` again: %w", name, time.Since(began).Round(time.Second), who, err)
		}
		if o.Waiting != nil {
			o.Waiting(name + ": others use a table that it needs" + who + "; it lets them through and tries again")
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", name, ctx.Err())
		case <-time.After(2 * o.LockTimeout): // longer than others waited, so that their queue is gone
		}
	}
}

// heldByOthers reports whether a migration failed because it did not get a lock in time, or got into
// a deadlock. Nothing of it was done, or what can be done again.
func heldByOthers(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "55P03" || pg.Code == "40P01")
}

// oldestTransaction names the transaction that has been open longest, which mostly is the one in
// the way; "" when there is none, or we may not see it.
func oldestTransaction(ctx context.Context, conn *sql.DB) string {
	var pid, seconds int
	var program string
	err := conn.QueryRowContext(ctx, `
		SELECT pid, application_name, extract(epoch FROM clock_timestamp() - xact_start)::integer
		FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start IS NOT NULL
			AND backend_type = 'client backend'
		ORDER BY xact_start LIMIT 1`).Scan(&pid, &program, &seconds)
	if err != nil {
		return ""
	}
	const longest = 64 // bytes of an application_name
	return fmt.Sprintf(" (the oldest transaction: pid %d, %q, %d s)", pid, Clean(program, longest), seconds)
}

// embedded is this binary's migrations, as goose wants them.
func embedded() fs.FS {
	files, err := fs.Sub(Migrations, "migrations")
	if err != nil {
		panic(err) // the name is a constant
	}
	return files
}

// LatestVersion is the version of the newest embedded migration.
func LatestVersion() int64 {
	var latest int64
	for _, s := range sources(embedded()) {
		latest = max(latest, s.Version)
	}
	return latest
}

// sources lists migrations in their order.
func sources(files fs.FS) (list []MigrationState) {
	entries, _ := fs.ReadDir(files, ".") // sorted; the numbers have leading zeros
	for _, e := range entries {
		number, _, _ := strings.Cut(e.Name(), "_")
		if v, err := strconv.ParseInt(number, 10, 64); err == nil {
			list = append(list, MigrationState{Version: v, Name: e.Name()})
		}
	}
	return list
}
