package e2e

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"paidonce/api/apitest"
	"paidonce/internal/dbtest"
)

// load is a crowd of clients that charge one key after the other, each until it has its 201, until
// it is ended.
type load struct {
	clients     sync.WaitGroup
	stop        chan struct{}
	done        atomic.Int64 // keys that ended with 201
	unavailable atomic.Int64 // 503s
	mostResends atomic.Int64
}

func (w *world) load(clients int, next func() *apitest.Client) *load {
	l := &load{stop: make(chan struct{})}
	for i := range clients {
		l.clients.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-l.stop:
					return
				default:
				}
				l.charge(w.t, next, fmt.Sprint("load-", i, "-", n))
				time.Sleep(20 * time.Millisecond) // the machine is shared
			}
		})
	}
	return l
}

func (l *load) charge(t *testing.T, next func() *apitest.Client, key string) {
	for resends := int64(0); ; resends++ {
		a, err := try(t, next(), key, twenty)
		switch {
		case err != nil:
		case a.Code == http.StatusCreated:
			l.done.Add(1)
			for most := l.mostResends.Load(); resends > most &&
				!l.mostResends.CompareAndSwap(most, resends); most = l.mostResends.Load() {
			}
			return
		case !mayRetry(t, a):
			t.Errorf("%s: %d %s", key, a.Code, a.Body)
			return
		case a.Code == http.StatusServiceUnavailable:
			l.unavailable.Add(1)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// progress waits until so many more keys have their 201.
func (l *load) progress(t *testing.T, more int64) {
	t.Helper()
	goal := l.done.Load() + more
	eventually(t, "charges under load", func() bool { return l.done.Load() >= goal })
}

// end lets each client finish its key.
func (l *load) end() {
	close(l.stop)
	l.clients.Wait()
}

// The database's power goes while charges run.
func TestDatabaseKilledUnderLoad(t *testing.T) {
	t.Parallel()
	server := dbtest.StartServer(t)
	w := newWorldOn(t, server.URL())
	w.sim.slow(100)
	p := w.serve()
	c := w.client(p)
	l := w.load(6, func() *apitest.Client { return c })
	for range 2 {
		l.progress(t, 12)
		server.Kill()
		before := l.unavailable.Load()
		// Callers are told; the process lives, and says that it is not ready.
		eventually(t, "503 while the database is down", func() bool {
			return l.unavailable.Load() >= before+6
		})
		if ready, alive := get(p.url+"/readyz"), get(p.url+"/healthz"); ready != http.StatusServiceUnavailable || alive != http.StatusOK {
			t.Errorf("/readyz %d and /healthz %d, want 503 and 200", ready, alive)
		}
		if a := c.Get("/v1/charges"); a.Code != http.StatusServiceUnavailable ||
			a.Header.Get("Retry-After") == "" {
			t.Errorf("GET: %d %s, want 503 with Retry-After", a.Code, a.Body)
		}
		server.Start()
		eventually(t, "ready again", func() bool { return get(p.url+"/readyz") == http.StatusOK })
	}
	l.progress(t, 6)
	l.end()
	if a := c.Get("/readyz"); a.Code != http.StatusOK {
		t.Errorf("/readyz: %d", a.Code)
	}
	w.sim.mustHave(t, int(l.done.Load()))
	w.checkBooks()
}

// The database stops answering without going away, under load, and comes back.
func TestDatabaseFrozenUnderLoad(t *testing.T) {
	t.Parallel()
	server := dbtest.StartServer(t)
	w := newWorldOn(t, server.URL())
	p := w.serve()
	c := w.client(p)
	l := w.load(6, func() *apitest.Client { return c })
	l.progress(t, 12)
	family := postgresProcesses(t, server.URL())
	signalAll(family, syscall.SIGSTOP)
	t.Cleanup(func() { signalAll(family, syscall.SIGCONT) }) // a stopped server cannot be discarded
	eventually(t, "503 while the database is frozen", func() bool {
		return l.unavailable.Load() >= 6
	})
	signalAll(family, syscall.SIGCONT)
	eventually(t, "ready again", func() bool { return get(p.url+"/readyz") == http.StatusOK })
	l.progress(t, 12)
	l.end()
	conns := querySQL[int](t, w.dbURL, "SELECT count(*) FROM pg_stat_activity WHERE datname = "+
		"current_database() AND pid <> pg_backend_pid()")
	if conns > 6 {
		t.Errorf("%d connections, want no more than the pool's 6", conns)
	}
	w.sim.mustHave(t, int(l.done.Load()))
	w.checkBooks()
}

// postgresProcesses lists a server's processes: the postmaster and its children.
func postgresProcesses(t *testing.T, url string) (pids []int) {
	t.Helper()
	dir := querySQL[string](t, url, "SHOW data_directory")
	text, err := os.ReadFile(dir + "/postmaster.pid")
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	out, err := exec.Command("ps", "-e", "-o", "pid=,ppid=").Output()
	if err != nil {
		t.Skip("there is no ps here: ", err)
	}
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) == 2 && (f[0] == first || f[1] == first) {
			pid, _ := strconv.Atoi(f[0])
			pids = append(pids, pid)
		}
	}
	return pids
}

func signalAll(pids []int, s syscall.Signal) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, s)
	}
}

