package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"paidonce/api/apitest"
)

// bouncer is a PgBouncer in transaction mode before the world's database, with fewer connections
// than its clients have.
type bouncer struct {
	*proc
	dbURL string // through it
	admin string
}

// newBouncer starts one, or skips the test where there is none.
func newBouncer(t *testing.T, w *world, servers int) *bouncer {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		t.Skip("there is no pgbouncer here")
	}
	u, err := url.Parse(w.dbURL)
	if err != nil {
		t.Fatal(err)
	}
	// Not t.TempDir: its parents are closed to the user that it runs as when we are root.
	dir, err := os.MkdirTemp("", "paidonce-pgbouncer-") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	port := freePort(t)
	users := filepath.Join(dir, "users")
	password, _ := u.User.Password()
	settings := fmt.Sprintf(`[databases]
* = host=%s port=%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %s
unix_socket_dir =
auth_type = trust
auth_file = %s
admin_users = postgres
pool_mode = transaction
default_pool_size = %d
max_client_conn = 200
`, u.Hostname(), u.Port(), port, users, servers)
	ini := filepath.Join(dir, "pgbouncer.ini")
	if err := errors.Join(os.Chmod(dir, 0o755),
		os.WriteFile(users, fmt.Appendf(nil, "%q %q", u.User.Username(), password), 0o644),
		os.WriteFile(ini, []byte(settings), 0o644)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, ini)
	cmd.SysProcAttr = ownGroup()
	if os.Geteuid() == 0 { // it refuses to be root
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	}
	cmd.Dir = "/"
	b := &bouncer{proc: w.start("pgbouncer", cmd)}
	b.await(`process up`)
	u.Host = "127.0.0.1:" + port
	b.dbURL, b.admin = u.String(), withDatabase(t, u.String(), "pgbouncer")
	return b
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// poolerMode is what operators are told to add; pgx takes it out of the url.
const poolerMode = "&default_query_exec_mode=cache_describe"

// clients counts the pooler's clients that hold or wait for a connection.
func (b *bouncer) clients(t *testing.T) (n int) {
	t.Helper()
	ctx := context.Background()
	cfg, err := pgx.ParseConfig(b.admin)
	if err != nil {
		t.Fatal(err)
	}
	cfg.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol // all that its console speaks
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	rows, err := conn.Query(ctx, "SHOW POOLS")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		values, err := rows.Values()
		if err != nil {
			t.Fatal(err)
		}
		for i, f := range rows.FieldDescriptions() {
			var v int
			if _, err := fmt.Sscan(fmt.Sprint(values[i]), &v); err == nil &&
				values[0] != "pgbouncer" && (f.Name == "cl_active" || f.Name == "cl_waiting") {
				n += v
			}
		}
	}
	return n
}

// Two instances and all jobs behind PgBouncer in transaction mode, half of the clients hanging up.
func TestBehindPgBouncer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "PAIDONCE_DB_MAX_CONNS=8", "PAIDONCE_PROVIDER_TIMEOUT=10s",
		"PAIDONCE_STALE_AFTER=30s")
	b := newBouncer(t, w, 3)
	through := "DATABASE_URL=" + b.dbURL + poolerMode
	instances := []*proc{w.serve(through, "PAIDONCE_WORKERS=reconcile,sweep,inbox"),
		w.serve(through)}
	clients := []*apitest.Client{w.client(instances[0]), w.client(instances[1])}
	stop := make(chan struct{})
	jobs := make(chan error, 1)
	go func() { jobs <- w.jobs(through, stop) }()
	const many, callers = 500, 16
	var next atomic.Int64
	most := 0
	together(callers, func(caller int) {
		for i := next.Add(1); i <= many; i = next.Add(1) {
			key := fmt.Sprint("k", i)
			if i%2 == 0 {
				abort(clients[i%2], key)
			}
			if a, _ := until(t, func() *apitest.Client {
				return clients[i%2]
			}, key, twenty); a.Code != http.StatusCreated {
				t.Errorf("%s: got %d %s, want 201", key, a.Code, a.Body)
			}
			if caller == 0 {
				most = max(most, b.clients(t))
			}
		}
	})
	close(stop)
	if err := <-jobs; err != nil {
		t.Error(err)
	}
	const pools = 8 * 2 // of the instances; jobs have one each
	if most > pools+3*8 {
		t.Errorf("%d clients of the pooler hold or wait for a connection", most)
	}
	t.Logf("at most %d clients of the pooler held or waited for one of its 3 connections", most)
	w.sim.mustHave(t, many)
	w.checkBooks()
	for _, p := range w.procs {
		for line := range strings.SplitSeq(p.output(), "\n") {
			// The bare digits are found in times of day, too.
			if strings.Contains(line, "SQLSTATE 42P05") || strings.Contains(line, "SQLSTATE 26000") ||
				strings.Contains(line, "prepared statement") {
				t.Errorf("%s met a prepared statement of another session: %s", p.name, line)
			}
		}
	}
}

// jobs runs what cron would, over and over.
func (w *world) jobs(env string, stop <-chan struct{}) error {
	for {
		for _, args := range [][]string{{"reconcile"}, {"sweep"}, {"audit", "--since", "1h"},
			{"ops", "list"}, {"apikeys", "list"}} {
			select {
			case <-stop:
				return nil
			default:
			}
			cmd := w.command([]string{env}, args...)
			out, err := cmd.CombinedOutput()
			// An audit beside charges that are being made may find one that is not settled yet:
			// exit code 3.
			if code := cmd.ProcessState.ExitCode(); err != nil &&
				(args[0] != "audit" || code != 3) {
				return fmt.Errorf("%v: %w\n%s", args, err, out)
			}
		}
	}
}

// abort sends a charge and hangs up before the answer can have come.
func abort(c *apitest.Client, key string) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Millisecond)
	defer cancel()
	req := c.Request(http.MethodPost, "/v1/charges", twenty, "Content-Type", "application/json",
		"Idempotency-Key", key, "Authorization", "Bearer "+c.APIKey).WithContext(ctx)
	if res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req); err == nil {
		_ = res.Body.Close()
	}
}

// Without the setting every command that needs the database says what is missing, rather than
// failing now and then later.
func TestPgBouncerWithoutTheSetting(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := newBouncer(t, w, 2)
	for _, args := range [][]string{{"serve"}, {"reconcile"}} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		cmd := w.command([]string{"DATABASE_URL=" + b.dbURL}, args...)
		done := exec.CommandContext(ctx, cmd.Path, cmd.Args[1:]...)
		done.Env = cmd.Env
		out, err := done.CombinedOutput()
		cancel()
		if err == nil || !strings.Contains(string(out), "default_query_exec_mode=cache_describe") {
			t.Errorf("%v: %v\n%s\nwant that it names the setting", args, err, out)
		}
	}
	if r := w.run([]string{"DATABASE_URL=" + b.dbURL + poolerMode}, "reconcile"); r.code != 0 {
		t.Errorf("with the setting: %d %s", r.code, r.stderr)
	}
}
