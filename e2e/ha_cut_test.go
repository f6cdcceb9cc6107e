package e2e

import (
	"bufio"
	bigendian "encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"paidonce/api/apitest"
)

// cutter stands between the product and PostgreSQL and understands enough of the protocol to cut a
// connection at a statement.
type cutter struct {
	net.Listener
	server string

	mu    sync.Mutex
	name  string // of the statement to cut at; empty: none
	where cutAt
	skip  int // executions of it that are let through before
	cuts  int
}

type cutAt string

const (
	cutBefore cutAt = "before it is sent"
	cutAfter  cutAt = "after it was executed"
	cutMiddle cutAt = "in the middle of its answer"
)

func newCutter(t *testing.T, dbURL string) (c *cutter, through string) {
	t.Helper()
	u, err := url.Parse(dbURL)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c = &cutter{Listener: l, server: u.Host}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go c.carry(client)
		}
	}()
	u.Host = l.Addr().String()
	return c, u.String()
}

// arm cuts the next connection that executes the statement, once.
func (c *cutter) arm(name string, where cutAt, skip int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.name, c.where, c.skip, c.cuts = name, where, skip, 0
}

func (c *cutter) struck() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cuts
}

// strikes reports whether to cut at this execution.
func (c *cutter) strikes(sql string) (cutAt, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.name == "" || !strings.Contains(sql+" ", c.name+" ") {
		return "", false
	}
	if c.skip--; c.skip >= 0 {
		return "", false
	}
	c.name = ""
	c.cuts++
	return c.where, true
}

// message reads one message of the protocol: its type, unless it is the first of a connection, its
// length, and the rest.
func message(r *bufio.Reader, typed bool) (kind byte, raw []byte, err error) {
	head := make([]byte, 5)
	if !typed {
		head = head[:4]
	}
	if _, err := io.ReadFull(r, head); err != nil {
		return 0, nil, err
	}
	if typed {
		kind = head[0]
	}
	const lengthBytes = 4
	rest := make([]byte, int(bigendian.BigEndian.Uint32(head[len(head)-lengthBytes:]))-lengthBytes)
	_, err = io.ReadFull(r, rest)
	return kind, slices.Concat(head, rest), err
}

func (c *cutter) carry(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp4", c.server)
	if err != nil {
		return
	}
	defer server.Close()
	armed := make(chan cutAt, 1)
	go c.back(client, server, armed)
	in := bufio.NewReader(client)
	prepared := map[string]string{}
	for typed := false; ; typed = true {
		kind, raw, err := message(in, typed)
		if err != nil {
			return
		}
		var sql string
		switch kind {
		case 'P': // name, statement
			parts := strings.SplitN(string(raw[5:]), "\x00", 3)
			prepared[parts[0]] = parts[1]
		case 'B': // portal, name
			sql = prepared[strings.SplitN(string(raw[5:]), "\x00", 3)[1]]
		case 'Q':
			sql = strings.ToUpper(strings.TrimSuffix(string(raw[5:]), "\x00"))
		}
		if where, now := c.strikes(sql); now {
			if where == cutBefore {
				return
			}
			armed <- where
		}
		if _, err := server.Write(raw); err != nil {
			return
		}
	}
}

// back carries answers. Once armed it keeps them until the server is done, and then cuts.
func (c *cutter) back(client, server net.Conn, armed <-chan cutAt) {
	defer client.Close()
	defer server.Close()
	out := bufio.NewReader(server)
	var kept []byte
	var where cutAt
	for {
		kind, raw, err := message(out, true)
		if err != nil {
			return
		}
		select {
		case where = <-armed:
		default:
		}
		if where == "" {
			if _, err := client.Write(raw); err != nil {
				return
			}
			continue
		}
		// ready for the next: whatever it was is committed
		if kept = append(kept, raw...); kind == 'Z' {
			if where == cutMiddle {
				_, _ = client.Write(kept[:len(kept)/2])
			}
			return
		}
	}
}

// soon is far below the lease of these tests: what takes longer has waited for a lease to go stale.
const soon = 12 * time.Second

// The connection to the database is cut at each statement that matters, at each moment that
// differs. The caller gets a right answer or a 503, a resend ends it soon, and there is one charge.
func TestConnectionCutAtEachStatement(t *testing.T) {
	t.Parallel()
	for _, flow := range []string{"charges", "payment_intents"} {
		t.Run(flow, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "PAIDONCE_PROVIDER_TIMEOUT=10s", "PAIDONCE_STALE_AFTER=60s",
				"STRIPE_FLOW="+flow)
			cut, through := newCutter(t, w.dbURL)
			c := w.client(w.serve("DATABASE_URL=" + through))
			statements := []string{"ChargeClaim", "ChargeSettle"}
			if flow == "payment_intents" {
				statements = append(statements, "KeyAdvance")
			}
			n := 0
			for _, name := range statements {
				for _, where := range []cutAt{cutBefore, cutAfter, cutMiddle} {
					n++
					c.Charge(fmt.Sprint("warm-", n), twenty) // so that it is prepared
					cut.arm("-- name: "+name, where, 0)
					w.endsSoon(c, cut, fmt.Sprint("k", n), name, where)
				}
			}
			if flow == "charges" {
				w.cutAround(c, cut)
			}
			w.must("reconcile")
			w.checkBooks()
		})
	}
}

