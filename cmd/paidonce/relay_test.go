package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"paidonce/outbox"
)

// asCommand names the variable that turns this test program into the product, so that a test can
// start and kill it.
const asCommand = "PAIDONCE_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if args := os.Getenv(asCommand); args != "" {
		os.Exit(run(strings.Fields(args), os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

func (w *watched) command(args string) *exec.Cmd {
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), asCommand+"="+args, "DATABASE_URL="+w.app.cfg.DatabaseURL,
		"PAIDONCE_WEBHOOK_ALLOW_PRIVATE=true", "PAIDONCE_LOG_LEVEL=error")
	c.Stderr = os.Stderr
	return c
}

// merchant verifies its deliveries with the reference library, and accepts each event at its fourth
// delivery.
type merchant struct {
	t      *testing.T
	mu     sync.Mutex
	secret string
	times  map[string]int
	bodies map[string]string
	took   map[string]bool
}

func (m *merchant) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	hook, err := standard.NewWebhook(m.secret)
	if err != nil {
		m.t.Error(err)
		return
	}
	if err := hook.Verify(body, r.Header); err != nil {
		m.t.Error(err)
	}
	id := r.Header.Get("webhook-id")
	if was, ok := m.bodies[id]; ok && was != string(body) {
		m.t.Errorf("%s came with other bytes", id)
	}
	m.bodies[id] = string(body)
	if m.times[id]++; m.times[id] <= 3 {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	m.took[id] = true
}

// TestRelayIsKilled delivers 30 charges to a receiver that fails three times. The relay is killed
// every ten charges and at random times. Every committed event is delivered, and nothing else.
func TestRelayIsKilled(t *testing.T) {
	w := newWatched(t, nil)
	m := &merchant{
		t: t, times: map[string]int{}, bodies: map[string]string{}, took: map[string]bool{},
	}
	receiver := httptest.NewServer(m)
	defer receiver.Close()
	if _, _, err := w.app.events.PutEndpoint(t.Context(), w.key.AccountID, "hook",
		outbox.EndpointParams{URL: receiver.URL, EnabledEvents: []string{"*"}}); err == nil {
		t.Fatal("a private address is accepted without the setting")
	}
	open := outbox.New(outbox.Config{Pool: w.app.pool})
	endpoint, _, err := open.PutEndpoint(t.Context(), w.key.AccountID,
		"hook", outbox.EndpointParams{URL: receiver.URL, EnabledEvents: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	m.secret = endpoint.Secret
	var child *exec.Cmd
	start := func() {
		child = w.command("relay")
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
	}
	kill := func() { _ = child.Process.Kill(); _ = child.Wait() }
	start()
	defer func() { kill() }()
	// makeDue makes due all events that wait, and those that a dead relay had claimed.
	makeDue := func() {
		w.exec(`UPDATE deliveries SET next_run_at = clock_timestamp(), leased_until = NULL
			WHERE state = 'pending' AND (leased_until IS NULL OR last_attempt_at < clock_timestamp() - interval '3 seconds')`)
	}
	for i := range 30 {
		w.charge(fmt.Sprint("k", i), visa, 201)
		time.Sleep(20 * time.Millisecond)
		makeDue()
		if i%10 == 9 {
			kill()
			w.exec(`UPDATE deliveries SET next_run_at = clock_timestamp(), leased_until = NULL WHERE state = 'pending'`)
			start()
		}
	}
	var committed, delivered int
	count := func(query string, into *int) {
		if err := w.app.pool.QueryRow(context.Background(), query).Scan(into); err != nil {
			t.Fatal(err)
		}
	}
	count(`SELECT count(*) FROM outbox`, &committed)
	for deadline := time.Now().Add(60 * time.Second); delivered < committed; time.Sleep(
		100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d events are delivered", delivered, committed)
		}
		makeDue()
		count(`SELECT count(*) FROM deliveries WHERE state = 'delivered'`, &delivered)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if committed != 30 || len(m.took) != committed {
		t.Errorf("%d events are committed, %d were taken", committed, len(m.took))
	}
	for id, body := range m.bodies {
		e, err := open.Find(t.Context(), id)
		if err != nil || string(e.Payload) != body {
			t.Errorf("%s: %v, or other bytes than stored", id, err)
		}
	}
}

// TestRelayCommands runs relay --once, which delivers and reports it, and the events commands,
// which show what became of an event and send it again.
func TestRelayCommands(t *testing.T) {
	w := newWatched(t, nil)
	w.charge("a", visa, 201)
	got := make(chan string, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got <- r.Header.Get("webhook-id")
	}))
	defer receiver.Close()
	store := outbox.New(outbox.Config{Pool: w.app.pool})
	if _, _, err := store.PutEndpoint(t.Context(), w.key.AccountID,
		"hook", outbox.EndpointParams{URL: receiver.URL,
			EnabledEvents: []string{"charge.succeeded"}}); err != nil {
		t.Fatal(err)
	}
	say := func(args string) string {
		t.Helper()
		c := w.command(args)
		var out bytes.Buffer
		c.Stdout = &out
		if err := c.Run(); err != nil {
			t.Fatalf("%s: %v", args, err)
		}
		return out.String()
	}
	if out := say("relay --once"); !strings.Contains(out, "1 new events, 1 delivered") {
		t.Error(out)
	}
	next := func() string {
		select {
		case id := <-got:
			return id
		case <-time.After(20 * time.Second):
			t.Fatal("nothing came")
			return ""
		}
	}
	id := next()
	var list []struct {
		ID       string
		Delivery struct{ Endpoints, Pending int }
	}
	if err := json.Unmarshal([]byte(say("events list --json")), &list); err != nil ||
		len(list) != 1 || list[0].ID != id || list[0].Delivery.Endpoints != 1 {
		t.Errorf("%v: got %+v, want 1", err, list)
	}
	if out := say("events list"); !strings.Contains(out, "delivered to 1") {
		t.Error(out)
	}
	if out := say("events show " + id); !strings.Contains(out, "delivered") ||
		!strings.Contains(out, `"sequence":1`) {
		t.Error(out)
	}
	if out := say("events resend " + id); !strings.Contains(out, "1 endpoints") {
		t.Error(out)
	}
	var counts map[string]int
	if err := json.Unmarshal([]byte(say("relay --once --json")), &counts); err != nil ||
		counts["delivered"] != 1 || next() != id {
		t.Errorf("%v: %v", err, counts)
	}
	if err := w.command("events show evt_nowhere").Run(); err == nil {
		t.Error("an event that is not there is shown")
	}
}
