package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"

	"paidonce/internal/devpg"
)

// devDatabaseURL is the file with the URL of dev's own database, written when it first started.
const devDatabaseURL = "database-url"

// unsetURL ends the messages about a database that dev cannot use.
const unsetURL = "`unset DATABASE_URL`, and dev starts a database of its own"

// givenDatabase reports whether DATABASE_URL is set to another database than dev's own. In a
// terminal that ran the export line which dev prints, it is set to dev's own.
func givenDatabase(dir string) bool {
	ours, _ := os.ReadFile(filepath.Join(dir, devDatabaseURL))
	set := os.Getenv("DATABASE_URL")
	return set != "" && withoutUser(set) != withoutUser(strings.TrimSpace(string(ours)))
}

// withoutUser returns an address without its user and password: earlier versions wrote it so.
func withoutUser(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	u.User = nil
	return u.String()
}

// otherTables returns the names of up to three tables, views or sequences in the schemas where ours
// would be created. Those of an extension do not count.
const otherTables = `SELECT coalesce(string_agg(name, ', '), '') FROM (
	SELECT c.relname AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE n.nspname = ANY (current_schemas(false)) AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
		AND NOT EXISTS (SELECT FROM pg_depend d
			WHERE d.objid = c.oid AND d.classid = 'pg_class'::regclass AND d.deptype = 'e')
	ORDER BY 1 LIMIT 3) AS others`

const hasOurTables = `
	SELECT to_regclass('installation') IS NOT NULL AND to_regclass('idempotency_keys') IS NOT NULL`

// ofDev reports whether dev may use our tables there: dev has created an account in them, or nobody
// has created any; and no real money was moved.
const ofDev = `
	SELECT (NOT EXISTS (SELECT FROM accounts) OR EXISTS (SELECT FROM accounts WHERE name = 'dev'))
		AND NOT EXISTS (SELECT FROM charges WHERE livemode)`

// useGiven reports that the database of DATABASE_URL is used, or returns why dev leaves it alone.
func useGiven(ctx context.Context, address string, out io.Writer) error {
	if err := checkGiven(ctx, address); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out, "Migrating and using the database of DATABASE_URL, because that "+
		"is set ("+unsetURL+") …")
	return err
}

// checkGiven returns an error when dev must leave the database of DATABASE_URL alone: it belongs to
// another program, or to an installation of Paidonce that works with a real provider. Dev would
// look up the unfinished operations of that one at the simulator, and end them as never made.
func checkGiven(ctx context.Context, address string) error {
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return fmt.Errorf("the database of DATABASE_URL does not answer: %w; "+unsetURL, err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	const leave = "so dev leaves it alone: set it to an empty database, or " + unsetURL
	var ours, good bool
	var others string
	if err := conn.QueryRow(ctx, hasOurTables).Scan(&ours); err != nil {
		return err
	}
	if !ours {
		if err := conn.QueryRow(ctx, otherTables).Scan(&others); err != nil {
			return err
		}
		if others != "" {
			return fmt.Errorf("the database of DATABASE_URL has tables of another program (%s), %s",
				others, leave)
		}
		return nil
	}
	if err := conn.QueryRow(ctx, ofDev).Scan(&good); err != nil {
		return err
	}
	if !good {
		return errors.New("the database of DATABASE_URL is of an installation that dev did " +
			"not make, " + leave)
	}
	return nil
}

// devDatabase starts dev's own database and returns its URL.
func devDatabase(
	ctx context.Context, stopNow <-chan struct{}, dir string, out io.Writer,
) (address string, stop func(), err error) {
	fmt.Fprintln(out, "Starting PostgreSQL …")
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	server, err := devpg.Start(ctx, devpg.Options{Dir: dir, Log: log, StopNow: stopNow})
	if err != nil {
		return "", nil, fmt.Errorf("PostgreSQL: %w", err)
	}
	address, err = server.EnsureDatabase(ctx, "paidonce")
	if err == nil {
		err = writePrivate(filepath.Join(dir, devDatabaseURL), address+"\n")
	}
	if err != nil {
		server.Stop()
		return "", nil, fmt.Errorf("PostgreSQL: %w", err)
	}
	return address, server.Stop, nil
}

// writePrivate writes a file with a secret. It restricts a file that exists, too.
func writePrivate(file, text string) error {
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	return os.Chmod(file, 0o600)
}
