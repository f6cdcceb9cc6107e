package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/santhosh-tekuri/jsonschema/v6"
	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"
	stripewebhook "github.com/stripe/stripe-go/v76/webhook"

	"paidonce/api/apitest"
)

// allowPrivate lets endpoints be on this machine.
const allowPrivate = "PAIDONCE_WEBHOOK_ALLOW_PRIVATE=true"

// schemas are those of docs/events, by type.
var schemas = sync.OnceValues(func() (map[string]*jsonschema.Schema, error) {
	files, err := filepath.Glob("../docs/events/*.json")
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no schemas: %w", err)
	}
	byType := map[string]*jsonschema.Schema{}
	for _, file := range files {
		typ := strings.TrimSuffix(filepath.Base(file), ".json")
		if byType[typ], err = jsonschema.NewCompiler().Compile(file); err != nil {
			return nil, err
		}
	}
	return byType, nil
})

// event is what tests read of one.
type event struct {
	ID, Type string
	Sequence int
	Data     struct{ Object struct{ ID, Status string } }
}

// validEvent holds an event against the schema of its type, and reads it.
func validEvent(t testing.TB, payload []byte) (e event) {
	t.Helper()
	byType, err := schemas()
	if err != nil {
		t.Error(err)
		return e
	}
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(payload))
	if err == nil {
		err = json.Unmarshal(payload, &e)
	}
	if err != nil || byType[e.Type] == nil {
		t.Errorf("%q: not JSON, or of a type without a schema: %v", payload, err)
		return e
	}
	if err := byType[e.Type].Validate(instance); err != nil {
		t.Errorf("%s: %v", payload, err)
	}
	return e
}

// sink is a merchant's server. It verifies each delivery with both reference libraries, checks
// it against its schema, and remembers it.
type sink struct {
	*httptest.Server
	t *testing.T
	// answer is what follows; nth: how many times this event has come. nil: 200.
	answer func(w http.ResponseWriter, r *http.Request, e event, nth int)

	mu     sync.Mutex
	secret string
	events map[string]event
	bodies map[string]string
	tries  map[string][]attempt
	taken  []event // answered 2xx, in that order
}

// attempt is one delivery of an event.
type attempt struct {
	stamp     int64 // unix seconds, as signed
	signature string
}

func newSink(t *testing.T) *sink {
	s := &sink{
		t: t, events: map[string]event{}, bodies: map[string]string{},
		tries: map[string][]attempt{},
	}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // its sender was killed
	}
	id := r.Header.Get(standard.HeaderWebhookID)
	stamp, _ := strconv.ParseInt(r.Header.Get(standard.HeaderWebhookTimestamp), 10, 64)
	s.mu.Lock()
	verify(s.t, s.secret, body, r.Header)
	if was, known := s.bodies[id]; !known {
		s.bodies[id], s.events[id] = string(body), validEvent(s.t, body)
	} else if was != string(body) {
		s.t.Errorf("%s came with other bytes than before: %s, %s", id, was, body)
	}
	e := s.events[id]
	if e.ID != id {
		s.t.Errorf("webhook-id is %s, the event's is %s", id, e.ID)
	}
	s.tries[id] = append(s.tries[id], attempt{stamp, r.Header.Get(standard.HeaderWebhookSignature)})
	nth := len(s.tries[id])
	s.mu.Unlock()
	status := &statusWriter{w, http.StatusOK}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if s.answer != nil {
		s.answer(status, r, e, nth)
	}
	if status.code < 300 {
		s.mu.Lock()
		s.taken = append(s.taken, e)
		s.mu.Unlock()
	}
}

type statusWriter struct {
	http.ResponseWriter
	code int
}

func (w *statusWriter) WriteHeader(code int) { w.code = code; w.ResponseWriter.WriteHeader(code) }

// verify verifies a delivery as consumers do.
func verify(t testing.TB, secret string, body []byte, h http.Header) {
	hook, err := standard.NewWebhook(secret)
	if err == nil {
		err = hook.Verify(body, h)
	}
	if err != nil {
		t.Errorf("Standard Webhooks: %v", err)
	}
	if e, err := stripewebhook.ConstructEvent(body, h.Get("Stripe-Signature"), secret); err != nil || e.ID != h.Get(standard.HeaderWebhookID) {
		t.Errorf("stripe-go: %v (%s)", err, e.ID)
	}
}

// doubled is how many events were taken more than once.
func (s *sink) doubled() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	times := map[string]int{}
	for _, e := range s.taken {
		if times[e.ID]++; times[e.ID] == 2 {
			n++
		}
	}
	return n
}

// takenOf returns the events of an object that were taken, in their order, or of all objects.
func (s *sink) takenOf(object string) (list []event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.taken {
		if object == "" || e.Data.Object.ID == object {
			list = append(list, e)
		}
	}
	return list
}

// register registers an endpoint and returns its secret.
func register(t testing.TB, c *apitest.Client, id, url string) string {
	t.Helper()
	a := c.Do(c.Request(http.MethodPut, "/v1/webhook_endpoints/"+id, fmt.Sprintf(`{"url":%q}`, url),
		"Content-Type", "application/json"))
	var endpoint struct{ Secret string }
	if a.JSON(&endpoint); a.Code != http.StatusCreated || endpoint.Secret == "" {
		t.Fatalf("registering %s: %d %s", id, a.Code, a.Body)
	}
	return endpoint.Secret
}

