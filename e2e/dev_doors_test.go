package e2e

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Another user of the machine gets into nothing that dev started: not into the database, not by
// what is in files or in the list of processes, and a page in a browser not into the simulator.
func TestDevIsClosedToOthers(t *testing.T) {
	t.Parallel()
	u := newDevUser(t, nil)
	p := u.start()
	address := mustParse(t, p.await(`export DATABASE_URL='([^']+)'`)[1])
	if password, _ := address.User.Password(); password == "" {
		t.Error("the database has no password")
	}
	address.User = nil
	for _, user := range []string{"postgres", "nobody"} {
		other := *address
		q := other.Query()
		q.Set("user", user)
		other.RawQuery = q.Encode()
		if conn, err := pgx.Connect(context.Background(), other.String()); err == nil {
			_ = conn.Close(context.Background())
			t.Errorf("%s gets into the database without a password", user)
		}
	}
	secrets := regexp.MustCompile(`whsec_\w+|sk_(?:test_)?[A-Za-z0-9]{20,}`).FindAllString(
		p.output(), -1)
	password, _ := mustParse(t, p.await(`export DATABASE_URL='([^']+)'`)[1]).User.Password()
	if secrets = append(secrets, password); len(secrets) < 3 {
		t.Fatalf("secrets that dev printed: %q", secrets)
	}
	out, err := exec.Command("ps", "-e", "-ww", "-o", "args=").Output()
	if err != nil {
		t.Fatal(err)
	}
	places := []string{filepath.Join(u.dir, ".paidonce")}
	if other := u.databaseFolder(); other != "" {
		places = append(places, other)
	}
	for _, secret := range secrets {
		if strings.Contains(string(out), secret) {
			t.Errorf("%s… is in the list of processes", secret[:8])
		}
		for _, place := range places {
			entries, err := os.ReadDir(place)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				// nothing of folders: the database's is its user's alone
				text, _ := os.ReadFile(filepath.Join(place, e.Name()))
				if info, err := e.Info(); err != nil || strings.Contains(string(text), secret) &&
					info.Mode().Perm()&0o077 != 0 {
					t.Errorf("others can read a secret in %s: %v %v", e.Name(), info.Mode(), err)
				}
			}
		}
	}
	sim := p.await(`listed on (\S+)/_sim/`)[1]
	for _, change := range []func(*http.Request){
		func(r *http.Request) {
			r.Host = "evil.example"
		}, func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") },
		func(r *http.Request) {
			r.Header.Set("Sec-Fetch-Site", "cross-site")
		}, func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") },
	} {
		req, err := http.NewRequest(http.MethodPost, sim+"/_sim/faults",
			strings.NewReader(`{"fault":"hang"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		change(req)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if _ = res.Body.Close(); res.StatusCode != 403 && res.StatusCode != 415 {
			t.Errorf("%v, %s: got %d", req.Header, req.Host, res.StatusCode)
		}
	}
	p.signal(syscall.SIGTERM)
	p.wait()
}

// contents is what a database has, of its tables and their rows.
func contents(t *testing.T, address string) string {
	t.Helper()
	return querySQL[string](t, address,
		`SELECT coalesce(string_agg(c.relname || ' ' || (xpath('/row/n/text()', query_to_xml(format('SELECT count(*) AS n FROM %I', c.relname), false, true, '')))[1]::text
		|| ' ' || (SELECT string_agg(a.attname, ',' ORDER BY a.attnum) FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0), E'\n' ORDER BY c.relname), '')
		FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r'`)
}

// dev uses the database of DATABASE_URL when that is empty or its own, and harms no other: not
// another program's, nor an installation's that works with a real provider, whose unfinished
// operations it would look for at the simulator and find never made.
func TestDevWithADatabaseOfSomebodyElses(t *testing.T) {
	t.Parallel()
	u := newDevUser(t, nil)
	dev := func(address string) *proc {
		cmd := u.command(binary, "dev")
		cmd.Env = append(cmd.Env, "DATABASE_URL="+address, "PAIDONCE_LISTEN=127.0.0.1:0")
		return u.w.start("dev", cmd)
	}
	others := host.create(t, false)
	execSQL(t, others, "CREATE TABLE goose_db_version (id serial PRIMARY KEY, version_id bigint "+
		"NOT NULL, is_applied boolean NOT NULL, tstamp timestamp DEFAULT now())",
		"INSERT INTO goose_db_version (version_id, is_applied) VALUES (0, true), (3, true)",
		"CREATE TABLE accounts (id int, owner text)", "INSERT INTO accounts VALUES (1, 'somebody')")
	installed := newWorld(t)
	execSQL(t, installed.dbURL,
		`INSERT INTO idempotency_keys (account_id, key, operation_id, kind, hash_version, request_hash, request_id, params, resource_id, recovery_point, created_at, next_run_at)
		VALUES ('a', 'left', 'op_left', 'charge.create', 1, decode(repeat('00', 32), 'hex'), 'req_left', '{}', 'ch_left', 'started', now() - interval '1 hour', now() - interval '1 hour')`)
	live := host.create(t, true)
	execSQL(t, live, "INSERT INTO accounts (id, name) VALUES ('acct_1', 'dev')",
		"INSERT INTO charges (id, account_id, operation_id, amount, currency, capture, livemode) "+
			"VALUES ('ch_1', 'acct_1', 'op_1', 1, 'usd', true, true)")
	for address, says := range map[string]string{
		others: "has tables of another program (accounts, goose_db_version, " +
			"goose_db_version_id_seq), so dev leaves it alone",
		installed.dbURL: "is of an installation that dev did not make, so dev " +
			"leaves it alone",
		live: "is of an installation that dev did not make, so dev " +
			"leaves it alone",
		withDatabase(t, others, "nowhere"): "does not answer",
	} {
		before := ""
		if says != "does not answer" {
			before = contents(t, address)
		}
		p := dev(address)
		if state := p.wait(); state.ExitCode() != 1 || !strings.Contains(p.output(), says) ||
			!strings.Contains(p.output(), "`unset DATABASE_URL`") ||
			strings.Count(p.output(), "\n") != 1 {
			t.Errorf("%v, want %q:\n%s", state, says, p.output())
		}
		if before != "" && contents(t, address) != before {
			t.Errorf("before:\n%s\nafterwards:\n%s", before, contents(t, address))
		}
	}
	// an empty one, and one that was migrated and never used
	for _, address := range []string{host.create(t, false), host.create(t, true)} {
		for range 2 {
			p := dev(address)
			p.await(`Paidonce is ready on (\S+)`)
			p.signal(os.Interrupt)
			if state := p.wait(); state.ExitCode() != 0 {
				t.Errorf("got %v\n%s", state, p.output())
			}
		}
	}
}
