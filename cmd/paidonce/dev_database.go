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

// devDatabaseURL is the file that has the URL of the database of ours, since it was first started.
const devDatabaseURL = "database-url"

// givenDatabase reports whether DATABASE_URL is set to a database of somebody else's. In a terminal that ran the line which dev prints for other commands it is
// set to ours.
func givenDatabase(dir string) bool {
	ours, _ := os.ReadFile(filepath.Join(dir, devDatabaseURL))
	set := os.Getenv("DATABASE_URL")
	return set != "" && withoutUser(set) != withoutUser(strings.TrimSpace(string(ours)))
}

// withoutUser is an address without its user and password: earlier versions had none in it.
func withoutUser(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	u.User = nil
	return u.String()
}

// otherTables are things where our tables would be made that are not of an extension.
const otherTables = `SELECT coalesce(string_agg(name, ', '), '') FROM (
	SELECT c.relname AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE n.nspname = ANY (current_schemas(false)) AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
		AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.classid = 'pg_class'::regclass AND d.deptype = 'e')
	ORDER BY 1 LIMIT 3) AS others`

// ofDev: dev has made an account there, or nobody has made any; and no real money moved.
const ofDev = `SELECT (NOT EXISTS (SELECT FROM accounts) OR EXISTS (SELECT FROM accounts WHERE name = 'dev')) AND NOT EXISTS (SELECT FROM charges WHERE livemode)`

// useGiven says that the database of DATABASE_URL is used, or why not.
func useGiven(ctx context.Context, address string, out io.Writer) error {
	if err := checkGiven(ctx, address); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out, "Migrating and using the database of DATABASE_URL, because that is set (unset it, and dev starts a database of its own) …")
	return err
}

// checkGiven tells why dev leaves the database of DATABASE_URL alone: it is another program's, or an installation of Paidonce that works with a real provider,
// whose unfinished operations dev would look up at the simulator, and end as never made.
func checkGiven(ctx context.Context, address string) error {
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return fmt.Errorf("the database of DATABASE_URL does not answer: %w; `unset DATABASE_URL`, and dev starts a database of its own", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	const leave = "so dev leaves it alone: let it lead to an empty one, or `unset DATABASE_URL`, and dev starts a database of its own"
	var ours, good bool
	var others string
	if err := conn.QueryRow(ctx, `SELECT to_regclass('installation') IS NOT NULL AND to_regclass('idempotency_keys') IS NOT NULL`).Scan(&ours); err != nil {
		return err
	}
	if !ours {
		if err := conn.QueryRow(ctx, otherTables).Scan(&others); err != nil {
			return err
		}
		if others != "" {
			return fmt.Errorf("the database of DATABASE_URL has tables of another program (%s), %s", others, leave)
		}
		return nil
	}
	if err := conn.QueryRow(ctx, ofDev).Scan(&good); err != nil {
		return err
	}
	if !good {
		return errors.New("the database of DATABASE_URL is of an installation that dev did not make, " + leave)
	}
	return nil
}

// devDatabase starts a database of ours and sets DATABASE_URL to it.
func devDatabase(ctx context.Context, hurry <-chan struct{}, dir string, out io.Writer) (stop func(), err error) {
	fmt.Fprintln(out, "Starting PostgreSQL …")
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	server, err := devpg.Start(ctx, devpg.Options{Dir: dir, Log: log, Hurry: hurry})
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL: %w", err)
	}
	address, err := server.EnsureDatabase(ctx, "paidonce")
	if err == nil {
		err = errors.Join(writePrivate(filepath.Join(dir, devDatabaseURL), address+"\n"), os.Setenv("DATABASE_URL", address))
	}
	if err != nil {
		server.Stop()
		return nil, fmt.Errorf("PostgreSQL: %w", err)
	}
	return server.Stop, nil
}

// writePrivate writes a file that has a secret, also where one is that others may read.
func writePrivate(file, text string) error {
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	return os.Chmod(file, 0o600)
}
