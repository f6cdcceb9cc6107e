package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"

	"paidonce/api/apitest"
	"paidonce/db"
)

// hold keeps a transaction open that has read tables, as a dump or a report does, until it is let
// go.
func hold(t *testing.T, url string, tables ...string) (letGo func()) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(ctx) })
	statements := []string{"BEGIN ISOLATION LEVEL REPEATABLE READ"}
	for _, table := range tables {
		statements = append(statements, "SELECT count(*) FROM "+table)
	}
	for _, s := range statements {
		if _, err := conn.Exec(ctx, s); err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		if _, err := conn.Exec(ctx, "COMMIT"); err != nil {
			t.Error(err)
		}
	}
}

// unharmed reports whether no request had to be sent again.
func (l *load) unharmed(t *testing.T) {
	t.Helper()
	if resends, unavailable := l.mostResends.Load(), l.unavailable.Load(); resends > 0 ||
		unavailable > 0 {
		t.Errorf("%d answers were 503, and a request was sent again %d times", unavailable, resends)
	}
}

// A deployment during the nightly dump. This binary is the release before, and the
// migrations of the next one are made up: one wants a table for itself, one builds an index. The
// migration waits for the dump, and nobody waits for the migration.
func TestRequestsGoOnDuringAMigration(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client(w.serve())
	l := w.load(3, func() *apitest.Client { return c })
	l.progress(t, 6)
	files := fstest.MapFS{
		"99998_column.sql": {
			Data: []byte("-- +goose Up\nALTER TABLE charges ADD COLUMN next integer;\n"),
		},
		"99999_index.sql": {
			// As real ones do it: a wait that ends early would leave an index behind.
			Data: []byte("-- +goose NO TRANSACTION\n-- +goose Up\nSET lock_timeout = '5min';\n" +
				"DROP INDEX CONCURRENTLY IF EXISTS next;\n" +
				"CREATE INDEX CONCURRENTLY next ON charges (next);\n"),
		},
	}
	embedded, err := fs.Sub(db.Migrations, "migrations")
	if err != nil {
		t.Fatal(err)
	}
	known, err := fs.Glob(embedded, "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range known {
		text, err := fs.ReadFile(embedded, name)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = &fstest.MapFile{Data: text}
	}
	letGo, letSnapshotGo := hold(t, w.dbURL, "charges"), hold(t, w.dbURL, "accounts")
	waits, ended := make(chan string, 100), make(chan error, 1)
	go func() {
		ended <- db.Migrate(context.Background(), w.dbURL, db.MigrateOptions{
			Files: files, LockTimeout: time.Second, Waiting: func(text string) { waits <- text },
		})
	}()
	for range 2 {
		select {
		case text := <-waits:
			if !strings.Contains(text, "99998_column.sql") {
				t.Errorf("it waits with %s", text)
			}
		case <-time.After(patience):
			t.Fatal("whoever migrates does not let others through")
		}
		l.progress(t, 12)
	}
	if a := c.Get("/v1/charges"); a.Code != http.StatusOK {
		t.Errorf("a read meanwhile: %d %s", a.Code, a.Body)
	}
	letGo()
	eventually(t, "the index waits for whoever may still see old rows", func() bool {
		return querySQL[int](t, w.dbURL,
			`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'CREATE INDEX CONCURRENTLY next%' AND wait_event_type = 'Lock'`) == 1
	})
	l.progress(t, 12)
	letSnapshotGo()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	l.progress(t, 6)
	l.end()
	l.unharmed(t)
	w.checkBooks()
}

// upgradeHold is how long a dump holds a table in [TestUpgradeFromEachVersion]: longer than any
// time-out of a client or our own.
const upgradeHold = 40 * time.Second

// Every migration from the first on, with a million rows, while the server of the version before
// serves and a dump holds a table. `make upgrade`; it takes the servers from git.
func TestUpgradeFromEachVersion(t *testing.T) {
	rows := os.Getenv("PAIDONCE_UPGRADE_ROWS")
	if rows == "" {
		t.Skip("make upgrade runs it: it builds a server of each version")
	}
	known, err := filepath.Glob("../db/migrations/*.sql")
	if err != nil || len(known) < 12 {
		t.Fatal(known, err)
	}
	only := os.Getenv("PAIDONCE_UPGRADE_FROM")
	for version := 1; version < len(known); version++ {
		if only != "" && only != fmt.Sprint(version) {
			continue
		}
		t.Run(fmt.Sprint("from ", version), func(t *testing.T) {
			upgradeFrom(t, filepath.Base(known[version]), rows)
		})
	}
}

