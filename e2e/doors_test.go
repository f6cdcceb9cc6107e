package e2e

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"paidonce/api/apitest"
	"paidonce/internal/dbtest"
)

// roleURL makes a role without any right, and returns the address of the database for it.
func (w *world) roleURL() (role, address string) {
	w.t.Helper()
	u, err := url.Parse(w.dbURL)
	if err != nil {
		w.t.Fatal(err)
	}
	role = strings.TrimPrefix(u.Path, "/") + "_role"
	execSQL(w.t, w.dbURL, "CREATE ROLE "+role+" LOGIN PASSWORD 'few'")
	u.User = url.UserPassword(role, "few")
	return role, u.String()
}

// chargeRights are what a role needs to charge on the tables that a charge writes, or reads on the
// way.
var chargeRights = []string{
	"SELECT ON installation", "SELECT ON api_keys", "SELECT ON charges", "INSERT ON charges",
	"UPDATE ON charges", "SELECT ON idempotency_keys", "INSERT ON idempotency_keys",
	"UPDATE ON idempotency_keys", "DELETE ON idempotency_keys", "INSERT ON operation_log",
	"INSERT ON outbox", "SELECT ON outbox", "SELECT ON outbox_counter",
	"UPDATE ON outbox_counter", "SELECT ON recovered_keys",
}

// standingRights are what a server needs before it claims anything. One that has looked already
// goes on for a while without.
var standingRights = []string{
	"SELECT ON accounts", "SELECT ON refunds", "SELECT ON operation_log", "SELECT ON provider_accounts",
	"SELECT ON history_mark", "UPDATE ON history_mark",
	"SELECT ON servers", "INSERT ON servers", "UPDATE ON servers", "DELETE ON servers",
}

// A server whose role lacks a right on a table that a charge writes is not ready, answers 500
// rather than "send it again", and logs an error; with the right given back it charges again. With
// these rights, and no others at all, charges are made.
func TestARightIsMissing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	role, address := w.roleURL()
	// the account at the provider and the history of the database are written down once
	first := w.serve()
	if a := w.client(first).Charge("first", card("tok_visa")); a.Code != 201 {
		t.Fatalf("the owner: got %d %s", a.Code, a.Body)
	}
	first.kill()
	execSQL(t, w.dbURL, "GRANT SELECT ON paidonce_db_version TO "+role)
	for _, right := range slices.Concat(chargeRights, standingRights) {
		execSQL(t, w.dbURL, "GRANT "+right+" TO "+role)
	}
	p := w.serve("DATABASE_URL="+address, "PAIDONCE_WORKERS=none")
	c := w.client(p)
	made := 0
	charge := func() apitest.Answer {
		made++
		return c.Charge(fmt.Sprint("k", made), card("tok_visa"))
	}
	// Until what the database may have forgotten was looked up, claims are held; a look that meets
	// a missing right is made again only later.
	for deadline := time.Now().Add(time.Minute); charge().Code != 201; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no charge with the rights that are needed")
		}
	}
	for _, right := range standingRights {
		execSQL(t, w.dbURL, "REVOKE "+right+" FROM "+role)
		if ready := get(p.url + "/readyz"); ready != 503 {
			t.Errorf("without %s: readyz is %d", right, ready)
		}
		execSQL(t, w.dbURL, "GRANT "+right+" TO "+role)
	}
	if a := charge(); a.Code != 201 {
		t.Fatalf("with what is needed: got %d %s", a.Code, a.Body)
	}
	for _, right := range chargeRights {
		execSQL(t, w.dbURL, "REVOKE "+right+" FROM "+role)
		if ready := get(p.url + "/readyz"); ready != 503 {
			t.Errorf("without %s: readyz is %d", right, ready)
		}
		switch a := charge(); {
		case right == "DELETE ON idempotency_keys": // only a key that was used before needs it
		// wanted after the provider's answer
		case strings.Contains(right, " outbox"), strings.HasSuffix(right, "operation_log"),
			strings.HasPrefix(right, "UPDATE"):
			if a.Code != 503 || a.Error().Code != "outcome_unknown" {
				t.Errorf("without %s: got %d %s", right, a.Code, a.Body)
			}
		case a.Code != 500 || a.Error().Code != "internal_error" ||
			strings.Contains(string(a.Body), "permission"):
			t.Errorf("without %s: got %d %s", right, a.Code, a.Body)
		}
		execSQL(t, w.dbURL, "GRANT "+right+" TO "+role)
		if ready := get(p.url + "/readyz"); ready != 200 {
			t.Errorf("with %s again: readyz is %d", right, ready)
		}
		if a := charge(); a.Code != 201 {
			t.Errorf("with %s again: got %d %s", right, a.Code, a.Body)
		}
	}
	// The same of what is read, and of the rest.
	execSQL(t, w.dbURL, "REVOKE SELECT ON api_keys, idempotency_keys FROM "+role)
	for _, path := range []string{"/v1/charges", "/v1/charges/ch_1", "/v1/refunds", "/v1/events",
		"/v1/idempotency_keys/k1", "/v1/webhook_endpoints"} {
		if a := c.Get(path); a.Code != 500 || a.Error().Code != "internal_error" {
			t.Errorf("%s: got %d %s", path, a.Code, a.Body)
		}
	}
	log := p.output()
	if !strings.Contains(log, `"level":"ERROR","msg":"request"`) ||
		!strings.Contains(log, "permission denied for table idempotency_keys") {
		t.Error("the log has no error that says why")
	}
	for _, command := range [][]string{{"serve"}, {"reconcile"}} {
		r := w.run([]string{"DATABASE_URL=" + address}, command...)
		if r.code != 1 ||
			!strings.Contains(r.stderr, "may not SELECT on api_keys, SELECT on idempotency_keys") ||
			!strings.Contains(r.stderr, "GRANT") || strings.Count(r.stderr, "\n") != 1 {
			t.Errorf("%v: exit code %d, %s", command, r.code, r.stderr)
		}
	}
}

