package outbox_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"paidonce/outbox"
	"paidonce/outbox/webhook"
)

// TestSwitchesProtocols: who answers 101 and keeps the connection open has answered, and keeps no
// relay: read from, that connection would outlast every limit, and a few hundred of them would be
// all that a relay has under way.
func TestSwitchesProtocols(t *testing.T) {
	w, r := newWorld(t), newReceiver(t)
	w.put("hook", r.URL)
	id := w.add(w.Pool, "charge.succeeded", "ch_1")
	left := make(chan struct{})
	r.answer = func(rw http.ResponseWriter, _ *http.Request, _ int) {
		conn, _, err := http.NewResponseController(rw).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		t.Cleanup(func() { _ = conn.Close() })
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
		_, _ = io.Copy(io.Discard, conn) // until the other side closes it
		close(left)
	}
	relay := w.relay(func(c *outbox.RelayConfig) {
		c.Sender, c.Pause = webhook.New(webhook.Config{Guard: webhook.Guard{AllowPrivate: true}, Timeout: 500 * time.Millisecond}), time.Hour
	})
	done := make(chan error, 1)
	go func() { done <- relay.RunOnce(context.Background()) }()
	select {
	case err := <-done:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(20 * time.Second): // forever, that is
		t.Fatal("the attempt does not end")
	}
	<-left
	list, err := w.store.Deliveries(t.Context(), id)
	if err != nil || len(list) != 1 || list[0].State != "pending" || list[0].LastStatus != http.StatusSwitchingProtocols {
		t.Errorf("got %+v, %v, want 1", list, err)
	}
}

// TestGoneBefore: what was under way when an endpoint was registered again, elsewhere or anew, and
// is answered 410 only then, does not disable it.
func TestGoneBefore(t *testing.T) {
	w, old, moved := newWorld(t), newReceiver(t), newReceiver(t)
	w.put("hook", old.URL)
	w.add(w.Pool, "charge.succeeded", "ch_1")
	old.answer = func(rw http.ResponseWriter, _ *http.Request, _ int) {
		w.put("hook", moved.URL)
		rw.WriteHeader(http.StatusGone)
	}
	w.run(w.relay())
	eventually(t, 20*time.Second, "the event is delivered", func() bool { return w.Count(`SELECT count(*) FROM deliveries WHERE state = 'delivered'`) == 1 })
	e, err := w.store.GetEndpoint(t.Context(), account, "hook")
	if err != nil || e.DisabledAt != nil || e.URL != moved.URL || moved.distinct() != 1 {
		t.Errorf("%+v, %v, %d events", e, err, moved.distinct())
	}
}

// TestSlowEndpointsLeaveRoom: however many endpoints take their time, and whatever waits for them,
// one that answers at once need not wait for them.
func TestSlowEndpointsLeaveRoom(t *testing.T) {
	w := newWorld(t)
	const endpoints, events = 48, 30
	for i := range endpoints {
		w.put(fmt.Sprintf("slow-%d", i), "https://slow.test/", "charge.succeeded")
	}
	w.put("quick", "https://quick.test/", "charge.failed")
	w.addMany(events)
	slow := &takesItsTime{release: make(chan struct{})}
	w.run(w.relay(func(c *outbox.RelayConfig) { c.Sender = slow }))
	t.Cleanup(func() { close(slow.release) }) // before the relay is waited for
	under := int64(0)
	eventually(t, 20*time.Second, "the slow ones have all that they get", func() bool {
		was := under
		under = slow.underWay.Load()
		return under > 400 && under == was && w.Count(`SELECT count(*) FROM deliveries WHERE leased_until IS NULL AND state = 'pending'`) > 0
	})
	w.add(w.Pool, "charge.failed", "ch_quick")
	eventually(t, 20*time.Second, "the quick one is delivered", func() bool { return w.Count(`SELECT count(*) FROM deliveries WHERE state = 'delivered'`) == 1 })
}

// takesItsTime is a sender whose slow endpoints answer when they are released, all others at once.
type takesItsTime struct {
	release  chan struct{}
	underWay atomic.Int64
}

func (s *takesItsTime) Send(_ context.Context, m outbox.Message) (outbox.Answer, error) {
	if strings.Contains(m.URL, "slow") {
		s.underWay.Add(1)
		<-s.release
	}
	return outbox.Answer{Status: http.StatusOK}, nil
}
