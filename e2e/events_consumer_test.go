package e2e

import (
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"paidonce/api/apitest"
	"paidonce/internal/dbtest"
)

// The example as its README starts it: it registers itself, takes events, and reads them; a new
// secret takes effect at its next start, and the old one serves until then.
func TestConsumerRegistersItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t, allowPrivate, "PAIDONCE_WORKERS=relay")
	c := w.client(w.serve())
	books := host.create(t, false)
	env := []string{"PAIDONCE_URL=" + c.BaseURL, "PAIDONCE_API_KEY=" + w.apiKey}
	ends := func(p *proc) {
		t.Helper()
		p.signal(syscall.SIGTERM)
		if state := p.wait(); state.ExitCode() != 0 {
			t.Errorf("after SIGTERM: %v, want exit code 0", state)
		}
	}
	p := w.consumer(books, env)
	c.Charge("a", twenty)
	w.awaitDelivered()
	if a := c.Post("/v1/webhook_endpoints/example-consumer/rotate_secret", "",
		""); a.Code != http.StatusOK {
		t.Fatalf("got %d %s, want 200", a.Code, a.Body)
	}
	c.Charge("b", twenty)
	w.awaitDelivered()
	ends(p)
	p = w.consumer(books, env)
	// a day later
	execSQL(t, w.dbURL, "UPDATE webhook_secrets SET expires_at = clock_timestamp() WHERE "+
		"expires_at IS NOT NULL")
	c.Charge("c", twenty)
	w.awaitDelivered()
	ends(p)
	if n := querySQL[int](t, w.dbURL, "SELECT count(*) FROM deliveries WHERE attempts > 1"); n != 0 {
		t.Errorf("%d deliveries were refused", n)
	}
	c.Charge("d", twenty) // nobody listens
	p = w.consumer(books, env, "-pull")
	eventually(t, "what was missed is read", func() bool {
		return querySQL[int](t, books, "SELECT count(*) FROM books.seen_events") == 4
	})
	ends(p)
	checkConsumer(t, books, w.stored(), w.sim.net())
}

// The database is dumped, and restored into a new cluster, whose transaction ids are lower. Places
// in the order of events are no such ids: what was not delivered is, what comes is, and who has
// read on misses nothing.
func TestEventsAfterDumpAndRestore(t *testing.T) {
	t.Parallel()
	w := newWorld(t, allowPrivate)
	programs, _ := pgPrograms(t, w.dbURL)
	s := newSink(t)
	old := w.serve()
	c := w.client(old)
	s.listen(c)
	for i := range 3 {
		c.Charge(fmt.Sprint("delivered-", i), twenty)
	}
	w.must("relay", "--once")
	seen, _ := listed(t, c, "")
	for i := range 3 {
		c.Charge(fmt.Sprint("not-yet-", i), twenty)
	}
	old.kill()
	// Procedures may commit; each of these takes an id.
	execSQL(t, w.dbURL,
		`DO $$ BEGIN FOR i IN 1..5000 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$`)
	target := dbtest.StartServer(t)
	execSQL(t, withDatabase(t, target.URL(), "postgres"),
		"CREATE DATABASE restored TEMPLATE template0")
	restored := withDatabase(t, target.URL(), "restored")
	dump := filepath.Join(t.TempDir(), "dump.sql")
	for _, args := range [][]string{{"pg_dump", "--file=" + dump, w.dbURL},
		{"psql", "--quiet", "--no-psqlrc", "--set=ON_ERROR_STOP=1", "--file=" + dump, restored}} {
		if out, err := exec.Command(filepath.Join(programs, args[0]), args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	const id = "SELECT pg_current_xact_id()::text::bigint"
	if was, is := querySQL[int64](t, w.dbURL, id), querySQL[int64](t, restored, id); is >= was {
		t.Fatalf("the new cluster's transaction ids (%d) are not lower than the old one's (%d): "+
			"nothing is tried here", is, was)
	}
	w.dbURL, w.env = restored, append(w.env, "DATABASE_URL="+restored)
	c = w.client(w.serve("PAIDONCE_WORKERS=relay"))
	for i := range 10 { // the first waits until it is known that the dump has forgotten nothing
		if a, _ := until(t, func() *apitest.Client {
			return c
		}, fmt.Sprint("later-", i), twenty); a.Code != http.StatusCreated {
			t.Errorf("got %d %s, want 201", a.Code, a.Body)
		}
	}
	w.awaitDelivered()
	s.mustHaveTaken(w.stored())
	if n := len(s.takenOf("")); n != 16 {
		t.Errorf("%d deliveries of 16 events", n)
	}
	if ids, _ := listed(t, c, seen[len(seen)-1]); len(ids) != 13 {
		t.Errorf("%d events are listed to who had read 3 of 16", len(ids))
	}
}