// A database that takes no writes any more, as after a failover to the wrong side: not ready, 503,
// and what starts says why. What only reads goes on.
func TestADatabaseThatTakesNoWrites(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.serve()
	c := w.client(p)
	if a := c.Charge("k", card("tok_visa")); a.Code != 201 {
		t.Fatalf("got %d %s", a.Code, a.Body)
	}
	name := strings.TrimPrefix(mustParse(t, w.dbURL).Path, "/")
	execSQL(t, w.dbURL, "ALTER DATABASE "+name+" SET default_transaction_read_only = on",
		"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = "+
			"current_database() AND pid <> pg_backend_pid()")
	eventually(t, "readyz is 503", func() bool { return get(p.url+"/readyz") == 503 })
	if a := c.Charge("k2", card("tok_visa")); a.Code != 503 || a.Error().Code != "unavailable" ||
		a.Header.Get("Retry-After") == "" {
		t.Errorf("got %d %s", a.Code, a.Body)
	}
	if a := c.Get("/v1/charges"); a.Code != 200 {
		t.Errorf("got %d %s", a.Code, a.Body)
	}
	for _, command := range [][]string{{"serve"}, {"reconcile"}, {"sweep"}, {"relay", "--once"},
		{"migrate"}} {
		r := w.run(nil, command...)
		if r.code != 1 ||
			!strings.Contains(r.stderr,
				"takes no writes, as default_transaction_read_only is on") ||
			strings.Count(r.stderr, "\n") != 1 {
			t.Errorf("%v: exit code %d, %s", command, r.code, r.stderr)
		}
	}
	w.must("ops", "list")
	execSQL(t, withDatabase(t, w.dbURL, "postgres"),
		"ALTER DATABASE "+name+" RESET default_transaction_read_only",
		"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '"+name+"'")
	eventually(t, "readyz is 200", func() bool { return get(p.url+"/readyz") == 200 })
	if a := c.Charge("k2", card("tok_visa")); a.Code != 201 {
		t.Errorf("the same key again: got %d %s", a.Code, a.Body)
	}
}

