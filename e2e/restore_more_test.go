package e2e

import (
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"paidonce/api/apitest"
	"paidonce/internal/dbtest"
)

// The database is dumped, and the dump read into another server.
func TestRestoredFromADump(t *testing.T) {
	t.Parallel()
	r := &restored{world: newWorld(t)}
	p := r.serve()
	r.before(r.client(p))
	programs, _ := pgPrograms(t, r.dbURL)
	dump := filepath.Join(t.TempDir(), "dump.sql")
	if out, err := exec.Command(filepath.Join(programs, "pg_dump"), "-f", dump,
		r.dbURL).CombinedOutput(); err != nil {
		t.Fatalf("pg_dump: %v\n%s", err, out)
	}
	r.after(r.client(p), forgotten)
	p.kill()
	server := dbtest.StartServer(t)
	execSQL(t, server.URL(), "CREATE DATABASE read_in")
	other := withDatabase(t, server.URL(), "read_in")
	if out, err := exec.Command(filepath.Join(programs, "psql"), "-q", "-v", "ON_ERROR_STOP=1",
		"-f", dump, other).CombinedOutput(); err != nil {
		t.Fatalf("psql: %v\n%s", err, out)
	}
	r.dbURL = other
	r.env = append(r.env, "DATABASE_URL="+r.dbURL)
	// The provider is in trouble while its books are read: slow, and with 500s now and then.
	r.sim.control(http.MethodPost,
		"faults", map[string]any{"match": map[string]any{"method": "GET"}, "count": 3,
			"fault": fault{"type": "status_before", "status": 500}}, nil)
	first := r.client(r.serve())
	second := r.serve()
	n := 0
	var mu sync.Mutex
	r.everything(func() *apitest.Client {
		mu.Lock()
		defer mu.Unlock()
		if n++; n%2 == 0 {
			return r.client(second)
		}
		return first
	})
}

// Whoever rebuilds is killed in the middle of it, again and again; the next one goes on.
func TestRecoveryIsKilled(t *testing.T) {
	t.Parallel()
	r := &restored{world: newWorld(t)}
	p := r.serve()
	r.before(r.client(p))
	p.kill()
	u, err := url.Parse(r.dbURL)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimPrefix(u.Path, "/")
	execSQL(t, withDatabase(t, r.dbURL, "postgres"),
		"CREATE DATABASE "+name+"_backup TEMPLATE "+name)
	p = r.serve()
	r.after(r.client(p), forgotten)
	p.kill()
	r.dbURL = withDatabase(t, r.dbURL, name+"_backup")
	r.env = append(r.env, "DATABASE_URL="+r.dbURL)
	for i := range 4 {
		p := r.serve()
		// Each dies a little later than the one before: before the first charge is rebuilt, after
		// it, …
		eventually(t, "something is rebuilt", func() bool {
			return querySQL[int](t, r.dbURL, "SELECT count(*) FROM recovered_keys") >= min(3*i,
				forgotten) || querySQL[bool](t, r.dbURL,
				"SELECT EXISTS (SELECT FROM recoveries WHERE finished_at IS NOT NULL)")
		})
		p.kill()
		// its lease would last a quarter of a minute
		execSQL(t, r.dbURL, "UPDATE recoveries SET leased_until = NULL, lease_token = NULL")
	}
	c := r.client(r.serve())
	r.everything(func() *apitest.Client { return c })
}

