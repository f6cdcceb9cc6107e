package db_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"paidonce/db"
	"paidonce/internal/dbtest"
)

func execOn(t *testing.T, address string, statements ...string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	for _, s := range statements {
		if _, err := conn.Exec(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

func pool(t *testing.T, address string) *pgxpool.Pool {
	t.Helper()
	p, err := db.Open(address, 2)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// says fails unless err is a sentence with all of these; none: no error.
func says(t *testing.T, what string, err error, words ...string) {
	t.Helper()
	if len(words) == 0 {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		return
	}
	for _, w := range words {
		if err == nil || !strings.Contains(err.Error(), w) {
			t.Errorf("%s: got %v, which does not say %q", what, err, w)
		}
	}
}

func TestReadyOnACurrentSchema(t *testing.T) {
	t.Parallel()
	p := pool(t, dbtest.New(t))
	says(t, "start", db.CheckStart(t.Context(), p))
	says(t, "ready", db.Ready(t.Context(), p))
}

func TestReadyWithoutASchema(t *testing.T) {
	t.Parallel()
	p := pool(t, dbtest.NewEmpty(t))
	says(t, "start", db.CheckStart(t.Context(), p), "the schema is missing", "paidonce migrate")
	says(t, "ready", db.Ready(t.Context(), p), "the schema is missing")
}

// A schema that moves on under a running server is what an upgrade looks like to it: it is ready
// still. What starts on it does not know what it would do.
func TestReadyOnASchemaOfAnotherVersion(t *testing.T) {
	t.Parallel()
	address := dbtest.New(t)
	p := pool(t, address)
	latest := db.LatestVersion()
	execOn(t, address, fmt.Sprintf(`INSERT INTO paidonce_db_version (version_id, is_applied) VALUES (%d, true)`, latest+1))
	says(t, "ready on a newer one", db.Ready(t.Context(), p))
	newer := fmt.Sprintf("the schema is at version %d, and this binary knows versions up to %d", latest+1, latest)
	says(t, "start on a newer one", db.CheckStart(t.Context(), p), newer, "install")
	err := db.Migrate(t.Context(), address, db.MigrateOptions{})
	says(t, "migration of a newer one", err, newer)
	execOn(t, address, fmt.Sprintf(`DELETE FROM paidonce_db_version WHERE version_id >= %d`, latest))
	for what, err := range map[string]error{"ready": db.Ready(t.Context(), p), "start": db.CheckStart(t.Context(), p)} {
		says(t, what+" on an older one", err, fmt.Sprintf("version %d, this binary needs %d", latest-1, latest), "paidonce migrate")
	}
}

// A role, the database or the server may take no writes; the address says so for its own sessions
// alone.
func TestReadyOnWhatTakesNoWrites(t *testing.T) {
	t.Parallel()
	address := dbtest.New(t)
	reader := parse(t, address)
	q := reader.Query()
	q.Set("default_transaction_read_only", "on")
	reader.RawQuery = q.Encode()
	p := pool(t, reader.String())
	says(t, "start", db.CheckStart(t.Context(), p)) // to read, as `ops list` does
	says(t, "ready", db.Ready(t.Context(), p), "takes no writes", "default_transaction_read_only")
	err := db.Migrate(t.Context(), reader.String(), db.MigrateOptions{})
	says(t, "migration", err, "takes no writes")
	name := strings.TrimPrefix(parse(t, address).Path, "/")
	execOn(t, address, "ALTER DATABASE "+name+" SET default_transaction_read_only = on")
	says(t, "ready on a database of which new sessions do not write", db.Ready(t.Context(), pool(t, address)), "takes no writes")
}

func parse(t *testing.T, address string) *url.URL {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// asRole makes a role that may do what is granted, and returns the address for it.
func asRole(t *testing.T, address string, grants ...string) string {
	t.Helper()
	u := parse(t, address)
	// of the whole server, so it is named for the database
	role := strings.TrimPrefix(u.Path, "/") + "_r"
	role = role[max(0, len(role)-60):]
	execOn(t, address, "CREATE ROLE "+role+" LOGIN PASSWORD 'few'")
	t.Cleanup(func() {
		conn, err := pgx.Connect(context.Background(), address)
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = conn.Close(context.Background()) }()
		if _, err := conn.Exec(context.Background(), "DROP OWNED BY "+role+"; DROP ROLE "+role); err != nil {
			t.Error(err)
		}
	})
	for _, g := range grants {
		execOn(t, address, "GRANT "+g+" TO "+role)
	}
	u.User = url.UserPassword(role, "few")
	return u.String()
}

func TestReadyWithTooFewRights(t *testing.T) {
	t.Parallel()
	few := pool(t, asRole(t, dbtest.New(t), "SELECT ON paidonce_db_version", "SELECT, UPDATE ON ALL TABLES IN SCHEMA public", "INSERT ON charges"))
	says(t, "start", db.CheckStart(t.Context(), few))
	says(t, "some rights", db.Ready(t.Context(), few), "may not DELETE on idempotency_keys, INSERT on idempotency_keys, INSERT on operation_log, INSERT on outbox", "GRANT")
	none := pool(t, asRole(t, dbtest.New(t)))
	says(t, "none at all", db.CheckStart(t.Context(), none), "may not read paidonce_db_version", "GRANT SELECT")
	address := dbtest.New(t)
	execOn(t, address, "REVOKE USAGE ON SCHEMA public FROM PUBLIC")
	says(t, "no schema", db.CheckStart(t.Context(), pool(t, asRole(t, address))), "may use no schema", "GRANT USAGE")
}

// What other encodings lack is found out when a client sends it, after the charge.
func TestOtherEncodingsAreRefused(t *testing.T) {
	t.Parallel()
	for _, encoding := range []string{"LATIN1", "SQL_ASCII"} {
		t.Run(encoding, func(t *testing.T) {
			t.Parallel()
			address := parse(t, dbtest.NewEmpty(t))
			name := strings.TrimPrefix(address.Path, "/")
			name = name[:min(len(name), 50)] + "_" + strings.ToLower(encoding)
			admin := *address
			admin.Path = "/postgres"
			execOn(t, admin.String(), "CREATE DATABASE "+name+" TEMPLATE template0 ENCODING '"+encoding+"' LC_COLLATE 'C' LC_CTYPE 'C'")
			t.Cleanup(func() {
				conn, err := pgx.Connect(context.Background(), admin.String())
				if err != nil {
					t.Error(err)
					return
				}
				defer func() { _ = conn.Close(context.Background()) }()
				if _, err := conn.Exec(context.Background(), "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
					t.Error(err)
				}
			})
			address.Path = "/" + name
			err := db.Migrate(t.Context(), address.String(), db.MigrateOptions{})
			says(t, "migration", err, "encoding "+encoding, "UTF8", "CREATE DATABASE")
			says(t, "start", db.CheckStart(t.Context(), pool(t, address.String())), "encoding "+encoding)
		})
	}
}
