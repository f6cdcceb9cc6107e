package e2e

import (
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"paidonce/api/apitest"
	"paidonce/internal/race"
)

// memory is a figure of a process in /proc, in MiB: VmRSS is what it has now, VmHWM the most that
// it had.
func (p *proc) memory(name string) int {
	p.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		p.t.Fatal(err)
	}
	kib, err := strconv.Atoi(regexp.MustCompile(name +
		`:\s+(\d+) kB`).FindStringSubmatch(string(text))[1])
	if err != nil {
		p.t.Fatal(err)
	}
	return kib >> 10
}

// holdBody opens a connection, sends a head and all of a body but its last byte, and returns when
// the server has ended the connection.
func holdBody(addr, head string, body []byte) error {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(2 * patience)); err != nil {
		return err
	}
	go func() {
		_, _ = fmt.Fprintf(conn, "%sContent-Length: %d\r\n\r\n", head, len(body))
		_, _ = conn.Write(body[:len(body)-1]) // whether the server takes it is up to it
	}()
	if _, err = io.Copy(io.Discard, conn); err != nil && !strings.Contains(err.Error(), "reset") {
		return fmt.Errorf("the server did not end the connection: %w", err)
	}
	return nil
}

// A thousand connections of nobody knows whom, each with a mebibyte that never ends, on every route
// that takes a body: the server does not grow by what they send, and charges go on.
func TestBodiesOfNobodyKnowsWhomTakeNoMemory(t *testing.T) {
	t.Parallel()
	connections := 1000
	if race.Enabled { // the detector's own memory is several times as much
		connections = 100
	}
	const growthMax = 200 // MiB
	w := newWorld(t, "STRIPE_WEBHOOK_SECRET=whsec_doors")
	p := w.serve()
	addr, body := strings.TrimPrefix(p.url, "http://"), make([]byte, 1<<20)
	c := w.client(p)
	post := func(path, header string) string {
		return "POST " + path + " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" +
			"Idempotency-Key: k\r\n" + header
	}
	const nobody = "Authorization: Bearer sk_nobody\r\n"
	before, charged := p.memory("VmRSS"), 0
	for name, head := range map[string]string{
		"news, as if signed": post("/v1/provider/stripe/webhooks",
			fmt.Sprintf("Stripe-Signature: t=%d,v1=%s\r\n", time.Now().Unix(),
				strings.Repeat("a", 64))),
		"news, garbage":   post("/v1/provider/stripe/webhooks", "Stripe-Signature: garbage\r\n"),
		"charges":         post("/v1/charges", nobody),
		"charges, no key": post("/v1/charges", ""),
		"capture":         post("/v1/charges/ch_1/capture", nobody),
		"refunds":         post("/v1/refunds", nobody),
		"resend":          post("/v1/events/evt_1/resend", nobody),
		"rotation":        post("/v1/webhook_endpoints/a/rotate_secret", nobody),
		"endpoint": "PUT /v1/webhook_endpoints/a HTTP/1.1\r\nHost: x\r\n" +
			"Content-Type: application/json\r\n" + nobody,
		"a read":    "GET /v1/charges HTTP/1.1\r\nHost: x\r\n" + nobody,
		"health":    post("/healthz", ""),
		"no route":  post("/v1/nothing", ""),
		"metrics":   "GET /metrics HTTP/1.1\r\nHost: x\r\n",
		"reference": "GET /docs HTTP/1.1\r\nHost: x\r\n",
	} {
		var held sync.WaitGroup
		for range connections {
			held.Go(func() {
				if err := holdBody(addr, head, body); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			})
		}
		over := make(chan struct{})
		go func() { held.Wait(); close(over) }()
		for n, running := 0, true; running; n++ {
			key, a := fmt.Sprint("charge-", charged), apitest.Answer{Code: 503}
			for tries := 0; a.Code == 503 && tries < 5; tries++ { // as a client does
				a = c.Charge(key, card("tok_visa"))
			}
			if a.Code != 201 {
				t.Errorf("%s: charge %d meanwhile: got %d %s", name, n, a.Code, a.Body)
			}
			charged++
			select {
			case <-over:
				running = false
			case <-time.After(50 * time.Millisecond):
			}
		}
		if grown := p.memory("VmHWM") - before; grown > growthMax && !race.Enabled {
			t.Errorf("%s: the server had %d MiB more than %d", name, grown, before)
		}
	}
	t.Logf("the server had %d MiB, and %d at most", before, p.memory("VmHWM"))
}