func mustParse(t testing.TB, address string) *url.URL {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// An upgrade: the schema moves on, and a server that runs is ready and charges until it is
// replaced. What starts on the newer schema is told that it is too old.
func TestTheSchemaMovesOnUnderARunningServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.serve()
	execSQL(t, w.dbURL, "INSERT INTO paidonce_db_version (version_id, is_applied) VALUES "+
		"(99999, true)")
	if ready := get(p.url + "/readyz"); ready != 200 {
		t.Errorf("readyz is %d", ready)
	}
	if a := w.client(p).Charge("k", card("tok_visa")); a.Code != 201 {
		t.Errorf("got %d %s", a.Code, a.Body)
	}
	for _, command := range [][]string{{"serve"}, {"reconcile"}, {"sweep"}, {"relay", "--once"},
		{"migrate"}, {"apikeys", "list"}, {"ops", "list"}} {
		r := w.run(nil, command...)
		if r.code != 1 ||
			!strings.Contains(r.stderr,
				"the schema is at version 99999, and this binary knows versions up to") ||
			strings.Count(r.stderr, "\n") != 1 {
			t.Errorf("%v: exit code %d, %s", command, r.code, r.stderr)
		}
	}
	execSQL(t, w.dbURL, "DELETE FROM paidonce_db_version WHERE version_id > 1")
	if ready := get(p.url + "/readyz"); ready != 503 { // somebody restored an old backup under it
		t.Errorf("readyz is %d on an older schema", ready)
	}
	if r := w.run(nil, "serve"); r.code != 1 ||
		!strings.Contains(r.stderr, "run `paidonce migrate`") {
		t.Errorf("serve: exit code %d, %s", r.code, r.stderr)
	}
}

// A database of an encoding that has not all that clients send is refused before anything is made
// in it.
func TestADatabaseOfAnotherEncoding(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	name := strings.TrimPrefix(mustParse(t, w.dbURL).Path, "/") + "_latin1"
	execSQL(t, w.dbURL,
		"CREATE DATABASE "+name+" TEMPLATE template0 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'")
	latin1 := "DATABASE_URL=" + withDatabase(t, w.dbURL, name)
	for _, command := range []string{"migrate", "serve", "reconcile"} {
		r := w.run([]string{latin1}, command)
		if r.code != 1 ||
			!strings.Contains(r.stderr, "the database has the encoding LATIN1: UTF8 is needed") ||
			strings.Count(r.stderr, "\n") != 1 {
			t.Errorf("%s: exit code %d, %s", command, r.code, r.stderr)
		}
	}
	if n := querySQL[int](t, withDatabase(t, w.dbURL, name),
		"SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace"); n != 0 {
		t.Errorf("%d things were made there", n)
	}
}

// A hot standby answers, and takes no charge.
func TestAStandbyIsNotStartedOn(t *testing.T) {
	t.Parallel()
	primary := dbtest.StartServer(t)
	standby := startStandby(t, primary.URL())
	w := newWorldOn(t, primary.URL())
	for _, command := range [][]string{{"serve"}, {"reconcile"}, {"sweep"}, {"migrate"}} {
		r := w.run([]string{"DATABASE_URL=" + standby}, command...)
		if r.code != 1 || !strings.Contains(r.stderr, "takes no writes, as it is a standby") ||
			strings.Count(r.stderr, "\n") != 1 {
			t.Errorf("%v: exit code %d, %s", command, r.code, r.stderr)
		}
	}
	execSQL(t, standby, "SELECT pg_promote()")
	if p := w.serve("DATABASE_URL=" + standby); get(p.url+"/readyz") != 200 {
		t.Error("the promoted one is not ready")
	}
}

// Commands say what to do about a right that is missing, and about a database that takes no writes.
func TestCommandsSayWhatTheDatabaseRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	role, address := w.roleURL()
	execSQL(t, w.dbURL, "GRANT SELECT ON ALL TABLES IN SCHEMA public TO "+role)
	few, standby := "DATABASE_URL="+address,
		"DATABASE_URL="+w.dbURL+"&default_transaction_read_only=on"
	if !strings.Contains(w.dbURL, "?") {
		standby = "DATABASE_URL=" + w.dbURL + "?default_transaction_read_only=on"
	}
	for _, try := range []struct {
		database, advice string
		command          []string
	}{
		{few, "GRANT it the right", []string{"apikeys", "create", "--account", "shop"}},
		{few, "GRANT it the right", []string{"sweep"}},
		{standby, "takes no writes", []string{"apikeys", "create", "--account", "shop"}},
	} {
		r := w.run([]string{try.database}, try.command...)
		if r.code != 1 || !strings.Contains(r.stderr, try.advice) ||
			strings.Count(r.stderr, "\n") != 1 {
			t.Errorf("%v: exit code %d, %s", try.command, r.code, r.stderr)
		}
	}
}
