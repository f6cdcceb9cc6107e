package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib" // goose speaks database/sql
	"github.com/pressly/goose/v3"

	"paidonce/internal/devpg"
)

// templateDB is migrated, holds an account, its key and some settled charges, and is copied for
// each cell: all systems begin each cell with the same rows, statistics and plans, whoever wrote
// more before.
const templateDB = "bench_template"

// beforeDB is the same as the other binary has it; templateDB is then made of it.
const beforeDB = "bench_before"

// leanDB is the same for those that write into the lean schema.
const leanDB = "bench_lean"

// postgres is the private server of a run.
type postgres struct {
	server  *devpg.Server
	admin   *pgx.Conn
	pid     int // of the server process, the parent of all others
	version string
	owner   owner
	apiKey  string
}

func startPostgres(ctx context.Context, dir string, log io.Writer) (*postgres, error) {
	server, err := devpg.Start(ctx, devpg.Options{
		Dir: dir, Fast: false, Log: slog.New(slog.NewTextHandler(log, nil)),
	})
	if err != nil {
		return nil, err
	}
	p := &postgres{server: server}
	if p.admin, err = pgx.Connect(ctx, server.URL("postgres")); err != nil {
		return p, err
	}
	var backend int
	var fsync, syncCommit string
	err = p.admin.QueryRow(ctx,
		`SELECT pg_backend_pid(), version(), current_setting('fsync'), current_setting('synchronous_commit')`).
		Scan(&backend, &p.version, &fsync, &syncCommit)
	if err != nil {
		return p, err
	}
	if fsync != "on" || syncCommit != "on" {
		return p, errors.New("the server does not wait for the disk: figures would mean nothing")
	}
	if s, ok := readStat(backend); ok {
		p.pid = s.ppid
	}
	return p, nil
}

// delayCommits makes each commit wait before it is written to the disk, with those that come
// meanwhile.
func (p *postgres) delayCommits(ctx context.Context, by time.Duration) error {
	if by == 0 {
		return nil
	}
	for _, q := range []string{
		fmt.Sprintf("ALTER SYSTEM SET commit_delay = %d", by.Microseconds()), "ALTER SYSTEM SET commit_siblings = 0",
		"SELECT pg_reload_conf()",
	} {
		if _, err := p.admin.Exec(ctx, q); err != nil {
			return err
		}
	}
	return nil
}

func (p *postgres) stop() {
	if p == nil {
		return
	}
	if p.admin != nil {
		_ = p.admin.Close(context.Background())
	}
	p.server.Stop()
}

// settings names what differs from PostgreSQL's defaults and could matter.
func (p *postgres) settings(ctx context.Context) (string, error) {
	rows, err := p.admin.Query(ctx, `SELECT name || '=' || setting FROM pg_settings
		WHERE source NOT IN ('default', 'override', 'client') AND boot_val IS DISTINCT FROM setting
		AND category NOT LIKE 'Reporting%' AND category NOT LIKE 'Client Connection%' AND category NOT LIKE 'Preset%'
		AND name NOT IN ('port', 'unix_socket_directories', 'listen_addresses', 'config_file', 'hba_file', 'ident_file') ORDER BY name`)
	if err != nil {
		return "", err
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return strings.Join(list, " "), err
}

// openToFill connects for the rows that are there beforehand, which need not wait for the disk.
func openToFill(ctx context.Context, url string) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	cfg.ConnConfig.RuntimeParams["synchronous_commit"] = "off"
	cfg.MaxConns = 8
	return pgxpool.NewWithConfig(ctx, cfg)
}

// growWAL makes the server own some log files that it writes over and over, as one does that has
// run for a while. Making a new one takes tens of ms, which would be the p99 of whoever is measured
// first.
func (p *postgres) growWAL(ctx context.Context, files int) error {
	for range files {
		if _, err := p.admin.Exec(ctx,
			"SELECT pg_logical_emit_message(false, 'bench', repeat('x', 16000000))"); err != nil {
			return err
		}
	}
	_, err := p.admin.Exec(ctx, "CHECKPOINT")
	return err
}

// migrateFiles is for a run without the product.
func migrateFiles(ctx context.Context, url string) error {
	db, err := sql.Open("pgx", url)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	m, err := goose.NewProvider(goose.DialectPostgres, db, os.DirFS("db/migrations"))
	if err != nil {
		return fmt.Errorf("run it in the repository's root: %w", err)
	}
	_, err = m.Up(ctx)
	return err
}

// runProduct runs a command of the product and returns its output.
func runProduct(ctx context.Context, url, binary string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, binary, args...) //nolint:gosec // the binary that we built
	cmd.Env = append(os.Environ(), "DATABASE_URL="+url, "STRIPE_API_KEY=sk_test_x")
	out, err := cmd.Output()
	if e := (*exec.ExitError)(nil); errors.As(err, &e) {
		return out, fmt.Errorf("paidonce %s: %w: %s", strings.Join(args, " "), err,
			strings.TrimSpace(string(e.Stderr)))
	}
	return out, err
}

