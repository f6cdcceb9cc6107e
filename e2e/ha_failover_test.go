package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"paidonce/api/apitest"
	"paidonce/internal/dbtest"
)

// pgPrograms finds the programs of the server's own version, and who may run them, or skips the
// test.
func pgPrograms(t *testing.T, dbURL string) (dir string, as *syscall.SysProcAttr) {
	t.Helper()
	major := querySQL[int](t, dbURL, "SELECT current_setting('server_version_num')::int / 10000")
	candidates := []string{os.Getenv("PG_BINDIR"), fmt.Sprintf("/usr/lib/postgresql/%d/bin", major)}
	if p, err := exec.LookPath("pg_basebackup"); err == nil {
		candidates = append(candidates, filepath.Dir(p))
	}
	for _, c := range candidates {
		if _, err := os.Stat(filepath.Join(c, "pg_basebackup")); c != "" && err == nil {
			dir = c
			break
		}
	}
	if dir == "" {
		t.Skip("there is no pg_basebackup here")
	}
	as = ownGroup()
	data, err := os.Stat(querySQL[string](t, dbURL, "SHOW data_directory"))
	if err != nil {
		t.Fatal(err)
	}
	if owner, ok := data.Sys().(*syscall.Stat_t); ok && os.Geteuid() == 0 {
		as.Credential = &syscall.Credential{Uid: owner.Uid, Gid: owner.Gid}
	}
	return dir, as
}

// startStandby makes a synchronous standby of the server and returns its address.
func startStandby(t *testing.T, primary string) string {
	t.Helper()
	programs, as := pgPrograms(t, primary)
	u, err := url.Parse(primary)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "paidonce-standby-") //nolint:usetesting // the parents of t.TempDir are closed to PostgreSQL's user
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if as.Credential != nil {
		if err := os.Chown(dir, int(as.Credential.Uid), int(as.Credential.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	data := filepath.Join(dir, "data")
	backup := exec.Command(filepath.Join(programs, "pg_basebackup"), "-D", data, "-R", "-X",
		"stream", "-c", "fast", "-h", u.Hostname(), "-p", u.Port(), "-U", u.User.Username())
	backup.SysProcAttr, backup.Dir = as, "/"
	password, _ := u.User.Password()
	backup.Env = append(os.Environ(), "PGPASSWORD="+password)
	if out, err := backup.CombinedOutput(); err != nil {
		t.Fatalf("pg_basebackup: %v\n%s", err, out)
	}
	port := freePort(t)
	standby := exec.Command(filepath.Join(programs, "postgres"), "-D", data, "-c", "port="+port,
		"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=",
		"-c", "hot_standby=on", "-c",
		"max_connections="+querySQL[string](t, primary, "SHOW max_connections"))
	standby.SysProcAttr, standby.Dir = as, "/"
	var said strings.Builder
	standby.Stdout, standby.Stderr = &said, &said
	if err := standby.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = standby.Process.Signal(syscall.SIGQUIT)
		_ = standby.Wait()
		if t.Failed() {
			t.Logf("--- the standby said:\n%s", said.String())
		}
	})
	execSQL(t, primary, "ALTER SYSTEM SET synchronous_standby_names = '*'",
		"SELECT pg_reload_conf()")
	eventually(t, "a synchronous standby", func() bool {
		return querySQL[int](t, primary,
			"SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") == 1
	})
	u.Host = "127.0.0.1:" + port
	return u.String()
}

// acknowledged is what callers were told: the charge of each key.
type acknowledged struct {
	mu    sync.Mutex
	ids   map[string]string
	first time.Time // when the first was told after since
	since time.Time
}

func (a *acknowledged) note(key, id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ids[key] = id
	if !a.since.IsZero() && a.first.IsZero() {
		a.first = time.Now()
	}
}

func (a *acknowledged) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.ids)
}

// The primary is killed while charges run, and its synchronous standby promoted: nothing that was
// acknowledged is lost, nothing is charged twice.
func TestStandbyIsPromoted(t *testing.T) {
	if os.Getenv("PAIDONCE_HA") == "" {
		t.Skip("make ha runs it")
	}
	primary := dbtest.StartServer(t)
	standby := startStandby(t, primary.URL())
	p, errP := url.Parse(primary.URL())
	s, errS := url.Parse(standby)
	if err := errors.Join(errP, errS); err != nil {
		t.Fatal(err)
	}
	p.Host += "," + s.Host
	w := newWorldOn(t, p.String()+"&target_session_attrs=read-write")
	w.sim.slow(20)
	clients := []*apitest.Client{w.client(w.serve()), w.client(w.serve())}
	told := &acknowledged{ids: map[string]string{}}
	stop := make(chan struct{})
	var running sync.WaitGroup
	for i := range 8 {
		running.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				key := fmt.Sprint("k-", i, "-", n)
				if a, _ := until(t, func() *apitest.Client {
					return clients[i%2]
				}, key, twenty); a.Code == http.StatusCreated {
					told.note(key, a.ID())
				}
			}
		})
	}
	eventually(t, "charges before", func() bool { return told.count() >= 100 })
	killed := time.Now()
	primary.Kill()
	execSQL(t, standby, "SELECT pg_promote()")
	told.mu.Lock()
	before := len(told.ids)
	told.since = time.Now()
	told.mu.Unlock()
	eventually(t, "charges afterwards", func() bool { return told.count() >= before+100 })
	close(stop)
	running.Wait()
	time.Sleep(time.Second) // what was given back without an outcome rests for a second
	w.must("reconcile")
	lost := 0
	for key, id := range told.ids {
		if a := clients[0].Charge(key, twenty); a.ID() != id {
			lost++
			t.Errorf("%s: %d %s, told was %s", key, a.Code, a.Body, id)
		}
	}
	t.Logf("acknowledged %d (%d before the kill), lost %d, first write %v after the kill",
		told.count(), before, lost, told.first.Sub(killed).Round(time.Millisecond))
	w.sim.mustHave(t, told.count())
	w.checkBooks()
}
