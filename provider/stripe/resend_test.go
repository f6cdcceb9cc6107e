package stripe_test

import (
	"context"
	"net"
	"testing"
	"time"

	"paidonce/provider/stripesim"
)

// Go would send a POST again by itself when a reused connection dies, and the second answer would
// speak for the first request, which may have been carried out. One call is one request, on a warm
// connection as on a fresh one.
func TestNotSentAgain(t *testing.T) {
	answers := map[string]string{
		"429": "HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n\r\n",
		"401": "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n",
		"200": ok(goodCharge()),
	}
	for name, second := range answers {
		for how, die := range map[string]func(net.Conn){"reset": reset, "closed": func(c net.Conn) { _ = c.Close() }} {
			t.Run(how+", then "+name, func(t *testing.T) {
				url, requests := rawServer(t, func(n int64, c net.Conn) {
					switch n {
					case 1:
						write(c, ok(goodCharge()))
					case 2:
						die(c) // the request was read: it may have been carried out
					default:
						write(c, second)
					}
				})
				p := connect(t, url)
				if _, err := p.Charge(context.Background(), &ordinary); err != nil {
					t.Fatal(err)
				}
				before := requests.Load()
				out, err := p.Charge(context.Background(), &ordinary)
				if got := verdict(out, err); got != "unknown" {
					t.Errorf("got %s (%v), want unknown", got, err)
				}
				if n := requests.Load() - before; n != 1 {
					t.Errorf("%d requests for one call", n)
				}
			})
		}
	}
	url, requests := rawServer(t, func(_ int64, c net.Conn) { _ = c.Close() })
	if _, err := connect(t, url).Charge(context.Background(), &ordinary); err == nil || requests.Load() != 1 {
		t.Errorf("%v after %d requests, want an error after 1", err, requests.Load())
	}
}

// A connection that the server closed while it was idle costs nothing: nothing was written on it.
func TestIdleConnectionClosed(t *testing.T) {
	url, requests := rawServer(t, func(n int64, c net.Conn) {
		write(c, ok(goodCharge()))
		if n == 1 {
			_ = c.Close()
		}
	})
	p := connect(t, url)
	for i := range int64(2) {
		out, err := p.Charge(context.Background(), &ordinary)
		if got := verdict(out, err); got != "charge" || requests.Load() != i+1 {
			t.Fatalf("%s (%v) after %d requests, want a charge after %d", got, err, requests.Load(), i+1)
		}
		time.Sleep(50 * time.Millisecond) // until the end has arrived here
	}
}

// The simulator's plain closing of a reused connection: the charge is made, nobody sends it again,
// and its key tells.
func TestLostAnswerAgainstSimulator(t *testing.T) {
	for _, wire := range []string{stripesim.WireEOF, stripesim.WireReset} {
		sim, p := newSim(t)
		if _, err := p.Charge(context.Background(), &ordinary); err != nil {
			t.Fatal(err)
		}
		if _, err := sim.AddFault(stripesim.Rule{Count: 1, Fault: stripesim.Fault{Type: stripesim.DropAfter, Wire: wire}}); err != nil {
			t.Fatal(err)
		}
		r := ordinary
		r.IdempotencyKey, r.Tags.Operation = "po_next", "op_next"
		if got := verdict(p.Charge(context.Background(), &r)); got != "unknown" {
			t.Fatalf("%s: got %s, want unknown", wire, got)
		}
		if s := sim.Stats(); s.ChargeRequests != 2 || s.Charges != 2 || s.Replayed != 0 {
			t.Errorf("%s: %+v", wire, s)
		}
		if got := verdict(p.Charge(context.Background(), &r)); got != "charge" {
			t.Errorf("%s: got %s", wire, got)
		}
	}
}
