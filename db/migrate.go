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

	"paidonce/internal/backoff"
)

const (
	// Instances that start together wait for the one that migrates. They ask every second, for half
	// an hour in all, in which indexes of large tables are built.
	lockPollSeconds = 1
	lockPolls       = 1800
	// LockTimeoutDefault is how long a statement waits for a table, and so how long the statements
	// queued behind it wait. It is less than commitWait of idemkeys, so that no request fails, and
	// more than PostgreSQL's deadlock_timeout of a second, after which an autovacuum gives way.
	LockTimeoutDefault = 2 * time.Second
	// MaxWaitDefault is how long a migration is tried again. An operator should decide about dumps
	// and reports that last longer.
	MaxWaitDefault = 10 * time.Minute
)

// MigrateOptions say how Migrate treats others that use the tables meanwhile. Zero values mean the
// defaults.
type MigrateOptions struct {
	// LockTimeout is how long a statement waits for a table before it lets others through and tries
	// again; the pauses are twice as long.
	LockTimeout time.Duration
	// MaxWait is how long a migration is tried again before it is given up.
	MaxWait time.Duration
	Applied func(name string)
	Waiting func(text string) // called with the reason when a migration is tried again
	Files   fs.FS             // the migrations; nil: those of this binary
}

// Migrate applies all pending migrations. Several instances may call it at once: a session lock
// lets one work and the others wait. The url must lead to the server itself: a pooler in
// transaction mode has no sessions to lock. Migrate waits for a locked table in short tries, so
// that nothing waits for long behind it. It returns an error that says what is in the way.
// Migrations that were applied before it stay applied.
func Migrate(ctx context.Context, url string, o MigrateOptions) error {
	if o.Files == nil {
		o.Files = embedded()
	}
	if o.LockTimeout < time.Millisecond {
		o.LockTimeout = LockTimeoutDefault
	}
	if o.MaxWait <= 0 {
		o.MaxWait = MaxWaitDefault
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
	locker := &migrationLocker{SessionLocker: l, lockTimeout: o.LockTimeout, files: o.Files}
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
		if err := applyWithRetry(ctx, p, conn, s, o); err != nil {
			return err
		}
	}
	return nil
}

// checkMigratable returns why the database cannot be migrated, before anything is begun.
func checkMigratable(ctx context.Context, cfg *pgx.ConnConfig) error {
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return noAnswer(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	return errors.Join(checkServer(ctx, conn), Writable(ctx, conn))
}

// migrationLocker holds the session lock from the first migration to the end of the session, pauses
// included. So one of many instances migrates, and the others wait.
type migrationLocker struct {
	lock.SessionLocker
	lockTimeout time.Duration
	files       fs.FS
}

// SessionLock also prepares what migrations need: the version table, and the lock timeout of
// statements, which the migration before may have changed.
func (g *migrationLocker) SessionLock(ctx context.Context, conn *sql.Conn) error {
	if err := g.SessionLocker.SessionLock(ctx, conn); err != nil {
		return err
	}
	set := fmt.Sprintf("SET lock_timeout = %d", g.lockTimeout.Milliseconds())
	if _, err := conn.ExecContext(ctx, set); err != nil {
		return err
	}
	return prepare(ctx, conn, g.files)
}

// SessionUnlock keeps the lock, which is released when the session ends.
func (g *migrationLocker) SessionUnlock(context.Context, *sql.Conn) error { return nil }

// applyWithRetry applies one migration, and tries again while others hold locks that it needs.
func applyWithRetry(
	ctx context.Context, p *goose.Provider, conn *sql.DB, s *goose.Source, o MigrateOptions,
) error {
	name := path.Base(s.Path)
	for began := time.Now(); ; {
		_, err := p.ApplyVersion(ctx, s.Version, true)
		switch {
		case err == nil:
			if o.Applied != nil {
				o.Applied(name)
			}
			return nil
		// by another instance, or by an earlier release
		case errors.Is(err, goose.ErrAlreadyApplied):
			return nil
		case !heldByOthers(err):
			return err
		}
		who := oldestTransaction(ctx, conn)
		if time.Since(began) > o.MaxWait {
			return fmt.Errorf("%s: others held a table that it needs for %v%s; end them or wait "+
				"for them, "+
				"and run `paidonce migrate` again: %w", name, time.Since(began).Round(time.Second), who, err)
		}
		if o.Waiting != nil {
			o.Waiting(name + ": others use a table that it needs" + who + "; it lets them through and tries again")
		}
		// Longer than others waited, so that their queue is gone.
		if !backoff.Sleep(ctx, 2*o.LockTimeout) {
			return fmt.Errorf("%s: %w", name, ctx.Err())
		}
	}
}

// heldByOthers reports whether a migration failed because it did not get a lock in time, or got
// into a deadlock. Then nothing of it was done, or only what can be done again.
func heldByOthers(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "55P03" || pg.Code == "40P01")
}

// oldestTransaction describes the transaction that has been open longest, which usually is the one
// in the way. It returns "" when there is none, or the role may not see it.
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
	return fmt.Sprintf(" (the oldest transaction: pid %d, %q, %d s)", pid, Clean(program, longest),
		seconds)
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