// endsSoon sends a charge until it is answered for good.
func (w *world) endsSoon(c *apitest.Client, cut *cutter, key, name string, where cutAt) {
	w.t.Helper()
	began := time.Now()
	a, tries := until(w.t, func() *apitest.Client { return c }, key, twenty)
	if a.Code != http.StatusCreated || cut.struck() != 1 {
		w.t.Errorf("%s, cut %s: %d %s; %d cuts", name, where, a.Code, a.Body, cut.struck())
	}
	if took := time.Since(began); took > soon {
		w.t.Errorf("%s, cut %s: it took %v and %d resends, so a lease lay there", name, where, took,
			tries)
	}
	if b := c.Charge(key, twenty); string(b.Body) != string(a.Body) {
		w.t.Errorf("%s, cut %s: another answer later:\n%s%s", name, where, a.Body, b.Body)
	}
}

// cutAround cuts what comes around an attempt without an outcome.
func (w *world) cutAround(c *apitest.Client, cut *cutter) {
	w.t.Helper()
	for i, where := range []cutAt{cutBefore, cutAfter, cutMiddle} {
		key := fmt.Sprint("released-", i)
		w.sim.arm(1, fault{"type": "drop_before"})
		cut.arm("-- name: KeyRelease", where, 0)
		if a, err := try(w.t, c, key, twenty); err != nil ||
			a.Code != http.StatusServiceUnavailable {
			w.t.Errorf("%d %s %v, want 503", a.Code, a.Body, err)
		}
		w.endsSoon(c, cut, key, "KeyRelease", where)

		key = fmt.Sprint("taken-over-", i)
		w.sim.arm(1, fault{"type": "drop_after"})
		c.Charge(key, twenty)
		cut.arm("-- name: KeyTakeOver", where, 0)
		w.endsSoon(c, cut, key, "KeyTakeOver", where)
	}
}

// A reconciler whose lease was taken and not told of reads it back: the operation is driven in the
// same pass.
func TestReconcilerIsCutOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "PAIDONCE_PROVIDER_TIMEOUT=10s", "PAIDONCE_STALE_AFTER=60s")
	cut, through := newCutter(t, w.dbURL)
	c := w.client(w.serve())
	for i, where := range []cutAt{cutBefore, cutAfter, cutMiddle} {
		key := fmt.Sprint("k", i)
		w.sim.arm(1, fault{"type": "drop_after"})
		c.Charge(key, twenty)
		execSQL(t, w.dbURL, "UPDATE idempotency_keys SET next_run_at = now() WHERE next_run_at "+
			"IS NOT NULL")
		cut.arm("-- name: KeyLeaseDue", where, 0)
		var r result
		eventually(t, "the database answers in time", func() bool {
			r = w.run([]string{"DATABASE_URL=" + through}, "reconcile")
			return cut.struck() > 0 || !strings.Contains(r.stderr, "the database does not answer")
		})
		if r.code != 0 || cut.struck() != 1 || !strings.Contains(r.stdout, "driven 1, finished 1") {
			t.Errorf("cut %s: %d cuts; %d %s%s", where, cut.struck(), r.code, r.stdout, r.stderr)
		}
		if a := c.Charge(key, twenty); a.Code != http.StatusCreated {
			t.Errorf("cut %s: %d %s", where, a.Code, a.Body)
		}
	}
	w.checkBooks()
}

// Refunds commit in transactions of several statements: the answer to COMMIT itself is lost, at the
// claim and at the settlement.
func TestCommitCutOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "PAIDONCE_PROVIDER_TIMEOUT=10s", "PAIDONCE_STALE_AFTER=60s")
	cut, through := newCutter(t, w.dbURL)
	c := w.client(w.serve("DATABASE_URL=" + through))
	n := 0
	for _, name := range []string{"COMMIT", "-- name: KeyFinish"} {
		for skip := range 2 {
			for _, where := range []cutAt{cutBefore, cutAfter, cutMiddle} {
				if skip > 0 && name != "COMMIT" {
					continue
				}
				n++
				id := c.Charge(fmt.Sprint("charge-", n), twenty).ID()
				cut.arm(name, where, skip)
				began, what := time.Now(), fmt.Sprintf("%s %d, cut %s", name, skip, where)
				a, _ := untilPosted(t, func() *apitest.Client { return c }, "/v1/refunds",
					fmt.Sprint("refund-", n), fmt.Sprintf(`{"charge":%q}`, id))
				if a.Code != http.StatusCreated || cut.struck() != 1 {
					t.Errorf("%s: %d %s; %d cuts", what, a.Code, a.Body, cut.struck())
				}
				if took := time.Since(began); took > soon {
					t.Errorf("%s: it took %v, so a lease lay there", what, took)
				}
			}
		}
	}
	const refunded = "SELECT count(*) FROM charges WHERE amount_refunded = amount AND " +
		"amount_refund_pending = 0"
	if got := querySQL[int](t, w.dbURL, refunded); got != n {
		t.Errorf("%d charges are refunded, want %d", got, n)
	}
}