func (p *postgres) makeOwner(ctx context.Context, db *pgxpool.Pool, url, binary string) error {
	if binary == "" {
		p.owner = owner{"acct_bench", "key_bench"}
		_, err := db.Exec(ctx,
			`WITH a AS (INSERT INTO accounts (id, name) VALUES ('acct_bench', 'bench'))
			INSERT INTO api_keys (id, account_id, key_hash, key_hint) VALUES ('key_bench', 'acct_bench', sha256('bench'), 'ench')`)
		return err
	}
	out, err := runProduct(ctx, url, binary, "apikeys", "create", "--account", "bench", "--json")
	if err != nil {
		return err
	}
	var made struct {
		ID        string `json:"id"`
		AccountID string `json:"account_id"`
		APIKey    string `json:"api_key"`
	}
	if err := json.Unmarshal(out, &made); err != nil {
		return fmt.Errorf("apikeys create --json said %q: %w", out, err)
	}
	p.owner, p.apiKey = owner{made.AccountID, made.ID}, made.APIKey
	return nil
}

// filledMark begins the ids of rows that are there beforehand; it sorts before the ids of all
// others.
const filledMark = "000f"

// fill writes settled charges, so that tables are no longer so small that plans for them are unlike
// those of real ones.
func fill(ctx context.Context, db *pgxpool.Pool, s *shape, o owner, n int) error {
	claim, settle := numbered(s.claim), numbered(s.settle)
	var all sync.WaitGroup
	const writers = 8
	failed := make(chan error, writers)
	for w := range writers {
		all.Go(func() {
			for i := w; i < n; i += writers {
				v := sampleRow(o)
				id := fmt.Sprintf("%s%06d%s", filledMark, i, rand.Text()[:16])
				for name, prefix := range map[string]string{"key": "filled-", "operation_id": "op_",
					"charge_id": "ch_", "lease_token": "",
					"request_id": "req_", "provider_id": "ch_3Nf", "event_id": "evt_"} {
					v[name] = prefix + id
				}
				if _, err := db.Exec(ctx, claim.sql, claim.args(v)...); err != nil {
					failed <- err
					return
				}
				if _, err := db.Exec(ctx, settle.sql, settle.args(v)...); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	all.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// fresh copies the template to a new database. The checkpoint comes first: pages that were copied
// after it need not be written to the log as a whole when they are first changed, so a cell's log
// is that of its charges, not of its start.
func (p *postgres) fresh(ctx context.Context, template, name string) (url string, err error) {
	for _, q := range []string{
		"DROP DATABASE IF EXISTS " + name + " WITH (FORCE)", "CHECKPOINT",
		"CREATE DATABASE " + name + " TEMPLATE " + template,
	} {
		if _, err := p.admin.Exec(ctx, q); err != nil {
			return "", err
		}
	}
	return p.server.URL(name), nil
}

func (p *postgres) drop(name string) {
	_, _ = p.admin.Exec(context.Background(), "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)")
}

// written is how many bytes of log the server wrote so far, and how many transactions had
// something to write: each waited for the disk when it was committed, alone or with others.
func (p *postgres) written(ctx context.Context) (bytes, transactions int64, err error) {
	err = p.admin.QueryRow(ctx, `SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint,
		pg_snapshot_xmax(pg_current_snapshot())::text::bigint`).Scan(&bytes, &transactions)
	return bytes, transactions, err
}

// connections is how many clients are connected to a database, and how many of them hold a
// transaction open idly.
func (p *postgres) connections(ctx context.Context, name string) (all, idleInTx int, err error) {
	err = p.admin.QueryRow(ctx,
		`SELECT count(*), count(*) FILTER (WHERE state LIKE 'idle in transaction%')
		FROM pg_stat_activity WHERE datname = $1 AND backend_type = 'client backend'`, name).Scan(&all, &idleInTx)
	return all, idleInTx, err
}

// stored is what a cell left in its database, the rows that were there beforehand left out.
type stored struct {
	charges               int64
	params, answer, event float64 // mean bytes
}

// stored counts, and checks that every charge is whole.
func (p *postgres) stored(ctx context.Context, c cell, name string) (s stored, err error) {
	conn, err := pgx.Connect(ctx, p.server.URL(name))
	if err != nil {
		return s, err
	}
	defer func() { _ = conn.Close(ctx) }()
	var unsettled, keys, events int64
	err = conn.QueryRow(ctx, c.System.shape().stored, "ch_"+filledMark+"%").Scan(&s.charges, &unsettled, &keys,
		&s.params, &s.answer, &events, &s.event)
	if err == nil && (unsettled != 0 || keys != s.charges ||
		events != s.charges*c.events()) {
		err = fmt.Errorf("%d charges, of these %d unsettled, %d finished keys, %d events",
			s.charges, unsettled, keys, events)
	}
	return s, err
}

// findPgbench looks where PostgreSQL's programs usually are.
func findPgbench(ctx context.Context) (string, error) {
	if p, err := exec.LookPath("pgbench"); err == nil {
		return p, nil
	}
	dirs := []string{os.Getenv("PG_BINDIR")}
	if out, err := exec.CommandContext(ctx, "pg_config", "--bindir").Output(); err == nil {
		dirs = append(dirs, strings.TrimSpace(string(out)))
	}
	for _, glob := range []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin",
		"/opt/homebrew/opt/postgresql*/bin", "/usr/local/opt/postgresql*/bin"} {
		found, _ := filepath.Glob(glob)
		dirs = append(dirs, found...)
	}
	for i := len(dirs) - 1; i >= 0; i-- {
		if p, err := exec.LookPath(filepath.Join(dirs[i], "pgbench")); dirs[i] != "" && err == nil {
			return p, nil
		}
	}
	return "", errors.New("no pgbench on this machine: install PostgreSQL's client programs, or " +
		"leave F out with --systems B,P")
}
