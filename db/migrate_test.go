package db_test

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"paidonce/db"
	"paidonce/internal/dbtest"
)

// embeddedFiles are this binary's migrations.
func embeddedFiles(t *testing.T) fstest.MapFS {
	t.Helper()
	files := fstest.MapFS{}
	entries, err := db.Migrations.ReadDir("migrations")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		text, err := fs.ReadFile(db.Migrations, "migrations/"+e.Name())
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = &fstest.MapFile{Data: text}
	}
	return files
}

// releasedLast is the last version that was recorded in goose's own table.
const releasedLast = 12

// releasedFiles are the first migrations as they were before they were rewritten to keep nobody
// waiting.
func releasedFiles(t *testing.T) fstest.MapFS {
	t.Helper()
	files := embeddedFiles(t)
	maps.DeleteFunc(files, func(name string, _ *fstest.MapFile) bool { return name > "00012_~" })
	rewritten := os.DirFS("testdata/released")
	entries, err := fs.ReadDir(rewritten, ".")
	if err != nil || len(entries) == 0 {
		t.Fatal(entries, err)
	}
	for _, e := range entries {
		text, err := fs.ReadFile(rewritten, e.Name())
		if err != nil || files[e.Name()] == nil || string(text) == string(files[e.Name()].Data) {
			t.Fatalf("%s is no other form of a migration: %v", e.Name(), err)
		}
		files[e.Name()] = &fstest.MapFile{Data: text}
	}
	return files
}

// release brings a database to a version as a release without a version table of its own did: with
// goose, in goose's table.
func release(t *testing.T, url string, files fs.FS, to int64) {
	t.Helper()
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	conn := stdlib.OpenDB(*cfg)
	defer func() { _ = conn.Close() }()
	p, err := goose.NewProvider(goose.DialectPostgres, conn, files)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.UpTo(t.Context(), to); err != nil {
		t.Fatalf("a release at version %d: %v", to, err)
	}
}

