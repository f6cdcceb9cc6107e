package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/url"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync"
	"testing"
	"time"

	"paidonce/internal/race"
)

// holder stands before a provider and holds the connections on which charges are asked for, without
// an answer. A server would need memory for each, and this test measures our own.
type holder struct {
	net.Listener
	provider string // its address

	mu   sync.Mutex
	held []net.Conn
}

func (h *holder) serve() {
	for {
		c, err := h.Accept()
		if err != nil {
			return
		}
		go h.pass(c)
	}
}

func (h *holder) pass(c net.Conn) {
	const charge = "POST /v1/charges "
	in := bufio.NewReaderSize(c, 64)
	if begin, _ := in.Peek(len(charge)); string(begin) == charge {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.held = append(h.held, c)
		return
	}
	defer func() { _ = c.Close() }()
	there, err := net.Dial("tcp", h.provider)
	if err != nil {
		return
	}
	go func() { _, _ = io.Copy(c, there); _ = c.Close() }()
	_, _ = io.Copy(there, in)
	_ = there.Close()
}

func (h *holder) holds() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.held)
}

// letGo breaks all that is held.
func (h *holder) letGo() {
	_ = h.Close()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.held {
		_ = c.Close()
	}
}

// A request that waits for the provider needs 16 kB of stack: that is what remains of a larger one
// while less than 8 kB of it are in use. With more, as when an operation is copied in every frame,
// it is 32 kB, and thousands may wait.
func TestMemoryOfAWaitingCharge(t *testing.T) { // not parallel: it measures the whole process
	if race.Enabled {
		t.Skip("the race detector's frames are larger")
	}
	const waiting, stackMax, heapMax = 400, 26 << 10, 32 << 10
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	hold := &holder{Listener: l}
	w := newWatched(t, func(c *config) {
		u, err := url.Parse(c.StripeAPIBase)
		if err != nil {
			t.Fatal(err)
		}
		hold.provider, c.StripeAPIBase = u.Host, "http://"+l.Addr().String()
		c.ProviderTimeout = time.Minute
		go hold.serve()
	})
	t.Cleanup(hold.letGo)
	stacks, heap := memory()
	clients := make([]net.Conn, waiting)
	for i := range clients {
		clients[i] = w.post(fmt.Sprint("waiting ", i))
	}
	for hold.holds() < waiting {
		time.Sleep(time.Millisecond)
	}
	stacksThen, heapThen := memory()
	if n := (stacksThen - stacks) / waiting; n > stackMax {
		t.Errorf("%d bytes of stack for each request, want at most %d", n, stackMax)
	}
	if n := (heapThen - heap) / waiting; n > heapMax {
		t.Errorf("%d bytes of heap for each request, want at most %d", n, heapMax)
	}
	runtime.KeepAlive(clients)
}

// post asks for a charge on a connection of its own, and leaves its answer there.
func (w *watched) post(key string) net.Conn {
	w.t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = c.Close() })
	_, err = fmt.Fprintf(c, "POST /v1/charges HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer %s\r\nIdempotency-Key: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		w.key.Secret, key, len(visa), visa)
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// memory returns what stacks and live objects take. Each collection halves stacks that are little
// used, so some are needed.
func memory() (stacks, heap int64) {
	for range 4 {
		runtime.GC()
	}
	s := []metrics.Sample{{Name: "/memory/classes/heap/stacks:bytes"}, {Name: "/gc/heap/live:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64()), int64(s[1].Value.Uint64())
}
