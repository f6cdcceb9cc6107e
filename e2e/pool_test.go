package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"time"

	"paidonce/api/apitest"
)

// Nothing of the database is held while the provider thinks.
func TestManyChargesOnFewConnections(t *testing.T) {
	t.Parallel()
	// The provider's limit has room for a machine on which sixty processes' worth of work comes at
	// once.
	w := newWorld(t, "PAIDONCE_DB_MAX_CONNS=4", "PAIDONCE_PROVIDER_TIMEOUT=20s",
		"PAIDONCE_STALE_AFTER=60s")
	c := w.client(w.serve())
	old := c.Charge("old", twenty)
	w.sim.arm(0, fault{"type": "delay", "delay_ms": 2000})
	const many = 60
	var wg sync.WaitGroup
	for i := range many {
		wg.Go(func() {
			if a := c.Charge(fmt.Sprint("many-", i), twenty); a.Code != http.StatusCreated {
				t.Errorf("charge %d: %d %s", i, a.Code, a.Body)
			}
		})
	}
	w.sim.awaitRequests(1 + many/2)
	for running := 0; running < 20; running++ {
		if a := c.Get("/v1/charges/" + old.ID()); a.Code != http.StatusOK {
			t.Errorf("GET meanwhile: %d %s", a.Code, a.Body)
		}
		idle := querySQL[int](t, w.dbURL, "SELECT count(*) FROM pg_stat_activity WHERE datname = "+
			"current_database() AND state LIKE 'idle in transaction%'")
		// A commit may be between two statements of its transaction at the very moment; half a
		// second later it is not the same one.
		if idle > 0 {
			held := querySQL[int](t, w.dbURL,
				`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
				AND state LIKE 'idle in transaction%' AND clock_timestamp() - state_change > interval '500 ms'`)
			if held > 0 {
				t.Errorf("%d sessions hold a transaction", held)
			}
		}
	}
	conns := querySQL[int](t, w.dbURL, "SELECT count(*) FROM pg_stat_activity WHERE datname = "+
		"current_database() AND pid <> pg_backend_pid()")
	if conns > 4 {
		t.Errorf("%d connections, want at most 4", conns)
	}
	wg.Wait()
	w.sim.mustHave(t, many+1)
	w.checkBooks()
}

// Two instances on two connections each, the reconciler beside them, all want one at the same time.
func TestTwoConnectionsAreEnough(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "PAIDONCE_DB_MAX_CONNS=2", "PAIDONCE_WORKERS=reconcile",
		"PAIDONCE_PROVIDER_TIMEOUT=20s", "PAIDONCE_STALE_AFTER=60s")
	w.sim.slow(200)
	clients := []*apitest.Client{w.client(w.serve()), w.client(w.serve())}
	w.start("reconcile", w.command(nil, "reconcile"))
	const many = 50
	together(many, func(i int) {
		if a := clients[i%2].Charge(fmt.Sprint("k", i), twenty); a.Code != http.StatusCreated {
			t.Errorf("charge %d: %d %s", i, a.Code, a.Body)
		}
	})
	w.must("reconcile")
	w.sim.mustHave(t, many)
	w.checkBooks()
}

// The server has fewer connections than the instances' pools together would take.
func TestDatabaseRefusesConnections(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "PAIDONCE_DB_MAX_CONNS=8")
	role := fmt.Sprint("few_", time.Now().UnixNano())
	execSQL(t, w.dbURL, "CREATE ROLE "+role+" LOGIN CONNECTION LIMIT 3 PASSWORD 'few'",
		"GRANT ALL ON ALL TABLES IN SCHEMA public TO "+role)
	u, err := url.Parse(w.dbURL)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(role, "few")
	env := "DATABASE_URL=" + u.String()
	clients := []*apitest.Client{w.client(w.serve(env)), w.client(w.serve(env))}
	const many = 40
	together(many, func(i int) {
		until(t, func() *apitest.Client { return clients[i%2] }, fmt.Sprint("k", i), twenty)
	})
	w.sim.mustHave(t, many)
	w.checkBooks()
}