func migrate(t *testing.T, url string) (applied []string) {
	t.Helper()
	err := db.Migrate(t.Context(), url, db.MigrateOptions{Applied: func(name string) { applied = append(applied, name) }})
	if err != nil {
		t.Fatal(err)
	}
	return applied
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func exec(t *testing.T, conn *pgx.Conn, sql ...string) {
	t.Helper()
	for _, s := range sql {
		if _, err := conn.Exec(t.Context(), s, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatalf("%s: %v", s[:min(len(s), 200)], err)
		}
	}
}

func one[T any](t *testing.T, conn *pgx.Conn, sql string, args ...any) (v T) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), sql, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// schemaOf lists all that a schema has: columns in their order, constraints, indexes, comments.
func schemaOf(t *testing.T, conn *pgx.Conn) []string {
	t.Helper()
	rows, err := conn.Query(t.Context(), `
		SELECT 'column ' || c.relname || ' ' || a.attnum || ' ' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod) || ' ' || a.attnotnull || ' ' || a.attidentity::text
			|| ' ' || coalesce(pg_get_expr(d.adbin, d.adrelid), '') || ' ' || coalesce((SELECT collname FROM pg_collation WHERE oid = a.attcollation), '')
			|| ' ' || coalesce(col_description(c.oid, a.attnum), '')
		FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
		LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
		WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND c.relname <> 'goose_db_version'
		UNION ALL SELECT 'constraint ' || conrelid::regclass || ' ' || conname || ' ' || convalidated || ' ' || pg_get_constraintdef(oid)
		FROM pg_constraint WHERE connamespace = 'public'::regnamespace AND conrelid::regclass::text <> 'goose_db_version'
		UNION ALL SELECT 'index ' || pg_get_indexdef(indexrelid) || ' ' || indisvalid || ' ' || indisready
		FROM pg_index WHERE indrelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relname <> 'goose_db_version')
		UNION ALL SELECT 'table ' || relname || ' ' || coalesce(obj_description(oid, 'pg_class'), '') FROM pg_class
		WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND relname <> 'goose_db_version'
		ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// From whatever version an installation comes, it ends at the same schema, and what was applied is
// recorded once, with its time.
func TestEveryReleaseEndsAtTheSameSchema(t *testing.T) {
	t.Parallel()
	fresh := dbtest.NewEmpty(t)
	all := migrate(t, fresh)
	want := schemaOf(t, connect(t, fresh))
	if len(want) < 200 {
		t.Fatalf("only %d things in a schema", len(want))
	}
	files := releasedFiles(t)
	for version := int64(1); version <= releasedLast; version++ {
		url := dbtest.NewEmpty(t)
		release(t, url, files, version)
		conn := connect(t, url)
		exec(t, conn, `UPDATE goose_db_version SET tstamp = '2026-01-02 03:04:05'`)
		applied := migrate(t, url)
		if want := all[version:]; !slices.Equal(applied, want) {
			t.Errorf("from version %d: applied %v, want %v", version, applied, want)
		}
		got := schemaOf(t, conn)
		for _, line := range got {
			if !slices.Contains(want, line) {
				t.Errorf("from version %d there is %s", version, line)
			}
		}
		for _, line := range want {
			if !slices.Contains(got, line) {
				t.Errorf("from version %d there is no %s", version, line)
			}
		}
		if n := one[int64](t, conn, `SELECT count(*) FROM paidonce_db_version WHERE tstamp = '2026-01-02 03:04:05'`); n != version {
			t.Errorf("from version %d: %d versions have the time at which they were applied", version, n)
		}
		if n := one[int](t, conn, `SELECT count(DISTINCT version_id) * 1000 + count(*) FROM paidonce_db_version`); n != (len(all)+1)*1001 {
			t.Errorf("from version %d: %d rows of versions and distinct ones, want %d of each", version, n, len(all)+1)
		}
		// Servers of that release ask this, and go on.
		if n := one[int64](t, conn, `SELECT max(version_id) FROM goose_db_version WHERE is_applied`); n != version {
			t.Errorf("goose's table is at version %d, was at %d", n, version)
		}
		if again := migrate(t, url); len(again) != 0 {
			t.Errorf("once more: applied %v", again)
		}
	}
}

// Version 8 counts, without keeping anybody waiting, what version 7 told, and run again it changes
// nothing.
func TestCountingInSteps(t *testing.T) {
	t.Parallel()
	url := dbtest.NewEmpty(t)
	release(t, url, releasedFiles(t), 7)
	conn := connect(t, url)
	exec(t, conn, `INSERT INTO charges (id, account_id, operation_id, amount, currency, capture, livemode) SELECT 'ch_' || n, 'a', 'op_' || n, 1, 'usd', true, false FROM generate_series(1, 5000) n`,
		`INSERT INTO refunds (id, account_id, charge_id, operation_id, amount, currency) SELECT 're_' || n, 'a', 'ch_' || n, 'ro_' || n, 1, 'usd' FROM generate_series(1, 50) n`,
		`INSERT INTO outbox (event_id, account_id, type, operation_id, object_id, payload) SELECT 'e' || n || t, 'a', t, 'op_' || n, 'ch_' || n, '{}'
			FROM generate_series(1, 5000) n, unnest(ARRAY['one', 'two', 'three']) t WHERE n % 3 >= length(t) - 3`,
		`INSERT INTO outbox (event_id, account_id, type, operation_id, object_id, payload) SELECT 'r' || n, 'a', 'refund', 'ro_' || n, 're_' || n, '{}' FROM generate_series(1, 50) n`)
	migrate(t, url)
	const wrong = `SELECT count(*) FROM (SELECT id, events FROM charges UNION ALL SELECT id, events FROM refunds) x
		LEFT JOIN (SELECT object_id, count(*) AS told FROM outbox GROUP BY 1) o ON o.object_id = x.id WHERE x.events <> coalesce(o.told, 0)`
	if n := one[int](t, conn, wrong); n != 0 || one[int](t, conn, `SELECT count(*) FROM charges WHERE events > 1`) == 0 {
		t.Errorf("%d objects have a wrong number of events", n)
	}
	exec(t, conn, `UPDATE charges SET events = 10 WHERE id = 'ch_7'`, `UPDATE charges SET events = 0 WHERE id = 'ch_8'`, `DELETE FROM paidonce_db_version WHERE version_id = 8`)
	migrate(t, url)
	if one[int](t, conn, `SELECT events FROM charges WHERE id = 'ch_7'`) != 10 || one[int](t, conn, wrong) != 1 {
		t.Error("counted again, a number went back, or was left behind")
	}
}

// A build of an index that was killed leaves one behind that no statement uses.
func TestIndexLeftBehindIsBuiltAgain(t *testing.T) {
	t.Parallel()
	url := dbtest.NewEmpty(t)
	release(t, url, releasedFiles(t), 9)
	conn := connect(t, url)
	holder := connect(t, url)
	exec(t, holder, `BEGIN`, `INSERT INTO provider_events (id, type, object_id, livemode, payload) VALUES ('e', 't', 'o', false, '{}')`)
	// The first build waits for the holder, and is killed there.
	first := make(chan error, 1)
	go func() { first <- db.Migrate(context.Background(), url, db.MigrateOptions{}) }()
	const building = `SELECT coalesce(max(pid), 0) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'CREATE INDEX CONCURRENTLY provider_events_parked%' AND wait_event_type = 'Lock'`
	deadline := time.Now().Add(time.Minute)
	for one[int](t, conn, building) == 0 && time.Now().Before(deadline) {
		time.Sleep(10 * time.Millisecond)
	}
	exec(t, conn, `SELECT pg_terminate_backend((`+building+`))`)
	if err := <-first; err == nil {
		t.Fatal("a killed build is no error")
	}
	const valid = `SELECT indisvalid FROM pg_index WHERE indexrelid = 'provider_events_parked'::regclass`
	if one[bool](t, conn, valid) {
		t.Fatal("nothing was left behind: this test tries nothing")
	}
	exec(t, holder, `COMMIT`)
	migrate(t, url)
	if !one[bool](t, conn, valid) {
		t.Error("the index is still not valid")
	}
}

// While one instance tries again and again, the others wait: each try keeps requests waiting.
func TestOneInstanceTries(t *testing.T) {
	t.Parallel()
	files := embeddedFiles(t)
	files["99999_next.sql"] = &fstest.MapFile{Data: []byte("-- +goose Up\nALTER TABLE charges ADD COLUMN next integer;\n")}
	url := dbtest.New(t)
	holder := connect(t, url)
	exec(t, holder, `BEGIN`, `SELECT count(*) FROM charges`)
	told, ended := make(chan int, 1000), make(chan error, 3)
	for i := range cap(ended) {
		go func() {
			ended <- db.Migrate(context.Background(), url, db.MigrateOptions{
				Files: files, LockTimeout: 50 * time.Millisecond, Waiting: func(string) { told <- i },
			})
		}()
	}
	first := -1
	for range 30 { // some seconds, in which the others ask for the lock many times
		select {
		case i := <-told:
			if first >= 0 && i != first {
				t.Fatal("two instances try")
			}
			first = i
		case <-time.After(time.Minute):
			t.Fatal("nobody lets others through")
		}
	}
	exec(t, holder, `COMMIT`)
	for range cap(ended) {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// Whoever waits for a table keeps everybody waiting who comes after it: so it waits briefly, tells
// so, and gives up at last.
func TestMigrateGivesUp(t *testing.T) {
	t.Parallel()
	files := embeddedFiles(t)
	files["99999_next.sql"] = &fstest.MapFile{Data: []byte("-- +goose Up\nALTER TABLE charges ADD COLUMN next integer;\n-- +goose Down\n")}
	url := dbtest.New(t)
	holder, conn := connect(t, url), connect(t, url)
	exec(t, holder, `SET application_name = 'the nightly dump'`, `BEGIN`, `SELECT count(*) FROM charges`)
	var told []string
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := db.Migrate(ctx, url, db.MigrateOptions{
		Files: files, LockTimeout: 50 * time.Millisecond, MaxWait: 300 * time.Millisecond, Waiting: func(text string) { told = append(told, text) },
	})
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || pg.Code != "55P03" || !strings.Contains(err.Error(), "the nightly dump") || !strings.Contains(err.Error(), "paidonce migrate") {
		t.Errorf("%v, want an error that names who is in the way and says what to do", err)
	}
	if len(told) == 0 || !strings.Contains(told[0], "99999_next.sql") {
		t.Errorf("told %q, want why it tries again", told)
	}
	exec(t, holder, `COMMIT`)
	if err := db.Migrate(t.Context(), url, db.MigrateOptions{Files: files}); err != nil {
		t.Error(err)
	}
	if one[int](t, conn, `SELECT count(*) FROM pg_attribute WHERE attrelid = 'charges'::regclass AND attname = 'next'`) != 1 {
		t.Error("it was not applied after all")
	}
}