// The provider has charged, and the database refuses what is to be written then, once. The
// operation resumes where it stood, under the same provider key.
func TestResultCannotBeWritten(t *testing.T) {
	t.Parallel()
	for _, table := range []string{"outbox", "charges", "idempotency_keys"} {
		t.Run(table, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			// A sequence forgets nothing in a rollback: so the trigger knows that it has struck.
			execSQL(t, w.dbURL, "CREATE SEQUENCE struck",
				`CREATE FUNCTION strike() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
					IF TG_TABLE_NAME <> 'idempotency_keys' OR to_jsonb(NEW)->>'status' = 'completed' THEN
						IF nextval('struck') <= 2 THEN RAISE EXCEPTION 'no, secret detail'; END IF;
					END IF; RETURN NEW; END $$`,
				"CREATE TRIGGER strike BEFORE "+map[bool]string{true: "INSERT",
					false: "UPDATE"}[table == "outbox"]+" ON "+table+
					" FOR EACH ROW EXECUTE FUNCTION strike()")
			c := w.client(w.serve())
			a := c.Charge("k", twenty)
			if a.Code != http.StatusServiceUnavailable || a.Error().Advice != "retry_same_key" ||
				strings.Contains(string(a.Body), "secret") {
				t.Errorf("%d %s, want 503 that tells nothing of the database", a.Code, a.Body)
			}
			if a, _ := until(t, func() *apitest.Client {
				return c
			}, "k", twenty); a.Code != http.StatusCreated {
				t.Errorf("got %d %s, want 201", a.Code, a.Body)
			}
			w.sim.mustHave(t, 1)
			w.checkBooks()
		})
	}
}

// What the database says is for the log.
func TestSchemaBrokenAtRuntime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.serve()
	c := w.client(p)
	done := c.Charge("k", twenty)
	execSQL(t, w.dbURL, "ALTER TABLE charges RENAME COLUMN currency TO gone",
		"ALTER TABLE idempotency_keys RENAME COLUMN response_code TO gone")
	for name, a := range map[string]apitest.Answer{
		"charge": c.Charge("k2", twenty), "replay": c.Charge("k", twenty),
		"list": c.Get("/v1/charges"),
		"read": c.Get("/v1/charges/" + done.ID()), "key": c.Get("/v1/idempotency_keys/k"),
	} {
		said := strings.ToLower(string(a.Body))
		if a.Code < 500 || a.Error().RequestID == "" || strings.Contains(said, "column") ||
			strings.Contains(said, "sql") {
			t.Errorf("%s: %d %s, want a plain 5xx with a request id", name, a.Code, a.Body)
		}
	}
	if p.ended() {
		t.Error("the process ended")
	}
}
