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
	_ "github.com/jackc/pgx/v5/stdlib" // database/sql driver "pgx", which goose speaks
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

const (
	versionTable = "goose_db_version"
	// Instances that start together wait for the one that migrates, asking this often and this long in all.
	lockPollSeconds = 1
	lockPolls       = 300
)

// MigrationState is one migration and whether it is applied.
type MigrationState struct {
	Version   int64
	Name      string
	AppliedAt time.Time // zero when it is pending
}

// Migrate applies all pending migrations. Several instances may call it at once: a session lock lets one work and the others wait.
// The url must lead to the server itself: a pooler in transaction mode has no sessions to lock. It returns what was applied.
func Migrate(ctx context.Context, url string) ([]string, error) {
	if err := checkMigratable(ctx, url); err != nil {
		return nil, err
	}
	var applied []string
	err := withGoose(url, func(p *goose.Provider) error {
		results, err := p.Up(ctx)
		for _, r := range results {
			applied = append(applied, path.Base(r.Source.Path))
		}
		return err
	})
	return applied, err
}

// checkMigratable tells why the database at url cannot be migrated, before anything is begun there.
func checkMigratable(ctx context.Context, url string) error {
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return errors.New("the database url cannot be parsed") // pgx's text may quote the url with its password
	}
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return silent(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if err := errors.Join(checkServer(ctx, conn), Writable(ctx, conn)); err != nil {
		return err
	}
	var version int64
	err = conn.QueryRow(ctx, `SELECT coalesce(max(version_id), 0) FROM `+versionTable+` WHERE is_applied`).Scan(&version)
	switch latest := LatestVersion(); {
	case IsUndefinedTable(err): // it is to be made
		return nil
	case err != nil:
		return silent(err)
	case version > latest:
		return newerSchema(version, latest)
	}
	return nil
}

// MigrationStatus lists all migrations that this binary knows.
func MigrationStatus(ctx context.Context, url string) ([]MigrationState, error) {
	var states []MigrationState
	err := withGoose(url, func(p *goose.Provider) error {
		list, err := p.Status(ctx)
		for _, s := range list {
			states = append(states, MigrationState{Version: s.Source.Version, Name: path.Base(s.Source.Path), AppliedAt: s.AppliedAt})
		}
		return err
	})
	return states, err
}

func withGoose(url string, use func(*goose.Provider) error) error {
	conn, err := sql.Open("pgx", url)
	if err != nil {
		return fmt.Errorf("the database url cannot be parsed")
	}
	defer conn.Close() //nolint:errcheck // nothing was left to write
	files, err := fs.Sub(Migrations, "migrations")
	if err != nil {
		return err
	}
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(lockPollSeconds, lockPolls))
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectPostgres, conn, files, goose.WithSessionLocker(locker), goose.WithTableName(versionTable))
	if err != nil {
		return err
	}
	return use(p)
}

// LatestVersion is the version of the newest embedded migration.
func LatestVersion() int64 {
	var latest int64
	entries, _ := Migrations.ReadDir("migrations")
	for _, e := range entries {
		number, _, _ := strings.Cut(e.Name(), "_")
		if v, err := strconv.ParseInt(number, 10, 64); err == nil {
			latest = max(latest, v)
		}
	}
	return latest
}