// listen registers the sink.
func (s *sink) listen(c *apitest.Client) {
	s.t.Helper()
	secret := register(s.t, c, "sink", s.URL)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.secret = secret
}

// relay starts a relay and waits until it is at work.
func (w *world) relay(env ...string) *proc {
	w.t.Helper()
	p := w.start("relay", w.command(env, "relay"))
	p.await(`"msg":"delivering events"`)
	return p
}

// hurry makes due again and again, until the test ends, what was last tried so long ago, whoever
// may have it: the pauses after failures and the leases of the dead are longer than a test should
// take.
func (w *world) hurry(rest time.Duration) {
	w.t.Helper()
	conn := w.connect()
	ctx, cancel := context.WithCancel(context.Background())
	var working sync.WaitGroup
	working.Go(func() {
		for ctx.Err() == nil {
			// What a relay has locked it is writing at this moment.
			if _, err := conn.Exec(ctx,
				`UPDATE deliveries d SET next_run_at = clock_timestamp(), leased_until = NULL
				FROM (SELECT endpoint, event_id FROM deliveries WHERE state = 'pending' AND last_attempt_at < clock_timestamp() - $1::interval FOR UPDATE SKIP LOCKED) r
				WHERE d.endpoint = r.endpoint AND d.event_id = r.event_id`, rest); err != nil && ctx.Err() == nil {
				w.t.Errorf("hurrying: %v", err)
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	})
	w.t.Cleanup(func() { cancel(); working.Wait() })
}

// awaitDelivered waits until every event that is committed is delivered.
func (w *world) awaitDelivered() {
	w.t.Helper()
	eventually(w.t, "all events are delivered", func() bool {
		return querySQL[bool](w.t, w.dbURL,
			`SELECT NOT EXISTS (SELECT FROM outbox WHERE position IS NULL
					OR position > (SELECT position FROM deliveries_cursor))
				AND NOT EXISTS (SELECT FROM deliveries WHERE state <> 'delivered')`)
	})
}

// stored returns the bytes of all events that are committed, by id.
func (w *world) stored() map[string]string {
	w.t.Helper()
	var all map[string]string
	text := querySQL[string](w.t, w.dbURL,
		`SELECT coalesce(jsonb_object_agg(event_id, convert_from(payload, 'UTF8')), '{}')::text FROM outbox`)
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		w.t.Fatal(err)
	}
	return all
}

// listed reads GET /v1/events from a cursor to the end.
func listed(
	t testing.TB, c *apitest.Client, after string,
) (ids []string, bodies map[string]string) {
	t.Helper()
	bodies = map[string]string{}
	for {
		path := "/v1/events?limit=7"
		if after != "" {
			path += "&starting_after=" + after
		}
		var page struct {
			HasMore bool `json:"has_more"`
			Data    []json.RawMessage
		}
		a := c.Get(path)
		if a.JSON(&page); a.Code != http.StatusOK {
			t.Fatalf("%s: got %d %s, want 200", path, a.Code, a.Body)
		}
		for _, payload := range page.Data {
			after = validEvent(t, payload).ID
			ids, bodies[after] = append(ids, after), string(payload)
		}
		if !page.HasMore {
			return ids, bodies
		}
	}
}

// consumerBinary is examples/consumer, built for this run.
var consumerBinary = sync.OnceValues(func() (string, error) {
	return buildProgram(filepath.Dir(binary), "consumer", "../examples/consumer")
})

// consumer starts the example with its books in a database. Without -pull its url is where it takes
// events.
func (w *world) consumer(dbURL string, env []string, args ...string) *proc {
	w.t.Helper()
	file, err := consumerBinary()
	if err != nil {
		w.t.Fatal(err)
	}
	cmd := exec.Command(file, args...)
	cmd.Env = append([]string{
		"DATABASE_URL=" + dbURL, "LISTEN=127.0.0.1:0", "GORACE=atexit_sleep_ms=0",
	}, env...)
	cmd.SysProcAttr = ownGroup()
	p := w.start("consumer", cmd)
	if len(args) == 0 {
		p.url = p.await(`taking events url=(\S+)`)[1]
	}
	return p
}

// readCommitted is for what a test itself does where everybody else's transactions are serializable
// (TEST_ISOLATION): it is not what may lose.
const readCommitted = "SET default_transaction_isolation = 'read committed'"

// connect opens a connection to the database that is closed when the test ends.
func (w *world) connect() *pgx.Conn {
	w.t.Helper()
	conn, err := pgx.Connect(w.t.Context(), w.dbURL)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = conn.Close(context.Background()) })
	if _, err := conn.Exec(w.t.Context(), readCommitted); err != nil {
		w.t.Fatal(err)
	}
	return conn
}

// types counts the events that came, by type.
func (s *sink) types() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := map[string]int{}
	for _, e := range s.events {
		n[e.Type]++
	}
	return n
}