func upgradeFrom(t *testing.T, next, rows string) {
	w := empty(t)
	t.Cleanup(func() { // a few gigabytes
		name := querySQL[string](t, w.dbURL, "SELECT current_database()")
		execSQL(t, withDatabase(t, w.dbURL, "postgres"), "DROP DATABASE "+name+" WITH (FORCE)")
	})
	w.sim = w.startSim()
	w.env = append(w.env, "STRIPE_API_BASE="+w.sim.url)
	before := &world{
		t: t, dbURL: w.dbURL, env: w.env, sim: w.sim, names: map[string]int{},
		program: serverBefore(t, next),
	}
	before.must("migrate")
	w.apiKey = before.newKey("shop").APIKey
	fill(t, w.dbURL, rows)
	p := before.serve()
	c := w.client(p)
	// it need not answer as today's description has it
	c.HTTP = &http.Client{Transport: http.DefaultTransport, Timeout: 2 * patience}
	l := w.load(3, func() *apitest.Client { return c })
	l.progress(t, 6)
	letGo := hold(t, w.dbURL, "charges", "idempotency_keys", "outbox")
	var gone atomic.Bool
	time.AfterFunc(upgradeHold, func() { gone.Store(true); letGo() })
	out, err := w.command(nil, "migrate").CombinedOutput()
	t.Logf("%s", out)
	if err != nil || !strings.Contains(string(out), "applied "+next) || !gone.Load() {
		t.Errorf("%v; want it to wait for the dump (waited: %t), and to be done", err, gone.Load())
	}
	l.progress(t, 6)
	if a := c.Get("/readyz"); a.Code != http.StatusOK {
		t.Errorf("/readyz of the release before: %d", a.Code)
	}
	l.end()
	l.unharmed(t)
}

// serverBefore builds the server as it was before a migration came.
func serverBefore(t *testing.T, migration string) string {
	t.Helper()
	git := func(args ...string) []byte {
		out, err := exec.Command("git", append([]string{"-C", ".."}, args...)...).Output()
		if err != nil {
			t.Skip("no history of the migrations here: ", err)
		}
		return out
	}
	commit := strings.TrimSpace(string(git("log", "--diff-filter=A", "--format=%H", "--",
		"db/migrations/"+migration)))
	if commit == "" {
		t.Skip(migration, " is not committed")
	}
	dir := t.TempDir()
	unpack := exec.Command("tar", "-x", "-C", dir)
	unpack.Stdin = bytes.NewReader(git("archive", commit+"^"))
	if out, err := unpack.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	build := exec.Command("go", "build", "-o", "before", "./cmd/paidonce")
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return filepath.Join(dir, "before")
}

// fill puts rows into the large tables, as far as they are there.
func fill(t *testing.T, url, rows string) {
	t.Helper()
	execSQL(t, url, strings.ReplaceAll(`DO $$ BEGIN
		INSERT INTO charges (id, account_id, operation_id, amount, currency, capture, livemode)
			SELECT 'ch_' || n, 'a', 'op_' || n, 1, 'usd', true, false FROM generate_series(1, ROWS) n;
		INSERT INTO idempotency_keys (account_id, key, operation_id, kind, hash_version, request_hash, request_id, params, resource_id, recovery_point, status,
				response_code, response_headers, response_body, finished_at, expires_at)
			SELECT 'a', 'k' || n, 'op_' || n, 'charge.create', 1, decode(repeat('00', 32), 'hex'), 'r', '{}', 'ch_' || n, 'finished', 'completed', 201, '{}', '{}', now(), now()
			FROM generate_series(1, ROWS) n;
		INSERT INTO outbox (event_id, account_id, type, operation_id, object_id, payload)
			SELECT 'evt_' || n, 'a', 'charge.succeeded', 'op_' || n, 'ch_' || n, '{}' FROM generate_series(1, ROWS) n;
		IF to_regclass('operation_log') IS NOT NULL THEN
			INSERT INTO operation_log (operation_id, event, attempt, actor) SELECT 'op_' || n, 'resumed', 2, 'request' FROM generate_series(1, ROWS) n;
		END IF;
		IF to_regclass('provider_events') IS NOT NULL THEN
			INSERT INTO provider_events (id, type, object_id, livemode, payload, processed_at, result, next_run_at)
				SELECT 'evt_' || n, 'charge.succeeded', 'ch', false, '{}', now(), 'nothing new', NULL FROM generate_series(1, ROWS) n;
		END IF;
	END $$`, "ROWS", rows))
}