// While the provider's records cannot be read, nothing new is claimed, and what is known is
// replayed and shown.
func TestBooksCannotBeRead(t *testing.T) {
	t.Parallel()
	r := &restored{world: newWorld(t)}
	p := r.serve()
	r.before(r.client(p))
	old := r.post(r.client(p), "old-1")
	p.kill()
	u, err := url.Parse(r.dbURL)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimPrefix(u.Path, "/")
	execSQL(t, withDatabase(t, r.dbURL, "postgres"), "CREATE DATABASE "+name+"_backup TEMPLATE "+name)
	p = r.serve()
	r.after(r.client(p), 2)
	p.kill()
	r.dbURL = withDatabase(t, r.dbURL, name+"_backup")
	r.env = append(r.env, "DATABASE_URL="+r.dbURL)
	r.sim.control(http.MethodPost,
		"faults", map[string]any{"match": map[string]any{"method": "GET", "path": "/v1/charges"},
			"count": 100000, "fault": fault{"type": "status_before", "status": 500}}, nil)
	p = r.serve()
	c := r.client(p)
	sent := len(r.sim.sent())
	if a := c.Charge("charge-0", twenty); a.Code != http.StatusServiceUnavailable ||
		a.Header.Get("Retry-After") == "" || a.Error().Advice != "retry_same_key" {
		t.Errorf("a forgotten key: %d %s, want 503", a.Code, a.Body)
	}
	if a := c.Charge("new", twenty); a.Code != http.StatusServiceUnavailable {
		t.Errorf("a new key: %d %s, want 503", a.Code, a.Body)
	}
	if a := r.post(c, "old-1"); string(a.Body) != string(old.Body) || !a.Replayed() {
		t.Errorf("a key that is known: %d %s, want a replay", a.Code, a.Body)
	}
	if a := c.Get("/v1/charges/" + r.charge); a.Code != http.StatusOK {
		t.Errorf("a charge that is known: %d", a.Code)
	}
	if a := c.Get("/v1/charges/" + r.answers["charge-0"].ID()); a.Code != http.StatusServiceUnavailable {
		t.Errorf("a charge that may have been forgotten: %d, want 503", a.Code)
	}
	if a := c.Post("/v1/refunds", "refund-9", `{"charge":"`+r.answers["charge-0"].ID()+`"}`); a.Code != http.StatusServiceUnavailable {
		t.Errorf("a refund of it: %d %s, want 503", a.Code, a.Body)
	}
	if a := r.run(nil, "reconcile"); a.code != 1 || !strings.Contains(a.stderr, "held") {
		t.Errorf("reconcile: exit code %d, %s", a.code, a.stderr)
	}
	p.await("could not be looked up")
	if n := len(r.sim.sent()); n != sent {
		t.Errorf("%d POSTs were sent meanwhile", n-sent)
	}
	r.sim.control(http.MethodDelete, "faults", nil, nil)
	r.again(func() *apitest.Client { return c })
}

// PAIDONCE_RECOVER=off leaves it to an operator: it is logged, and claims go on.
func TestRecoverIsOff(t *testing.T) {
	t.Parallel()
	r := &restored{world: newWorld(t, "PAIDONCE_RECOVER=off")}
	p := r.serve()
	r.before(r.client(p))
	execSQL(t, r.dbURL, "UPDATE installation SET history = '1/2/00000001', timeline = '000000FF'")
	eventually(t, "claims go on", func() bool {
		return r.client(p).Charge("k", twenty).Code == http.StatusCreated
	})
	p.await("PAIDONCE_RECOVER is off")
}

// An asynchronous standby that is behind is promoted under load, and clients resend at once. What
// the primary had acknowledged and the standby has not is rebuilt.
func TestAsynchronousStandbyIsPromoted(t *testing.T) {
	t.Parallel()
	primary := dbtest.StartServer(t)
	standby := startStandby(t, primary.URL())
	execSQL(t, primary.URL(), "ALTER SYSTEM RESET synchronous_standby_names",
		"SELECT pg_reload_conf()")
	p, s := parsed(t, primary.URL()), parsed(t, standby)
	p.Host += "," + s.Host
	w := newWorldOn(t, p.String()+"&target_session_attrs=read-write")
	w.sim.slow(30)
	clients := []*apitest.Client{w.client(w.serve()), w.client(w.serve())}
	l := w.load(8, func() *apitest.Client { return clients[time.Now().UnixNano()/1000%2] })
	l.progress(t, 60)
	execSQL(t, standby, "SELECT pg_wal_replay_pause()") // from here on it is behind
	execSQL(t, primary.URL(), "SELECT pg_terminate_backend(pid) FROM pg_stat_replication")
	execSQL(t, standby, "ALTER SYSTEM SET primary_conninfo = ''", "SELECT pg_reload_conf()")
	l.progress(t, 30)
	primary.Kill()
	execSQL(t, standby, "SELECT pg_wal_replay_resume()", "SELECT pg_promote(false)")
	l.progress(t, 60)
	l.end()
	w.dbURL = standby
	w.env = append(w.env, "DATABASE_URL="+standby)
	w.sim.mustHave(t, int(l.done.Load()))
	if n := querySQL[int](t, standby,
		"SELECT sum(charges) FROM recoveries WHERE finished_at IS NOT NULL"); n == 0 {
		t.Error("nothing was rebuilt: the standby was not behind")
	}
	eventually(t, "the reconciler settles what was claimed on both sides and settled on one",
		func() bool {
			return w.run(nil, "reconcile").code == 0 &&
				w.run(nil, "audit", "--since", "1h").code == 0
		})
}

