package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"paidonce/api/apitest"
)

// copied makes a copy of the database beside it; put back, it is another database of the same
// server.
func (r *restored) copied() (putBack func()) {
	r.t.Helper()
	name := strings.TrimPrefix(parsed(r.t, r.dbURL).Path, "/")
	execSQL(r.t, withDatabase(r.t, r.dbURL, "postgres"),
		"CREATE DATABASE "+name+"_backup TEMPLATE "+name)
	return func() {
		r.dbURL = withDatabase(r.t, r.dbURL, name+"_backup")
		r.env = append(r.env, "DATABASE_URL="+r.dbURL)
	}
}

// A capture is answered as at first, whatever became of the charge since.
func TestCaptureThatWasRefundedSince(t *testing.T) {
	t.Parallel()
	r := &restored{world: newWorld(t)}
	p := r.serve()
	r.before(r.client(p))
	p.kill()
	putBack := r.copied()
	p = r.serve()
	c := r.client(p)
	first := r.post(c, "capture-1")
	if a := c.Post("/v1/refunds", "refund-1", fmt.Sprintf(`{"charge":%q,"amount":50}`, r.held)); first.Code != http.StatusOK || a.Code != http.StatusCreated {
		t.Fatalf("%d %s, %d %s", first.Code, first.Body, a.Code, a.Body)
	}
	p.kill()
	putBack()
	c = r.client(r.serve())
	var again apitest.Answer
	eventually(t, "the capture is known", func() bool {
		again = r.post(c, "capture-1")
		return again.Code != http.StatusServiceUnavailable
	})
	if again.Code != first.Code || string(again.Body) != string(first.Body) {
		t.Errorf("%d %s\nwas told before: %d %s", again.Code, again.Body, first.Code, first.Body)
	}
}

// A charge that waits for its payer has no charge at the provider yet: its intent alone shows that
// the database has forgotten it. The copy is put back in its place, while no server runs.
func TestOnlyAnIntentWasForgotten(t *testing.T) {
	t.Parallel()
	const waits = `{"amount":2000,"currency":"usd","source":"tok_threeDSecureRequired"}`
	r := &restored{world: newWorld(t, "STRIPE_FLOW=payment_intents")}
	p := r.serve()
	if a := r.client(p).Charge("old", twenty); a.Code != http.StatusCreated {
		t.Fatalf("got %d %s, want 201", a.Code, a.Body)
	}
	first := r.client(p).Charge("waits", waits)
	p.kill()
	for _, table := range []string{"operation_log", "outbox", "charges", "idempotency_keys"} {
		execSQL(t, r.dbURL, "DELETE FROM "+table+" WHERE operation_id = (SELECT k.operation_id "+
			"FROM idempotency_keys k WHERE k.key = 'waits')")
	}
	for range 2 { // after the recovery, a restart costs nothing
		p = r.serve()
		var again apitest.Answer
		eventually(t, "the charge is known", func() bool {
			again = r.client(p).Charge("waits", waits)
			return again.Code != http.StatusServiceUnavailable
		})
		if again.Code != http.StatusCreated || string(again.Body) != string(first.Body) {
			t.Errorf("%d %s\nwas told before: %d %s", again.Code, again.Body, first.Code,
				first.Body)
		}
		p.kill()
	}
	if n := querySQL[int](t, r.dbURL, "SELECT count(*) FROM recoveries"); n != 1 {
		t.Errorf("%d recoveries, want one", n)
	}
}

// What cannot be rebuilt is found once: after that a restart costs nothing.
func TestRefundThatCannotBeRebuilt(t *testing.T) {
	t.Parallel()
	r := &restored{world: newWorld(t)}
	p := r.serve()
	r.before(r.client(p))
	if a := r.post(r.client(p), "refund-1"); a.Code != http.StatusCreated {
		t.Fatalf("got %d %s, want 201", a.Code, a.Body)
	}
	p.kill()
	for _, statement := range []string{
		"DELETE FROM outbox WHERE operation_id = (SELECT k.operation_id FROM idempotency_keys k " +
			"WHERE k.key = 'refund-1')",
		"DELETE FROM refunds", "DELETE FROM idempotency_keys WHERE key = 'refund-1'",
		"UPDATE charges SET provider_id = 'ch_elsewhere' WHERE id = '" + r.charge + "'",
	} {
		execSQL(t, r.dbURL, statement)
	}
	for i := range 2 {
		p = r.serve()
		c := r.client(p)
		eventually(t, "claims go on", func() bool {
			return c.Charge(fmt.Sprint("new-", i), twenty).Code == http.StatusCreated
		})
		if a := r.post(c, "refund-1"); a.Code != http.StatusInternalServerError ||
			a.Error().Code != "operation_parked" {
			t.Errorf("the refund: %d %s, want operation_parked", a.Code, a.Body)
		}
		p.kill()
	}
	if n := querySQL[int](t, r.dbURL, "SELECT count(*) FROM recoveries"); n != 1 {
		t.Errorf("%d recoveries, want one", n)
	}
}

// A key whose time is over is swept, and of a capture nothing else is left: that is not taken for a
// fork.
func TestSweptCaptureIsNoFork(t *testing.T) {
	t.Parallel()
	r := &restored{world: newWorld(t, "PAIDONCE_KEY_TTL=1s", "PAIDONCE_PROVIDER_KEY_WINDOW=1s")}
	p := r.serve()
	c := r.client(p)
	r.before(c)
	if a := r.post(c, "capture-1"); a.Code != http.StatusOK {
		t.Fatalf("got %d %s, want 200", a.Code, a.Body)
	}
	eventually(t, "the key is swept", func() bool {
		r.run(nil, "sweep")
		return querySQL[int](t, r.dbURL, "SELECT count(*) FROM idempotency_keys") == 0
	})
	// Each new connection and each second has the servers look.
	for i := range 30 {
		if a := c.Charge(fmt.Sprint("new-", i), twenty); a.Code != http.StatusCreated {
			t.Errorf("got %d %s, want 201", a.Code, a.Body)
		}
		time.Sleep(100 * time.Millisecond)
	}
	if n := querySQL[int](t, r.dbURL, "SELECT count(*) FROM recoveries"); n != 0 {
		t.Errorf("%d recoveries, want none", n)
	}
}