func parsed(t *testing.T, address string) *url.URL {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// Receipts that may have been mailed since are not mailed again, and a reader whose cursor was
// forgotten goes on.
func TestReadersAndReceiptsAfterARestore(t *testing.T) {
	t.Parallel()
	mail := newPostOffice(t, 0)
	r := &restored{world: newWorld(t, "PAIDONCE_SMTP_URL="+mail.url, "PAIDONCE_WORKERS=relay")}
	p := r.serve()
	c := r.client(p)
	pay := func(key string) apitest.Answer {
		return c.Charge(key,
			`{"amount":2000,"currency":"usd","source":"tok_visa","receipt_email":"payer-`+key+
				`@example.com"}`)
	}
	pay("before")
	eventually(t, "a receipt", func() bool { return len(mail.of("payer-before@example.com")) == 1 })
	p.kill()
	u := parsed(t, r.dbURL)
	name := strings.TrimPrefix(u.Path, "/")
	// As of a moment in which the receipt was not mailed yet.
	execSQL(t, r.dbURL, "UPDATE receipts SET state = 'pending', attempts = 0, last_attempt_at = "+
		"NULL, last_code = NULL, finished_at = NULL, next_run_at = clock_timestamp()")
	execSQL(t, withDatabase(t, r.dbURL, "postgres"), "CREATE DATABASE "+name+"_backup TEMPLATE "+name)
	execSQL(t, r.dbURL, "UPDATE receipts SET state = 'sent', attempts = 1, last_attempt_at = "+
		"clock_timestamp(), finished_at = clock_timestamp(), next_run_at = NULL")
	p = r.serve()
	c = r.client(p)
	first := pay("since")
	eventually(t, "the other receipt", func() bool {
		return len(mail.of("payer-since@example.com")) == 1
	})
	cursor := ""
	for id := range events(t, c) {
		if a := c.Get("/v1/events/" + id); strings.Contains(string(a.Body), first.ID()) {
			cursor = id
		}
	}
	p.kill()
	r.dbURL = withDatabase(t, r.dbURL, name+"_backup")
	r.env = append(r.env, "DATABASE_URL="+r.dbURL)
	p = r.serve("PAIDONCE_WORKERS=relay")
	c = r.client(p)
	eventually(t, "claims go on", func() bool { return pay("later").Code == http.StatusCreated })
	eventually(t, "the last receipt", func() bool {
		return len(mail.of("payer-later@example.com")) == 1
	})
	for _, to := range []string{"payer-before@example.com", "payer-since@example.com"} {
		if n := len(mail.of(to)); n != 1 {
			t.Errorf("%s got %d receipts", to, n)
		}
	}
	// One that was never told here any more: as of a charge in another place of the lost history.
	lost := cursor[:len(cursor)-4] + "0000"
	for _, after := range []string{cursor, lost} {
		if a := c.Get("/v1/events?starting_after=" + after); a.Code != http.StatusOK ||
			!strings.Contains(string(a.Body), "charge.succeeded") {
			t.Errorf("reading on after %s: %d %s", after, a.Code, a.Body)
		}
	}
	if a := c.Get("/v1/events?starting_after=nonsense"); a.Code != http.StatusBadRequest {
		t.Errorf("a cursor that cannot be one: %d", a.Code)
	}
}
